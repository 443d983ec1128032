//! StopReplica: replicas stop, and those that go for good lose their logs.

use std::sync::Arc;

use kernel::replica::control::{self, EPOCH_DURING_DELETE};
use wire::types::{LeaderEpoch, TopicPartition};

use super::Failure;
use crate::broker::Broker;
use crate::drive::{fetchers, groups};
use crate::partition::Origin;

/// What the controller says of one partition.
#[derive(Clone, Debug)]
pub(crate) struct StopOrder {
    pub(crate) partition: TopicPartition,
    /// The leader epoch; -1 if none was told, -2 if the topic is being deleted.
    pub(crate) leader_epoch: LeaderEpoch,
    /// Whether the log goes, too.
    pub(crate) delete: bool,
}

/// Obeys a request that the fence has let pass; returns the outcome of each order.
pub(crate) fn obey(broker: &Arc<Broker>, orders: &[StopOrder], origin: Origin) -> Vec<Result<(), Failure>> {
    let judge = |order: &StopOrder| {
        control::stop_replica(broker.local(&order.partition), order.leader_epoch).map_err(Failure::Refused)
    };
    let mut outcomes: Vec<_> = orders.iter().map(judge).collect();
    let obeyed = |outcomes: &[Result<(), Failure>]| {
        let each = orders.iter().zip(outcomes).enumerate();
        let good = each.filter(|(_, (_, outcome))| outcome.is_ok());
        good.map(|(at, (order, _))| (at, order.clone())).collect::<Vec<_>>()
    };
    let stopping = obeyed(&outcomes);
    let names: Vec<_> = stopping.iter().map(|(_, order)| order.partition.clone()).collect();
    // Before anything is taken away that a fetcher could still be writing to (KAFKA-10371).
    fetchers::remove(broker, &names);
    let (deleted, stopped): (Vec<_>, Vec<_>) = stopping.into_iter().partition(|(_, order)| order.delete);
    for (_, order) in stopped {
        if let Some(partition) = broker.hosted(&order.partition) {
            partition.stop(broker, origin);
        }
    }
    let names: Vec<_> = deleted.iter().map(|(_, order)| order.partition.clone()).collect();
    for (_, order) in &deleted {
        // Whatever epoch was told: without its log nobody can coordinate (KAFKA-4362, KAFKA-9235).
        groups::log_deleted(broker, &order.partition, order.leader_epoch == EPOCH_DURING_DELETE);
    }
    for ((at, _), result) in deleted.iter().zip(broker.remove_replicas(&names, origin)) {
        if let (Err(error), Some(outcome)) = (result, outcomes.get_mut(*at)) {
            *outcome = Err(Failure::Log(error));
        }
    }
    outcomes
}
