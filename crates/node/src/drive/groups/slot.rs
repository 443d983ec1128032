//! One group at the edge: its machine, those who wait for its answers, and what it wants done.
//!
//! The machine is stepped under a lock; what it wants is done outside. What a step wants written is done one thing after
//! the other and in its order, together with what the step wants else, by whoever finds nobody doing it: so a tombstone
//! never overtakes the record that it is to bury, no answer overtakes what it tells of, and the end of an append may come
//! from within the append. A step that wants nothing but answers does not wait for that: a disk that stalls in an append
//! keeps no heartbeat waiting (KAFKA-13134).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kernel::group::{Answer, Command, Event, Group, RequestId};
use wire::Str;
use wire::types::{LeaderEpoch, Now};

use super::unused::Unused;
use super::{obey, writers};
use crate::broker::Broker;
use crate::partition::Partition;

/// Takes the answer to one request.
pub(super) type Responder = Box<dyn FnOnce(Answer) + Send>;

/// Where the records of a group lie: in this log, which need not be that of the next partition of its name.
#[derive(Clone, Debug, Default)]
pub(super) struct Home {
    /// The partition whose log was loaded. It may be gone.
    pub(super) partition: Weak<Partition>,
    /// The epoch in which it was loaded.
    pub(super) led_since: LeaderEpoch,
}

/// A group of a partition that this broker leads.
pub(super) struct Slot {
    group_id: Str,
    /// Its partition of `__consumer_offsets`.
    index: i32,
    home: Home,
    state: Mutex<State>,
}

struct State {
    group: Group,
    waiting: BTreeMap<RequestId, Responder>,
    wanted: VecDeque<Command>,
    is_obeying: bool,
    /// When it is woken, in milliseconds on the monotonic clock, and the number of that timer.
    timer: Option<(i64, u64)>,
    /// Its number among the groups that hold nothing, if it is one.
    unused: Option<u64>,
}

/// The next thing to do.
pub(super) enum Next {
    Answer(Option<Responder>, Answer),
    Do(Command),
}

impl Slot {
    /// A group of the partition `index`, whose records lie in `home`.
    pub(super) fn new(group: Group, index: i32, home: Home) -> Arc<Self> {
        Arc::new(Self {
            group_id: group.group_id().clone(),
            index,
            home,
            state: Mutex::new(State {
                group,
                waiting: BTreeMap::new(),
                wanted: VecDeque::new(),
                is_obeying: false,
                timer: None,
                unused: None,
            }),
        })
    }

    pub(super) fn group_id(&self) -> &Str {
        &self.group_id
    }

    pub(super) fn index(&self) -> i32 {
        self.index
    }

    pub(super) fn home(&self) -> &Home {
        &self.home
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

    /// The group is not in the registry any more, and ends here. Whoever waits is told so at once, even if something is
    /// being written.
    pub(super) fn unload(self: &Arc<Self>, broker: &Arc<Broker>) {
        self.change(broker, |state, now, wanted| {
            state.group.step(now, Event::Unload, wanted);
            wanted.retain(|command| *command != Command::Forget);
        });
    }

    /// The group was loaded and wants this done first.
    pub(super) fn begin(self: &Arc<Self>, broker: &Arc<Broker>, commands: Vec<Command>) {
        let changed = {
            let mut state = self.lock();
            Changed { todo: state.sort(commands), timer: state.set_timer(broker), too_many: Vec::new() }
        };
        self.follow(broker, changed, obey::obey);
    }

    /// The next thing to do; none, and nobody is doing anything any more.
    pub(super) fn next(&self) -> Option<Next> {
        self.lock().next()
    }

    /// Who waits for the answer, if `command` is one.
    pub(super) fn ready(&self, command: Command) -> Next {
        self.lock().ready(command)
    }

    /// Nobody does what is wanted any more, though something may be left: the next change goes on with it.
    pub(super) fn is_left(&self) {
        self.lock().is_obeying = false;
    }

    /// These answers were not given: they come with what is wanted next.
    pub(super) fn put_back(&self, answers: VecDeque<Command>) {
        self.lock().wanted.extend(answers);
    }

    fn change(
        self: &Arc<Self>,
        broker: &Arc<Broker>,
        change: impl FnOnce(&mut State, Now, &mut Vec<Command>),
    ) {
        let changed = self.lock().change(broker, self, change);
        self.follow(broker, changed, obey::obey);
    }

    /// Time has come for the timer of this number, unless another has taken its place.
    fn due(self: &Arc<Self>, broker: &Arc<Broker>, number: u64) {
        let changed = {
            let mut state = self.lock();
            if state.timer.is_none_or(|(_, current)| current != number) {
                return;
            }
            state.timer = None;
            state.change(broker, self, |state, now, wanted| state.group.step(now, Event::Tick, wanted))
        };
        // The thread that keeps the time must not wait for a disk.
        self.follow(broker, changed, writers::hand_over);
    }

    /// Does what a change wants done, with no lock held; what is wanted in turn `in_turn` sees to. If this group has become
    /// one too many of those that hold nothing, offsets expire a little earlier for the oldest of them, which ends it.
    fn follow(self: &Arc<Self>, broker: &Arc<Broker>, changed: Changed, in_turn: InTurn) {
        let Changed { todo, timer, too_many } = changed;
        self.arm(broker, timer);
        match todo {
            Todo::Now(answers) => obey::answer(broker, self, answers),
            Todo::InTurn => in_turn(broker, self),
            Todo::Nothing => {}
        }
        for slot in too_many {
            let expire =
                |state: &mut State, now, wanted: &mut _| state.group.step(now, Event::ExpireOffsets, wanted);
            let changed = slot.lock().change(broker, &slot, expire);
            slot.follow(broker, changed, in_turn);
        }
    }

    /// Sees to it that the group is woken in time. Who changes it next may do so first: then a timer is left behind that
    /// wakes nobody.
    fn arm(self: &Arc<Self>, broker: &Broker, change: TimerChange) {
        let TimerChange { old, new } = change;
        if let Some((at_ms, number)) = old {
            broker.timers().remove_task(at_ms, number);
        }
        if let Some((at_ms, number)) = new {
            let slot = self.clone();
            broker.timers().add_numbered_task(at_ms, number, move |broker| slot.due(broker, number));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does what a group wants, or sees to it that somebody does.
type InTurn = fn(&Arc<Broker>, &Arc<Slot>);

/// What comes of a change.
struct Changed {
    todo: Todo,
    timer: TimerChange,
    /// Groups that hold nothing, and are to end for that.
    too_many: Vec<Arc<Slot>>,
}

/// What whoever has changed a group is to do, with no lock held.
#[derive(Debug, PartialEq, Eq)]
enum Todo {
    Nothing,
    /// These answers and notes.
    Now(VecDeque<Command>),
    /// All that is wanted in turn.
    InTurn,
}

/// Timers, each with its time in milliseconds on the monotonic clock and its number.
struct TimerChange {
    /// The one that is not needed any more.
    old: Option<(i64, u64)>,
    /// The one that is.
    new: Option<(i64, u64)>,
}

impl State {
    fn change(
        &mut self,
        broker: &Broker,
        slot: &Arc<Slot>,
        change: impl FnOnce(&mut Self, Now, &mut Vec<Command>),
    ) -> Changed {
        let (mut wanted, given_out) = (Vec::new(), self.group.given_out_ids());
        change(self, broker.now(), &mut wanted);
        let groups = broker.groups();
        groups.given_out.changed(given_out, self.group.given_out_ids());
        let too_many = self.count_if_unused(&groups.unused, slot);
        Changed { todo: self.sort(wanted), timer: self.set_timer(broker), too_many }
    }

    /// Returns the groups that are too many by this one.
    fn count_if_unused(&mut self, unused: &Unused, slot: &Arc<Slot>) -> Vec<Arc<Slot>> {
        match (self.unused, self.group.holds_nothing()) {
            (None, true) => {
                let (number, too_many) = unused.add(slot);
                self.unused = Some(number);
                return too_many;
            }
            (Some(number), false) => {
                unused.remove(number);
                self.unused = None;
            }
            _ => {}
        }
        Vec::new()
    }

    fn next(&mut self) -> Option<Next> {
        let Some(command) = self.wanted.pop_front() else {
            self.is_obeying = false;
            return None;
        };
        Some(self.ready(command))
    }

    fn ready(&mut self, command: Command) -> Next {
        match command {
            Command::Answer { request, answer } => Next::Answer(self.waiting.remove(&request), answer),
            command => Next::Do(command),
        }
    }

    /// Puts what a step wants where it belongs.
    fn sort(&mut self, wanted: Vec<Command>) -> Todo {
        let is_quick = |it: &Command| matches!(it, Command::Answer { .. } | Command::Note(_));
        match wanted.iter().all(is_quick) {
            // Somebody may have left what he was doing.
            true if self.begins_to_obey() => self.wanted.extend(wanted),
            true if wanted.is_empty() => return Todo::Nothing,
            true => return Todo::Now(wanted.into()),
            false => {
                self.wanted.extend(wanted);
                if !self.begins_to_obey() {
                    return Todo::Nothing;
                }
            }
        }
        Todo::InTurn
    }

    /// Whether the caller is to do what is wanted.
    fn begins_to_obey(&mut self) -> bool {
        !self.wanted.is_empty() && !std::mem::replace(&mut self.is_obeying, true)
    }

    /// The timer that the group needs now. One that comes too early looks again, so that a heartbeat need not move it.
    fn set_timer(&mut self, broker: &Broker) -> TimerChange {
        let due_ms = self.group.deadline();
        if let (Some((armed_ms, _)), Some(due_ms)) = (self.timer, due_ms)
            && armed_ms <= due_ms
        {
            return TimerChange { old: None, new: None };
        }
        let old = self.timer.take();
        self.timer = due_ms.map(|due_ms| (due_ms, broker.timers().next_id()));
        TimerChange { old, new: self.timer }
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { group_id, index, home, .. } = self;
        f.debug_struct("Slot")
            .field("group_id", group_id)
            .field("index", index)
            .field("led_since", &home.led_since)
            .finish_non_exhaustive()
    }
}
