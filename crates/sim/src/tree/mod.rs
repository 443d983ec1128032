//! The ensemble: one tree of znodes that is always there and never forgets. What can fail are the ways to it.

mod session;

use std::sync::{Arc, Weak};

use metadata::embedded::{EmbeddedSession, EmbeddedStore};
use metadata::store::{Blocking, EventSink, Request, Response, SessionId, Store, StoreError};
use wire::types::Millis;

use crate::incarnation::Incarnation;
use crate::world::World;

pub(crate) use session::TreeSession;

/// After how long without its owner a session ends, in milliseconds.
pub(crate) const SESSION_TIMEOUT_MS: u64 = 6_000;

/// The tree.
pub(crate) struct Tree {
    store: EmbeddedStore,
    /// A session that nobody cuts, for those who judge.
    observer: EmbeddedSession,
}

impl Tree {
    /// An empty tree in `world`.
    pub(crate) fn new(world: Weak<World>) -> Self {
        let clock = move || Millis(world.upgrade().map_or(0, |world| world.now().wall_ms));
        let store = EmbeddedStore::open_manual(Arc::new(clock));
        let observer = store.session(Arc::new(|_| {}));
        store.pump();
        Self { store, observer }
    }

    /// A session for one life of a broker.
    pub(crate) fn session(
        &self,
        world: Weak<World>,
        owner: Incarnation,
        sink: EventSink,
    ) -> Arc<TreeSession> {
        let session = TreeSession::begin(world, owner, &self.store, sink);
        self.store.pump();
        session
    }

    /// Ends a session although its owner may live.
    pub(crate) fn expire(&self, session: SessionId) {
        self.store.expire(session);
        self.store.pump();
    }

    /// The value of a znode, if it is there.
    pub(crate) fn value(&self, path: &str) -> Option<(Vec<u8>, i32)> {
        let found = Blocking::new(&self.observer).find(path).ok()??;
        Some((found.0.map(Vec::from).unwrap_or_default(), found.1.version))
    }

    /// The names of the children of a znode; none if it is not there.
    pub(crate) fn children(&self, path: &str) -> Vec<String> {
        Blocking::new(&self.observer).children(path).unwrap_or_default()
    }

    /// Writes in nobody's name, as an operator does.
    pub(crate) fn write(&self, request: Request) -> Result<Response, StoreError> {
        self.observer.call(request)
    }

    fn pump(&self) {
        self.store.pump();
    }
}
