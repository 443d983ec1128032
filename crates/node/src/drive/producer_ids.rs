//! Ids for idempotent producers, taken from the cluster in blocks (KIP-730).
//!
//! A block is reserved in the store before its first id is given away, so that no id is given twice, whatever
//! dies. What is left of a block when the broker stops is never used.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metadata::store::{Op, Request, Response, StoreError, Value};
use metadata::znode::producer_id_block::{self, ProducerIdBlock};
use wire::error_code::ErrorCode;

use crate::broker::Broker;

/// How many requests may wait for a block.
const MAX_WAITING: usize = 10_000;

type Taker = Box<dyn FnOnce(Result<i64, ErrorCode>) + Send>;

#[derive(Default)]
struct State {
    next: i64,
    end: i64,
    waiting: Vec<Taker>,
    reserving: bool,
}

/// The block in use and those who wait for the next.
#[derive(Default)]
pub(crate) struct ProducerIds(Mutex<State>);

impl std::fmt::Debug for ProducerIds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        f.debug_struct("ProducerIds")
            .field("next", &state.next)
            .field("end", &state.end)
            .finish_non_exhaustive()
    }
}

impl ProducerIds {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives `taker` an id that nobody ever had.
pub(crate) fn next(broker: &Arc<Broker>, taker: Taker) {
    let mut state = broker.producer_ids().lock();
    if state.next < state.end {
        let id = state.next;
        state.next += 1;
        drop(state);
        return taker(Ok(id));
    }
    if state.waiting.len() >= MAX_WAITING {
        drop(state);
        return taker(Err(ErrorCode::CoordinatorLoadInProgress));
    }
    state.waiting.push(taker);
    let begin = !std::mem::replace(&mut state.reserving, true);
    drop(state);
    if begin {
        reserve(broker);
    }
}

fn reserve(broker: &Arc<Broker>) {
    let then = broker.clone();
    broker.store().submit(
        Request::get(producer_id_block::PATH),
        Box::new(move |answer| match answer {
            Ok(Response::Data { data, stat }) => write_block(&then, data.as_deref(), stat.version),
            Ok(_) => finish(&then, Err(StoreError::Unexpected("an answer of another kind"))),
            Err(error) => finish(&then, Err(error)),
        }),
    );
}

fn write_block(broker: &Arc<Broker>, current: Option<&[u8]>, version: i32) {
    let latest = match ProducerIdBlock::decode(current) {
        Ok(latest) => latest,
        Err(error) => {
            tracing::error!(%error, path = producer_id_block::PATH, "the block of producer ids cannot be read");
            return finish(broker, Err(StoreError::Unexpected("an unreadable block of producer ids")));
        }
    };
    let Some(block) = ProducerIdBlock::next(latest.as_ref(), broker.id()) else {
        tracing::error!("all producer ids are used up");
        return finish(broker, Err(StoreError::Unexpected("no producer ids are left")));
    };
    let (first, end) = (block.start, block.end.saturating_add(1));
    let then = broker.clone();
    broker.store().submit(
        Request::Write(Op::set(producer_id_block::PATH, Value::from(block.encode()), Some(version))),
        Box::new(move |answer| finish(&then, answer.map(|_| (first, end)))),
    );
}

fn finish(broker: &Arc<Broker>, block: Result<(i64, i64), StoreError>) {
    let mut state = broker.producer_ids().lock();
    state.reserving = false;
    let waiting = std::mem::take(&mut state.waiting);
    match block {
        Ok((first, end)) => (state.next, state.end) = (first, end),
        Err(error) => {
            drop(state);
            tracing::error!(%error, "no producer ids could be reserved");
            for taker in waiting {
                taker(Err(ErrorCode::CoordinatorLoadInProgress));
            }
            return;
        }
    }
    drop(state);
    for taker in waiting {
        next(broker, taker);
    }
}
