//! The broker's fetch sessions: one lock for the cache, one for each session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::fetch::session::{Session, SessionCache};

/// The open sessions.
pub(crate) struct FetchSessions {
    cache: Mutex<SessionCache<Arc<Mutex<Session>>>>,
    ids: Mutex<fastrand::Rng>,
}

impl FetchSessions {
    /// An empty cache of `slots` places; ids are drawn from `seed`.
    pub(crate) fn new(slots: usize, seed: u64) -> Self {
        Self { cache: Mutex::new(SessionCache::new(slots)), ids: Mutex::new(fastrand::Rng::with_seed(seed)) }
    }

    /// The session `id`, marked as used.
    pub(crate) fn get(&self, id: i32, mono_ms: i64) -> Option<Arc<Mutex<Session>>> {
        self.cache().get(id, mono_ms).cloned()
    }

    /// Opens a session if there is room; returns its id.
    pub(crate) fn open(&self, session: Session, privileged: bool, mono_ms: i64) -> Option<i32> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let size = session.len();
        self.cache().create(mono_ms, privileged, size, || ids.i32(1..), Arc::new(Mutex::new(session)))
    }

    /// Closes a session; an unknown one is no error.
    pub(crate) fn close(&self, id: i32) {
        self.cache().remove(id);
    }

    /// Notes the number of partitions of a session.
    pub(crate) fn resized(&self, id: i32, size: usize) {
        self.cache().resized(id, size);
    }

    /// Sessions, partitions in them, and evictions so far.
    pub(crate) fn counts(&self) -> (usize, usize, u64) {
        let cache = self.cache();
        (cache.len(), cache.partitions(), cache.evictions())
    }

    fn cache(&self) -> MutexGuard<'_, SessionCache<Arc<Mutex<Session>>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for FetchSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FetchSessions").field("open", &self.cache().len()).finish_non_exhaustive()
    }
}
