//! A broker's session with the tree, over a connection that takes time and can be cut.
//!
//! It behaves as a session with an ensemble does: requests arrive and are answered in order; a lost connection fails the
//! writes that were under way, which may have been done or not, and asks reads again; watches survive it; an owner that is
//! away for too long finds the session expired when it comes back. A session outlives its process for a while.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use metadata::embedded::{EmbeddedSession, EmbeddedStore};
use metadata::store::{Done, EventSink, Request, Response, SessionId, Store, StoreError, StoreEvent};

use super::SESSION_TIMEOUT_MS;
use crate::fiber;
use crate::incarnation::Incarnation;
use crate::world::World;

/// How long a message between a broker and the tree takes, in microseconds.
const WAY_US: std::ops::RangeInclusive<u64> = 100..=1_500;
/// How long it takes a broker to see that its connection is lost, in microseconds.
const NOTICE_US: std::ops::RangeInclusive<u64> = 1_000..=2_000_000;
/// An ensemble ends a session at the next tick: at most so much later than its timeout, in milliseconds.
const TICK_MS: u64 = 2_000;

type Answer = Result<Response, StoreError>;

/// See the module's text.
pub(crate) struct TreeSession {
    me: Weak<TreeSession>,
    world: Weak<World>,
    owner: Incarnation,
    inner: EmbeddedSession,
    sink: EventSink,
    state: Mutex<State>,
}

/// What the owner knows of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Living(SessionId),
    Expired,
    /// A new session is asked for.
    Opening,
    Closed,
}

/// How far a request is.
enum Stage {
    /// It waits for a connection.
    Unsent,
    /// It is on its way, or its answer is.
    Sent,
    /// A write whose answer went down with the connection.
    Lost,
}

struct Asked {
    number: u64,
    request: Request,
    done: Done,
    stage: Stage,
}

/// What the tree has to say, in its order.
enum Said {
    Event(StoreEvent),
    /// The answer to a request, over the connection of that number.
    Answer(u64, u64, Answer),
}

struct State {
    phase: Phase,
    connected: bool,
    /// The number of the connection.
    connection: u64,
    /// Since when there is none.
    lost_at_us: u64,
    asked: VecDeque<Asked>,
    last_number: u64,
    said: VecDeque<Said>,
    /// When what was sent last arrives, on the way there and on the way back.
    there_us: u64,
    back_us: u64,
}

impl TreeSession {
    pub(super) fn begin(
        world: Weak<World>,
        owner: Incarnation,
        store: &EmbeddedStore,
        sink: EventSink,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me: &Weak<TreeSession>| {
            let relay = me.clone();
            let inner = store.session(Arc::new(move |event| {
                if let Some(session) = relay.upgrade() {
                    session.said(Said::Event(event));
                }
            }));
            let state = State {
                phase: inner.session_id().map_or(Phase::Expired, Phase::Living),
                connected: true,
                connection: 1,
                lost_at_us: 0,
                asked: VecDeque::new(),
                last_number: 0,
                said: VecDeque::new(),
                there_us: 0,
                back_us: 0,
            };
            Self { me: me.clone(), world, owner, inner, sink, state: Mutex::new(state) }
        })
    }

    fn world(&self) -> Option<Arc<World>> {
        self.world.upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session as the tree knows it, alive or not.
    pub(crate) fn id_in_tree(&self) -> Option<SessionId> {
        self.inner.session_id()
    }

    /// Whether the tree and the owner agree on the session.
    pub(crate) fn session_is_known(&self) -> bool {
        self.inner.session_id().is_some_and(|id| self.lock().phase == Phase::Living(id))
    }

    /// Whether there is a connection.
    pub(crate) fn is_connected(&self) -> bool {
        self.lock().connected
    }
}

/// The way there.
impl TreeSession {
    fn send_unsent(self: &Arc<Self>) {
        let Some(world) = self.world() else { return };
        let sent: Vec<(u64, u64)> = {
            let mut state = self.lock();
            if !state.connected || !matches!(state.phase, Phase::Living(_)) {
                return;
            }
            let State { asked, there_us, .. } = &mut *state;
            let unsent = asked.iter_mut().filter(|asked| matches!(asked.stage, Stage::Unsent));
            unsent
                .map(|asked| {
                    asked.stage = Stage::Sent;
                    let arrives_us = world.schedule.now_us() + world.chances.tree.within(WAY_US);
                    *there_us = arrives_us.max(*there_us + 1);
                    (asked.number, *there_us)
                })
                .collect()
        };
        let connection = self.lock().connection;
        for (number, at_us) in sent {
            let session = self.clone();
            world.schedule.at(at_us, "tree", move |world| session.arrive(world, number, connection));
        }
    }

    /// A request reaches the tree.
    fn arrive(self: &Arc<Self>, world: &Arc<World>, number: u64, connection: u64) {
        let request = {
            let state = self.lock();
            let asked = state.asked.iter().find(|asked| asked.number == number);
            let is_here = matches!(asked.map(|asked| &asked.stage), Some(Stage::Sent | Stage::Lost));
            // After a loss some of what was on the way still arrives.
            let arrives = state.connection == connection || world.chances.tree.per_mille(500);
            asked.filter(|_| is_here && arrives).map(|asked| asked.request.clone())
        };
        let Some(request) = request else { return };
        let session = self.clone();
        let (of, then) = (request.clone(), world.clone());
        let writer = self.inner.session_id();
        self.inner.submit(
            request,
            Box::new(move |answer| {
                then.tree_answered(&session.owner, writer, &of, &answer);
                session.said(Said::Answer(connection, number, answer));
            }),
        );
        world.tree.pump();
    }
}

/// The way back.
impl TreeSession {
    /// The tree says something; it arrives a little later, if there is a connection.
    fn said(self: &Arc<Self>, said: Said) {
        let Some(world) = self.world() else { return };
        let at_us = {
            let mut state = self.lock();
            if let Said::Answer(connection, ..) = &said
                && (!state.connected || *connection != state.connection)
            {
                return;
            }
            state.said.push_back(said);
            if !state.connected {
                return;
            }
            let arrives_us = world.schedule.now_us() + world.chances.tree.within(WAY_US);
            state.back_us = arrives_us.max(state.back_us + 1);
            state.back_us
        };
        let session = self.clone();
        world.schedule.at(at_us, "tree says", move |world| session.hear(world));
    }

    /// Takes the next thing that the tree has said.
    fn hear(self: &Arc<Self>, world: &Arc<World>) {
        if !self.owner.is_alive() {
            return;
        }
        let said = {
            let mut state = self.lock();
            if !state.connected {
                return;
            }
            state.said.pop_front()
        };
        world.act(&self.owner, || self.take_in(world, said));
    }

    fn take_in(self: &Arc<Self>, world: &Arc<World>, said: Option<Said>) {
        match said {
            None => {}
            Some(Said::Event(event)) => self.hear_event(world, event),
            Some(Said::Answer(_, number, answer)) => {
                self.answer_lost();
                let asked = {
                    let mut state = self.lock();
                    let is_next = state.asked.front().is_some_and(|asked| asked.number == number);
                    if is_next { state.asked.pop_front() } else { None }
                };
                if let Some(asked) = asked {
                    (asked.done)(answer);
                }
                self.answer_lost();
            }
        }
    }

    fn hear_event(self: &Arc<Self>, world: &Arc<World>, event: StoreEvent) {
        world.note(format_args!("{} hears {event:?}", self.owner.broker));
        match event {
            StoreEvent::Connected { session_id } => {
                let is_closed = {
                    let mut state = self.lock();
                    if state.phase != Phase::Closed {
                        state.phase = Phase::Living(session_id);
                    }
                    state.phase == Phase::Closed
                };
                if !is_closed {
                    (self.sink)(event);
                    self.send_unsent();
                }
            }
            StoreEvent::SessionExpired => {
                let refused = {
                    let mut state = self.lock();
                    state.phase = Phase::Expired;
                    std::mem::take(&mut state.asked)
                };
                (self.sink)(event);
                for asked in refused {
                    (asked.done)(Err(StoreError::SessionExpired));
                }
            }
            event => (self.sink)(event),
        }
    }

    /// The writes at the front whose answers are lost end now: nothing before them waits any more.
    fn answer_lost(&self) {
        loop {
            let lost = {
                let mut state = self.lock();
                match state.asked.front() {
                    Some(Asked { stage: Stage::Lost, .. }) => state.asked.pop_front(),
                    _ => None,
                }
            };
            let Some(lost) = lost else { return };
            (lost.done)(Err(StoreError::ConnectionLoss));
        }
    }
}

/// The connection.
impl TreeSession {
    /// Cuts it. The tree ends the session when the owner stays away for too long.
    pub(crate) fn cut(self: &Arc<Self>, world: &Arc<World>) {
        let connection = {
            let mut state = self.lock();
            if !state.connected {
                return;
            }
            state.connected = false;
            state.connection += 1;
            state.lost_at_us = world.schedule.now_us();
            state.said.retain(|said| matches!(said, Said::Event(_)));
            for asked in &mut state.asked {
                if let Stage::Sent = asked.stage {
                    let is_write = matches!(asked.request, Request::Write(_) | Request::Multi(_));
                    asked.stage = if is_write { Stage::Lost } else { Stage::Unsent };
                }
            }
            state.connection
        };
        let ends_ms = SESSION_TIMEOUT_MS + world.chances.tree.within(0..=TICK_MS);
        let session = self.clone();
        world.schedule.after(ends_ms * 1000, "session timeout", move |world| {
            let is_away = { session.lock().connection } == connection;
            if let Some(id) = session.id_in_tree().filter(|_| is_away) {
                world.matters(format_args!("the session of {} times out", session.owner.broker));
                world.tree.expire(id);
            }
        });
        let session = self.clone();
        world.schedule.after(world.chances.tree.within(NOTICE_US), "connection lost", move |world| {
            let is_away = { session.lock().connection } == connection;
            if is_away && session.owner.is_alive() {
                world.note(format_args!(
                    "{} notices that its connection to the tree is lost",
                    session.owner.broker
                ));
                (session.sink)(StoreEvent::Disconnected);
                session.answer_lost();
            }
        });
    }

    /// Begins a new session, if there is a connection.
    fn open(self: &Arc<Self>, world: &Arc<World>) {
        let may_open = {
            let state = self.lock();
            state.connected && state.phase == Phase::Opening
        };
        if may_open && self.owner.is_alive() {
            // Without effect if it has been done.
            self.inner.renew();
            world.tree.pump();
        }
    }

    /// Connects again.
    pub(crate) fn mend(self: &Arc<Self>, world: &Arc<World>) {
        let session_id = self.inner.session_id();
        let count = {
            let mut state = self.lock();
            if state.connected || !self.owner.is_alive() {
                return;
            }
            state.connected = true;
            state.connection += 1;
            match (session_id, state.phase) {
                // The same session goes on: its watches tell what was missed.
                (Some(session_id), Phase::Living(known)) if known == session_id => {
                    state.said.push_front(Said::Event(StoreEvent::Connected { session_id }));
                }
                // What was said before the end of the session is said no more.
                _ => {
                    let is_end = |said: &Said| {
                        matches!(said, Said::Event(StoreEvent::SessionExpired | StoreEvent::Connected { .. }))
                    };
                    state.said.retain(is_end);
                }
            }
            state.said.len()
        };
        for _ in 0..count {
            let at_us = {
                let mut state = self.lock();
                let arrives_us = world.schedule.now_us() + world.chances.tree.within(WAY_US);
                state.back_us = arrives_us.max(state.back_us + 1);
                state.back_us
            };
            let session = self.clone();
            world.schedule.at(at_us, "tree says", move |world| session.hear(world));
        }
        self.open(world);
    }

    /// The owner dies: nothing reaches it any more, and the tree hears nothing of it.
    pub(crate) fn orphan(self: &Arc<Self>, world: &Arc<World>) {
        self.cut(world);
        let forgotten = {
            let mut state = self.lock();
            state.phase = Phase::Closed;
            state.said.clear();
            std::mem::take(&mut state.asked)
        };
        // Whoever waits for an answer must not wait for ever.
        drop(forgotten);
    }
}

impl Store for TreeSession {
    fn submit(&self, request: Request, done: Done) {
        let Some(session) = self.me.upgrade() else { return };
        let refused = {
            let mut state = self.lock();
            if state.phase == Phase::Closed || !self.owner.is_alive() {
                Some((done, StoreError::Closed))
            } else if state.phase == Phase::Expired {
                drop(state);
                let Some(world) = self.world() else { return };
                world.schedule.after(1, "refused", move |_| {
                    if session.owner.is_alive() {
                        done(Err(StoreError::SessionExpired));
                    }
                });
                return;
            } else {
                state.last_number += 1;
                let number = state.last_number;
                state.asked.push_back(Asked { number, request, done, stage: Stage::Unsent });
                None
            }
        };
        match refused {
            Some((done, error)) => done(Err(error)),
            None => session.send_unsent(),
        }
    }

    fn session_id(&self) -> Option<SessionId> {
        match self.lock().phase {
            Phase::Living(id) => Some(id),
            Phase::Expired | Phase::Opening | Phase::Closed => None,
        }
    }

    fn renew(&self) {
        let (Some(session), Some(world)) = (self.me.upgrade(), self.world()) else { return };
        if self.lock().phase != Phase::Expired {
            return;
        }
        self.lock().phase = Phase::Opening;
        world.schedule.after(1, "new session", move |world| session.open(world));
    }

    fn close(&self) {
        let forgotten = {
            let mut state = self.lock();
            state.phase = Phase::Closed;
            if state.connected {
                self.inner.close();
            }
            std::mem::take(&mut state.asked)
        };
        if let Some(world) = self.world() {
            world.schedule.after(1, "closed", |world| world.tree.pump());
        }
        for asked in forgotten {
            (asked.done)(Err(StoreError::Closed));
        }
    }

    fn call(&self, request: Request) -> Result<Response, StoreError> {
        let Some(world) = self.world() else { return Err(StoreError::Closed) };
        let answer: Arc<Mutex<Option<Answer>>> = Arc::default();
        let slot = answer.clone();
        let begin = |alarm: fiber::Alarm| {
            let done = move |answer| {
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
                alarm.ring();
            };
            self.submit(request, Box::new(done));
        };
        let is_answered = || answer.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        fiber::wait(&world, &self.owner, begin, is_answered);
        let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        answer.unwrap_or(Err(StoreError::Closed))
    }
}
