//! The list of partitions that several kinds of znodes hold.

use serde::{Deserialize, Serialize};
use wire::types::TopicPartition;

#[derive(Serialize, Deserialize)]
pub(super) struct PartitionList {
    version: i32,
    partitions: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    topic: String,
    partition: i32,
}

impl PartitionList {
    pub(super) fn new(partitions: &[TopicPartition]) -> Self {
        let entry = |p: &TopicPartition| Entry { topic: p.topic.to_string(), partition: p.partition };
        Self { version: 1, partitions: partitions.iter().map(entry).collect() }
    }

    pub(super) fn into_partitions(self) -> Vec<TopicPartition> {
        let partition = |entry: Entry| TopicPartition::new(entry.topic.as_str(), entry.partition);
        self.partitions.into_iter().map(partition).collect()
    }
}
