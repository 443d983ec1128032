//! The life of a server: ports are taken, the node starts, listeners open, and one day all is closed in order.
//!
//! The order of the end: the node gives away what it leads while all is still served, nothing new is accepted,
//! requests in service are answered, the node answers what waits and closes its logs, what is left of connections
//! is ended. A second signal ends the process at once.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use net::listener::{BindError, BoundListener, Listener};
use net::table::{ConnectionLimits, ConnectionTable};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::http::{self, HttpError, Watched};
use crate::metrics::ServerMetrics;
use crate::node_trait::{Node, Wanted};
use crate::settings::ServerSettings;
use crate::start_block::StartBlock;
use crate::ticker::Ticker;

mod control_plane;
mod listeners;
mod several;

pub use crate::node_trait::Bound;
pub use several::{Serving, Start, run_all};

use self::control_plane::ControlPlane;
use self::listeners::Listeners;

/// How long the last answers may take to be written.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long a start may go on when the server is to stop.
const START_GRACE: Duration = Duration::from_secs(2);
/// The exit code of a process that a second signal ends.
const FORCED: i32 = 130;

/// Why a server did not start, or did not end well.
#[derive(Debug, Error)]
pub enum RunError {
    /// A listener cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A listener's port was taken after it was bound.
    #[error("listener {name}: {error}")]
    Listen {
        /// The listener.
        name: Arc<str>,
        /// What the system says.
        error: io::Error,
    },
    /// The HTTP page cannot be had.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The node did not start.
    #[error("{0}")]
    Node(String),
    /// The system gave no threads or signals.
    #[error("the system refuses what every process gets: {0}")]
    System(#[from] io::Error),
}

/// Serves until the process is asked to stop (SIGTERM, SIGINT). `start` makes the node, knowing the ports; it
/// may take its time. Returns when everything is closed.
///
/// # Errors
/// If the server does not start, with one line to tell the operator.
pub fn run<F>(settings: ServerSettings, start: F) -> Result<(), RunError>
where
    F: FnOnce(&[Bound]) -> Result<Arc<dyn Node>, String> + Send + 'static,
{
    let runtime = runtime(settings.network_threads, settings.blocking_threads)?;
    let result = runtime.block_on(async {
        let stop = CancellationToken::new();
        let signals = tokio::spawn(stop_on_signals(signal_pair()?, stop.clone()));
        let result = serve(settings, start, stop, |block| block.print(&mut io::stdout().lock())).await;
        signals.abort();
        result
    });
    // A cold read that is still under way is nobody's any more.
    runtime.shutdown_timeout(LAST_WORDS);
    result
}

fn runtime(network_threads: usize, blocking_threads: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(network_threads)
        .max_blocking_threads(blocking_threads)
        .thread_name("network")
        .enable_all()
        .build()
}

fn signal_pair() -> io::Result<(Signal, Signal)> {
    Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
}

/// The first signal stops the server, the second one ends the process.
async fn stop_on_signals((mut terminate, mut interrupt): (Signal, Signal), stop: CancellationToken) {
    let mut next = async || {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    let name = next().await;
    tracing::info!("{name}: stopping; a second signal ends at once");
    stop.cancel();
    let name = next().await;
    tracing::error!("{name} again: ending at once, logs will be recovered at the next start");
    std::process::exit(FORCED);
}

/// Serves until `stop`; `say` is given the start block when all is open.
async fn serve<F, S>(
    settings: ServerSettings,
    start: F,
    stop: CancellationToken,
    say: S,
) -> Result<(), RunError>
where
    F: FnOnce(&[Bound]) -> Result<Arc<dyn Node>, String> + Send + 'static,
    S: FnOnce(&StartBlock<'_>) -> io::Result<()>,
{
    let bound = settings.listeners.iter().cloned().map(BoundListener::bind).collect::<Result<Vec<_>, _>>()?;
    let watched = Watched { stopping: stop.clone(), ..Watched::default() };
    let page = open_page(&settings, &watched)?;
    let ports: Vec<_> = bound
        .iter()
        .map(|listener| Bound { name: Arc::clone(&listener.settings().name), address: listener.address() })
        .collect();
    let Some(started) = until_started(tokio::task::spawn_blocking(move || start(&ports)), &stop).await else {
        tracing::warn!("stopped while starting; the logs that were open will be recovered at the next start");
        return Ok(());
    };
    let node = started.unwrap_or_else(|error| Err(error.to_string())).map_err(RunError::Node)?;
    let served = open(&settings, &node, bound, &watched).await;
    let served = match served {
        Ok(served) => served,
        Err(error) => {
            on_a_thread(&node, "close its logs", |node| node.shut_down()).await;
            return Err(error);
        }
    };
    let block = StartBlock {
        id: node.id(),
        listeners: &served.listeners,
        http: page.as_ref().map(|page| page.address),
        http_moved: page.as_ref().is_some_and(|page| page.moved),
        about: &settings.about,
    };
    if let Err(error) = say(&block) {
        tracing::warn!(%error, "standard output takes no start block");
    }
    let accepting = served.accept(&node);
    stop.cancelled().await;
    on_a_thread(&node, "give away what it leads", |node| node.leave()).await;
    accepting.stop(&node, settings.drain).await;
    if let Some(page) = page {
        page.stop.cancel();
        // Whoever is still reading a page is left alone.
        let _ = tokio::time::timeout(LAST_WORDS, page.task).await;
    }
    tracing::info!("shut down completed");
    Ok(())
}

/// Waits for the start; none if the server is to stop and the start does not end soon. A start may wait for long, for
/// another broker or for logs to be recovered, and has served nobody yet.
async fn until_started<T>(
    mut starting: JoinHandle<T>,
    stop: &CancellationToken,
) -> Option<Result<T, JoinError>> {
    tokio::select! {
        started = &mut starting => Some(started),
        () = stop.cancelled() => tokio::time::timeout(START_GRACE, starting).await.ok(),
    }
}

/// The HTTP page.
struct Page {
    address: SocketAddr,
    moved: bool,
    task: JoinHandle<()>,
    stop: CancellationToken,
}

fn open_page(settings: &ServerSettings, watched: &Watched) -> Result<Option<Page>, RunError> {
    if settings.http.address.is_empty() {
        return Ok(None);
    }
    let listener: TcpListener = http::bind(&settings.http)?;
    let address = listener.local_addr()?;
    let stop = CancellationToken::new();
    let expected = settings.http.address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let moved = !settings.http.asked && expected != Some(address.port());
    let task = tokio::spawn(http::serve(listener, watched.clone(), stop.clone()));
    Ok(Some(Page { address, moved, task, stop }))
}

/// A server whose listeners listen, though nobody accepts yet.
struct Served {
    listeners: Vec<Listener>,
    keeper: Listeners,
    table: Arc<ConnectionTable>,
    clock: Ticker,
    disks: Ticker,
    cleaners: Vec<Ticker>,
}

async fn open(
    settings: &ServerSettings,
    node: &Arc<dyn Node>,
    bound: Vec<BoundListener>,
    watched: &Watched,
) -> Result<Served, RunError> {
    let poller = Arc::clone(node);
    let clock = Ticker::start("deadlines", move || poller.poll())?;
    let waker = clock.waker();
    node.on_earlier_deadline(Arc::new(move |rest| waker.wake_within(rest)));
    // A deadline may have been set before the hook was there.
    clock.waker().wake_within(Duration::ZERO);
    let keeper = Arc::clone(node);
    let disks = Ticker::start("disks", move || Some(keeper.housekeep()))?;
    let cleaners = (0..node.cleaner_threads()).map(|number| {
        let cleaner = Arc::clone(node);
        Ticker::start(&format!("cleaner-{number}"), move || cleaner.clean())
    });
    let cleaners = cleaners.collect::<io::Result<Vec<_>>>()?;
    let (limits, bound) = as_wanted(settings, node, bound).await?;
    let table = ConnectionTable::new(limits);
    let start_thread = |name: &Arc<str>| ControlPlane::start(Arc::clone(name), settings.blocking_threads);
    let control_plane = settings.control_plane.as_ref().map(start_thread).transpose()?;
    let metrics = Arc::new(ServerMetrics::new(Handle::current()));
    let keeper = Listeners::new(Arc::clone(node), Arc::clone(&table), Arc::clone(&metrics), control_plane);
    let listeners = bound.into_iter().map(|it| keeper.listen(it)).collect::<Result<Vec<_>, _>>()?;
    // Set once: a server runs once.
    let _ = watched.running.set((Arc::clone(node), metrics));
    Ok(Served { listeners, keeper, table, clock, disks, cleaners })
}

/// The limits and listeners that the node wants, which may have found others than it was started with.
async fn as_wanted(
    settings: &ServerSettings,
    node: &Arc<dyn Node>,
    bound: Vec<BoundListener>,
) -> Result<(ConnectionLimits, Vec<BoundListener>), RunError> {
    let (node, limits) = (Arc::clone(node), settings.limits.clone());
    let asked = tokio::task::spawn_blocking(move || match node.wanted() {
        Some(wanted) => Ok((wanted.limits, listeners::rebind(bound, wanted.listeners)?)),
        None => Ok::<_, RunError>((limits, bound)),
    });
    asked.await.unwrap_or_else(|error| Err(RunError::Node(error.to_string())))
}

impl Served {
    /// Begins to accept on every listener.
    fn accept(self, node: &Arc<dyn Node>) -> Accepting {
        let stop = CancellationToken::new();
        let Self { listeners, mut keeper, table, clock, disks, cleaners } = self;
        for listener in listeners {
            keeper.accept(listener);
        }
        let (want, wanted) = watch::channel(None::<Wanted>);
        let keeper = tokio::spawn(keeper.keep(wanted, stop.clone()));
        node.on_wanted(Box::new(move |wanted| drop(want.send_replace(Some(wanted)))));
        Accepting { keeper, stop, table, clock, disks, cleaners }
    }
}

/// A server at work.
struct Accepting {
    keeper: JoinHandle<Option<ControlPlane>>,
    stop: CancellationToken,
    table: Arc<ConnectionTable>,
    clock: Ticker,
    disks: Ticker,
    cleaners: Vec<Ticker>,
}

impl Accepting {
    /// Ends all in order.
    async fn stop(self, node: &Arc<dyn Node>, drain: Duration) {
        self.stop.cancel();
        // Serves its connections until this ends.
        let _control_plane = self.keeper.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the listeners did not end");
            None
        });
        self.table.drain();
        // Who is not done by then gets his answer below, or none.
        let _ = tokio::time::timeout(drain, self.table.emptied()).await;
        let tickers: Vec<_> = self.cleaners.into_iter().chain([self.disks]).collect();
        let stopped = tokio::task::spawn_blocking(move || tickers.into_iter().for_each(Ticker::stop));
        if let Err(error) = stopped.await {
            tracing::error!(%error, "the threads of the disks did not end");
        }
        on_a_thread(node, "close its logs", |node| node.shut_down()).await;
        let _ = tokio::time::timeout(LAST_WORDS, self.table.emptied()).await;
        self.table.end_all();
        let _ = tokio::time::timeout(LAST_WORDS, self.table.emptied()).await;
        self.clock.stop();
    }
}

/// Lets the node do something that may block.
async fn on_a_thread(node: &Arc<dyn Node>, what: &str, work: fn(&dyn Node)) {
    let node = Arc::clone(node);
    if let Err(error) = tokio::task::spawn_blocking(move || work(node.as_ref())).await {
        tracing::error!(%error, "the node did not {what}");
    }
}

#[cfg(test)]
mod tests;
