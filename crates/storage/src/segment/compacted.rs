//! Writing what compaction leaves of a group of segments: a segment of its own whose files carry the suffix `.cleaned`
//! until it takes their place. Indexes are built while batches go by; nobody reads it before it is whole and durable.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use wire::batch::BatchHeader;
use wire::types::{Millis, Offset};

use super::scan::FileBatch;
use super::verify::IndexBuilder;
use super::{INDEXES, MAX_SEGMENT_BYTES, Segment, SegmentConfig, SegmentDir, SegmentError};
use crate::disk::DiskFile;
use crate::names::Transient;
use crate::sync::lock;
use crate::txn_index::AbortedTxn;

/// A segment that is being written; see the module's text.
#[derive(Debug)]
pub(crate) struct CompactedSegment {
    segment: Segment,
    file: Arc<dyn DiskFile>,
    builder: IndexBuilder,
    position: u64,
}

impl CompactedSegment {
    /// Begins the segment that takes the place of those from `base` on. What an earlier attempt left is removed. Its
    /// log file is never extended beforehand (KAFKA-5431).
    pub(crate) fn create(
        dir: &SegmentDir,
        base: Offset,
        config: SegmentConfig,
        now: Millis,
    ) -> Result<Self, SegmentError> {
        let config = SegmentConfig { preallocate_bytes: None, ..config };
        let segment = Segment::new(dir, base, Some(Transient::Cleaned), config, now);
        segment.delete_files()?;
        let file = segment.log.create().map_err(|error| segment.io(error))?;
        segment.dirty.store(true, Ordering::Release);
        segment.names_dirty.store(true, Ordering::Release);
        segment.indexes_checked.store(true, Ordering::Release);
        INDEXES.into_iter().for_each(|kind| segment.note_absent(kind));
        let builder = IndexBuilder::start(&segment)?;
        Ok(Self { segment, file, builder, position: 0 })
    }

    /// The base offset.
    pub(crate) fn base(&self) -> Offset {
        self.segment.base
    }

    /// Writes batches, whose headers are `batches` and whose bytes are `bytes`, one after the other.
    pub(crate) fn append(&mut self, batches: &[BatchHeader], bytes: &[u8]) -> Result<(), SegmentError> {
        let size = self.position.saturating_add(bytes.len() as u64);
        if size > MAX_SEGMENT_BYTES {
            return Err(SegmentError::TooLarge { base: self.segment.base, size });
        }
        let written = self.file.write_vectored_at(&[IoSlice::new(bytes)], self.position);
        written.map_err(|error| self.segment.io(error))?;
        let mut position = self.position;
        for header in batches {
            let offset = header.last_offset();
            if !self.segment.covers(offset) {
                return Err(SegmentError::OffsetOverflow { base: self.segment.base, offset });
            }
            self.builder.add(&self.segment, &FileBatch { position, header: *header })?;
            position = position.saturating_add(header.size_in_bytes() as u64);
        }
        self.position = size;
        Ok(())
    }

    /// Notes an aborted transaction whose marker is in this segment.
    pub(crate) fn append_aborted(&self, txn: &AbortedTxn) -> Result<(), SegmentError> {
        self.segment.append_aborted(txn)
    }

    /// Ends the segment, whose log counts as last changed at `modified`. All of it is durable when this returns.
    pub(crate) fn finish(self, modified: Millis) -> Result<Segment, SegmentError> {
        let Self { segment, builder, position, .. } = self;
        builder.finish(&segment)?;
        segment.size.store(position, Ordering::Release);
        lock(&segment.state).max_timestamp = Some(builder.max_timestamp);
        let path = segment.log.path();
        let disk = segment.dir.files.disk();
        disk.set_modified(&path, modified.0).map_err(|error| segment.io(error))?;
        segment.flush()?;
        Ok(segment)
    }

    /// Removes what was written.
    pub(crate) fn discard(self) -> Result<(), SegmentError> {
        self.segment.delete_files()
    }
}
