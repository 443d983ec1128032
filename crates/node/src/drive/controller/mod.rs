//! Runs the controller that every broker holds: brings it the events of the store, of brokers and of requests, one at a
//! time, and carries its commands out.
//!
//! Whoever brings an event while nobody works steps the machine, and all that gathers meanwhile; so commands are carried
//! out in the order in which they were given, and no lock is held while they are.

mod channels;
mod history;
mod store;
mod watches;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::controller::command::{ApiAnswer, Command};
use kernel::controller::event::{ApiRequest, Event, RequestId};
use kernel::controller::{Controller, ControllerState, Gauges};
use metadata::store::NodeEventKind;
use serde_json::Value;
use wire::error_code::ErrorCode;
use wire::types::{BrokerId, ControllerEpoch, TopicName, TopicPartition};

use crate::broker::Broker;
use crate::delayed::{Delayed, Wake};
use crate::drive::image_waits;
use crate::metrics::Counter;

use channels::Channels;
use history::History;

/// How many requests may wait for the controller.
const MAX_REQUESTS: usize = 10_000;

/// Takes the answer to a request, once. An error is that of the whole request.
pub(crate) type Answerer = Box<dyn FnOnce(Result<ApiAnswer, ErrorCode>) + Send>;

/// The controller of this broker and what belongs to it.
pub(crate) struct ControllerDriver {
    inbox: Mutex<Inbox>,
    machine: Mutex<Controller>,
    requests: Mutex<Requests>,
    channels: Channels,
    history: History,
    unclean_elections: Counter,
    timer: Mutex<Option<(i64, u64)>>,
    /// Whoever waits for the controller to settle holds it and is woken by `progress`.
    settled: Mutex<()>,
    progress: Condvar,
    is_active: AtomicBool,
    epoch: AtomicI32,
}

#[derive(Default)]
struct Inbox {
    events: VecDeque<Event>,
    is_served: bool,
}

#[derive(Default)]
struct Requests {
    last: u64,
    open: BTreeMap<RequestId, Answerer>,
}

/// What the controller is at.
pub(crate) struct Status {
    pub(crate) gauges: Gauges,
    /// Kafka's number of `ControllerState`.
    pub(crate) state: usize,
    /// How many events wait.
    pub(crate) queue_size: usize,
}

impl ControllerDriver {
    /// The controller of a broker, asleep until a session with the store begins.
    pub(crate) fn new(machine: Controller) -> Self {
        Self {
            inbox: Mutex::default(),
            machine: Mutex::new(machine),
            requests: Mutex::default(),
            channels: Channels::default(),
            history: History::default(),
            unclean_elections: Counter::default(),
            timer: Mutex::default(),
            settled: Mutex::default(),
            progress: Condvar::new(),
            is_active: AtomicBool::new(false),
            epoch: AtomicI32::new(0),
        }
    }

    /// Whether this broker is the controller.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::SeqCst)
    }

    /// The epoch of the term; 0 out of office.
    pub(crate) fn epoch(&self) -> ControllerEpoch {
        ControllerEpoch(self.epoch.load(Ordering::SeqCst))
    }

    /// What the controller is at.
    pub(crate) fn status(&self) -> Status {
        let machine = lock(&self.machine);
        let state = machine.state() as usize;
        Status { gauges: machine.gauges(), state, queue_size: machine.queue_size() }
    }

    /// Whether the deletion of a topic goes on: it waits for no broker that is gone.
    pub(crate) fn is_deleting(&self, topic: &TopicName) -> bool {
        let machine = lock(&self.machine);
        let deletions = &machine.context().deletions;
        deletions.queued.contains(topic) && !deletions.ineligible.contains(topic)
    }

    /// Whether a topic is to be deleted, though that may have to wait for a broker that is gone.
    pub(crate) fn is_queued_for_deletion(&self, topic: &TopicName) -> bool {
        lock(&self.machine).context().deletions.queued.contains(topic)
    }

    /// Panics if an invariant does not hold ([`Broker::check`]).
    pub(crate) fn check(&self) {
        lock(&self.machine).check();
        self.channels.check();
    }

    /// How many control requests wait for each broker.
    pub(crate) fn queue_sizes(&self) -> BTreeMap<BrokerId, usize> {
        self.channels.queue_sizes()
    }

    /// How many leaders were elected that were not in sync.
    pub(crate) fn unclean_elections(&self) -> u64 {
        self.unclean_elections.get()
    }

    /// Forgets the requests that are not answered.
    pub(crate) fn let_go(&self) {
        let open = std::mem::take(&mut lock(&self.requests).open);
        drop(open);
    }

    /// What was done to a partition and why, oldest first.
    pub(crate) fn history(&self, partition: &TopicPartition) -> Vec<Value> {
        self.history.of(partition)
    }
}

impl std::fmt::Debug for ControllerDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerDriver")
            .field("is_active", &self.is_active())
            .field("epoch", &self.epoch())
            .finish_non_exhaustive()
    }
}

/// A watched znode changed.
pub(crate) fn node_changed(broker: &Arc<Broker>, path: &str, kind: NodeEventKind) {
    if let Some(event) = watches::event(path, kind) {
        tell(broker, event);
    }
}

/// Asks the controller of this broker; one that is not in office answers NOT_CONTROLLER.
pub(crate) fn ask(broker: &Arc<Broker>, request: ApiRequest, answerer: Answerer) {
    let id = {
        let mut requests = lock(&broker.controller().requests);
        if requests.open.len() >= MAX_REQUESTS || broker.has_ended() {
            drop(requests);
            return answerer(Err(ErrorCode::RequestTimedOut));
        }
        requests.last += 1;
        let id = RequestId(requests.last);
        requests.open.insert(id, answerer);
        id
    };
    tell(broker, Event::Request { id, request });
}

/// Brings an event to the controller.
pub(crate) fn tell(broker: &Arc<Broker>, event: Event) {
    let driver = broker.controller();
    {
        let mut inbox = lock(&driver.inbox);
        inbox.events.push_back(event);
        if std::mem::replace(&mut inbox.is_served, true) {
            return;
        }
    }
    loop {
        let event = {
            let mut inbox = lock(&driver.inbox);
            let Some(event) = inbox.events.pop_front() else {
                inbox.is_served = false;
                drop(inbox);
                driver.progress.notify_all();
                return image_waits::recheck(broker);
            };
            event
        };
        let mut commands = Vec::new();
        let deadline = {
            let mut machine = lock(&driver.machine);
            machine.step(broker.now(), event, &mut commands);
            machine.deadline()
        };
        arm(broker, deadline);
        for command in commands {
            carry_out(broker, command);
        }
    }
}

fn carry_out(broker: &Arc<Broker>, command: Command) {
    let driver = broker.controller();
    match command {
        Command::Store { id, op } => {
            let then = broker.clone();
            store::begin(broker, op, move |result| tell(&then, Event::StoreDone { id, result }));
        }
        Command::Send { broker: to, request } => channels::send(broker, to, request),
        Command::OpenChannel { broker: to, registration } => channels::open(broker, to, &registration),
        Command::CloseChannel { broker: to } => channels::close(broker, to),
        Command::Answer { id, answer } => {
            let answerer = lock(&driver.requests).open.remove(&id);
            if let Some(answerer) = answerer {
                answerer(answer);
            }
        }
        Command::TookOffice { epoch } => {
            driver.epoch.store(epoch.0, Ordering::SeqCst);
            driver.is_active.store(true, Ordering::SeqCst);
        }
        Command::LeftOffice => {
            driver.is_active.store(false, Ordering::SeqCst);
            driver.epoch.store(0, Ordering::SeqCst);
            channels::close_all(broker);
        }
        Command::CountUncleanElection => driver.unclean_elections.inc(),
        Command::Note(note) => driver.history.add(broker.id(), broker.now(), note),
    }
}

/// Waits until this broker is controller and everything that follows from it is done, or until it takes too long.
pub(crate) fn wait_until_settled(broker: &Arc<Broker>, timeout: Duration) {
    let deadline = Instant::now() + timeout;
    let driver = broker.controller();
    let mut settled = lock(&driver.settled);
    while !is_settled(broker) {
        let rest = deadline.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return tracing::warn!("the broker serves although not all partitions are led yet");
        }
        let waited = driver.progress.wait_timeout(settled, rest.min(LOOK_AGAIN));
        settled = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// How often whoever waits looks again, whatever it has been told.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

fn is_settled(broker: &Broker) -> bool {
    let driver = broker.controller();
    // While the inbox is served, commands may be on their way.
    let is_idle = !lock(&driver.inbox).is_served
        && lock(&driver.machine).state() == ControllerState::Idle
        && driver.channels.are_idle();
    is_idle && driver.is_active() && broker.features().epoch() >= 0
}

/// Keeps the timer at the machine's deadline.
fn arm(broker: &Arc<Broker>, deadline: Option<i64>) {
    let mut timer = lock(&broker.controller().timer);
    if timer.map(|(at, _)| at) == deadline {
        return;
    }
    if let Some((at, number)) = timer.take() {
        broker.timers().remove(at, number);
    }
    if let Some(at) = deadline {
        let number = broker.timers().next_id();
        *timer = Some((at, number));
        broker.timers().add(at, number, Arc::new(Alarm));
    }
}

/// Wakes the controller at its deadline.
struct Alarm;

impl Delayed for Alarm {
    fn wake(self: Arc<Self>, broker: &Arc<Broker>, _why: Wake) {
        *lock(&broker.controller().timer) = None;
        tell(broker, Event::Tick);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
