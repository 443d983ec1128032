//! Scratch memory and codec state that a thread keeps between batches, and the stream that uses them.
//!
//! Kept memory is bounded: what one unusual batch made large is given back after it.

use std::cell::Cell;

use zstd::zstd_safe::DCtx;

use super::super::input::Input;
use super::BatchError;

/// The size of chunks whose source does not dictate another.
pub(super) const CHUNK: usize = 64 << 10;
/// The most scratch memory that is kept between batches.
const KEEP_SCRATCH: usize = 1 << 20;
/// The most memory of a zstd context that is kept between batches.
const KEEP_ZSTD: usize = 16 << 20;

/// The bytes that a stream may still expand to.
pub(super) struct Budget {
    limit: usize,
    used: usize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, used: 0 }
    }

    /// Uses `bytes` of the budget.
    ///
    /// # Errors
    /// [`BatchError::ExpandsTooFar`] if not as many are left.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), BatchError> {
        if bytes > self.limit - self.used {
            return Err(BatchError::ExpandsTooFar { limit: self.limit });
        }
        self.used += bytes;
        Ok(())
    }
}

/// A compressed stream that is read chunk by chunk.
pub(super) trait ChunkSource {
    /// Decompresses the next chunk into the scratch memory of `decoders` and returns its length; 0 at the end.
    ///
    /// # Errors
    /// [`BatchError::Compressed`] or [`BatchError::ExpandsTooFar`].
    fn next_chunk(&mut self, decoders: &mut Decoders, budget: &mut Budget) -> Result<usize, BatchError>;
}

/// What a thread keeps for decompression.
#[derive(Default)]
pub(super) struct Decoders {
    /// At least as long as the largest chunk so far.
    scratch: Vec<u8>,
    inflate: Option<flate2::Decompress>,
    zstd: Option<DCtx<'static>>,
}

thread_local! {
    static DECODERS: Cell<Option<Box<Decoders>>> = const { Cell::new(None) };
}

impl Decoders {
    /// Runs `with` with this thread's decoders, or with new ones if they are in use.
    pub(super) fn lend<R>(with: impl FnOnce(&mut Self) -> R) -> R {
        let mut decoders = DECODERS.take().unwrap_or_default();
        let result = with(&mut decoders);
        if decoders.scratch.len() > KEEP_SCRATCH {
            decoders.scratch = Vec::new();
        }
        if decoders.zstd.as_ref().is_some_and(|context| context.sizeof() > KEEP_ZSTD) {
            decoders.zstd = None;
        }
        DECODERS.set(Some(decoders));
        result
    }

    /// The first `len` bytes of the scratch memory.
    pub(super) fn chunk(&self, len: usize) -> &[u8] {
        self.scratch.get(..len).unwrap_or_default()
    }

    /// Scratch memory of `len` bytes.
    pub(super) fn space(&mut self, len: usize) -> &mut [u8] {
        self.inflate_and_space(len).1
    }

    /// Raw inflate state as the last stream left it, and scratch memory of `len` bytes.
    pub(super) fn inflate_and_space(&mut self, len: usize) -> (&mut flate2::Decompress, &mut [u8]) {
        grow(&mut self.scratch, len);
        let inflate = self.inflate.get_or_insert_with(|| flate2::Decompress::new(false));
        (inflate, self.scratch.get_mut(..len).unwrap_or_default())
    }

    /// A zstd context as the last stream left it, if there is memory for one, and scratch memory of `len`
    /// bytes.
    pub(super) fn zstd_and_space(&mut self, len: usize) -> Option<(&mut DCtx<'static>, &mut [u8])> {
        grow(&mut self.scratch, len);
        if self.zstd.is_none() {
            self.zstd = DCtx::try_create();
        }
        Some((self.zstd.as_mut()?, self.scratch.get_mut(..len)?))
    }
}

fn grow(scratch: &mut Vec<u8>, len: usize) {
    if scratch.len() < len {
        scratch.resize(len, 0);
    }
}

/// Decompressed bytes as an input of the record parser.
pub(in super::super) struct StreamInput<'a> {
    source: &'a mut dyn ChunkSource,
    decoders: &'a mut Decoders,
    budget: Budget,
    /// Length of the chunk at hand, and where in it the next byte is.
    len: usize,
    at: usize,
    /// Bytes in earlier chunks.
    before: usize,
}

impl<'a> StreamInput<'a> {
    pub(super) fn new(source: &'a mut dyn ChunkSource, decoders: &'a mut Decoders, limit: usize) -> Self {
        Self { source, decoders, budget: Budget::new(limit), len: 0, at: 0, before: 0 }
    }

    /// Goes to the next chunk; false at the end.
    #[cold]
    fn refill(&mut self) -> Result<bool, BatchError> {
        self.before += self.len;
        self.at = 0;
        self.len = 0;
        self.len = self.source.next_chunk(self.decoders, &mut self.budget)?;
        Ok(self.len > 0)
    }
}

impl Input for StreamInput<'_> {
    #[inline]
    fn position(&self) -> usize {
        self.before + self.at
    }

    #[inline]
    fn left(&self) -> Option<usize> {
        None
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, BatchError> {
        if self.at == self.len && !self.refill()? {
            return Err(BatchError::RecordsEndEarly);
        }
        let byte = self.decoders.scratch.get(self.at).copied().ok_or(BatchError::RecordsEndEarly)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn skip(&mut self, mut count: usize) -> Result<(), BatchError> {
        while count > self.len - self.at {
            count -= self.len - self.at;
            if !self.refill()? {
                return Err(BatchError::RecordsEndEarly);
            }
        }
        self.at += count;
        Ok(())
    }

    #[inline]
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        if count > self.len - self.at {
            return None;
        }
        let taken = self.decoders.scratch.get(self.at..)?.get(..count)?;
        self.at += count;
        Some(taken)
    }

    fn is_at_end(&mut self) -> Result<bool, BatchError> {
        Ok(self.at == self.len && !self.refill()?)
    }
}
