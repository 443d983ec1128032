//! Creation and deletion of topics, and more partitions for one.
//!
//! Order of a creation: znodes in one transaction, then logs, then the picture that clients see; so whoever
//! sees the topic can use it, and a crash in between leaves znodes from which the next start goes on. A deletion
//! goes the other way: the mark in `/admin/delete_topics` first, the znodes of the topic last.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::assignment::{self, AssignmentError, Numbers};
use kernel::metadata_image::{MetadataImage, PartitionImage, TopicImage};
use kernel::topic_name;
use metadata::store::{CreateMode, Op, OpError, Request, StoreError, Value};
use metadata::znode::config::ConfigEntity;
use metadata::znode::partition_state::{self, PartitionState};
use metadata::znode::topic::{self, PartitionAssignment, TopicAssignment};
use metadata::znode::{config, delete_topics};
use wire::error_code::ErrorCode;
use wire::types::{BrokerId, LeaderEpoch, TopicId, TopicName, TopicPartition};

use crate::broker::Broker;
use crate::refusal::Refusal;

/// A topic that has passed all checks.
#[derive(Clone, Debug)]
pub(crate) struct NewTopic {
    /// The name.
    pub(crate) name: TopicName,
    /// The replicas of each partition, from 0 without a gap.
    pub(crate) assignment: BTreeMap<i32, Vec<BrokerId>>,
    /// The configs set on the topic.
    pub(crate) configs: BTreeMap<String, String>,
}

/// Checks a new name against the rules and against the names there are.
pub(crate) fn check_name(image: &MetadataImage, name: &str) -> Result<(), Refusal> {
    if let Err(why) = topic_name::check(name) {
        return Err(Refusal::new(ErrorCode::InvalidTopicException, format!("Topic name is invalid: {why}")));
    }
    if image.topic(name).is_some() {
        return Err(Refusal::new(ErrorCode::TopicAlreadyExists, format!("Topic '{name}' already exists.")));
    }
    if name.contains(['.', '_'])
        && let Some(other) = image.topics().find(|other| topic_name::collide(other.name.as_str(), name))
    {
        return Err(Refusal::new(
            ErrorCode::InvalidTopicException,
            format!("Topic '{name}' collides with existing topics: {}", other.name),
        ));
    }
    Ok(())
}

/// The most partitions that a topic gains at once; a number in a request must not use up the memory.
const MAX_NEW_PARTITIONS: i32 = 200_000;

/// Spreads the partitions of a new topic over the live brokers.
pub(crate) fn assign(
    broker: &Broker,
    image: &MetadataImage,
    partitions: i32,
    replicas: i32,
) -> Result<BTreeMap<i32, Vec<BrokerId>>, Refusal> {
    let live = image.brokers().len();
    let (start, shift) = (broker.draw(live), broker.draw(live));
    let numbers = Numbers { partitions, replication_factor: replicas, first_partition: 0, start, shift };
    spread(image, numbers)
}

/// Spreads more partitions of a topic over the live brokers, going on where those it has would have gone on.
pub(crate) fn assign_more(
    image: &MetadataImage,
    topic: &TopicImage,
    partitions: i32,
) -> Result<BTreeMap<i32, Vec<BrokerId>>, Refusal> {
    let replicas = topic.partitions.get(&0).map_or(&[][..], |it| &it.replicas);
    let first = replicas.first().copied().unwrap_or(BrokerId::NONE);
    let start = image.brokers().keys().position(|id| *id >= first).unwrap_or(0);
    spread(
        image,
        Numbers {
            partitions,
            replication_factor: i32::try_from(replicas.len()).unwrap_or(i32::MAX),
            first_partition: i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX),
            start,
            shift: start,
        },
    )
}

fn spread(image: &MetadataImage, numbers: Numbers) -> Result<BTreeMap<i32, Vec<BrokerId>>, Refusal> {
    let Numbers { partitions, replication_factor, first_partition, .. } = numbers;
    if partitions > MAX_NEW_PARTITIONS {
        let text = format!("{partitions} new partitions are more than {MAX_NEW_PARTITIONS}.");
        return Err(Refusal::new(ErrorCode::InvalidPartitions, text));
    }
    let brokers = image.brokers().iter().map(|(id, info)| (*id, info.rack.as_deref())).collect();
    let assigned = assignment::assign(&brokers, numbers);
    let refuse = |error| match error {
        AssignmentError::Partitions => {
            Refusal::new(ErrorCode::InvalidPartitions, "Number of partitions must be larger than 0.")
        }
        AssignmentError::ReplicationFactor => {
            Refusal::new(ErrorCode::InvalidReplicationFactor, "Replication factor must be larger than 0.")
        }
        AssignmentError::TooFewBrokers { live } => Refusal::new(
            ErrorCode::InvalidReplicationFactor,
            format!("Replication factor: {replication_factor} larger than available brokers: {live}."),
        ),
    };
    Ok((first_partition..).zip(assigned.map_err(refuse)?).collect())
}

/// Creates a topic; `done` learns its id once clients can use it.
pub(crate) fn create(
    broker: &Arc<Broker>,
    new: NewTopic,
    done: impl FnOnce(Result<TopicId, Refusal>) + Send + 'static,
) {
    let id = broker.draw_topic_id();
    let image = TopicImage {
        name: new.name.clone(),
        id,
        partitions: new_partitions(broker, &new.assignment),
        configs: new.configs.clone(),
    };
    let mut ops = vec![
        Op::create(config_path(&new.name), config::encode(&new.configs), CreateMode::Persistent),
        Op::create(topic::path(&new.name), encode_assignment(id, &new.assignment), CreateMode::Persistent),
        Op::create(partition_state::partitions_path(&new.name), Value::NULL, CreateMode::Persistent),
    ];
    ops.extend(image.partitions.iter().flat_map(|(index, it)| state_ops(broker, &new.name, *index, it)));
    publish(broker, ops, image, move |outcome| done(outcome.map(|()| id)));
}

/// Adds partitions to a topic.
pub(crate) fn add_partitions(
    broker: &Arc<Broker>,
    current: &TopicImage,
    added: BTreeMap<i32, Vec<BrokerId>>,
    done: impl FnOnce(Result<(), Refusal>) + Send + 'static,
) {
    let mut image = current.clone();
    let new = new_partitions(broker, &added);
    let mut whole: BTreeMap<_, _> =
        current.partitions.iter().map(|(i, p)| (*i, p.replicas.clone())).collect();
    whole.extend(added);
    let name = current.name.clone();
    let mut ops = vec![Op::set(topic::path(&name), encode_assignment(current.id, &whole), None)];
    ops.extend(new.iter().flat_map(|(index, it)| state_ops(broker, &name, *index, it)));
    image.partitions.extend(new);
    publish(broker, ops, image, done);
}

/// Writes the znodes of a topic, makes the logs of its new partitions, then shows it to clients.
fn publish(
    broker: &Arc<Broker>,
    ops: Vec<Op>,
    image: TopicImage,
    done: impl FnOnce(Result<(), Refusal>) + Send + 'static,
) {
    let then = broker.clone();
    broker.store().submit(
        Request::Multi(ops),
        Box::new(move |outcome| match outcome {
            Ok(_) => then.clone().run_job(move || {
                make_logs(&then, &image);
                then.update_image(|now| now.with_topics([image]));
                done(Ok(()));
            }),
            Err(error) => done(Err(store_refusal(&error, &image.name))),
        }),
    );
}

/// Deletes a topic; `done` is called once no client sees it any more.
pub(crate) fn delete(
    broker: &Arc<Broker>,
    topic_image: Arc<TopicImage>,
    done: impl FnOnce(Result<(), Refusal>) + Send + 'static,
) {
    let then = broker.clone();
    let name = topic_image.name.clone();
    let mark = Op::create(delete_topics::path(&name), Value::NULL, CreateMode::Persistent);
    broker.store().submit(
        Request::Write(mark),
        Box::new(move |outcome| match outcome {
            // A mark that is there already belongs to a deletion that was cut short: it goes on.
            Ok(_) | Err(StoreError::Op(OpError::NodeExists)) => {
                then.clone().run_job(move || finish_deletion(&then, &topic_image, done));
            }
            Err(error) => done(Err(store_refusal(&error, &name))),
        }),
    );
}

/// Removes the logs of a marked topic, then its znodes and its mark.
pub(crate) fn finish_deletion(
    broker: &Arc<Broker>,
    topic_image: &TopicImage,
    done: impl FnOnce(Result<(), Refusal>) + Send + 'static,
) {
    broker.stop_partitions(topic_image);
    let name = topic_image.name.clone();
    let mut ops = Vec::new();
    for (index, it) in &topic_image.partitions {
        let partition = TopicPartition { topic: name.clone(), partition: *index };
        if it.leader != BrokerId::NONE || !it.isr.is_empty() {
            ops.push(Op::delete(partition_state::path(&partition), None));
        }
        ops.push(Op::delete(partition_state::partition_path(&partition), None));
    }
    ops.push(Op::delete(partition_state::partitions_path(&name), None));
    ops.push(Op::delete(topic::path(&name), None));
    ops.push(Op::delete(config_path(&name), None));
    ops.push(Op::delete(delete_topics::path(&name), None));
    let then = broker.clone();
    broker.store().submit(
        Request::Multi(ops),
        Box::new(move |outcome| {
            if let Err(error) = &outcome {
                tracing::error!(topic = %name, %error, "the znodes of a deleted topic stay; the next start removes them");
            }
            then.update_image(|now| now.without_topic(name.as_str()));
            done(outcome.map(drop).map_err(|error| store_refusal(&error, &name)));
        }),
    );
}

/// The first state of new partitions: the first live replica leads in epoch 0, the live ones are in sync.
fn new_partitions(
    broker: &Broker,
    assignment: &BTreeMap<i32, Vec<BrokerId>>,
) -> BTreeMap<i32, PartitionImage> {
    let image = broker.image();
    let states = assignment.iter().map(|(index, replicas)| {
        let live: Vec<_> = replicas.iter().filter(|id| image.brokers().contains_key(id)).copied().collect();
        let state = PartitionImage {
            leader: live.first().copied().unwrap_or(BrokerId::NONE),
            leader_epoch: LeaderEpoch(0),
            partition_epoch: 0,
            controller_epoch: broker.controller_epoch(),
            replicas: replicas.clone(),
            isr: live,
            offline: Vec::new(),
        };
        (*index, state)
    });
    states.collect()
}

fn state_ops(broker: &Broker, topic: &TopicName, index: i32, it: &PartitionImage) -> Vec<Op> {
    let partition = TopicPartition { topic: topic.clone(), partition: index };
    let path = partition_state::partition_path(&partition);
    let mut ops = vec![Op::create(path, Value::NULL, CreateMode::Persistent)];
    // Without a live replica a partition stays new: it has no state yet.
    if it.leader != BrokerId::NONE {
        let state = PartitionState {
            leader: it.leader,
            leader_epoch: it.leader_epoch,
            isr: it.isr.clone(),
            controller_epoch: broker.controller_epoch(),
            is_recovering: false,
        };
        ops.push(Op::create(partition_state::path(&partition), state.encode(), CreateMode::Persistent));
    }
    ops
}

fn config_path(topic: &TopicName) -> String {
    ConfigEntity::Topic(topic.clone()).path()
}

fn encode_assignment(id: TopicId, assignment: &BTreeMap<i32, Vec<BrokerId>>) -> Vec<u8> {
    let partitions = assignment.iter().map(|(i, replicas)| (*i, PartitionAssignment::of(replicas.clone())));
    TopicAssignment { topic_id: (!id.is_zero()).then_some(id), partitions: partitions.collect() }.encode()
}

/// Makes the logs of this broker's new partitions of a topic; a disk that fails takes its partitions offline.
/// A partition that is led already stays the one at which produces queue and fetches wait.
fn make_logs(broker: &Arc<Broker>, image: &TopicImage) {
    let mine = image.partitions.iter().filter(|(_, it)| it.leader == broker.id());
    let new = mine.filter(|(index, _)| broker.partition(image.name.as_str(), **index).is_err());
    for (index, it) in new {
        let partition = TopicPartition { topic: image.name.clone(), partition: *index };
        broker.become_leader(&partition, image, it, true);
    }
}

pub(super) fn store_refusal(error: &StoreError, name: &TopicName) -> Refusal {
    if error.is_node_exists() {
        return Refusal::new(ErrorCode::TopicAlreadyExists, format!("Topic '{name}' already exists."));
    }
    if error.is_no_node() {
        return Refusal::code(ErrorCode::UnknownTopicOrPartition);
    }
    tracing::error!(topic = %name, %error, "the metadata store refused a change of a topic");
    Refusal::new(ErrorCode::UnknownServerError, format!("The metadata store failed: {error}"))
}
