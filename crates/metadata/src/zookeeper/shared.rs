//! What the handle of a store and its thread share.

use super::stats::ZooKeeperStats;
use crate::store::{MAX_WAITING_REQUESTS, SessionId};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// See the module's text.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) stats: Arc<ZooKeeperStats>,
    /// The id of the session that lives; 0 if none.
    session: AtomicI64,
    /// Requests without an answer.
    waiting: AtomicUsize,
    is_closed: AtomicBool,
    finished: Mutex<bool>,
    wake: Condvar,
    /// Why there is no connection, when there was none last.
    trouble: Mutex<String>,
    thread: Mutex<Option<ThreadId>>,
}

impl Shared {
    pub(super) fn session(&self) -> Option<SessionId> {
        let id = SessionId(self.session.load(Ordering::Acquire));
        (id != SessionId::NONE && !self.is_closed()).then_some(id)
    }

    pub(super) fn set_session(&self, session: Option<SessionId>) {
        self.session.store(session.unwrap_or(SessionId::NONE).0, Ordering::Release);
    }

    /// Counts a request in, unless too many wait.
    pub(super) fn admit(&self) -> bool {
        if self.waiting.fetch_add(1, Ordering::AcqRel) < MAX_WAITING_REQUESTS {
            return true;
        }
        self.answered();
        false
    }

    pub(super) fn answered(&self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Returns whether nobody has begun it before.
    pub(super) fn begin_close(&self) -> bool {
        !self.is_closed.swap(true, Ordering::AcqRel)
    }

    pub(super) fn finish(&self) {
        self.set_session(None);
        self.stats.closed();
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }

    /// Returns at once on the store's own thread, which must not wait for itself.
    pub(super) fn wait_until_finished(&self, limit: Duration) {
        if *self.thread.lock().unwrap_or_else(PoisonError::into_inner) == Some(thread::current().id()) {
            return;
        }
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        // Whether it was in time makes no difference to what can be done.
        drop(self.wake.wait_timeout_while(finished, limit, |finished| !*finished));
    }

    pub(super) fn set_trouble(&self, reason: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    pub(super) fn trouble(&self) -> String {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if trouble.is_empty() { "no answer".to_owned() } else { trouble }
    }

    pub(super) fn set_thread(&self, id: ThreadId) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
    }
}
