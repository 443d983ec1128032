//! The files of a segment as files: renamed together, removed together.

use wire::types::Millis;

use super::{Segment, SegmentError};
use crate::names::{SegmentFile, SegmentFileName, Transient};
use crate::offset_index::OFFSET_INDEX_ENTRY_BYTES;
use crate::time_index::TIME_INDEX_ENTRY_BYTES;
use crate::txn_index::AbortedTxn;

impl Segment {
    /// Gives all files of the segment another suffix, or none. The log file goes last when a suffix is taken
    /// away and first when one is given, so that no index ever stands for a log that is not there.
    /// Durable only when the directory is synced.
    pub fn rename_files(&self, transient: Option<Transient>) -> Result<(), SegmentError> {
        let mut files = [
            (SegmentFile::Log, self.log()),
            (SegmentFile::OffsetIndex, self.offset_index.file()),
            (SegmentFile::TimeIndex, self.time_index.file()),
            (SegmentFile::TxnIndex, self.txn_index.file()),
        ];
        if transient.is_none() {
            files.reverse();
        }
        for (kind, file) in files {
            let name = SegmentFileName { offset: self.base(), file: kind, transient };
            file.rename_if_exists(name.to_string()).map_err(|error| self.io(error))?;
        }
        Ok(())
    }

    /// Removes all files of the segment; those that are gone already are passed over (KAFKA-15391). Ranges in
    /// flight stay readable.
    pub fn delete_files(&self) -> Result<(), SegmentError> {
        let files = [self.log(), self.offset_index.file(), self.time_index.file(), self.txn_index.file()];
        for file in files {
            file.remove().map_err(|error| self.io(error))?;
        }
        Ok(())
    }

    /// One of the [`INDEXES`] is known not to exist, so that nothing looks for it.
    ///
    /// [`INDEXES`]: super::INDEXES
    pub(crate) fn note_absent(&self, kind: SegmentFile) {
        match kind {
            SegmentFile::OffsetIndex => self.offset_index.note_absent(),
            SegmentFile::TimeIndex => self.time_index.note_absent(),
            SegmentFile::TxnIndex => self.txn_index.note_absent(),
            SegmentFile::Log | SegmentFile::Snapshot => {}
        }
    }

    /// Whether the file of the offset index exists; a segment without one must be recovered when it is loaded.
    pub fn has_offset_index(&self) -> Result<bool, SegmentError> {
        self.offset_index.file().exists().map_err(|error| self.io(error))
    }

    /// The bytes of the offset index and of the time index.
    pub(crate) fn index_sizes(&self) -> Result<(u64, u64), SegmentError> {
        self.check_indexes()?;
        let offsets = self.offset_index.count().map_err(|error| self.index(error))?;
        let times = self.time_index.count().map_err(|error| self.index(error))?;
        Ok((
            (offsets as u64).saturating_mul(OFFSET_INDEX_ENTRY_BYTES as u64),
            (times as u64).saturating_mul(TIME_INDEX_ENTRY_BYTES as u64),
        ))
    }

    /// When the log file was last changed.
    pub(crate) fn modified(&self) -> Result<Millis, SegmentError> {
        self.log().metadata().map(|found| Millis(found.modified_ms)).map_err(|error| self.io(error))
    }

    /// Notes an aborted transaction whose marker is in this segment.
    pub fn append_aborted(&self, txn: &AbortedTxn) -> Result<(), SegmentError> {
        self.txn_index.append(txn).map_err(|error| self.txn(error))
    }

    /// Whether every entry of the transaction index is readable and lies in the segment; if not, the segment
    /// must be recovered when it is loaded.
    pub fn check_txn_index(&self) -> Result<(), SegmentError> {
        self.txn_index.check().map_err(|error| self.txn(error))
    }
}
