//! Creating topics, and adding partitions to them.

use std::io::Write;

use serde_json::json;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
use wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use wire::messages::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
};

use super::{TopicsOptions, first_code, name, selected};
use crate::cluster::settings::key_and_value;
use crate::cluster::{Cluster, ClusterError};
use crate::error::VerbError;
use crate::output::{Format, write_json};

/// Creates the topic.
pub(super) async fn create(
    cluster: &mut Cluster,
    options: &TopicsOptions,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let topic = new_topic(options)?;
    let topic_name = topic.name.clone();
    if topic_name.contains(['.', '_']) {
        eprintln!(
            "WARNING: metric names do not tell '.' from '_' in names of topics; topics that differ in nothing \
             else cannot live side by side"
        );
    }
    let timeout_ms = i32::try_from(cluster.settings().request_timeout.as_millis()).unwrap_or(i32::MAX);
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms, validate_only: false };
    let code = |response: &CreateTopicsResponse| first_code(response.topics.iter().map(|t| t.error_code));
    let response = cluster.call_controller(&request, code).await?;
    let Some(result) = response.topics.first() else { return Ok(()) };
    if result.error_code != 0 {
        let message = result.error_message.as_deref();
        let refused = ClusterError::refused(format!("topic {topic_name}"), result.error_code, message);
        if options.if_not_exists && refused.is(ErrorCode::TopicAlreadyExists) {
            if options.format.get() == Format::Json {
                write_json(out, &json!({ "topic": *topic_name, "created": false }))?;
            }
            return Ok(());
        }
        return Err(refused.into());
    }
    match options.format.get() {
        Format::Json => write_json(
            out,
            &json!({
                "topic": *topic_name,
                "created": true,
                "topicId": result.topic_id.to_string(),
                "partitions": result.num_partitions,
                "replicationFactor": result.replication_factor,
            }),
        )?,
        Format::Kafka | Format::Table => writeln!(out, "Created topic {topic_name}.")?,
    }
    Ok(())
}

fn new_topic(options: &TopicsOptions) -> Result<CreatableTopic, VerbError> {
    let mut configs = Vec::new();
    for pair in &options.config {
        let (name, value) = key_and_value(pair)?;
        configs.push(CreatableTopicConfig { name: name.into(), value: Some(value.trim().into()) });
    }
    let assignments = match &options.replica_assignment {
        Some(text) => parse_assignment(text)?,
        None => Vec::new(),
    };
    let assignment = |(partition, broker_ids)| CreatableReplicaAssignment {
        partition_index: i32::try_from(partition).unwrap_or(i32::MAX),
        broker_ids,
    };
    Ok(CreatableTopic {
        name: Str::from(options.topic.as_deref().unwrap_or_default()),
        num_partitions: options.partitions.unwrap_or(-1),
        replication_factor: options.replication_factor.unwrap_or(-1),
        assignments: assignments.into_iter().enumerate().map(assignment).collect(),
        configs,
    })
}

/// Adds partitions to the topics.
pub(super) async fn alter(
    cluster: &mut Cluster,
    options: &TopicsOptions,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let topics = selected(cluster, options).await?;
    if topics.is_empty() {
        return Ok(());
    }
    let count = options.partitions.unwrap_or_default();
    let mut wanted = Vec::new();
    for topic in &topics {
        wanted.push(CreatePartitionsTopic {
            name: Str::from(name(topic)),
            count,
            assignments: match &options.replica_assignment {
                Some(text) => Some(new_assignments(text, topic.partitions.len())?),
                None => None,
            },
        });
    }
    let timeout_ms = i32::try_from(cluster.settings().request_timeout.as_millis()).unwrap_or(i32::MAX);
    let request = CreatePartitionsRequest { topics: wanted, timeout_ms, validate_only: false };
    let code =
        |response: &CreatePartitionsResponse| first_code(response.results.iter().map(|r| r.error_code));
    let response = cluster.call_controller(&request, code).await?;
    for result in &response.results {
        if result.error_code != 0 {
            let message = result.error_message.as_deref();
            let what = format!("topic {}", result.name);
            return Err(ClusterError::refused(what, result.error_code, message).into());
        }
        match options.format.get() {
            Format::Json => write_json(out, &json!({ "topic": *result.name, "partitions": count }))?,
            Format::Table => writeln!(out, "Topic {} has {count} partitions now.", result.name)?,
            Format::Kafka => {}
        }
    }
    Ok(())
}

/// Of an assignment of all partitions, that of the new ones.
fn new_assignments(text: &str, existing: usize) -> Result<Vec<CreatePartitionsAssignment>, VerbError> {
    let all = parse_assignment(text)?;
    let new = all.into_iter().skip(existing);
    Ok(new.map(|broker_ids| CreatePartitionsAssignment { broker_ids }).collect())
}

/// Reads `1:2,2:3`: for each partition its brokers.
fn parse_assignment(text: &str) -> Result<Vec<Vec<i32>>, VerbError> {
    let wrong = || {
        VerbError::Usage(format!(
            "--replica-assignment {text}: brokers by partition are expected, such as 1:2,2:3"
        ))
    };
    let mut partitions: Vec<Vec<i32>> = Vec::new();
    for partition in text.split(',') {
        let ids: Result<Vec<i32>, _> = partition.split(':').map(|id| id.trim().parse::<i32>()).collect();
        let ids = ids.map_err(|_| wrong())?;
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();
        let even = partitions.first().is_none_or(|first| first.len() == ids.len());
        if unique.len() != ids.len() || !even {
            return Err(wrong());
        }
        partitions.push(ids);
    }
    Ok(partitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_names_brokers_by_partition() {
        assert_eq!(parse_assignment("1:2, 2:3").unwrap(), [vec![1, 2], vec![2, 3]]);
        for wrong in ["", "1:", "a", "1:1", "1:2,3"] {
            assert!(parse_assignment(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_altered_topic_keeps_the_assignment_it_has() {
        let new = new_assignments("1,2,3", 2).unwrap();
        assert_eq!(new, [CreatePartitionsAssignment { broker_ids: vec![3] }]);
    }
}
