//! One fetcher: what has come for it waits in a queue, and whoever finds it idle lets it work until the queue is empty.
//!
//! No lock is held while something is sent or a log is worked on: one thread at a time serves the queue, and the machine
//! is locked only for the moment of a step, so that metrics can look at it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use kernel::replica::fetcher::{Addition, Command, Event, Fetcher as Machine, Settings};
use wire::types::{Now, Offset, TopicId, TopicPartition};

use super::answers::{self, Asked, Records};
use super::logs::{self, Logs};
use super::{FetcherReport, IDLE_MS, Key, pass_on, requests, serve, tell};
use crate::broker::Broker;
use crate::metrics::{Counter, Rate};
use crate::partition::{Partition, Role};
use crate::peers::{Channel, PeerAddress, PeerError, Purpose};

/// What comes for a fetcher.
pub(super) enum Input {
    /// Partitions that follow its leader.
    Add(Vec<Arc<Partition>>),
    Remove(Vec<TopicPartition>),
    /// Partitions that other fetchers of the same leader are to take up.
    Pass(Vec<Arc<Partition>>),
    TopicId(TopicPartition, Option<TopicId>),
    /// The end of a request.
    Answered(Asked, Result<Bytes, PeerError>),
    /// A pause is over.
    Tick,
}

/// A fetcher.
pub(super) struct ReplicaFetcher {
    key: Key,
    inbox: Mutex<Inbox>,
    held: Mutex<Held>,
    correlation: AtomicI32,
    /// Whether the last request failed: the next failures are no news.
    failing: AtomicBool,
    requests: Counter,
    rate: Rate,
    bytes: Counter,
}

/// What waits to be taken in. Its length is bounded by what can come: one answer, a tick for each pause, and the
/// controller's requests, which come one at a time.
#[derive(Default)]
struct Inbox {
    inputs: VecDeque<Input>,
    served: bool,
    closed: bool,
}

struct Held {
    machine: Machine,
    partitions: BTreeMap<TopicPartition, Arc<Partition>>,
    address: Option<PeerAddress>,
    /// The earliest tick that will come.
    tick_ms: Option<i64>,
}

impl ReplicaFetcher {
    pub(super) fn new(broker: &Broker, key: Key) -> Arc<Self> {
        let config = broker.config();
        let settings = Settings {
            backoff_ms: i64::from(config.replica_fetch_backoff_ms),
            partition_max_bytes: config.replica_fetch_max_bytes,
            protocol: config.inter_broker_protocol_version,
            faults: config.planted_faults,
        };
        let machine = Machine::new(settings);
        Arc::new(Self {
            key,
            inbox: Mutex::default(),
            held: Mutex::new(Held { machine, partitions: BTreeMap::new(), address: None, tick_ms: None }),
            correlation: AtomicI32::new(0),
            failing: AtomicBool::new(false),
            requests: Counter::default(),
            rate: Rate::new(broker.now().mono_ms),
            bytes: Counter::default(),
        })
    }

    /// Which fetcher it is.
    pub(super) fn key(&self) -> Key {
        self.key
    }

    /// Hands in what has come. Returns the fetcher if nobody serves it: the caller must let it be served.
    #[must_use]
    pub(super) fn put(self: &Arc<Self>, input: Input) -> Option<Arc<Self>> {
        let mut inbox = self.inbox();
        if inbox.closed {
            return None;
        }
        inbox.inputs.push_back(input);
        let idle = !std::mem::replace(&mut inbox.served, true);
        idle.then(|| self.clone())
    }

    /// Takes in what has come, until nothing is left.
    pub(super) fn serve(self: &Arc<Self>, broker: &Arc<Broker>) {
        while let Some(input) = self.next() {
            self.take_in(broker, input);
        }
    }

    /// Nothing is taken in any more, and the connection ends.
    pub(super) fn close(&self, broker: &Broker) {
        {
            let mut inbox = self.inbox();
            inbox.closed = true;
            inbox.inputs.clear();
        }
        broker.peers().close(self.channel());
    }

    /// Whether there is nothing to do, and nothing has come.
    pub(super) fn is_idle(&self) -> bool {
        let inbox = self.inbox();
        !inbox.served && inbox.inputs.is_empty() && self.held().machine.is_empty()
    }

    /// Panics if an invariant of the machine does not hold.
    pub(super) fn check(&self) {
        self.held().machine.check();
    }

    /// What it has done.
    pub(super) fn report(&self, now: Now) -> FetcherReport {
        let held = self.held();
        FetcherReport {
            name: format!("ReplicaFetcherThread-{}-{}", self.key.number, self.key.leader),
            address: held.address.clone(),
            requests: self.requests.get(),
            bytes: self.bytes.get(),
            requests_per_second: self.rate.per_second(now.mono_ms),
            lags: held.machine.lags().map(|(name, lag)| (name.clone(), lag)).collect(),
        }
    }

    pub(super) fn channel(&self) -> Channel {
        Channel { broker: self.key.leader, purpose: Purpose::Fetcher(self.key.number) }
    }

    pub(super) fn next_correlation_id(&self) -> i32 {
        self.correlation.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn request_sent(&self, broker: &Broker, address: &PeerAddress) {
        self.requests.inc();
        self.rate.mark(broker.now().mono_ms);
        let mut held = self.held();
        if held.address.as_ref() != Some(address) {
            held.address = Some(address.clone());
        }
    }

    pub(super) fn records_taken(&self, broker: &Broker, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.bytes.add(bytes);
        broker.metrics().replication.bytes_in.add(bytes);
    }

    /// A partition that this fetcher has.
    pub(super) fn partition(&self, name: &TopicPartition) -> Option<Arc<Partition>> {
        self.held().partitions.get(name).cloned()
    }

    /// A request has failed: told once, until one succeeds.
    pub(super) fn request_failed(&self, reason: &str) {
        let known = self.failing.swap(true, Ordering::Relaxed);
        tell::request_failed(self.key, reason, known);
    }

    fn next(&self) -> Option<Input> {
        let mut inbox = self.inbox();
        let next = inbox.inputs.pop_front();
        inbox.served = next.is_some();
        next
    }

    fn take_in(self: &Arc<Self>, broker: &Arc<Broker>, input: Input) {
        let mut passed = Vec::new();
        let (event, records) = match input {
            Input::Add(partitions) => (self.take_up(broker, partitions), Records::default()),
            Input::Remove(names) => (self.let_go(names), Records::default()),
            Input::Pass(partitions) => {
                let names = partitions.iter().map(|partition| partition.name().clone()).collect();
                passed = partitions;
                (self.let_go(names), Records::default())
            }
            Input::TopicId(name, id) => (Event::TopicIds(vec![(name, id)]), Records::default()),
            Input::Answered(asked, answer) => self.read_answer(asked, answer),
            Input::Tick => {
                self.held().tick_ms = None;
                (Event::Tick, Records::default())
            }
        };
        self.run(broker, event, &records);
        self.rest(broker);
        pass_on(broker, self.key, passed);
    }

    fn let_go(&self, names: Vec<TopicPartition>) -> Event {
        let partitions = &mut self.held().partitions;
        for name in &names {
            partitions.remove(name);
        }
        Event::Remove(names)
    }

    fn read_answer(&self, asked: Asked, answer: Result<Bytes, PeerError>) -> (Event, Records) {
        let id = asked.id;
        let read = answer.map_err(|error| error.to_string()).and_then(|bytes| answers::read(asked, bytes));
        match read {
            Ok(read) => {
                self.failing.store(false, Ordering::Relaxed);
                read
            }
            Err(reason) => {
                self.request_failed(&reason);
                (Event::RequestFailed(id), Records::default())
            }
        }
    }

    fn take_up(&self, broker: &Broker, partitions: Vec<Arc<Partition>>) -> Event {
        let told_by_fetch = broker.config().inter_broker_protocol_version.truncation_on_fetch_supported();
        let mut additions = Vec::with_capacity(partitions.len());
        for partition in partitions {
            // Another role, or another leader: whoever gave it has seen to the rest.
            let Role::Follower(following) = partition.role() else { continue };
            if following.leader != self.key.leader {
                continue;
            }
            let name = partition.name().clone();
            // Nobody writes to the log any more: writers of other epochs are fenced (KAFKA-13266).
            let positions = partition.log().positions();
            let by_epoch = told_by_fetch && logs::latest_epoch(partition.log()).is_some();
            let offset: Offset = if by_epoch { positions.log_end } else { positions.high_watermark };
            let topic_id = Some(partition.topic_id()).filter(|id| !id.is_zero());
            broker.fetchers().partition_taken_up(&name);
            additions.push(Addition {
                partition: name.clone(),
                topic_id,
                leader_epoch: following.epoch,
                offset,
            });
            self.held().partitions.insert(name, partition);
        }
        Event::Add(additions)
    }

    /// Hands an event to the machine and does what it says, and so on with what comes of that.
    fn run(self: &Arc<Self>, broker: &Arc<Broker>, event: Event, records: &Records) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            if self.inbox().closed {
                return;
            }
            let mut commands = Vec::new();
            {
                let mut held = self.held();
                let Held { machine, partitions, .. } = &mut *held;
                machine.step(broker.now(), &Logs(partitions), event, &mut commands);
            }
            for command in commands {
                events.extend(self.obey(broker, command, records));
            }
        }
    }

    fn obey(self: &Arc<Self>, broker: &Arc<Broker>, command: Command, records: &Records) -> Option<Event> {
        match command {
            Command::SendFetch(_) | Command::SendOffsetsForLeaderEpoch(..) | Command::SendListOffsets(..) => {
                requests::send(broker, self, command)
            }
            Command::MarkFailed(name, failure) => {
                self.held().partitions.remove(&name);
                if broker.fetchers().partition_failed(self.key, &name) {
                    tell::failed(self.key, &name, failure);
                }
                None
            }
            Command::Note(note) => {
                tell::note(self.key, &note);
                None
            }
            on_a_log => logs::obey(broker, self, on_a_log, records),
        }
    }

    /// Before it rests: a pause ends at some time, and one who has nothing to do is closed after a while.
    fn rest(self: &Arc<Self>, broker: &Arc<Broker>) {
        let (tick_ms, empty) = {
            let mut held = self.held();
            let due = held.machine.deadline();
            let tick_ms = due.filter(|due| held.tick_ms.is_none_or(|tick| *due < tick));
            held.tick_ms = tick_ms.or(held.tick_ms);
            (tick_ms, held.machine.is_empty())
        };
        if let Some(tick_ms) = tick_ms {
            let fetcher = self.clone();
            broker.timers().add_task(tick_ms, move |broker| serve(broker, fetcher.put(Input::Tick)));
        }
        if empty {
            let key = self.key;
            let at_ms = broker.now().mono_ms.saturating_add(IDLE_MS);
            broker.timers().add_task(at_ms, move |broker| broker.fetchers().close_if_idle(broker, key));
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for ReplicaFetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplicaFetcher").field("key", &self.key).finish_non_exhaustive()
    }
}
