//! The machine of a session without sockets and with a time of the test's own. What a server says is written here as
//! bytes; the same against real servers is in the end-to-end suites.

mod close;
mod expiry;
mod flow;
mod hostile;
mod link;
mod reconnect;
mod server;
mod store;

use super::chroot::Chroot;
use super::credentials::SessionCredentials;
use super::machine::{Input, Machine, Output, Settings};
use crate::store::{Request, Response, SessionId, StoreError, StoreEvent};
use bytes::Bytes;
use server::{Asked, asked};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(6);
const SESSION: SessionId = SessionId(0x100);

type Answers = Arc<Mutex<Vec<(usize, Result<Response, StoreError>)>>>;

/// A machine and everything that it has said.
struct Bench {
    machine: Machine,
    now: Instant,
    submitted: usize,
    answers: Answers,
    sent: Vec<Asked>,
    events: Vec<StoreEvent>,
    dialed: Vec<usize>,
    is_dialing: bool,
    kept: Vec<SessionCredentials>,
    hung_up: usize,
    finished: bool,
}

fn credentials() -> SessionCredentials {
    SessionCredentials { id: SESSION, password: Bytes::from_static(b"0123456789abcdef") }
}

impl Bench {
    fn new(servers: usize, max_in_flight: usize, resumed: Option<SessionCredentials>) -> Self {
        let settings =
            Settings { servers, session_timeout: TIMEOUT, max_in_flight, chroot: Chroot::new(Some("/c")) };
        let now = Instant::now();
        let mut bench = Self {
            machine: Machine::new(settings, resumed, now),
            now,
            submitted: 0,
            answers: Answers::default(),
            sent: Vec::new(),
            events: Vec::new(),
            dialed: Vec::new(),
            is_dialing: false,
            kept: Vec::new(),
            hung_up: 0,
            finished: false,
        };
        bench.step(Input::Tick);
        bench
    }

    /// A session at work with one server.
    fn live(max_in_flight: usize) -> Self {
        let mut bench = Self::new(1, max_in_flight, None);
        bench.greet();
        bench.sent.clear();
        bench.events.clear();
        bench
    }

    fn step(&mut self, input: Input) {
        let mut out = Vec::new();
        self.machine.step(self.now, input, &mut out);
        for output in out {
            match output {
                Output::Dial(server) => {
                    self.dialed.push(server);
                    self.is_dialing = true;
                }
                Output::Send(frame) => self.sent.push(asked(frame)),
                Output::HangUp => {
                    self.hung_up += 1;
                    self.is_dialing = false;
                }
                Output::Keep(credentials) => self.kept.push(credentials),
                Output::Tell(event) => self.events.push(event),
                Output::Answer(done, answer) => done(answer),
                Output::Took(_) | Output::Trouble(_) => {}
                Output::Finished => self.finished = true,
            }
        }
    }

    /// Makes the connection and answers the greeting with the session.
    fn greet(&mut self) {
        self.step(Input::Connected);
        self.step(Input::Frame(server::greeting(TIMEOUT, &credentials())));
    }

    /// Lets the next try come, which brings the session back.
    fn reconnect(&mut self) {
        self.redial();
        self.greet();
    }

    /// Lets the next try come; returns after how long it did.
    fn redial(&mut self) -> Duration {
        if self.is_dialing {
            return Duration::ZERO;
        }
        let pause = self.machine.deadline().unwrap().saturating_duration_since(self.now);
        self.advance(pause);
        pause
    }

    fn submit(&mut self, request: Request) {
        let (number, answers) = (self.submitted, self.answers.clone());
        self.submitted += 1;
        self.step(Input::Submit(
            request,
            Box::new(move |answer| answers.lock().unwrap().push((number, answer))),
        ));
    }

    /// The answers since the last look, by the place of the request among all that were submitted.
    fn answers(&self) -> Vec<(usize, Result<Response, StoreError>)> {
        std::mem::take(&mut *self.answers.lock().unwrap())
    }

    /// The numbers of the requests that were sent since the last look, with their operation.
    fn take_sent(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.sent)
    }

    fn take_events(&mut self) -> Vec<StoreEvent> {
        std::mem::take(&mut self.events)
    }

    /// The server answers a request as done, if it is a write without a result, or one that failed.
    fn reply(&mut self, number: i32, code: i32) {
        self.step(Input::Frame(server::reply(number, 10, code, &[])));
    }

    fn lose_connection(&mut self) {
        self.is_dialing = false;
        self.step(Input::Lost("the test has cut it".to_owned()));
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        self.step(Input::Tick);
    }
}
