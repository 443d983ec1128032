//! LeaderAndIsr (key 4): the controller tells this broker which partitions it leads and which it follows (KIP-380,
//! KIP-516, KIP-704).

use std::sync::Arc;

use kernel::replica::control::Refusal;
use kernel::replica::leader::Leadership;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::leader_and_isr_request::LeaderAndIsrPartitionState;
use wire::messages::leader_and_isr_response::{LeaderAndIsrPartitionError, LeaderAndIsrTopicError};
use wire::messages::{LeaderAndIsrRequest, LeaderAndIsrResponse};
use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, TopicId, TopicName, TopicPartition};

use super::{Answer, errors};
use crate::broker::Broker;
use crate::control::Admission;
use crate::control::Failure;
use crate::control::leader_and_isr::{Outcome, PartitionOrder, obey};

/// The first version that groups errors by topic id.
const FIRST_VERSION_WITH_TOPICS: i16 = 5;

/// Handles a LeaderAndIsr request.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: LeaderAndIsrRequest) {
    let version = answer.call().version();
    let (broker_epoch, controller_epoch) =
        (BrokerEpoch(request.broker_epoch), ControllerEpoch(request.controller_epoch));
    let controller = BrokerId(request.controller_id);
    let orders = Arc::new(orders(request));
    broker.control().submit(broker, answer, move |broker, turn, answer| {
        let answer = match broker.control().admit(broker_epoch, controller_epoch, answer, "a LeaderAndIsr") {
            Admission::Granted(answer) => answer,
            Admission::Refused(answer, code) => {
                return answer.send(&response(version, code, orders.iter().map(|order| (order, code))));
            }
            Admission::Ended => return,
        };
        let then = orders.clone();
        let origin = broker.origin("LeaderAndIsr", controller, controller_epoch);
        obey(broker, orders, origin, move |outcomes| {
            let told = then.iter().zip(outcomes.iter().map(code));
            answer.send(&response(version, ErrorCode::None, told));
            drop(turn);
        });
    });
}

fn orders(request: LeaderAndIsrRequest) -> Vec<PartitionOrder> {
    let mut orders = Vec::new();
    for state in request.ungrouped_partition_states {
        let topic = TopicName::from(&state.topic_name);
        orders.push(order(topic, TopicId::ZERO, state));
    }
    for topic in request.topic_states {
        let name = TopicName::from(&topic.topic_name);
        let each = topic.partition_states.into_iter();
        orders.extend(each.map(|state| order(name.clone(), topic.topic_id, state)));
    }
    orders
}

fn order(topic: TopicName, topic_id: TopicId, state: LeaderAndIsrPartitionState) -> PartitionOrder {
    let ids = |ids: Vec<i32>| ids.into_iter().map(BrokerId).collect();
    PartitionOrder {
        partition: TopicPartition { topic, partition: state.partition_index },
        topic_id,
        leader: BrokerId(state.leader),
        leadership: Leadership {
            leader_epoch: LeaderEpoch(state.leader_epoch),
            partition_epoch: state.partition_epoch,
            controller_epoch: ControllerEpoch(state.controller_epoch),
            replicas: ids(state.replicas),
            adding: ids(state.adding_replicas),
            removing: ids(state.removing_replicas),
            isr: ids(state.isr),
        },
        is_new: state.is_new,
    }
}

fn code(outcome: &Outcome) -> ErrorCode {
    match outcome {
        Ok(()) => ErrorCode::None,
        Err(Failure::Refused(Refusal::StaleLeaderEpoch)) => ErrorCode::StaleControllerEpoch,
        Err(failure) => errors::of_control(failure),
    }
}

fn response<'a>(
    version: i16,
    error: ErrorCode,
    told: impl Iterator<Item = (&'a PartitionOrder, ErrorCode)>,
) -> LeaderAndIsrResponse {
    let mut response = LeaderAndIsrResponse { error_code: error.code(), ..LeaderAndIsrResponse::default() };
    for (order, code) in told {
        let error = LeaderAndIsrPartitionError {
            topic_name: Str::from(&order.partition.topic),
            partition_index: order.partition.partition,
            error_code: code.code(),
        };
        if version < FIRST_VERSION_WITH_TOPICS {
            response.partition_errors.push(error);
            continue;
        }
        match response.topics.last_mut() {
            Some(topic) if topic.topic_id == order.topic_id => topic.partition_errors.push(error),
            _ => response
                .topics
                .push(LeaderAndIsrTopicError { topic_id: order.topic_id, partition_errors: vec![error] }),
        }
    }
    response
}
