//! Making a segment durable, and ending its time as the active one.

use std::sync::atomic::Ordering;

use super::verify::unless_full;
use super::{Segment, SegmentError};
use crate::sync::lock;
use crate::time_index::LastSlot;

impl Segment {
    /// Makes everything written so far durable: the log, then its indexes, then the names of new files.
    pub fn flush(&self) -> Result<(), SegmentError> {
        // One at a time: a second caller must not return before the sync that covers its bytes has ended.
        let _one = lock(&self.flushing);
        if self.sync_failed.load(Ordering::Acquire) {
            return Err(SegmentError::SyncFailed { base: self.base });
        }
        let result = self.flush_files();
        if result.is_err() {
            self.sync_failed.store(true, Ordering::Release);
        }
        result
    }

    fn flush_files(&self) -> Result<(), SegmentError> {
        if self.dirty.swap(false, Ordering::AcqRel) {
            let synced = self.log.handle().and_then(|file| file.sync_data());
            synced.map_err(|error| self.io(error))?;
        }
        self.offset_index.flush().map_err(|error| self.index(error))?;
        self.time_index.flush().map_err(|error| self.index(error))?;
        let new_txn_file = self.txn_index.flush().map_err(|error| self.txn(error))?;
        if self.names_dirty.swap(false, Ordering::AcqRel) || new_txn_file {
            self.sync_dir()?;
        }
        Ok(())
    }

    /// Makes the name of the log file durable, if that was not done.
    pub fn sync_log_name(&self) -> Result<(), SegmentError> {
        if self.log_name_dirty.load(Ordering::Acquire) { self.sync_dir() } else { Ok(()) }
    }

    fn sync_dir(&self) -> Result<(), SegmentError> {
        let path = self.dir.path.get();
        self.dir.files.disk().sync_dir(&path).map_err(|error| self.io(error))?;
        self.log_name_dirty.store(false, Ordering::Release);
        Ok(())
    }

    /// What a segment goes through when the log rolls away from it: a last entry in the time index, and all
    /// files cut to what is used. Index files exist afterwards.
    pub fn on_become_inactive(&self) -> Result<(), SegmentError> {
        self.check_indexes()?;
        let max = self.max_timestamp()?;
        let closing = self.time_index.maybe_append(max, LastSlot::Use);
        unless_full(closing).map_err(|error| self.index(error))?;
        self.names_dirty.store(true, Ordering::Release);
        self.offset_index.trim().map_err(|error| self.index(error))?;
        self.time_index.trim().map_err(|error| self.index(error))?;
        self.trim_log()
    }

    /// Cuts a preallocated log file to its batches.
    fn trim_log(&self) -> Result<(), SegmentError> {
        let file = self.log.handle().map_err(|error| self.io(error))?;
        if file.len().map_err(|error| self.io(error))? > self.size() {
            self.dirty.store(true, Ordering::Release);
            file.set_len(self.size()).map_err(|error| self.io(error))?;
        }
        Ok(())
    }

    /// Closes an active segment at shutdown: as [`Segment::on_become_inactive`], so that the index files of a
    /// segment that was never used exist too (KAFKA-13603). The caller flushes after it; files close
    /// themselves.
    pub fn close(&self) -> Result<(), SegmentError> {
        self.on_become_inactive()
    }
}
