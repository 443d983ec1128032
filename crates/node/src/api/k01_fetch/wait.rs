//! A fetch that waits for more: at the high watermark of each of its partitions, and in the timer.

use std::sync::{Arc, Mutex, PoisonError};

use wire::types::Offset;

use super::plan::Plan;
use super::{read, respond};
use crate::api::Answer;
use crate::broker::Broker;
use crate::delayed::{Delayed, Wake};
use crate::partition::Partition;

/// Parks the request until it has what it asked for, or its time is over.
pub(super) fn wait(broker: &Arc<Broker>, answer: Answer, plan: Plan) {
    let deadline_ms = answer.call().received.mono_ms.saturating_add(plan.max_wait_ms);
    let id = broker.timers().next_id();
    let partitions: Vec<_> = plan
        .targets
        .iter()
        .filter_map(|target| broker.partition(target.topic.as_ref()?.as_str(), target.key.partition).ok())
        .collect();
    let waiting = Arc::new(DelayedFetch {
        id,
        deadline_ms,
        state: Mutex::new(Some(State { answer, plan, watched: Vec::with_capacity(partitions.len()) })),
    });
    broker.timers().add(deadline_ms, id, waiting.clone());
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
    // Taken out by whoever ends the request.
    state: Mutex<Option<State>>,
}

impl DelayedFetch {
    fn watch(self: &Arc<Self>, partitions: &[Arc<Partition>]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = state.as_mut() else { return };
        for partition in partitions {
            let offset = partition.log().positions().high_watermark;
            partition.watch_high_watermark(offset, self.id, self.clone());
            state.watched.push((partition.clone(), offset));
        }
    }

    /// Stands again at those partitions that have moved since it was put there.
    fn watch_again(self: &Arc<Self>, state: &mut State) {
        for (partition, offset) in &mut state.watched {
            let high_watermark = partition.log().positions().high_watermark;
            if high_watermark != *offset {
                partition.unwatch_high_watermark(*offset, self.id);
                partition.watch_high_watermark(high_watermark, self.id, self.clone());
                *offset = high_watermark;
            }
        }
    }
}

impl Delayed for DelayedFetch {
    fn wake(self: Arc<Self>, broker: &Arc<Broker>, why: Wake) {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = guard.as_mut() else { return };
        if why == Wake::Progress {
            // Stand before looking: what comes after the look finds the waiter.
            self.watch_again(state);
        }
        let found = read::read(broker, &state.plan);
        if why == Wake::Progress && !found.satisfies(&state.plan) {
            return;
        }
        let Some(State { answer, plan, watched }) = guard.take() else { return };
        drop(guard);
        broker.timers().remove(self.deadline_ms, self.id);
        for (partition, offset) in watched {
            partition.unwatch_high_watermark(offset, self.id);
        }
        respond::respond(broker, answer, &plan, found);
    }
}
