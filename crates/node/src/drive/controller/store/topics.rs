//! Topic znodes and what their configs say of unclean elections.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::controller::store::{StoreFailure, StoreReply};
use kernel::controller::values::{ReplicaAssignment, TopicAssignment};
use metadata::store::{Op, Request, Response, StoreError};
use metadata::znode::config::{self, ConfigEntity};
use metadata::znode::topic;
use wire::types::TopicName;

use super::{Done, failure, fenced, mismatch};
use crate::broker::Broker;
use crate::drive::pipeline::pipeline;
use crate::drive::topic_configs;

pub(super) fn read(broker: &Arc<Broker>, names: BTreeSet<TopicName>, done: Done) {
    let reads = names.iter().map(|name| Request::get(topic::path(name)).watched()).collect();
    pipeline(broker.store(), reads, move |answers| {
        let topics: Result<BTreeMap<_, _>, _> = names
            .into_iter()
            .zip(answers)
            .filter_map(|(name, answer)| {
                read_one(&name, answer).map(|it| it.map(|it| (name, it))).transpose()
            })
            .collect();
        done(topics.map(StoreReply::Topics));
    });
}

/// The assignment of a topic; none if it is gone or cannot be understood.
fn read_one(
    name: &TopicName,
    answer: Result<Response, StoreError>,
) -> Result<Option<TopicAssignment>, StoreFailure> {
    match answer {
        Ok(Response::Data { data, .. }) => match topic::TopicAssignment::decode(data.as_deref()) {
            Ok(read) => Ok(Some(from_znode(read))),
            Err(error) => {
                tracing::error!(topic = %name, %error, "the topic is left alone until its znode is mended");
                Ok(None)
            }
        },
        Ok(_) => Err(mismatch()),
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(failure(error)),
    }
}

fn from_znode(read: topic::TopicAssignment) -> TopicAssignment {
    let assignment = |it: topic::PartitionAssignment| ReplicaAssignment {
        replicas: it.replicas,
        adding: it.adding_replicas,
        removing: it.removing_replicas,
    };
    let partitions = read.partitions.into_iter().map(|(index, it)| (index, assignment(it)));
    TopicAssignment { topic_id: read.topic_id, partitions: partitions.collect() }
}

fn to_znode(it: &TopicAssignment) -> topic::TopicAssignment {
    let assignment = |it: &ReplicaAssignment| topic::PartitionAssignment {
        replicas: it.replicas.clone(),
        adding_replicas: it.adding.clone(),
        removing_replicas: it.removing.clone(),
    };
    let partitions = it.partitions.iter().map(|(index, it)| (*index, assignment(it)));
    topic::TopicAssignment { topic_id: it.topic_id, partitions: partitions.collect() }
}

pub(super) fn assign_ids(
    broker: &Arc<Broker>,
    mut topics: BTreeMap<TopicName, TopicAssignment>,
    epoch_version: i32,
    done: Done,
) {
    for it in topics.values_mut() {
        it.topic_id = Some(broker.draw_topic_id());
    }
    write(broker, topics, epoch_version, done);
}

/// Writes each topic; those that exist no more are left out of the reply.
pub(super) fn write(
    broker: &Arc<Broker>,
    topics: BTreeMap<TopicName, TopicAssignment>,
    epoch_version: i32,
    done: Done,
) {
    let write = |(name, it): (&TopicName, &TopicAssignment)| {
        vec![Op::set(topic::path(name), to_znode(it).encode(), None)]
    };
    let transactions = topics.iter().map(write).collect();
    fenced::write_all(broker.store(), transactions, epoch_version, move |outcomes| {
        done(outcomes.map(|outcomes| {
            let written =
                topics.into_iter().zip(outcomes).filter_map(|((name, it), outcome)| match outcome {
                    Ok(_) => Some((name, it)),
                    Err((_, error)) => {
                        tracing::error!(topic = %name, %error, "the znode of the topic cannot be written");
                        None
                    }
                });
            StoreReply::Topics(written.collect())
        }));
    });
}

pub(super) fn read_unclean_election(broker: &Arc<Broker>, names: BTreeSet<TopicName>, done: Done) {
    let path = |name: &TopicName| ConfigEntity::Topic(name.clone()).path();
    let reads = names.iter().map(|name| Request::get(path(name))).collect();
    pipeline(broker.store(), reads, move |answers| {
        let allowed: Result<BTreeMap<_, _>, _> = names
            .into_iter()
            .zip(answers)
            .map(|(name, answer)| unclean_election(answer).map(|it| (name, it)))
            .collect();
        done(allowed.map(StoreReply::UncleanElection));
    });
}

fn unclean_election(
    answer: Result<Response, StoreError>,
) -> Result<Result<Option<bool>, String>, StoreFailure> {
    match answer {
        Ok(Response::Data { data, .. }) => Ok(config::decode(data.as_deref())
            .map(|configs| topic_configs::allows_unclean_election(&configs))
            .map_err(|error| error.to_string())),
        Ok(_) => Err(mismatch()),
        // A topic without a config znode has no overrides.
        Err(error) if error.is_no_node() => Ok(Ok(None)),
        Err(error) => Err(failure(error)),
    }
}
