//! The batches of a segment with their bytes, read in large pieces. Every checksum is looked at: what is damaged must not
//! be written anew as if it were right, and nothing of a segment is passed over in silence.

use std::sync::Arc;

use bytes::Bytes;
use wire::batch::{Batch, BatchError, BatchPrefix, HEADER_LEN, PREFIX_LEN};

use crate::disk::DiskFile;
use crate::segment::{ScanError, Segment, SegmentError};

/// Reads the batches from a position to the end of a segment.
#[derive(Debug)]
pub(crate) struct BatchReader<'a> {
    segment: &'a Segment,
    file: Arc<dyn DiskFile>,
    position: u64,
    end: u64,
    buffer_bytes: usize,
    /// The bytes from `position` on that were read.
    window: Bytes,
}

impl<'a> BatchReader<'a> {
    /// Reads `segment` from `position` on, about `buffer_bytes` at a time.
    pub(crate) fn new(
        segment: &'a Segment,
        position: u64,
        buffer_bytes: usize,
    ) -> Result<Self, SegmentError> {
        let io = |error| SegmentError::Io { base: segment.base(), error };
        let file = segment.log().handle().map_err(io)?;
        let buffer_bytes = buffer_bytes.max(HEADER_LEN);
        Ok(Self { segment, file, position, end: segment.size(), buffer_bytes, window: Bytes::new() })
    }

    /// The next batch; none at the end.
    ///
    /// # Errors
    /// Also if the segment ends within a batch, or the checksum of one is wrong.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>, SegmentError> {
        if self.position >= self.end {
            return Ok(None);
        }
        self.fill(PREFIX_LEN)?;
        let prefix = BatchPrefix::parse(&self.window).map_err(|error| self.corrupt(error))?;
        let size = prefix.size_in_bytes();
        self.fill(size.max(HEADER_LEN))?;
        let batch = Batch::parse(&self.window).map_err(|error| self.corrupt(error))?;
        batch.verify_crc().map_err(|error| self.corrupt(error))?;
        self.window = self.window.slice(size..);
        self.position = self.position.saturating_add(size as u64);
        Ok(Some(batch))
    }

    /// Makes the window hold `wanted` bytes, or all that are left.
    fn fill(&mut self, wanted: usize) -> Result<(), SegmentError> {
        let left = usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        if self.window.len() >= wanted.min(left) {
            return Ok(());
        }
        let mut bytes = vec![0; wanted.max(self.buffer_bytes).min(left)];
        let read = self.file.read_exact_at(&mut bytes, self.position);
        read.map_err(|error| SegmentError::Io { base: self.segment.base(), error })?;
        self.window = Bytes::from(bytes);
        Ok(())
    }

    fn corrupt(&self, error: BatchError) -> SegmentError {
        let position = self.position;
        let error = match error {
            BatchError::OldFormat(magic) => ScanError::OldFormat { position, magic },
            error => ScanError::Corrupt { position, error },
        };
        SegmentError::Scan { base: self.segment.base(), error }
    }
}
