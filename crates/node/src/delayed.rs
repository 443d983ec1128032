//! Requests that wait: for records, for replicas, for patience to end.
//!
//! A waiting request stands in two places at once, at the partitions it waits for and in the timer. Whoever
//! comes first wakes it; it ends at most once, by taking its own job out. Nothing here is called with a lock
//! of a partition held.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

/// A parked request looks this often whether its client is still there, in milliseconds: the time it may wait is the
/// client's to choose, and its place here is not.
pub(crate) const LOOK_INTERVAL_MS: i64 = 10_000;

type Hook = Box<dyn Fn(i64) + Send + Sync>;

/// Work of the broker's own that is due at some time; it is done by whoever polls, so it must not block.
type Task = Box<dyn FnOnce(&Arc<Broker>) + Send>;

/// The waiting requests in order of their deadlines, and what the broker itself does at a time.
#[derive(Default)]
pub(crate) struct Timers {
    deadlines: Mutex<Deadlines<Arc<dyn Delayed>>>,
    tasks: Mutex<Deadlines<Task>>,
    ids: AtomicU64,
    // Nothing is taken in any more.
    closed: AtomicBool,
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
        let first = {
            let mut deadlines = self.lock();
            if self.closed.load(Ordering::SeqCst) {
                return;
            }
            deadlines.add(mono_ms, id, waiter)
        };
        self.added(first, mono_ms);
    }

    /// Does `task` at `mono_ms`, unless the broker stops before.
    pub(crate) fn add_task(&self, mono_ms: i64, task: impl FnOnce(&Arc<Broker>) + Send + 'static) {
        self.add_numbered_task(mono_ms, self.next_id(), task);
    }

    /// As [`add_task`](Self::add_task), by a [number](Self::next_id) under which the task can be taken back.
    pub(crate) fn add_numbered_task(
        &self,
        mono_ms: i64,
        id: u64,
        task: impl FnOnce(&Arc<Broker>) + Send + 'static,
    ) {
        let first = {
            let mut tasks = self.tasks();
            if self.closed.load(Ordering::SeqCst) {
                return;
            }
            tasks.add(mono_ms, id, Box::new(task))
        };
        self.added(first, mono_ms);
    }

    /// Takes a task back that has not begun.
    pub(crate) fn remove_task(&self, mono_ms: i64, id: u64) {
        self.tasks().remove(mono_ms, id);
    }

    fn added(&self, first: bool, mono_ms: i64) {
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

    /// Takes out the work that is due at `mono_ms`.
    pub(crate) fn take_due_tasks(&self, mono_ms: i64) -> Vec<Task> {
        self.tasks().take_expired(mono_ms)
    }

    /// Forgets everything, and whatever comes from now on.
    pub(crate) fn let_go(&self) {
        self.closed.store(true, Ordering::SeqCst);
        // What is dropped may come back here.
        let (waiters, tasks) = (std::mem::take(&mut *self.lock()), std::mem::take(&mut *self.tasks()));
        drop((waiters, tasks));
    }

    /// The earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<i64> {
        let (requests, tasks) = (self.lock().next(), self.tasks().next());
        requests.into_iter().chain(tasks).min()
    }

    /// How many requests wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn tasks(&self) -> std::sync::MutexGuard<'_, Deadlines<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
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
