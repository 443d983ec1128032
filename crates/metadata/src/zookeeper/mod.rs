//! The store of a cluster: a session with a ZooKeeper ensemble.
//!
//! [`ZooKeeperStore`] keeps one session over changing connections, on a thread of its own. What to send and whom to tell
//! is decided by a pure machine (`machine/`); `driver` has the sockets. The protocol is written here and not taken from a
//! crate, since the broker needs null data, a successor's hold on the session of the process before it, and events and
//! answers in one order: see `docs/decisions/004-a-zookeeper-client-of-our-own.md`.

mod chroot;
mod codes;
mod connect_string;
mod credentials;
mod driver;
mod jute;
mod machine;
mod reply;
mod request;
mod session_file;
mod shared;
mod stats;
mod watches;

pub use connect_string::{ConnectString, ConnectStringError};
pub use credentials::SessionCredentials;
pub use session_file::{SESSION_FILE, SessionFile, SessionRecord, boot_id};
pub use stats::{Latencies, ZooKeeperStats};

use crate::path;
use crate::store::{Blocking, Done, EventSink, Request, SessionId, Store, StoreError, StoreEvent};
use chroot::Chroot;
use driver::{Command, Driver};
use machine::{CLOSE_LIMIT, Machine, Settings};
use shared::Shared;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Keeps what proves a new session one's own; called before anything is done in its name. It must not wait for the
/// store.
pub type KeepSession = Arc<dyn Fn(&SessionCredentials) + Send + Sync>;

/// How an ensemble is used.
#[derive(Clone)]
pub struct ZooKeeperOptions {
    /// `zookeeper.connect`.
    pub connect: ConnectString,
    /// `zookeeper.session.timeout.ms`; the ensemble has limits of its own.
    pub session_timeout: Duration,
    /// `zookeeper.connection.timeout.ms`: how long [`ZooKeeperStore::connect`] tries.
    pub connection_timeout: Duration,
    /// `zookeeper.max.in.flight.requests`.
    pub max_in_flight: usize,
    /// Whether a chroot that is not there is created.
    pub create_chroot: bool,
    /// Told of each new session.
    pub keep: Option<KeepSession>,
}

impl ZooKeeperOptions {
    /// Kafka's defaults.
    pub fn new(connect: ConnectString) -> Self {
        Self {
            connect,
            session_timeout: Duration::from_secs(18),
            connection_timeout: Duration::from_secs(18),
            max_in_flight: 10,
            create_chroot: false,
            keep: None,
        }
    }
}

/// Why an ensemble cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No server gave a session in time.
    #[error("no session with ZooKeeper {connect} within {} ms: {reason}", timeout.as_millis())]
    NoSession {
        /// The ensemble.
        connect: ConnectString,
        /// How long it was tried.
        timeout: Duration,
        /// What the last try failed with.
        reason: String,
    },
    /// There is no such znode as the chroot.
    #[error("ZooKeeper {0} has no znode at that path")]
    NoChroot(ConnectString),
    /// The chroot cannot be created.
    #[error("the path of ZooKeeper {connect} cannot be created: {error}")]
    Chroot {
        /// The ensemble.
        connect: ConnectString,
        /// Why.
        error: StoreError,
    },
    /// The thread of the store cannot be started.
    #[error("cannot start the store's thread: {0}")]
    Thread(std::io::Error),
}

/// What became of a session that was to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// It lived until now.
    Ended,
    /// It was over already, or the credentials are none of the ensemble's.
    WasOver,
}

/// A session with an ensemble. Dropping it without [`Store::close`] leaves the session to its timeout, as the end of the
/// process does.
pub struct ZooKeeperStore {
    commands: UnboundedSender<Command>,
    shared: Arc<Shared>,
}

impl ZooKeeperStore {
    /// Begins a session whose events go to `sink`; the first is [`StoreEvent::Connected`].
    ///
    /// # Errors
    /// If there is none within the connection timeout, or no chroot.
    pub fn connect(options: &ZooKeeperOptions, sink: EventSink) -> Result<Self, ConnectError> {
        let (store, _) = Self::open(options, None, sink)?;
        if options.connect.chroot.is_some() {
            store.check_chroot(options)?;
        }
        Ok(store)
    }

    /// Ends a session that another process began, so that its ephemerals vanish now and not at its timeout.
    ///
    /// # Errors
    /// If no server answers within the connection timeout.
    pub fn end_session(
        options: &ZooKeeperOptions,
        credentials: SessionCredentials,
    ) -> Result<SessionEnd, ConnectError> {
        let options = ZooKeeperOptions { keep: None, ..options.clone() };
        let (store, is_live) = Self::open(&options, Some(credentials), Arc::new(|_| {}))?;
        store.close();
        Ok(if is_live { SessionEnd::Ended } else { SessionEnd::WasOver })
    }

    /// What the store counts.
    pub fn stats(&self) -> Arc<ZooKeeperStats> {
        self.shared.stats.clone()
    }

    /// Starts the thread and waits for the first word of a session; tells whether it lives.
    fn open(
        options: &ZooKeeperOptions,
        resumed: Option<SessionCredentials>,
        sink: EventSink,
    ) -> Result<(Self, bool), ConnectError> {
        let (word, first_word) = mpsc::channel();
        let sink: EventSink = Arc::new(move |event| {
            let is_live = match event {
                StoreEvent::Connected { .. } => Some(true),
                StoreEvent::SessionExpired => Some(false),
                _ => None,
            };
            sink(event);
            if let Some(is_live) = is_live {
                // Only the first word is waited for.
                let _ = word.send(is_live);
            }
        });
        let store = Self::start(options, resumed, sink).map_err(ConnectError::Thread)?;
        match first_word.recv_timeout(options.connection_timeout) {
            Ok(is_live) => Ok((store, is_live)),
            Err(_) => Err(ConnectError::NoSession {
                connect: options.connect.clone(),
                timeout: options.connection_timeout,
                reason: store.shared.trouble(),
            }),
        }
    }

    fn start(
        options: &ZooKeeperOptions,
        resumed: Option<SessionCredentials>,
        sink: EventSink,
    ) -> std::io::Result<Self> {
        // Brokers with one configuration shall not all go to its first server.
        let mut servers = options.connect.servers.clone();
        fastrand::shuffle(&mut servers);
        let settings = Settings {
            servers: servers.len(),
            session_timeout: options.session_timeout,
            max_in_flight: options.max_in_flight,
            chroot: Chroot::new(options.connect.chroot.as_deref()),
        };
        let machine = Machine::new(settings, resumed, Instant::now());
        let (commands, receiver) = unbounded_channel();
        let shared = Arc::new(Shared::default());
        let driver = Driver::new(machine, receiver, shared.clone(), sink, options.keep.clone(), servers);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let work = move || {
            runtime.block_on(driver.run());
            // The search for a server's address may still be under way.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("zookeeper".to_owned()).spawn(work)?;
        shared.set_thread(thread.thread().id());
        Ok(Self { commands, shared })
    }

    fn check_chroot(&self, options: &ZooKeeperOptions) -> Result<(), ConnectError> {
        let connect = options.connect.clone();
        match Blocking::new(self).exists(path::ROOT) {
            Ok(Some(_)) => Ok(()),
            Ok(None) if options.create_chroot => create_chroot(options),
            Ok(None) => Err(ConnectError::NoChroot(connect)),
            Err(error) => Err(ConnectError::Chroot { connect, error }),
        }
    }
}

/// Creates the chroot with null data, in a session that sees the whole tree.
fn create_chroot(options: &ZooKeeperOptions) -> Result<(), ConnectError> {
    let mut whole = ZooKeeperOptions { keep: None, ..options.clone() };
    let Some(chroot) = whole.connect.chroot.take() else { return Ok(()) };
    let (store, _) = ZooKeeperStore::open(&whole, None, Arc::new(|_| {}))?;
    let created = Blocking::new(&store).ensure_path(&chroot);
    store.close();
    created.map_err(|error| ConnectError::Chroot { connect: options.connect.clone(), error })
}

impl Store for ZooKeeperStore {
    fn submit(&self, request: Request, done: Done) {
        if self.shared.is_closed() {
            return done(Err(StoreError::Closed));
        }
        if !self.shared.admit() {
            return done(Err(StoreError::Overloaded));
        }
        if let Err(refused) = self.commands.send(Command::Submit(request, done))
            && let Command::Submit(_, done) = refused.0
        {
            self.shared.answered();
            done(Err(StoreError::Closed));
        }
    }

    fn session_id(&self) -> Option<SessionId> {
        self.shared.session()
    }

    fn renew(&self) {
        // A thread that has ended has nothing to renew.
        drop(self.commands.send(Command::Renew));
    }

    /// Waits for the ensemble's confirmation, though not for long; then the session is left to its timeout.
    fn close(&self) {
        if !self.shared.begin_close() {
            return;
        }
        drop(self.commands.send(Command::Close));
        self.shared.wait_until_finished(CLOSE_LIMIT * 2);
    }
}

#[cfg(test)]
mod tests;
