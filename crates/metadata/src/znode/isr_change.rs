//! `/isr_change_notification/isr_change_<sequence>`: tells the controller that a leader changed the ISR of partitions
//! by itself, as brokers with an `inter.broker.protocol.version` below 2.7 do.

use super::partition_list::PartitionList;
use super::{DecodeError, json};
use wire::types::TopicPartition;

/// The parent of all notifications.
pub const ROOT: &str = "/isr_change_notification";

/// The path of a notification up to its sequence number.
pub const PREFIX: &str = "/isr_change_notification/isr_change_";

const KIND: &str = "ISR change";

/// The value of the znode.
pub fn encode(partitions: &[TopicPartition]) -> Vec<u8> {
    json::encode(&PartitionList::new(partitions))
}

/// The partitions in the value of the znode.
pub fn decode(data: Option<&[u8]>) -> Result<Vec<TopicPartition>, DecodeError> {
    json::decode(KIND, data).map(PartitionList::into_partitions)
}
