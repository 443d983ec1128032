//! One connection: one task that reads requests, hands them over, and writes their answers in order.
//!
//! Rules. A request starts when all earlier ones are answered; only produces may overlap, at most
//! [`MAX_PRODUCES`] of [`MAX_PRODUCE_BYTES`] together. What may not start is not read either, beyond the one
//! read that found it, so TCP holds a peer back that asks faster than it is served or does not read its
//! answers. A half-closed connection is served until its requests are answered. A muted one starts nothing
//! (KIP-219). One on which nothing happens for too long is closed (KAFKA-7453: also if it never spoke), but
//! not while a request of it is served.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::close_reason::CloseReason;
use crate::counters::ListenerCounters;
use crate::exchange::{Exchange, Status};
use crate::frame_reader::{Fill, FrameReader, PREFIX_LEN};
use crate::handler::{ConnectionInfo, FrameHandler, Outcome};
use crate::part_writer::{PartWriter, RangeMode};
use crate::table::Seat;

/// Produce requests of one connection that may be in service together.
pub const MAX_PRODUCES: usize = 5;
/// Bytes of the frames of these requests; a single one may be larger.
pub const MAX_PRODUCE_BYTES: usize = 16 * 1024 * 1024;
/// The API key of Produce.
const PRODUCE_KEY: [u8; 2] = [0, 0];

/// What all connections of a listener have in common.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionSettings {
    /// The largest frame in bytes (`socket.request.max.bytes`).
    pub max_frame_bytes: usize,
    /// After how long without any traffic a connection is closed (`connections.max.idle.ms`); none: never.
    pub max_idle: Option<Duration>,
    /// How ranges of files are sent.
    pub range_mode: RangeMode,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            max_frame_bytes: 104_857_600,
            max_idle: Some(Duration::from_secs(600)),
            range_mode: RangeMode::default(),
        }
    }
}

/// A connection being served; a future that ends with it.
pub(crate) struct Connection {
    stream: TcpStream,
    info: Arc<ConnectionInfo>,
    handler: Arc<dyn FrameHandler>,
    exchange: Arc<Exchange>,
    reader: FrameReader,
    writer: PartWriter,
    max_idle: Option<Duration>,
    counters: Arc<ListenerCounters>,
    /// The peer has said all it wants to say.
    ended: bool,
    /// The handler wants the connection closed when all before is written.
    closing: Option<CloseReason>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Something was read or written since the last rest.
    active: bool,
    seat: Seat,
}

impl Connection {
    pub(crate) fn new(
        stream: TcpStream,
        info: Arc<ConnectionInfo>,
        handler: Arc<dyn FrameHandler>,
        settings: &ConnectionSettings,
        seat: Seat,
    ) -> Self {
        Self {
            stream,
            info,
            handler,
            exchange: Arc::clone(seat.exchange()),
            reader: FrameReader::new(settings.max_frame_bytes),
            writer: PartWriter::new(settings.range_mode),
            max_idle: settings.max_idle,
            counters: Arc::clone(seat.counters()),
            ended: false,
            closing: None,
            timer: None,
            active: false,
            seat,
        }
    }

    fn step(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        loop {
            let status = self.start_requests();
            if let Some(reason) = status.ordered_to_end {
                return Poll::Ready(reason);
            }
            let (written, flushed) = self.writer.poll_flush(cx, &mut self.stream, &self.counters);
            if written > 0 {
                self.counters.bytes_out.add(written as u64);
                self.active = true;
            }
            if let Poll::Ready(Err(error)) = flushed {
                return Poll::Ready(CloseReason::Failed(error.kind()));
            }
            if let Some(reason) = self.finished(&status) {
                return Poll::Ready(reason);
            }
            if self.may_read(&status) {
                match self.reader.poll_fill(cx, &mut self.stream) {
                    Poll::Ready(Ok(Fill::Bytes(count))) => {
                        self.counters.bytes_in.add(count as u64);
                        self.active = true;
                        continue;
                    }
                    Poll::Ready(Ok(Fill::End)) => {
                        self.ended = true;
                        continue;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(CloseReason::Failed(error.kind())),
                    Poll::Pending => {}
                }
            } else if self.reader.peek().is_some_and(|frame| self.may_start(frame, &status)) {
                // The write has made room for it.
                continue;
            }
            if !self.exchange.sleep(cx, &status) {
                continue;
            }
            if std::mem::take(&mut self.active) {
                self.seat.touch();
            }
            match self.poll_timer(cx, &status) {
                None => return Poll::Pending,
                Some(Due::Idle) => return Poll::Ready(CloseReason::Idle),
                Some(Due::Unmute) => {}
            }
        }
    }

    /// Starts all requests that may start, and queues the answers that are due.
    fn start_requests(&mut self) -> Status {
        loop {
            let status = self.queue_answers();
            let frame = match self.reader.peek() {
                Some(frame) if self.may_start(frame, &status) => self.reader.take(),
                _ => None,
            };
            let Some(frame) = frame else { return status };
            self.counters.requests.add(1);
            self.counters.request_bytes.add((frame.len() + PREFIX_LEN) as u64);
            let reply = self.exchange.open(frame.len(), !is_produce(&frame));
            self.handler.handle(&self.info, frame, reply);
        }
    }

    /// Queues the answers that are due in order.
    fn queue_answers(&mut self) -> Status {
        loop {
            let (outcome, status) = self.exchange.next_answer();
            match outcome {
                None => return status,
                Some(_) if self.closing.is_some() => {}
                Some(Outcome::NoResponse) => {}
                Some(Outcome::Respond(parts)) => {
                    self.counters.responses.add(1);
                    if self.writer.push(parts).is_err() {
                        self.closing = Some(CloseReason::ResponseTooLong);
                    }
                }
                Some(Outcome::Close { reason }) => {
                    tracing::info!(connection = %self.info, listener = %self.info.listener, reason, "closing");
                    self.closing = Some(CloseReason::Handler);
                }
            }
        }
    }

    /// Whether no request may start, whatever it is.
    fn is_held(&self, status: &Status) -> bool {
        self.closing.is_some()
            || status.draining
            || !self.writer.has_room()
            || status.exclusive
            || status.requests >= MAX_PRODUCES
            || status.muted
    }

    fn may_start(&self, frame: &Bytes, status: &Status) -> bool {
        !self.is_held(status)
            && (status.requests == 0
                || is_produce(frame) && status.bytes.saturating_add(frame.len()) <= MAX_PRODUCE_BYTES)
    }

    fn may_read(&self, status: &Status) -> bool {
        let size = self.reader.begun().unwrap_or(0);
        !self.ended
            && self.reader.peek().is_none()
            && self.reader.failure().is_none()
            && !self.is_held(status)
            && (status.requests == 0 || status.bytes.saturating_add(size) <= MAX_PRODUCE_BYTES)
    }

    /// Whether and why the connection is at its end.
    fn finished(&self, status: &Status) -> Option<CloseReason> {
        if !self.writer.is_empty() {
            return None;
        }
        if self.closing.is_some() || status.requests > 0 {
            return self.closing;
        }
        if status.draining {
            return Some(CloseReason::Shutdown);
        }
        if self.reader.peek().is_some() {
            return None;
        }
        let failure = self.reader.failure().map(CloseReason::InvalidFrame);
        failure.or(self.ended.then_some(CloseReason::Peer))
    }

    /// Arms the timer for what is due first. It is never moved to a later time, only set again when it has
    /// fired too early, so that traffic costs nothing.
    fn poll_timer(&mut self, cx: &mut Context<'_>, status: &Status) -> Option<Due> {
        let (due, at) = match (status.mute_until.filter(|_| status.muted), self.max_idle) {
            (Some(until), _) => (Due::Unmute, until),
            (None, Some(max_idle)) if status.requests == 0 => (Due::Idle, self.seat.touched() + max_idle),
            (None, _) => return None,
        };
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
            if timer.deadline() > at {
                timer.as_mut().reset(at);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return None;
            }
            if Instant::now() >= at {
                return Some(due);
            }
            timer.as_mut().reset(at);
        }
    }
}

/// What the timer was for.
#[derive(Clone, Copy)]
enum Due {
    Idle,
    Unmute,
}

fn is_produce(frame: &Bytes) -> bool {
    frame.starts_with(&PRODUCE_KEY)
}

impl Future for Connection {
    type Output = CloseReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CloseReason> {
        let reason = std::task::ready!(self.step(cx));
        match reason {
            CloseReason::Idle => self.counters.connections_expired.add(1),
            CloseReason::InvalidFrame(_) => self.counters.invalid_frames.add(1),
            _ => {}
        }
        match reason {
            CloseReason::Peer | CloseReason::Idle | CloseReason::Shutdown | CloseReason::Handler => {
                tracing::debug!(connection = %self.info, listener = %self.info.listener, %reason, "closed");
            }
            _ => tracing::info!(connection = %self.info, listener = %self.info.listener, %reason, "closed"),
        }
        Poll::Ready(reason)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.exchange.close();
        self.handler.closed(&self.info);
    }
}
