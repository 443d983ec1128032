//! A session with the embedded store.

use super::committer::Committer;
use super::core::Shared;
use crate::store::{Done, EventSink, Request, Response, SessionId, Store, StoreError};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// A session. It lives until [`Store::close`] or until the store ends it; dropping the handle alone does not end it, as
/// a crashed broker's session outlives the broker.
pub struct EmbeddedSession {
    shared: Arc<Shared>,
    sink: EventSink,
    pump: Option<Arc<Mutex<Committer>>>,
    current: Mutex<Current>,
}

#[derive(Clone, Copy)]
enum Current {
    Session(SessionId),
    Closed,
}

impl EmbeddedSession {
    pub(super) fn begin(shared: Arc<Shared>, sink: EventSink, pump: Option<Arc<Mutex<Committer>>>) -> Self {
        let session = shared.begin_session(&sink);
        Self { shared, sink, pump, current: Mutex::new(Current::Session(session)) }
    }

    fn current(&self) -> Current {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for EmbeddedSession {
    fn submit(&self, request: Request, done: Done) {
        match self.current() {
            Current::Session(session) => self.shared.submit(session, request, done),
            Current::Closed => self.shared.refuse(StoreError::Closed, done),
        }
    }

    fn session_id(&self) -> Option<SessionId> {
        match self.current() {
            Current::Session(session) if self.shared.is_live(session) => Some(session),
            _ => None,
        }
    }

    fn renew(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Current::Session(session) = *current
            && !self.shared.is_live(session)
        {
            *current = Current::Session(self.shared.begin_session(&self.sink));
        }
    }

    fn close(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Current::Session(session) = *current {
            self.shared.end_session(session, None);
        }
        *current = Current::Closed;
    }

    fn call(&self, request: Request) -> Result<Response, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.submit(request, Box::new(move |answer| drop(sender.send(answer))));
        if let Some(committer) = &self.pump {
            let mut committer = committer.lock().unwrap_or_else(PoisonError::into_inner);
            while committer.run_once() {}
        }
        receiver.recv().unwrap_or(Err(StoreError::Closed))
    }
}
