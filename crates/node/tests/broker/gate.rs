//! A gate before the broker's store: a test may hold what the broker asks, and let it go.

use std::sync::Mutex;

use metadata::store::{Done, Request, SessionId, Store};

/// The store behind the gate, which stands open at first.
pub(crate) struct Gate<S> {
    store: S,
    held: Mutex<Option<Vec<(Request, Done)>>>,
}

impl<S: Store> Gate<S> {
    pub(crate) fn before(store: S) -> Self {
        Self { store, held: Mutex::new(None) }
    }

    /// Holds what comes from now on.
    pub(crate) fn hold(&self) {
        self.held.lock().unwrap().get_or_insert_default();
    }

    /// Lets go of what was held and of what comes from now on.
    pub(crate) fn open(&self) {
        let held = self.held.lock().unwrap().take();
        for (request, done) in held.into_iter().flatten() {
            self.store.submit(request, done);
        }
    }
}

impl<S: Store> Store for Gate<S> {
    fn submit(&self, request: Request, done: Done) {
        let mut held = self.held.lock().unwrap();
        match held.as_mut() {
            Some(held) => held.push((request, done)),
            None => {
                drop(held);
                self.store.submit(request, done);
            }
        }
    }

    fn session_id(&self) -> Option<SessionId> {
        self.store.session_id()
    }

    fn renew(&self) {
        self.store.renew();
    }

    fn close(&self) {
        self.store.close();
    }
}
