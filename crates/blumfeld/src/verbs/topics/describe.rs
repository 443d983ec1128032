//! Describing topics: their partitions, and the configs that are not defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use serde_json::{Map, Value, json};
use wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};

use super::{TopicsOptions, name, selected};
use crate::cluster::Cluster;
use crate::error::VerbError;
use crate::output::{Format, Table, join_ids, write_json};
use crate::verbs::configs::describe::{ConfigEntry, configs_of};
use crate::verbs::configs::resource::{Resource, ResourceKind};

/// A topic to be printed.
#[derive(Debug)]
struct Described {
    topic: MetadataResponseTopic,
    configs: Vec<ConfigEntry>,
}

impl Described {
    /// The configs that are not defaults, as Kafka counts them: a broker's file makes others.
    fn changed(&self) -> impl Iterator<Item = &ConfigEntry> {
        self.configs.iter().filter(|config| !config.is_default())
    }

    fn has_changed(&self) -> bool {
        self.changed().next().is_some()
    }

    fn min_isr(&self) -> usize {
        let config = self.configs.iter().find(|config| config.name == "min.insync.replicas");
        config.and_then(|config| config.value.as_deref()).and_then(|value| value.parse().ok()).unwrap_or(1)
    }

    fn replication_factor(&self) -> usize {
        self.topic.partitions.first().map_or(0, |partition| partition.replica_nodes.len())
    }
}

/// Which partitions are to be printed.
#[derive(Clone, Copy, Debug, Default)]
struct Filter {
    under_replicated: bool,
    unavailable: bool,
    under_min_isr: bool,
    at_min_isr: bool,
    overrides_only: bool,
}

impl Filter {
    fn of(options: &TopicsOptions) -> Self {
        Self {
            under_replicated: options.under_replicated_partitions,
            unavailable: options.unavailable_partitions,
            under_min_isr: options.under_min_isr_partitions,
            at_min_isr: options.at_min_isr_partitions,
            overrides_only: options.topics_with_overrides,
        }
    }

    fn concerns_partitions(self) -> bool {
        self.under_replicated || self.unavailable || self.under_min_isr || self.at_min_isr
    }

    fn shows_topic(self, topic: &Described) -> bool {
        !self.concerns_partitions() && (!self.overrides_only || topic.has_changed())
    }

    fn shows(self, topic: &Described, partition: &MetadataResponsePartition, live: &BTreeSet<i32>) -> bool {
        let isr = partition.isr_nodes.len();
        match () {
            () if self.overrides_only => false,
            () if !self.concerns_partitions() => true,
            () => {
                (self.under_replicated && isr < partition.replica_nodes.len())
                    || (self.unavailable && !live.contains(&partition.leader_id))
                    || (self.under_min_isr && isr < topic.min_isr())
                    || (self.at_min_isr && isr == topic.min_isr())
            }
        }
    }
}

/// Describes the selected topics.
pub(super) async fn describe(
    cluster: &mut Cluster,
    options: &TopicsOptions,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let topics = selected(cluster, options).await?;
    let live: BTreeSet<i32> = cluster.brokers().keys().copied().collect();
    let resources: Vec<Resource> = topics
        .iter()
        .map(|topic| Resource { kind: ResourceKind::Topic, name: name(topic).to_owned() })
        .collect();
    let mut configs: BTreeMap<String, Vec<ConfigEntry>> = BTreeMap::new();
    if !resources.is_empty() {
        for (resource, entries) in configs_of(cluster, &resources, false).await? {
            configs.insert(resource.name, entries);
        }
    }
    let described = topics.into_iter().map(|mut topic| {
        topic.partitions.sort_unstable_by_key(|partition| partition.partition_index);
        let configs = configs.remove(name(&topic)).unwrap_or_default();
        Described { topic, configs }
    });
    print(&described.collect::<Vec<_>>(), &live, Filter::of(options), options.format.get(), out)
}

fn print(
    topics: &[Described],
    live: &BTreeSet<i32>,
    filter: Filter,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    match format {
        Format::Kafka => print_lines(topics, live, filter, out),
        Format::Table => print_tables(topics, live, filter, out),
        Format::Json => {
            let shown = topics.iter().map(|topic| topic_json(topic, live, filter));
            let shown: Vec<Value> = shown.flatten().collect();
            Ok(write_json(out, &shown)?)
        }
    }
}

fn leader(partition: &MetadataResponsePartition) -> String {
    if partition.leader_id < 0 { "none".to_owned() } else { partition.leader_id.to_string() }
}

fn print_lines(
    topics: &[Described],
    live: &BTreeSet<i32>,
    filter: Filter,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    for described in topics {
        let topic = name(&described.topic);
        if filter.shows_topic(described) {
            let configs: Vec<String> = described.changed().map(ConfigEntry::pair).collect();
            writeln!(
                out,
                "Topic: {topic}\tTopicId: {}\tPartitionCount: {}\tReplicationFactor: {}\tConfigs: {}",
                described.topic.topic_id,
                described.topic.partitions.len(),
                described.replication_factor(),
                configs.join(",")
            )?;
        }
        for partition in described.topic.partitions.iter().filter(|p| filter.shows(described, p, live)) {
            writeln!(
                out,
                "\tTopic: {topic}\tPartition: {}\tLeader: {}\tReplicas: {}\tIsr: {}\tElr: N/A\tLastKnownElr: N/A",
                partition.partition_index,
                leader(partition),
                join_ids(&partition.replica_nodes),
                join_ids(&partition.isr_nodes)
            )?;
        }
    }
    Ok(())
}

fn print_tables(
    topics: &[Described],
    live: &BTreeSet<i32>,
    filter: Filter,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let mut table = Table::new(["TOPIC", "PARTITIONS", "REPLICAS", "ID", "CONFIGS"]);
    for described in topics.iter().filter(|topic| filter.shows_topic(topic)) {
        let configs: Vec<String> = described.changed().map(ConfigEntry::pair).collect();
        table.push([
            name(&described.topic).to_owned(),
            described.topic.partitions.len().to_string(),
            described.replication_factor().to_string(),
            described.topic.topic_id.to_string(),
            configs.join(" "),
        ]);
    }
    if !filter.concerns_partitions() {
        table.write(out)?;
    }
    if filter.overrides_only {
        return Ok(());
    }
    let mut table = Table::new(["TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN SYNC", "OFFLINE"]);
    for described in topics {
        for partition in described.topic.partitions.iter().filter(|p| filter.shows(described, p, live)) {
            table.push([
                name(&described.topic).to_owned(),
                partition.partition_index.to_string(),
                leader(partition),
                partition.leader_epoch.to_string(),
                join_ids(&partition.replica_nodes),
                join_ids(&partition.isr_nodes),
                join_ids(&partition.offline_replicas),
            ]);
        }
    }
    if !filter.concerns_partitions() {
        writeln!(out)?;
    }
    Ok(table.write(out)?)
}

fn topic_json(described: &Described, live: &BTreeSet<i32>, filter: Filter) -> Option<Value> {
    let partitions: Vec<Value> = described
        .topic
        .partitions
        .iter()
        .filter(|partition| filter.shows(described, partition, live))
        .map(|partition| {
            json!({
                "partition": partition.partition_index,
                "leader": (partition.leader_id >= 0).then_some(partition.leader_id),
                "leaderEpoch": partition.leader_epoch,
                "replicas": partition.replica_nodes,
                "isr": partition.isr_nodes,
                "offlineReplicas": partition.offline_replicas,
            })
        })
        .collect();
    if partitions.is_empty() && !filter.shows_topic(described) {
        return None;
    }
    let configs: Map<String, Value> =
        described.changed().map(|config| (config.name.clone(), json!(config.value))).collect();
    Some(json!({
        "topic": name(&described.topic),
        "topicId": described.topic.topic_id.to_string(),
        "isInternal": described.topic.is_internal,
        "partitionCount": described.topic.partitions.len(),
        "replicationFactor": described.replication_factor(),
        "configs": configs,
        "partitions": partitions,
    }))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use wire::types::TopicId;

    use super::*;

    fn partition(index: i32, leader: i32, isr: &[i32]) -> MetadataResponsePartition {
        MetadataResponsePartition {
            partition_index: index,
            leader_id: leader,
            leader_epoch: 4,
            replica_nodes: vec![1, 2],
            isr_nodes: isr.to_vec(),
            offline_replicas: if isr.len() < 2 { vec![2] } else { vec![] },
            ..Default::default()
        }
    }

    fn config(name: &str, value: &str, source: i8) -> ConfigEntry {
        ConfigEntry { name: name.into(), value: Some(value.into()), source, ..Default::default() }
    }

    fn topics() -> Vec<Described> {
        let topic = MetadataResponseTopic {
            name: Some("events".into()),
            topic_id: TopicId([2; 16]),
            partitions: vec![partition(0, 1, &[1, 2]), partition(1, -1, &[1])],
            ..Default::default()
        };
        let configs = vec![
            config("cleanup.policy", "compact", 1),
            config("segment.bytes", "1073741824", 4),
            config("min.insync.replicas", "2", 5),
        ];
        let plain = MetadataResponseTopic {
            name: Some("plain".into()),
            partitions: vec![partition(0, 1, &[1, 2])],
            ..Default::default()
        };
        vec![Described { topic, configs }, Described { topic: plain, configs: Vec::new() }]
    }

    fn check(filter: Filter, format: Format, expected: &Expect) {
        let mut out = Vec::new();
        print(&topics(), &BTreeSet::from([1]), filter, format, &mut out).unwrap();
        expected.assert_eq(&String::from_utf8(out).unwrap().replace('\t', "⇥"));
    }

    #[test]
    fn lines_are_those_that_scripts_expect() {
        check(
            Filter::default(),
            Format::Kafka,
            &expect![[r#"
                Topic: events⇥TopicId: AgICAgICAgICAgICAgICAg⇥PartitionCount: 2⇥ReplicationFactor: 2⇥Configs: cleanup.policy=compact,segment.bytes=1073741824
                ⇥Topic: events⇥Partition: 0⇥Leader: 1⇥Replicas: 1,2⇥Isr: 1,2⇥Elr: N/A⇥LastKnownElr: N/A
                ⇥Topic: events⇥Partition: 1⇥Leader: none⇥Replicas: 1,2⇥Isr: 1⇥Elr: N/A⇥LastKnownElr: N/A
                Topic: plain⇥TopicId: AAAAAAAAAAAAAAAAAAAAAA⇥PartitionCount: 1⇥ReplicationFactor: 2⇥Configs: 
                ⇥Topic: plain⇥Partition: 0⇥Leader: 1⇥Replicas: 1,2⇥Isr: 1,2⇥Elr: N/A⇥LastKnownElr: N/A
            "#]],
        );
    }

    #[test]
    fn people_get_tables() {
        check(
            Filter::default(),
            Format::Table,
            &expect![[r#"
                TOPIC   PARTITIONS  REPLICAS  ID                      CONFIGS
                events  2           2         AgICAgICAgICAgICAgICAg  cleanup.policy=compact segment.bytes=1073741824
                plain   1           2         AAAAAAAAAAAAAAAAAAAAAA

                TOPIC   PARTITION  LEADER  EPOCH  REPLICAS  IN SYNC  OFFLINE
                events  0          1       4      1,2       1,2
                events  1          none    4      1,2       1        2
                plain   0          1       4      1,2       1,2
            "#]],
        );
    }

    #[test]
    fn filters_leave_partitions_and_headers_out() {
        let second = expect![[r#"
            ⇥Topic: events⇥Partition: 1⇥Leader: none⇥Replicas: 1,2⇥Isr: 1⇥Elr: N/A⇥LastKnownElr: N/A
        "#]];
        check(Filter { under_replicated: true, ..Default::default() }, Format::Kafka, &second);
        check(Filter { unavailable: true, ..Default::default() }, Format::Kafka, &second);
        check(Filter { under_min_isr: true, ..Default::default() }, Format::Kafka, &second);
        check(
            Filter { at_min_isr: true, ..Default::default() },
            Format::Kafka,
            &expect![[r#"
                ⇥Topic: events⇥Partition: 0⇥Leader: 1⇥Replicas: 1,2⇥Isr: 1,2⇥Elr: N/A⇥LastKnownElr: N/A
            "#]],
        );
        check(
            Filter { overrides_only: true, ..Default::default() },
            Format::Kafka,
            &expect![[r#"
                Topic: events⇥TopicId: AgICAgICAgICAgICAgICAg⇥PartitionCount: 2⇥ReplicationFactor: 2⇥Configs: cleanup.policy=compact,segment.bytes=1073741824
            "#]],
        );
    }

    #[test]
    fn programs_get_json() {
        check(
            Filter { unavailable: true, ..Default::default() },
            Format::Json,
            &expect![[r#"
                [{"topic":"events","topicId":"AgICAgICAgICAgICAgICAg","isInternal":false,"partitionCount":2,"replicationFactor":2,"configs":{"cleanup.policy":"compact","segment.bytes":"1073741824"},"partitions":[{"partition":1,"leader":null,"leaderEpoch":4,"replicas":[1,2],"isr":[1],"offlineReplicas":[2]}]}]
            "#]],
        );
    }
}
