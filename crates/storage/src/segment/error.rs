//! Why a segment cannot do what it was asked.

use std::io;

use wire::batch::BatchError;
use wire::types::Offset;

use super::scan::ScanError;
use crate::index_file::IndexError;
use crate::txn_index::TxnIndexError;

/// Why a segment cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The disk failed.
    #[error("segment {base}: {error}")]
    Io {
        /// The base offset.
        base: Offset,
        /// The error of the disk.
        error: io::Error,
    },
    /// An earlier sync failed, so what was written before it may be lost.
    #[error("segment {base}: an earlier sync failed")]
    SyncFailed {
        /// The base offset.
        base: Offset,
    },
    /// The log file is, or would be, larger than 2^31-1 bytes.
    #[error("segment {base}: {size} bytes are more than a segment may have")]
    TooLarge {
        /// The base offset.
        base: Offset,
        /// The size in bytes.
        size: u64,
    },
    /// An offset is below the base offset or more than 2^31-1 above it.
    #[error("segment {base}: offset {offset} is out of its range")]
    OffsetOverflow {
        /// The base offset.
        base: Offset,
        /// The offset.
        offset: Offset,
    },
    /// The log cannot be read.
    #[error("segment {base}: {error}")]
    Scan {
        /// The base offset.
        base: Offset,
        /// What is wrong.
        error: ScanError,
    },
    /// A batch cannot be read.
    #[error("segment {base}: the batch at offset {offset} cannot be read: {error}")]
    Batch {
        /// The base offset.
        base: Offset,
        /// The base offset of the batch.
        offset: Offset,
        /// What is wrong.
        error: BatchError,
    },
    /// An index does not take an entry or cannot be used.
    #[error("segment {base}: {error}")]
    Index {
        /// The base offset.
        base: Offset,
        /// What is wrong.
        error: IndexError,
    },
    /// The index of aborted transactions cannot be used.
    #[error("segment {base}: {error}")]
    TxnIndex {
        /// The base offset.
        base: Offset,
        /// What is wrong.
        error: TxnIndexError,
    },
}

impl SegmentError {
    /// Whether the disk is to blame, so that its log directory must go offline.
    pub fn is_io(&self) -> bool {
        match self {
            Self::Io { .. } | Self::SyncFailed { .. } => true,
            Self::Scan { error, .. } => matches!(error, ScanError::Io(_)),
            Self::Index { error, .. } => matches!(error, IndexError::Io { .. }),
            Self::TxnIndex { error, .. } => matches!(error, TxnIndexError::Io { .. }),
            Self::TooLarge { .. } | Self::OffsetOverflow { .. } | Self::Batch { .. } => false,
        }
    }
}
