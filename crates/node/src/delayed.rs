//! Requests that wait: for records, for replicas, for patience to end.
//!
//! A waiting request stands in two places at once, at the partitions it waits for and in the timer. Whoever
//! comes first wakes it; it ends at most once, by taking its own job out. Nothing here is called with a lock
//! of a partition held.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kernel::fetch::waiters::Deadlines;

use crate::broker::Broker;

/// Why a waiting request is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Something it waits for has moved.
    Progress,
    /// Its time is over: it must end now.
    Expired,
}

/// A request that waits.
pub(crate) trait Delayed: Send + Sync {
    /// Ends the request if it can or must; a request that has ended already does nothing.
    fn wake(self: Arc<Self>, broker: &Arc<Broker>, why: Wake);
}

type Hook = Box<dyn Fn(i64) + Send + Sync>;

/// The waiting requests in order of their deadlines.
#[derive(Default)]
pub(crate) struct Timers {
    deadlines: Mutex<Deadlines<Arc<dyn Delayed>>>,
    ids: AtomicU64,
    // Tells the thread that polls the broker that its next deadline is earlier than it believes.
    hook: OnceLock<Hook>,
}

impl Timers {
    /// A number that no other waiting request has.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// `hook` is called with the earliest deadline whenever that has become an earlier one.
    pub(crate) fn on_earlier_deadline(&self, hook: Hook) {
        // A second hook is ignored: one thread polls.
        let _ = self.hook.set(hook);
    }

    /// Wakes `waiter` at `mono_ms` at the latest.
    pub(crate) fn add(&self, mono_ms: i64, id: u64, waiter: Arc<dyn Delayed>) {
        let first = self.lock().add(mono_ms, id, waiter);
        if let (true, Some(hook)) = (first, self.hook.get()) {
            hook(mono_ms);
        }
    }

    /// Forgets a waiter that has ended.
    pub(crate) fn remove(&self, mono_ms: i64, id: u64) {
        self.lock().remove(mono_ms, id);
    }

    /// Takes out those whose time is over at `mono_ms`.
    pub(crate) fn take_expired(&self, mono_ms: i64) -> Vec<Arc<dyn Delayed>> {
        self.lock().take_expired(mono_ms)
    }

    /// The earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<i64> {
        self.lock().next()
    }

    /// How many requests wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Deadlines<Arc<dyn Delayed>>> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").field("len", &self.len()).finish_non_exhaustive()
    }
}
