//! Why operations of a log fail, one enum per operation. The protocol's error is chosen by the caller.

use kernel::producer::Rejection;
use wire::batch::BatchError;
use wire::batch::validate::ValidationError;
use wire::types::{LeaderEpoch, Offset, TopicId};

use crate::dir_health::StorageError;

/// Why records were not appended. Nothing of them is in the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The batch breaks a rule of the format or of the topic.
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    /// The records are larger than a segment may be (RECORD_LIST_TOO_LARGE).
    #[error("{size} bytes of records do not fit into a segment of {limit} bytes")]
    RecordListTooLarge {
        /// The size of the records in bytes.
        size: usize,
        /// `segment.bytes`.
        limit: u32,
    },
    /// The producer's epoch, sequence or transaction does not allow the batch.
    #[error("producer {producer_id}: {rejection:?}")]
    Producer {
        /// The producer.
        producer_id: i64,
        /// The rule that the batch breaks.
        rejection: Rejection,
    },
    /// The control record of a coordinator cannot be read.
    #[error("control record cannot be read: {0}")]
    Control(BatchError),
    /// Offsets of a leader's batches do not rise, so they are not appended to a follower.
    #[error("offsets of the records are out of order")]
    OffsetsOutOfOrder,
    /// A leader's records begin below the log end.
    #[error("records begin at {first}, below the log end {log_end}")]
    UnexpectedOffset {
        /// The first offset of the records.
        first: Offset,
        /// The last offset of the records.
        last: Offset,
        /// The log end.
        log_end: Offset,
    },
    /// The next offset would be beyond the largest number.
    #[error("the log has no offsets left")]
    NoOffsetsLeft,
    /// The log was closed or its replica deleted.
    #[error("the log is closed")]
    Closed,
    /// The log directory is offline (KAFKA_STORAGE_ERROR).
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why nothing was read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The offset is below the log start or above the log end (OFFSET_OUT_OF_RANGE).
    #[error("offset {offset} is not in {log_start} to {log_end}")]
    OffsetOutOfRange {
        /// The offset that was asked for.
        offset: Offset,
        /// The first offset of the log.
        log_start: Offset,
        /// The log end.
        log_end: Offset,
    },
    /// A batch on disk cannot be read.
    #[error("batch cannot be read: {0}")]
    Corrupt(#[from] BatchError),
    /// The log directory is offline (KAFKA_STORAGE_ERROR).
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a log was not changed: truncated, flushed, closed, renamed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// An offset to truncate to, or to start at, is negative.
    #[error("offset {0} is negative")]
    NegativeOffset(Offset),
    /// A new log start would lie above the high watermark (OFFSET_OUT_OF_RANGE).
    #[error("log start {given} would be above the high watermark {high_watermark}")]
    AboveHighWatermark {
        /// The log start that was asked for.
        given: Offset,
        /// The high watermark.
        high_watermark: Offset,
    },
    /// A leader epoch is negative.
    #[error("leader epoch {given} is negative")]
    BadEpoch {
        /// The epoch that was given.
        given: LeaderEpoch,
    },
    /// The log belongs to a topic of another id (INCONSISTENT_TOPIC_ID).
    #[error("the log belongs to the topic with id {known}, not to {given}")]
    InconsistentTopicId {
        /// The id that is known.
        known: TopicId,
        /// The id that was given.
        given: TopicId,
    },
    /// The log was closed or its replica deleted.
    #[error("the log is closed")]
    Closed,
    /// The log directory is offline (KAFKA_STORAGE_ERROR).
    #[error(transparent)]
    Storage(#[from] StorageError),
}
