//! Topics come, grow and go.
//!
//! A new partition goes through four transitions: partition New, replicas New, partition Online, replicas Online. What
//! comes of it on the wire is one LeaderAndIsr to each broker in sync, and the news to all. Changes to the replicas of
//! partitions that are known are not taken from the znode. A topic keeps the id it is known by (KAFKA-12835).

use std::collections::{BTreeMap, BTreeSet};

use wire::types::{TopicName, TopicPartition};

use super::election::Strategy;
use super::note::What;
use super::partition_state::PartitionState;
use super::partitions::PartitionTransition;
use super::program::{Flow, Step, Turn};
use super::replica_state::ReplicaState;
use super::replicas::ReplicaTransition;
use super::store::{StoreOp, StoreReply};
use super::values::TopicAssignment;

/// Reads topics and takes their ids and assignments into the context; those without an id get one where ids are used.
pub(super) fn load(turn: &mut Turn<'_>, names: BTreeSet<TopicName>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None if names.is_empty() => Flow::Done,
        None => Flow::ask(StoreOp::ReadTopics(names), Step::LoadTopics(BTreeSet::new())),
        Some(StoreReply::Topics(topics)) => {
            let mut without_id = BTreeMap::new();
            for (name, topic) in topics {
                take_in(turn, &name, &topic);
                if topic.topic_id.is_none() {
                    without_id.insert(name, topic);
                }
            }
            Flow::Then(vec![Step::AssignTopicIds(without_id)])
        }
        Some(_) => Flow::confused(),
    }
}

fn take_in(turn: &mut Turn<'_>, name: &TopicName, topic: &TopicAssignment) {
    turn.context.add_topic(name.clone());
    if let Some(id) = topic.topic_id {
        turn.context.set_topic_id(name, id);
    }
    for (index, assignment) in &topic.partitions {
        let partition = TopicPartition::new(name.clone(), *index);
        if assignment.is_being_reassigned() {
            turn.context.reassigning.insert(partition.clone());
        }
        turn.context.set_assignment(&partition, assignment.clone());
    }
}

/// Gives ids to topics that have none, from 2.8 on.
pub(super) fn assign_ids(
    turn: &mut Turn<'_>,
    topics: BTreeMap<TopicName, TopicAssignment>,
    reply: Option<StoreReply>,
) -> Flow {
    match reply {
        None if topics.is_empty() || !turn.settings.release.topic_ids_supported() => Flow::Done,
        None => {
            let epoch_version = turn.epoch_version();
            Flow::ask(
                StoreOp::AssignTopicIds { topics, epoch_version },
                Step::AssignTopicIds(BTreeMap::new()),
            )
        }
        Some(StoreReply::Topics(written)) => {
            for (name, topic) in written {
                if let Some(id) = topic.topic_id {
                    turn.context.set_topic_id(&name, id);
                }
            }
            Flow::Done
        }
        Some(_) => Flow::confused(),
    }
}

/// Reads which topics there are, forgets those that are gone, and creates those that are new.
pub(super) fn compare(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadTopicList, Step::CompareTopics),
        Some(StoreReply::TopicList(names)) => {
            let gone: Vec<_> =
                turn.context.topics().filter(|topic| !names.contains(*topic)).cloned().collect();
            let new: BTreeSet<_> = names.into_iter().filter(|topic| !turn.context.has_topic(topic)).collect();
            for topic in &gone {
                turn.context.remove_topic(topic);
            }
            for topic in &new {
                turn.context.add_topic(topic.clone());
            }
            Flow::Then(vec![Step::LoadTopics(new.clone()), Step::CreateTopics(new)])
        }
        Some(_) => Flow::confused(),
    }
}

/// Creates all partitions of topics that were just loaded.
pub(super) fn create(turn: &mut Turn<'_>, topics: &BTreeSet<TopicName>) -> Flow {
    let partitions = topics.iter().flat_map(|topic| turn.context.partitions_of(topic).map(|(name, _)| name));
    Flow::Then(vec![Step::CreatePartitions(partitions.collect())])
}

/// Takes new partitions into office.
pub(super) fn create_partitions(turn: &mut Turn<'_>, partitions: Vec<TopicPartition>) -> Flow {
    if partitions.is_empty() {
        return Flow::Done;
    }
    let replicas = turn.context.replicas_of(&partitions);
    let strategy = Strategy::Offline { allow_unclean: false };
    Flow::Then(vec![
        Step::Partitions(PartitionTransition::new(partitions.clone(), PartitionState::New, None)),
        Step::Replicas(ReplicaTransition::new(replicas.clone(), ReplicaState::New)),
        Step::Partitions(PartitionTransition::online(partitions, strategy)),
        Step::Replicas(ReplicaTransition::new(replicas, ReplicaState::Online)),
    ])
}

/// Reads one topic and creates the partitions that were added to it.
pub(super) fn compare_one(turn: &mut Turn<'_>, topic: TopicName, reply: Option<StoreReply>) -> Flow {
    let mut topics = match reply {
        None => {
            let names = BTreeSet::from([topic.clone()]);
            return Flow::ask(StoreOp::ReadTopics(names), Step::CompareTopic(topic));
        }
        Some(StoreReply::Topics(topics)) => topics,
        Some(_) => return Flow::confused(),
    };
    // A topic that is gone, or not known yet, is the matter of the list of topics.
    let Some(read) = topics.remove(&topic).filter(|_| turn.context.has_topic(&topic)) else {
        return Flow::Done;
    };
    let is_new = |index: &i32| turn.context.partition(&TopicPartition::new(topic.clone(), *index)).is_none();
    let added: Vec<i32> = read.partitions.keys().filter(|index| is_new(index)).copied().collect();
    if turn.context.is_queued_for_deletion(&topic) {
        return if added.is_empty() {
            Flow::Done
        } else {
            Flow::Then(vec![Step::RestoreTopic { topic, read }])
        };
    }
    let mut steps = Vec::new();
    if let (None, Some(id)) = (read.topic_id, turn.context.topic_id(&topic)) {
        let (topic, assignment) = (topic.clone(), TopicAssignment { topic_id: Some(id), ..read.clone() });
        let note = What::TopicIdRestored { topic: topic.clone() };
        steps.push(Step::WriteTopic { topic, assignment, note });
    }
    let mut partitions = Vec::with_capacity(added.len());
    for (index, assignment) in read.partitions.into_iter().filter(|(index, _)| added.contains(index)) {
        let partition = TopicPartition::new(topic.clone(), index);
        turn.context.set_assignment(&partition, assignment);
        partitions.push(partition);
    }
    steps.push(Step::CreatePartitions(partitions));
    Flow::Then(steps)
}

/// Undoes the addition of partitions to a topic that is to be deleted: only those that have a znode remain (KAFKA-6612).
pub(super) fn restore(topic: TopicName, read: TopicAssignment, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadPartitionList(topic.clone()), Step::RestoreTopic { topic, read }),
        Some(StoreReply::PartitionList(existing)) => {
            let mut assignment = read;
            assignment.partitions.retain(|index, _| existing.contains(index));
            let note = What::PartitionsRemoved { topic: topic.clone() };
            Flow::Then(vec![Step::WriteTopic { topic, assignment, note }])
        }
        Some(_) => Flow::confused(),
    }
}

/// Writes a topic's znode and notes why.
pub(super) fn write(
    turn: &mut Turn<'_>,
    topic: TopicName,
    assignment: TopicAssignment,
    note: What,
    reply: Option<StoreReply>,
) -> Flow {
    match reply {
        None => {
            let topics = BTreeMap::from([(topic.clone(), assignment)]);
            let step = Step::WriteTopic { topic, assignment: TopicAssignment::default(), note };
            Flow::ask(StoreOp::WriteTopics { topics, epoch_version: turn.epoch_version() }, step)
        }
        Some(StoreReply::Topics(written)) => {
            if written.contains_key(&topic) {
                turn.note(note);
            }
            Flow::Done
        }
        Some(_) => Flow::confused(),
    }
}
