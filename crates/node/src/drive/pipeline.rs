//! Many requests to the store at once, and the answers of all.
//!
//! A request that is lost with the connection is handed in again: the store keeps it until it is connected or the session
//! is over. What is ambiguous then (the lost one may have taken effect) shows in the answer to the second try.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metadata::store::{Request, Response, Store, StoreError};

/// How many requests of one pipeline the store holds at most, so that no pipeline overruns the store's queue.
const WINDOW: usize = 1_000;

/// The answer to each request, in the order of the requests.
pub(crate) type Answers = Vec<Result<Response, StoreError>>;

type Done = Box<dyn FnOnce(Answers) + Send>;

struct Pipeline {
    store: Arc<dyn Store>,
    requests: Vec<Request>,
    state: Mutex<State>,
}

struct State {
    next: usize,
    open: usize,
    answers: Answers,
    done: Option<Done>,
}

/// Hands in all of `requests`; `done` gets the answers when the last has come.
pub(crate) fn pipeline(
    store: &Arc<dyn Store>,
    requests: Vec<Request>,
    done: impl FnOnce(Answers) + Send + 'static,
) {
    if requests.is_empty() {
        return done(Vec::new());
    }
    let answers = vec![Err(StoreError::Closed); requests.len()];
    let state = State { next: 0, open: 0, answers, done: Some(Box::new(done)) };
    Arc::new(Pipeline { store: store.clone(), requests, state: Mutex::new(state) }).fill();
}

/// Hands in one request.
pub(crate) fn one(
    store: &Arc<dyn Store>,
    request: Request,
    done: impl FnOnce(Result<Response, StoreError>) + Send + 'static,
) {
    pipeline(store, vec![request], move |answers| {
        done(answers.into_iter().next().unwrap_or(Err(StoreError::Closed)));
    });
}

impl Pipeline {
    fn fill(self: &Arc<Self>) {
        loop {
            let at = {
                let mut state = self.lock();
                if state.open >= WINDOW || state.next >= self.requests.len() {
                    return;
                }
                state.open += 1;
                state.next += 1;
                state.next - 1
            };
            self.submit(at);
        }
    }

    fn submit(self: &Arc<Self>, at: usize) {
        let Some(request) = self.requests.get(at) else { return };
        let then = self.clone();
        self.store.submit(request.clone(), Box::new(move |answer| then.answered(at, answer)));
    }

    fn answered(self: &Arc<Self>, at: usize, answer: Result<Response, StoreError>) {
        if matches!(answer, Err(StoreError::ConnectionLoss)) {
            return self.submit(at);
        }
        let ended = {
            let mut state = self.lock();
            if let Some(slot) = state.answers.get_mut(at) {
                *slot = answer;
            }
            state.open -= 1;
            let is_last = state.open == 0 && state.next == self.requests.len();
            if is_last {
                state.done.take().map(|done| (done, std::mem::take(&mut state.answers)))
            } else {
                None
            }
        };
        match ended {
            Some((done, answers)) => done(answers),
            None => self.fill(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use metadata::store::{Done as StoreDone, SessionId};

    use super::*;

    /// Answers everything with the path, after it has lost the first `losses` requests.
    struct Lossy {
        losses: AtomicUsize,
        largest: AtomicUsize,
        open: Mutex<Vec<(Request, StoreDone)>>,
    }

    impl Store for Lossy {
        fn submit(&self, request: Request, done: StoreDone) {
            let mut open = self.open.lock().unwrap();
            open.push((request, done));
            self.largest.fetch_max(open.len(), Ordering::SeqCst);
        }

        fn session_id(&self) -> Option<SessionId> {
            None
        }

        fn renew(&self) {}

        fn close(&self) {}
    }

    impl Lossy {
        fn answer_all(&self) {
            loop {
                let Some((request, done)) = self.open.lock().unwrap().pop() else { return };
                let lose = self.losses.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
                let Request::Get { path, .. } = request else { panic!("only reads here") };
                done(match lose {
                    Ok(_) => Err(StoreError::ConnectionLoss),
                    Err(_) => {
                        Ok(Response::Children { names: vec![path], stat: metadata::store::Stat::default() })
                    }
                });
            }
        }
    }

    #[test]
    fn answers_stand_in_the_order_of_the_requests_whatever_is_lost_and_no_more_than_the_window_is_open() {
        let lossy = Arc::new(Lossy {
            losses: AtomicUsize::new(7),
            largest: AtomicUsize::new(0),
            open: Mutex::default(),
        });
        let store: Arc<dyn Store> = lossy.clone();
        let paths: Vec<_> = (0..WINDOW * 2 + 5).map(|n| format!("/{n}")).collect();
        let (sender, receiver) = mpsc::channel();
        pipeline(&store, paths.iter().map(Request::get).collect(), move |answers| {
            sender.send(answers).unwrap();
        });
        lossy.answer_all();
        let answers = receiver.try_recv().unwrap();
        let seen = answers.into_iter().map(|answer| match answer {
            Ok(Response::Children { names, .. }) => names.concat(),
            other => panic!("{other:?}"),
        });
        assert_eq!(seen.collect::<Vec<_>>(), paths);
        assert_eq!(lossy.largest.load(Ordering::SeqCst), WINDOW);
    }

    #[test]
    fn no_requests_are_answered_at_once() {
        let store: Arc<dyn Store> =
            Arc::new(Lossy { losses: 0.into(), largest: 0.into(), open: Mutex::default() });
        let (sender, receiver) = mpsc::channel();
        pipeline(&store, Vec::new(), move |answers| sender.send(answers.len()).unwrap());
        assert_eq!(receiver.try_recv(), Ok(0));
    }
}
