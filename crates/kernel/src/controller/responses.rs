//! What brokers answer to control requests, as far as something follows from it.
//!
//! | answer | what follows |
//! |---|---|
//! | LeaderAndIsr with KAFKA_STORAGE_ERROR for a replica | its log directory failed: it is offline, others take over |
//! | LeaderAndIsr without an error for such a replica | it is back, after a restart of its broker |
//! | StopReplica that was to delete replicas | they are deleted, or not (`deletion`) |
//! | an error of the whole request | nothing: another event tells what is wrong |
//!
//! Answers of one broker that wait are one, with the last word for each partition, so that what waits is limited by the
//! number of replicas.

use std::collections::{BTreeMap, BTreeSet};

use wire::error_code::ErrorCode;
use wire::types::{BrokerEpoch, BrokerId, TopicPartition};

use super::context::{Context, Replica};
use super::deletion;
use super::program::{Flow, Step, Turn};

/// The outcome for each partition of a request.
pub(super) type Outcomes = BTreeMap<TopicPartition, ErrorCode>;

/// Whether something may follow from an answer to LeaderAndIsr.
pub(super) fn matters(context: &Context, broker: BrokerId, outcomes: &Outcomes) -> bool {
    let known = context.offline_dirs.get(&broker);
    outcomes.iter().any(|(partition, error)| match error {
        ErrorCode::KafkaStorageError => known.is_none_or(|known| !known.contains(partition)),
        ErrorCode::None => known.is_some_and(|known| known.contains(partition)),
        _ => false,
    })
}

/// A broker says which replicas it leads or follows from now on.
pub(super) fn led(turn: &mut Turn<'_>, broker: BrokerId, run: BrokerEpoch, outcomes: Outcomes) -> Flow {
    if !is_of_present_run(turn.context, broker, run) {
        return Flow::Done;
    }
    let before = turn.context.offline_dirs.remove(&broker).unwrap_or_default();
    let mut now = before.clone();
    for (partition, error) in outcomes {
        match error {
            ErrorCode::KafkaStorageError if turn.context.partition(&partition).is_some() => {
                now.insert(partition);
            }
            ErrorCode::None => {
                now.remove(&partition);
            }
            _ => {}
        }
    }
    let lost: BTreeSet<_> = now.difference(&before).cloned().collect();
    if !now.is_empty() {
        turn.context.offline_dirs.insert(broker, now);
    }
    if lost.is_empty() {
        return Flow::Done;
    }
    let replicas = lost.into_iter().map(|partition| Replica { partition, broker }).collect();
    Flow::Then(vec![Step::ReplicasOffline(replicas)])
}

/// A broker says which replicas it deleted.
pub(super) fn deleted(turn: &mut Turn<'_>, broker: BrokerId, run: BrokerEpoch, outcomes: Outcomes) -> Flow {
    if is_of_present_run(turn.context, broker, run) {
        deletion::answered(turn, broker, outcomes)
    } else {
        Flow::Done
    }
}

/// What an earlier run of a broker answered says nothing of the present one.
fn is_of_present_run(context: &Context, broker: BrokerId, run: BrokerEpoch) -> bool {
    context.registered().get(&broker).is_some_and(|known| known.epoch == run)
}
