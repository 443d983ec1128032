//! AlterPartition (key 56): a leader asks the controller to change its in-sync replicas (KIP-497, KIP-704, KIP-841).

use std::sync::Arc;

use kernel::controller::command::{AlteredPartition, ApiAnswer};
use kernel::controller::event::{AlterPartition, AlterPartitionRequest as Asked, ApiRequest};
use kernel::controller::values::LeaderRecoveryState;
use kernel::fetch::session::TopicRef;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::alter_partition_request::{PartitionData, TopicData};
use wire::messages::{AlterPartitionRequest, AlterPartitionResponse, alter_partition_response as response};
use wire::types::{BrokerEpoch, BrokerId, LeaderEpoch, TopicId, TopicName};

use super::Answer;
use crate::broker::Broker;
use crate::drive::controller;

/// The first version that names topics by id.
const FIRST_VERSION_WITH_TOPIC_IDS: i16 = 2;
/// The first version that tells the epochs of the in-sync brokers.
const FIRST_VERSION_WITH_BROKER_EPOCHS: i16 = 3;

/// Hands an AlterPartition request to the controller of this broker.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: AlterPartitionRequest) {
    let version = answer.call().version();
    let asked = Asked {
        version,
        broker: BrokerId(request.broker_id),
        broker_epoch: BrokerEpoch(request.broker_epoch),
        partitions: request.topics.into_iter().flat_map(|topic| partitions(topic, version)).collect(),
    };
    controller::ask(
        broker,
        ApiRequest::AlterPartition(asked),
        Box::new(move |outcome| {
            answer.send(&match outcome {
                Ok(ApiAnswer::AlterPartition(altered)) => altered_response(altered),
                Ok(_) => failed(ErrorCode::UnknownServerError),
                Err(error) => failed(error),
            });
        }),
    );
}

fn partitions(topic: TopicData, version: i16) -> Vec<AlterPartition> {
    let name = if version >= FIRST_VERSION_WITH_TOPIC_IDS {
        TopicRef::Id(topic.topic_id)
    } else {
        TopicRef::Name(TopicName::from(topic.topic_name.as_str()))
    };
    topic.partitions.into_iter().map(|it| partition(name.clone(), it, version)).collect()
}

fn partition(topic: TopicRef, asked: PartitionData, version: i16) -> AlterPartition {
    let told = asked.new_isr_with_epochs.iter().filter(|it| it.broker_epoch >= 0);
    let broker_epochs = told.map(|it| (BrokerId(it.broker_id), BrokerEpoch(it.broker_epoch))).collect();
    let isr = if version >= FIRST_VERSION_WITH_BROKER_EPOCHS {
        asked.new_isr_with_epochs.iter().map(|it| BrokerId(it.broker_id)).collect()
    } else {
        asked.new_isr.into_iter().map(BrokerId).collect()
    };
    AlterPartition {
        topic,
        partition: asked.partition_index,
        leader_epoch: LeaderEpoch(asked.leader_epoch),
        isr,
        broker_epochs,
        // A state that no release has is refused like one that may not be asked for.
        recovery_state: LeaderRecoveryState::from_code(asked.leader_recovery_state)
            .unwrap_or(LeaderRecoveryState::Recovering),
        partition_epoch: asked.partition_epoch,
    }
}

fn failed(error: ErrorCode) -> AlterPartitionResponse {
    AlterPartitionResponse { error_code: error.code(), ..AlterPartitionResponse::default() }
}

/// The partitions of one topic stand together, in the order in which the topics were first named.
fn altered_response(altered: Vec<AlteredPartition>) -> AlterPartitionResponse {
    let mut topics: Vec<(TopicRef, response::TopicData)> = Vec::new();
    for it in altered {
        let data = partition_response(&it);
        match topics.iter_mut().find(|(topic, _)| *topic == it.topic) {
            Some((_, group)) => group.partitions.push(data),
            None => {
                let (topic_name, topic_id) = match &it.topic {
                    TopicRef::Id(id) => (Str::default(), *id),
                    TopicRef::Name(name) => (Str::from(name.as_str()), TopicId::ZERO),
                };
                topics.push((it.topic, response::TopicData { topic_name, topic_id, partitions: vec![data] }));
            }
        }
    }
    AlterPartitionResponse {
        topics: topics.into_iter().map(|(_, topic)| topic).collect(),
        ..AlterPartitionResponse::default()
    }
}

fn partition_response(it: &AlteredPartition) -> response::PartitionData {
    let partition_index = it.partition;
    match &it.result {
        Ok(state) => response::PartitionData {
            partition_index,
            error_code: ErrorCode::None.code(),
            leader_id: state.leader.0,
            leader_epoch: state.leader_epoch.0,
            isr: state.isr.iter().map(|id| id.0).collect(),
            leader_recovery_state: state.recovery_state.code(),
            partition_epoch: state.partition_epoch,
        },
        Err(error) => response::PartitionData {
            partition_index,
            error_code: error.code(),
            ..response::PartitionData::default()
        },
    }
}
