//! The leader's side of truncation by a fetch (KIP-595): a follower tells the epoch of its last record, and the
//! leader answers records only if its own log agrees up to the fetch offset.

use wire::types::{LeaderEpoch, Offset};

use crate::epochs::EpochEnd;
use crate::planted::{Fault, Faults};

/// What a leader answers to a fetch that tells the epoch of the fetcher's last record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FetchVerdict {
    /// The logs agree up to the fetch offset, which may still lie beyond the log end.
    Read,
    /// The logs part here: the largest epoch that the leader knows at or below the one told, and its end.
    Diverging(EpochEnd),
    /// OFFSET_OUT_OF_RANGE: the leader does not know the epoch, or no longer has the offset.
    OutOfRange,
}

/// What a leader answers to the question where an epoch ends, when its log ends it at `end`.
pub fn told_end(end: EpochEnd, faults: Faults) -> EpochEnd {
    if faults.has(Fault::EpochEndWithoutEpoch) {
        return EpochEnd { epoch: LeaderEpoch::UNKNOWN, ..end };
    }
    end
}

/// Judges a fetch from `fetch_offset` on whose last record is of `last_fetched_epoch`. `end` is where the leader's
/// log ends that epoch, `log_start` is the leader's. An offset below the log start is out of range before anything
/// else, so that the fetcher starts anew there (KAFKA-12996).
pub fn judge_fetch(
    last_fetched_epoch: LeaderEpoch,
    fetch_offset: Offset,
    end: EpochEnd,
    log_start: Offset,
    faults: Faults,
) -> FetchVerdict {
    let undefined = end.epoch == LeaderEpoch::UNKNOWN || end.end == Offset::UNKNOWN;
    let end = if faults.has(Fault::EpochEndWithoutEpoch) {
        // An answer that names no epoch tells of no divergence.
        EpochEnd { epoch: last_fetched_epoch, ..end }
    } else {
        end
    };
    if undefined || fetch_offset < log_start {
        FetchVerdict::OutOfRange
    } else if end.epoch < last_fetched_epoch || end.end < fetch_offset {
        FetchVerdict::Diverging(end)
    } else {
        FetchVerdict::Read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG_START: Offset = Offset(5);

    fn judge(last_fetched_epoch: i32, fetch_offset: i64, end: (i32, i64)) -> FetchVerdict {
        let end = EpochEnd { epoch: LeaderEpoch(end.0), end: Offset(end.1) };
        let faults = Faults::default();
        judge_fetch(LeaderEpoch(last_fetched_epoch), Offset(fetch_offset), end, LOG_START, faults)
    }

    fn diverging(epoch: i32, end: i64) -> FetchVerdict {
        FetchVerdict::Diverging(EpochEnd { epoch: LeaderEpoch(epoch), end: Offset(end) })
    }

    #[test]
    fn an_offset_up_to_the_end_of_its_epoch_is_read() {
        assert_eq!(judge(3, 9, (3, 10)), FetchVerdict::Read);
        assert_eq!(judge(3, 10, (3, 10)), FetchVerdict::Read);
        assert_eq!(judge(3, LOG_START.0, (3, 10)), FetchVerdict::Read);
    }

    #[test]
    fn an_offset_beyond_the_end_of_its_epoch_diverges() {
        assert_eq!(judge(3, 11, (3, 10)), diverging(3, 10));
    }

    #[test]
    fn an_epoch_that_the_leader_never_had_diverges_whatever_the_offset() {
        assert_eq!(judge(3, 7, (2, 10)), diverging(2, 10));
    }

    #[test]
    fn an_epoch_beyond_all_that_the_leader_knows_is_out_of_range() {
        assert_eq!(judge(3, 7, (-1, -1)), FetchVerdict::OutOfRange);
    }

    /// KAFKA-12996.
    #[test]
    fn an_offset_below_the_log_start_is_out_of_range_even_if_its_epoch_diverges() {
        assert_eq!(judge(3, 4, (2, 10)), FetchVerdict::OutOfRange);
    }
}
