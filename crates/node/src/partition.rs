//! One partition on this broker: its log, its role, the produces that queue for it, the requests that wait.

mod change;
mod history;
mod role;
mod watchers;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use kernel::metadata_image::MetadataImage;
use kernel::replica::control::Local;
use kernel::replica::leader::{Event, IsrAnswer, IsrChange, Leadership};
use storage::partition_log::PartitionLog;
use wire::error_code::ErrorCode;
use wire::types::{BrokerEpoch, BrokerId, LeaderEpoch, Offset, TopicId, TopicPartition};

use crate::append::Append;
use crate::broker::Broker;
use crate::delayed::{Delayed, Wake};
use crate::metrics::TopicMeters;
use crate::one_by_one;

pub(crate) use self::history::{Happened, Origin, Truncated};
pub(crate) use self::role::{Effects, Following, Leading, ReplicaCounts, Role};

use self::history::{Epochs, History, Trigger, What};
use self::role::State;
use self::watchers::Watchers;

/// A hosted partition.
pub(crate) struct Partition {
    name: TopicPartition,
    topic_id: OnceLock<TopicId>,
    log: Arc<PartitionLog>,
    meters: Arc<TopicMeters>,
    state: RwLock<State>,
    appends: Mutex<AppendQueue>,
    /// Consumers' fetches, and produces that want all in-sync replicas.
    by_high_watermark: Watchers,
    /// Followers' fetches.
    by_log_end: Watchers,
    /// Deletions of records that all replicas must follow.
    by_low_watermark: Watchers,
    history: Mutex<History>,
}

/// The produces that wait for their turn; the one who finds the queue idle serves it.
#[derive(Default)]
struct AppendQueue {
    waiting: VecDeque<Append>,
    served: bool,
}

/// What became of a produce that was handed in.
pub(crate) enum Queued {
    /// Nobody serves the queue: the caller must.
    Serve,
    /// Somebody serves the queue and will come to it.
    Served,
    /// The queue is full.
    Full(Append),
}

/// A follower's fetch that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FollowerFetch {
    /// The follower.
    pub(crate) replica: BrokerId,
    /// Its registration, as it told it; -1 if it told none.
    pub(crate) broker_epoch: BrokerEpoch,
    /// The epoch of the leadership that it was read in.
    pub(crate) leader_epoch: LeaderEpoch,
    /// The offset it asked for.
    pub(crate) offset: Offset,
    /// The start of its log.
    pub(crate) log_start: Offset,
    /// The end of the leader's log, read before the records.
    pub(crate) leader_end: Offset,
}

/// How many produces may wait for one partition.
const MAX_QUEUED: usize = 10_000;

impl Partition {
    /// A partition of which nobody has said yet who leads it.
    pub(crate) fn new(
        name: TopicPartition,
        topic_id: TopicId,
        log: Arc<PartitionLog>,
        meters: Arc<TopicMeters>,
    ) -> Self {
        let partition = Self {
            name,
            topic_id: OnceLock::new(),
            log,
            meters,
            state: RwLock::new(State::Follower(Following::NOBODY)),
            appends: Mutex::default(),
            by_high_watermark: Watchers::default(),
            by_log_end: Watchers::default(),
            by_low_watermark: Watchers::default(),
            history: Mutex::default(),
        };
        partition.learn_topic_id(topic_id);
        partition
    }

    /// Topic and index.
    pub(crate) fn name(&self) -> &TopicPartition {
        &self.name
    }

    /// The topic's id, zero if it has none.
    pub(crate) fn topic_id(&self) -> TopicId {
        self.topic_id.get().copied().unwrap_or(TopicId::ZERO)
    }

    /// The topic has this id; once it is known it does not change. The zero id says nothing.
    pub(crate) fn learn_topic_id(&self, id: TopicId) {
        if !id.is_zero() {
            self.topic_id.get_or_init(|| id);
        }
    }

    /// The log.
    pub(crate) fn log(&self) -> &Arc<PartitionLog> {
        &self.log
    }

    /// The meters of the topic.
    pub(crate) fn meters(&self) -> &Arc<TopicMeters> {
        &self.meters
    }

    /// Panics if the positions of the log are not in order (L1), or an invariant of the leader does not hold.
    pub(crate) fn check(&self) {
        let it = self.log.positions();
        let in_order = it.log_start <= it.last_stable
            && it.last_stable <= it.high_watermark
            && it.high_watermark <= it.log_end;
        assert!(in_order && it.recovery_point <= it.log_end, "L1: {}: {it:?}", self.name);
        if let State::Leader(leading) = &*self.state() {
            leading.machine().check();
        }
    }

    /// The present role.
    pub(crate) fn role(&self) -> Role {
        if self.is_dir_online() { self.state().role() } else { Role::Offline }
    }

    /// What is here, as a request of the controller sees it.
    pub(crate) fn local(&self) -> Local {
        let (leader_epoch, partition_epoch) = match &*self.state() {
            _ if !self.is_dir_online() => return Local::Offline,
            State::Offline => return Local::Offline,
            State::Leader(leading) => (leading.epoch(), leading.machine().partition_epoch()),
            State::Follower(following) => (following.epoch, following.partition_epoch),
            State::Deleted => (LeaderEpoch::UNKNOWN, -1),
        };
        Local::Present { leader_epoch, partition_epoch, topic_id: self.log.topic_id() }
    }

    /// Checks the client's leader epoch (-1: not given), then that this broker leads. Returns the epoch.
    pub(crate) fn check_leader(&self, asked: LeaderEpoch) -> Result<LeaderEpoch, ErrorCode> {
        match self.check_epoch(asked)? {
            Role::Leader(epoch) => Ok(epoch),
            _ => Err(ErrorCode::NotLeaderOrFollower),
        }
    }

    /// Checks the client's leader epoch (-1: not given) and that there is a replica here. Returns its role: leader or
    /// follower.
    pub(crate) fn check_epoch(&self, asked: LeaderEpoch) -> Result<Role, ErrorCode> {
        let role = self.role();
        let epoch = match role {
            Role::Leader(epoch) => epoch,
            Role::Follower(following) => following.epoch,
            Role::Offline => return Err(ErrorCode::KafkaStorageError),
            Role::Deleted => return Err(ErrorCode::NotLeaderOrFollower),
        };
        match asked {
            LeaderEpoch::UNKNOWN => Ok(role),
            asked if asked < epoch => Err(ErrorCode::FencedLeaderEpoch),
            asked if asked > epoch => Err(ErrorCode::UnknownLeaderEpoch),
            _ => Ok(role),
        }
    }

    fn is_dir_online(&self) -> bool {
        self.log.health().is_online()
    }

    /// Hands in a produce.
    pub(crate) fn queue(&self, append: Append) -> Queued {
        let mut queue = self.append_queue();
        if queue.waiting.len() >= MAX_QUEUED {
            return Queued::Full(append);
        }
        queue.waiting.push_back(append);
        if std::mem::replace(&mut queue.served, true) { Queued::Served } else { Queued::Serve }
    }

    /// The next produces to serve, in order; none, and the queue is idle again.
    pub(crate) fn take_queued(&self) -> VecDeque<Append> {
        let mut queue = self.append_queue();
        if queue.waiting.is_empty() {
            queue.served = false;
        }
        std::mem::take(&mut queue.waiting)
    }

    fn append_queue(&self) -> MutexGuard<'_, AppendQueue> {
        self.appends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Acting in a role.
impl Partition {
    /// Does something as leader; the leadership lasts while it is done. `act` must not ask the partition for its role, and
    /// must not send, wake or wait.
    ///
    /// # Errors
    /// If this broker does not lead.
    pub(crate) fn while_leading<T>(&self, act: impl FnOnce(&Leading) -> T) -> Result<T, ErrorCode> {
        if !self.is_dir_online() {
            return Err(ErrorCode::KafkaStorageError);
        }
        self.state().leading().map(act)
    }

    /// Changes the log as follower in `epoch`; the role lasts while it is done. `None`, and nothing is done, if this
    /// broker has another role or epoch by now. `act` must not ask the partition for its role, and must not send, wake or
    /// wait.
    pub(crate) fn while_following<T>(
        &self,
        epoch: LeaderEpoch,
        act: impl FnOnce(&PartitionLog) -> T,
    ) -> Option<T> {
        match &*self.state() {
            State::Follower(following) if following.epoch == epoch => Some(act(&self.log)),
            _ => None,
        }
    }

    /// Hands an event to the leader; one who does not lead does not care.
    pub(crate) fn tell_leader(&self, broker: &Arc<Broker>, event: Event) {
        let Ok(effects) = self.while_leading(|leading| leading.step(&self.log, broker.now(), event)) else {
            return;
        };
        self.carry_out(broker, effects);
        self.wake_low_watermark(broker);
    }

    /// A follower's fetch was read without an error and without a diverging epoch: the follower has everything below
    /// its offset. ISR and high watermark may change.
    pub(crate) fn follower_fetched(&self, broker: &Arc<Broker>, fetch: FollowerFetch) {
        let FollowerFetch { replica, broker_epoch, leader_epoch, offset, log_start, leader_end } = fetch;
        let event =
            Event::FollowerFetched { replica, broker_epoch, leader_epoch, offset, log_start, leader_end };
        self.tell_leader(broker, event);
    }

    /// The answer to a change of the ISR that the leader has asked for.
    pub(crate) fn isr_answered(&self, broker: &Arc<Broker>, change: IsrChange, answer: IsrAnswer) {
        if !matches!(answer, IsrAnswer::Confirmed { .. }) {
            broker.metrics().replicas.failed_isr_updates.inc();
        }
        self.tell_leader(broker, Event::IsrAnswered { change, answer });
    }

    /// Does what a step of the leader has left to do. No lock of the partition may be held.
    pub(crate) fn carry_out(&self, broker: &Arc<Broker>, effects: Effects) {
        self.note_causes(broker, effects.notes, None);
        if let Some(change) = effects.submit {
            broker.alter_partition().submit(broker, self, change);
        }
        if let Some(high_watermark) = effects.high_watermark {
            self.high_watermark_moved(broker, high_watermark);
        }
    }

    /// Time has passed: followers that lag behind leave the ISR.
    pub(crate) fn tick(&self, broker: &Arc<Broker>) {
        if self.while_leading(Leading::has_followers) == Ok(true) {
            self.tell_leader(broker, Event::Tick);
        }
    }

    /// Other brokers are alive than before.
    pub(crate) fn live_brokers_changed(&self, broker: &Arc<Broker>) {
        if self.while_leading(Leading::has_followers) == Ok(true) {
            let image = broker.image();
            let Some(leadership) = self.leadership() else { return };
            self.tell_leader(broker, Event::LiveBrokers(live_among(&image, &leadership.replicas)));
        }
    }

    /// Whether a broker has a replica, as far as the leader knows.
    pub(crate) fn is_replica(&self, id: BrokerId) -> bool {
        self.while_leading(|leading| leading.machine().remote(id).is_some()) == Ok(true)
    }

    /// The follower to which a consumer is sent, as [`Leader::preferred_read_replica`] says; `None` also if this broker does
    /// not lead. `rack_of` must not ask the partition for its role.
    ///
    /// [`Leader::preferred_read_replica`]: kernel::replica::leader::Leader::preferred_read_replica
    pub(crate) fn preferred_read_replica<'a>(
        &self,
        fetch_offset: Offset,
        client_rack: &str,
        rack_of: impl Fn(BrokerId) -> Option<&'a str>,
    ) -> Option<BrokerId> {
        let choose =
            |leading: &Leading| leading.machine().preferred_read_replica(fetch_offset, client_rack, rack_of);
        self.while_leading(choose).ok()?
    }

    /// The decision that this broker leads by, with the ISR as it is confirmed now; `None` if it does not lead.
    pub(crate) fn leadership(&self) -> Option<Leadership> {
        self.while_leading(Leading::leadership).ok()
    }

    /// What dashboards show of the ISR; all zero where this broker does not lead.
    pub(crate) fn replica_counts(&self) -> ReplicaCounts {
        self.while_leading(Leading::replica_counts).unwrap_or_default()
    }

    /// What has become of records that this broker has appended as leader of `epoch` and that end below `end`. `None`
    /// while they are not replicated.
    pub(crate) fn replicated(&self, epoch: LeaderEpoch, end: Offset) -> Option<Result<(), ErrorCode>> {
        self.while_leading(|leading| leading.replicated(&self.log, epoch, end))
            .unwrap_or_else(|error| Some(Err(error)))
    }

    /// The offset below which no live replica has records any more (KIP-107); below zero while a live follower has not
    /// told.
    ///
    /// # Errors
    /// If this broker does not lead.
    pub(crate) fn low_watermark(&self) -> Result<Offset, ErrorCode> {
        self.while_leading(|leading| leading.low_watermark(&self.log))
    }
}

/// Waiting.
impl Partition {
    /// `waiter` wants to know when the high watermark moves beyond `offset`, or the role changes.
    pub(crate) fn watch_high_watermark(&self, offset: Offset, id: u64, waiter: Arc<dyn Delayed>) {
        self.by_high_watermark.add(offset, id, waiter);
    }

    /// The waiter of this number does not wait here any more.
    pub(crate) fn unwatch_high_watermark(&self, offset: Offset, id: u64) {
        self.by_high_watermark.remove(offset, id);
    }

    /// `waiter` wants to know when the leader's log grows beyond `offset`, or the role changes.
    pub(crate) fn watch_log_end(&self, offset: Offset, id: u64, waiter: Arc<dyn Delayed>) {
        self.by_log_end.add(offset, id, waiter);
    }

    /// The waiter of this number does not wait here any more.
    pub(crate) fn unwatch_log_end(&self, offset: Offset, id: u64) {
        self.by_log_end.remove(offset, id);
    }

    /// `waiter` wants to know when the low watermark moves beyond `offset`, or the role changes.
    pub(crate) fn watch_low_watermark(&self, offset: Offset, id: u64, waiter: Arc<dyn Delayed>) {
        self.by_low_watermark.add(offset, id, waiter);
    }

    /// The waiter of this number does not wait here any more.
    pub(crate) fn unwatch_low_watermark(&self, offset: Offset, id: u64) {
        self.by_low_watermark.remove(offset, id);
    }

    /// Wakes those for whom the high watermark has moved far enough.
    pub(crate) fn high_watermark_moved(&self, broker: &Arc<Broker>, high_watermark: Offset) {
        wake(broker, self.by_high_watermark.take_passed(high_watermark));
    }

    /// Wakes those for whom the leader's log has grown far enough.
    pub(crate) fn log_end_moved(&self, broker: &Arc<Broker>, log_end: Offset) {
        wake(broker, self.by_log_end.take_passed(log_end));
    }

    fn wake_low_watermark(&self, broker: &Arc<Broker>) {
        if self.by_low_watermark.is_empty() {
            return;
        }
        if let Ok(low) = self.low_watermark() {
            wake(broker, self.by_low_watermark.take_passed(low.plus(1)));
        }
    }

    /// Wakes everybody: the role has changed. Those who can go on waiting stay.
    pub(crate) fn wake_all(&self, broker: &Arc<Broker>) {
        for watchers in [&self.by_high_watermark, &self.by_log_end, &self.by_low_watermark] {
            if !watchers.is_empty() {
                wake(broker, watchers.all());
            }
        }
    }
}

/// The end of the broker.
impl Partition {
    /// Forgets those who wait, and what is queued.
    pub(crate) fn let_go(&self) {
        for watchers in [&self.by_high_watermark, &self.by_log_end, &self.by_low_watermark] {
            watchers.let_go();
        }
        drop(std::mem::take(&mut self.append_queue().waiting));
    }
}

/// Those of `replicas` whose brokers are alive.
fn live_among(image: &MetadataImage, replicas: &[BrokerId]) -> BTreeSet<BrokerId> {
    replicas.iter().filter(|id| image.brokers().contains_key(id)).copied().collect()
}

fn wake(broker: &Arc<Broker>, waiters: Vec<Arc<dyn Delayed>>) {
    one_by_one::for_each(broker, waiters, |broker, waiter| waiter.wake(broker, Wake::Progress));
}

/// What happened, and why.
impl Partition {
    /// The last things that happened to the partition, the oldest first.
    pub(crate) fn history(&self) -> Vec<Happened> {
        self.history_mut().entries().cloned().collect()
    }

    /// Notes what the log had lost when it was opened.
    pub(crate) fn note_loss(&self, broker: &Broker) {
        if let Some(loss) = self.log.loss() {
            self.note(broker, Trigger::Opened, None, What::Lost(loss));
        }
    }

    /// Notes that the log was cut, as the leader's answer wanted it.
    pub(crate) fn note_truncation(&self, broker: &Broker, leader: BrokerId, truncated: Truncated) {
        let meters = &broker.metrics().replicas;
        if truncated.from != truncated.to {
            meters.truncations.inc();
        }
        if truncated.loses_replicated() {
            meters.truncations_below_high_watermark.inc();
        }
        self.note(broker, Trigger::LeaderAnswer(leader), None, What::Truncated(truncated));
    }

    fn note(&self, broker: &Broker, trigger: Trigger, told: Option<Epochs>, what: What) {
        let (number, at_ms) = (broker.next_event(), broker.now().wall_ms);
        let mut history = self.history_mut();
        let happened = history.next(number, at_ms, trigger, told, self.log.positions(), what);
        happened.log(&self.name);
        history.keep(happened);
    }

    fn history_mut(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Partition")
            .field("name", &self.name)
            .field("role", &self.role())
            .finish_non_exhaustive()
    }
}
