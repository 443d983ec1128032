//! Zstandard: frames one after the other, read as one stream.
//!
//! The window of a frame may take up to 128 MiB, the library's own bound, which the highest levels need.

use zstd::zstd_safe::{CCtx, InBuffer, OutBuffer, ResetDirective, compress_bound};

use super::scratch::{Budget, CHUNK, ChunkSource, Decoders};
use super::{BatchError, CompressError, CompressionType};

/// The level of `compression.zstd.level` if none is set.
pub(super) const DEFAULT_LEVEL: i32 = 3;

fn error(reason: &'static str) -> CompressError {
    CompressError { codec: CompressionType::Zstd, reason }
}

fn bad(reason: &'static str) -> BatchError {
    BatchError::Compressed(error(reason))
}

/// Compresses into one frame.
pub(super) fn compress(data: &[u8], level: i32) -> Result<Vec<u8>, CompressError> {
    let mut context = CCtx::try_create().ok_or_else(|| error("no memory for a context"))?;
    let mut out = Vec::with_capacity(compress_bound(data.len()));
    context.compress(&mut out, data, level).map_err(|_| error("cannot compress"))?;
    Ok(out)
}

/// A stream of frames.
pub(super) struct Source<'a> {
    input: InBuffer<'a>,
    begun: bool,
    /// Whether the bytes read so far end with a whole frame.
    at_frame_end: bool,
}

impl<'a> Source<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self { input: InBuffer::around(input), begun: false, at_frame_end: false }
    }
}

impl ChunkSource for Source<'_> {
    fn next_chunk(&mut self, decoders: &mut Decoders, budget: &mut Budget) -> Result<usize, BatchError> {
        let (context, space) =
            decoders.zstd_and_space(CHUNK).ok_or_else(|| bad("no memory for a context"))?;
        if !self.begun {
            context.reset(ResetDirective::SessionOnly).map_err(|_| bad("cannot reset the context"))?;
            self.begun = true;
        }
        loop {
            let all_read = self.input.pos == self.input.src.len();
            if all_read && self.at_frame_end {
                return Ok(0);
            }
            let mut out = OutBuffer::around(&mut *space);
            let hint =
                context.decompress_stream(&mut out, &mut self.input).map_err(|_| bad("damaged frame"))?;
            let written = out.pos();
            self.at_frame_end = hint == 0;
            if written > 0 {
                budget.take(written)?;
                return Ok(written);
            }
            if all_read && !self.at_frame_end {
                return Err(bad("the stream ends early"));
            }
        }
    }
}
