//! `topics --alter` and `topics --delete`.

use std::io::{self, Write};

use wire::Str;
use wire::messages::create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::metadata_response::MetadataResponseTopic;
use wire::messages::{CreatePartitionsRequest, DeleteTopicsRequest};

use super::Args;
use super::create::assignment;
use crate::client::Cluster;
use crate::failure::Failure;
use crate::output::{Format, print_json};

const TIMEOUT_MS: i32 = 30_000;

/// Gives the topics more partitions.
pub(super) async fn add_partitions(
    args: &Args,
    cluster: &mut Cluster,
    topics: &[MetadataResponseTopic],
) -> Result<(), Failure> {
    let count = args.partitions.unwrap_or_default();
    let given = args.replica_assignment.as_deref().map(assignment).transpose()?;
    let wanted = topics.iter().map(|topic| CreatePartitionsTopic {
        name: topic.name.clone().unwrap_or_default(),
        count,
        assignments: given.as_ref().map(|given| new_assignments(given, topic.partitions.len())),
        ..CreatePartitionsTopic::default()
    });
    let request = CreatePartitionsRequest {
        topics: wanted.collect(),
        timeout_ms: TIMEOUT_MS,
        ..CreatePartitionsRequest::default()
    };
    let response = cluster.controller(&request).await?;
    if let Some(result) = response.results.iter().find(|result| result.error_code != 0) {
        let what = format!("Topic {} keeps its partitions", result.name);
        return Err(Failure::refused(&what, result.error_code, result.error_message.as_ref()));
    }
    report(args.output, topics, |name| format!("Topic {name} has {count} partitions."))
}

/// The assignment names all partitions; the request only those that are new.
fn new_assignments(given: &[Vec<i32>], existing: usize) -> Vec<CreatePartitionsAssignment> {
    let new = given.iter().skip(existing).cloned();
    new.map(|broker_ids| CreatePartitionsAssignment { broker_ids, ..Default::default() }).collect()
}

/// Deletes the topics.
pub(super) async fn delete(
    args: &Args,
    cluster: &mut Cluster,
    topics: &[MetadataResponseTopic],
) -> Result<(), Failure> {
    let names = topics.iter().filter_map(|topic| topic.name.clone());
    let named = |name: Str| DeleteTopicState { name: Some(name), ..DeleteTopicState::default() };
    // Old versions carry names, newer ones states; the one that the version does not carry must be empty.
    let newest = cluster.version_of::<DeleteTopicsRequest>()?;
    let mut request = DeleteTopicsRequest { timeout_ms: TIMEOUT_MS, ..DeleteTopicsRequest::default() };
    if newest >= 6 {
        request.topics = names.map(named).collect();
    } else {
        request.topic_names = names.collect();
    }
    let response = cluster.controller(&request).await?;
    if let Some(result) = response.responses.iter().find(|result| result.error_code != 0) {
        let what = format!("Topic {} was not deleted", result.name.as_deref().unwrap_or_default());
        return Err(Failure::refused(&what, result.error_code, result.error_message.as_ref()));
    }
    report(args.output, topics, |name| format!("Deleted topic {name}."))
}

fn report(
    format: Format,
    topics: &[MetadataResponseTopic],
    sentence: impl Fn(&str) -> String,
) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let names = topics.iter().filter_map(|topic| topic.name.as_deref());
    if format == Format::Json {
        let names: Vec<&str> = names.collect();
        return Ok(print_json(&mut out, &serde_json::json!(names))?);
    }
    for name in names {
        writeln!(out, "{}", sentence(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_partitions_are_assigned() {
        let given = [vec![1, 2], vec![2, 3], vec![3, 1]];
        let new: Vec<_> = new_assignments(&given, 2).into_iter().map(|a| a.broker_ids).collect();
        assert_eq!(new, [vec![3, 1]]);
    }
}
