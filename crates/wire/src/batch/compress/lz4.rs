//! LZ4 frames of independent blocks.
//!
//! Read as Kafka's clients read: header checksum and block checksums are verified, the content checksum is
//! passed over, frames of dependent blocks are refused (no Java consumer could read them), and what follows the
//! end mark is ignored. Written as Kafka's producer writes: 64 KiB blocks, no checksums but the header's.

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

use super::scratch::{Budget, ChunkSource, Decoders};
use super::xxh32::xxh32;
use super::{BatchError, CompressError, CompressionType};

/// The level of `compression.lz4.level` if none is set.
pub(super) const DEFAULT_LEVEL: i32 = 9;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Version 1, independent blocks.
const WRITTEN_FLAGS: u8 = 0x60;
/// 64 KiB blocks.
const WRITTEN_BLOCK_FLAGS: u8 = 0x40;
const BLOCK: usize = 64 << 10;
/// The bit of a block's length that says that it is stored as it is.
const STORED: u32 = 0x8000_0000;

const VERSION_MASK: u8 = 0xc0;
const VERSION_1: u8 = 0x40;
const INDEPENDENT: u8 = 0x20;
const BLOCK_CHECKSUM: u8 = 0x10;
const CONTENT_SIZE: u8 = 0x08;
const RESERVED: u8 = 0x02;
const DICTIONARY: u8 = 0x01;
/// No block expands further: a byte of length adds 255.
const MAX_RATIO: usize = 256;

fn error(reason: &'static str) -> CompressError {
    CompressError { codec: CompressionType::Lz4, reason }
}

fn bad(reason: &'static str) -> BatchError {
    BatchError::Compressed(error(reason))
}

fn header_checksum(descriptor: &[u8]) -> u8 {
    (xxh32(descriptor) >> 8) as u8
}

/// Compresses into one frame.
pub(super) fn compress(data: &[u8]) -> Result<Vec<u8>, CompressError> {
    let descriptor = [WRITTEN_FLAGS, WRITTEN_BLOCK_FLAGS];
    let mut out = Vec::with_capacity(data.len() / 2 + 16);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&descriptor);
    out.push(header_checksum(&descriptor));
    let mut table = CompressTable::default();
    let mut block = vec![0; get_maximum_output_size(BLOCK.min(data.len()))];
    for piece in data.chunks(BLOCK) {
        let len =
            compress_into_with_table(piece, &mut block, &mut table).map_err(|_| error("cannot compress"))?;
        let (flag, written) = match block.get(..len) {
            Some(compressed) if len < piece.len() => (0, compressed),
            _ => (STORED, piece),
        };
        let len = u32::try_from(written.len()).map_err(|_| error("block is too long"))?;
        out.extend_from_slice(&(len | flag).to_le_bytes());
        out.extend_from_slice(written);
    }
    out.extend_from_slice(&[0; 4]);
    Ok(out)
}

/// One frame.
pub(super) struct Source<'a> {
    input: &'a [u8],
    frame: Option<Frame>,
    ended: bool,
}

#[derive(Clone, Copy)]
struct Frame {
    max_block: usize,
    block_checksum: bool,
}

impl<'a> Source<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self { input, frame: None, ended: false }
    }

    fn u32(&mut self) -> Result<u32, BatchError> {
        let (value, rest) = self.input.split_first_chunk().ok_or_else(|| bad("the frame ends early"))?;
        self.input = rest;
        Ok(u32::from_le_bytes(*value))
    }

    /// Reads the frame's header.
    fn begin(&mut self) -> Result<Frame, BatchError> {
        let rest = self.input.strip_prefix(&MAGIC).ok_or_else(|| bad("the frame's magic is missing"))?;
        let Some([flags, block_flags, ..]) = rest.first_chunk::<2>().copied() else {
            return Err(bad("the frame's header is cut"));
        };
        if flags & VERSION_MASK != VERSION_1 {
            return Err(bad("unknown frame version"));
        }
        if flags & INDEPENDENT == 0 {
            return Err(bad("blocks depend on each other"));
        }
        if flags & (RESERVED | DICTIONARY) != 0 || block_flags & 0x8f != 0 {
            return Err(bad("reserved flags are set"));
        }
        let max_block = match block_flags >> 4 {
            size @ 4..=7 => 1 << (8 + 2 * size),
            _ => return Err(bad("unknown block size")),
        };
        let descriptor_len = if flags & CONTENT_SIZE != 0 { 10 } else { 2 };
        let (descriptor, rest) =
            rest.split_at_checked(descriptor_len).ok_or_else(|| bad("the frame's header is cut"))?;
        let (checksum, rest) = rest.split_first().ok_or_else(|| bad("the frame's header is cut"))?;
        if *checksum != header_checksum(descriptor) {
            return Err(bad("header checksum mismatch"));
        }
        self.input = rest;
        Ok(Frame { max_block, block_checksum: flags & BLOCK_CHECKSUM != 0 })
    }

    /// The next block and whether it is stored, or none at the end mark.
    fn next_block(&mut self, frame: Frame) -> Result<Option<(&'a [u8], bool)>, BatchError> {
        let field = self.u32()?;
        let len = (field & !STORED) as usize;
        if len == 0 {
            return Ok(None);
        }
        if len > frame.max_block {
            return Err(bad("a block is longer than the frame allows"));
        }
        let (block, rest) =
            self.input.split_at_checked(len).ok_or_else(|| bad("a block is longer than the frame"))?;
        self.input = rest;
        if frame.block_checksum && self.u32()? != xxh32(block) {
            return Err(bad("block checksum mismatch"));
        }
        Ok(Some((block, field & STORED != 0)))
    }
}

impl ChunkSource for Source<'_> {
    fn next_chunk(&mut self, decoders: &mut Decoders, budget: &mut Budget) -> Result<usize, BatchError> {
        let frame = match self.frame {
            Some(frame) => frame,
            None => {
                let frame = self.begin()?;
                *self.frame.insert(frame)
            }
        };
        while !self.ended {
            let Some((block, stored)) = self.next_block(frame)? else {
                self.ended = true;
                break;
            };
            let len = if stored {
                decoders.space(block.len()).copy_from_slice(block);
                block.len()
            } else {
                let space = decoders.space(frame.max_block.min(block.len().saturating_mul(MAX_RATIO)));
                decompress_into(block, space).map_err(|_| bad("damaged block"))?
            };
            budget.take(len)?;
            if len > 0 {
                return Ok(len);
            }
        }
        Ok(0)
    }
}
