//! Where records are read from: a slice, or a stream that is decompressed as it is read.
//!
//! One parser of records serves both (`record.rs`); for a stream nothing is kept but the chunk at hand.

use super::BatchError;

/// A source of record bytes.
pub(super) trait Input {
    /// Bytes read so far.
    fn position(&self) -> usize;

    /// Bytes left, if that is known.
    fn left(&self) -> Option<usize>;

    /// The next byte.
    ///
    /// # Errors
    /// [`BatchError::RecordsEndEarly`] at the end; a stream also fails when it cannot be decompressed.
    fn byte(&mut self) -> Result<u8, BatchError>;

    /// Passes over `count` bytes.
    ///
    /// # Errors
    /// As [`byte`](Self::byte).
    fn skip(&mut self, count: usize) -> Result<(), BatchError>;

    /// Passes over the next `count` bytes and returns them, if they are at hand in one piece.
    fn take(&mut self, count: usize) -> Option<&[u8]>;

    /// Whether no byte is left.
    ///
    /// # Errors
    /// If a stream cannot be decompressed.
    fn is_at_end(&mut self) -> Result<bool, BatchError>;
}

/// Bytes in memory.
pub(super) struct SliceInput<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> SliceInput<'a> {
    /// Reads `bytes` from their beginning.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    /// Reads `bytes` from position `at`.
    pub(super) fn at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }
}

impl Input for SliceInput<'_> {
    #[inline]
    fn position(&self) -> usize {
        self.at
    }

    #[inline]
    fn left(&self) -> Option<usize> {
        Some(self.bytes.len() - self.at)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, BatchError> {
        let byte = *self.bytes.get(self.at).ok_or(BatchError::RecordsEndEarly)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn skip(&mut self, count: usize) -> Result<(), BatchError> {
        if count > self.bytes.len() - self.at {
            return Err(BatchError::RecordsEndEarly);
        }
        self.at += count;
        Ok(())
    }

    #[inline]
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let taken = self.bytes.get(self.at..)?.get(..count)?;
        self.at += count;
        Some(taken)
    }

    #[inline]
    fn is_at_end(&mut self) -> Result<bool, BatchError> {
        Ok(self.at == self.bytes.len())
    }
}
