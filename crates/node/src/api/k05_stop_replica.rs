//! StopReplica (key 5): the controller takes replicas away from this broker, for a while or for good (KIP-570).

use std::sync::Arc;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::stop_replica_response::StopReplicaPartitionError;
use wire::messages::{StopReplicaRequest, StopReplicaResponse};
use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, TopicName, TopicPartition};

use super::{Answer, errors};
use crate::broker::Broker;
use crate::control::Admission;
use crate::control::stop_replica::{StopOrder, obey};

/// Handles a StopReplica request.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: StopReplicaRequest) {
    let (broker_epoch, controller_epoch) =
        (BrokerEpoch(request.broker_epoch), ControllerEpoch(request.controller_epoch));
    let controller = BrokerId(request.controller_id);
    let orders = orders(&request);
    broker.control().submit(broker, answer, move |broker, _turn, answer| {
        let answer = match broker.control().admit(broker_epoch, controller_epoch, answer, "a StopReplica") {
            Admission::Granted(answer) => answer,
            Admission::Refused(answer, code) => {
                let error_code = code.code();
                return answer.send(&StopReplicaResponse { error_code, ..StopReplicaResponse::default() });
            }
            Admission::Ended => return,
        };
        let origin = broker.origin("StopReplica", controller, controller_epoch);
        let outcomes = obey(broker, &orders, origin);
        let told = orders.iter().zip(outcomes).map(|(order, outcome)| StopReplicaPartitionError {
            topic_name: Str::from(&order.partition.topic),
            partition_index: order.partition.partition,
            error_code: outcome
                .map_or_else(|failure| errors::of_control(&failure), |()| ErrorCode::None)
                .code(),
        });
        answer.send(&StopReplicaResponse {
            partition_errors: told.collect(),
            ..StopReplicaResponse::default()
        });
    });
}

fn orders(request: &StopReplicaRequest) -> Vec<StopOrder> {
    let all = request.delete_partitions;
    let order = |topic: &TopicName, partition, leader_epoch, delete| StopOrder {
        partition: TopicPartition { topic: topic.clone(), partition },
        leader_epoch,
        delete,
    };
    let mut orders = Vec::new();
    for it in &request.ungrouped_partitions {
        orders.push(order(&TopicName::from(&it.topic_name), it.partition_index, LeaderEpoch::UNKNOWN, all));
    }
    for topic in &request.topics {
        let name = TopicName::from(&topic.name);
        let each = topic.partition_indexes.iter();
        orders.extend(each.map(|index| order(&name, *index, LeaderEpoch::UNKNOWN, all)));
    }
    for topic in &request.topic_states {
        let name = TopicName::from(&topic.topic_name);
        let each = topic.partition_states.iter();
        orders.extend(
            each.map(|it| {
                order(&name, it.partition_index, LeaderEpoch(it.leader_epoch), it.delete_partition)
            }),
        );
    }
    orders
}
