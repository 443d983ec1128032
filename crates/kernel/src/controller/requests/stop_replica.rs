//! StopReplica on the wire, version by version (KIP-570).
//!
//! Up to version 2 one flag says for all partitions whether their logs are deleted, and no leader epoch protects a
//! replica from a late request; from 3 on each partition has both.

use wire::messages::StopReplicaRequest as Message;
use wire::messages::StopReplicaResponse as Reply;
use wire::messages::stop_replica_request::{
    StopReplicaPartitionState, StopReplicaPartitionV0, StopReplicaTopicState, StopReplicaTopicV1,
};
use wire::types::{TopicName, TopicPartition};

use super::{by_topic, error};
use crate::controller::values::{ControlResponse, StopReplicaRequest};

/// The first version that groups partitions by topic.
const FIRST_GROUPED: i16 = 1;
/// The first version with a leader epoch and a delete flag for each partition.
const FIRST_WITH_STATES: i16 = 3;

/// The message in `version`; below 3 all partitions must want the same.
pub(super) fn message(request: &StopReplicaRequest, version: i16) -> Message {
    let mut message = Message {
        controller_id: request.sender.controller_id.0,
        controller_epoch: request.sender.controller_epoch.0,
        broker_epoch: request.sender.broker_epoch.0,
        ..Message::default()
    };
    let partitions = &request.partitions;
    if version >= FIRST_WITH_STATES {
        let states = partitions.iter().map(|(tp, stop)| {
            let state = StopReplicaPartitionState {
                partition_index: tp.partition,
                leader_epoch: stop.leader_epoch.0,
                delete_partition: stop.delete,
            };
            (tp.topic.clone(), state)
        });
        let open = |topic: &TopicName| StopReplicaTopicState {
            topic_name: topic.into(),
            partition_states: Vec::new(),
        };
        message.topic_states = by_topic(states, open, |topic, state| topic.partition_states.push(state));
        return message;
    }
    message.delete_partitions = partitions.values().any(|stop| stop.delete);
    if version >= FIRST_GROUPED {
        let indexes = partitions.keys().map(|tp| (tp.topic.clone(), tp.partition));
        let open =
            |topic: &TopicName| StopReplicaTopicV1 { name: topic.into(), partition_indexes: Vec::new() };
        message.topics = by_topic(indexes, open, |topic, index| topic.partition_indexes.push(index));
    } else {
        let ungrouped = |tp: &TopicPartition| StopReplicaPartitionV0 {
            topic_name: (&tp.topic).into(),
            partition_index: tp.partition,
        };
        message.ungrouped_partitions = partitions.keys().map(ungrouped).collect();
    }
    message
}

/// First the replicas that are only stopped, then those whose logs go; neither part is empty.
pub(super) fn split(request: StopReplicaRequest) -> Vec<StopReplicaRequest> {
    let sender = request.sender;
    let (deleted, kept) = request.partitions.into_iter().partition(|(_, stop)| stop.delete);
    [kept, deleted]
        .into_iter()
        .map(|partitions| StopReplicaRequest { sender, partitions })
        .filter(|part| !part.partitions.is_empty())
        .collect()
}

/// The answer to `request`, for the partitions whose logs were to go.
pub(super) fn response(reply: &Reply, request: &StopReplicaRequest) -> ControlResponse {
    let deleted = reply
        .partition_errors
        .iter()
        .map(|partition| (TopicPartition::new(&*partition.topic_name, partition.partition_index), partition))
        .filter(|(tp, _)| request.partitions.get(tp).is_some_and(|stop| stop.delete))
        .map(|(tp, partition)| (tp, error(partition.error_code)))
        .collect();
    ControlResponse::StopReplica { error: error(reply.error_code), deleted }
}
