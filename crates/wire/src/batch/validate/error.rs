//! Why a batch is not appended, and what the client is told of it (KIP-467).

use std::fmt;

use super::super::BatchError;
use crate::types::Millis;

/// The kinds of refusal, each with a protocol error of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// CORRUPT_MESSAGE: the bytes were damaged on the way; the client may send them again.
    CorruptMessage,
    /// INVALID_RECORD: the batch will never do.
    InvalidRecord,
    /// INVALID_TIMESTAMP: a timestamp is out of range, or of a type that only a broker sets.
    InvalidTimestamp,
    /// MESSAGE_TOO_LARGE: the client may split the batch.
    MessageTooLarge,
    /// UNSUPPORTED_COMPRESSION_TYPE: the codec is not for this request, broker or format.
    UnsupportedCompressionType,
    /// UNSUPPORTED_FOR_MESSAGE_FORMAT: the record format is not one that is appended.
    UnsupportedForMessageFormat,
}

/// What is wrong with one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordFault {
    /// The topic is compacted, and the record has no key.
    KeyMissing,
    /// The timestamp is too far from the broker's clock.
    TimestampOutOfRange {
        /// The record's timestamp.
        timestamp: Millis,
        /// The least one allowed.
        least: Millis,
        /// The greatest one allowed.
        greatest: Millis,
    },
    /// The batch claims LogAppendTime, which only a broker may.
    LogAppendTimeByProducer,
}

impl RecordFault {
    /// Whether the fault is of a timestamp.
    pub fn is_timestamp(self) -> bool {
        !matches!(self, Self::KeyMissing)
    }
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyMissing => f.write_str("a record of a compacted topic needs a key"),
            Self::TimestampOutOfRange { timestamp, least, greatest } => {
                write!(f, "timestamp {timestamp} is out of range, allowed is {least} to {greatest}")
            }
            Self::LogAppendTimeByProducer => {
                f.write_str("timestamp type LogAppendTime is for the broker to set")
            }
        }
    }
}

/// One refused record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordError {
    /// The record's place in its batch, from 0.
    pub batch_index: i32,
    /// What is wrong with it; its text is the message for the client.
    pub fault: RecordFault,
}

/// Why a batch is not appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidationError {
    /// The bytes cannot be read.
    #[error(transparent)]
    Unreadable(#[from] BatchError),
    /// A request of this version carries exactly one batch for a partition.
    #[error("a produce request of this version must hold exactly one record batch for a partition")]
    NotOneBatch,
    /// A request of this version carries batches of format 2 only.
    #[error("record format (magic) {0} is not allowed in a produce request of this version")]
    FormatNotInRequest(i8),
    /// zstd is not for requests of this version (KIP-110).
    #[error("a produce request of this version must not use zstd")]
    ZstdNotInRequest,
    /// zstd is not for this `inter.broker.protocol.version`.
    #[error("zstd needs inter.broker.protocol.version 2.1 or later")]
    ZstdNotInCluster,
    /// A producer's batch begins at offset 0.
    #[error("the base offset of a produced batch should be 0, but is {0}")]
    BaseOffset(i64),
    /// The batch is larger than `max.message.bytes`.
    #[error("the batch of {size} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// The whole size in bytes.
        size: usize,
        /// `max.message.bytes`.
        limit: usize,
    },
    /// A partition takes one batch at a time.
    #[error("{0} batches for one partition; only one is allowed")]
    SeveralBatches(usize),
    /// The last offset is before the first.
    #[error("the batch covers no offset: its last offset delta is {0}")]
    OffsetRange(i32),
    /// A producer's batch holds records.
    #[error("the batch declares {0} records")]
    Count(i32),
    /// The records of a producer's batch have consecutive offsets.
    #[error("the batch declares {count} records, but its last offset delta is {last_offset_delta}")]
    CountMismatch {
        /// The declared number of records.
        count: i32,
        /// The declared last offset delta.
        last_offset_delta: i32,
    },
    /// Control records are for brokers to write.
    #[error("clients must not write control records")]
    ControlByClient,
    /// A batch of an idempotent producer has a sequence number.
    #[error("sequence number {sequence} of producer id {producer_id} is negative")]
    Sequence {
        /// The producer id.
        producer_id: i64,
        /// The base sequence.
        sequence: i32,
    },
    /// Some records are refused, and the whole batch with them.
    #[error("{0}")]
    Records(RecordErrors),
}

/// The refused records of one batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordErrors {
    listed: Vec<RecordError>,
    count: usize,
    any_timestamp: bool,
}

impl RecordErrors {
    /// The most records that are listed one by one.
    pub const MAX_LISTED: usize = 10_000;

    /// The refused records in order, at most [`MAX_LISTED`](Self::MAX_LISTED).
    pub fn listed(&self) -> &[RecordError] {
        &self.listed
    }

    /// How many records are refused.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether a timestamp is among the faults.
    pub fn any_timestamp(&self) -> bool {
        self.any_timestamp
    }

    pub(super) fn push(&mut self, error: RecordError) {
        self.count += 1;
        self.any_timestamp |= error.fault.is_timestamp();
        if self.listed.len() < Self::MAX_LISTED {
            self.listed.push(error);
        }
    }
}

impl fmt::Display for RecordErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of the records are refused, and the batch with them", self.count)?;
        for (at, error) in self.listed.iter().take(3).enumerate() {
            let lead = if at == 0 { ": " } else { "; " };
            write!(f, "{lead}record {}: {}", error.batch_index, error.fault)?;
        }
        Ok(())
    }
}

impl ValidationError {
    /// The kind of refusal.
    pub fn rejection(&self) -> Rejection {
        match self {
            Self::Unreadable(BatchError::OldFormat(_)) => Rejection::UnsupportedForMessageFormat,
            Self::Unreadable(BatchError::UnknownCompression(_))
            | Self::ZstdNotInRequest
            | Self::ZstdNotInCluster => Rejection::UnsupportedCompressionType,
            Self::Unreadable(BatchError::ExpandsTooFar { .. }) | Self::TooLarge { .. } => {
                Rejection::MessageTooLarge
            }
            Self::Unreadable(error) if error.is_corrupt() => Rejection::CorruptMessage,
            Self::Records(errors) if errors.any_timestamp() => Rejection::InvalidTimestamp,
            _ => Rejection::InvalidRecord,
        }
    }

    /// The refused records, in order; empty if the batch is refused for another reason.
    pub fn record_errors(&self) -> &[RecordError] {
        match self {
            Self::Records(errors) => errors.listed(),
            _ => &[],
        }
    }
}
