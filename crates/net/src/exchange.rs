//! The requests of one connection that are being served, in the order of their arrival, and the one place
//! where other threads meet the connection's task: answers, and orders to end.
//!
//! An answer wakes the task only if it sleeps and only if the answer is the next one to be written. So a
//! request that is answered while it is handed over costs no wake-up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Context;
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use crate::close_reason::CloseReason;
use crate::handler::{Outcome, Reply};

/// One request in service.
struct Slot {
    bytes: usize,
    outcome: Option<Outcome>,
}

/// See the module.
pub(crate) struct Exchange {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The sequence number of the first slot.
    first: u64,
    slots: VecDeque<Slot>,
    bytes: usize,
    /// Whether a request that tolerates no other beside it is in service.
    exclusive: bool,
    mute_until: Option<Instant>,
    draining: bool,
    ordered_to_end: Option<CloseReason>,
    closed: bool,
    waker: Option<Waker>,
    sleeping: bool,
}

/// What the connection's task must know to decide what to do next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    /// Requests in service.
    pub(crate) requests: usize,
    /// Bytes of their frames.
    pub(crate) bytes: usize,
    /// Whether one of them tolerates no other beside it.
    pub(crate) exclusive: bool,
    /// The end of the last mute.
    pub(crate) mute_until: Option<Instant>,
    /// Whether that end had not come yet: no request may start.
    pub(crate) muted: bool,
    /// No request may start at all.
    pub(crate) draining: bool,
    /// The connection is to end now, whatever is in service.
    pub(crate) ordered_to_end: Option<CloseReason>,
}

impl Exchange {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State::default()) }
    }

    /// Begins a request of `bytes`. An `exclusive` one is begun only when no other is in service.
    pub(crate) fn open(self: &Arc<Self>, bytes: usize, exclusive: bool) -> Reply {
        let mut state = self.lock();
        let sequence = state.first.wrapping_add(state.slots.len() as u64);
        state.slots.push_back(Slot { bytes, outcome: None });
        state.bytes = state.bytes.saturating_add(bytes);
        state.exclusive |= exclusive;
        drop(state);
        Reply::new(Arc::clone(self), sequence)
    }

    /// Takes the next answer in order, if it is there, and tells how things stand after that. The task is awake.
    pub(crate) fn next_answer(&self) -> (Option<Outcome>, Status) {
        let mut state = self.lock();
        state.sleeping = false;
        let outcome = state.slots.front_mut().and_then(|slot| slot.outcome.take());
        if outcome.is_some() {
            let bytes = state.slots.pop_front().map_or(0, |slot| slot.bytes);
            state.first = state.first.wrapping_add(1);
            state.bytes = state.bytes.saturating_sub(bytes);
            // Only one that was alone in service can have been exclusive.
            state.exclusive &= !state.slots.is_empty();
        }
        (outcome, state.status())
    }

    /// Puts the task to sleep, unless something has happened for it since: then false.
    pub(crate) fn sleep(&self, cx: &Context<'_>, seen: &Status) -> bool {
        let mut state = self.lock();
        let answered = state.slots.front().is_some_and(|slot| slot.outcome.is_some());
        let ordered = state.ordered_to_end.is_some() || state.draining != seen.draining;
        if answered || ordered || state.mute_until != seen.mute_until {
            return false;
        }
        match &state.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => state.waker = Some(cx.waker().clone()),
        }
        state.sleeping = true;
        true
    }

    /// An answer, from whatever thread.
    pub(crate) fn answer(&self, sequence: u64, outcome: Outcome, mute: Duration) {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            // Ranges and their files are let go without the lock.
            drop(outcome);
            return;
        }
        if !mute.is_zero() {
            let until = Instant::now() + mute;
            state.mute_until = Some(state.mute_until.map_or(until, |old| old.max(until)));
        }
        let index = sequence.wrapping_sub(state.first);
        let slot = usize::try_from(index).ok().and_then(|index| state.slots.get_mut(index));
        if let Some(slot) = slot {
            slot.outcome = Some(outcome);
        }
        let waker = if index == 0 { state.waker_if_sleeping() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// No request may start any more; those in service are answered, then the connection ends.
    pub(crate) fn drain(&self) {
        let mut state = self.lock();
        state.draining = true;
        let waker = state.waker_if_sleeping();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The connection is to end now. The first reason stays.
    pub(crate) fn end(&self, reason: CloseReason) {
        let mut state = self.lock();
        state.ordered_to_end.get_or_insert(reason);
        let waker = state.waker_if_sleeping();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The connection is gone: answers are dropped from now on.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.waker = None;
        let slots = std::mem::take(&mut state.slots);
        drop(state);
        drop(slots);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn status(&self) -> Status {
        Status {
            requests: self.slots.len(),
            bytes: self.bytes,
            exclusive: self.exclusive,
            mute_until: self.mute_until,
            muted: self.mute_until.is_some_and(|until| Instant::now() < until),
            draining: self.draining,
            ordered_to_end: self.ordered_to_end,
        }
    }

    fn waker_if_sleeping(&mut self) -> Option<Waker> {
        if std::mem::take(&mut self.sleeping) { self.waker.clone() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// An exchange with requests in service, and a task that has seen them.
    fn seen(requests: usize) -> (Arc<Exchange>, Vec<Reply>, Status, Arc<Wakes>) {
        let exchange = Arc::new(Exchange::new());
        let replies = (0..requests).map(|_| exchange.open(10, false)).collect();
        let (outcome, status) = exchange.next_answer();
        assert!(outcome.is_none());
        (exchange, replies, status, Arc::default())
    }

    #[test]
    fn what_happens_before_the_task_sleeps_keeps_it_awake() {
        let happenings: [fn(&Exchange, Reply); 4] = [
            |_, reply| reply.send(Outcome::NoResponse),
            |_, reply| reply.send_and_mute(Outcome::NoResponse, Duration::from_secs(1)),
            |exchange, _reply| exchange.drain(),
            |exchange, _reply| exchange.end(CloseReason::Evicted),
        ];
        for happening in happenings {
            let (exchange, mut replies, status, wakes) = seen(1);
            let waker = Waker::from(Arc::clone(&wakes));
            happening(&exchange, replies.remove(0));
            assert!(!exchange.sleep(&Context::from_waker(&waker), &status));
            assert_eq!(wakes.0.load(Ordering::SeqCst), 0, "a task that is awake is not woken");
        }
    }

    #[test]
    fn a_mute_that_comes_with_a_later_answer_keeps_the_task_awake_too() {
        let (exchange, mut replies, status, wakes) = seen(2);
        let waker = Waker::from(wakes);
        replies.remove(1).send_and_mute(Outcome::NoResponse, Duration::from_secs(1));
        assert!(!exchange.sleep(&Context::from_waker(&waker), &status));
    }

    #[test]
    fn a_sleeping_task_is_woken_once_and_only_by_the_answer_that_is_due() {
        let (exchange, mut replies, status, wakes) = seen(3);
        let waker = Waker::from(Arc::clone(&wakes));
        assert!(exchange.sleep(&Context::from_waker(&waker), &status));
        replies.remove(1).send(Outcome::NoResponse);
        assert_eq!(wakes.0.load(Ordering::SeqCst), 0, "the second answer is not due");
        replies.remove(0).send(Outcome::NoResponse);
        replies.remove(0).send(Outcome::NoResponse);
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        for left in [2, 1, 0] {
            let (outcome, status) = exchange.next_answer();
            assert!(outcome.is_some());
            assert_eq!((status.requests, status.bytes), (left, left * 10));
        }
    }

    #[test]
    fn answers_after_the_end_are_dropped() {
        let (exchange, mut replies, _, _) = seen(1);
        exchange.close();
        assert!(replies[0].is_abandoned());
        replies.remove(0).send(Outcome::NoResponse);
        assert_eq!(exchange.next_answer().1.requests, 0);
    }
}
