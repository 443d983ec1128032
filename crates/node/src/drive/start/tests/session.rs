//! A start whose session with the store ends in the middle.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use metadata::store::{Done, Request, SessionId};
use metadata::znode::broker;
use tempfile::TempDir;

use super::*;
use crate::StoreEvents;
use crate::jobs::Inline;
use crate::peers::NoPeers;

/// A store whose session ends with the answer to a request.
struct Dying {
    session: EmbeddedSession,
    store: Arc<EmbeddedStore>,
    /// How many requests are answered before that.
    left: Arc<AtomicI64>,
}

impl Store for Dying {
    fn submit(&self, request: Request, done: Done) {
        let (store, left, id) = (self.store.clone(), self.left.clone(), self.session.session_id());
        let end = move |answer| {
            if left.fetch_sub(1, Ordering::SeqCst) == 0
                && let Some(id) = id
            {
                store.expire(id);
            }
            done(answer);
        };
        self.session.submit(request, Box::new(end));
    }

    fn session_id(&self) -> Option<SessionId> {
        self.session.session_id()
    }

    fn renew(&self) {
        self.session.renew();
    }

    fn close(&self) {
        self.session.close();
    }
}

/// Starts a broker whose session ends with the answer to request `at`, and waits until it is registered and controller
/// under a session that lives. Returns whether the session ended.
fn start_and_end_session(at: i64) -> bool {
    const PATIENCE: Duration = Duration::from_secs(20);
    let dir = TempDir::new().unwrap();
    let logs = dir.path().join("logs").display().to_string();
    let config = config(&[("log.dirs", &logs), ("broker.id", "0")]);
    let store = Arc::new(EmbeddedStore::open_memory().unwrap());
    let store_events = Arc::new(StoreEvents::default());
    let left = Arc::new(AtomicI64::new(at));
    let session = store.session(store_events.sink());
    let dying = Arc::new(Dying { session, store: store.clone(), left: left.clone() });
    let environment = Environment {
        store: dying.clone(),
        store_events,
        clock: Arc::new(SystemClock::default()),
        disk: Arc::new(RealDisk),
        executor: Arc::new(Inline),
        group_loads: Arc::new(Inline),
        endpoints: Box::new(|config| config.listeners.advertised.clone()),
        seed: 7,
        membership: Membership::Alone,
        peers: Arc::new(NoPeers),
    };
    let broker = start(config, environment).unwrap_or_else(|error| panic!("request {at}: {error}"));
    let looking = self::session(&store);
    let begun = Instant::now();
    loop {
        let found = Blocking::new(&looking).find(&broker::path(BrokerId(0))).unwrap();
        let owner = found.map(|(_, stat)| stat.ephemeral_owner);
        if owner.is_some() && owner == dying.session_id() && broker.is_controller() {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "request {at}: registered by {owner:?}");
        broker.poll();
        std::thread::yield_now();
    }
    broker.shut_down();
    left.load(Ordering::SeqCst) < 0
}

/// KAFKA-14887, and all the other moments.
#[test]
fn a_session_that_ends_at_any_moment_of_the_start_is_followed_by_another_one() {
    let ended = (0..60).filter(|at| start_and_end_session(*at)).count();
    assert!(ended > 20, "{ended} sessions ended while the broker started");
}
