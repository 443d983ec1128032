//! UpdateMetadata on the wire: all brokers and the partitions that changed, version by version.
//!
//! Partitions stand in one list up to version 4 and by topic from 5 on. Version 0 knows one address per broker, the
//! PLAINTEXT one; versions 1 and 2 name an address by its security protocol, later ones by its listener (KIP-103).

use wire::Str;
use wire::messages::UpdateMetadataRequest as Message;
use wire::messages::update_metadata_request::{
    UpdateMetadataBroker, UpdateMetadataEndpoint, UpdateMetadataPartitionState, UpdateMetadataTopicState,
};
use wire::types::{BrokerId, TopicId, TopicName, TopicPartition};

use super::{by_topic, ids};
use crate::controller::values::{BrokerRegistration, UpdateMetadataPartition, UpdateMetadataRequest};

/// The first version that groups partitions by topic.
const FIRST_GROUPED: i16 = 5;
/// The one address that version 0 carries is that of this listener.
const PLAINTEXT: &str = "PLAINTEXT";

/// The message in `version`.
pub(super) fn message(request: &UpdateMetadataRequest, version: i16) -> Message {
    let body = &request.body;
    let mut message = Message {
        controller_id: request.sender.controller_id.0,
        controller_epoch: request.sender.controller_epoch.0,
        broker_epoch: request.sender.broker_epoch.0,
        live_brokers: body.live_brokers.iter().map(|(id, told)| broker(*id, told, version)).collect(),
        ..Message::default()
    };
    let states = body.partitions.iter().map(|(tp, state)| (tp.topic.clone(), partition(tp, state, version)));
    if version < FIRST_GROUPED {
        message.ungrouped_partition_states = states.map(|(_, state)| state).collect();
    } else {
        let open = |topic: &TopicName| UpdateMetadataTopicState {
            topic_name: topic.into(),
            topic_id: body.topic_ids.get(topic).copied().unwrap_or(TopicId::ZERO),
            partition_states: Vec::new(),
        };
        message.topic_states = by_topic(states, open, |topic, state| topic.partition_states.push(state));
    }
    message
}

fn partition(
    tp: &TopicPartition,
    partition: &UpdateMetadataPartition,
    version: i16,
) -> UpdateMetadataPartitionState {
    let state = &partition.state;
    UpdateMetadataPartitionState {
        topic_name: if version < FIRST_GROUPED { (&tp.topic).into() } else { Str::EMPTY },
        partition_index: tp.partition,
        controller_epoch: state.controller_epoch.0,
        leader: state.leader.0,
        leader_epoch: state.leader_epoch.0,
        isr: ids(&state.isr),
        zk_version: state.partition_epoch,
        replicas: ids(&partition.replicas),
        offline_replicas: ids(&partition.offline_replicas),
    }
}

fn broker(id: BrokerId, told: &BrokerRegistration, version: i16) -> UpdateMetadataBroker {
    let mut broker = UpdateMetadataBroker {
        id: id.0,
        rack: told.rack.as_deref().map(Str::from),
        ..UpdateMetadataBroker::default()
    };
    if version == 0 {
        if let Some(endpoint) = told.endpoint(PLAINTEXT) {
            broker.v0_host = endpoint.host.as_str().into();
            broker.v0_port = endpoint.port;
        }
        return broker;
    }
    broker.endpoints = told
        .endpoints
        .iter()
        .map(|endpoint| UpdateMetadataEndpoint {
            port: endpoint.port,
            host: endpoint.host.as_str().into(),
            listener: endpoint.listener.as_str().into(),
            security_protocol: endpoint.security_protocol,
        })
        .collect();
    broker
}
