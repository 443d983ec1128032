//! The contract's fixture: a tree of its own below a chroot, and a proxy for each session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interop::tcp_proxy::{Direction, TcpProxy};
use interop::zookeeper::Zookeeper;
use metadata::contract::{Faults, Fixture};
use metadata::store::{EventSink, Store};
use metadata::zookeeper::{SessionCredentials, SessionEnd, ZooKeeperOptions, ZooKeeperStore};

/// A fixture cannot go on without what it asks for.
#[track_caller]
fn ok<T, E: std::fmt::Debug>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("unexpected error {error:?}"),
    }
}

/// Options for `zookeeper.connect`.
pub(crate) fn options(connect: &str) -> ZooKeeperOptions {
    let mut options = ZooKeeperOptions::new(ok(connect.parse()));
    options.session_timeout = Duration::from_secs(4);
    options.connection_timeout = Duration::from_secs(30);
    options.create_chroot = true;
    options
}

/// A server and how many trees it has given.
pub(crate) struct Ensemble {
    server: Zookeeper,
    trees: AtomicUsize,
}

impl Ensemble {
    pub(crate) fn new(server: Zookeeper) -> Self {
        Self { server, trees: AtomicUsize::new(0) }
    }

    /// An empty tree.
    pub(crate) fn fixture(&self) -> Tree {
        let number = self.trees.fetch_add(1, Ordering::Relaxed);
        Tree {
            server: self.server.address(),
            chroot: format!("/contract/tree-{number}"),
            sessions: Mutex::default(),
        }
    }
}

/// What is known of a session.
struct Session {
    proxy: TcpProxy,
    credentials: Arc<Mutex<Option<SessionCredentials>>>,
}

/// A tree with its sessions, by the address of their store.
pub(crate) struct Tree {
    server: String,
    chroot: String,
    sessions: Mutex<HashMap<usize, Session>>,
}

fn key(store: &dyn Store) -> usize {
    std::ptr::from_ref(store).cast::<()>() as usize
}

impl Tree {
    fn sessions(&self) -> MutexGuard<'_, HashMap<usize, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, store: &dyn Store, work: impl FnOnce(&Session) -> T) -> T {
        let sessions = self.sessions();
        let Some(session) = sessions.get(&key(store)) else { panic!("no session of this tree") };
        work(session)
    }
}

impl Fixture for Tree {
    fn connect(&self, sink: EventSink) -> Arc<dyn Store> {
        let proxy = ok(TcpProxy::start(&self.server));
        let mut options = options(&format!("{}{}", proxy.address(), self.chroot));
        let credentials = Arc::new(Mutex::new(None));
        let keeping = credentials.clone();
        options.keep = Some(Arc::new(move |new: &SessionCredentials| {
            *keeping.lock().unwrap_or_else(PoisonError::into_inner) = Some(new.clone());
        }));
        let store = Arc::new(ok(ZooKeeperStore::connect(&options, sink)));
        self.sessions().insert(key(&*store), Session { proxy, credentials });
        store
    }

    fn expire(&self, store: &dyn Store) {
        self.with(store, |session| {
            session.proxy.cut();
            let credentials = session.credentials.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(credentials) = credentials else { panic!("no session was kept") };
            let ended = ok(ZooKeeperStore::end_session(&options(&self.server), credentials));
            assert_eq!(ended, SessionEnd::Ended);
            session.proxy.heal();
        });
    }

    fn faults(&self) -> Option<&dyn Faults> {
        Some(self)
    }
}

impl Faults for Tree {
    fn cut(&self, store: &dyn Store) {
        self.with(store, |session| session.proxy.cut());
    }

    fn hold_answers(&self, store: &dyn Store) {
        self.with(store, |session| session.proxy.hold(Direction::Answers));
    }

    fn heal(&self, store: &dyn Store) {
        self.with(store, |session| session.proxy.heal());
    }
}
