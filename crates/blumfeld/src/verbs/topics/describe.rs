//! `topics --describe`: topics with the configs they have of their own, and the state of their partitions.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use wire::messages::DescribeConfigsRequest;
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};

use super::Args;
use crate::client::Cluster;
use crate::failure::Failure;
use crate::output::{Format, Table, join, print_json};

const TOPIC: i8 = 2;
const DEFAULT_CONFIG: i8 = 5;
/// A partition without a leader.
const NO_LEADER: i32 = -1;

/// A topic as it is shown.
struct Described {
    topic: MetadataResponseTopic,
    configs: BTreeMap<String, String>,
    min_isr: usize,
}

/// Prints the topics that pass the filters.
pub(super) async fn run(
    args: &Args,
    cluster: &mut Cluster,
    topics: &[MetadataResponseTopic],
) -> Result<(), Failure> {
    let mut described = describe(cluster, topics).await?;
    let is_filtered = filters_partitions(args);
    for it in &mut described {
        let min_isr = it.min_isr;
        it.topic.partitions.retain(|partition| passes(args, partition, min_isr));
        it.topic.partitions.sort_by_key(|partition| partition.partition_index);
    }
    described.retain(|it| !(is_filtered && it.topic.partitions.is_empty()));
    described.retain(|it| !(args.topics_with_overrides && it.configs.is_empty()));
    let mut out = io::stdout().lock();
    match args.output {
        Format::Json => print_json(&mut out, &described.iter().map(to_json).collect()),
        Format::Table => print(&mut out, &described, !is_filtered, !args.topics_with_overrides),
    }?;
    Ok(())
}

async fn describe(
    cluster: &mut Cluster,
    topics: &[MetadataResponseTopic],
) -> Result<Vec<Described>, Failure> {
    let resources = topics.iter().map(|topic| DescribeConfigsResource {
        resource_type: TOPIC,
        resource_name: topic.name.clone().unwrap_or_default(),
        configuration_keys: None,
        ..DescribeConfigsResource::default()
    });
    let request =
        DescribeConfigsRequest { resources: resources.collect(), ..DescribeConfigsRequest::default() };
    let results = if topics.is_empty() { Vec::new() } else { cluster.any(&request).await?.results };
    let mut described = Vec::with_capacity(topics.len());
    for (topic, result) in topics.iter().zip(results) {
        if result.error_code != 0 {
            let what = format!("Topic {} cannot be described", result.resource_name);
            return Err(Failure::refused(&what, result.error_code, result.error_message.as_ref()));
        }
        let mut min_isr = 1;
        let mut configs = BTreeMap::new();
        for entry in result.configs {
            let value = entry.value.as_deref().unwrap_or_default().to_owned();
            if entry.name.as_str() == "min.insync.replicas" {
                min_isr = value.parse().unwrap_or(min_isr);
            }
            if entry.config_source != DEFAULT_CONFIG {
                configs.insert(entry.name.to_string(), value);
            }
        }
        described.push(Described { topic: topic.clone(), configs, min_isr });
    }
    Ok(described)
}

fn filters_partitions(args: &Args) -> bool {
    args.under_replicated_partitions
        || args.unavailable_partitions
        || args.under_min_isr_partitions
        || args.at_min_isr_partitions
}

fn passes(args: &Args, partition: &MetadataResponsePartition, min_isr: usize) -> bool {
    let (replicas, isr) = (partition.replica_nodes.len(), partition.isr_nodes.len());
    let is_available = partition.leader_id != NO_LEADER;
    !filters_partitions(args)
        || args.under_replicated_partitions && isr < replicas
        || args.unavailable_partitions && !is_available
        || args.under_min_isr_partitions && isr < min_isr
        || args.at_min_isr_partitions && isr == min_isr
}

fn to_json(it: &Described) -> Value {
    let partition = |partition: &MetadataResponsePartition| {
        json!({
            "partition": partition.partition_index,
            "leader": (partition.leader_id != NO_LEADER).then_some(partition.leader_id),
            "leaderEpoch": partition.leader_epoch,
            "replicas": partition.replica_nodes,
            "isr": partition.isr_nodes,
            "offlineReplicas": partition.offline_replicas,
        })
    };
    json!({
        "topic": it.topic.name.as_deref(),
        "topicId": it.topic.topic_id.to_string(),
        "internal": it.topic.is_internal,
        "configs": it.configs,
        "partitions": it.topic.partitions.iter().map(partition).collect::<Vec<_>>(),
    })
}

fn print(
    out: &mut impl Write,
    described: &[Described],
    with_topics: bool,
    with_partitions: bool,
) -> io::Result<()> {
    let mut topics = Table::new(&["TOPIC", "ID", "PARTITIONS", "REPLICAS", "CONFIGS"]);
    let mut partitions = Table::new(&["TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR", "OFFLINE"]);
    for it in described {
        let name = it.topic.name.as_deref().unwrap_or_default();
        let configs: Vec<_> = it.configs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let replicas = it.topic.partitions.first().map_or(0, |partition| partition.replica_nodes.len());
        topics.row([
            name.to_owned(),
            it.topic.topic_id.to_string(),
            it.topic.partitions.len().to_string(),
            replicas.to_string(),
            configs.join(","),
        ]);
        for partition in &it.topic.partitions {
            let leader = partition.leader_id;
            partitions.row([
                name.to_owned(),
                partition.partition_index.to_string(),
                if leader == NO_LEADER { "none".to_owned() } else { leader.to_string() },
                join(&partition.replica_nodes),
                join(&partition.isr_nodes),
                join(&partition.offline_replicas),
            ]);
        }
    }
    if with_topics {
        topics.print(out)?;
    }
    if with_topics && with_partitions {
        writeln!(out)?;
    }
    if with_partitions { partitions.print(out) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use wire::Str;

    fn described() -> Described {
        let partition = |partition_index, leader_id, isr: &[i32]| MetadataResponsePartition {
            partition_index,
            leader_id,
            replica_nodes: vec![1, 2],
            isr_nodes: isr.to_vec(),
            ..MetadataResponsePartition::default()
        };
        let topic = MetadataResponseTopic {
            name: Some(Str::from("orders")),
            partitions: vec![partition(0, 1, &[1, 2]), partition(1, NO_LEADER, &[2])],
            ..MetadataResponseTopic::default()
        };
        let configs = [("cleanup.policy".to_owned(), "compact".to_owned())];
        Described { topic, configs: configs.into_iter().collect(), min_isr: 2 }
    }

    #[test]
    fn topics_and_partitions_are_two_tables() {
        let mut out = Vec::new();
        print(&mut out, &[described()], true, true).unwrap();
        expect![[r#"
            TOPIC   ID                      PARTITIONS  REPLICAS  CONFIGS
            orders  AAAAAAAAAAAAAAAAAAAAAA  2           2         cleanup.policy=compact

            TOPIC   PARTITION  LEADER  REPLICAS  ISR  OFFLINE
            orders  0          1       1,2       1,2  -
            orders  1          none    1,2       2    -
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn programs_get_json() {
        expect![[r#"
            {
              "topic": "orders",
              "topicId": "AAAAAAAAAAAAAAAAAAAAAA",
              "internal": false,
              "configs": {
                "cleanup.policy": "compact"
              },
              "partitions": [
                {
                  "partition": 0,
                  "leader": 1,
                  "leaderEpoch": -1,
                  "replicas": [
                    1,
                    2
                  ],
                  "isr": [
                    1,
                    2
                  ],
                  "offlineReplicas": []
                },
                {
                  "partition": 1,
                  "leader": null,
                  "leaderEpoch": -1,
                  "replicas": [
                    1,
                    2
                  ],
                  "isr": [
                    2
                  ],
                  "offlineReplicas": []
                }
              ]
            }"#]]
        .assert_eq(&format!("{:#}", to_json(&described())));
    }

    #[test]
    fn filters_choose_partitions() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let chosen = |filter: &str| {
            let line =
                Line::try_parse_from(["topics", "--describe"].into_iter().chain(filter.split_whitespace()));
            let args = line.unwrap().args;
            let it = described();
            let chosen = it.topic.partitions.iter().filter(|partition| passes(&args, partition, it.min_isr));
            chosen.map(|partition| partition.partition_index).collect::<Vec<_>>()
        };
        assert_eq!(chosen(""), [0, 1]);
        assert_eq!(chosen("--under-replicated-partitions"), [1]);
        assert_eq!(chosen("--unavailable-partitions"), [1]);
        assert_eq!(chosen("--under-min-isr-partitions"), [1]);
        assert_eq!(chosen("--at-min-isr-partitions"), [0]);
    }
}
