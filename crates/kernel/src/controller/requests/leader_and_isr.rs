//! LeaderAndIsr on the wire: whom each partition of a broker follows, version by version.
//!
//! Partitions stand in one list up to version 1 and by topic from 2 on. An answer names topics up to version 4, and
//! gives their ids from 5 on (KIP-516); the ids are those of the request.

use std::collections::BTreeMap;

use wire::messages::LeaderAndIsrRequest as Message;
use wire::messages::LeaderAndIsrResponse as Reply;
use wire::messages::leader_and_isr_request::{
    LeaderAndIsrLiveLeader, LeaderAndIsrPartitionState, LeaderAndIsrTopicState,
};
use wire::types::{TopicId, TopicName, TopicPartition};

use super::{by_topic, error, ids};
use crate::controller::values::{ControlResponse, LeaderAndIsrPartition, LeaderAndIsrRequest};

/// The first version that groups partitions by topic.
const FIRST_GROUPED: i16 = 2;
/// The first version that says how a reassignment stands.
const FIRST_WITH_REASSIGNMENT: i16 = 3;
/// The first version that says whether a leader recovers from an unclean election.
const FIRST_WITH_RECOVERY_STATE: i16 = 6;

/// The message in `version`.
pub(super) fn message(request: &LeaderAndIsrRequest, version: i16) -> Message {
    let mut message = Message {
        controller_id: request.sender.controller_id.0,
        controller_epoch: request.sender.controller_epoch.0,
        broker_epoch: request.sender.broker_epoch.0,
        live_leaders: request
            .live_leaders
            .iter()
            .map(|leader| LeaderAndIsrLiveLeader {
                broker_id: leader.id.0,
                host_name: leader.host.as_str().into(),
                port: leader.port,
            })
            .collect(),
        ..Message::default()
    };
    let states =
        request.partitions.iter().map(|(tp, state)| (tp.topic.clone(), partition(tp, state, version)));
    if version < FIRST_GROUPED {
        message.ungrouped_partition_states = states.map(|(_, state)| state).collect();
    } else {
        let open = |topic: &TopicName| LeaderAndIsrTopicState {
            topic_name: topic.into(),
            topic_id: request.topic_ids.get(topic).copied().unwrap_or(TopicId::ZERO),
            partition_states: Vec::new(),
        };
        message.topic_states = by_topic(states, open, |topic, state| topic.partition_states.push(state));
    }
    message
}

fn partition(
    tp: &TopicPartition,
    partition: &LeaderAndIsrPartition,
    version: i16,
) -> LeaderAndIsrPartitionState {
    let (state, assignment) = (&partition.state, &partition.assignment);
    let mut on_wire = LeaderAndIsrPartitionState {
        partition_index: tp.partition,
        controller_epoch: state.controller_epoch.0,
        leader: state.leader.0,
        leader_epoch: state.leader_epoch.0,
        isr: ids(&state.isr),
        partition_epoch: state.partition_epoch,
        replicas: ids(&assignment.replicas),
        is_new: partition.is_new,
        ..LeaderAndIsrPartitionState::default()
    };
    if version < FIRST_GROUPED {
        on_wire.topic_name = (&tp.topic).into();
    }
    if version >= FIRST_WITH_REASSIGNMENT {
        on_wire.adding_replicas = ids(&assignment.adding);
        on_wire.removing_replicas = ids(&assignment.removing);
    }
    if version >= FIRST_WITH_RECOVERY_STATE {
        on_wire.leader_recovery_state = state.recovery_state.code();
    }
    on_wire
}

/// The answer to `request`. Which of the two forms it has is seen from its content: the other one is empty.
pub(super) fn response(reply: &Reply, request: &LeaderAndIsrRequest) -> ControlResponse {
    let names: BTreeMap<TopicId, &TopicName> =
        request.topic_ids.iter().map(|(name, id)| (*id, name)).collect();
    let named = reply
        .partition_errors
        .iter()
        .map(|partition| (TopicPartition::new(&*partition.topic_name, partition.partition_index), partition));
    let with_ids = reply.topics.iter().flat_map(|topic| {
        let name = names.get(&topic.topic_id).copied();
        topic.partition_errors.iter().filter_map(move |partition| {
            Some((TopicPartition::new(name?.clone(), partition.partition_index), partition))
        })
    });
    let partitions = named
        .chain(with_ids)
        .filter(|(tp, _)| request.partitions.contains_key(tp))
        .map(|(tp, partition)| (tp, error(partition.error_code)))
        .collect();
    ControlResponse::LeaderAndIsr { error: error(reply.error_code), partitions }
}
