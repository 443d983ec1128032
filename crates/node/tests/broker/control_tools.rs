//! A controller, played by the test: what it sends to the broker under test, whose id is 0.

use std::collections::BTreeMap;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::leader_and_isr_request::{LeaderAndIsrPartitionState, LeaderAndIsrTopicState};
use wire::messages::stop_replica_request::{
    StopReplicaPartitionState, StopReplicaPartitionV0, StopReplicaTopicState, StopReplicaTopicV1,
};
use wire::messages::update_metadata_request::{
    UpdateMetadataBroker, UpdateMetadataEndpoint, UpdateMetadataPartitionState, UpdateMetadataTopicState,
};
use wire::messages::{
    LeaderAndIsrRequest, LeaderAndIsrResponse, StopReplicaRequest, StopReplicaResponse,
    UpdateMetadataRequest, UpdateMetadataResponse,
};
use wire::types::TopicId;

use crate::harness::Node;

/// The term of the test's controller; the broker itself has heard of term 1.
pub(crate) const TERM: i32 = 2;
/// The newest version of LeaderAndIsr.
pub(crate) const LATEST: i16 = 7;
/// The id of the topics of these tests.
pub(crate) const ID: TopicId = TopicId([9; 16]);

/// What the controller says of partition 0 of a topic.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) topic: String,
    pub(crate) id: TopicId,
    pub(crate) leader: i32,
    pub(crate) leader_epoch: i32,
    pub(crate) partition_epoch: i32,
    pub(crate) replicas: Vec<i32>,
    pub(crate) isr: Vec<i32>,
    pub(crate) is_new: bool,
}

/// `leader` leads `topic` in this epoch, with these replicas, all of them in sync.
pub(crate) fn order(topic: &str, leader: i32, leader_epoch: i32, replicas: &[i32]) -> Order {
    Order {
        topic: topic.to_owned(),
        id: ID,
        leader,
        leader_epoch,
        partition_epoch: leader_epoch,
        replicas: replicas.to_vec(),
        isr: replicas.to_vec(),
        is_new: leader_epoch == 0,
    }
}

fn state(order: &Order) -> LeaderAndIsrPartitionState {
    LeaderAndIsrPartitionState {
        topic_name: Str::from(&order.topic),
        partition_index: 0,
        controller_epoch: TERM,
        leader: order.leader,
        leader_epoch: order.leader_epoch,
        isr: order.isr.clone(),
        partition_epoch: order.partition_epoch,
        replicas: order.replicas.clone(),
        is_new: order.is_new,
        ..LeaderAndIsrPartitionState::default()
    }
}

/// A LeaderAndIsr in the form of `version`.
pub(crate) fn leader_and_isr(version: i16, orders: &[Order]) -> LeaderAndIsrRequest {
    let mut request = LeaderAndIsrRequest {
        controller_id: 1,
        controller_epoch: TERM,
        broker_epoch: -1,
        ..LeaderAndIsrRequest::default()
    };
    for order in orders {
        if version < 2 {
            request.ungrouped_partition_states.push(state(order));
        } else {
            request.topic_states.push(LeaderAndIsrTopicState {
                topic_name: Str::from(&order.topic),
                topic_id: order.id,
                partition_states: vec![state(order)],
            });
        }
    }
    request
}

/// The errors of the partitions, in order of the request.
pub(crate) fn errors(response: &LeaderAndIsrResponse) -> Vec<ErrorCode> {
    let ungrouped = response.partition_errors.iter();
    let grouped = response.topics.iter().flat_map(|topic| &topic.partition_errors);
    ungrouped.chain(grouped).map(|it| ErrorCode::from_code(it.error_code).unwrap()).collect()
}

/// A StopReplica in the form of `version`: topic, leader epoch, whether to delete.
pub(crate) fn stop_replica(version: i16, stops: &[(&str, i32, bool)]) -> StopReplicaRequest {
    let mut request = StopReplicaRequest {
        controller_id: 1,
        controller_epoch: TERM,
        broker_epoch: -1,
        ..StopReplicaRequest::default()
    };
    for (topic, leader_epoch, delete) in stops {
        let topic = Str::from(*topic);
        match version {
            0..=2 => request.delete_partitions = *delete,
            _ => request.topic_states.push(StopReplicaTopicState {
                topic_name: topic.clone(),
                partition_states: vec![StopReplicaPartitionState {
                    partition_index: 0,
                    leader_epoch: *leader_epoch,
                    delete_partition: *delete,
                }],
            }),
        }
        match version {
            0 => request
                .ungrouped_partitions
                .push(StopReplicaPartitionV0 { topic_name: topic, partition_index: 0 }),
            1..=2 => request.topics.push(StopReplicaTopicV1 { name: topic, partition_indexes: vec![0] }),
            _ => {}
        }
    }
    request
}

/// An UpdateMetadata: the controller, the live brokers, and what it says of partitions (leader -2 takes one away).
pub(crate) fn update_metadata(controller: i32, live: &[i32], orders: &[Order]) -> UpdateMetadataRequest {
    let broker = |id: &i32| UpdateMetadataBroker {
        id: *id,
        endpoints: vec![UpdateMetadataEndpoint {
            port: 9092 + id,
            host: Str::from(format!("host{id}")),
            listener: Str::from("PLAINTEXT"),
            security_protocol: 0,
        }],
        ..UpdateMetadataBroker::default()
    };
    let mut topics: BTreeMap<&str, UpdateMetadataTopicState> = BTreeMap::new();
    for order in orders {
        let topic = topics.entry(&order.topic).or_default();
        topic.topic_name = Str::from(&order.topic);
        topic.topic_id = order.id;
        topic.partition_states.push(UpdateMetadataPartitionState {
            partition_index: 0,
            controller_epoch: TERM,
            leader: order.leader,
            leader_epoch: order.leader_epoch,
            isr: order.isr.clone(),
            zk_version: order.partition_epoch,
            replicas: order.replicas.clone(),
            ..UpdateMetadataPartitionState::default()
        });
    }
    UpdateMetadataRequest {
        controller_id: controller,
        controller_epoch: TERM,
        broker_epoch: -1,
        topic_states: topics.into_values().collect(),
        live_brokers: live.iter().map(broker).collect(),
        ..UpdateMetadataRequest::default()
    }
}

impl Node {
    /// Sends a LeaderAndIsr of the newest version; gives the errors of the partitions.
    pub(crate) fn order(&self, orders: &[Order]) -> Vec<ErrorCode> {
        let response = self.call(LATEST, &leader_and_isr(LATEST, orders));
        assert_eq!(response.error_code, 0);
        errors(&response)
    }

    /// The same for one partition that must be obeyed.
    pub(crate) fn obeys(&self, order: &Order) {
        assert_eq!(self.order(std::slice::from_ref(order)), [ErrorCode::None], "{order:?}");
    }

    /// Sends a StopReplica of the newest version.
    pub(crate) fn stop(&self, stops: &[(&str, i32, bool)]) -> StopReplicaResponse {
        self.call(4, &stop_replica(4, stops))
    }

    /// Sends an UpdateMetadata of the newest version.
    pub(crate) fn tell(&self, controller: i32, live: &[i32], orders: &[Order]) {
        let response: UpdateMetadataResponse = self.call(8, &update_metadata(controller, live, orders));
        assert_eq!(response.error_code, 0);
    }

    /// What `/explain` says of partition 0 of a topic that the broker has heard of.
    pub(crate) fn explained(&self, topic: &str) -> String {
        self.broker.explain(topic, 0).unwrap()
    }
}
