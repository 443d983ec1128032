//! What an operator asks of a cluster: topics with chosen replicas, topic configs, elections, deletions.
//! Each call returns the error code of its one topic or partition; 0 is success.

use anyhow::{Context, Result};
use kafka_protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, DeleteTopicsRequest, ElectLeadersRequest, IncrementalAlterConfigsRequest,
};
use kafka_protocol::protocol::StrBytes;

use crate::calls::topic_name;
use crate::raw::Connection;

const TIMEOUT_MS: i32 = 60_000;
/// The resource type of topics.
const TOPIC: i8 = 2;

/// How a leader is elected on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Election {
    /// The first replica, if it is in sync.
    Preferred,
    /// Any replica that lives, if none is in sync.
    Unclean,
}

/// Creates a topic whose partitions have these replicas.
///
/// # Errors
/// When no answer comes.
pub fn create_assigned(address: &str, topic: &str, replicas: &[&[i32]]) -> Result<i16> {
    let assignments = (0..).zip(replicas).map(|(index, replicas)| {
        CreatableReplicaAssignment::default()
            .with_partition_index(index)
            .with_broker_ids(replicas.iter().map(|id| BrokerId(*id)).collect())
    });
    let topic = CreatableTopic::default()
        .with_name(topic_name(topic))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_assignments(assignments.collect());
    let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(TIMEOUT_MS);
    let response = Connection::open(address)?.call(4, &request)?;
    Ok(response.topics.first().context("no topic in the answer")?.error_code)
}

/// Asks for the deletion of a topic.
///
/// # Errors
/// When no answer comes.
pub fn delete(address: &str, topic: &str) -> Result<i16> {
    let request =
        DeleteTopicsRequest::default().with_topic_names(vec![topic_name(topic)]).with_timeout_ms(TIMEOUT_MS);
    let response = Connection::open(address)?.call(3, &request)?;
    Ok(response.responses.first().context("no topic in the answer")?.error_code)
}

/// Sets a config of a topic.
///
/// # Errors
/// When no answer comes.
pub fn set_topic_config(address: &str, topic: &str, key: &str, value: &str) -> Result<i16> {
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    let config = AlterableConfig::default().with_name(text(key)).with_value(Some(text(value)));
    let resource = AlterConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(text(topic))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let response = Connection::open(address)?.call(1, &request)?;
    Ok(response.responses.first().context("no resource in the answer")?.error_code)
}

/// Asks for an election in one partition.
///
/// # Errors
/// When no answer comes.
pub fn elect_leader(address: &str, election: Election, topic: &str, partition: i32) -> Result<i16> {
    let partitions =
        TopicPartitions::default().with_topic(topic_name(topic)).with_partitions(vec![partition]);
    let request = ElectLeadersRequest::default()
        .with_election_type(if election == Election::Preferred { 0 } else { 1 })
        .with_topic_partitions(Some(vec![partitions]))
        .with_timeout_ms(TIMEOUT_MS);
    let response = Connection::open(address)?.call(2, &request)?;
    if response.error_code != 0 {
        return Ok(response.error_code);
    }
    let topic = response.replica_election_results.first().context("no topic in the answer")?;
    Ok(topic.partition_result.first().context("no partition in the answer")?.error_code)
}
