//! A produce that waits until the in-sync replicas have its records: at the high watermark of each of its partitions,
//! and in the timer.
//!
//! What is appended stays, whatever the answer says: a producer that hears of a timeout or of too few replicas sends
//! again, and its sequence numbers tell the leader what it has already.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use wire::Str;
use wire::error_code::ErrorCode;

use super::{Answer, Done, Produce, State, Unreplicated, name_leader};
use crate::broker::Broker;
use crate::delayed::{Delayed, LOOK_INTERVAL_MS, Wake};

/// Parks a produce some of whose records are not replicated.
pub(super) fn wait(broker: &Arc<Broker>, produce: Arc<Produce>) {
    let now_ms = broker.now().mono_ms;
    let deadline_ms = now_ms.saturating_add(produce.timeout_ms);
    let first_look_ms = deadline_ms.min(now_ms.saturating_add(LOOK_INTERVAL_MS));
    let waiting = Arc::new(DelayedProduce {
        id: broker.timers().next_id(),
        deadline_ms,
        timer_ms: AtomicI64::new(first_look_ms),
        produce,
    });
    broker.metrics().replicas.waiting_produces.inc();
    {
        // Held until it stands everywhere: whoever wakes it before waits here.
        let mut state = waiting.produce.lock();
        state.unpin();
        broker.timers().add(first_look_ms, waiting.id, waiting.clone());
        for it in &state.unreplicated {
            it.partition.watch_high_watermark(it.end.plus(-1), waiting.id, waiting.clone());
        }
    }
    // The high watermark may have passed between the append and the watch, when nobody was there to be woken.
    // Who has no patience is answered with what there is.
    waiting.wake(broker, if deadline_ms <= now_ms { Wake::Expired } else { Wake::Progress });
}

impl State {
    /// Names are slices of the request's frame, and would keep all its records in memory while it waits.
    fn unpin(&mut self) {
        for (name, _) in &mut self.topics {
            *name = Str::from(name.as_str());
        }
        if let Some(answer) = &mut self.answer {
            answer.unpin();
        }
    }
}

struct DelayedProduce {
    id: u64,
    deadline_ms: i64,
    // When the timer comes next: at the deadline, or to look after the client.
    timer_ms: AtomicI64,
    produce: Arc<Produce>,
}

/// How a look at a waiting produce ends.
enum Look {
    /// Something is still not decided.
    Waits,
    /// Nothing is left to wait for.
    Done(Done),
    /// It was answered before.
    Over,
}

impl DelayedProduce {
    /// Settles what has been decided since, and the rest too if `at_last`. Returns what need not be watched any more.
    fn settle(&self, broker: &Broker, at_last: bool) -> (Vec<Unreplicated>, Look) {
        let mut state = self.produce.lock();
        let mut settled = Vec::new();
        for it in std::mem::take(&mut state.unreplicated) {
            let error = match it.partition.replicated(it.epoch, it.end) {
                Some(Ok(())) => None,
                Some(Err(error)) => Some(error),
                None if at_last => Some(ErrorCode::RequestTimedOut),
                None => {
                    state.unreplicated.push(it);
                    continue;
                }
            };
            if let (Some(error), Some(response)) = (error, state.results.get_mut(it.place)) {
                response.error_code = error.code();
                if error == ErrorCode::NotLeaderOrFollower && self.produce.names_leaders {
                    name_leader(broker, it.partition.name().topic.as_str(), response);
                }
            }
            settled.push(it);
        }
        let look = if state.unreplicated.is_empty() { state.look() } else { Look::Waits };
        (settled, look)
    }

    /// Gives up if nobody waits for the answer any more.
    fn look_after_client(&self) -> (Vec<Unreplicated>, Look) {
        let mut state = self.produce.lock();
        if !state.answer.as_ref().is_some_and(Answer::is_abandoned) {
            let look = if state.answer.is_some() { Look::Waits } else { Look::Over };
            return (Vec::new(), look);
        }
        (std::mem::take(&mut state.unreplicated), state.look())
    }
}

impl State {
    fn look(&mut self) -> Look {
        self.take().map_or(Look::Over, Look::Done)
    }
}

impl Delayed for DelayedProduce {
    fn wake(self: Arc<Self>, broker: &Arc<Broker>, why: Wake) {
        let now_ms = broker.now().mono_ms;
        let at_last = why == Wake::Expired && (now_ms >= self.deadline_ms || broker.is_shutting_down());
        let (settled, look) = if why == Wake::Expired && !at_last {
            self.look_after_client()
        } else {
            self.settle(broker, at_last)
        };
        for it in settled {
            it.partition.unwatch_high_watermark(it.end.plus(-1), self.id);
        }
        match look {
            Look::Done(done) => {
                broker.timers().remove(self.timer_ms.load(Ordering::Relaxed), self.id);
                broker.metrics().replicas.waiting_produces.dec();
                if at_last {
                    broker.metrics().replicas.expired_produces.inc();
                }
                self.produce.finish(broker, done);
            }
            Look::Waits if why == Wake::Expired => {
                let next_ms = self.deadline_ms.min(now_ms.saturating_add(LOOK_INTERVAL_MS));
                self.timer_ms.store(next_ms, Ordering::Relaxed);
                broker.timers().add(next_ms, self.id, self.clone());
            }
            Look::Waits | Look::Over => {}
        }
    }
}
