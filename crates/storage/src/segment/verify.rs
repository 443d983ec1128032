//! Whether the indexes fit the log, asked once when they are first used; if not, they are built anew.
//!
//! Kafka believes the indexes of a segment below the recovery point. A padded, cut, missing or exchanged
//! file would slow every read down, or make retention delete by a wrong timestamp. So the last entry of each
//! is compared with the batch it names, which costs three reads.

use std::sync::atomic::Ordering;

use wire::types::Millis;

use super::scan::FileBatch;
use super::{Segment, SegmentError};
use crate::index_file::IndexError;
use crate::sync::lock;
use crate::time_index::{LastSlot, TimestampOffset};

impl Segment {
    /// Makes sure that the offset and time index fit the log.
    pub(super) fn check_indexes(&self) -> Result<(), SegmentError> {
        if self.indexes_checked.load(Ordering::Acquire) {
            return Ok(());
        }
        let _one = lock(&self.checking);
        if self.indexes_checked.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.indexes_fit()? {
            tracing::warn!(
                segment = %self.log().path().display(),
                "an index does not fit its log (missing, cut, padded, or of another segment); building both anew"
            );
            self.rebuild_indexes()?;
        }
        self.indexes_checked.store(true, Ordering::Release);
        Ok(())
    }

    fn indexes_fit(&self) -> Result<bool, SegmentError> {
        let offsets = self.offset_index.count().map_err(|error| self.index(error))?;
        let times = self.time_index.count().map_err(|error| self.index(error))?;
        let size = self.size();
        if size == 0 {
            return Ok(offsets == 0 && times == 0);
        }
        if times == 0 || (offsets == 0 && size > self.config().index_interval_bytes) {
            return Ok(false);
        }
        let plausible = self.offset_index.is_plausible(size).map_err(|error| self.index(error))?
            && self.time_index.is_plausible().map_err(|error| self.index(error))?;
        Ok(plausible && self.last_offset_entry_fits()? && self.last_time_entry_fits()?)
    }

    /// Whether a batch starts where the last entry says, at or below the offset it says.
    fn last_offset_entry_fits(&self) -> Result<bool, SegmentError> {
        let Some(entry) = self.offset_index.last().map_err(|error| self.index(error))? else {
            return Ok(true);
        };
        let batch = self.next_good(&mut self.scan(entry.position, super::scan::LOOKUP_BYTES)?)?;
        Ok(batch.is_some_and(|batch| {
            batch.header.base_offset >= self.base() && batch.header.base_offset <= entry.offset
        }))
    }

    /// Whether the batch that holds the offset of the last entry has the timestamp of that entry.
    fn last_time_entry_fits(&self) -> Result<bool, SegmentError> {
        let entry = self.time_index.last().map_err(|error| self.index(error))?;
        let start = self.offset_index.lookup(entry.offset).map_err(|error| self.index(error))?.position;
        let mut scan = self.scan(start, super::scan::LOOKUP_BYTES)?;
        while let Some(batch) = self.next_good(&mut scan)? {
            if batch.header.last_offset() >= entry.offset {
                return Ok(
                    batch.header.base_offset <= entry.offset && batch.header.max_timestamp == entry.timestamp
                );
            }
        }
        Ok(false)
    }

    /// Builds the offset and time index from the headers of the batches, up to the first that is none.
    fn rebuild_indexes(&self) -> Result<(), SegmentError> {
        let mut builder = IndexBuilder::start(self)?;
        let mut scan = self.scan_at(0)?;
        while let Some(batch) = self.next_good(&mut scan)? {
            builder.add(self, &batch)?;
        }
        builder.finish(self)?;
        // The segment may be the active one: there must be room for what comes.
        self.resize_indexes();
        Ok(())
    }
}

/// Fills the emptied indexes of a segment while its batches go by in order.
#[derive(Debug)]
pub(super) struct IndexBuilder {
    last_indexed: u64,
    pub(super) max_timestamp: TimestampOffset,
}

impl IndexBuilder {
    /// Empties the offset and time index.
    pub(super) fn start(segment: &Segment) -> Result<Self, SegmentError> {
        let bytes = segment.config().max_index_bytes;
        segment.names_dirty.store(true, Ordering::Release);
        segment.offset_index.reset(bytes).map_err(|error| segment.index(error))?;
        segment.time_index.reset(bytes).map_err(|error| segment.index(error))?;
        Ok(Self { last_indexed: 0, max_timestamp: segment.no_timestamp() })
    }

    /// Takes the next batch.
    pub(super) fn add(&mut self, segment: &Segment, batch: &FileBatch) -> Result<(), SegmentError> {
        let last_offset = batch.header.last_offset();
        if batch.header.max_timestamp > self.max_timestamp.timestamp {
            let timestamp: Millis = batch.header.max_timestamp;
            self.max_timestamp = TimestampOffset { timestamp, offset: last_offset };
        }
        if batch.position.saturating_sub(self.last_indexed) > segment.config().index_interval_bytes {
            let added = segment.offset_index.append(last_offset, batch.position);
            unless_full(added).map_err(|error| segment.index(error))?;
            let added = segment.time_index.maybe_append(self.max_timestamp, LastSlot::Keep);
            unless_full(added).map_err(|error| segment.index(error))?;
            self.last_indexed = batch.position;
        }
        Ok(())
    }

    /// Adds the closing entry and cuts the files to their entries.
    pub(super) fn finish(&self, segment: &Segment) -> Result<(), SegmentError> {
        let closing = segment.time_index.maybe_append(self.max_timestamp, LastSlot::Use);
        unless_full(closing).map_err(|error| segment.index(error))?;
        segment.offset_index.trim().map_err(|error| segment.index(error))?;
        segment.time_index.trim().map_err(|error| segment.index(error))
    }
}

/// An index that was configured smaller than the log needs is sparser, and no reason to lose the log.
pub(super) fn unless_full(result: Result<(), IndexError>) -> Result<(), IndexError> {
    match result {
        Err(IndexError::Full) => Ok(()),
        other => other,
    }
}
