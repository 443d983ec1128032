//! Deleting groups, and what they have committed for some topics (KIP-229, KIP-496).

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use serde_json::json;
use wire::Str;
use wire::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use wire::messages::{DeleteGroupsRequest, DeleteGroupsResponse, OffsetDeleteRequest, OffsetDeleteResponse};
use wire::types::TopicPartition;

use super::print::write;
use super::reset::scope;
use crate::cluster::leaders::by_topic;
use crate::cluster::{Cluster, ClusterError};
use crate::error::VerbError;
use crate::group::Coordinator;
use crate::output::{Format, write_json};

/// Deletes groups.
///
/// # Errors
/// If one cannot be deleted; the others are.
pub(super) async fn groups(
    mut cluster: Cluster,
    groups: &[String],
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let (mut deleted, mut failed) = (Vec::new(), Vec::new());
    for name in groups {
        let mut coordinator = Coordinator::new(cluster, name);
        match delete_group(&mut coordinator, name).await {
            Ok(()) => deleted.push(name.as_str()),
            Err(error) => failed.push((name.as_str(), error)),
        }
        cluster = coordinator.into_cluster();
    }
    print_groups(&deleted, &failed, format, out)?;
    out.flush()?;
    match failed.len() {
        0 => Ok(()),
        count => Err(VerbError::Failed(format!("{count} of {} groups were not deleted", groups.len()))),
    }
}

async fn delete_group(coordinator: &mut Coordinator, name: &str) -> Result<(), ClusterError> {
    let request = |_: i16| DeleteGroupsRequest { groups_names: vec![Str::from(name)] };
    let code =
        |response: &DeleteGroupsResponse| response.results.first().map_or(0, |result| result.error_code);
    let response = coordinator.call(request, Duration::ZERO, code).await?;
    match code(&response) {
        0 => Ok(()),
        code => Err(ClusterError::refused(format!("group {name}"), code, None)),
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

fn print_groups(
    deleted: &[&str],
    failed: &[(&str, ClusterError)],
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    if format == Format::Json {
        let good = deleted.iter().map(|name| json!({ "group": name, "deleted": true, "error": null }));
        let bad = failed
            .iter()
            .map(|(name, error)| json!({ "group": name, "deleted": false, "error": error.to_string() }));
        return Ok(write_json(out, &good.chain(bad).collect::<Vec<_>>())?);
    }
    if failed.is_empty() {
        writeln!(out, "Deletion of requested consumer groups ({}) was successful.", quoted(deleted))?;
        return Ok(());
    }
    writeln!(out, "\nError: Deletion of some consumer groups failed:")?;
    for (name, error) in failed {
        writeln!(out, "* Group '{name}' could not be deleted due to: {}", error.java_text())?;
    }
    if !deleted.is_empty() {
        writeln!(out, "\nThese consumer groups were deleted successfully: {}", quoted(deleted))?;
    }
    Ok(())
}

/// Deletes what a group has committed for topics.
///
/// # Errors
/// If the group or one of the partitions is refused.
pub(super) async fn offsets(
    mut cluster: Cluster,
    groups: &[String],
    topics: &[String],
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let Some(group) = groups.first() else { return Ok(()) };
    let partitions = scope(&mut cluster, topics).await?;
    let request = |_: i16| {
        let partition = |partition_index| OffsetDeleteRequestPartition { partition_index };
        let topic = |(name, indexes): (&str, Vec<i32>)| OffsetDeleteRequestTopic {
            name: Str::from(name),
            partitions: indexes.into_iter().map(partition).collect(),
        };
        OffsetDeleteRequest {
            group_id: Str::from(group.as_str()),
            topics: by_topic(&partitions).into_iter().map(topic).collect(),
        }
    };
    let mut coordinator = Coordinator::new(cluster, group);
    let code = |response: &OffsetDeleteResponse| response.error_code;
    let response = coordinator.call(request, Duration::ZERO, code).await?;
    if response.error_code != 0 {
        return Err(ClusterError::refused(format!("group {group}"), response.error_code, None).into());
    }
    let mut codes = BTreeMap::new();
    for topic in &response.topics {
        for partition in &topic.partitions {
            let at = TopicPartition::new(topic.name.as_str(), partition.partition_index);
            codes.insert(at, partition.error_code);
        }
    }
    print_offsets(group, &codes, format, out)?;
    out.flush()?;
    match codes.values().filter(|code| **code != 0).count() {
        0 => Ok(()),
        count => Err(VerbError::Failed(format!("offsets of {count} partitions were not deleted"))),
    }
}

fn print_offsets(
    group: &str,
    codes: &BTreeMap<TopicPartition, i16>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let error = |code: i16| (code != 0).then(|| crate::cluster::java_text(code, None));
    if format == Format::Json {
        let row = |(at, code): (&TopicPartition, &i16)| json!({ "topic": at.topic.as_str(), "partition": at.partition, "error": error(*code) });
        return Ok(write_json(out, &codes.iter().map(row).collect::<Vec<_>>())?);
    }
    if codes.values().all(|code| *code == 0) {
        let partitions: Vec<TopicPartition> = codes.keys().cloned().collect();
        let topics: Vec<&str> = by_topic(&partitions).into_keys().collect();
        writeln!(out, "Request succeed for deleting offsets with topic {} group {group}", topics.join(", "))?;
    } else {
        writeln!(out, "Encounter some partition level error, see the follow-up details:")?;
    }
    let row = |(at, code): (&TopicPartition, &i16)| {
        let status = error(*code).map_or_else(|| "Successful".to_owned(), |error| format!("Error: {error}"));
        [at.topic.to_string(), at.partition.to_string(), status]
    };
    let rows: Vec<_> = codes.iter().map(row).collect();
    Ok(write(out, [("TOPIC", 30), ("PARTITION", 15), ("STATUS", 15)], &rows)?)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use wire::error_code::ErrorCode;

    use super::*;

    fn text(print: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        print(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn deleted_groups_and_those_that_could_not_be_are_told() {
        let all = text(|out| print_groups(&["a", "b"], &[], Format::Kafka, out).unwrap());
        assert_eq!(all, "Deletion of requested consumer groups ('a', 'b') was successful.\n");
        let refused = ClusterError::refused("g", ErrorCode::NonEmptyGroup.code(), None);
        let some = [("c", refused)];
        expect![[r#"

            Error: Deletion of some consumer groups failed:
            * Group 'c' could not be deleted due to: org.apache.kafka.common.errors.GroupNotEmptyException: The group still has members.

            These consumer groups were deleted successfully: 'a'
        "#]]
        .assert_eq(&text(|out| print_groups(&["a"], &some, Format::Kafka, out).unwrap()));
    }

    #[test]
    fn each_partition_has_a_status() {
        let codes = BTreeMap::from([
            (TopicPartition::new("t", 0), 0),
            (TopicPartition::new("t", 1), ErrorCode::GroupSubscribedToTopic.code()),
        ]);
        expect![[r#"
            Encounter some partition level error, see the follow-up details:

            TOPIC                          PARTITION       STATUS
            t                              0               Successful
            t                              1               Error: org.apache.kafka.common.errors.GroupSubscribedToTopicException: The group is subscribed to the topic.
        "#]]
        .assert_eq(&text(|out| print_offsets("g", &codes, Format::Kafka, out).unwrap()));
    }
}
