//! An append of the broker's own that ends once: when the in-sync replicas have the records, when that fails, or when its
//! time is over.
//!
//! What is appended stays, whatever is told: after a timeout the records may still be replicated.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use wire::error_code::ErrorCode;
use wire::types::{LeaderEpoch, Offset};

use super::{Append, AppendResult, AppendSink, Source, append};
use crate::api::errors;
use crate::broker::Broker;
use crate::delayed::{Delayed, Wake};
use crate::partition::Partition;

/// What is to be appended, and how long it may take.
pub(crate) struct Request {
    /// One batch.
    pub(crate) records: Bytes,
    /// Whether all in-sync replicas are wanted; otherwise it ends with the leader's own log.
    pub(crate) acks_all: bool,
    /// How long the replicas may take, in milliseconds.
    pub(crate) timeout_ms: i64,
    pub(crate) source: Source,
}

/// Gets the offset of the first record, or the error of the log.
type Done = Box<dyn FnOnce(&Arc<Broker>, Result<Offset, ErrorCode>) + Send>;

/// Appends to a partition that this broker leads; `done` is called once, before this returns or later.
pub(crate) fn append_replicated(
    broker: &Arc<Broker>,
    partition: &Arc<Partition>,
    request: Request,
    done: impl FnOnce(&Arc<Broker>, Result<Offset, ErrorCode>) + Send + 'static,
) {
    let waiting = Arc::new(Waiting {
        id: broker.timers().next_id(),
        deadline_ms: broker.now().mono_ms.saturating_add(request.timeout_ms),
        partition: partition.clone(),
        state: Mutex::new(State { appended: None, done: Some(Box::new(done)) }),
    });
    let Request { records, acks_all, source, .. } = request;
    append(broker, partition, Append { records, acks_all, source, sink: waiting, place: 0 });
}

struct Waiting {
    id: u64,
    deadline_ms: i64,
    partition: Arc<Partition>,
    state: Mutex<State>,
}

struct State {
    appended: Option<Appended>,
    done: Option<Done>,
}

/// Records that are in the leader's log, and not yet in those of all in-sync replicas.
#[derive(Clone, Copy)]
struct Appended {
    epoch: LeaderEpoch,
    base: Offset,
    last: Offset,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, broker: &Arc<Broker>, outcome: Result<Offset, ErrorCode>) {
        let done = self.lock().done.take();
        if let Some(done) = done {
            done(broker, outcome);
        }
    }

    fn wait(self: Arc<Self>, broker: &Arc<Broker>, appended: Appended) {
        self.lock().appended = Some(appended);
        broker.metrics().replicas.waiting_produces.inc();
        // First what nothing but its end takes away: should it end before it is in the timer, that forgets it in time.
        self.partition.watch_high_watermark(appended.last, self.id, self.clone());
        broker.timers().add(self.deadline_ms, self.id, self.clone());
        // The high watermark may have passed between the append and the watch, when nobody was there to be woken.
        self.wake(broker, Wake::Progress);
    }
}

impl AppendSink for Waiting {
    fn appended(
        self: Arc<Self>,
        broker: &Arc<Broker>,
        _partition: &Arc<Partition>,
        _place: usize,
        result: AppendResult,
    ) {
        match result {
            AppendResult::Done(info) => self.end(broker, Ok(info.base_offset)),
            AppendResult::Unreplicated(info, epoch) => {
                let appended = Appended { epoch, base: info.base_offset, last: info.last_offset };
                self.wait(broker, appended);
            }
            AppendResult::Refused(error) => {
                tracing::debug!(partition = %self.partition.name(), %error, "a batch of the broker's was refused");
                self.end(broker, Err(errors::of_append(&error)));
            }
            AppendResult::Failed(error) => self.end(broker, Err(error)),
        }
    }
}

impl Delayed for Waiting {
    fn wake(self: Arc<Self>, broker: &Arc<Broker>, why: Wake) {
        let outcome = {
            let mut state = self.lock();
            let Some(appended) = state.appended else { return };
            let outcome = match self.partition.replicated(appended.epoch, appended.last.plus(1)) {
                Some(outcome) => outcome.map(|()| appended.base),
                None if why == Wake::Expired => Err(ErrorCode::RequestTimedOut),
                None => return,
            };
            state.appended = None;
            self.partition.unwatch_high_watermark(appended.last, self.id);
            outcome
        };
        broker.timers().remove(self.deadline_ms, self.id);
        broker.metrics().replicas.waiting_produces.dec();
        if outcome == Err(ErrorCode::RequestTimedOut) {
            broker.metrics().replicas.expired_produces.inc();
        }
        self.end(broker, outcome);
    }
}
