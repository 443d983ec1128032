//! Ids for idempotent producers, taken from the cluster in blocks (KIP-730).
//!
//! A block is reserved in the store before its first id is given away, so that no id is given twice, whatever
//! dies. What is left of a block when the broker stops is never used.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metadata::store::{Op, OpError, Request, Response, StoreError, Value};
use metadata::znode::producer_id_block::{self, ProducerIdBlock};
use wire::error_code::ErrorCode;
use wire::messages::{AllocateProducerIdsRequest, AllocateProducerIdsResponse};

use super::to_broker;
use crate::broker::Broker;
use crate::peers::{Channel, Purpose};

/// How many requests may wait for a block.
const MAX_WAITING: usize = 10_000;
/// How often a broker tries to take a block that others want too; each time one of them has got one.
const MAX_TRIES: u32 = 100;

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
    /// Forgets those who wait.
    pub(crate) fn let_go(&self) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        drop(waiting);
    }

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

/// From 3.0 on blocks come from the controller, whose epoch fences them; before, each broker reserves its own.
fn reserve(broker: &Arc<Broker>) {
    if broker.config().inter_broker_protocol_version.allocate_producer_ids_supported() {
        ask_controller(broker);
    } else {
        reserve_by_itself(broker, 1);
    }
}

fn ask_controller(broker: &Arc<Broker>) {
    let Some((controller, address)) = to_broker::controller(broker) else {
        return finish(broker, Err("no controller is known".to_owned()));
    };
    let request = AllocateProducerIdsRequest {
        broker_id: broker.id().0,
        broker_epoch: broker.control().broker_epoch().0,
    };
    let channel = Channel { broker: controller, purpose: Purpose::ToController };
    to_broker::call(broker, channel, address, 0, &request, |broker, answer| {
        finish(broker, answer.and_then(|response| block(&response)));
    });
}

/// The first id of the block that the controller gave, and the one after its last.
fn block(response: &AllocateProducerIdsResponse) -> Result<(i64, i64), String> {
    match ErrorCode::from_code(response.error_code) {
        Some(ErrorCode::None) if response.producer_id_len > 0 => {
            let first = response.producer_id_start;
            Ok((first, first.saturating_add(i64::from(response.producer_id_len))))
        }
        Some(ErrorCode::None) => Err("the controller gave an empty block".to_owned()),
        error => Err(error.unwrap_or(ErrorCode::UnknownServerError).name().to_owned()),
    }
}

/// Takes the block behind the latest. When another broker took it first, or nobody knows, the next one is tried.
fn reserve_by_itself(broker: &Arc<Broker>, tries: u32) {
    let then = broker.clone();
    broker.store().submit(
        Request::get(producer_id_block::PATH),
        Box::new(move |answer| match answer {
            Ok(Response::Data { data, stat }) => write_block(&then, data.as_deref(), stat.version, tries),
            Ok(_) => finish(&then, Err("the store answered what was not asked".to_owned())),
            Err(error) => finish(&then, Err(error.to_string())),
        }),
    );
}

fn write_block(broker: &Arc<Broker>, current: Option<&[u8]>, version: i32, tries: u32) {
    let latest = match ProducerIdBlock::decode(current) {
        Ok(latest) => latest,
        Err(error) => {
            tracing::error!(%error, path = producer_id_block::PATH, "the block of producer ids cannot be read");
            return finish(broker, Err("the block of producer ids cannot be read".to_owned()));
        }
    };
    let Some(block) = ProducerIdBlock::next(latest.as_ref(), broker.id()) else {
        tracing::error!("all producer ids are used up");
        return finish(broker, Err("no producer ids are left".to_owned()));
    };
    let (first, end) = (block.start, block.end.saturating_add(1));
    let then = broker.clone();
    broker.store().submit(
        Request::Write(Op::set(producer_id_block::PATH, Value::from(block.encode()), Some(version))),
        Box::new(move |answer| match answer {
            Ok(_) => finish(&then, Ok((first, end))),
            Err(error) if tries < MAX_TRIES && is_open(&error) => reserve_by_itself(&then, tries + 1),
            Err(error) => finish(&then, Err(error.to_string())),
        }),
    );
}

/// Whether another try may succeed: another broker was quicker, or the answer is lost. A block that was reserved after all
/// is never used.
fn is_open(error: &StoreError) -> bool {
    matches!(error, StoreError::Op(OpError::BadVersion) | StoreError::ConnectionLoss)
}

fn finish(broker: &Arc<Broker>, block: Result<(i64, i64), String>) {
    let mut state = broker.producer_ids().lock();
    state.reserving = false;
    let waiting = std::mem::take(&mut state.waiting);
    match block {
        Ok((first, end)) => (state.next, state.end) = (first, end),
        Err(error) => {
            drop(state);
            tracing::warn!(%error, "no producer ids could be reserved; producers ask again");
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
