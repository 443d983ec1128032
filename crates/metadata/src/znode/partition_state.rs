//! `/brokers/topics/<topic>/partitions/<partition>/state`: leader and in-sync replicas of a partition.
//!
//! The version of the znode is the partition epoch of the wire protocol. The recovery state (KIP-704) is only written
//! while a leader recovers from an unclean election.

use super::{DecodeError, json, topic};
use serde::{Deserialize, Serialize};
use wire::types::{BrokerId, ControllerEpoch, LeaderEpoch, TopicName, TopicPartition};

const KIND: &str = "partition state";
const RECOVERING: i32 = 1;

/// The parent of all partitions of a topic.
pub fn partitions_path(topic: &TopicName) -> String {
    format!("{}/partitions", topic::path(topic))
}

/// The parent of a partition's state.
pub fn partition_path(partition: &TopicPartition) -> String {
    format!("{}/{}", partitions_path(&partition.topic), partition.partition)
}

/// The path of a partition's state.
pub fn path(partition: &TopicPartition) -> String {
    format!("{}/state", partition_path(partition))
}

/// Who leads a partition and who is in sync.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionState {
    /// The leader; [`BrokerId::NONE`] if there is none.
    pub leader: BrokerId,
    /// The number of its leadership.
    pub leader_epoch: LeaderEpoch,
    /// The in-sync replicas.
    pub isr: Vec<BrokerId>,
    /// The epoch of the controller that wrote this.
    pub controller_epoch: ControllerEpoch,
    /// Whether the leader still recovers from an unclean election.
    pub is_recovering: bool,
}

#[derive(Serialize, Deserialize)]
struct Json {
    controller_epoch: i32,
    leader: i32,
    #[serde(default)]
    version: i32,
    #[serde(default, skip_serializing_if = "is_zero")]
    leader_recovery_state: i32,
    leader_epoch: i32,
    isr: Vec<i32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl PartitionState {
    /// The value of the znode, version 1.
    pub fn encode(&self) -> Vec<u8> {
        json::encode(&Json {
            controller_epoch: self.controller_epoch.0,
            leader: self.leader.0,
            version: 1,
            leader_recovery_state: if self.is_recovering { RECOVERING } else { 0 },
            leader_epoch: self.leader_epoch.0,
            isr: json::ids_to_ints(&self.isr),
        })
    }

    /// Reads the value, whatever version it names.
    pub fn decode(data: Option<&[u8]>) -> Result<Self, DecodeError> {
        let json: Json = json::decode(KIND, data)?;
        Ok(Self {
            leader: BrokerId(json.leader),
            leader_epoch: LeaderEpoch(json.leader_epoch),
            isr: json::ints_to_ids(json.isr),
            controller_epoch: ControllerEpoch(json.controller_epoch),
            is_recovering: json.leader_recovery_state == RECOVERING,
        })
    }
}
