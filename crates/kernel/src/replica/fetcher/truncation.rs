//! Where a follower cuts its log when its leader tells where an epoch ends (KIP-101, KIP-279): one table, used for
//! answers to OffsetsForLeaderEpoch and for the diverging epoch of a fetch alike.

use std::fmt;

use wire::types::{LeaderEpoch, Offset};

use crate::epochs::EpochEnd;

/// Why a log is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TruncationCause {
    /// The log knows no leader epoch, or epochs cannot be asked for: only the high watermark is left to go by.
    NoLocalEpoch,
    /// The leader does not know the epoch of the last record.
    LeaderKnowsNoEpoch {
        /// The epoch that was asked for.
        asked: LeaderEpoch,
    },
    /// The leader told where an epoch ends that it has in common with this log, or the largest below.
    LeaderEpochEnd {
        /// The leader's answer.
        answer: EpochEnd,
    },
    /// The fetch offset was out of range, and the leader's log ends below this one.
    LeaderEndsBelow {
        /// The leader's log end.
        leader_end: Offset,
    },
    /// The leader's log starts at the end of this one or above.
    BelowLeaderStart {
        /// The leader's log start.
        leader_start: Offset,
    },
    /// The log is empty and begins inside the first batch that the leader sends (KAFKA-6975).
    StartsInsideBatch {
        /// The first offset of the batch.
        first: Offset,
    },
    /// The leader's log starts inside the first batch that it sends, and this one ends there.
    EndsInsideBatch {
        /// The first offset of the batch.
        first: Offset,
    },
}

impl fmt::Display for TruncationCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLocalEpoch => write!(f, "no leader epoch is known, so the high watermark decides"),
            Self::LeaderKnowsNoEpoch { asked } => {
                write!(f, "the leader does not know leader epoch {asked}, so the high watermark decides")
            }
            Self::LeaderEpochEnd { answer } => {
                write!(f, "at the leader, leader epoch {} ends at {}", answer.epoch, answer.end)
            }
            Self::LeaderEndsBelow { leader_end } => write!(f, "the leader's log ends at {leader_end}"),
            Self::BelowLeaderStart { leader_start } => write!(f, "the leader's log starts at {leader_start}"),
            Self::StartsInsideBatch { first } => {
                write!(f, "the log has no records and the leader's first batch begins at {first}")
            }
            Self::EndsInsideBatch { first } => {
                write!(
                    f,
                    "the leader's log starts inside a batch from {first} that reaches the end of this log"
                )
            }
        }
    }
}

/// Where to cut, and whether that settles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Truncation {
    /// The new log end.
    pub offset: Offset,
    /// Whether the logs are known to agree below; if not, the leader is asked again with the epoch that is the
    /// latest after the cut.
    pub done: bool,
}

/// Decides by the leader's `answer` about the latest epoch of a log that ends at `log_end`. `fallback` is the offset
/// that holds where the leader knows no epoch: the high watermark of a replica. `end_offset_for` looks an epoch up in
/// the history of the log itself.
pub fn decide(
    answer: EpochEnd,
    fallback: Offset,
    log_end: Offset,
    end_offset_for: impl FnOnce(LeaderEpoch) -> EpochEnd,
) -> Truncation {
    if answer.end == Offset::UNKNOWN {
        return Truncation { offset: fallback, done: true };
    }
    let to_leader = Truncation { offset: answer.end.min(log_end), done: true };
    if answer.epoch == LeaderEpoch::UNKNOWN {
        return to_leader;
    }
    let local = end_offset_for(answer.epoch);
    if local.end == Offset::UNKNOWN {
        to_leader
    } else if local.epoch == answer.epoch {
        Truncation { offset: to_leader.offset.min(local.end), done: true }
    } else {
        // The leader's epoch is not in this log: nothing above the largest one below it can be the leader's.
        Truncation { offset: local.end.min(log_end), done: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epochs::{EpochEntry, EpochHistory};

    const HIGH_WATERMARK: i64 = 4;
    const LOG_END: i64 = 20;

    /// The decision in a log with epoch 1 from 0, epoch 3 from 8, epoch 6 from 12.
    fn decided(answer: (i32, i64)) -> (i64, bool) {
        let entries = [(1, 0), (3, 8), (6, 12)]
            .map(|(epoch, start)| EpochEntry { epoch: LeaderEpoch(epoch), start: Offset(start) });
        decided_in(&EpochHistory::from_entries(entries), answer)
    }

    fn decided_in(history: &EpochHistory, answer: (i32, i64)) -> (i64, bool) {
        let answer = EpochEnd { epoch: LeaderEpoch(answer.0), end: Offset(answer.1) };
        let log_end = Offset(LOG_END);
        let lookup = |epoch| history.end_offset_for(epoch, log_end);
        let decision = decide(answer, Offset(HIGH_WATERMARK), log_end, lookup);
        (decision.offset.0, decision.done)
    }

    #[test]
    fn an_undefined_end_leaves_only_the_high_watermark() {
        assert_eq!(decided((-1, -1)), (HIGH_WATERMARK, true));
        assert_eq!(decided((3, -1)), (HIGH_WATERMARK, true));
    }

    #[test]
    fn an_end_without_an_epoch_is_taken_as_it_is_up_to_the_log_end() {
        assert_eq!(decided((-1, 9)), (9, true));
        assert_eq!(decided((-1, 30)), (LOG_END, true));
    }

    #[test]
    fn an_epoch_above_all_that_the_log_knows_is_taken_by_its_end() {
        assert_eq!(decided((7, 15)), (15, true));
        assert_eq!(decided((7, 30)), (LOG_END, true));
        assert_eq!(decided_in(&EpochHistory::new(), (7, 15)), (15, true));
    }

    #[test]
    fn an_epoch_in_common_ends_where_it_ends_first() {
        assert_eq!(decided((3, 10)), (10, true), "the leader's end is the lower one");
        assert_eq!(decided((3, 15)), (12, true), "the end in this log is the lower one");
        assert_eq!(decided((6, 30)), (LOG_END, true), "the latest epoch ends with the log");
        assert_eq!(decided((6, 13)), (13, true));
    }

    #[test]
    fn an_epoch_that_the_log_lacks_cuts_to_the_largest_below_and_asks_again() {
        assert_eq!(decided((5, 10)), (12, false));
        assert_eq!(decided((2, 30)), (8, false));
    }

    #[test]
    fn an_epoch_below_all_that_the_log_knows_leaves_nothing_above_its_end() {
        assert_eq!(decided((0, 0)), (0, true));
        let late = EpochHistory::from_entries([EpochEntry { epoch: LeaderEpoch(3), start: Offset(8) }]);
        assert_eq!(decided_in(&late, (2, 10)), (8, true));
    }
}
