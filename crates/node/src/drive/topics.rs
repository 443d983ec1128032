//! Creation and deletion of topics, and more partitions for one: what is wanted is written into the store, the
//! controller sees it there and does it, and whoever asked waits until this broker's picture of the cluster shows it.

mod names;

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::assignment::{self, AssignmentError, Numbers};
use kernel::metadata_image::{MetadataImage, TopicImage};
use kernel::topic_name;
use metadata::store::{CreateMode, Op, OpError, Request, Response, Store, StoreError, Value};
use metadata::znode::config::ConfigEntity;
use metadata::znode::topic::{self, PartitionAssignment, TopicAssignment};
use metadata::znode::{config, delete_topics};
use wire::error_code::ErrorCode;
use wire::types::{BrokerId, TopicId, TopicName};

use super::image_waits;
use super::pipeline::one;
use crate::broker::Broker;
use crate::refusal::Refusal;
pub(crate) use names::NewNames;

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
        return Err(collides(name, &other.name));
    }
    Ok(())
}

fn collides(name: &str, other: &TopicName) -> Refusal {
    let text = format!("Topic '{name}' collides with existing topics: {other}");
    Refusal::new(ErrorCode::InvalidTopicException, text)
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

/// A topic that is written into the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Created {
    /// Its id.
    pub(crate) id: TopicId,
    /// Whether clients could use it before the time was over.
    pub(crate) in_time: bool,
}

/// Creates a topic and waits up to `timeout_ms` until all its partitions have leaders.
pub(crate) fn create(
    broker: &Arc<Broker>,
    new: NewTopic,
    timeout_ms: i32,
    done: impl FnOnce(Result<Created, Refusal>) + Send + 'static,
) {
    if let Err(refusal) = broker.new_names().enter(&broker.image(), &new.name, broker.now().mono_ms) {
        return done(Err(refusal));
    }
    let id = topic_id(broker);
    let data = encode_assignment(id, &new.assignment);
    let (name, count) = (new.name.clone(), new.assignment.len());
    let then = broker.clone();
    write_new(broker, new, data, move |outcome| match outcome {
        Ok(()) => {
            let (broker, entered) = (then.clone(), name.clone());
            wait_for_leaders(&then, name, count, timeout_ms, move |in_time| {
                if in_time {
                    broker.new_names().leave(&entered);
                }
                done(Ok(Created { id: id.unwrap_or(TopicId::ZERO), in_time }));
            });
        }
        Err(error) => {
            then.new_names().leave(&name);
            done(Err(store_refusal(&error, &name)));
        }
    });
}

/// An id for a new topic; none in a cluster whose brokers know no ids yet.
fn topic_id(broker: &Broker) -> Option<TopicId> {
    broker.config().inter_broker_protocol_version.topic_ids_supported().then(|| broker.draw_topic_id())
}

/// Writes the configs and the topic in one transaction. Configs may be left from a topic of that name whose deletion or
/// creation was cut short elsewhere: they are replaced.
///
/// When a connection was lost the transaction is handed in again, so the topic that is there may be this one.
fn write_new(
    broker: &Arc<Broker>,
    new: NewTopic,
    data: Vec<u8>,
    done: impl FnOnce(Result<(), StoreError>) + Send + 'static,
) {
    let create = Op::create(topic::path(&new.name), data.clone(), CreateMode::Persistent);
    let (path, configs) = (config_path(&new.name), config::encode(&new.configs));
    let first = vec![Op::create(path.clone(), configs.clone(), CreateMode::Persistent), create.clone()];
    let store = broker.store().clone();
    one(broker.store(), Request::Multi(first), move |outcome| match outcome {
        Err(StoreError::Multi { index: 0, error: OpError::NodeExists }) => {
            let second = Request::Multi(vec![Op::set(path, configs, None), create]);
            let then = store.clone();
            one(&store, second, move |outcome| match outcome {
                Err(error) if error.is_node_exists() => read_back(&then, &new.name, data, error, done),
                outcome => done(outcome.map(drop)),
            });
        }
        outcome => done(outcome.map(drop)),
    });
}

/// Whether the topic that is there is the one that was to be written: only an id tells that for sure.
fn read_back(
    store: &Arc<dyn Store>,
    name: &TopicName,
    written: Vec<u8>,
    exists: StoreError,
    done: impl FnOnce(Result<(), StoreError>) + Send + 'static,
) {
    one(store, Request::get(topic::path(name)), move |answer| match answer {
        Ok(Response::Data { data: Some(data), .. }) if data == written && has_id(&data) => done(Ok(())),
        _ => done(Err(exists)),
    });
}

fn has_id(data: &[u8]) -> bool {
    TopicAssignment::decode(Some(data)).is_ok_and(|topic| topic.topic_id.is_some())
}

fn wait_for_leaders(
    broker: &Arc<Broker>,
    name: TopicName,
    count: usize,
    timeout_ms: i32,
    done: impl FnOnce(bool) + Send + 'static,
) {
    let has_leaders = move |image: &MetadataImage| {
        image.topic(name.as_str()).is_some_and(|topic| {
            let led = topic.partitions.values().filter(|it| it.leader != BrokerId::NONE);
            led.count() >= count
        })
    };
    image_waits::wait(broker, i64::from(timeout_ms), has_leaders, done);
}

/// How often the topic's znode is read again because it changed before it could be written.
const MAX_TRIES: u32 = 10;

/// Adds partitions to a topic and waits up to `timeout_ms` until all have leaders.
pub(crate) fn add_partitions(
    broker: &Arc<Broker>,
    name: &TopicName,
    added: BTreeMap<i32, Vec<BrokerId>>,
    timeout_ms: i32,
    done: impl FnOnce(Result<(), Refusal>) + Send + 'static,
) {
    let then = broker.clone();
    let topic = name.clone();
    extend(broker, name.clone(), added, MAX_TRIES, move |outcome| match outcome {
        Ok(count) => wait_for_leaders(&then, topic, count, timeout_ms, move |in_time| {
            done(if in_time { Ok(()) } else { Err(Refusal::timed_out()) });
        }),
        Err(refusal) => done(Err(refusal)),
    });
}

/// Reads the topic's znode, adds the partitions, and writes it unless it has changed meanwhile; tells how many
/// partitions there are now. Everything else in the znode stays: the id (KAFKA-14190), a reassignment under way, and
/// partitions that somebody else has added since the request was checked.
fn extend(
    broker: &Arc<Broker>,
    name: TopicName,
    added: BTreeMap<i32, Vec<BrokerId>>,
    tries: u32,
    done: impl FnOnce(Result<usize, Refusal>) + Send + 'static,
) {
    let then = broker.clone();
    one(broker.store(), Request::get(topic::path(&name)), move |answer| {
        let (data, version) = match answer {
            Ok(Response::Data { data, stat }) => (data, stat.version),
            Ok(_) => return done(Err(Refusal::code(ErrorCode::UnknownServerError))),
            Err(error) => return done(Err(store_refusal(&error, &name))),
        };
        let whole = match TopicAssignment::decode(data.as_deref()) {
            Ok(whole) => whole,
            Err(error) => {
                tracing::error!(topic = %name, %error, "partitions cannot be added to a topic that cannot be read");
                return done(Err(Refusal::code(ErrorCode::UnknownServerError)));
            }
        };
        let whole = match grown(whole, &added) {
            Growth::Wanted(whole) => whole,
            Growth::Done(count) => return done(Ok(count)),
            Growth::Refused(refusal) => return done(Err(refusal)),
        };
        let count = whole.partitions.len();
        let set = Request::set(topic::path(&name), whole.encode(), Some(version));
        let store = then.store().clone();
        one(&store, set, move |outcome| match outcome {
            Ok(_) => done(Ok(count)),
            // Somebody else wrote, or this did, and its answer was lost with the connection.
            Err(StoreError::Op(OpError::BadVersion)) if tries > 1 => {
                extend(&then, name, added, tries - 1, done);
            }
            Err(error) => done(Err(store_refusal(&error, &name))),
        });
    });
}

/// What is to be done about a topic that is to grow.
enum Growth {
    /// To be written.
    Wanted(TopicAssignment),
    /// All is there, as it was wanted: so many partitions.
    Done(usize),
    /// Others were added meanwhile.
    Refused(Refusal),
}

fn grown(mut whole: TopicAssignment, added: &BTreeMap<i32, Vec<BrokerId>>) -> Growth {
    let count = whole.partitions.len();
    let is_there = |(index, replicas): (&i32, &Vec<BrokerId>)| {
        whole.partitions.get(index).is_some_and(|it| it.replicas == *replicas)
    };
    if added.iter().all(is_there) {
        return Growth::Done(count);
    }
    if added.keys().any(|index| whole.partitions.contains_key(index)) {
        let text = format!("Topic has {count} partitions by now: others were added at the same time.");
        return Growth::Refused(Refusal::new(ErrorCode::InvalidPartitions, text));
    }
    let new = added.iter().map(|(index, replicas)| (*index, PartitionAssignment::of(replicas.clone())));
    whole.partitions.extend(new);
    Growth::Wanted(whole)
}

/// Marks a topic for deletion and waits up to `timeout_ms` until no client of this broker sees it any more, and until its
/// name can be used again, unless that takes a broker that is gone.
pub(crate) fn delete(
    broker: &Arc<Broker>,
    name: &TopicName,
    timeout_ms: i32,
    done: impl FnOnce(Result<(), Refusal>) + Send + 'static,
) {
    broker.new_names().leave(name);
    let then = broker.clone();
    let name = name.clone();
    let mark = Op::create(delete_topics::path(&name), Value::NULL, CreateMode::Persistent);
    one(broker.store(), Request::Write(mark), move |outcome| match outcome {
        // A mark that is there already belongs to a deletion that is under way: it is waited for.
        Ok(_) | Err(StoreError::Op(OpError::NodeExists)) => {
            let of = Arc::downgrade(&then);
            let is_gone = move |image: &MetadataImage| {
                let is_deleting = of.upgrade().is_some_and(|broker| broker.controller().is_deleting(&name));
                image.topic(name.as_str()).is_none() && !is_deleting
            };
            image_waits::wait(&then, i64::from(timeout_ms), is_gone, move |in_time| {
                done(if in_time { Ok(()) } else { Err(Refusal::timed_out()) });
            });
        }
        Err(error) => done(Err(store_refusal(&error, &name))),
    });
}

fn config_path(topic: &TopicName) -> String {
    ConfigEntity::Topic(topic.clone()).path()
}

fn encode_assignment(id: Option<TopicId>, assignment: &BTreeMap<i32, Vec<BrokerId>>) -> Vec<u8> {
    let partitions = assignment.iter().map(|(i, replicas)| (*i, PartitionAssignment::of(replicas.clone())));
    TopicAssignment { topic_id: id, partitions: partitions.collect() }.encode()
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
