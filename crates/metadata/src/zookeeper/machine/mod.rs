//! The session with an ensemble as a pure machine: what to send, whom to answer and what to tell, from what arrives and
//! from the time.
//!
//! Requests stand in one queue, in which they are sent and answered; a lost connection fails the writes that were under
//! way, since they may have taken effect, and sends reads again. While a session lives, connections come and go and its
//! watches are set again. Once the ensemble has ended it, nothing is sent until the owner asks for a new one.

mod link;
mod queue;

use super::chroot::Chroot;
use super::codes::{self, xid};
use super::credentials::SessionCredentials;
use super::jute::FrameReader;
use super::reply::Greeting;
use super::watches::WatchSet;
use super::{reply, request};
use crate::store::{Done, OpError, Request, Response, SessionId, StoreError, StoreEvent};
use bytes::Bytes;
use link::Link;
use queue::{Answered, Outgoing, Queue};
use std::time::{Duration, Instant};

/// How long the orderly end of a session may take.
pub(super) const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// What a session is told once.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// How many servers there are to try.
    pub(super) servers: usize,
    /// The timeout that is wished for.
    pub(super) session_timeout: Duration,
    /// How many requests may be under way.
    pub(super) max_in_flight: usize,
    /// Where paths begin.
    pub(super) chroot: Chroot,
}

/// What happens to the session.
pub(super) enum Input {
    /// A request comes in.
    Submit(Request, Done),
    /// The owner wants a new session after the end of the old one.
    Renew,
    /// The owner wants the session to end.
    Close,
    /// The connection that was asked for is there.
    Connected,
    /// The connection, or the try to have one, failed.
    Lost(String),
    /// A frame has arrived, without its length.
    Frame(Bytes),
    /// A frame of so many bytes announces itself, which is more than is read.
    Oversized(usize),
    /// The deadline has come.
    Tick,
}

/// What is to be done.
pub(super) enum Output {
    /// Give up any connection and connect to the server of that number.
    Dial(usize),
    /// Send a frame.
    Send(Bytes),
    /// Give the connection up.
    HangUp,
    /// Keep what proves the new session one's own; before anything is done in its name.
    Keep(SessionCredentials),
    /// Tell the owner.
    Tell(StoreEvent),
    /// Answer a request.
    Answer(Done, Result<Response, StoreError>),
    /// Note how long a request took from its sending to its answer.
    Took(Duration),
    /// A connection could not be had or was lost, and why; for the operator.
    Trouble(String),
    /// All is over.
    Finished,
}

enum Phase {
    /// A new session is to be begun.
    Opening,
    /// The session lives, as far as is known.
    Living(SessionCredentials),
    /// The ensemble has ended the session.
    Expired,
    /// The owner has ended the session, or given up.
    Closed,
}

/// See the module's text.
pub(super) struct Machine {
    settings: Settings,
    phase: Phase,
    link: Link,
    queue: Queue,
    watches: WatchSet,
    /// The newest state of the tree that the session has seen.
    last_zxid: i64,
    /// Until when the session shall have been ended in order.
    closing_until: Option<Instant>,
    /// When the ensemble was heard of last, and the longest time between two such moments of one session.
    heard: Option<Instant>,
    longest_silence: Duration,
}

impl Machine {
    /// A machine that begins a session, or takes up the one that `resumed` proves to be its own.
    pub(super) fn new(settings: Settings, resumed: Option<SessionCredentials>, now: Instant) -> Self {
        Self {
            link: Link::new(&settings, now),
            queue: Queue::new(settings.max_in_flight),
            settings,
            phase: resumed.map_or(Phase::Opening, Phase::Living),
            watches: WatchSet::default(),
            last_zxid: 0,
            closing_until: None,
            heard: None,
            longest_silence: Duration::ZERO,
        }
    }

    /// When [`Input::Tick`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let link = self.link.deadline();
        match (link, self.closing_until) {
            (Some(link), Some(closing)) => Some(link.min(closing)),
            (one, other) => one.or(other),
        }
    }

    /// Takes one input.
    pub(super) fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Submit(request, done) => self.submit(now, request, done, out),
            Input::Renew => self.renew(now),
            Input::Close => self.close(now, out),
            Input::Connected => self.connected(out),
            Input::Lost(reason) => self.lost(now, reason, out),
            Input::Frame(frame) => self.frame(now, frame, out),
            Input::Oversized(bytes) => self.oversized(now, bytes, out),
            Input::Tick => {}
        }
        self.tick(now, out);
    }

    fn submit(&mut self, now: Instant, request: Request, done: Done, out: &mut Vec<Output>) {
        if self.closing_until.is_some() {
            return out.push(Output::Answer(done, Err(StoreError::Closed)));
        }
        let refused = match &self.phase {
            Phase::Closed => Some(StoreError::Closed),
            Phase::Expired => Some(StoreError::SessionExpired),
            Phase::Opening | Phase::Living(_) => request::check(&request).err(),
        };
        match refused {
            Some(error) => self.queue.push_answered(request, done, Err(error)),
            None if matches!(&request, Request::Multi(ops) if ops.is_empty()) => {
                self.queue.push_answered(request, done, Ok(Response::Multi(Vec::new())));
            }
            None => self.queue.push(request, done),
        }
        self.queue.take_answered(out);
        self.pump(now, out);
    }

    fn renew(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Expired) {
            self.phase = Phase::Opening;
            self.link.dial_at(now);
        }
    }

    fn close(&mut self, now: Instant, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Living(_) if self.closing_until.is_none() => {
                self.closing_until = Some(now + CLOSE_LIMIT);
                self.queue.push_close();
                self.pump(now, out);
            }
            Phase::Opening | Phase::Expired => self.finish(out),
            Phase::Living(_) | Phase::Closed => {}
        }
    }

    fn connected(&mut self, out: &mut Vec<Output>) {
        if !self.link.connected() {
            return;
        }
        let resumed = match &self.phase {
            Phase::Living(credentials) => Some(credentials),
            _ => None,
        };
        let timeout_ms = i32::try_from(self.settings.session_timeout.as_millis()).unwrap_or(i32::MAX);
        out.push(Output::Send(request::connect(self.last_zxid, timeout_ms, resumed)));
    }

    /// The connection is gone, or of no use.
    fn lost(&mut self, now: Instant, reason: String, out: &mut Vec<Output>) {
        if self.link.is_idle() {
            return;
        }
        let was_up = self.link.is_up();
        self.link.lost(now);
        if was_up {
            self.tell(StoreEvent::Disconnected, out);
        }
        out.push(Output::Trouble(reason));
        let close_was_sent = self.queue.connection_lost();
        self.queue.take_answered(out);
        if close_was_sent {
            self.finish(out);
        }
    }

    /// The connection is given up for a reason of this side's.
    fn give_up(&mut self, now: Instant, reason: &str, out: &mut Vec<Output>) {
        out.push(Output::HangUp);
        self.lost(now, reason.to_owned(), out);
    }

    /// To ask again would bring the same again.
    fn oversized(&mut self, now: Instant, bytes: usize, out: &mut Vec<Output>) {
        if self.link.is_up() {
            self.queue.refuse_eldest(OpError::TooLarge.into());
        }
        self.give_up(now, &format!("an answer of {bytes} bytes is more than is read"), out);
    }

    fn frame(&mut self, now: Instant, frame: Bytes, out: &mut Vec<Output>) {
        if self.link.is_greeting() {
            match reply::greeting(frame) {
                Ok(greeting) => self.greeted(now, greeting, out),
                Err(malformed) => self.give_up(now, &malformed.to_string(), out),
            }
        } else if self.link.is_up() {
            self.link.received(now);
            self.hear(now);
            if let Err(reason) = self.reply(now, frame, out) {
                self.give_up(now, &reason, out);
            } else if self.queue.is_closed() {
                self.finish(out);
            } else {
                self.pump(now, out);
            }
        }
    }

    fn greeted(&mut self, now: Instant, greeting: Greeting, out: &mut Vec<Output>) {
        let Greeting::Session { credentials, timeout } = greeting else {
            return match self.phase {
                Phase::Living(_) => self.expired(out),
                _ => self.give_up(now, "the server gave no session", out),
            };
        };
        let session_id = credentials.id;
        match &self.phase {
            Phase::Living(known) if known.id != session_id => {
                return self.give_up(now, "the server answered for another session", out);
            }
            Phase::Living(_) => {}
            _ => {
                self.phase = Phase::Living(credentials.clone());
                out.push(Output::Keep(credentials));
            }
        }
        self.link.greeted(now, timeout);
        self.hear(now);
        self.tell(StoreEvent::Connected { session_id }, out);
        let watches = request::set_watches(self.last_zxid, self.watches.iter(), &self.settings.chroot);
        out.extend(watches.into_iter().map(Output::Send));
        self.pump(now, out);
    }

    /// The ensemble has ended the session.
    fn expired(&mut self, out: &mut Vec<Output>) {
        out.push(Output::HangUp);
        self.link.rest();
        self.phase = Phase::Expired;
        self.heard = None;
        self.watches.clear();
        self.last_zxid = 0;
        self.tell(StoreEvent::SessionExpired, out);
        self.queue.refuse_all(&StoreError::SessionExpired);
        self.queue.take_answered(out);
        if self.closing_until.is_some() {
            self.finish(out);
        }
    }

    /// Takes a frame of a session at work; the reason if the connection is of no use any more.
    fn reply(&mut self, now: Instant, frame: Bytes, out: &mut Vec<Output>) -> Result<(), String> {
        let mut reader = FrameReader(frame);
        let header = reply::header(&mut reader).map_err(|malformed| malformed.to_string())?;
        if header.zxid > 0 {
            self.last_zxid = header.zxid;
        }
        match header.xid {
            xid::NOTIFICATION => {
                let event = reply::notification(&mut reader).map_err(|malformed| malformed.to_string())?;
                let Some((kind, path)) = event else { return Ok(()) };
                let path = self.settings.chroot.inward(&path);
                if let Some(path) = path.and_then(|path| self.watches.fire(path, kind)) {
                    self.tell(StoreEvent::Node { path, kind }, out);
                }
                return Ok(());
            }
            xid::PING => return Ok(()),
            xid::SET_WATCHES if header.code == codes::OK => return Ok(()),
            xid::SET_WATCHES => {
                return Err(format!("watches were not set again: error {}", header.code));
            }
            _ => {}
        }
        if matches!(header.code, codes::SESSION_EXPIRED | codes::SESSION_MOVED) {
            return Err(format!("the server does not have the session: error {}", header.code));
        }
        let chroot = &self.settings.chroot;
        let Answered { sent_at, succeeded } = self.queue.answer(header.xid, |request| {
            reply::outcome(request, header.code, &mut reader, chroot)
                .map_err(|malformed| malformed.to_string())
        })?;
        if let Some((request, response)) = succeeded {
            self.watches.answered(request, response);
        }
        out.push(Output::Took(now.saturating_duration_since(sent_at)));
        self.queue.take_answered(out);
        Ok(())
    }

    /// Sends what may be sent.
    fn pump(&mut self, now: Instant, out: &mut Vec<Output>) {
        if !self.link.is_up() {
            return;
        }
        let chroot = &self.settings.chroot;
        let before = out.len();
        self.queue.send(now, |outgoing, number| {
            out.push(Output::Send(match outgoing {
                Outgoing::Request(request) => request::encode(number, request, chroot),
                Outgoing::Close => request::close_session(number),
            }));
        });
        if out.len() > before {
            self.link.sent(now);
        }
        self.queue.take_answered(out);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.closing_until.is_some_and(|until| until <= now) && !matches!(self.phase, Phase::Closed) {
            return self.finish(out);
        }
        match self.link.tick(now) {
            link::Due::Nothing => {}
            link::Due::Dial(server) => out.push(Output::Dial(server)),
            link::Due::Ping => {
                out.push(Output::Send(request::ping()));
                self.link.sent(now);
            }
            link::Due::GiveUp(reason) => self.give_up(now, reason, out),
        }
    }

    fn tell(&self, event: StoreEvent, out: &mut Vec<Output>) {
        if self.closing_until.is_none() {
            out.push(Output::Tell(event));
        }
    }

    /// Ends all: what waits is answered. It does not end the session.
    pub(super) fn finish(&mut self, out: &mut Vec<Output>) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        out.push(Output::HangUp);
        self.link.rest();
        self.phase = Phase::Closed;
        self.queue.refuse_all(&StoreError::Closed);
        self.queue.take_answered(out);
        out.push(Output::Finished);
    }

    fn hear(&mut self, now: Instant) {
        let silence = self.heard.replace(now).map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.longest_silence = self.longest_silence.max(silence);
    }

    /// The longest time in which the ensemble was not heard of while a session lived.
    pub(super) fn longest_silence(&self) -> Duration {
        self.longest_silence
    }

    /// The session timeout that the server has granted, while there is a connection.
    pub(super) fn session_timeout(&self) -> Option<Duration> {
        self.link.session_timeout()
    }

    /// The id of the session, if one lives.
    pub(super) fn session_id(&self) -> Option<SessionId> {
        match &self.phase {
            Phase::Living(credentials) => Some(credentials.id),
            _ => None,
        }
    }
}
