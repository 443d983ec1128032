//! A deletion of records that waits until the live followers have raised the start of their logs, too.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::DeleteRecordsResponse;
use wire::messages::delete_records_response::DeleteRecordsPartitionResult;
use wire::types::Offset;

use super::{Answer, NO_LOW_WATERMARK};
use crate::broker::Broker;
use crate::delayed::{Delayed, LOOK_INTERVAL_MS, Wake};
use crate::partition::Partition;

/// A partition whose followers still hold what was deleted.
pub(super) struct Unfollowed {
    /// Topic and partition in the response, counted from 0.
    pub(super) place: (usize, usize),
    pub(super) partition: Arc<Partition>,
    /// The low watermark that is waited for.
    pub(super) offset: Offset,
}

struct State {
    answer: Answer,
    response: DeleteRecordsResponse,
    unfollowed: Vec<Unfollowed>,
}

struct DelayedDelete {
    id: u64,
    deadline_ms: i64,
    // When the timer comes next: at the deadline, or to look after the client.
    timer_ms: AtomicI64,
    // Taken out by whoever ends the request.
    state: Mutex<Option<State>>,
}

/// Parks the request.
pub(super) fn wait(
    broker: &Arc<Broker>,
    mut answer: Answer,
    mut response: DeleteRecordsResponse,
    unfollowed: Vec<Unfollowed>,
    timeout_ms: i64,
) {
    answer.unpin();
    for topic in &mut response.topics {
        topic.name = Str::from(topic.name.as_str());
    }
    let now_ms = broker.now().mono_ms;
    let deadline_ms = now_ms.saturating_add(timeout_ms);
    let first_look_ms = deadline_ms.min(now_ms.saturating_add(LOOK_INTERVAL_MS));
    let waiting = Arc::new(DelayedDelete {
        id: broker.timers().next_id(),
        deadline_ms,
        timer_ms: AtomicI64::new(first_look_ms),
        state: Mutex::new(None),
    });
    broker.metrics().replicas.waiting_deletes.inc();
    {
        // Held until it stands everywhere: whoever wakes it before waits here.
        let mut state = waiting.lock();
        broker.timers().add(first_look_ms, waiting.id, waiting.clone());
        for it in &unfollowed {
            it.partition.watch_low_watermark(it.offset, waiting.id, waiting.clone());
        }
        *state = Some(State { answer, response, unfollowed });
    }
    // A follower may have come between the deletion and the watch, when nobody was there to be woken.
    // Who has no patience is answered with what there is.
    waiting.wake(broker, if deadline_ms <= now_ms { Wake::Expired } else { Wake::Progress });
}

impl State {
    /// Settles what has been decided since, and the rest too if `at_last`.
    fn settle(&mut self, id: u64, at_last: bool) {
        for it in std::mem::take(&mut self.unfollowed) {
            let low_watermark = it.partition.low_watermark();
            let is_behind = matches!(low_watermark, Ok(low) if low < it.offset);
            if is_behind && !at_last {
                self.unfollowed.push(it);
                continue;
            }
            it.partition.unwatch_low_watermark(it.offset, id);
            let Some(result) = self.result(it.place) else { continue };
            match low_watermark {
                Ok(_) if is_behind => result.error_code = ErrorCode::RequestTimedOut.code(),
                Ok(low) => result.low_watermark = low.0,
                Err(error) => {
                    result.error_code = error.code();
                    result.low_watermark = NO_LOW_WATERMARK;
                }
            }
        }
    }

    fn result(&mut self, place: (usize, usize)) -> Option<&mut DeleteRecordsPartitionResult> {
        self.response.topics.get_mut(place.0)?.partitions.get_mut(place.1)
    }
}

impl DelayedDelete {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Delayed for DelayedDelete {
    fn wake(self: Arc<Self>, broker: &Arc<Broker>, why: Wake) {
        let mut guard = self.lock();
        let Some(state) = guard.as_mut() else { return };
        let now_ms = broker.now().mono_ms;
        let at_last = why == Wake::Expired && (now_ms >= self.deadline_ms || broker.is_shutting_down());
        let abandoned = why == Wake::Expired && state.answer.is_abandoned();
        state.settle(self.id, at_last || abandoned);
        if !state.unfollowed.is_empty() {
            drop(guard);
            if why == Wake::Expired {
                let next_ms = self.deadline_ms.min(now_ms.saturating_add(LOOK_INTERVAL_MS));
                self.timer_ms.store(next_ms, Ordering::Relaxed);
                broker.timers().add(next_ms, self.id, self.clone());
            }
            return;
        }
        let ended = guard.take();
        drop(guard);
        let Some(State { answer, response, .. }) = ended else { return };
        broker.timers().remove(self.timer_ms.load(Ordering::Relaxed), self.id);
        broker.metrics().replicas.waiting_deletes.dec();
        answer.send(&response);
    }
}
