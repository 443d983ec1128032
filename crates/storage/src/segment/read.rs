//! From an offset to bytes: the index gives a position at or before the batch, headers are read from there.

use bytes::Bytes;
use wire::types::Offset;

use super::scan::{BatchScan, FileBatch, LOOKUP_BYTES, SCAN_BYTES, ScanError};
use super::{Segment, SegmentError};
use crate::disk::FileRange;

/// Where a batch lies in the log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPosition {
    /// Bytes from the start of the file.
    pub position: u64,
    /// Its size in bytes.
    pub size: usize,
}

/// A part of the log for a reader.
#[derive(Clone, Debug)]
pub struct SegmentRead {
    /// The bytes, from the start of the batch that holds the offset asked for (or of the next one, if the
    /// offset was compacted away). They may end inside a batch.
    pub range: FileRange,
    /// Whether even the first batch is not whole.
    pub first_batch_incomplete: bool,
}

impl Segment {
    /// Scans the headers of the batches from `position` to the end.
    pub fn scan_at(&self, position: u64) -> Result<BatchScan, SegmentError> {
        self.scan(position, SCAN_BYTES)
    }

    /// Scans the headers of the batches from the one that holds `offset`, or the first after it, to the end.
    pub fn scan_from(&self, offset: Offset) -> Result<BatchScan, SegmentError> {
        let position = self.find_batch(offset)?.map_or(self.size(), |batch| batch.position);
        self.scan_at(position)
    }

    /// Scans the headers of the batches before `end` (exclusive), of about the last `bytes` before it: from the next
    /// place that the index knows.
    pub fn scan_before(&self, end: Offset, bytes: u64) -> Result<BatchScan, SegmentError> {
        let end = self.locate(end)?.map_or(self.size(), |place| place.position);
        let wanted = end.saturating_sub(bytes);
        self.check_indexes()?;
        let mut start = 0;
        if wanted > 0 {
            let entry = self.offset_index.first_at_or_beyond(wanted).map_err(|error| self.index(error))?;
            let entry = entry.filter(|entry| entry.position < end);
            let last = self.offset_index.last().map_err(|error| self.index(error))?;
            let last = last.filter(|entry| entry.position < end);
            start = entry.or(last).map_or(0, |entry| entry.position);
        }
        let file = self.log().handle().map_err(|error| self.io(error))?;
        Ok(BatchScan::new(file, start, end, SCAN_BYTES))
    }

    pub(super) fn scan(&self, position: u64, read_ahead: usize) -> Result<BatchScan, SegmentError> {
        let file = self.log().handle().map_err(|error| self.io(error))?;
        Ok(BatchScan::new(file, position, self.size(), read_ahead))
    }

    /// The bytes of a batch.
    pub fn read_batch(&self, batch: &FileBatch) -> Result<Bytes, SegmentError> {
        let mut bytes = vec![0; batch.header.size_in_bytes()];
        let file = self.log().handle().map_err(|error| self.io(error))?;
        file.read_exact_at(&mut bytes, batch.position).map_err(|error| self.io(error))?;
        Ok(bytes.into())
    }

    /// A scan from where the index leads for `offset`: at or before the batch that holds it. If no batch is
    /// there, or one beyond the offset that the index names, the scan begins at the start of the segment.
    pub(super) fn scan_near(&self, offset: Offset, read_ahead: usize) -> Result<BatchScan, SegmentError> {
        self.check_indexes()?;
        let entry = self.offset_index.lookup(offset).map_err(|error| self.index(error))?;
        let mut scan = self.scan(entry.position, read_ahead)?;
        if entry.position == 0 {
            return Ok(scan);
        }
        if let Some(batch) = self.next_good(&mut scan)?
            && batch.header.base_offset >= self.base()
            && batch.header.base_offset <= entry.offset
        {
            scan.back_to(&batch);
            return Ok(scan);
        }
        tracing::warn!(
            segment = %self.log().path().display(), %offset, position = entry.position,
            "the offset index is wrong; searching the whole segment"
        );
        self.scan(0, SCAN_BYTES)
    }

    /// The first batch whose last offset is at or above `offset`; `None` if the segment ends before.
    pub fn find_batch(&self, offset: Offset) -> Result<Option<FileBatch>, SegmentError> {
        let mut scan = self.scan_near(offset, LOOKUP_BYTES)?;
        while let Some(batch) = scan.next_batch().map_err(|error| self.scan_error(error))? {
            if batch.header.last_offset() >= offset {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Where the first batch lies whose last offset is at or above `offset`.
    pub fn locate(&self, offset: Offset) -> Result<Option<BatchPosition>, SegmentError> {
        if let Some(place) = self.recent.find(offset)
            && place.position.saturating_add(place.size as u64) <= self.size()
        {
            return Ok(Some(place));
        }
        let found = self.find_batch(offset)?;
        Ok(found.map(|b| BatchPosition { position: b.position, size: b.header.size_in_bytes() }))
    }

    /// Reads at most `max_bytes` from the batch that holds `from` on, nothing at or beyond `max_position`.
    /// With `min_one_batch` the first batch is given whole even if it is larger than `max_bytes`.
    /// `None` if the segment holds nothing at or above `from`.
    pub fn read(
        &self,
        from: Offset,
        max_bytes: usize,
        max_position: u64,
        min_one_batch: bool,
    ) -> Result<Option<SegmentRead>, SegmentError> {
        let Some(first) = self.locate(from)? else { return Ok(None) };
        let wanted = if min_one_batch { max_bytes.max(first.size) } else { max_bytes };
        let end = max_position.min(self.size());
        let there = usize::try_from(end.saturating_sub(first.position)).unwrap_or(usize::MAX);
        let len = wanted.min(there);
        let range = self.log().range(first.position, len).map_err(|error| self.io(error))?;
        Ok(Some(SegmentRead { range, first_batch_incomplete: len < first.size }))
    }

    /// The offset after the last record; the base offset if there is none. Reads from the last index entry on.
    pub fn next_offset(&self) -> Result<Offset, SegmentError> {
        let mut scan = self.scan_near(Offset(i64::MAX), SCAN_BYTES)?;
        let mut next = self.base();
        while let Some(batch) = scan.next_batch().map_err(|error| self.scan_error(error))? {
            next = batch.header.next_offset();
        }
        Ok(next)
    }

    /// An offset at or above which no record of a read starts that takes `len` bytes from `position` on: the
    /// offset of the first index entry at or beyond its end. `None` if the index does not reach that far.
    pub fn upper_bound_of_read(&self, position: u64, len: usize) -> Result<Option<Offset>, SegmentError> {
        self.check_indexes()?;
        let end = position.saturating_add(len as u64);
        let entry = self.offset_index.first_at_or_beyond(end).map_err(|error| self.index(error))?;
        Ok(entry.map(|entry| entry.offset))
    }

    /// Reads on in `scan`, ending at the first batch that is no batch.
    pub(crate) fn next_good(&self, scan: &mut BatchScan) -> Result<Option<FileBatch>, SegmentError> {
        match scan.next_batch() {
            Err(ScanError::Corrupt { .. }) => Ok(None),
            other => other.map_err(|error| self.scan_error(error)),
        }
    }
}
