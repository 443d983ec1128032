//! A gate before the broker's store: a test may hold what the broker asks, and let it go.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use metadata::store::{Done, Request, SessionId, Store, StoreError};

use crate::harness::PATIENCE;

/// The store behind the gate, which stands open at first.
pub(crate) struct Gate<S> {
    store: S,
    held: Mutex<Option<Vec<(Request, Done)>>>,
    answer: Arc<Mutex<HeldAnswer>>,
    lost: Mutex<Option<Lost>>,
}

/// What becomes of a write whose answer is lost with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It was lost too.
    Undone,
    /// It was done.
    Done,
}

/// The answer to one request, which is given but not told.
#[derive(Default)]
enum HeldAnswer {
    #[default]
    None,
    Wanted,
    Given(Box<dyn FnOnce() + Send>),
}

impl<S: Store> Gate<S> {
    pub(crate) fn before(store: S) -> Self {
        Self { store, held: Mutex::new(None), answer: Arc::default(), lost: Mutex::new(None) }
    }

    /// The next write loses its answer with the connection.
    pub(crate) fn lose_a_write(&self, lost: Lost) {
        *self.lost.lock().unwrap() = Some(lost);
    }

    /// Whether that has come to pass.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost.lock().unwrap().is_none()
    }

    /// Holds what comes from now on.
    pub(crate) fn hold(&self) {
        self.held.lock().unwrap().get_or_insert_default();
    }

    /// Lets one request through, the first that is held, as soon as there is one; those behind it are held on.
    pub(crate) fn let_one_through(&self) {
        let deadline = Instant::now() + PATIENCE;
        let first = loop {
            let mut held = self.held.lock().unwrap();
            let held = held.as_mut().unwrap();
            if !held.is_empty() {
                break held.remove(0);
            }
            assert!(Instant::now() < deadline, "nothing comes to the gate");
            std::thread::yield_now();
        };
        self.store.submit(first.0, first.1);
    }

    /// Waits until a request is held.
    pub(crate) fn wait_for_one(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.held.lock().unwrap().as_ref().is_none_or(Vec::is_empty) {
            assert!(Instant::now() < deadline, "nothing comes to the gate");
            std::thread::yield_now();
        }
    }

    /// Holds the answer to what is asked next, which the store has given by then.
    pub(crate) fn hold_answer(&self) {
        *self.answer.lock().unwrap() = HeldAnswer::Wanted;
    }

    /// Waits until the answer is there, and held.
    pub(crate) fn wait_for_answer(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !matches!(*self.answer.lock().unwrap(), HeldAnswer::Given(_)) {
            assert!(Instant::now() < deadline, "nothing is answered");
            std::thread::yield_now();
        }
    }

    /// Lets go of the answer.
    pub(crate) fn let_answer_go(&self) {
        let held = std::mem::take(&mut *self.answer.lock().unwrap());
        match held {
            HeldAnswer::Given(tell) => tell(),
            _ => panic!("nothing was answered"),
        }
    }

    /// The store is gone: what is held is answered no more.
    pub(crate) fn forget(&self) {
        let held = self.held.lock().unwrap().take();
        drop(held);
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
        let is_write =
            !matches!(request, Request::Get { .. } | Request::Children { .. } | Request::Exists { .. });
        // Not within the `if`: the lock would be held while the answer is told.
        let lost = self.lost.lock().unwrap().take_if(|_| is_write);
        if let Some(lost) = lost {
            let answer = move || done(Err(StoreError::ConnectionLoss));
            return match lost {
                Lost::Undone => answer(),
                Lost::Done => self.store.submit(request, Box::new(move |_| answer())),
            };
        }
        let wanted = matches!(*self.answer.lock().unwrap(), HeldAnswer::Wanted);
        if wanted {
            let answer = self.answer.clone();
            // Until the store answers, nothing else is held.
            *answer.lock().unwrap() = HeldAnswer::None;
            let hold = move |told| *answer.lock().unwrap() = HeldAnswer::Given(Box::new(move || done(told)));
            return self.store.submit(request, Box::new(hold));
        }
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
