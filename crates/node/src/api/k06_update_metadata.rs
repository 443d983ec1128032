//! UpdateMetadata (key 6): the controller tells all brokers what the cluster looks like (KIP-103, KIP-516).

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::metadata_image::{BrokerInfo, Endpoint, MetadataUpdate, PartitionImage, TopicUpdate};
use wire::error_code::ErrorCode;
use wire::messages::update_metadata_request::{UpdateMetadataBroker, UpdateMetadataPartitionState};
use wire::messages::{UpdateMetadataRequest, UpdateMetadataResponse};
use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, TopicId, TopicName};

use super::Answer;
use crate::broker::Broker;
use crate::config::SecurityProtocol;
use crate::control::Admission;
use crate::control::update_metadata::obey;

/// The first version that names listeners; before, they are called like their security protocols.
const FIRST_VERSION_WITH_LISTENERS: i16 = 3;

/// The first version that tells racks.
const FIRST_VERSION_WITH_RACKS: i16 = 2;

/// Handles an UpdateMetadata request.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: UpdateMetadataRequest) {
    let (broker_epoch, controller_epoch) =
        (BrokerEpoch(request.broker_epoch), ControllerEpoch(request.controller_epoch));
    let update = update(answer.call().version(), request);
    broker.control().submit(broker, answer, move |broker, _turn, answer| {
        let response = |error: ErrorCode| UpdateMetadataResponse { error_code: error.code() };
        match broker.control().admit(broker_epoch, controller_epoch, answer, "an UpdateMetadata") {
            Admission::Granted(answer) => {
                obey(broker, update);
                answer.send(&response(ErrorCode::None));
            }
            Admission::Refused(answer, code) => answer.send(&response(code)),
            Admission::Ended => {}
        }
    });
}

fn update(version: i16, request: UpdateMetadataRequest) -> MetadataUpdate {
    let mut topics: Vec<TopicUpdate> = Vec::new();
    for state in request.ungrouped_partition_states {
        let name = TopicName::from(&state.topic_name);
        let partition = partition(state);
        match topics.last_mut() {
            Some(topic) if topic.name == name => topic.partitions.push(partition),
            _ => topics.push(TopicUpdate { name, id: TopicId::ZERO, partitions: vec![partition] }),
        }
    }
    topics.extend(request.topic_states.into_iter().map(|topic| TopicUpdate {
        name: TopicName::from(&topic.topic_name),
        id: topic.topic_id,
        partitions: topic.partition_states.into_iter().map(partition).collect(),
    }));
    let brokers = request.live_brokers.iter().map(|it| (BrokerId(it.id), broker_info(version, it)));
    MetadataUpdate {
        controller: (request.controller_id >= 0).then_some(BrokerId(request.controller_id)),
        brokers: brokers.collect::<BTreeMap<_, _>>(),
        topics,
    }
}

fn partition(state: UpdateMetadataPartitionState) -> (i32, PartitionImage) {
    let ids = |ids: Vec<i32>| ids.into_iter().map(BrokerId).collect();
    let image = PartitionImage {
        leader: BrokerId(state.leader),
        leader_epoch: LeaderEpoch(state.leader_epoch),
        partition_epoch: state.zk_version,
        controller_epoch: ControllerEpoch(state.controller_epoch),
        replicas: ids(state.replicas),
        isr: ids(state.isr),
        offline: ids(state.offline_replicas),
    };
    (state.partition_index, image)
}

fn broker_info(version: i16, it: &UpdateMetadataBroker) -> BrokerInfo {
    let endpoint = |listener: &str, host: &str, port| Endpoint {
        listener: listener.to_owned(),
        host: host.to_owned(),
        port,
    };
    let endpoints = if version == 0 {
        vec![endpoint(SecurityProtocol::Plaintext.name(), &it.v0_host, it.v0_port)]
    } else {
        let each = it.endpoints.iter().map(|told| {
            let protocol =
                SecurityProtocol::from_id(told.security_protocol).map_or("", SecurityProtocol::name);
            let listener = if version < FIRST_VERSION_WITH_LISTENERS { protocol } else { &*told.listener };
            endpoint(listener, &told.host, told.port)
        });
        each.collect()
    };
    let rack = it.rack.as_ref().filter(|_| version >= FIRST_VERSION_WITH_RACKS);
    BrokerInfo { endpoints, rack: rack.map(|rack| rack.as_str().to_owned()) }
}
