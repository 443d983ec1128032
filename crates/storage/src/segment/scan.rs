//! The batches of a log file, one header after the other, by buffered reads.
//!
//! Rules of a log file's reader: fewer than 18 bytes at the end are no batch; a batch that would run past the
//! end ends the scan silently; a size below that of any format is corruption. Checksums are looked at only
//! when asked for.

use std::io;
use std::sync::Arc;

use flate2::Crc;
use wire::batch::{BatchError, BatchHeader, BatchPrefix, HEADER_LEN, PREFIX_LEN};

use crate::disk::DiskFile;

/// The number of bytes before the checksummed part of a batch.
const CRC_START: u64 = 21;

/// Read-ahead of a scan for one batch, in bytes.
pub(super) const LOOKUP_BYTES: usize = 4 << 10;
/// Read-ahead of a scan of many batches, in bytes.
pub(super) const SCAN_BYTES: usize = 64 << 10;

/// A batch in a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBatch {
    /// Where it starts, in bytes from the start of the file.
    pub position: u64,
    /// Its fixed fields.
    pub header: BatchHeader,
}

impl FileBatch {
    /// Where the next batch starts.
    pub fn end(&self) -> u64 {
        self.position.saturating_add(self.header.size_in_bytes() as u64)
    }
}

/// Why the batches of a file cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The disk failed.
    #[error("cannot read the log: {0}")]
    Io(#[from] io::Error),
    /// The bytes at `position` are no batch.
    #[error("corrupt batch at position {position}: {error}")]
    Corrupt {
        /// Bytes from the start of the file.
        position: u64,
        /// What is wrong.
        error: BatchError,
    },
    /// A message set of format 0 or 1 lies at `position`.
    #[error("batch at position {position} has the old record format {magic}, which is not supported")]
    OldFormat {
        /// Bytes from the start of the file.
        position: u64,
        /// The record format.
        magic: i8,
    },
}

/// Reads the headers of the batches between two positions of a file.
#[derive(Debug)]
pub struct BatchScan {
    chunks: Chunks,
    position: u64,
    end: u64,
}

impl BatchScan {
    /// Scans `file` from `start` to `end` (exclusive), reading `read_ahead` bytes at a time.
    pub fn new(file: Arc<dyn DiskFile>, start: u64, end: u64, read_ahead: usize) -> Self {
        let chunks = Chunks { file, buf: Vec::new(), start: 0, read_ahead: read_ahead.max(HEADER_LEN) };
        Self { chunks, position: start, end }
    }

    /// Where the next batch is expected: after the last one that was read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Where it ends, in bytes from the start of the file (exclusive).
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The bytes that the scan holds at the most.
    #[cfg(test)]
    pub(super) fn buffered_capacity(&self) -> usize {
        self.chunks.buf.capacity()
    }

    /// The next batch; `None` at the end, or at a batch that is not whole.
    pub fn next_batch(&mut self) -> Result<Option<FileBatch>, ScanError> {
        let position = self.position;
        if position.saturating_add(PREFIX_LEN as u64) >= self.end {
            return Ok(None);
        }
        let corrupt = |error| match error {
            BatchError::OldFormat(magic) => ScanError::OldFormat { position, magic },
            error => ScanError::Corrupt { position, error },
        };
        let wanted = HEADER_LEN.min(usize::try_from(self.end - position).unwrap_or(HEADER_LEN));
        let bytes = self.chunks.at_least(position, wanted, self.end)?;
        let prefix = BatchPrefix::parse(bytes).map_err(corrupt)?;
        if position.saturating_add(prefix.size_in_bytes() as u64) > self.end {
            return Ok(None);
        }
        let header = BatchHeader::parse(bytes).map_err(corrupt)?;
        let batch = FileBatch { position, header };
        self.position = batch.end();
        Ok(Some(batch))
    }

    /// What the bytes at `position` are that carry the number of an old format: a message of that format if its checksum is
    /// right, otherwise nothing.
    pub(super) fn old_or_corrupt(&mut self, position: u64, magic: i8) -> ScanError {
        match self.is_old_message(position) {
            Ok(true) => ScanError::OldFormat { position, magic },
            Ok(false) => ScanError::Corrupt { position, error: BatchError::OldFormat(magic) },
            Err(error) => ScanError::Io(error),
        }
    }

    /// Offset (8 bytes), size (4), CRC-32 (4) of the rest, which begins with the format.
    fn is_old_message(&mut self, position: u64) -> io::Result<bool> {
        let head = self.chunks.at_least(position, PREFIX_LEN, self.end)?;
        let (size, stored) = (number_at(head, 8), number_at(head, 12));
        let (Some(size), Some(stored)) = (size, stored) else { return Ok(false) };
        let end = position.saturating_add(12).saturating_add(u64::from(size)).min(self.end);
        let (mut at, mut crc) = (position.saturating_add(16), Crc::new());
        while at < end {
            let piece = self.chunks.some(at, end)?;
            crc.update(piece);
            at = at.saturating_add(piece.len() as u64);
        }
        Ok(crc.sum() == stored)
    }

    /// Goes back to the start of a batch that this scan has just given.
    pub(super) fn back_to(&mut self, batch: &FileBatch) {
        self.position = batch.position;
    }

    /// Compares the checksum of a batch that this scan has just given, in pieces.
    pub fn verify_crc(&mut self, batch: &FileBatch) -> Result<(), ScanError> {
        let end = batch.end();
        let mut at = batch.position.saturating_add(CRC_START);
        let mut crc = 0;
        while at < end {
            let piece = self.chunks.some(at, end)?;
            crc = crc32c::crc32c_append(crc, piece);
            at = at.saturating_add(piece.len() as u64);
        }
        let stored = batch.header.crc;
        if crc == stored {
            return Ok(());
        }
        let error = BatchError::CrcMismatch { stored, computed: crc };
        Err(ScanError::Corrupt { position: batch.position, error })
    }
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|number| u32::from_be_bytes(*number))
}

/// A window on a file that moves forward.
#[derive(Debug)]
struct Chunks {
    file: Arc<dyn DiskFile>,
    buf: Vec<u8>,
    start: u64,
    read_ahead: usize,
}

impl Chunks {
    /// Bytes from `at` on that are in the window.
    fn buffered(&self, at: u64) -> &[u8] {
        let skip = at.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.buf.get(skip..)).unwrap_or_default()
    }

    fn fill(&mut self, at: u64, end: u64) -> io::Result<()> {
        let length = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(self.read_ahead);
        self.buf.resize(length, 0);
        self.start = at;
        let read = self.file.read_at(&mut self.buf, at)?;
        self.buf.truncate(read);
        Ok(())
    }

    /// `wanted` bytes or more from `at`; fewer only if the file is shorter than `end` says.
    fn at_least(&mut self, at: u64, wanted: usize, end: u64) -> io::Result<&[u8]> {
        if self.buffered(at).len() < wanted {
            self.fill(at, end)?;
        }
        Ok(self.buffered(at))
    }

    /// One byte or more from `at`, none beyond `end`.
    fn some(&mut self, at: u64, end: u64) -> io::Result<&[u8]> {
        let bytes = self.at_least(at, 1, end)?;
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let most = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        Ok(bytes.get(..most).unwrap_or(bytes))
    }
}
