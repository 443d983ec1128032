//! Topics are deleted.
//!
//! Whoever wants a topic deleted makes a znode of its name. The topic is *queued* then: nobody is elected for it, and it
//! is hidden from clients as soon as its deletion has *started*. Every replica is told to stop and then to delete its
//! log; when all have, the znodes of the topic go. A replica that cannot (its broker is gone, its log directory failed)
//! makes the topic *ineligible*, and so does a reassignment of one of its partitions: what waits is tried again when a
//! broker with one of its replicas starts, or when the reassignment is complete. A broker that never comes back keeps
//! the topic from being deleted for ever.
//!
//! [`resume`] looks at every queued topic and takes the step that is possible. It runs after everything that may make one
//! possible, so a term that begins in the midst of a deletion goes on with it, even if half of its znodes are gone
//! (KAFKA-6650).

use std::collections::BTreeSet;

use wire::error_code::ErrorCode;
use wire::types::{BrokerId, TopicName, TopicPartition};

use super::batch::RequestBatch;
use super::context::{Context, Replica};
use super::note::{Halt, What};
use super::partition_state::PartitionState;
use super::partitions::PartitionTransition;
use super::program::{Flow, Step, Turn};
use super::replica_state::ReplicaState;
use super::replicas::ReplicaTransition;
use super::store::{StoreOp, StoreReply};

/// Reads, at the start of a term, which topics are to be deleted. One that is not known counts too: whoever deleted it
/// did not come to the end.
pub(super) fn load(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadDeletions, Step::LoadDeletions),
        Some(StoreReply::TopicList(topics)) if !turn.settings.delete_topic_enable => refuse(turn, topics),
        Some(StoreReply::TopicList(topics)) => {
            turn.context.deletions.queued.clone_from(&topics);
            for topic in topics {
                if has_offline_replica(turn.context, &topic) {
                    halt(turn, &topic, Halt::OfflineReplicas);
                } else if is_being_reassigned(turn.context, &topic) {
                    halt(turn, &topic, Halt::Reassignment);
                }
            }
            Flow::Done
        }
        Some(_) => Flow::confused(),
    }
}

/// Reads which topics are to be deleted, and queues them. A request for a topic that does not exist is dropped.
pub(super) fn compare(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadDeletions, Step::CompareDeletions),
        Some(StoreReply::TopicList(topics)) if !turn.settings.delete_topic_enable => refuse(turn, topics),
        Some(StoreReply::TopicList(topics)) => {
            let (known, unknown): (BTreeSet<_>, _) =
                topics.into_iter().partition(|topic| turn.context.has_topic(topic));
            for topic in known {
                turn.context.deletions.queued.insert(topic.clone());
                if is_being_reassigned(turn.context, &topic) {
                    halt(turn, &topic, Halt::Reassignment);
                }
            }
            Flow::Then(vec![Step::DropDeletions(unknown), Step::ResumeDeletions])
        }
        Some(_) => Flow::confused(),
    }
}

/// Drops requests where `delete.topic.enable` is false, and the topics stay as they are (KAFKA-3175).
fn refuse(turn: &mut Turn<'_>, topics: BTreeSet<TopicName>) -> Flow {
    for topic in &topics {
        turn.note(What::DeletionDisabled { topic: topic.clone() });
    }
    Flow::Then(vec![Step::DropDeletions(topics)])
}

/// Drops requests.
pub(super) fn drop_requests(
    turn: &mut Turn<'_>,
    topics: BTreeSet<TopicName>,
    reply: Option<StoreReply>,
) -> Flow {
    match reply {
        None if topics.is_empty() => Flow::Done,
        None => {
            let epoch_version = turn.epoch_version();
            Flow::ask(StoreOp::DropDeletions { topics, epoch_version }, Step::DropDeletions(BTreeSet::new()))
        }
        Some(StoreReply::Done) => Flow::Done,
        Some(_) => Flow::confused(),
    }
}

/// Takes the next step of every deletion that can go on.
pub(super) fn resume(turn: &mut Turn<'_>) -> Flow {
    let (mut steps, mut retried, mut eligible) = (Vec::new(), Vec::new(), BTreeSet::new());
    let context = &*turn.context;
    for topic in &context.deletions.queued {
        let replicas = replicas_of(context, topic);
        let is_in = |replica: &Replica, state| context.replica_state(replica) == state;
        if replicas.iter().all(|replica| is_in(replica, ReplicaState::DeletionSuccessful)) {
            steps.push(Step::CompleteDeletion(topic.clone()));
        } else if !replicas.iter().any(|replica| is_in(replica, ReplicaState::DeletionStarted)) {
            let failed = replicas.into_iter();
            retried.extend(failed.filter(|replica| is_in(replica, ReplicaState::DeletionIneligible)));
            if !context.deletions.ineligible.contains(topic) {
                eligible.insert(topic.clone());
            }
        }
    }
    steps.push(Step::Replicas(ReplicaTransition::new(retried, ReplicaState::Offline)));
    steps.push(Step::StartDeletions(eligible));
    Flow::Then(steps)
}

/// Topics that waited may be deleted now, if no reassignment stands in the way.
pub(super) fn allow(turn: &mut Turn<'_>, topics: &BTreeSet<TopicName>) -> Flow {
    let may_go_on = |topic: &TopicName| {
        turn.context.is_queued_for_deletion(topic) && !is_being_reassigned(turn.context, topic)
    };
    let allowed: Vec<_> = topics.iter().filter(|topic| may_go_on(topic)).collect();
    if allowed.is_empty() {
        return Flow::Done;
    }
    for topic in allowed {
        turn.context.deletions.ineligible.remove(topic);
    }
    Flow::Then(vec![Step::ResumeDeletions])
}

/// Brokers have started, and with them replicas of topics that wait to be deleted.
pub(super) fn allow_on(turn: &mut Turn<'_>, brokers: &BTreeSet<BrokerId>) -> Flow {
    let topics =
        turn.context.replicas_on(brokers).into_iter().map(|replica| replica.partition.topic).collect();
    allow(turn, &topics)
}

/// Begins deletions, or tries again what of them is left. A partition that is begun is no longer anybody's to lead.
pub(super) fn start(turn: &mut Turn<'_>, topics: BTreeSet<TopicName>) -> Flow {
    if topics.is_empty() {
        return Flow::Done;
    }
    let begun: Vec<_> = topics.difference(&turn.context.deletions.started).cloned().collect();
    let partitions: Vec<_> = begun.iter().flat_map(|topic| partitions_of(turn.context, topic)).collect();
    turn.context.deletions.started.extend(begun);
    Flow::Then(vec![
        Step::Partitions(PartitionTransition::new(partitions.clone(), PartitionState::Offline, None)),
        Step::Partitions(PartitionTransition::new(partitions, PartitionState::NonExistent, None)),
        Step::DeleteReplicas(topics),
    ])
}

/// Hides topics, and has their replicas deleted as far as they can be reached.
pub(super) fn delete_replicas(turn: &mut Turn<'_>, topics: &BTreeSet<TopicName>) -> Flow {
    let partitions: Vec<_> = topics.iter().flat_map(|topic| partitions_of(turn.context, topic)).collect();
    let mut batch = RequestBatch::default();
    batch.update_metadata_to_all(turn.context, &partitions);
    turn.send(batch);
    let (mut reached, mut dead) = (Vec::new(), Vec::new());
    for replica in turn.context.replicas_of(&partitions) {
        if !turn.context.is_online(replica.broker, &replica.partition) {
            dead.push(replica);
        } else if turn.context.replica_state(&replica) != ReplicaState::DeletionSuccessful {
            reached.push(replica);
        }
    }
    for topic in dead.iter().map(|replica| &replica.partition.topic).collect::<BTreeSet<_>>() {
        halt(turn, topic, Halt::OfflineReplicas);
    }
    Flow::Then(vec![
        Step::Replicas(ineligible(turn.context, dead)),
        Step::Replicas(ReplicaTransition::new(reached.clone(), ReplicaState::Offline)),
        Step::Replicas(ReplicaTransition::new(reached, ReplicaState::DeletionStarted)),
    ])
}

/// A broker answers for replicas that were to be deleted. Those that are not told to delete any more are passed over.
pub(super) fn answered(
    turn: &mut Turn<'_>,
    broker: BrokerId,
    answers: impl IntoIterator<Item = (TopicPartition, ErrorCode)>,
) -> Flow {
    let (mut deleted, mut failed) = (Vec::new(), Vec::new());
    for (partition, error) in answers {
        let is_started = turn.context.deletions.started.contains(&partition.topic);
        let replica = Replica { partition, broker };
        if is_started && turn.context.replica_state(&replica) == ReplicaState::DeletionStarted {
            if error.is_error() { failed.push(replica) } else { deleted.push(replica) }
        }
    }
    if deleted.is_empty() && failed.is_empty() {
        return Flow::Done;
    }
    for topic in failed.iter().map(|replica| &replica.partition.topic).collect::<BTreeSet<_>>() {
        halt(turn, topic, Halt::Failure(broker));
    }
    Flow::Then(vec![
        Step::Replicas(ReplicaTransition::new(failed, ReplicaState::DeletionIneligible)),
        Step::Replicas(ReplicaTransition::new(deleted, ReplicaState::DeletionSuccessful)),
        Step::ResumeDeletions,
    ])
}

/// Replicas went offline before they were deleted.
pub(super) fn fail(turn: &mut Turn<'_>, replicas: Vec<Replica>) -> Flow {
    let replicas: Vec<_> = replicas
        .into_iter()
        .filter(|replica| turn.context.is_queued_for_deletion(&replica.partition.topic))
        .filter(|replica| turn.context.replica_state(replica) != ReplicaState::DeletionSuccessful)
        .collect();
    if replicas.is_empty() {
        return Flow::Done;
    }
    for topic in replicas.iter().map(|replica| &replica.partition.topic).collect::<BTreeSet<_>>() {
        halt(turn, topic, Halt::OfflineReplicas);
    }
    Flow::Then(vec![Step::Replicas(ineligible(turn.context, replicas)), Step::ResumeDeletions])
}

/// Nothing is left of a topic but its znodes.
pub(super) fn complete(turn: &mut Turn<'_>, topic: TopicName) -> Flow {
    let replicas = replicas_of(turn.context, &topic);
    Flow::Then(vec![
        Step::Replicas(ReplicaTransition::new(replicas, ReplicaState::NonExistent)),
        Step::DeleteTopic(topic),
    ])
}

/// Deletes the znodes of a topic and forgets it.
pub(super) fn delete_topic(turn: &mut Turn<'_>, topic: TopicName, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => {
            let epoch_version = turn.epoch_version();
            Flow::ask(StoreOp::DeleteTopic { topic: topic.clone(), epoch_version }, Step::DeleteTopic(topic))
        }
        Some(StoreReply::Done) => {
            turn.context.remove_topic(&topic);
            turn.note(What::TopicDeleted { topic });
            Flow::Done
        }
        Some(_) => Flow::confused(),
    }
}

/// Marks a queued topic as one that cannot be deleted now.
fn halt(turn: &mut Turn<'_>, topic: &TopicName, why: Halt) {
    if turn.context.deletions.ineligible.insert(topic.clone()) {
        turn.note(What::DeletionHalted { topic: topic.clone(), why });
    }
}

/// Marks replicas as ones that cannot be deleted now. Those that are deleted, or were never told to stop, stay as they
/// are: a broker that comes back says what is true of them.
fn ineligible(context: &Context, mut replicas: Vec<Replica>) -> ReplicaTransition {
    let target = ReplicaState::DeletionIneligible;
    replicas.retain(|replica| target.legal_previous().contains(&context.replica_state(replica)));
    ReplicaTransition::new(replicas, target)
}

fn partitions_of(context: &Context, topic: &TopicName) -> Vec<TopicPartition> {
    context.partitions_of(topic).map(|(partition, _)| partition).collect()
}

fn replicas_of(context: &Context, topic: &TopicName) -> Vec<Replica> {
    context.replicas_of(&partitions_of(context, topic))
}

fn has_offline_replica(context: &Context, topic: &TopicName) -> bool {
    replicas_of(context, topic).iter().any(|replica| !context.is_online(replica.broker, &replica.partition))
}

fn is_being_reassigned(context: &Context, topic: &TopicName) -> bool {
    context.reassigning.iter().any(|partition| partition.topic == *topic)
}
