//! What this broker is to a partition, and the one lock that this hangs on.
//!
//! Whoever acts in a role holds the lock for reading while he does, so that a change of the role, which takes it for
//! writing, comes before or after an append and never within it: no record of an old epoch slips into the log behind
//! those of a new one. Inside a leadership the leader machine has a lock of its own, held for the moment of a step.
//! Nothing is sent, woken or waited for under either.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel::replica::leader::{Cause, Command, Event, IsrChange, Leader, Leadership, Start};
use storage::partition_log::PartitionLog;
use wire::error_code::ErrorCode;
use wire::types::{BrokerId, LeaderEpoch, Now, Offset};

/// What this broker is to a partition, for those who look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It leads in this epoch.
    Leader(LeaderEpoch),
    /// It follows; without a leader and an epoch while none was told since the start.
    Follower(Following),
    /// Its log directory has failed.
    Offline,
    /// The replica was removed from this broker.
    Deleted,
}

/// Whom a follower follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Following {
    /// The leader; [`BrokerId::NONE`] before the first LeaderAndIsr.
    pub(crate) leader: BrokerId,
    /// The leader's epoch; [`LeaderEpoch::UNKNOWN`] before the first LeaderAndIsr.
    pub(crate) epoch: LeaderEpoch,
    /// The version of the partition's state; -1 before the first LeaderAndIsr.
    pub(crate) partition_epoch: i32,
}

impl Following {
    /// Nobody has said yet who leads.
    pub(super) const NOBODY: Self =
        Self { leader: BrokerId::NONE, epoch: LeaderEpoch::UNKNOWN, partition_epoch: -1 };
}

/// The role and what belongs to it.
pub(super) enum State {
    Leader(Box<Leading>),
    Follower(Following),
    Offline,
    Deleted,
}

impl State {
    pub(super) fn role(&self) -> Role {
        match self {
            Self::Leader(leading) => Role::Leader(leading.epoch),
            Self::Follower(following) => Role::Follower(*following),
            Self::Offline => Role::Offline,
            Self::Deleted => Role::Deleted,
        }
    }

    /// The leadership.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn leading(&self) -> Result<&Leading, ErrorCode> {
        match self {
            Self::Leader(leading) => Ok(leading),
            Self::Follower(_) | Self::Deleted => Err(ErrorCode::NotLeaderOrFollower),
            Self::Offline => Err(ErrorCode::KafkaStorageError),
        }
    }
}

/// A leadership. It can only be had with the partition's lock held, so it lasts as long as one looks at it.
pub(crate) struct Leading {
    epoch: LeaderEpoch,
    epoch_start: Offset,
    // No other replica: every append is replicated, and the machine has nothing to decide.
    alone: bool,
    machine: Mutex<Leader>,
}

/// How many replicas a partition has, and whether they suffice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplicaCounts {
    pub(crate) replicas: usize,
    pub(crate) in_sync: usize,
    pub(crate) under_replicated: bool,
    pub(crate) under_min_isr: bool,
    pub(crate) at_min_isr: bool,
    pub(crate) reassigning: bool,
}

/// What a step of the leader machine leaves to be done when no lock is held.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// The high watermark has moved here.
    pub(super) high_watermark: Option<Offset>,
    /// A change of the ISR is to be asked for.
    pub(super) submit: Option<IsrChange>,
    /// What is to be told.
    pub(super) notes: Vec<Cause>,
}

impl Leading {
    /// Begins a leadership on `log`, whose epoch is recorded already.
    pub(super) fn begin(
        start: Start,
        previous: Option<&Self>,
        log: &PartitionLog,
        now: Now,
    ) -> (Self, Effects) {
        let mut commands = Vec::new();
        let (epoch, epoch_start) = (start.leadership.leader_epoch, start.log_end);
        let alone = start.leadership.replicas.as_slice() == [start.broker];
        let machine = {
            let previous = previous.map(Self::machine);
            Leader::begin(start, previous.as_deref(), now, &mut commands)
        };
        (Self { epoch, epoch_start, alone, machine: Mutex::new(machine) }, obey(commands, log))
    }

    /// The epoch.
    pub(crate) fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// The epoch since which this broker has led without a break.
    pub(crate) fn led_since(&self) -> LeaderEpoch {
        self.machine().led_since()
    }

    /// Where the epoch began: the log end when this broker became leader.
    pub(crate) fn epoch_start(&self) -> Offset {
        self.epoch_start
    }

    /// Whether an append that wants all in-sync replicas must be refused.
    pub(crate) fn is_under_min_isr(&self) -> bool {
        !self.alone && self.machine().is_under_min_isr()
    }

    /// Records were appended to `log`.
    pub(crate) fn appended(&self, log: &PartitionLog, now: Now) -> Effects {
        let log_end = log.positions().log_end;
        if self.alone {
            let moved = log.advance_high_watermark(log_end);
            return Effects { high_watermark: moved.then_some(log_end), ..Effects::default() };
        }
        self.step(log, now, Event::Appended { log_end })
    }

    /// Hands an event to the machine, and moves the high watermark of `log` as it says.
    pub(super) fn step(&self, log: &PartitionLog, now: Now, event: Event) -> Effects {
        let mut commands = Vec::new();
        self.machine().step(now, event, &mut commands);
        obey(commands, log)
    }

    /// Whether there are followers.
    pub(super) fn has_followers(&self) -> bool {
        !self.alone
    }

    /// Below which offset no live replica has records any more.
    pub(crate) fn low_watermark(&self, log: &PartitionLog) -> Offset {
        let log_start = log.positions().log_start;
        if self.alone { log_start } else { self.machine().low_watermark(log_start) }
    }

    /// What has become of records that were appended in `epoch` and end below `end`: `None` while they are not
    /// replicated.
    pub(super) fn replicated(
        &self,
        log: &PartitionLog,
        epoch: LeaderEpoch,
        end: Offset,
    ) -> Option<Result<(), ErrorCode>> {
        let leader = self.machine();
        if epoch < leader.led_since() {
            // Somebody else has led in between: other records may stand at these offsets.
            return Some(Err(ErrorCode::NotLeaderOrFollower));
        }
        if log.positions().high_watermark < end {
            return None;
        }
        Some(if leader.lacks_replicas_after_append() {
            Err(ErrorCode::NotEnoughReplicasAfterAppend)
        } else {
            Ok(())
        })
    }

    /// The decision it leads by, with the ISR as it is confirmed now.
    pub(super) fn leadership(&self) -> Leadership {
        self.machine().leadership().clone()
    }

    pub(super) fn replica_counts(&self) -> ReplicaCounts {
        let leader = self.machine();
        ReplicaCounts {
            replicas: leader.remotes().len().saturating_add(1),
            in_sync: leader.isr().len(),
            under_replicated: leader.is_under_replicated(),
            under_min_isr: leader.is_under_min_isr(),
            at_min_isr: leader.is_at_min_isr(),
            reassigning: leader.is_reassigning(),
        }
    }

    /// Looks at the machine.
    pub(super) fn machine(&self) -> MutexGuard<'_, Leader> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn obey(commands: Vec<Command>, log: &PartitionLog) -> Effects {
    let mut effects = Effects::default();
    for command in commands {
        match command {
            Command::AdvanceHighWatermark(offset) => {
                log.advance_high_watermark(offset);
                effects.high_watermark = Some(offset);
            }
            Command::SubmitIsr(change) => effects.submit = Some(change),
            Command::Note(cause) => effects.notes.push(cause),
        }
    }
    effects
}
