//! `topics --create`.

use std::io::{self, Write};

use wire::Str;
use wire::messages::CreateTopicsRequest;
use wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};

use super::Args;
use crate::client::{Cluster, pairs};
use crate::failure::Failure;
use crate::output::{Format, print_json};

const TOPIC_ALREADY_EXISTS: i16 = 36;
const TIMEOUT_MS: i32 = 30_000;

/// The topic that the options ask to create; none if they ask for something else.
pub(super) fn wanted(args: &Args) -> Result<Option<CreatableTopic>, Failure> {
    let (true, Some(name)) = (args.create, &args.topic) else { return Ok(None) };
    let assignments = args.replica_assignment.as_deref().map(assignment).transpose()?.unwrap_or_default();
    if !assignments.is_empty() && args.partitions.is_some() {
        return Err(Failure::new("--partitions and --replica-assignment cannot both be given with --create"));
    }
    let assignments = (0..).zip(assignments);
    let configs = pairs(&args.config)?.into_iter();
    Ok(Some(CreatableTopic {
        name: Str::from(name.as_str()),
        num_partitions: args.partitions.unwrap_or(-1),
        replication_factor: args.replication_factor.unwrap_or(-1),
        assignments: assignments
            .map(|(partition_index, broker_ids)| CreatableReplicaAssignment {
                partition_index,
                broker_ids,
                ..Default::default()
            })
            .collect(),
        configs: configs
            .map(|(key, value)| CreatableTopicConfig {
                name: Str::from(key),
                value: Some(Str::from(value)),
                ..Default::default()
            })
            .collect(),
        ..CreatableTopic::default()
    }))
}

/// Reads `1:2,2:3`: the brokers of each partition.
pub(super) fn assignment(text: &str) -> Result<Vec<Vec<i32>>, Failure> {
    let malformed = || {
        let hint =
            "Write the brokers of each partition separated by colons, and the partitions by commas: 1:2,2:3";
        Failure::new(format!("--replica-assignment {text} cannot be read")).hint(hint)
    };
    let brokers = |partition: &str| {
        let ids: Option<Vec<i32>> = partition.split(':').map(|id| id.trim().parse().ok()).collect();
        ids.ok_or_else(malformed)
    };
    let partitions: Vec<Vec<i32>> = text.split(',').map(brokers).collect::<Result<_, _>>()?;
    let size = partitions.first().map_or(0, Vec::len);
    if partitions.iter().any(|brokers| brokers.len() != size) {
        return Err(Failure::new("--replica-assignment: all partitions need the same number of brokers"));
    }
    Ok(partitions)
}

/// Creates the topic.
pub(super) async fn run(args: &Args, cluster: &mut Cluster, topic: CreatableTopic) -> Result<(), Failure> {
    let name = topic.name.clone();
    if name.contains(['.', '_']) {
        eprintln!(
            "WARNING: metric names do not tell '.' from '_' in names of topics; use only one of the two in a cluster."
        );
    }
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: TIMEOUT_MS, ..CreateTopicsRequest::default() };
    let response = cluster.controller(&request).await?;
    let results = response.topics.iter().filter(|result| result.error_code != 0);
    for result in results {
        if result.error_code == TOPIC_ALREADY_EXISTS && args.if_not_exists {
            return Ok(());
        }
        let what = format!("Topic {} was not created", result.name);
        return Err(Failure::refused(&what, result.error_code, result.error_message.as_ref()));
    }
    let mut out = io::stdout().lock();
    if args.output == Format::Json {
        let created = response.topics.iter().map(|it| {
            serde_json::json!({
                "topic": it.name.as_str(),
                "topicId": it.topic_id.to_string(),
                "partitions": it.num_partitions,
                "replicationFactor": it.replication_factor,
            })
        });
        return Ok(print_json(&mut out, &created.collect())?);
    }
    Ok(writeln!(out, "Created topic {name}.")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(options: &str) -> Result<Option<CreatableTopic>, String> {
        let words = std::iter::once("topics").chain(options.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        wanted(&line.args).map_err(|failure| failure.to_string())
    }

    #[test]
    fn kafkas_options_make_the_request() {
        let topic =
            parse("--create --topic t --partitions 3 --replication-factor 2 --config a=1 --config b=x=y");
        let topic = topic.unwrap().unwrap();
        assert_eq!((topic.name.as_str(), topic.num_partitions, topic.replication_factor), ("t", 3, 2));
        let configs: Vec<_> = topic.configs.iter().map(|c| (c.name.as_str(), c.value.as_deref())).collect();
        assert_eq!(configs, [("a", Some("1")), ("b", Some("x=y"))]);
        let bare = parse("--create --topic t").unwrap().unwrap();
        assert_eq!((bare.num_partitions, bare.replication_factor), (-1, -1));
    }

    #[test]
    fn brokers_can_be_given_by_hand() {
        let topic = parse("--create --topic t --replica-assignment 1:2,2:3").unwrap().unwrap();
        let given: Vec<_> =
            topic.assignments.into_iter().map(|a| (a.partition_index, a.broker_ids)).collect();
        assert_eq!(given, [(0, vec![1, 2]), (1, vec![2, 3])]);
        assert!(assignment("1:2,3").unwrap_err().to_string().contains("same number"));
        assert!(assignment("1:x").unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        for options in [
            "",
            "--create",
            "--create --list --topic t",
            "--list --config a=1",
            "--alter --topic t",
            "--create --topic t --partitions 0",
            "--create --topic t --partitions 2 --replica-assignment 1,2",
            "--create --topic t --replication-factor 1 --replica-assignment 1",
            "--list --under-replicated-partitions",
        ] {
            assert!(parse(options).is_err(), "{options}");
        }
        assert!(parse("--list").unwrap().is_none());
    }
}
