//! A leader that writes the state of its partition itself: conditional on the version it knows, and told to the
//! controller by a notification, for whoever else must know.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};

use bytes::Bytes;
use kernel::replica::alter_partition::RETRY_PAUSE_MS;
use kernel::replica::isr_notifications::IsrNotifications;
use kernel::replica::leader::{IsrAnswer, IsrChange};
use metadata::store::{CreateMode, Op, OpError, OpResult, Request, Response, StoreError};
use metadata::znode::isr_change;
use metadata::znode::partition_state::{self, PartitionState};
use wire::types::{BrokerId, ControllerEpoch, TopicPartition};

use super::report;
use crate::broker::Broker;

/// What is to be written.
#[derive(Clone)]
struct Wanted {
    partition: TopicPartition,
    change: IsrChange,
    state: PartitionState,
}

/// Writes the ISR that the leader of `partition` wants.
pub(super) fn write(broker: &Arc<Broker>, partition: TopicPartition, change: IsrChange) {
    let Some(hosted) = broker.hosted(&partition) else { return };
    let Some(leadership) = hosted.leadership() else { return };
    let state = state(broker.id(), leadership.controller_epoch, &change);
    let wanted = Wanted { partition, change, state };
    let path = partition_state::path(&wanted.partition);
    let request = Request::set(path, wanted.state.encode(), Some(wanted.change.partition_epoch));
    let then = broker.clone();
    broker.store().submit(request, Box::new(move |answer| written(&then, wanted, answer)));
}

/// A leader that changes its ISR has recovered from an unclean election, if there was one (KIP-704).
fn state(leader: BrokerId, controller_epoch: ControllerEpoch, change: &IsrChange) -> PartitionState {
    PartitionState {
        leader,
        leader_epoch: change.leader_epoch,
        isr: change.isr.clone(),
        controller_epoch,
        is_recovering: false,
    }
}

fn written(broker: &Arc<Broker>, wanted: Wanted, answer: Result<Response, StoreError>) {
    match answer {
        Ok(Response::Written(OpResult::Set { stat })) => confirm(broker, wanted, stat.version),
        Err(error) if error.op_error() == Some(OpError::BadVersion) => read_back(broker, wanted),
        Err(error) if error.is_no_node() => supersede(broker, wanted),
        Ok(_) => failed(broker, wanted, &StoreError::Unexpected("an answer of another kind")),
        // After a lost connection the write may have been done.
        Err(StoreError::ConnectionLoss) => read_back(broker, wanted),
        Err(error) => failed(broker, wanted, &error),
    }
}

/// The version is another one. If what stands there is what was to be written, an earlier answer was lost.
fn read_back(broker: &Arc<Broker>, wanted: Wanted) {
    let path = partition_state::path(&wanted.partition);
    let then = broker.clone();
    broker.store().submit(
        Request::get(path),
        Box::new(move |answer| match answer {
            Ok(Response::Data { data, stat }) => {
                let stored = PartitionState::decode(data.as_deref());
                if stored.is_ok_and(|stored| stored == wanted.state) {
                    confirm(&then, wanted, stat.version);
                } else if stat.version == wanted.change.partition_epoch {
                    failed(&then, wanted, &StoreError::ConnectionLoss);
                } else {
                    supersede(&then, wanted);
                }
            }
            Err(error) if error.is_no_node() => supersede(&then, wanted),
            Ok(_) => failed(&then, wanted, &StoreError::Unexpected("an answer of another kind")),
            Err(error) => failed(&then, wanted, &error),
        }),
    );
}

fn confirm(broker: &Arc<Broker>, wanted: Wanted, version: i32) {
    let Wanted { partition, change, .. } = wanted;
    let answer = IsrAnswer::Confirmed {
        leader_epoch: change.leader_epoch,
        partition_epoch: version,
        isr: change.isr.clone(),
    };
    // Answers of the store come on a thread of its own, which is not for work.
    let then = broker.clone();
    broker.run_job(move || {
        if let Some(look_ms) = notifications(&then).changed(then.now(), partition.clone()) {
            then.timers().add_task(look_ms, notify);
        }
        report(&then, &partition, change, answer);
    });
}

fn supersede(broker: &Arc<Broker>, wanted: Wanted) {
    let then = broker.clone();
    broker.run_job(move || report(&then, &wanted.partition, wanted.change, IsrAnswer::Superseded));
}

/// The store cannot do it now: it is tried again after a pause.
fn failed(broker: &Arc<Broker>, wanted: Wanted, error: &StoreError) {
    tracing::warn!(partition = %wanted.partition, %error, "the ISR cannot be written and is tried again");
    let again_ms = broker.now().mono_ms.saturating_add(RETRY_PAUSE_MS);
    broker.timers().add_task(again_ms, move |broker| {
        report(broker, &wanted.partition, wanted.change, IsrAnswer::Failed);
    });
}

/// Tells the controller of the partitions whose ISR was written, if there is a lull.
fn notify(broker: &Arc<Broker>) {
    let (partitions, look_ms) = notifications(broker).due(broker.now());
    if let Some(look_ms) = look_ms {
        broker.timers().add_task(look_ms, notify);
    }
    if partitions.is_empty() {
        return;
    }
    let list: Vec<_> = partitions.iter().cloned().collect();
    let value = Bytes::from(isr_change::encode(&list));
    let create = Op::create(isr_change::PREFIX, value, CreateMode::PersistentSequential);
    let then = broker.clone();
    broker
        .store()
        .submit(Request::Write(create), Box::new(move |answer| notified(&then, partitions, answer)));
}

fn notified(
    broker: &Arc<Broker>,
    partitions: BTreeSet<TopicPartition>,
    answer: Result<Response, StoreError>,
) {
    let Err(error) = answer else { return };
    tracing::warn!(%error, "the controller cannot be told of changed ISRs and is told later");
    let look_ms = notifications(broker).not_told(broker.now(), partitions);
    broker.timers().add_task(look_ms, notify);
}

fn notifications(broker: &Broker) -> MutexGuard<'_, IsrNotifications> {
    broker.alter_partition().notifications.lock().unwrap_or_else(PoisonError::into_inner)
}
