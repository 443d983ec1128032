//! A fetch that waits for more: at each of its partitions, and in the timer. A consumer waits for the high watermark to
//! move, a follower for the log to grow; a high watermark that moves alone is no reason to answer it (KAFKA-9952).

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wire::types::Offset;

use super::plan::Plan;
use super::{read, respond};
use crate::api::Answer;
use crate::broker::Broker;
use crate::delayed::{Delayed, Wake};
use crate::partition::Partition;

/// A parked request looks this often whether its client is still there, in milliseconds: the time it may wait is
/// the client's to choose, and its place here is not.
const LOOK_INTERVAL_MS: i64 = 10_000;

/// Parks the request until it has what it asked for, or its time is over.
pub(super) fn wait(broker: &Arc<Broker>, answer: Answer, plan: Plan) {
    let deadline_ms = answer.call().received.mono_ms.saturating_add(plan.max_wait_ms);
    let id = broker.timers().next_id();
    let partitions: Vec<_> = plan
        .targets
        .iter()
        .filter_map(|target| broker.partition(target.topic.as_ref()?.as_str(), target.key.partition).ok())
        .collect();
    let first_look_ms = deadline_ms.min(answer.call().received.mono_ms.saturating_add(LOOK_INTERVAL_MS));
    let waiting = Arc::new(DelayedFetch {
        id,
        deadline_ms,
        timer_ms: AtomicI64::new(first_look_ms),
        state: Mutex::new(Some(State { answer, plan, watched: Vec::with_capacity(partitions.len()) })),
    });
    broker.timers().add(first_look_ms, id, waiting.clone());
    waiting.watch(&partitions);
    // Records may have come between the read and the watch, when nobody was there to be woken.
    waiting.wake(broker, Wake::Progress);
}

struct State {
    answer: Answer,
    plan: Plan,
    watched: Vec<(Arc<Partition>, Offset)>,
}

struct DelayedFetch {
    id: u64,
    deadline_ms: i64,
    // When the timer comes next: at the deadline, or to look after the client.
    timer_ms: AtomicI64,
    // Taken out by whoever ends the request.
    state: Mutex<Option<State>>,
}

impl DelayedFetch {
    fn watch(self: &Arc<Self>, partitions: &[Arc<Partition>]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = state.as_mut() else { return };
        for partition in partitions {
            let offset = end_for(&state.plan, partition);
            self.stand(&state.plan, partition, offset);
            state.watched.push((partition.clone(), offset));
        }
    }

    fn stand(self: &Arc<Self>, plan: &Plan, partition: &Partition, offset: Offset) {
        if plan.is_from_follower() {
            partition.watch_log_end(offset, self.id, self.clone());
        } else {
            partition.watch_high_watermark(offset, self.id, self.clone());
        }
    }

    fn leave(&self, plan: &Plan, partition: &Partition, offset: Offset) {
        if plan.is_from_follower() {
            partition.unwatch_log_end(offset, self.id);
        } else {
            partition.unwatch_high_watermark(offset, self.id);
        }
    }

    /// Leaves the timer and the partitions.
    fn end(&self, broker: &Broker, state: Option<State>) -> Option<(Answer, Plan)> {
        let State { answer, plan, watched } = state?;
        broker.timers().remove(self.timer_ms.load(Ordering::Relaxed), self.id);
        for (partition, offset) in watched {
            self.leave(&plan, &partition, offset);
        }
        Some((answer, plan))
    }

    /// Stands again at those partitions that have moved since it was put there.
    fn watch_again(self: &Arc<Self>, state: &mut State) {
        let State { plan, watched, .. } = state;
        for (partition, offset) in watched {
            let end = end_for(plan, partition);
            if end != *offset {
                self.leave(plan, partition, *offset);
                self.stand(plan, partition, end);
                *offset = end;
            }
        }
    }
}

/// The end that the fetcher waits to see moved.
fn end_for(plan: &Plan, partition: &Partition) -> Offset {
    let positions = partition.log().positions();
    if plan.is_from_follower() { positions.log_end } else { positions.high_watermark }
}

impl Delayed for DelayedFetch {
    fn wake(self: Arc<Self>, broker: &Arc<Broker>, why: Wake) {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = guard.as_mut() else { return };
        let now_ms = broker.now().mono_ms;
        if why == Wake::Expired && now_ms < self.deadline_ms && !broker.is_shutting_down() {
            if state.answer.is_abandoned() {
                self.end(broker, guard.take());
                return;
            }
            let next_ms = self.deadline_ms.min(now_ms.saturating_add(LOOK_INTERVAL_MS));
            self.timer_ms.store(next_ms, Ordering::Relaxed);
            drop(guard);
            broker.timers().add(next_ms, self.id, self.clone());
            return;
        }
        if why == Wake::Progress {
            // Stand before looking: what comes after the look finds the waiter.
            self.watch_again(state);
        }
        let found = read::read(broker, &state.plan);
        if why == Wake::Progress && !found.satisfies(&state.plan) {
            return;
        }
        if why == Wake::Expired {
            let metrics = broker.metrics();
            let follower = state.plan.is_from_follower();
            let expired =
                if follower { &metrics.replication.expired_fetches } else { &metrics.expired_fetches };
            expired.inc();
        }
        let taken = guard.take();
        drop(guard);
        if let Some((answer, plan)) = self.end(broker, taken) {
            respond::respond(broker, answer, &plan, found);
        }
    }
}
