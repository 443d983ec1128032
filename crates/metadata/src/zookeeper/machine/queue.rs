//! The requests of a session from their arrival to their answer, in order.
//!
//! The first `sent` entries have been on the wire of the present connection, or needed not to. An answer goes out when
//! everything before it has been answered.

use super::Output;
use crate::store::{Done, Request, Response, StoreError};
use std::collections::VecDeque;
use std::time::Instant;

/// What is to be sent.
pub(super) enum Outgoing<'a> {
    /// A request.
    Request(&'a Request),
    /// The end of the session.
    Close,
}

/// What an answer tells.
pub(super) struct Answered<'a> {
    /// When its request was sent.
    pub(super) sent_at: Instant,
    /// The request and the response, if it succeeded.
    pub(super) succeeded: Option<(&'a Request, &'a Response)>,
}

enum Work {
    Request(Request, Done),
    Close,
}

enum State {
    Waiting,
    Sent(i32, Instant),
    Answered(Result<Response, StoreError>),
}

struct Entry {
    work: Work,
    state: State,
}

/// See the module's text.
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    sent: usize,
    in_flight: usize,
    max_in_flight: usize,
    number: i32,
    is_closed: bool,
}

impl Queue {
    pub(super) fn new(max_in_flight: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            sent: 0,
            in_flight: 0,
            max_in_flight: max_in_flight.max(1),
            number: 0,
            is_closed: false,
        }
    }

    pub(super) fn push(&mut self, request: Request, done: Done) {
        self.entries.push_back(Entry { work: Work::Request(request, done), state: State::Waiting });
    }

    /// A request that needs no server; its answer comes when it is its turn.
    pub(super) fn push_answered(
        &mut self,
        request: Request,
        done: Done,
        answer: Result<Response, StoreError>,
    ) {
        self.entries.push_back(Entry { work: Work::Request(request, done), state: State::Answered(answer) });
    }

    /// The session shall end after everything before.
    pub(super) fn push_close(&mut self) {
        self.entries.push_back(Entry { work: Work::Close, state: State::Waiting });
    }

    /// Whether the server has confirmed the end of the session.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Hands out what may be sent, with its number.
    pub(super) fn send(&mut self, now: Instant, mut put: impl FnMut(Outgoing<'_>, i32)) {
        while self.in_flight < self.max_in_flight
            && let Some(entry) = self.entries.get_mut(self.sent)
        {
            if matches!(entry.state, State::Waiting) {
                self.number = super::request::next_number(self.number);
                match &entry.work {
                    Work::Request(request, _) => put(Outgoing::Request(request), self.number),
                    Work::Close => put(Outgoing::Close, self.number),
                }
                entry.state = State::Sent(self.number, now);
                self.in_flight += 1;
            }
            self.sent += 1;
        }
    }

    /// Takes the answer to the request of that number, which must be the eldest under way.
    pub(super) fn answer(
        &mut self,
        number: i32,
        outcome: impl FnOnce(&Request) -> Result<Result<Response, StoreError>, String>,
    ) -> Result<Answered<'_>, String> {
        let unasked = || format!("the server answered request {number}, which does not wait for it");
        let mut under_way = self.entries.iter_mut().take(self.sent);
        let eldest = under_way.find(|entry| matches!(entry.state, State::Sent(..))).ok_or_else(unasked)?;
        let sent_at = match eldest.state {
            State::Sent(sent, at) if sent == number => at,
            _ => return Err(unasked()),
        };
        let Entry { work: Work::Request(request, _), state } = eldest else {
            self.is_closed = true;
            return Ok(Answered { sent_at, succeeded: None });
        };
        let answer = outcome(request)?;
        self.in_flight = self.in_flight.saturating_sub(1);
        *state = State::Answered(answer);
        let succeeded = match state {
            State::Answered(Ok(response)) => Some((&*request, &*response)),
            _ => None,
        };
        Ok(Answered { sent_at, succeeded })
    }

    /// Takes the answers out whose turn it is.
    pub(super) fn take_answered(&mut self, out: &mut Vec<Output>) {
        while matches!(self.entries.front(), Some(Entry { state: State::Answered(_), .. })) {
            let Some(entry) = self.entries.pop_front() else { break };
            self.sent = self.sent.saturating_sub(1);
            if let Entry { work: Work::Request(_, done), state: State::Answered(answer) } = entry {
                out.push(Output::Answer(done, answer));
            }
        }
    }

    /// The answer to the eldest request under way is of no use.
    pub(super) fn refuse_eldest(&mut self, error: StoreError) {
        let mut under_way = self.entries.iter_mut().take(self.sent);
        if let Some(eldest) = under_way.find(|entry| matches!(entry.state, State::Sent(..))) {
            eldest.state = State::Answered(Err(error));
            self.in_flight = self.in_flight.saturating_sub(1);
        }
    }

    /// The connection is gone: writes under way have failed, reads wait again. Returns whether the end of the session
    /// was under way, of which nothing more will be heard.
    pub(super) fn connection_lost(&mut self) -> bool {
        let mut close_was_sent = false;
        for entry in self.entries.iter_mut().take(self.sent) {
            if let State::Sent(..) = entry.state {
                entry.state = match &entry.work {
                    Work::Request(Request::Write(_) | Request::Multi(_), _) => {
                        State::Answered(Err(StoreError::ConnectionLoss))
                    }
                    Work::Request(..) => State::Waiting,
                    Work::Close => {
                        close_was_sent = true;
                        State::Waiting
                    }
                };
            }
        }
        self.sent = 0;
        self.in_flight = 0;
        close_was_sent
    }

    /// Answers everything that has no answer yet: what was under way and may have taken effect with the loss of the
    /// connection, all else with `error`.
    pub(super) fn refuse_all(&mut self, error: &StoreError) {
        self.connection_lost();
        for entry in &mut self.entries {
            if !matches!(entry.state, State::Answered(_)) {
                entry.state = State::Answered(Err(error.clone()));
            }
        }
    }
}
