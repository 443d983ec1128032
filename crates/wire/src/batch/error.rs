//! Why bytes are not a readable batch or record.
//!
//! The answer to a client follows from two questions: is the batch as a whole damaged
//! ([`BatchError::is_corrupt`]), or is it whole but wrong inside.

use super::compress::CompressError;

/// Why bytes cannot be read as batches or records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Fewer bytes are there than the fixed fields need.
    #[error("{available} bytes are too few for a batch header")]
    Truncated {
        /// The bytes that were given.
        available: usize,
    },
    /// The declared size cannot hold the fixed fields.
    #[error("declared batch length {length} is below the least possible one")]
    LengthTooSmall {
        /// The length field: the bytes that follow it.
        length: i32,
    },
    /// The format is not one that Kafka ever had.
    #[error("unknown record format (magic) {0}")]
    UnknownMagic(i8),
    /// The format is 0 or 1: a message set, not a batch.
    #[error("message set of the old record format {0}")]
    OldFormat(i8),
    /// The checksum does not match.
    #[error("checksum mismatch: stored {stored:#010x}, computed {computed:#010x}")]
    CrcMismatch {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The codec's number is 5, 6 or 7.
    #[error("unknown compression codec {0}")]
    UnknownCompression(u8),
    /// The number of records is negative.
    #[error("negative record count {0}")]
    NegativeCount(i32),
    /// The records end before the declared number of them was read, or inside one.
    #[error("the records end before the declared count is reached")]
    RecordsEndEarly,
    /// Bytes follow the last record.
    #[error("bytes are left after the last record")]
    TrailingBytes,
    /// A record is longer than what is left of its batch, or than its own fields allow.
    #[error("record length {0} does not fit")]
    RecordLength(i32),
    /// The fields of a record do not add up to its declared length.
    #[error("the fields of a record do not add up to its length")]
    RecordFields,
    /// A variable-length integer has too many bytes.
    #[error("variable-length integer is too long")]
    Varint,
    /// The number of headers is negative or larger than the record.
    #[error("header count {0} is impossible")]
    HeaderCount(i32),
    /// A header has no key.
    #[error("a record header has no key")]
    HeaderKey,
    /// The compressed stream cannot be read.
    #[error("compressed records cannot be read: {0}")]
    Compressed(#[from] CompressError),
    /// The records expand beyond the reader's limit.
    #[error("records expand beyond {limit} bytes")]
    ExpandsTooFar {
        /// The limit in bytes.
        limit: usize,
    },
    /// A control record is not a marker of a transaction.
    #[error("malformed control record")]
    Control,
}

impl BatchError {
    /// Whether the batch as a whole is damaged (CORRUPT_MESSAGE), rather than whole but wrong inside
    /// (INVALID_RECORD).
    pub fn is_corrupt(&self) -> bool {
        matches!(
            self,
            Self::Truncated { .. }
                | Self::LengthTooSmall { .. }
                | Self::UnknownMagic(_)
                | Self::CrcMismatch { .. }
        )
    }
}
