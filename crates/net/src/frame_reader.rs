//! Cuts the bytes of a connection into frames: an int32 size and that many bytes.
//!
//! While nothing is on its way a reader holds no buffer: bytes are read into memory that the thread's
//! connections share, and small frames are copied out of it, so that one system call reads a whole small
//! request. A larger frame gets a buffer of its own, which grows with what has arrived: a size is only a
//! claim. A size that no frame may have is told after all frames before it have been taken.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

/// Bytes of a size prefix.
pub(crate) const PREFIX_LEN: usize = 4;
/// Bytes read at once when no frame has been begun.
const SCRATCH_LEN: usize = 8 * 1024;
/// The first buffer of a frame of which little has arrived.
const SMALL_STEP: usize = 4 * 1024;
/// The least buffer of a frame of which more has arrived.
const LARGE_STEP: usize = 256 * 1024;
/// By how much a frame's buffer may exceed what has arrived.
const GROWTH: usize = 4;
/// Frames for which the queue keeps its memory.
const KEPT_READY: usize = 16;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_LEN].into_boxed_slice());
}

/// A size prefix that no frame may have. The connection is closed without an answer.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// The size is negative.
    #[error("frame of negative size {0}{hint}", hint = hint(*.0))]
    Negative(i32),
    /// The size is zero, which leaves no room for a header.
    #[error("frame of size zero")]
    Empty,
    /// The size exceeds the limit.
    #[error("frame of {size} bytes exceeds the limit of {limit}{hint}", hint = hint(*.size))]
    TooLarge {
        /// The size as told.
        size: i32,
        /// The limit (`socket.request.max.bytes`).
        limit: usize,
    },
}

/// Names the protocol whose first bytes make such a size, since that is the usual reason for one.
fn hint(size: i32) -> &'static str {
    match &size.to_be_bytes() {
        b"GET " | b"HEAD" | b"POST" | b"PUT " | b"OPTI" | b"DELE" => {
            ": these are the first bytes of an HTTP request"
        }
        [0x16, 0x03, ..] => {
            ": these are the first bytes of a TLS handshake, but this listener speaks plain text"
        }
        b"SSH-" => ": these are the first bytes of an SSH greeting",
        _ => "",
    }
}

/// What one attempt to read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// So many bytes.
    Bytes(usize),
    /// The peer will send nothing more.
    End,
}

enum Partial {
    Prefix { bytes: [u8; PREFIX_LEN], have: usize },
    Body { size: usize, bytes: BytesMut },
}

const NOTHING: Partial = Partial::Prefix { bytes: [0; PREFIX_LEN], have: 0 };

/// Reads frames of at most `limit` bytes.
pub(crate) struct FrameReader {
    limit: usize,
    ready: VecDeque<Bytes>,
    partial: Partial,
    failure: Option<FrameError>,
}

impl FrameReader {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ready: VecDeque::new(), partial: NOTHING, failure: None }
    }

    /// The next whole frame that has been read, without its size, left where it is.
    pub(crate) fn peek(&self) -> Option<&Bytes> {
        self.ready.front()
    }

    /// Takes the next whole frame that has been read.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        let frame = self.ready.pop_front();
        if self.ready.is_empty() && self.ready.capacity() > KEPT_READY {
            self.ready.shrink_to(KEPT_READY);
        }
        frame
    }

    /// Why nothing more can be read once all frames are taken.
    pub(crate) fn failure(&self) -> Option<FrameError> {
        if self.ready.is_empty() { self.failure } else { None }
    }

    /// The size of the frame of which only a part has been read.
    pub(crate) fn begun(&self) -> Option<usize> {
        match &self.partial {
            Partial::Prefix { .. } => None,
            Partial::Body { size, .. } => Some(*size),
        }
    }

    /// Reads once. To be called only when all whole frames are taken and nothing has failed.
    pub(crate) fn poll_fill<S>(&mut self, cx: &mut Context<'_>, stream: &mut S) -> Poll<io::Result<Fill>>
    where
        S: AsyncRead + Unpin,
    {
        let count = match &mut self.partial {
            Partial::Body { size, bytes } => {
                if bytes.len() == bytes.capacity() {
                    bytes.reserve(next_capacity(*size, bytes.len()).saturating_sub(bytes.len()));
                }
                let missing = size.saturating_sub(bytes.len());
                let count = ready!(poll_read_buf(Pin::new(stream), cx, &mut bytes.limit(missing)))?;
                if bytes.len() >= *size {
                    self.ready.push_back(std::mem::take(bytes).freeze());
                    self.partial = NOTHING;
                }
                count
            }
            Partial::Prefix { .. } => ready!(SCRATCH.with_borrow_mut(|scratch| {
                let mut read = ReadBuf::new(scratch);
                ready!(Pin::new(stream).poll_read(cx, &mut read))?;
                self.absorb(read.filled());
                Poll::Ready(io::Result::Ok(read.filled().len()))
            }))?,
        };
        Poll::Ready(Ok(if count == 0 { Fill::End } else { Fill::Bytes(count) }))
    }

    /// Cuts bytes that follow the end of a frame, or a part of a size prefix.
    fn absorb(&mut self, mut data: &[u8]) {
        while let Partial::Prefix { bytes, have } = &mut self.partial {
            let missing = PREFIX_LEN.saturating_sub(*have).min(data.len());
            let (head, rest) = data.split_at(missing);
            if let Some(free) = bytes.get_mut(*have..*have + missing) {
                free.copy_from_slice(head);
            }
            *have += missing;
            if *have < PREFIX_LEN {
                return;
            }
            let size = match checked_size(i32::from_be_bytes(*bytes), self.limit) {
                Ok(size) => size,
                Err(failure) => {
                    self.failure = Some(failure);
                    return;
                }
            };
            if let Some((frame, rest)) = rest.split_at_checked(size) {
                self.ready.push_back(Bytes::copy_from_slice(frame));
                self.partial = NOTHING;
                data = rest;
            } else {
                let mut body = BytesMut::with_capacity(next_capacity(size, rest.len()));
                body.extend_from_slice(rest);
                self.partial = Partial::Body { size, bytes: body };
            }
        }
    }

    /// Bytes of memory held for frames that are not taken yet.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        let partial = match &self.partial {
            Partial::Prefix { .. } => 0,
            Partial::Body { bytes, .. } => bytes.capacity(),
        };
        partial
            + self.ready.iter().map(Bytes::len).sum::<usize>()
            + self.ready.capacity() * size_of::<Bytes>()
    }
}

/// Cuts `stream`, which arrives in pieces of at most `piece` bytes, into frames of at most `limit` bytes, as a
/// connection does; and says what ended it, if not the end of the stream.
#[must_use]
pub fn split_frames(stream: &[u8], piece: usize, limit: usize) -> (Vec<Bytes>, Option<FrameError>) {
    let mut reader = FrameReader::new(limit);
    let mut frames = Vec::new();
    let mut context = Context::from_waker(std::task::Waker::noop());
    for mut arriving in stream.chunks(piece.max(1)) {
        while !arriving.is_empty() && reader.failure.is_none() {
            if !matches!(reader.poll_fill(&mut context, &mut arriving), Poll::Ready(Ok(Fill::Bytes(_)))) {
                break;
            }
            frames.extend(std::iter::from_fn(|| reader.take()));
        }
    }
    (frames, reader.failure())
}

/// The size that a prefix tells, if a frame may have it.
pub(crate) fn checked_size(size: i32, limit: usize) -> Result<usize, FrameError> {
    match usize::try_from(size) {
        Err(_) => Err(FrameError::Negative(size)),
        Ok(0) => Err(FrameError::Empty),
        Ok(bytes) if bytes > limit => Err(FrameError::TooLarge { size, limit }),
        Ok(bytes) => Ok(bytes),
    }
}

/// The buffer that a frame of `size` bytes deserves when `arrived` of them are here.
fn next_capacity(size: usize, arrived: usize) -> usize {
    let least = if arrived < SMALL_STEP { SMALL_STEP } else { LARGE_STEP };
    size.min(arrived.saturating_mul(GROWTH).max(least))
}

#[cfg(test)]
mod tests;
