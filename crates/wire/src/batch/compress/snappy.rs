//! Snappy in the stream format of the Java library (xerial): a 16-byte header, then blocks, each after its
//! length. Bytes without that header are one bare block, as some clients write.

use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

use super::scratch::{Budget, ChunkSource, Decoders};
use super::{BatchError, CompressError, CompressionType};

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// The first bytes of the header where a block's length would be: another stream follows.
const MAGIC_AS_LENGTH: i32 = i32::from_be_bytes([0x82, b'S', b'N', b'A']);
/// Magic, version, least compatible version.
const STREAM_HEADER_LEN: usize = 16;
const VERSION: i32 = 1;
const BLOCK: usize = 32 << 10;
/// No element of a block expands further: 3 bytes that copy 64.
const MAX_RATIO: usize = 22;

fn error(reason: &'static str) -> CompressError {
    CompressError { codec: CompressionType::Snappy, reason }
}

fn bad(reason: &'static str) -> BatchError {
    BatchError::Compressed(error(reason))
}

/// Compresses into one stream of 32 KiB blocks.
pub(super) fn compress(data: &[u8]) -> Result<Vec<u8>, CompressError> {
    let mut out = Vec::with_capacity(STREAM_HEADER_LEN + data.len() / 2);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&VERSION.to_be_bytes());
    let mut encoder = Encoder::new();
    let mut block = vec![0; max_compress_len(BLOCK)];
    for piece in data.chunks(BLOCK) {
        let len = encoder.compress(piece, &mut block).map_err(|_| error("cannot compress"))?;
        let len_field = i32::try_from(len).map_err(|_| error("block is too long"))?;
        out.extend_from_slice(&len_field.to_be_bytes());
        out.extend_from_slice(block.get(..len).unwrap_or_default());
    }
    Ok(out)
}

/// A stream of blocks, or one bare block.
pub(super) struct Source<'a> {
    input: &'a [u8],
    state: State,
}

#[derive(PartialEq)]
enum State {
    Start,
    Blocks,
    End,
}

impl<'a> Source<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self { input, state: State::Start }
    }

    /// The next compressed block, or none at the end.
    fn next_block(&mut self) -> Result<Option<&'a [u8]>, BatchError> {
        if self.state == State::Start {
            if !self.input.starts_with(&MAGIC) {
                self.state = State::End;
                return Ok(Some(std::mem::take(&mut self.input)));
            }
            self.input = skip_stream_header(self.input)?;
            self.state = State::Blocks;
        }
        loop {
            // Like the Java library, a cut length ends the stream; the count of records tells.
            let Some((length, rest)) = self.input.split_first_chunk::<4>() else {
                self.state = State::End;
                return Ok(None);
            };
            let length = i32::from_be_bytes(*length);
            if length == MAGIC_AS_LENGTH {
                self.input = skip_stream_header(self.input)?;
                continue;
            }
            let length = usize::try_from(length).map_err(|_| bad("negative block length"))?;
            let (block, rest) =
                rest.split_at_checked(length).ok_or_else(|| bad("a block is longer than the stream"))?;
            self.input = rest;
            return Ok(Some(block));
        }
    }
}

impl ChunkSource for Source<'_> {
    fn next_chunk(&mut self, decoders: &mut Decoders, budget: &mut Budget) -> Result<usize, BatchError> {
        while self.state != State::End {
            let Some(block) = self.next_block()? else {
                break;
            };
            let len = decompress_len(block).map_err(|_| bad("malformed block"))?;
            if len > block.len().saturating_mul(MAX_RATIO) {
                return Err(bad("a block claims more than it can hold"));
            }
            budget.take(len)?;
            Decoder::new().decompress(block, decoders.space(len)).map_err(|_| bad("damaged block"))?;
            if len > 0 {
                return Ok(len);
            }
        }
        Ok(0)
    }
}

fn skip_stream_header(input: &[u8]) -> Result<&[u8], BatchError> {
    let (header, rest) =
        input.split_first_chunk::<STREAM_HEADER_LEN>().ok_or_else(|| bad("the header is cut"))?;
    let [magic @ .., _, _, _, _, c0, c1, c2, c3] = *header;
    if magic != MAGIC {
        return Err(bad("malformed header"));
    }
    if i32::from_be_bytes([c0, c1, c2, c3]) > VERSION {
        return Err(bad("the stream needs a newer reader"));
    }
    Ok(rest)
}
