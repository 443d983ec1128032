//! Those who wait for an offset of one partition, and a count that lets others pass without the lock when nobody does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::fetch::waiters::Waiters;
use wire::types::Offset;

use crate::delayed::Delayed;

type Waiting = Waiters<Arc<dyn Delayed>>;

/// Waiting requests by the offset that must be passed.
#[derive(Default)]
pub(super) struct Watchers {
    waiting: Mutex<Waiting>,
    count: AtomicUsize,
}

impl Watchers {
    /// `waiter` wants to know when the end has moved beyond `offset`.
    pub(super) fn add(&self, offset: Offset, id: u64, waiter: Arc<dyn Delayed>) {
        self.change(|waiting| waiting.add(offset, id, waiter));
    }

    /// The waiter of this number does not wait here any more.
    pub(super) fn remove(&self, offset: Offset, id: u64) {
        self.change(|waiting| waiting.remove(offset, id));
    }

    /// Takes out those who wait for an offset below `end`.
    pub(super) fn take_passed(&self, end: Offset) -> Vec<Arc<dyn Delayed>> {
        if self.is_empty() {
            return Vec::new();
        }
        self.change(|waiting| waiting.take_passed(end))
    }

    /// Everybody; they stay where they are.
    pub(super) fn all(&self) -> Vec<Arc<dyn Delayed>> {
        self.lock().all().cloned().collect()
    }

    /// Forgets everybody.
    pub(super) fn let_go(&self) {
        let waiting = self.change(std::mem::take);
        drop(waiting);
    }

    /// Whether nobody waits. Whoever adds himself and then looks at the end misses nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    fn change<T>(&self, change: impl FnOnce(&mut Waiting) -> T) -> T {
        let mut waiting = self.lock();
        let changed = change(&mut waiting);
        self.count.store(waiting.len(), Ordering::SeqCst);
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
