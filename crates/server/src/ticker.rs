//! A thread that does something whenever its time has come.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long work that has panicked rests.
const AFTER_A_PANIC: Duration = Duration::from_secs(1);

/// What the thread and its friends share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// When the thread wakes next; none: not by itself.
    next: Option<Instant>,
    /// Whether it is at work, and will look at `next` only afterwards.
    working: bool,
    stopped: bool,
}

/// A thread that runs a piece of work again and again. Each run says how long to rest; none: until woken.
#[derive(Debug)]
pub struct Ticker {
    waker: TickerWaker,
    thread: Option<JoinHandle<()>>,
}

/// Brings a ticker's next run forward.
#[derive(Clone, Debug)]
pub struct TickerWaker(Arc<Shared>);

impl Ticker {
    /// Starts the thread; the first run comes at once.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub fn start(name: &str, work: impl FnMut() -> Option<Duration> + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let waker = TickerWaker(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name(String::from(name)).spawn(move || shared.run(work))?;
        Ok(Self { waker, thread: Some(thread) })
    }

    /// What brings its runs forward.
    pub fn waker(&self) -> TickerWaker {
        self.waker.clone()
    }

    /// Ends the thread after the run that it may be at. May block.
    pub fn stop(mut self) {
        self.stop_thread();
    }

    fn stop_thread(&mut self) {
        self.waker.0.lock().stopped = true;
        self.waker.0.changed.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a background thread has panicked");
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop_thread();
        }
    }
}

impl TickerWaker {
    /// The next run comes in `rest` at the latest. The thread is woken only if it would sleep longer.
    pub fn wake_within(&self, rest: Duration) {
        let at = Instant::now() + rest;
        let mut state = self.0.lock();
        if state.next.is_some_and(|next| next <= at) {
            return;
        }
        state.next = Some(at);
        let is_asleep = !state.working;
        drop(state);
        if is_asleep {
            self.0.changed.notify_one();
        }
    }
}

impl Shared {
    fn run(&self, mut work: impl FnMut() -> Option<Duration>) {
        loop {
            {
                let mut state = self.lock();
                if state.stopped {
                    return;
                }
                state.working = true;
                // What is asked for from now on, while the work goes on, counts for the next rest.
                state.next = None;
            }
            let rest = catch_unwind(AssertUnwindSafe(&mut work)).unwrap_or_else(|_| {
                tracing::error!("background work has panicked, and is tried again");
                Some(AFTER_A_PANIC)
            });
            let next = rest.map(|rest| Instant::now() + rest);
            let mut state = self.lock();
            state.working = false;
            state.next = match (state.next, next) {
                (Some(asked), Some(told)) => Some(asked.min(told)),
                (asked, told) => asked.or(told),
            };
            self.rest(state);
        }
    }

    /// Sleeps until the time of the next run, as it may be brought forward meanwhile, or the end.
    fn rest(&self, mut state: MutexGuard<'_, State>) {
        while !state.stopped {
            state = match state.next {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(next) => {
                    let left = next.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return;
                    }
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// A ticker that tells of each run and takes its rests from the test.
    fn ticker(rests: Vec<Option<Duration>>) -> (Ticker, mpsc::Receiver<()>) {
        let (sender, runs) = mpsc::channel();
        let mut rests = rests.into_iter();
        let work = move || {
            sender.send(()).unwrap();
            rests.next().unwrap_or(None)
        };
        (Ticker::start("test", work).unwrap(), runs)
    }

    #[test]
    fn it_runs_again_when_its_rest_is_over() {
        let (ticker, runs) = ticker(vec![Some(Duration::from_millis(1)), Some(Duration::ZERO), None]);
        for _ in 0..3 {
            runs.recv().unwrap();
        }
        ticker.stop();
        assert!(runs.recv().is_err(), "no fourth run");
    }

    #[test]
    fn a_rest_is_cut_short_by_an_earlier_time() {
        for rest in [None, Some(LONG)] {
            let (ticker, runs) = ticker(vec![rest, rest]);
            runs.recv().unwrap();
            ticker.waker().wake_within(Duration::ZERO);
            runs.recv().unwrap();
            ticker.waker().wake_within(Duration::from_millis(1));
            runs.recv().unwrap();
        }
    }

    #[test]
    fn a_later_time_changes_nothing() {
        let (ticker, runs) = ticker(vec![Some(LONG)]);
        runs.recv().unwrap();
        while ticker.waker.0.lock().next.is_none() {
            std::thread::yield_now();
        }
        let next = ticker.waker.0.lock().next;
        ticker.waker().wake_within(LONG * 2);
        assert_eq!(ticker.waker.0.lock().next, next);
    }

    #[test]
    fn work_that_panics_is_tried_again() {
        let (sender, runs) = mpsc::channel();
        let mut panics = [true, false].into_iter();
        let work = move || {
            sender.send(()).unwrap();
            assert!(!panics.next().unwrap_or(false), "for the test");
            None
        };
        let ticker = Ticker::start("test", work).unwrap();
        runs.recv().unwrap();
        ticker.waker().wake_within(Duration::ZERO);
        runs.recv().unwrap();
        ticker.stop();
    }

    #[test]
    fn a_wake_during_the_work_is_not_lost() {
        let (entered, runs) = mpsc::channel();
        let (leave, left) = mpsc::channel::<()>();
        let work = move || {
            entered.send(()).unwrap();
            // The end of the test's half ends the work.
            left.recv().ok().and(None)
        };
        let ticker = Ticker::start("test", work).unwrap();
        runs.recv().unwrap();
        ticker.waker().wake_within(Duration::ZERO);
        leave.send(()).unwrap();
        runs.recv().unwrap();
        drop(leave);
    }

    #[test]
    fn stopping_waits_for_the_run_at_hand() {
        let (ticker, runs) = ticker(vec![Some(LONG)]);
        runs.recv().unwrap();
        ticker.stop();
        assert!(runs.recv().is_err());
    }
}
