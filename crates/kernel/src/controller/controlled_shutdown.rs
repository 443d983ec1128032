//! A broker is about to stop and asks to be relieved.
//!
//! It counts as shutting down until its registration goes. What it leads and has other replicas gets another leader, as
//! far as one is in sync; what it follows it stops, and leaves the in-sync replicas. The answer is what it still leads;
//! partitions with a single replica do not count. Asking again does no harm.

use wire::error_code::ErrorCode;
use wire::types::{BrokerEpoch, BrokerId, TopicPartition};

use super::batch::RequestBatch;
use super::command::ApiAnswer;
use super::context::{Context, Partition, Replica};
use super::election::Strategy;
use super::partitions::PartitionTransition;
use super::program::{Flow, Step, Turn};
use super::replica_state::ReplicaState;
use super::replicas::ReplicaTransition;

/// From brokers that do not know their epoch.
const UNKNOWN_BROKER_EPOCH: BrokerEpoch = BrokerEpoch(-1);

/// The broker that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShutdownRequest {
    pub(super) broker: BrokerId,
    pub(super) broker_epoch: BrokerEpoch,
}

/// Judges the request and plans what follows from it.
pub(super) fn shut_down(turn: &mut Turn<'_>, request: ShutdownRequest) -> Flow {
    let ShutdownRequest { broker, broker_epoch } = request;
    let Some(known) = turn.context.registered().get(&broker) else {
        turn.answer(Err(ErrorCode::BrokerNotAvailable));
        return Flow::Done;
    };
    if broker_epoch != UNKNOWN_BROKER_EPOCH && broker_epoch < known.epoch {
        turn.answer(Err(ErrorCode::StaleBrokerEpoch));
        return Flow::Done;
    }
    turn.context.mark_shutting_down(broker);
    let hosted = turn.context.select(|partition, known| {
        known.assignment.replicas.contains(&broker)
            && known.leadership.is_some()
            && counts(turn.context, partition, known)
    });
    let is_led = |partition: &TopicPartition| {
        turn.context.leadership(partition).is_some_and(|state| state.leader == broker)
    };
    let (led, followed): (Vec<_>, Vec<_>) = hosted.into_iter().partition(is_led);
    let replicas =
        followed.iter().map(|partition| Replica { partition: partition.clone(), broker }).collect();
    Flow::Then(vec![
        Step::Partitions(PartitionTransition::online(led, Strategy::ControlledShutdown)),
        Step::StopFollowers { broker, partitions: followed },
        Step::Replicas(ReplicaTransition::new(replicas, ReplicaState::Offline)),
        Step::AnswerShutdown(request),
    ])
}

/// Whether a partition has to be handed over: it has other replicas, and will stay.
fn counts(context: &Context, partition: &TopicPartition, known: &Partition) -> bool {
    known.assignment.replicas.len() > 1 && !context.is_queued_for_deletion(&partition.topic)
}

/// Tells the broker to stop following, before it leaves the in-sync replicas.
pub(super) fn stop_followers(turn: &mut Turn<'_>, broker: BrokerId, partitions: &[TopicPartition]) -> Flow {
    let mut batch = RequestBatch::default();
    for partition in partitions {
        batch.stop_replica(turn.context, broker, partition, false);
    }
    turn.send(batch);
    Flow::Done
}

/// Answers what the broker still leads.
pub(super) fn answer(turn: &mut Turn<'_>, request: &ShutdownRequest) -> Flow {
    let remaining = turn.context.select(|partition, known| {
        known.leadership.as_ref().is_some_and(|state| state.leader == request.broker)
            && counts(turn.context, partition, known)
    });
    turn.answer(Ok(ApiAnswer::ControlledShutdown(remaining)));
    Flow::Done
}
