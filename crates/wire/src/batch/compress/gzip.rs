//! gzip (RFC 1952): members one after the other, read as one stream.
//!
//! Like Java's reader, bytes behind the last member that do not begin another one are ignored.

use std::io::Write;

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::scratch::{Budget, CHUNK, ChunkSource, Decoders};
use super::{BatchError, CompressError, CompressionType};

/// The library's own choice of level.
pub(super) const DEFAULT_LEVEL: i32 = -1;

const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const HEADER_CRC: u8 = 0x02;
const EXTRA: u8 = 0x04;
const NAME: u8 = 0x08;
const COMMENT: u8 = 0x10;

fn bad(reason: &'static str) -> BatchError {
    BatchError::Compressed(CompressError { codec: CompressionType::Gzip, reason })
}

/// Compresses into one member.
pub(super) fn compress(data: &[u8], level: i32) -> Result<Vec<u8>, CompressError> {
    let level =
        u32::try_from(level).map_or_else(|_| flate2::Compression::default(), flate2::Compression::new);
    let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(data.len() / 4), level);
    encoder
        .write_all(data)
        .and_then(|()| encoder.finish())
        .map_err(|_| CompressError { codec: CompressionType::Gzip, reason: "cannot compress" })
}

/// A stream of gzip members.
pub(super) struct Source<'a> {
    input: &'a [u8],
    state: State,
}

enum State {
    /// No member has begun.
    Start,
    /// Inside a member: the checksum of its output so far.
    Member(Crc),
    /// Behind the last member.
    End,
}

impl<'a> Source<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self { input, state: State::Start }
    }

    /// Inflates once; returns the bytes put into `space`, and whether the member's data has ended.
    fn inflate(&mut self, inflate: &mut Decompress, space: &mut [u8]) -> Result<(usize, bool), BatchError> {
        let (read_before, written_before) = (inflate.total_in(), inflate.total_out());
        let status = inflate
            .decompress(self.input, space, FlushDecompress::None)
            .map_err(|_| bad("damaged deflate stream"))?;
        let read = (inflate.total_in() - read_before) as usize;
        let written = (inflate.total_out() - written_before) as usize;
        self.input = self.input.get(read..).unwrap_or_default();
        let ended = matches!(status, Status::StreamEnd);
        if !ended && read == 0 && written == 0 {
            return Err(bad("the stream ends early"));
        }
        Ok((written, ended))
    }

    /// Checks the trailer of a member and goes on to the next one, if any.
    fn end_member(&mut self, crc: &Crc) -> Result<(), BatchError> {
        let Some((trailer, rest)) = self.input.split_first_chunk::<8>() else {
            return Err(bad("the trailer is missing"));
        };
        let [c0, c1, c2, c3, l0, l1, l2, l3] = *trailer;
        if u32::from_le_bytes([c0, c1, c2, c3]) != crc.sum() {
            return Err(bad("checksum mismatch"));
        }
        if u32::from_le_bytes([l0, l1, l2, l3]) != crc.amount() {
            return Err(bad("length mismatch"));
        }
        self.input = rest;
        self.state = if rest.starts_with(&MAGIC) { State::Start } else { State::End };
        Ok(())
    }
}

impl ChunkSource for Source<'_> {
    fn next_chunk(&mut self, decoders: &mut Decoders, budget: &mut Budget) -> Result<usize, BatchError> {
        let (inflate, space) = decoders.inflate_and_space(CHUNK);
        loop {
            match std::mem::replace(&mut self.state, State::End) {
                State::End => return Ok(0),
                State::Start => {
                    self.input = skip_header(self.input).ok_or_else(|| bad("malformed header"))?;
                    inflate.reset(false);
                    self.state = State::Member(Crc::new());
                }
                State::Member(mut crc) => {
                    let (written, ended) = self.inflate(inflate, space)?;
                    crc.update(space.get(..written).unwrap_or_default());
                    if ended {
                        self.end_member(&crc)?;
                    } else {
                        self.state = State::Member(crc);
                    }
                    if written > 0 {
                        budget.take(written)?;
                        return Ok(written);
                    }
                }
            }
        }
    }
}

/// What follows the header of a member, or none if it is malformed.
fn skip_header(input: &[u8]) -> Option<&[u8]> {
    let (fixed, mut rest) = input.split_first_chunk::<10>()?;
    let [m0, m1, method, flags, ..] = *fixed;
    if [m0, m1, method] != MAGIC {
        return None;
    }
    if flags & EXTRA != 0 {
        let (len, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_le_bytes(*len))..)?;
    }
    for flag in [NAME, COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & HEADER_CRC != 0 {
        rest = rest.get(2..)?;
    }
    Some(rest)
}
