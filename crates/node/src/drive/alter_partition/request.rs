//! AlterPartition requests to the controller (KIP-497).
//!
//! The version is negotiated, once for each controller: it is the only request between brokers for which Kafka asks
//! ApiVersions first. Below version 2 topics go by name, so one topic without an id holds the whole request there.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use kernel::replica::alter_partition::{Event, Item};
use kernel::replica::leader::{IsrAnswer, IsrChange};
use wire::Str;
use wire::api::ApiKey;
use wire::error_code::ErrorCode;
use wire::messages::alter_partition_request::{BrokerState, PartitionData, TopicData};
use wire::messages::alter_partition_response::PartitionData as PartitionResult;
use wire::messages::{
    AlterPartitionRequest, AlterPartitionResponse, ApiVersionsRequest, ApiVersionsResponse, Message,
};
use wire::types::{BrokerId, LeaderEpoch, TopicName, TopicPartition};

use super::step;
use crate::broker::Broker;
use crate::drive::to_broker;
use crate::peers::{Channel, PeerAddress, Purpose};

/// The first version that names topics by id.
const FIRST_VERSION_WITH_TOPIC_IDS: i16 = 2;
/// The first version that names the epochs of the members of the ISR. Of a cluster over ZooKeeper Kafka tells and checks
/// none; we tell and check that of the one who joins.
const FIRST_VERSION_WITH_BROKER_EPOCHS: i16 = 3;
/// The ApiVersions that every broker with AlterPartition knows.
const API_VERSIONS_VERSION: i16 = 3;

/// A controller whose versions are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownController {
    id: BrokerId,
    address: PeerAddress,
    /// The newest AlterPartition that both sides have.
    version: i16,
}

type Items = BTreeMap<TopicPartition, Item>;

/// Sends the changes; the sender hears of the end.
pub(super) fn send(broker: &Arc<Broker>, id: u64, items: Items) {
    let Some((controller, address)) = to_broker::controller(broker) else {
        tracing::debug!("there is no controller to ask for another ISR");
        return step(broker, Event::Failed { id });
    };
    let known = known(broker).filter(|known| known.id == controller && known.address == address);
    match known {
        Some(known) => alter(broker, id, items, known),
        None => negotiate(broker, id, items, controller, address),
    }
}

fn negotiate(broker: &Arc<Broker>, id: u64, items: Items, controller: BrokerId, address: PeerAddress) {
    let request = ApiVersionsRequest {
        client_software_name: Str::from_static("blumfeld"),
        client_software_version: Str::from_static(env!("CARGO_PKG_VERSION")),
    };
    let to = address.clone();
    let channel = Channel { broker: controller, purpose: Purpose::ToController };
    to_broker::call(broker, channel, address, API_VERSIONS_VERSION, &request, move |broker, answer| {
        let version = answer.and_then(|response: ApiVersionsResponse| common_version(&response));
        match version {
            Ok(version) => {
                let known = KnownController { id: controller, address: to, version };
                remember(broker, Some(known.clone()));
                alter(broker, id, items, known);
            }
            Err(reason) => give_up(broker, id, controller, &reason),
        }
    });
}

fn common_version(response: &ApiVersionsResponse) -> Result<i16, String> {
    let code = ErrorCode::from_code(response.error_code).map_or("an unknown error", ErrorCode::name);
    if response.error_code != ErrorCode::None.code() {
        return Err(format!("ApiVersions is answered with {code}"));
    }
    let ours = AlterPartitionRequest::VERSIONS;
    let theirs = response.api_keys.iter().find(|it| it.api_key == ApiKey::AlterPartition.code());
    let theirs = theirs.ok_or("it has no AlterPartition")?;
    let common = theirs.max_version.min(*ours.end());
    if common < theirs.min_version || common < *ours.start() {
        return Err(format!(
            "its AlterPartition has versions {} to {}",
            theirs.min_version, theirs.max_version
        ));
    }
    Ok(common)
}

fn alter(broker: &Arc<Broker>, id: u64, items: Items, known: KnownController) {
    let version = if items.values().any(|item| item.topic_id.is_zero()) {
        known.version.min(FIRST_VERSION_WITH_TOPIC_IDS - 1)
    } else {
        known.version
    };
    let request = request(broker, version, &items);
    let controller = known.id;
    let channel = Channel { broker: controller, purpose: Purpose::ToController };
    to_broker::call(broker, channel, known.address, version, &request, move |broker, answer| {
        match answer.and_then(|response| answers(version, &items, response)) {
            Ok(answers) => {
                broker.alter_partition().failing.store(false, Ordering::Relaxed);
                step(broker, Event::Answered { id, answers });
            }
            Err(reason) => give_up(broker, id, controller, &reason),
        }
    });
}

fn request(broker: &Broker, version: i16, items: &Items) -> AlterPartitionRequest {
    let mut topics: Vec<(TopicName, TopicData)> = Vec::new();
    for (partition, item) in items {
        let data = partition_data(version, partition.partition, &item.change);
        match topics.last_mut() {
            Some((name, topic)) if *name == partition.topic => topic.partitions.push(data),
            _ => topics.push((
                partition.topic.clone(),
                TopicData {
                    topic_name: Str::from(&partition.topic),
                    topic_id: item.topic_id,
                    partitions: vec![data],
                },
            )),
        }
    }
    AlterPartitionRequest {
        broker_id: broker.id().0,
        broker_epoch: broker.control().broker_epoch().0,
        topics: topics.into_iter().map(|(_, topic)| topic).collect(),
    }
}

/// A leader that changes its ISR has recovered from an unclean election, if there was one (KIP-704): the recovery state
/// stays at its default.
fn partition_data(version: i16, index: i32, change: &IsrChange) -> PartitionData {
    let mut data = PartitionData {
        partition_index: index,
        leader_epoch: change.leader_epoch.0,
        partition_epoch: change.partition_epoch,
        ..PartitionData::default()
    };
    if version >= FIRST_VERSION_WITH_BROKER_EPOCHS {
        let epoch = |id: BrokerId| change.joining.filter(|(joining, _)| *joining == id).map(|it| it.1.0);
        let state = |id: &BrokerId| BrokerState { broker_id: id.0, broker_epoch: epoch(*id).unwrap_or(-1) };
        data.new_isr_with_epochs = change.isr.iter().map(state).collect();
    } else {
        data.new_isr = change.isr.iter().map(|id| id.0).collect();
    }
    data
}

/// The answers by partition.
///
/// # Errors
/// Why the whole request must be made again.
fn answers(
    version: i16,
    items: &Items,
    response: AlterPartitionResponse,
) -> Result<BTreeMap<TopicPartition, IsrAnswer>, String> {
    if response.error_code != ErrorCode::None.code() {
        return Err(name_of(response.error_code));
    }
    let mut answers = BTreeMap::new();
    for topic in response.topics {
        let by_id = || items.iter().find(|(_, item)| item.topic_id == topic.topic_id);
        let name = if version >= FIRST_VERSION_WITH_TOPIC_IDS {
            by_id().map(|(partition, _)| partition.topic.clone())
        } else {
            Some(TopicName::from(&topic.topic_name))
        };
        let Some(name) = name else { continue };
        for result in topic.partitions {
            if result.error_code == ErrorCode::NotController.code() {
                return Err(name_of(result.error_code));
            }
            let partition = TopicPartition { topic: name.clone(), partition: result.partition_index };
            answers.insert(partition, meaning(result));
        }
    }
    Ok(answers)
}

fn meaning(result: PartitionResult) -> IsrAnswer {
    match ErrorCode::from_code(result.error_code) {
        Some(ErrorCode::None) => IsrAnswer::Confirmed {
            leader_epoch: LeaderEpoch(result.leader_epoch),
            partition_epoch: result.partition_epoch,
            isr: result.isr.into_iter().map(BrokerId).collect(),
        },
        Some(ErrorCode::OperationNotAttempted | ErrorCode::IneligibleReplica) => IsrAnswer::NotAttempted,
        Some(
            ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::InvalidUpdateVersion
            | ErrorCode::InvalidRequest
            | ErrorCode::NewLeaderElected,
        ) => IsrAnswer::Superseded,
        _ => IsrAnswer::Failed,
    }
}

fn name_of(code: i16) -> String {
    ErrorCode::from_code(code).map_or_else(|| format!("error {code}"), |code| code.name().to_owned())
}

/// The request comes to nothing: the connection is given up, and whoever is controller by then is asked again.
fn give_up(broker: &Arc<Broker>, id: u64, controller: BrokerId, reason: &str) {
    if broker.alter_partition().failing.swap(true, Ordering::Relaxed) {
        tracing::debug!(%controller, reason, "the controller does not change the ISR");
    } else {
        tracing::info!(%controller, reason, "the controller does not change the ISR; it is asked again and again");
    }
    remember(broker, None);
    to_broker::close(broker, controller, Purpose::ToController);
    step(broker, Event::Failed { id });
}

fn known(broker: &Broker) -> Option<KnownController> {
    broker.alter_partition().controller.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn remember(broker: &Broker, known: Option<KnownController>) {
    *broker.alter_partition().controller.lock().unwrap_or_else(PoisonError::into_inner) = known;
}
