//! The connection to one of the servers: when to try, when to give up, when to give a sign of life.

use super::Settings;
use std::time::{Duration, Instant};

/// The least and the longest time that a connection and its greeting may take.
const ATTEMPT: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));
/// The first and the longest pause after no server could be reached.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// What the time asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing.
    Nothing,
    /// To connect to the server of that number.
    Dial(usize),
    /// To give a sign of life.
    Ping,
    /// To give the connection up, and why.
    GiveUp(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No connection is wanted.
    Resting,
    /// The next try is due then.
    Down { dial_at: Instant },
    /// A connection is being made.
    Dialing { until: Instant },
    /// The first frame is sent, the answer awaited.
    Greeting { until: Instant },
    /// At work.
    Up { received: Instant, sent: Instant, timeout: Duration },
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct Link {
    state: State,
    servers: usize,
    attempt: Duration,
    next_server: usize,
    /// Tries in a row that came to nothing. A connection that was accepted but never answered anything counts, so
    /// that a server that hangs up on each request is not asked in a loop.
    failures: usize,
    is_useful: bool,
}

impl Link {
    pub(super) fn new(settings: &Settings, now: Instant) -> Self {
        let servers = settings.servers.max(1);
        let share = settings.session_timeout / u32::try_from(servers).unwrap_or(u32::MAX);
        Self {
            state: State::Down { dial_at: now },
            servers,
            attempt: share.clamp(ATTEMPT.0, ATTEMPT.1),
            next_server: 0,
            failures: 0,
            is_useful: false,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, State::Resting | State::Down { .. })
    }

    pub(super) fn is_greeting(&self) -> bool {
        matches!(self.state, State::Greeting { .. })
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// The timeout that the server has granted.
    pub(super) fn session_timeout(&self) -> Option<Duration> {
        match self.state {
            State::Up { timeout, .. } => Some(timeout),
            _ => None,
        }
    }

    /// No connection is wanted any more.
    pub(super) fn rest(&mut self) {
        self.state = State::Resting;
    }

    /// A connection is wanted from then on.
    pub(super) fn dial_at(&mut self, now: Instant) {
        self.failures = 0;
        self.state = State::Down { dial_at: now };
    }

    /// The connection is there; returns whether one was awaited.
    pub(super) fn connected(&mut self) -> bool {
        if let State::Dialing { until } = self.state {
            self.state = State::Greeting { until };
            return true;
        }
        false
    }

    /// The server has answered the greeting.
    pub(super) fn greeted(&mut self, now: Instant, timeout: Duration) {
        self.is_useful = false;
        self.state = State::Up { received: now, sent: now, timeout };
    }

    /// Something has arrived.
    pub(super) fn received(&mut self, now: Instant) {
        self.is_useful = true;
        if let State::Up { received, .. } = &mut self.state {
            *received = now;
        }
    }

    /// Something was sent.
    pub(super) fn sent(&mut self, now: Instant) {
        if let State::Up { sent, .. } = &mut self.state {
            *sent = now;
        }
    }

    /// The connection, or the try, has failed.
    pub(super) fn lost(&mut self, now: Instant) {
        self.failures = if self.is_up() && self.is_useful { 0 } else { self.failures.saturating_add(1) };
        self.state = State::Down { dial_at: now + self.pause() };
    }

    /// None while there are servers that were not tried; then longer with each round.
    fn pause(&self) -> Duration {
        let rounds = self.failures / self.servers;
        if rounds == 0 || !self.failures.is_multiple_of(self.servers) {
            return Duration::ZERO;
        }
        let doublings = u32::try_from(rounds - 1).unwrap_or(u32::MAX).min(8);
        PAUSE.0.saturating_mul(1 << doublings).min(PAUSE.1)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Resting => None,
            State::Down { dial_at } => Some(dial_at),
            State::Dialing { until } | State::Greeting { until } => Some(until),
            State::Up { received, sent, timeout } => {
                Some((received + silence(timeout)).min(sent + quiet(timeout)))
            }
        }
    }

    pub(super) fn tick(&mut self, now: Instant) -> Due {
        match self.state {
            State::Down { dial_at } if dial_at <= now => {
                let server = self.next_server;
                self.next_server = (server + 1) % self.servers;
                self.state = State::Dialing { until: now + self.attempt };
                Due::Dial(server)
            }
            State::Dialing { until } if until <= now => Due::GiveUp("no connection in time"),
            State::Greeting { until } if until <= now => Due::GiveUp("no answer to the greeting in time"),
            State::Up { received, timeout, .. } if received + silence(timeout) <= now => {
                Due::GiveUp("nothing was heard for two thirds of the session timeout")
            }
            State::Up { sent, timeout, .. } if sent + quiet(timeout) <= now => Due::Ping,
            _ => Due::Nothing,
        }
    }
}

/// How long a server may say nothing: there must be time left to go to another one.
fn silence(timeout: Duration) -> Duration {
    timeout * 2 / 3
}

/// How long this side may say nothing.
fn quiet(timeout: Duration) -> Duration {
    timeout / 3
}
