//! `/admin/preferred_replica_election`: the request of an old tool to elect the preferred replicas of partitions.

use super::partition_list::PartitionList;
use super::{DecodeError, json};
use wire::types::TopicPartition;

/// The path.
pub const PATH: &str = "/admin/preferred_replica_election";

const KIND: &str = "preferred replica election";

/// The value of the znode.
pub fn encode(partitions: &[TopicPartition]) -> Vec<u8> {
    json::encode(&PartitionList::new(partitions))
}

/// The partitions in the value of the znode.
pub fn decode(data: Option<&[u8]>) -> Result<Vec<TopicPartition>, DecodeError> {
    json::decode(KIND, data).map(PartitionList::into_partitions)
}
