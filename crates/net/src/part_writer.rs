//! Writes answers to a socket: what lies in memory by vectored writes, ranges of files as the mode says.
//!
//! A range is sent with the thread that serves the socket only while its pages are in memory, which is tried
//! without waiting (`preadv2` with `RWF_NOWAIT`); a cold piece is first read by the blocking pool, so that a
//! slow disk holds up nobody else. Copied ranges leave no buffer behind: what the socket did not take is read
//! again when it takes more.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::{SendAncillaryBuffer, SendFlags};
use tokio::io::{AsyncWrite, Interest};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::counters::ListenerCounters;
use crate::range::{Part, Range, RangeSource};

/// Bytes of ranges that one vectored write may copy.
const COPY_LEN: usize = 64 * 1024;
/// Pieces that one vectored write gathers.
const GATHERED: usize = 32;
/// Bytes of a range that are probed, warmed and sent at a time.
const SEND_STEP: u64 = 256 * 1024;
/// Bytes that the kernel is asked to read ahead of a cold range.
const READ_AHEAD: u64 = 1024 * 1024;
/// Bytes that the blocking pool reads at once.
const WARM_BUFFER: usize = 64 * 1024;

thread_local! {
    static COPY: RefCell<Box<[u8]>> = RefCell::new(vec![0; COPY_LEN].into_boxed_slice());
}

/// How ranges of files are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeMode {
    /// `pread` and `write`.
    Copy,
    /// `sendfile`, except that ranges shorter than this many bytes are copied: they then share one system call
    /// with what surrounds them.
    Sendfile {
        /// The least length in bytes for which `sendfile` is used.
        from: u64,
    },
}

impl Default for RangeMode {
    fn default() -> Self {
        // Below, the second system call costs more than the copy; at 1 MiB a copy costs twice as much.
        Self::Sendfile { from: 32 * 1024 }
    }
}

/// An answer whose length no size prefix can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

enum Piece {
    Size([u8; 4], usize),
    Bytes(Bytes),
    Range { range: Range, at: u64, warm_to: u64 },
    Warming { job: JoinHandle<(Range, io::Result<()>)>, at: u64, to: u64 },
}

/// The answers that are not written yet.
pub(crate) struct PartWriter {
    mode: RangeMode,
    pieces: VecDeque<Piece>,
    queued: u64,
}

/// What one vectored write may take.
struct Plan {
    /// How much of each range among the pieces lies in the buffer.
    copied: [usize; GATHERED],
    /// How many pieces take part; of the last one, if it is a range, perhaps only the beginning.
    pieces: usize,
    /// Whether a range that is sent by other means follows at once.
    more: bool,
}

/// What one step did.
enum Step {
    Wrote(usize),
    Prepared,
}

impl PartWriter {
    pub(crate) fn new(mode: RangeMode) -> Self {
        Self { mode, pieces: VecDeque::new(), queued: 0 }
    }

    /// Whether all is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether another answer may join those that wait for the next write: they are few and small.
    pub(crate) fn has_room(&self) -> bool {
        self.pieces.len() < GATHERED && self.queued < COPY_LEN as u64
    }

    /// Queues one answer behind its size.
    pub(crate) fn push(&mut self, parts: Vec<Part>) -> Result<(), TooLong> {
        let length = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part_len(part)));
        let size = i32::try_from(length).map_err(|_| TooLong)?;
        self.queued = self.queued.saturating_add(length).saturating_add(4);
        self.pieces.push_back(Piece::Size(size.to_be_bytes(), 0));
        for part in parts {
            match part {
                Part::Bytes(bytes) if bytes.is_empty() => {}
                Part::Bytes(bytes) => self.pieces.push_back(Piece::Bytes(bytes)),
                Part::Range(range) if range.len() == 0 => {}
                Part::Range(range) => self.pieces.push_back(Piece::Range { range, at: 0, warm_to: 0 }),
            }
        }
        Ok(())
    }

    /// Writes until all is written, the socket is full, or a piece is cold. Returns the bytes written so far
    /// in any case, since progress counts even when it is not the end.
    pub(crate) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut TcpStream,
        counters: &ListenerCounters,
    ) -> (usize, Poll<io::Result<()>>) {
        let mut written = 0usize;
        while !self.pieces.is_empty() {
            match self.poll_step(cx, stream, counters) {
                Poll::Ready(Ok(Step::Wrote(0))) => {
                    return (written, Poll::Ready(Err(io::ErrorKind::WriteZero.into())));
                }
                Poll::Ready(Ok(Step::Wrote(count))) => {
                    self.advance(count);
                    written = written.saturating_add(count);
                }
                Poll::Ready(Ok(Step::Prepared)) => {}
                Poll::Ready(Err(error)) => return (written, Poll::Ready(Err(error))),
                Poll::Pending => return (written, Poll::Pending),
            }
        }
        if self.pieces.capacity() > GATHERED {
            self.pieces.shrink_to(GATHERED);
        }
        (written, Poll::Ready(Ok(())))
    }

    fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut TcpStream,
        counters: &ListenerCounters,
    ) -> Poll<io::Result<Step>> {
        let mode = self.mode;
        match self.pieces.front_mut() {
            Some(Piece::Warming { job, at, to }) => {
                let (range, result) = ready!(Pin::new(job).poll(cx)).map_err(io::Error::other)?;
                result?;
                let (at, warm_to) = (*at, *to);
                if let Some(front) = self.pieces.front_mut() {
                    *front = Piece::Range { range, at, warm_to };
                }
                Poll::Ready(Ok(Step::Prepared))
            }
            Some(Piece::Range { range, at, warm_to }) if is_sent(mode, range.as_ref()) => {
                match poll_sendfile(cx, stream, range.as_ref(), *at, *warm_to) {
                    Poll::Ready(Ok(None)) => Poll::Ready(Ok(self.warm_front(counters))),
                    Poll::Ready(Ok(Some(count))) => Poll::Ready(Ok(Step::Wrote(count))),
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    Poll::Pending => Poll::Pending,
                }
            }
            _ => match COPY.with_borrow_mut(|buffer| self.poll_gathered(cx, stream, buffer)) {
                Poll::Ready(Ok(None)) => Poll::Ready(Ok(self.warm_front(counters))),
                Poll::Ready(Ok(Some(count))) => Poll::Ready(Ok(Step::Wrote(count))),
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    /// Writes as many pieces as fit into one system call. `None`: the first piece is cold.
    fn poll_gathered(
        &self,
        cx: &mut Context<'_>,
        stream: &mut TcpStream,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Option<usize>>> {
        // Nothing is read for a socket that takes nothing.
        ready!(stream.poll_write_ready(cx))?;
        let plan = self.copy_ranges(buffer)?;
        let mut slices = [IoSlice::new(&[]); GATHERED];
        let (mut rest, mut copied) = (&*buffer, plan.copied.iter());
        for (slice, piece) in slices.iter_mut().zip(&self.pieces).take(plan.pieces) {
            let bytes = match piece {
                Piece::Size(size, sent) => size.get(*sent..).unwrap_or_default(),
                Piece::Bytes(bytes) => bytes.as_ref(),
                Piece::Range { .. } | Piece::Warming { .. } => {
                    let count = copied.next().copied().unwrap_or_default();
                    let (head, tail) = rest.split_at_checked(count).unwrap_or_default();
                    rest = tail;
                    head
                }
            };
            *slice = IoSlice::new(bytes);
        }
        let slices = slices.get(..plan.pieces).unwrap_or_default();
        if slices.is_empty() {
            return Poll::Ready(Ok(None));
        }
        let written = if plan.more {
            ready!(poll_send_more(cx, stream, slices))?
        } else {
            ready!(Pin::new(stream).poll_write_vectored(cx, slices))?
        };
        Poll::Ready(Ok(Some(written)))
    }

    /// Reads the ranges among the first pieces into `buffer`, one after the other. Ends at a range that is not
    /// there as a whole: cold, or larger than the room left, or sent by other means.
    fn copy_ranges(&self, buffer: &mut [u8]) -> io::Result<Plan> {
        let mut plan = Plan { copied: [0; GATHERED], pieces: 0, more: false };
        let mut counts = plan.copied.iter_mut();
        let mut room = buffer;
        for piece in self.pieces.iter().take(GATHERED) {
            match piece {
                Piece::Size(..) | Piece::Bytes(_) => {}
                Piece::Warming { .. } => break,
                Piece::Range { range, .. } if is_sent(self.mode, range.as_ref()) => {
                    plan.more = true;
                    break;
                }
                Piece::Range { range, at, warm_to } => {
                    let left = range.len().saturating_sub(*at);
                    let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(room.len());
                    let (target, rest) = std::mem::take(&mut room).split_at_mut(wanted);
                    let count =
                        if wanted == 0 { 0 } else { read_now(range.as_ref(), target, *at, *warm_to)? };
                    room = rest;
                    if let Some(slot) = counts.next() {
                        *slot = count;
                    }
                    if count as u64 != left {
                        plan.pieces += usize::from(count > 0);
                        break;
                    }
                }
            }
            plan.pieces += 1;
        }
        Ok(plan)
    }

    /// Lets the blocking pool read the next step of the range in front.
    fn warm_front(&mut self, counters: &ListenerCounters) -> Step {
        if let Some(Piece::Range { range, at, .. }) = self.pieces.pop_front() {
            counters.cold_ranges.add(1);
            let to = at.saturating_add(SEND_STEP).min(range.len());
            let job = tokio::task::spawn_blocking(move || {
                let result = warm(range.as_ref(), at, to);
                (range, result)
            });
            self.pieces.push_front(Piece::Warming { job, at, to });
        }
        Step::Prepared
    }

    /// Forgets `count` bytes that are written.
    fn advance(&mut self, count: usize) {
        self.queued = self.queued.saturating_sub(count as u64);
        let mut left = count;
        while left > 0 {
            let (taken, done) = match self.pieces.front_mut() {
                None | Some(Piece::Warming { .. }) => return,
                Some(Piece::Size(bytes, sent)) => {
                    let taken = left.min(bytes.len().saturating_sub(*sent));
                    *sent += taken;
                    (taken, *sent == bytes.len())
                }
                Some(Piece::Bytes(bytes)) => {
                    let taken = left.min(bytes.len());
                    bytes.advance(taken);
                    (taken, bytes.is_empty())
                }
                Some(Piece::Range { range, at, .. }) => {
                    let rest = usize::try_from(range.len().saturating_sub(*at)).unwrap_or(usize::MAX);
                    let taken = left.min(rest);
                    *at += taken as u64;
                    (taken, *at == range.len())
                }
            };
            left = left.saturating_sub(taken);
            if done {
                self.pieces.pop_front();
            }
        }
    }
}

fn part_len(part: &Part) -> u64 {
    match part {
        Part::Bytes(bytes) => bytes.len() as u64,
        Part::Range(range) => range.len(),
    }
}

/// Whether `sendfile` sends this range.
fn is_sent(mode: RangeMode, range: &dyn RangeSource) -> bool {
    match mode {
        RangeMode::Copy => false,
        RangeMode::Sendfile { from } => range.len() >= from && range.fd().is_some(),
    }
}

/// Sends the next step of a range. `None`: it is cold.
fn poll_sendfile(
    cx: &mut Context<'_>,
    stream: &mut TcpStream,
    range: &dyn RangeSource,
    at: u64,
    warm_to: u64,
) -> Poll<io::Result<Option<usize>>> {
    let Some((file, start)) = range.fd() else { return Poll::Ready(Err(io::ErrorKind::Unsupported.into())) };
    loop {
        ready!(stream.poll_write_ready(cx))?;
        let end = if at < warm_to { warm_to } else { at.saturating_add(SEND_STEP).min(range.len()) };
        if at >= warm_to && !is_warm(range, at, end)? {
            return Poll::Ready(Ok(None));
        }
        let count = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        let sent = stream.try_io(Interest::WRITABLE, || {
            let mut position = start.saturating_add(at);
            Ok(rustix::fs::sendfile(&*stream, file, Some(&mut position), count)?)
        });
        match sent {
            Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => return Poll::Ready(sent.map(Some)),
        }
    }
}

/// Like a vectored write, but tells the kernel that more follows at once, so that it sends no small packet.
fn poll_send_more(
    cx: &mut Context<'_>,
    stream: &mut TcpStream,
    slices: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_write_ready(cx))?;
        let sent = stream.try_io(Interest::WRITABLE, || {
            let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
            Ok(rustix::net::sendmsg(&*stream, slices, &mut SendAncillaryBuffer::default(), flags)?)
        });
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => return Poll::Ready(sent),
        }
    }
}

/// Whether the first and the last byte from `at` to `end` are in memory. What lies between was read with them.
fn is_warm(range: &dyn RangeSource, at: u64, end: u64) -> io::Result<bool> {
    let mut byte = [0];
    Ok(read_now(range, &mut byte, at, 0)? > 0 && read_now(range, &mut byte, end.saturating_sub(1), 0)? > 0)
}

/// Reads what is in memory; zero if that is nothing. What was warmed already may be waited for.
fn read_now(range: &dyn RangeSource, buf: &mut [u8], at: u64, warm_to: u64) -> io::Result<usize> {
    let Some((file, start)) = range.fd() else { return some(range.read_at(buf, at)?) };
    if at < warm_to {
        let length = usize::try_from(warm_to.saturating_sub(at)).unwrap_or(usize::MAX).min(buf.len());
        let (buf, _) = buf.split_at_mut(length);
        return some(range.read_at(buf, at)?);
    }
    let position = start.saturating_add(at);
    match attempt(rustix::io::preadv2(file, &mut [IoSliceMut::new(buf)], position, ReadWriteFlags::NOWAIT))? {
        Attempt::Read(count) => some(count),
        Attempt::Cold => Ok(0),
        Attempt::Unknown => some(range.read_at(buf, at)?),
    }
}

/// What a read that must not wait has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    Read(usize),
    /// The bytes are not in memory.
    Cold,
    /// The file system cannot read without waiting.
    Unknown,
}

fn attempt(result: Result<usize, Errno>) -> io::Result<Attempt> {
    match result {
        Ok(count) => Ok(Attempt::Read(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Attempt::Cold),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Attempt::Unknown),
        Err(error) => Err(error.into()),
    }
}

/// A range that ends before its length is an error: its bytes were promised by the size of the answer.
fn some(count: usize) -> io::Result<usize> {
    if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(count) }
}

/// Reads from `at` to `to`, so that the pages are in memory, and lets the kernel begin with those that follow.
/// Runs on the blocking pool.
fn warm(range: &dyn RangeSource, at: u64, to: u64) -> io::Result<()> {
    let ahead = NonZeroU64::new(range.len().saturating_sub(at).min(READ_AHEAD));
    if let (Some((file, start)), Some(ahead)) = (range.fd(), ahead) {
        // Only advice: a file system that takes none is read all the same.
        let _ = rustix::fs::fadvise(file, start.saturating_add(at), Some(ahead), Advice::WillNeed);
    }
    let mut buffer = vec![0; WARM_BUFFER];
    let mut at = at;
    while at < to {
        let wanted = usize::try_from(to.saturating_sub(at)).unwrap_or(WARM_BUFFER).min(WARM_BUFFER);
        let (target, _) = buffer.split_at_mut(wanted);
        at = at.saturating_add(some(range.read_at(target, at)?)? as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
