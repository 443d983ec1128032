//! Why leader, ISR and epoch are as they are, in words for the log and for those who ask.

use std::fmt;

use wire::types::{BrokerId, LeaderEpoch, Millis, Offset};

/// A follower that has fallen behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lagging {
    /// The follower.
    pub replica: BrokerId,
    /// The end of its log; [`Offset::UNKNOWN`] if it has not fetched.
    pub log_end: Offset,
    /// How long ago it had everything; `None`: never in this leadership.
    pub behind_for: Option<Millis>,
}

/// One thing that happened, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// This broker leads by the controller's decision.
    Leading {
        /// The epoch.
        leader_epoch: LeaderEpoch,
        /// Where it begins.
        epoch_start: Offset,
        /// The in-sync replicas.
        isr: Vec<BrokerId>,
        /// Whether this broker led the epoch just before.
        continued: bool,
    },
    /// A follower has caught up, and the ISR is to take it in.
    Expanding {
        /// The follower.
        replica: BrokerId,
        /// The end of its log.
        log_end: Offset,
    },
    /// Followers lag behind, and the ISR is to lose them.
    Shrinking {
        /// Who, and how far.
        lagging: Vec<Lagging>,
        /// The end of the leader's log.
        log_end: Offset,
        /// The high watermark.
        high_watermark: Offset,
    },
    /// A change of the ISR is confirmed.
    Confirmed {
        /// The in-sync replicas now.
        isr: Vec<BrokerId>,
        /// The partition epoch now.
        partition_epoch: i32,
        /// Whether a replica was to join; else some were to leave.
        expanded: bool,
    },
    /// A change of the ISR was refused; the ISR is what it was.
    NotAttempted {
        /// What was asked for.
        proposed: Vec<BrokerId>,
    },
    /// A change of the ISR came too late; the controller will say what is true.
    Superseded {
        /// What was asked for.
        proposed: Vec<BrokerId>,
    },
}

struct Ids<'a>(&'a [BrokerId]);

impl fmt::Display for Ids<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0).finish()
    }
}

impl fmt::Display for Lagging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.log_end, self.behind_for) {
            (Offset::UNKNOWN, _) => write!(f, "{} has not fetched in this epoch", self.replica),
            (end, None) => write!(f, "{} is at {end} and has never caught up", self.replica),
            (end, Some(since)) => write!(f, "{} is at {end} and had everything {since} ms ago", self.replica),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leading { leader_epoch, epoch_start, isr, continued } => {
                let again = if *continued { " again" } else { "" };
                write!(f, "leads{again} in epoch {leader_epoch} from offset {epoch_start}, ISR {}", Ids(isr))
            }
            Self::Expanding { replica, log_end } => {
                write!(f, "replica {replica} has caught up at {log_end} and is to join the ISR")
            }
            Self::Shrinking { lagging, log_end, high_watermark } => {
                f.write_str("the ISR is to lose replicas:")?;
                for replica in lagging {
                    write!(f, " {replica};")?;
                }
                write!(f, " high watermark {high_watermark}, log end {log_end}")
            }
            Self::Confirmed { isr, partition_epoch, .. } => {
                write!(f, "ISR {} in partition epoch {partition_epoch}", Ids(isr))
            }
            Self::NotAttempted { proposed } => write!(f, "ISR {} was refused", Ids(proposed)),
            Self::Superseded { proposed } => {
                write!(f, "ISR {} came too late; the next LeaderAndIsr tells the true one", Ids(proposed))
            }
        }
    }
}
