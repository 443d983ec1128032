//! `/admin/reassign_partitions`: the request of an old tool to move partitions to other replicas.

use super::{DecodeError, json};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::types::{BrokerId, TopicPartition};

/// The path.
pub const PATH: &str = "/admin/reassign_partitions";

const KIND: &str = "partition reassignment";

#[derive(Serialize, Deserialize)]
struct Json {
    version: i32,
    partitions: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    topic: String,
    partition: i32,
    replicas: Vec<i32>,
}

/// The value of the znode for the target replicas of each partition.
pub fn encode(targets: &BTreeMap<TopicPartition, Vec<BrokerId>>) -> Vec<u8> {
    let entry = |(partition, replicas): (&TopicPartition, &Vec<BrokerId>)| Entry {
        topic: partition.topic.to_string(),
        partition: partition.partition,
        replicas: json::ids_to_ints(replicas),
    };
    json::encode(&Json { version: 1, partitions: targets.iter().map(entry).collect() })
}

/// The target replicas of each partition; of a partition listed twice the last.
pub fn decode(data: Option<&[u8]>) -> Result<BTreeMap<TopicPartition, Vec<BrokerId>>, DecodeError> {
    let json: Json = json::decode(KIND, data)?;
    let target = |entry: Entry| {
        (TopicPartition::new(entry.topic.as_str(), entry.partition), json::ints_to_ids(entry.replicas))
    };
    Ok(json.partitions.into_iter().map(target).collect())
}
