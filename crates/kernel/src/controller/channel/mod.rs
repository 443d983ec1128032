//! The way from the controller to one broker: requests leave one after the other, and each is sent again until it is
//! answered.
//!
//! At most one request is under way. After a failure or a timeout the connection is closed, and the same request goes
//! out again [`RETRY_PAUSE_MS`] later, for ever: only the end of the broker's registration or of the controller's term
//! ends it. So a broker may get a request twice; leader epochs make the second one harmless. What a broker refuses as a
//! whole is delivered like any answer, and not sent again.
//!
//! Kafka lets requests for a broker that does not answer pile up without limit. Here [`coalesce`] drops what later
//! requests make void as soon as more than [`COALESCE_ABOVE`] wait, so that what is held is limited by the number of
//! partitions, not by the number of changes, and a broker that comes back learns the present, not the history.

mod coalesce;
mod replica_steps;

#[cfg(test)]
mod coalesce_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};

use wire::types::{BrokerId, Millis, Now};

use super::requests::{self, ControlMessage, ControlReply};
use super::values::{ControlRequest, ControlResponse};
use crate::metadata_version::MetadataVersion;

/// How long after a failure a request is sent again, in milliseconds.
pub const RETRY_PAUSE_MS: i64 = 100;

/// How many requests may wait before what later ones make void is dropped.
pub const COALESCE_ABOVE: usize = 256;

/// What happens to a channel.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The controller has something to tell the broker.
    Enqueue(ControlRequest),
    /// The broker answered the transmission `id`.
    Answered {
        /// The number of the transmission.
        id: u64,
        /// The answer.
        reply: ControlReply,
    },
    /// The transmission `id` failed: no connection, a lost one, an answer that cannot be read.
    Failed {
        /// The number of the transmission.
        id: u64,
    },
    /// The deadline has passed.
    Tick,
    /// The broker is gone, was started anew, or this controller's term is over. Nothing follows.
    Removed,
}

/// What a channel wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Send this, over a new connection if there is none; ends as [`Event::Answered`] or [`Event::Failed`].
    Transmit {
        /// The number of this transmission; an answer to an earlier one is ignored.
        id: u64,
        /// The request.
        message: ControlMessage,
        /// How long the request waited, if it is sent for the first time (`RequestRateAndQueueTimeMs`).
        queue_time: Option<Millis>,
    },
    /// Close the connection, and forget what is under way on it.
    Close,
    /// Tell the controller what the broker answered.
    Deliver(ControlResponse),
}

/// The requests for one run of one broker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    broker: BrokerId,
    release: MetadataVersion,
    request_timeout_ms: i64,
    waiting: VecDeque<Waiting>,
    under_way: Option<UnderWay>,
    /// The brokers that the last UpdateMetadata that left the queue called alive; unknown before the first.
    announced: Option<BTreeSet<BrokerId>>,
    /// [`COALESCE_ABOVE`], but in tests.
    limit: usize,
    coalesce_above: usize,
    transmissions: u64,
    removed: bool,
}

/// A request that has not been sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    request: ControlRequest,
    /// When it came, in monotonic milliseconds.
    since: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct UnderWay {
    request: ControlRequest,
    attempt: Attempt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Attempt {
    /// Sent under a number, and given up at the deadline.
    Sent { id: u64, deadline: i64 },
    /// To be sent again at this time.
    Paused { until: i64 },
}

impl Channel {
    /// A channel to `broker` in a cluster of `release`. A request counts as lost `request_timeout` after it was sent
    /// (`controller.socket.timeout.ms`).
    #[must_use]
    pub fn new(broker: BrokerId, release: MetadataVersion, request_timeout: Millis) -> Self {
        Self {
            broker,
            release,
            request_timeout_ms: request_timeout.0,
            waiting: VecDeque::new(),
            under_way: None,
            announced: None,
            limit: COALESCE_ABOVE,
            coalesce_above: COALESCE_ABOVE,
            transmissions: 0,
            removed: false,
        }
    }

    /// How many requests wait, without the one under way (`QueueSize`).
    #[must_use]
    pub fn queue_size(&self) -> usize {
        self.waiting.len()
    }

    /// When [`Event::Tick`] is due, in monotonic milliseconds.
    #[must_use]
    pub fn deadline(&self) -> Option<Millis> {
        let under_way = self.under_way.as_ref()?;
        Some(Millis(match under_way.attempt {
            Attempt::Sent { deadline, .. } => deadline,
            Attempt::Paused { until } => until,
        }))
    }

    /// Takes an event in.
    pub fn step(&mut self, now: Now, event: Event, out: &mut Vec<Command>) {
        if self.removed {
            return;
        }
        match event {
            Event::Enqueue(request) => self.enqueue(now, request, out),
            Event::Answered { id, reply } => self.answered(now, id, &reply, out),
            Event::Failed { id } if self.is_sent(id) => self.retry_later(now, out),
            Event::Failed { .. } => {}
            Event::Tick => self.tick(now, out),
            Event::Removed => {
                self.removed = true;
                self.waiting.clear();
                self.under_way = None;
                out.push(Command::Close);
            }
        }
    }

    /// Panics if an invariant does not hold; for tests and simulations.
    ///
    /// # Panics
    /// As it says.
    pub fn check(&self) {
        assert!(self.under_way.is_some() || self.waiting.is_empty(), "requests wait for nothing: {self:?}");
        assert!(self.waiting.len() <= self.coalesce_above, "too many requests wait");
        assert!(!self.removed || self.under_way.is_none(), "a removed channel is at work");
    }

    fn enqueue(&mut self, now: Now, request: ControlRequest, out: &mut Vec<Command>) {
        let parts = requests::split(request, self.release);
        self.waiting.extend(parts.into_iter().map(|request| Waiting { request, since: now.mono_ms }));
        if self.under_way.is_none() {
            self.send_next(now, out);
        }
        if self.waiting.len() > self.coalesce_above {
            let waiting = std::mem::take(&mut self.waiting);
            self.waiting = coalesce::coalesce(waiting, self.announced.as_ref(), self.broker, self.release);
            // Twice what is left, so that each request is looked at a limited number of times however many remain.
            self.coalesce_above = self.limit.max(self.waiting.len().saturating_mul(2));
        }
    }

    fn answered(&mut self, now: Now, id: u64, reply: &ControlReply, out: &mut Vec<Command>) {
        if !self.is_sent(id) {
            return;
        }
        let response = self.under_way.as_ref().and_then(|under_way| reply.read(&under_way.request));
        let Some(response) = response else {
            // The answer to another kind of request: what comes over this connection is not to be believed.
            return self.retry_later(now, out);
        };
        out.push(Command::Deliver(response));
        self.under_way = None;
        self.send_next(now, out);
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Command>) {
        match self.under_way.as_ref().map(|under_way| under_way.attempt) {
            Some(Attempt::Sent { deadline, .. }) if now.mono_ms >= deadline => self.retry_later(now, out),
            Some(Attempt::Paused { until }) if now.mono_ms >= until => {
                if let Some(UnderWay { request, .. }) = self.under_way.take() {
                    self.transmit(now, request, None, out);
                }
            }
            _ => {}
        }
    }

    fn is_sent(&self, wanted: u64) -> bool {
        let attempt = self.under_way.as_ref().map(|under_way| under_way.attempt);
        matches!(attempt, Some(Attempt::Sent { id, .. }) if id == wanted)
    }

    fn retry_later(&mut self, now: Now, out: &mut Vec<Command>) {
        if let Some(under_way) = &mut self.under_way {
            under_way.attempt = Attempt::Paused { until: now.mono_ms.saturating_add(RETRY_PAUSE_MS) };
            out.push(Command::Close);
        }
    }

    fn send_next(&mut self, now: Now, out: &mut Vec<Command>) {
        let Some(Waiting { request, since }) = self.waiting.pop_front() else { return };
        if self.waiting.is_empty() {
            self.coalesce_above = self.limit;
        }
        if let ControlRequest::UpdateMetadata(update) = &request {
            self.announced = Some(update.body.live_brokers.keys().copied().collect());
        }
        self.transmit(now, request, Some(Millis(now.mono_ms.saturating_sub(since))), out);
    }

    fn transmit(
        &mut self,
        now: Now,
        request: ControlRequest,
        queue_time: Option<Millis>,
        out: &mut Vec<Command>,
    ) {
        self.transmissions += 1;
        let id = self.transmissions;
        out.push(Command::Transmit { id, message: ControlMessage::new(&request, self.release), queue_time });
        let deadline = now.mono_ms.saturating_add(self.request_timeout_ms);
        self.under_way = Some(UnderWay { request, attempt: Attempt::Sent { id, deadline } });
    }
}
