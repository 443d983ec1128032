//! The real node behind the server: the broker of crate `node` on its metadata store.

use std::any::Any;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use metadata::embedded::EmbeddedStore;
use metadata::store::EventSink;
use net::peer_link::LinkCounters;
use net::{ConnectionInfo, FrameHandler};
use node::broker::{Broker, BrokerState, Environment};
use node::call::{self, Connection};
use node::clock::{Clock, SystemClock};
use node::config::{EndPoint, KafkaConfig};
use node::jobs::{Executor, Job};
use node::loggers::Loggers;
use node::{AppendThreads, StoreEvents};
use tokio::runtime::Handle;
use wire::response::Part;

use crate::elastic::Elastic;
use crate::node_trait::{DeadlineHook, Node, Readiness, Wanted, WantedHook};
use crate::peers::{self, PeerSettings, TcpPeers};
use crate::pool::Pool;
use crate::run::{Bound, RunError, Serving, Start, run, run_all};
use crate::settings::ServerSettings;
use crate::store::{self, Held, OpenStore};
use crate::ticker::Ticker;

/// Threads that make and remove logs.
const JOB_THREADS: usize = 2;
/// Jobs that may wait for them.
const JOB_QUEUE: usize = 1_000;
/// Threads that write beside those of the sockets: one for each log directory and each fetcher, while they have work.
const APPEND_THREADS: usize = 64;

/// Serves with this configuration until the process is asked to stop. Clients may alter `loggers`.
///
/// # Errors
/// If the broker does not start, with one line to tell the operator.
pub fn serve(config: KafkaConfig, loggers: Arc<Loggers>) -> Result<(), RunError> {
    let mut settings =
        ServerSettings::from_config(&config).map_err(|error| RunError::Node(error.to_string()))?;
    let dirs: Vec<_> = config.log_dirs.iter().map(|dir| dir.display().to_string()).collect();
    settings.about.push(("data".to_owned(), dirs.join(", ")));
    if let Some(zookeeper) = &config.zookeeper {
        settings.about.push(("cluster".to_owned(), format!("ZooKeeper {}", zookeeper.connect)));
    }
    run(settings, move |bound| start(config, loggers, bound, store::open))
}

/// Serves several brokers of one cluster, which share `store`, until the process is asked to stop; `say` is given
/// what is said when all of them serve.
///
/// # Errors
/// If one of them does not start, with one line to tell the operator.
pub fn serve_several<S>(
    configs: Vec<KafkaConfig>,
    loggers: &Arc<Loggers>,
    store: EmbeddedStore,
    say: S,
) -> Result<(), RunError>
where
    S: FnOnce(&[Serving]) -> io::Result<()>,
{
    let store = Arc::new(store);
    let mut nodes = Vec::with_capacity(configs.len());
    for config in configs {
        let settings =
            ServerSettings::from_config(&config).map_err(|error| RunError::Node(error.to_string()))?;
        let store = Arc::clone(&store);
        let loggers = Arc::clone(loggers);
        let begin: Start =
            Box::new(move |bound| start(config, loggers, bound, |_, sink| Ok(store::share(&store, sink))));
        nodes.push((settings, begin));
    }
    run_all(nodes, say)
}

fn start<O>(
    mut config: KafkaConfig,
    loggers: Arc<Loggers>,
    bound: &[Bound],
    open: O,
) -> Result<Arc<dyn Node>, String>
where
    O: FnOnce(&KafkaConfig, EventSink) -> Result<OpenStore, String>,
{
    config.prefer_recovery_threads(std::thread::available_parallelism().map_or(1, usize::from));
    let store_events = Arc::new(StoreEvents::default());
    let OpenStore { store, membership, held } = open(&config, store_events.sink())?;
    let pool = Pool::start("jobs", JOB_THREADS, JOB_QUEUE).map_err(|error| error.to_string())?;
    // One job loads all that waits, and at most the next one waits for its end.
    let group_loads = Pool::start("group-loads", 1, 1).map_err(|error| error.to_string())?;
    let bound = bound.to_vec();
    let peers = Arc::new(TcpPeers::new(Handle::current(), PeerSettings::from_config(&config)));
    let peer_counters = peers.counters();
    let environment = Environment {
        store,
        store_events,
        membership,
        clock: Arc::new(SystemClock::new()),
        disk: Arc::new(node::RealDisk),
        executor: Arc::new(pool),
        group_loads: Arc::new(group_loads),
        endpoints: Box::new(move |config| endpoints(config, &bound)),
        seed: seed(),
        peers,
    };
    let clock = environment.clock.clone();
    let broker = node::start(config, environment).map_err(|error| error.to_string())?;
    broker.log_by(loggers);
    held.started();
    let append_watch = spread_appends(&broker).map_err(|error| error.to_string())?;
    Ok(Arc::new(BrokerNode { broker, clock, peer_counters, _append_watch: append_watch, held }))
}

/// Lets appends run on the threads of the sockets but one, which stays for the sockets when a disk stalls, and on
/// threads of their own. The ticker looks at them.
fn spread_appends(broker: &Arc<Broker>) -> io::Result<Ticker> {
    let watched = Arc::clone(broker);
    let watch = Ticker::start("appends", move || watched.watch_appends())?;
    let (waker, sockets) = (watch.waker(), Handle::current());
    broker.spread_appends(AppendThreads {
        on_sockets: sockets.metrics().num_workers().saturating_sub(1),
        lanes: Arc::new(Elastic::new("append", APPEND_THREADS)),
        watch_within: Box::new(move |rest| waker.wake_within(rest)),
        // Work from outside makes the runtime wake a thread that rests, and that one watches the sockets.
        relieve: Box::new(move || drop(sockets.spawn(async {}))),
    });
    Ok(watch)
}

/// What clients are told: the advertised listeners, with the ports and the host name that were found.
fn endpoints(config: &KafkaConfig, bound: &[Bound]) -> Vec<EndPoint> {
    let port_of = |name: &str| bound.iter().find(|it| *it.name == *name).map(|it| it.address.port());
    let advertised = config.listeners.advertised.iter().cloned().map(|mut it| {
        if it.port == 0 {
            it.port = port_of(&it.listener_name).unwrap_or(0);
        }
        if it.host.is_empty() {
            it.host = host_name();
        }
        it
    });
    advertised.collect()
}

fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

fn seed() -> u64 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mixed = nanos.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u128::from(std::process::id()).rotate_left(32);
    u64::try_from(mixed & u128::from(u64::MAX)).unwrap_or_default()
}

impl Executor for Pool {
    fn submit(&self, job: Job) -> Result<(), Job> {
        Self::submit(self, job)
    }
}

impl Executor for Elastic {
    fn submit(&self, job: Job) -> Result<(), Job> {
        Self::submit(self, job)
    }
}

struct BrokerNode {
    broker: Arc<Broker>,
    clock: Arc<dyn Clock>,
    peer_counters: Arc<LinkCounters>,
    // Looks at appends until the node is gone.
    _append_watch: Ticker,
    // Ends after the broker.
    held: Held,
}

impl FrameHandler for BrokerNode {
    fn handle(&self, connection: &Arc<ConnectionInfo>, frame: Bytes, reply: net::Reply) {
        let Some(connection) = attached(connection) else {
            return reply.send(net::Outcome::Close {
                reason: "the connection belongs to another handler".to_owned(),
            });
        };
        self.broker.handle(&connection, frame, call::Reply::new(Back(reply)));
    }
}

/// The way back to the connection.
struct Back(net::Reply);

impl call::ReplySink for Back {
    fn send(self: Box<Self>, outcome: call::Outcome) {
        self.0.send(outward(outcome));
    }

    fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }
}

/// What the broker keeps with a connection, made with its first request.
fn attached(info: &ConnectionInfo) -> Option<Arc<Connection>> {
    let attachment = info.attachment.get_or_init(|| {
        Arc::new(Connection {
            listener: info.listener.to_string(),
            client_address: SocketAddr::ip(&info.peer).to_canonical(),
            id: info.to_string(),
            number: info.index,
            principal: "User:ANONYMOUS".to_owned(),
            client_software: OnceLock::new(),
        }) as Arc<dyn Any + Send + Sync>
    });
    Arc::clone(attachment).downcast().ok()
}

fn outward(outcome: call::Outcome) -> net::Outcome {
    match outcome {
        call::Outcome::Respond(parts) => net::Outcome::Respond(parts.into_iter().map(part).collect()),
        call::Outcome::NoResponse => net::Outcome::NoResponse,
        call::Outcome::Close(reason) => net::Outcome::Close { reason },
    }
}

fn part(part: Part<call::FileRange>) -> net::Part {
    match part {
        Part::Bytes(bytes) => Part::Bytes(bytes),
        Part::Range(range) => Part::Range(Box::new(OnDisk(range))),
    }
}

struct OnDisk(call::FileRange);

impl net::RangeSource for OnDisk {
    fn len(&self) -> u64 {
        self.0.len as u64
    }

    fn read_at(&self, buf: &mut [u8], at: u64) -> std::io::Result<usize> {
        self.0.read_at(buf, usize::try_from(at).unwrap_or(usize::MAX))
    }

    fn fd(&self) -> Option<(std::os::fd::BorrowedFd<'_>, u64)> {
        self.0.as_fd().map(|fd| (fd, self.0.position))
    }
}

impl BrokerNode {
    fn until(&self, mono_ms: i64) -> Duration {
        let rest = mono_ms.saturating_sub(self.clock.now().mono_ms);
        Duration::from_millis(u64::try_from(rest).unwrap_or(0))
    }
}

impl Node for BrokerNode {
    fn id(&self) -> i32 {
        self.broker.id().0
    }

    fn poll(&self) -> Option<Duration> {
        self.broker.poll().map(|deadline| self.until(deadline))
    }

    fn housekeep(&self) -> Duration {
        let next = self.broker.housekeep();
        self.until(next)
    }

    fn cleaner_threads(&self) -> usize {
        self.broker.cleaner_threads()
    }

    fn clean(&self) -> Option<Duration> {
        let next = self.broker.clean();
        (next < i64::MAX).then(|| self.until(next))
    }

    fn on_earlier_deadline(&self, hook: DeadlineHook) {
        let clock = self.clock.clone();
        self.broker.on_earlier_deadline(move |mono_ms| {
            let rest = mono_ms.saturating_sub(clock.now().mono_ms);
            hook(Duration::from_millis(u64::try_from(rest).unwrap_or(0)));
        });
    }

    fn wanted(&self) -> Option<Wanted> {
        Some(Wanted::of(&self.broker.config()))
    }

    fn on_wanted(&self, hook: WantedHook) {
        self.broker.on_reconfigured(move |config| hook(Wanted::of(config)));
    }

    fn bound(&self, bound: &[Bound]) {
        let config = self.broker.config();
        // Nobody is told of an address where nobody listens.
        let is_bound = |it: &EndPoint| bound.iter().any(|bound| *bound.name == *it.listener_name);
        if config.listeners.advertised.iter().all(is_bound) {
            self.broker.advertise(&endpoints(&config, bound));
        }
    }

    fn leave(&self) {
        self.broker.leave();
    }

    fn shut_down(&self) {
        self.broker.shut_down();
    }

    fn render_metrics(&self) -> String {
        let around = self.held.render_metrics() + &peers::metrics::render(&self.peer_counters);
        around + &self.broker.render_metrics()
    }

    fn readiness(&self) -> Readiness {
        let state = self.broker.state();
        let names = [
            (BrokerState::NotRunning, "not running"),
            (BrokerState::Starting, "starting"),
            (BrokerState::Recovery, "recovering logs"),
            (BrokerState::Running, "running"),
            (BrokerState::PendingControlledShutdown, "handing leaderships over"),
            (BrokerState::ShuttingDown, "shutting down"),
        ];
        let name = names.iter().find(|(it, _)| *it as u8 == state).map_or("unknown", |(_, name)| name);
        Readiness { ready: state == BrokerState::Running as u8, state: name.to_owned() }
    }

    fn recovery(&self) -> String {
        self.broker.recovery()
    }

    fn explain(&self, topic: &str, partition: i32) -> Option<String> {
        self.broker.explain(topic, partition)
    }
}
