//! AlterPartition requests to the controller (KIP-497).
//!
//! The version is negotiated, once for each controller: it is the only request between brokers for which Kafka asks
//! ApiVersions first. Below version 2 topics go by name, so one topic without an id holds the whole request there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kernel::replica::alter_partition::{Event, Item};
use kernel::replica::leader::{IsrAnswer, IsrChange};
use wire::api::ApiKey;
use wire::error_code::ErrorCode;
use wire::header::{RequestHeader, decode_response_header, encode_request_header};
use wire::messages::alter_partition_request::{BrokerState, PartitionData, TopicData};
use wire::messages::alter_partition_response::PartitionData as PartitionResult;
use wire::messages::{
    AlterPartitionRequest, AlterPartitionResponse, ApiVersionsRequest, ApiVersionsResponse, Message,
};
use wire::types::{BrokerId, LeaderEpoch, TopicName, TopicPartition};
use wire::{Decoder, EncodeError, Encoder, Str};

use super::step;
use crate::broker::Broker;
use crate::peers::{Channel, PeerAddress, PeerRequest, Purpose};

/// The first version that names topics by id.
const FIRST_VERSION_WITH_TOPIC_IDS: i16 = 2;
/// The first version that names the epochs of the members of the ISR; ZooKeeper's brokers tell none.
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
    let Some((controller, address)) = find_controller(broker) else {
        tracing::debug!("there is no controller to ask for another ISR");
        return step(broker, Event::Failed { id });
    };
    let known = known(broker).filter(|known| known.id == controller && known.address == address);
    match known {
        Some(known) => alter(broker, id, items, known),
        None => negotiate(broker, id, items, controller, address),
    }
}

/// The controller and where it listens: on the control plane, if there is one, else where brokers do.
fn find_controller(broker: &Broker) -> Option<(BrokerId, PeerAddress)> {
    let image = broker.image();
    let listeners = &broker.config().listeners;
    let listener = listeners.control_plane.as_ref().unwrap_or(&listeners.inter_broker);
    let controller = image.controller()?;
    let endpoint = image.brokers().get(&controller)?.endpoint(listener)?;
    let port = u16::try_from(endpoint.port).ok()?;
    Some((controller, PeerAddress { host: endpoint.host.clone(), port }))
}

fn negotiate(broker: &Arc<Broker>, id: u64, items: Items, controller: BrokerId, address: PeerAddress) {
    let request = ApiVersionsRequest {
        client_software_name: Str::from_static("blumfeld"),
        client_software_version: Str::from_static(env!("CARGO_PKG_VERSION")),
    };
    let to = address.clone();
    call(broker, controller, address, API_VERSIONS_VERSION, &request, move |broker, answer| {
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
    call(broker, controller, known.address, version, &request, move |broker, answer| {
        match answer.and_then(|response| answers(version, &items, response)) {
            Ok(answers) => step(broker, Event::Answered { id, answers }),
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
    let ids = change.isr.iter().map(|id| id.0);
    let mut data = PartitionData {
        partition_index: index,
        leader_epoch: change.leader_epoch.0,
        partition_epoch: change.partition_epoch,
        ..PartitionData::default()
    };
    if version >= FIRST_VERSION_WITH_BROKER_EPOCHS {
        data.new_isr_with_epochs = ids.map(|broker_id| BrokerState { broker_id, broker_epoch: -1 }).collect();
    } else {
        data.new_isr = ids.collect();
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
    tracing::info!(%controller, reason, "the controller does not change the ISR; it is asked again");
    remember(broker, None);
    broker.peers().close(Channel { broker: controller, purpose: Purpose::ToController });
    step(broker, Event::Failed { id });
}

fn known(broker: &Broker) -> Option<KnownController> {
    broker.alter_partition().controller.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn remember(broker: &Broker, known: Option<KnownController>) {
    *broker.alter_partition().controller.lock().unwrap_or_else(PoisonError::into_inner) = known;
}

/// Sends one request to the controller and reads the answer.
fn call<M: wire::messages::Request>(
    broker: &Arc<Broker>,
    controller: BrokerId,
    address: PeerAddress,
    version: i16,
    request: &M,
    then: impl FnOnce(&Arc<Broker>, Result<M::Response, String>) + Send + 'static,
) {
    static CORRELATION: AtomicI32 = AtomicI32::new(0);
    let correlation_id = CORRELATION.fetch_add(1, Ordering::Relaxed);
    let frame = match encode(broker.id(), version, correlation_id, request) {
        Ok(frame) => frame,
        Err(error) => return then(broker, Err(format!("{} cannot be written: {error}", M::NAME))),
    };
    let timeout_ms = u64::try_from(broker.config().controller_socket_timeout_ms).unwrap_or(0);
    let request = PeerRequest {
        channel: Channel { broker: controller, purpose: Purpose::ToController },
        address,
        frame,
        timeout: Duration::from_millis(timeout_ms),
    };
    let caller = broker.clone();
    broker.peers().send(
        request,
        Box::new(move |answer| {
            let answer = answer.map_err(|error| error.to_string());
            then(&caller, answer.and_then(|bytes| decode::<M::Response>(bytes, version, correlation_id)));
        }),
    );
}

fn encode<M: Message>(
    id: BrokerId,
    version: i16,
    correlation_id: i32,
    request: &M,
) -> Result<Bytes, EncodeError> {
    let header = RequestHeader {
        api_key: M::API_KEY,
        api_version: version,
        correlation_id,
        client_id: Some(Str::from(id.to_string())),
    };
    let mut encoder = Encoder::new();
    encode_request_header(&mut encoder, &header)?;
    request.encode(&mut encoder, version)?;
    Ok(encoder.into_bytes())
}

fn decode<M: Message>(bytes: Bytes, version: i16, correlation_id: i32) -> Result<M, String> {
    let mut decoder = Decoder::new(bytes);
    let unreadable = |error: wire::DecodeError| format!("{} cannot be read: {error}", M::NAME);
    let key = ApiKey::from_code(M::API_KEY).ok_or("unknown key")?;
    let header_version = key.response_header_version(version);
    let correlated = decode_response_header(&mut decoder, header_version).map_err(unreadable)?;
    if correlated != correlation_id {
        return Err(format!("the answer belongs to request {correlated}, not to {correlation_id}"));
    }
    M::decode(&mut decoder, version).map_err(unreadable)
}
