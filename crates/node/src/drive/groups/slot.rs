//! One group at the edge: its machine, those who wait for its answers, and what it wants done.
//!
//! The machine is stepped under a lock; what it wants is done outside, one thing after the other and in its order, by
//! whoever finds nobody doing it. So a tombstone never overtakes the record that it is to bury, and the end of an append
//! may come from within the append.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::group::{Answer, Command, Event, Group, RequestId};
use wire::Str;
use wire::types::{LeaderEpoch, Now};

use super::obey;
use crate::broker::Broker;

/// Takes the answer to one request.
pub(super) type Responder = Box<dyn FnOnce(Answer) + Send>;

/// A group of a partition that this broker leads.
pub(super) struct Slot {
    group_id: Str,
    /// Its partition of `__consumer_offsets`.
    index: i32,
    /// The epoch in which that partition was loaded.
    led_since: LeaderEpoch,
    state: Mutex<State>,
}

struct State {
    group: Group,
    waiting: BTreeMap<RequestId, Responder>,
    wanted: VecDeque<Command>,
    is_obeying: bool,
    /// When it is woken, in milliseconds on the monotonic clock, and the number of that timer.
    timer: Option<(i64, u64)>,
}

/// The next thing to do.
pub(super) enum Next {
    Answer(Option<Responder>, Answer),
    Do(Command),
}

impl Slot {
    /// A group of the partition `index`, loaded or made in a leadership that has lasted since `led_since`.
    pub(super) fn new(group: Group, index: i32, led_since: LeaderEpoch) -> Arc<Self> {
        Arc::new(Self {
            group_id: group.group_id().clone(),
            index,
            led_since,
            state: Mutex::new(State {
                group,
                waiting: BTreeMap::new(),
                wanted: VecDeque::new(),
                is_obeying: false,
                timer: None,
            }),
        })
    }

    pub(super) fn group_id(&self) -> &Str {
        &self.group_id
    }

    pub(super) fn index(&self) -> i32 {
        self.index
    }

    pub(super) fn led_since(&self) -> LeaderEpoch {
        self.led_since
    }

    /// Looks at the group.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Group) -> T) -> T {
        look(&self.lock().group)
    }

    /// Hands in a request that `event` was made of; `done` gets its answer, once.
    pub(super) fn ask(
        self: &Arc<Self>,
        broker: &Arc<Broker>,
        request: RequestId,
        event: Event,
        done: Responder,
    ) {
        self.change(broker, |state, now, wanted| {
            state.waiting.insert(request, done);
            state.group.step(now, event, wanted);
        });
    }

    /// Tells the group of something.
    pub(super) fn tell(self: &Arc<Self>, broker: &Arc<Broker>, event: Event) {
        self.change(broker, |state, now, wanted| state.group.step(now, event, wanted));
    }

    /// The group was loaded and wants this done first.
    pub(super) fn begin(self: &Arc<Self>, broker: &Arc<Broker>, commands: Vec<Command>) {
        self.change(broker, |_, _, wanted| wanted.extend(commands));
    }

    /// The next thing to do; none, and nobody is doing anything any more.
    pub(super) fn next(&self) -> Option<Next> {
        let mut state = self.lock();
        let Some(command) = state.wanted.pop_front() else {
            state.is_obeying = false;
            return None;
        };
        Some(match command {
            Command::Answer { request, answer } => Next::Answer(state.waiting.remove(&request), answer),
            command => Next::Do(command),
        })
    }

    fn change(
        self: &Arc<Self>,
        broker: &Arc<Broker>,
        change: impl FnOnce(&mut State, Now, &mut Vec<Command>),
    ) {
        let begins = {
            let mut state = self.lock();
            let mut wanted = Vec::new();
            change(&mut state, broker.now(), &mut wanted);
            state.wanted.extend(wanted);
            self.arm(broker, &mut state);
            state.begins_to_obey()
        };
        if begins {
            obey::obey(broker, self);
        }
    }

    /// Time has come for the timer of this number, unless another has taken its place.
    fn due(self: &Arc<Self>, broker: &Arc<Broker>, timer: u64) {
        let (begins, writes) = {
            let mut state = self.lock();
            if state.timer.is_none_or(|(_, current)| current != timer) {
                return;
            }
            state.timer = None;
            let mut wanted = Vec::new();
            state.group.step(broker.now(), Event::Tick, &mut wanted);
            state.wanted.extend(wanted);
            self.arm(broker, &mut state);
            let writes = |it: &Command| matches!(it, Command::Append { .. } | Command::AppendTombstones(_));
            (state.begins_to_obey(), state.wanted.iter().any(writes))
        };
        if begins && writes {
            // The thread that keeps the time must not wait for a disk.
            let (slot, then) = (self.clone(), broker.clone());
            broker.run_job(move || obey::obey(&then, &slot));
        } else if begins {
            obey::obey(broker, self);
        }
    }

    /// Sees to it that the group is woken in time. A timer that comes too early looks again, so that a heartbeat need
    /// not move it.
    fn arm(self: &Arc<Self>, broker: &Broker, state: &mut State) {
        let due_ms = state.group.deadline();
        if let (Some((armed_ms, _)), Some(due_ms)) = (state.timer, due_ms)
            && armed_ms <= due_ms
        {
            return;
        }
        if let Some((armed_ms, timer)) = state.timer.take() {
            broker.timers().remove_task(armed_ms, timer);
        }
        if let Some(due_ms) = due_ms {
            let (slot, timer) = (self.clone(), broker.timers().next_id());
            broker.timers().add_numbered_task(due_ms, timer, move |broker| slot.due(broker, timer));
            state.timer = Some((due_ms, timer));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the caller is to do what is wanted.
    fn begins_to_obey(&mut self) -> bool {
        !self.wanted.is_empty() && !std::mem::replace(&mut self.is_obeying, true)
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { group_id, index, led_since, .. } = self;
        f.debug_struct("Slot")
            .field("group_id", group_id)
            .field("index", index)
            .field("led_since", led_since)
            .finish_non_exhaustive()
    }
}
