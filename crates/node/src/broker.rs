//! The broker: what it holds, and how requests and time reach it.
//!
//! It starts no thread and opens no socket. Requests come through [`Broker::handle`] from any thread, time
//! through [`Broker::poll`] (deadlines of waiting requests; never blocks) and [`Broker::housekeep`] (disks;
//! may block), work that may block for long goes to the [`Executor`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use kernel::controller::Controller;
use kernel::controller::settings::Settings;
use kernel::metadata_image::MetadataImage;
use metadata::store::{SessionId, Store};
use storage::disk::Disk;
use storage::log_config::LogConfig;
use storage::log_dirs::LogDirs;
use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, Now, TopicId};

use crate::api::{self, FetchSessions};
use crate::append::Lanes;
use crate::append::lanes::AppendThreads;
use crate::call::{Connection, Reply};
use crate::clock::Clock;
use crate::config::{CurrentConfig, EndPoint, KafkaConfig};
use crate::control::Control;
use crate::delayed::{Timers, Wake};
use crate::departed::Departed;
use crate::drive::alter_partition::AlterPartitions;
use crate::drive::auto_create::InFlight;
use crate::drive::cleaner::{self, Cleaner};
use crate::drive::config_changes::ConfigChanges;
use crate::drive::controlled_shutdown;
use crate::drive::controller::ControllerDriver;
use crate::drive::features::FeaturesCache;
use crate::drive::fetchers::Fetchers;
use crate::drive::groups::{GroupCoordinator, Seen};
use crate::drive::housekeeping::Schedule;
use crate::drive::image_waits::ImageWaits;
use crate::drive::producer_ids::ProducerIds;
use crate::drive::session::StoreEvents;
use crate::drive::start::Membership;
use crate::drive::start::register::Registration;
use crate::drive::topics::NewNames;
use crate::jobs::{self, Executor, Job};
use crate::loggers::{LogLevel, LogLevels, Loggers};
use crate::metrics::{self, Metrics};
use crate::one_by_one;
use crate::partition::Origin;
use crate::partitions::Partitions;
use crate::peers::Peers;
use crate::reconfigured::Reconfigured;

/// How far the broker is; the numbers are those of Kafka's `BrokerState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BrokerState {
    /// Before the start and after the end.
    NotRunning = 0,
    /// Reading configuration and metadata.
    Starting = 1,
    /// Loading logs that were not closed.
    Recovery = 2,
    /// Serving.
    Running = 3,
    /// Handing leaderships over.
    PendingControlledShutdown = 6,
    /// Closing logs.
    ShuttingDown = 7,
}

/// What the broker reaches the world through.
pub struct Environment {
    /// The metadata store, open.
    pub store: Arc<dyn Store>,
    /// Where the store's session sends its events.
    pub store_events: Arc<StoreEvents>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// What the log directories lie on.
    pub disk: Arc<dyn Disk>,
    /// Where work that blocks is done.
    pub executor: Arc<dyn Executor>,
    /// Where the groups of a partition are read, which takes as long as its log is large: one partition after the other,
    /// beside all other work.
    pub group_loads: Arc<dyn Executor>,
    /// What others are told of the listeners that the broker starts with.
    pub endpoints: Endpoints,
    /// Where random choices come from: topic ids, session ids, first replicas.
    pub seed: u64,
    /// The broker's place in its cluster.
    pub membership: Membership,
    /// The way to the other brokers; [`NoPeers`](crate::peers::NoPeers) for a broker that is alone.
    pub peers: Arc<dyn Peers>,
}

/// The addresses that clients of each listener are told under a configuration, ports and hosts resolved.
pub type Endpoints = Box<dyn Fn(&KafkaConfig) -> Vec<EndPoint> + Send>;

/// A running broker.
pub struct Broker {
    id: BrokerId,
    config: ArcSwap<CurrentConfig>,
    config_writer: Mutex<()>,
    reconfigured: Reconfigured,
    loggers: OnceLock<Arc<Loggers>>,
    clock: Arc<dyn Clock>,
    store: Arc<dyn Store>,
    executor: Arc<dyn Executor>,
    group_loads: Arc<dyn Executor>,
    log_dirs: LogDirs,
    image: ArcSwap<MetadataImage>,
    image_writer: Mutex<()>,
    partitions: Partitions,
    timers: Timers,
    fetch_sessions: FetchSessions,
    producer_ids: ProducerIds,
    creating: InFlight,
    new_names: NewNames,
    schedule: Schedule,
    cleaner: Cleaner,
    metrics: Metrics,
    random: Mutex<fastrand::Rng>,
    state: AtomicU8,
    control: Control,
    alter_partition: AlterPartitions,
    fetchers: Fetchers,
    controller: ControllerDriver,
    image_waits: ImageWaits,
    config_changes: ConfigChanges,
    peers: Arc<dyn Peers>,
    correlation: AtomicI32,
    events: AtomicU64,
    departed: Departed,
    registration: ArcSwap<Registration>,
    session: Mutex<SessionId>,
    features: FeaturesCache,
    groups: GroupCoordinator,
    lanes: OnceLock<Lanes>,
}

/// What the start has found out, besides the environment.
pub(crate) struct Found {
    pub(crate) id: BrokerId,
    pub(crate) log_dirs: LogDirs,
    pub(crate) image: MetadataImage,
    /// The czxid of the broker's registration.
    pub(crate) broker_epoch: BrokerEpoch,
    /// What the broker tells of itself.
    pub(crate) registration: Registration,
    /// The topic of offsets, if there is one.
    pub(crate) offsets_topic: Option<Seen>,
}

impl Broker {
    pub(crate) fn new(config: CurrentConfig, environment: Environment, found: Found) -> Self {
        let mut random = fastrand::Rng::with_seed(environment.seed);
        let slots = config.max_incremental_fetch_session_cache_slots;
        let now = environment.clock.now();
        let settings = controller_settings(&config, found.id);
        let faults = config.planted_faults;
        Self {
            id: found.id,
            schedule: Schedule::new(&config, now),
            groups: GroupCoordinator::new(&config, found.offsets_topic, now),
            cleaner: Cleaner::new(&config, now.mono_ms),
            config: ArcSwap::from_pointee(config),
            config_writer: Mutex::new(()),
            reconfigured: Reconfigured::default(),
            loggers: OnceLock::new(),
            clock: environment.clock,
            store: environment.store,
            executor: environment.executor,
            group_loads: environment.group_loads,
            log_dirs: found.log_dirs,
            image: ArcSwap::from_pointee(found.image),
            image_writer: Mutex::new(()),
            partitions: Partitions::default(),
            timers: Timers::default(),
            fetch_sessions: FetchSessions::new(slots, random.u64(..)),
            producer_ids: ProducerIds::default(),
            creating: InFlight::default(),
            new_names: NewNames::default(),
            metrics: Metrics::default(),
            random: Mutex::new(random),
            state: AtomicU8::new(BrokerState::Starting as u8),
            control: Control::new(found.broker_epoch, ControllerEpoch(0), faults),
            alter_partition: AlterPartitions::default(),
            fetchers: Fetchers::default(),
            controller: ControllerDriver::new(Controller::new(settings)),
            image_waits: ImageWaits::default(),
            config_changes: ConfigChanges::default(),
            peers: environment.peers,
            correlation: AtomicI32::new(0),
            events: AtomicU64::new(1),
            departed: Departed::default(),
            registration: ArcSwap::from_pointee(found.registration),
            session: Mutex::default(),
            features: FeaturesCache::default(),
            lanes: OnceLock::new(),
        }
    }

    /// Handles one frame, without its size prefix. The reply comes before this returns or later, from any
    /// thread. Requests of one connection that must not overtake each other are handed in one by one.
    pub fn handle(self: &Arc<Self>, connection: &Arc<Connection>, frame: Bytes, reply: Reply) {
        api::dispatch(self, connection, frame, reply);
    }

    /// Ends the waiting requests whose time is over. Returns the next deadline on the monotonic clock.
    pub fn poll(self: &Arc<Self>) -> Option<i64> {
        let expired = self.timers.take_expired(self.now().mono_ms);
        one_by_one::for_each(self, expired, |broker, waiter| waiter.wake(broker, Wake::Expired));
        if !self.is_shutting_down() {
            let due = self.timers.take_due_tasks(self.now().mono_ms);
            one_by_one::for_each(self, due, |broker, task| task(broker));
        }
        self.timers.next_deadline()
    }

    /// Does what is due on the disks: retention, checkpoints, removals. Returns when to come back.
    pub fn housekeep(self: &Arc<Self>) -> i64 {
        self.schedule.run(self)
    }

    /// How many threads are to call [`Broker::clean`], each again and again.
    pub fn cleaner_threads(&self) -> usize {
        self.cleaner.threads()
    }

    /// One round of the cleaner: compacts a log if one is due. May take minutes; ends soon when the broker leaves or
    /// shuts down. Returns when to come back.
    pub fn clean(self: &Arc<Self>) -> i64 {
        cleaner::round(self)
    }

    /// `hook` is called with the new deadline when [`Broker::poll`] must come earlier than it said.
    pub fn on_earlier_deadline(&self, hook: impl Fn(i64) + Send + Sync + 'static) {
        self.timers.on_earlier_deadline(Box::new(hook));
    }

    /// Lets appends that could hold up a thread of the sockets go elsewhere. Called once, when sockets are served;
    /// before, and in a broker without sockets, appends run where they are handed in.
    pub fn spread_appends(&self, threads: AppendThreads) {
        let lanes = Lanes::new(threads, &self.log_dirs.healths());
        if self.lanes.set(lanes).is_err() {
            tracing::error!("the threads of appends are given once");
        }
    }

    /// Looks for appends that do not end, since their disk stalls. Returns when to come back; none: when
    /// [`AppendThreads::watch_within`] says so. Never blocks.
    pub fn watch_appends(&self) -> Option<Duration> {
        self.lanes().and_then(Lanes::watch)
    }

    /// Hands leaderships over (controlled shutdown), which takes all that a broker does: requests of the controller and
    /// fetches of followers must still be served. Blocks until that is done or given up.
    pub fn leave(self: &Arc<Self>) {
        let (end, ended) = mpsc::channel::<()>();
        self.begin_to_leave(move || drop(end));
        // Nothing is sent: the channel ends, also if the broker is stopped meanwhile and forgets the rest.
        let _ = ended.recv();
    }

    /// As [`Broker::leave`], without blocking: `done` is called in the end.
    pub fn begin_to_leave(self: &Arc<Self>, done: impl FnOnce() + Send + 'static) {
        self.set_state(BrokerState::PendingControlledShutdown);
        self.cleaner.stop();
        controlled_shutdown::hand_over(self, Box::new(done));
    }

    /// Closes the logs and writes the marks of a clean shutdown; the store is closed last.
    pub fn shut_down(self: &Arc<Self>) {
        self.set_state(BrokerState::ShuttingDown);
        self.cleaner.stop();
        self.fetchers.stop(self);
        let waiting = self.timers.take_expired(i64::MAX - 1);
        one_by_one::for_each(self, waiting, |broker, waiter| waiter.wake(broker, Wake::Expired));
        // With ZooKeeper the mark tells no broker epoch.
        let threads = self.config().num_recovery_threads_per_data_dir.max(1);
        self.log_dirs.shut_down(threads, BrokerEpoch(-1));
        self.store.close();
        self.abandon();
    }

    /// The broker's id.
    pub fn id(&self) -> BrokerId {
        self.id
    }

    /// The configuration in force. It is a moment's: dynamic configs change it.
    pub fn config(&self) -> Guard<Arc<CurrentConfig>> {
        self.config.load()
    }

    /// The loggers that clients may describe and alter. Called once; before, and in a broker of which it is not called,
    /// a change has no effect.
    pub fn log_by(&self, loggers: Arc<Loggers>) {
        if self.loggers.set(loggers).is_err() {
            tracing::error!("the loggers are given once");
        }
    }

    /// The loggers of the process.
    pub(crate) fn loggers(&self) -> &Loggers {
        self.loggers.get_or_init(|| {
            let levels = LogLevels { root: LogLevel::Info, own: BTreeMap::new() };
            Arc::new(Loggers::new(levels, |_| {}))
        })
    }

    /// Puts in force what `change` makes of the configuration. Gives the one before, the new one, and the problems that
    /// `change` tells.
    pub(crate) fn reconfigure(
        &self,
        change: impl FnOnce(&CurrentConfig) -> (CurrentConfig, Vec<String>),
    ) -> (Arc<CurrentConfig>, Arc<CurrentConfig>, Vec<String>) {
        let _writer = self.config_writer.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.config.load_full();
        let (after, problems) = change(&before);
        let after = Arc::new(after);
        self.config.store(after.clone());
        (before, after, problems)
    }

    /// All metrics as text of the OpenMetrics format.
    pub fn render_metrics(self: &Arc<Self>) -> String {
        metrics::render(self)
    }

    /// What the cluster looks like now.
    pub fn image(&self) -> Arc<MetadataImage> {
        self.image.load_full()
    }

    /// The state, as a number of [`BrokerState`].
    pub fn state(&self) -> u8 {
        self.state.load(Ordering::Relaxed)
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.state() == BrokerState::ShuttingDown as u8
    }

    pub(crate) fn set_state(&self, state: BrokerState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn lanes(&self) -> Option<&Lanes> {
        self.lanes.get()
    }

    /// Does work that may block where that harms nobody.
    pub(crate) fn run_job(&self, job: impl FnOnce() + Send + 'static) {
        jobs::run(&*self.executor, Box::new(job));
    }

    /// As [`Self::run_job`], for whoever must not do the work himself.
    ///
    /// # Errors
    /// Gives the work back if there is no room for it.
    pub(crate) fn offer_job(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Job> {
        self.executor.submit(Box::new(job))
    }

    /// Loads groups where nothing else waits for it.
    pub(crate) fn run_group_load(&self, job: impl FnOnce() + Send + 'static) {
        jobs::run(&*self.group_loads, Box::new(job));
    }

    pub(crate) fn log_dirs(&self) -> &LogDirs {
        &self.log_dirs
    }

    pub(crate) fn cleaner(&self) -> &Cleaner {
        &self.cleaner
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    pub(crate) fn fetch_sessions(&self) -> &FetchSessions {
        &self.fetch_sessions
    }

    pub(crate) fn producer_ids(&self) -> &ProducerIds {
        &self.producer_ids
    }

    pub(crate) fn creating(&self) -> &InFlight {
        &self.creating
    }

    /// The names of topics that are in creation.
    pub(crate) fn new_names(&self) -> &NewNames {
        &self.new_names
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What is known of the cluster's features.
    pub(crate) fn features(&self) -> &FeaturesCache {
        &self.features
    }

    /// What the broker tells the cluster of itself.
    pub(crate) fn registration(&self) -> Arc<Registration> {
        self.registration.load_full()
    }

    /// From now on the broker tells this of itself, whenever it registers.
    pub(crate) fn register_as(&self, registration: Registration) -> Arc<Registration> {
        let registration = Arc::new(registration);
        self.registration.store(registration.clone());
        registration
    }

    /// Who is told of changes of the configuration.
    pub(crate) fn reconfigured(&self) -> &Reconfigured {
        &self.reconfigured
    }

    /// The groups that this broker coordinates.
    pub(crate) fn groups(&self) -> &GroupCoordinator {
        &self.groups
    }

    /// The session under which the broker is registered.
    pub(crate) fn session(&self) -> SessionId {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn session_began(&self, session: SessionId) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    pub(crate) fn is_controller(&self) -> bool {
        self.controller.is_active()
    }

    /// The controller that this broker holds, in office or not.
    pub(crate) fn controller(&self) -> &ControllerDriver {
        &self.controller
    }

    /// The requests that wait for the picture to change.
    pub(crate) fn image_waits(&self) -> &ImageWaits {
        &self.image_waits
    }

    /// How far the changes of configs are followed.
    pub(crate) fn config_changes(&self) -> &ConfigChanges {
        &self.config_changes
    }

    /// Replaces the picture by what `change` makes of it.
    pub(crate) fn update_image(&self, change: impl FnOnce(MetadataImage) -> MetadataImage) {
        let _writer = self.image_writer.lock().unwrap_or_else(PoisonError::into_inner);
        let now = MetadataImage::clone(&self.image.load());
        self.image.store(Arc::new(change(now)));
    }

    /// The settings of the logs of a topic with these configs.
    pub(crate) fn log_config(&self, configs: &BTreeMap<String, String>) -> LogConfig {
        self.config().log_config(configs)
    }

    /// A number below `bound`, or 0 if that is 0.
    pub(crate) fn draw(&self, bound: usize) -> usize {
        self.random().usize(0..bound.max(1))
    }

    /// An id for a new topic: random, and no reserved one.
    pub(crate) fn draw_topic_id(&self) -> TopicId {
        loop {
            let id = TopicId(
                uuid::Builder::from_random_bytes(self.random().u128(..).to_be_bytes())
                    .into_uuid()
                    .into_bytes(),
            );
            // The zero id and the id of Kafka's own metadata topic are reserved, and so is a leading dash: tools
            // would take such an id for an option.
            if id.0.iter().take(15).any(|byte| *byte != 0) && !id.to_string().starts_with('-') {
                return id;
            }
        }
    }

    /// A random UUID, written out.
    pub(crate) fn draw_uuid(&self) -> String {
        let bytes = self.random().u128(..).to_be_bytes();
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    fn random(&self) -> MutexGuard<'_, fastrand::Rng> {
        self.random.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hosted partitions.
    pub(crate) fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// The requests of controllers.
    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// The changes of the ISR that are asked for.
    pub(crate) fn alter_partition(&self) -> &AlterPartitions {
        &self.alter_partition
    }

    /// What copies the partitions that this broker follows.
    pub(crate) fn fetchers(&self) -> &Fetchers {
        &self.fetchers
    }

    /// The way to the other brokers.
    pub(crate) fn peers(&self) -> &Arc<dyn Peers> {
        &self.peers
    }

    /// A number for a request to another broker.
    pub(crate) fn next_correlation_id(&self) -> i32 {
        self.correlation.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for something that happens to a partition.
    pub(crate) fn next_event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::Relaxed)
    }

    /// A request of a controller, as the cause of what it brings about.
    pub(crate) fn origin(
        &self,
        request: &'static str,
        controller: BrokerId,
        controller_epoch: ControllerEpoch,
    ) -> Origin {
        Origin { number: self.next_event(), request, controller, controller_epoch }
    }

    /// What had happened to replicas that were removed.
    pub(crate) fn departed(&self) -> &Departed {
        &self.departed
    }

    /// Leader and epoch of a partition, for clients that went to the wrong broker.
    pub(crate) fn known_leader(&self, topic: &str, partition: i32) -> Option<(BrokerId, LeaderEpoch)> {
        let image = self.image.load();
        image.partition(topic, partition).map(|it| (it.leader, it.leader_epoch))
    }

    /// How many log directories have failed.
    pub(crate) fn offline_log_dirs(&self) -> usize {
        self.log_dirs.offline_count()
    }
}

fn controller_settings(config: &CurrentConfig, id: BrokerId) -> Settings {
    let percentage = config.leader_imbalance_per_broker_percentage;
    Settings {
        broker_id: id,
        release: config.inter_broker_protocol_version,
        inter_broker_listener: config.listeners.inter_broker.clone(),
        unclean_leader_election_enable: config.log_config(&BTreeMap::new()).unclean_leader_election_enable,
        delete_topic_enable: config.delete_topic_enable,
        auto_leader_rebalance_enable: config.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_ms: config
            .leader_imbalance_check_interval_seconds
            .saturating_mul(1000),
        leader_imbalance_per_broker_percentage: u32::try_from(percentage).unwrap_or(0),
        faults: config.planted_faults,
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").field("id", &self.id).field("state", &self.state()).finish_non_exhaustive()
    }
}
