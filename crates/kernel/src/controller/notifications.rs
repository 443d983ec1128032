//! What brokers leave for the controller as sequential znodes: that a log directory failed (KIP-112), and, below 2.7,
//! that a leader changed its in-sync replicas by itself.
//!
//! The list is read when its turn comes, not when it changed (KAFKA-5879), and only what was read is dropped. A broker
//! does not say which of its replicas a failed directory held: all are told their state again, and its answer says which
//! of them it cannot serve (`responses`).

use std::collections::{BTreeMap, BTreeSet};

use wire::types::{BrokerId, TopicPartition};

use super::batch::RequestBatch;
use super::note::What;
use super::program::{Flow, Step, Turn};
use super::replica_state::ReplicaState;
use super::replicas::ReplicaTransition;
use super::store::{NotificationKind, StateRead, StoreOp, StoreReply};

/// Reads whose log directories failed.
pub(super) fn read_log_dir_events(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    let events: BTreeMap<String, Option<BrokerId>> = match reply {
        None => return Flow::ask(StoreOp::ReadLogDirEvents, Step::ReadLogDirEvents),
        Some(StoreReply::LogDirEvents(events)) => events,
        Some(_) => return Flow::confused(),
    };
    let brokers: BTreeSet<_> = events.values().flatten().copied().collect();
    for broker in &brokers {
        turn.note(What::LogDirFailed { broker: *broker });
    }
    let is_told = |state| ReplicaState::Online.legal_previous().contains(&state);
    let mut replicas = turn.context.replicas_on(&brokers);
    replicas.retain(|replica| is_told(turn.context.replica_state(replica)));
    let (kind, names) = (NotificationKind::LogDirEvent, events.into_keys().collect());
    Flow::Then(vec![
        Step::Replicas(ReplicaTransition::new(replicas, ReplicaState::Online)),
        Step::DropRead { kind, names },
    ])
}

/// Reads which partitions have other in-sync replicas.
pub(super) fn read_isr_changes(reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadIsrChanges, Step::ReadIsrChanges),
        Some(StoreReply::IsrChanges(changes)) => {
            let partitions: BTreeSet<_> = changes.values().flatten().cloned().collect();
            let (kind, names) = (NotificationKind::IsrChange, changes.into_keys().collect());
            let partitions = partitions.into_iter().collect();
            Flow::Then(vec![Step::RefreshStates(partitions), Step::DropRead { kind, names }])
        }
        Some(_) => Flow::confused(),
    }
}

/// Reads the states of partitions and tells all brokers.
pub(super) fn refresh_states(
    turn: &mut Turn<'_>,
    partitions: Vec<TopicPartition>,
    reply: Option<StoreReply>,
) -> Flow {
    let states = match reply {
        None if partitions.is_empty() => return Flow::Done,
        None => {
            return Flow::ask(StoreOp::ReadPartitionStates(partitions), Step::RefreshStates(Vec::new()));
        }
        Some(StoreReply::States(states)) => states,
        Some(_) => return Flow::confused(),
    };
    let mut read = Vec::with_capacity(states.len());
    for (partition, state) in states {
        if let StateRead::State(stored) = state {
            turn.context.set_leadership(&partition, stored);
            read.push(partition);
        }
    }
    let mut batch = RequestBatch::default();
    batch.update_metadata_to_all(turn.context, &read);
    turn.send(batch);
    Flow::Done
}

/// Drops what was read.
pub(super) fn drop_read(
    turn: &mut Turn<'_>,
    kind: NotificationKind,
    names: BTreeSet<String>,
    reply: Option<StoreReply>,
) -> Flow {
    match reply {
        None if names.is_empty() => Flow::Done,
        None => {
            let op = StoreOp::DropNotificationsRead { kind, names, epoch_version: turn.epoch_version() };
            Flow::ask(op, Step::DropRead { kind, names: BTreeSet::new() })
        }
        Some(StoreReply::Done) => Flow::Done,
        Some(_) => Flow::confused(),
    }
}
