//! What replication decides by: the offsets and leader epochs of the local logs. The broker's logs implement it, and
//! so do the logs of tests and simulations.

use wire::types::{LeaderEpoch, Offset, TopicPartition};

use crate::epochs::EpochEnd;

/// The offsets of one log at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogOffsets {
    /// Where the first segment begins: below the log start there may be records that were deleted.
    pub first_segment: Offset,
    /// The first offset that may be read (inclusive).
    pub log_start: Offset,
    /// The end of what is known to be replicated (exclusive).
    pub high_watermark: Offset,
    /// The next offset to be written.
    pub log_end: Offset,
}

/// The logs of this broker.
pub trait LogView {
    /// The offsets of a log; `None` if it cannot be used, as after a failure of its directory.
    fn offsets(&self, partition: &TopicPartition) -> Option<LogOffsets>;

    /// The latest leader epoch of a log; `None` if it knows none.
    fn latest_epoch(&self, partition: &TopicPartition) -> Option<LeaderEpoch>;

    /// Where `epoch` ends in a log, as [`EpochHistory::end_offset_for`](crate::epochs::EpochHistory::end_offset_for)
    /// tells it.
    fn end_offset_for(&self, partition: &TopicPartition, epoch: LeaderEpoch) -> EpochEnd;
}
