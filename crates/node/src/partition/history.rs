//! What happened to a partition on this broker, and why: a line in the log, and the last of them kept to be asked for.
//!
//! Each entry has a number of the broker's, what made it happen, and the number of the entry or request that this followed
//! from: a truncation follows from the request that made the broker a follower, a confirmed ISR from its proposal. The
//! requests of a controller name its epoch; what led to them stands in the history of that controller.

use std::collections::VecDeque;
use std::fmt;

use kernel::replica::fetcher::truncation::TruncationCause;
use kernel::replica::leader::Cause;
use storage::partition_log::{Loss, Positions};
use wire::types::{BrokerId, ControllerEpoch, LeaderEpoch, Offset, TopicPartition};

use super::role::Following;

/// How many of the last things that happened are kept for each partition.
const KEPT: usize = 16;

/// A request of a controller, as the cause of what it brings about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Its number among all that happens on this broker.
    pub(crate) number: u64,
    /// The name of the request.
    pub(crate) request: &'static str,
    /// Who sent it.
    pub(crate) controller: BrokerId,
    /// In which term.
    pub(crate) controller_epoch: ControllerEpoch,
}

/// What made something happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The log was opened or made.
    Opened,
    /// A controller said so.
    Request(Origin),
    /// A follower fetched.
    FollowerFetch(BrokerId),
    /// The leader looked at how far its followers are.
    Lag,
    /// A change of the ISR was answered.
    IsrAnswer,
    /// The leader answered a fetcher.
    LeaderAnswer(BrokerId),
    /// A log directory failed.
    DiskFailure,
}

/// The epochs of a partition as this broker knows them; -1 while it was told none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epochs {
    pub(crate) leader: LeaderEpoch,
    /// The version of the partition's state.
    pub(crate) partition: i32,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    /// Its number among all that happens on this broker; that of the request, if it is one's direct effect.
    pub(crate) number: u64,
    /// Milliseconds since the Unix epoch.
    pub(crate) at_ms: i64,
    pub(crate) trigger: Trigger,
    /// The number of what it followed from.
    pub(crate) parent: Option<u64>,
    pub(crate) before: Epochs,
    pub(crate) after: Epochs,
    /// The offsets of the log afterwards.
    pub(crate) offsets: Positions,
    pub(crate) what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// The log had lost records that had been replicated.
    Lost(Loss),
    /// The leader did something.
    Leader(Cause),
    /// The broker follows from now on.
    Follows(Following),
    /// The log was cut, as a follower's must be.
    Truncated(Truncated),
    /// The log directory has failed.
    Offline,
    /// The replica stopped, and stays.
    Stopped,
    /// The replica was removed.
    Deleted,
}

/// How a follower's log was cut, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truncated {
    /// The log end before.
    pub(crate) from: Offset,
    /// The log end now.
    pub(crate) to: Offset,
    /// The high watermark before.
    pub(crate) high_watermark: Offset,
    /// Where the first batch began that was cut, if any was and `to` is below the high watermark. A log may end beyond its
    /// last batch: with an active segment that is empty, after compaction.
    pub(crate) first_batch: Option<Offset>,
    /// Why.
    pub(crate) cause: TruncationCause,
}

impl Truncated {
    /// Whether records are gone that had been replicated.
    pub(crate) fn loses_replicated(&self) -> bool {
        self.to < self.high_watermark && self.first_batch.is_some_and(|first| first < self.high_watermark)
    }
}

/// The last things that happened to a partition.
#[derive(Debug)]
pub(crate) struct History {
    entries: VecDeque<Happened>,
    epochs: Epochs,
    /// The number of what gave the present role.
    role: Option<u64>,
    /// The number of the last proposal of an ISR.
    proposal: Option<u64>,
}

impl Default for History {
    fn default() -> Self {
        let epochs = Epochs { leader: LeaderEpoch::UNKNOWN, partition: -1 };
        Self { entries: VecDeque::new(), epochs, role: None, proposal: None }
    }
}

impl History {
    /// Makes the next entry. `number` is a new one; what is the direct effect of a request has the number of that. `told`:
    /// the epochs, if they are told.
    pub(super) fn next(
        &mut self,
        number: u64,
        at_ms: i64,
        trigger: Trigger,
        told: Option<Epochs>,
        offsets: Positions,
        what: What,
    ) -> Happened {
        let number = if let Trigger::Request(origin) = trigger { origin.number } else { number };
        let parent = match trigger {
            Trigger::Opened | Trigger::Request(_) | Trigger::DiskFailure => None,
            Trigger::IsrAnswer => self.proposal,
            Trigger::FollowerFetch(_) | Trigger::Lag | Trigger::LeaderAnswer(_) => self.role,
        };
        let before = self.epochs;
        self.epochs = told.unwrap_or(before);
        match &what {
            What::Leader(Cause::Leading { .. }) | What::Follows(_) => self.role = Some(number),
            What::Leader(Cause::Expanding { .. } | Cause::Shrinking { .. }) => self.proposal = Some(number),
            What::Leader(Cause::Confirmed { partition_epoch, .. }) => {
                self.epochs.partition = *partition_epoch
            }
            _ => {}
        }
        Happened { number, at_ms, trigger, parent, before, after: self.epochs, offsets, what }
    }

    /// Keeps an entry; the oldest makes room.
    pub(super) fn keep(&mut self, happened: Happened) {
        if self.entries.len() >= KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(happened);
    }

    /// The entries, the oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Happened> {
        self.entries.iter()
    }
}

impl Happened {
    /// Tells it to the log.
    pub(super) fn log(&self, partition: &TopicPartition) {
        let Self { number: event, trigger: cause, parent, before, after, offsets, what, .. } = self;
        macro_rules! tell {
            ($level:ident, $note:literal) => {
                tracing::$level!(
                    %partition, event, %cause, parent,
                    leader_epoch_before = %before.leader, leader_epoch = %after.leader,
                    partition_epoch_before = before.partition, partition_epoch = after.partition,
                    log_start = %offsets.log_start, high_watermark = %offsets.high_watermark, log_end = %offsets.log_end,
                    concat!($note, "{}"), what
                )
            };
        }
        match what {
            What::Truncated(cut) if cut.loses_replicated() => {
                tell!(warn, "records that had been replicated are gone: ");
            }
            // A change of roles concerns many partitions at once; who asks finds it in the history.
            What::Follows(_) | What::Leader(Cause::Leading { .. }) | What::Stopped => tell!(debug, ""),
            // The start has told it.
            What::Lost(_) => tell!(debug, ""),
            What::Truncated(cut) if cut.from == cut.to => tell!(debug, ""),
            _ => tell!(info, ""),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened => f.write_str("the log was opened"),
            Self::Request(Origin { request, controller, controller_epoch, .. }) => {
                write!(f, "{request} of controller {controller} in controller epoch {controller_epoch}")
            }
            Self::FollowerFetch(replica) => write!(f, "replica {replica} fetched"),
            Self::Lag => f.write_str("the leader looked at the lag of its followers"),
            Self::IsrAnswer => f.write_str("the change of the ISR was answered"),
            Self::LeaderAnswer(leader) => write!(f, "leader {leader} answered"),
            Self::DiskFailure => f.write_str("an error of the disk"),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(loss) => loss.fmt(f),
            Self::Leader(cause) => cause.fmt(f),
            Self::Follows(it) => write!(f, "follows {} in epoch {}", it.leader, it.epoch),
            Self::Truncated(Truncated { from, to, high_watermark, cause, .. }) => {
                write!(f, "truncated from {from} to {to}, high watermark {high_watermark}: {cause}")
            }
            Self::Offline => f.write_str("the log directory has failed"),
            Self::Stopped => f.write_str("the replica is stopped"),
            Self::Deleted => f.write_str("the replica is deleted"),
        }
    }
}
