//! The requests that a controller sends, and the two that leaders send to it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::alter_partition_request::PartitionData as Wish;
use kafka_protocol::messages::alter_partition_response::{PartitionData as Granted, TopicData};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::leader_and_isr_request::{
    LeaderAndIsrLiveLeader, LeaderAndIsrPartitionState, LeaderAndIsrTopicState,
};
use kafka_protocol::messages::update_metadata_request::{
    UpdateMetadataBroker, UpdateMetadataEndpoint, UpdateMetadataPartitionState, UpdateMetadataTopicState,
};
use kafka_protocol::messages::{
    AlterPartitionRequest, AlterPartitionResponse, ApiVersionsResponse, BrokerId, LeaderAndIsrRequest,
    RequestHeader, ResponseHeader, UpdateMetadataRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};

use super::office::Office;
use super::{EPOCH, ID, Leadership, Place};
use crate::calls::topic_name;

const API_VERSIONS: i16 = 18;
const ALTER_PARTITION: i16 = 56;
/// The newest AlterPartition that is granted.
const ALTER_PARTITION_VERSION: i16 = 3;
/// INVALID_UPDATE_VERSION: the leader may ask again.
const INVALID_UPDATE_VERSION: i16 = 95;

fn ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

fn host() -> StrBytes {
    StrBytes::from_static_str("127.0.0.1")
}

/// Who lives and who leads.
pub(super) fn update_metadata(
    office: &Office,
    leadership: &Leadership,
    places: &BTreeMap<i32, Place>,
    port: u16,
    broker_epoch: i64,
) -> UpdateMetadataRequest {
    let ports = places.iter().map(|(id, place)| (*id, place.advertised_port)).chain([(ID, port)]);
    let brokers = ports.map(|(id, port)| {
        let endpoint = UpdateMetadataEndpoint::default()
            .with_host(host())
            .with_port(i32::from(port))
            .with_listener(StrBytes::from_static_str("PLAINTEXT"))
            .with_security_protocol(0);
        UpdateMetadataBroker::default().with_id(BrokerId(id)).with_endpoints(vec![endpoint])
    });
    let state = UpdateMetadataPartitionState::default()
        .with_partition_index(0)
        .with_controller_epoch(EPOCH)
        .with_leader(BrokerId(leadership.leader))
        .with_leader_epoch(leadership.leader_epoch)
        .with_isr(ids(&leadership.isr))
        .with_zk_version(leadership.partition_epoch)
        .with_replicas(ids(&office.replicas));
    let topic = UpdateMetadataTopicState::default()
        .with_topic_name(topic_name(&office.topic))
        .with_topic_id(office.topic_id)
        .with_partition_states(vec![state]);
    UpdateMetadataRequest::default()
        .with_controller_id(BrokerId(ID))
        .with_controller_epoch(EPOCH)
        .with_broker_epoch(broker_epoch)
        .with_topic_states(vec![topic])
        .with_live_brokers(brokers.collect())
}

/// Who leads and who follows.
pub(super) fn leader_and_isr(
    office: &Office,
    leadership: &Leadership,
    places: &BTreeMap<i32, Place>,
    broker_epoch: i64,
) -> LeaderAndIsrRequest {
    let state = LeaderAndIsrPartitionState::default()
        .with_partition_index(0)
        .with_controller_epoch(EPOCH)
        .with_leader(BrokerId(leadership.leader))
        .with_leader_epoch(leadership.leader_epoch)
        .with_isr(ids(&leadership.isr))
        .with_partition_epoch(leadership.partition_epoch)
        .with_replicas(ids(&office.replicas));
    let topic = LeaderAndIsrTopicState::default()
        .with_topic_name(topic_name(&office.topic))
        .with_topic_id(office.topic_id)
        .with_partition_states(vec![state]);
    let live = places.get(&leadership.leader).map(|place| {
        LeaderAndIsrLiveLeader::default()
            .with_broker_id(BrokerId(leadership.leader))
            .with_host_name(host())
            .with_port(i32::from(place.advertised_port))
    });
    LeaderAndIsrRequest::default()
        .with_controller_id(BrokerId(ID))
        .with_controller_epoch(EPOCH)
        .with_broker_epoch(broker_epoch)
        .with_topic_states(vec![topic])
        .with_live_leaders(live.into_iter().collect())
}

/// Answers the requests of one connection until it ends.
pub(super) fn serve(client: &TcpStream, office: &Office) {
    // However it ends: the broker connects again.
    while answer_next(client, office).is_ok() {}
}

fn answer_next(mut client: &TcpStream, office: &Office) -> Result<()> {
    let mut size = [0; 4];
    client.read_exact(&mut size)?;
    let mut frame = vec![0; usize::try_from(i32::from_be_bytes(size))?];
    client.read_exact(&mut frame)?;
    let mut frame = Bytes::from(frame);
    let key = frame.get(..2).context("a short frame")?.get_i16();
    let version = frame.get(2..4).context("a short frame")?.get_i16();
    let header_version = match key {
        API_VERSIONS => kafka_protocol::messages::ApiVersionsRequest::header_version(version),
        ALTER_PARTITION => AlterPartitionRequest::header_version(version),
        _ => bail!("key {key}"),
    };
    let header = RequestHeader::decode(&mut frame, header_version)?;
    let response = ResponseHeader::default().with_correlation_id(header.correlation_id);
    let mut bytes = BytesMut::new();
    if key == API_VERSIONS {
        response.encode(&mut bytes, ApiVersionsResponse::header_version(version))?;
        versions().encode(&mut bytes, version)?;
    } else {
        let request = AlterPartitionRequest::decode(&mut frame, version)?;
        response.encode(&mut bytes, AlterPartitionResponse::header_version(version))?;
        alter(office, &request, version).encode(&mut bytes, version)?;
    }
    client.write_all(&i32::try_from(bytes.len())?.to_be_bytes())?;
    Ok(client.write_all(&bytes)?)
}

fn versions() -> ApiVersionsResponse {
    let version =
        |key, newest| ApiVersion::default().with_api_key(key).with_min_version(0).with_max_version(newest);
    ApiVersionsResponse::default()
        .with_api_keys(vec![version(API_VERSIONS, 3), version(ALTER_PARTITION, ALTER_PARTITION_VERSION)])
}

fn alter(office: &Office, request: &AlterPartitionRequest, version: i16) -> AlterPartitionResponse {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|wish| grant(office, wish, version)).collect();
        TopicData::default()
            .with_topic_name(topic.topic_name.clone())
            .with_topic_id(topic.topic_id)
            .with_partitions(partitions)
    });
    AlterPartitionResponse::default().with_topics(topics.collect())
}

fn grant(office: &Office, wish: &Wish, version: i16) -> Granted {
    let isr: Vec<i32> = if version >= 3 {
        wish.new_isr_with_epochs.iter().map(|broker| broker.broker_id.0).collect()
    } else {
        wish.new_isr.iter().map(|id| id.0).collect()
    };
    let answer = Granted::default().with_partition_index(wish.partition_index);
    let refused = answer.clone().with_error_code(INVALID_UPDATE_VERSION);
    if !office.granting.load(Ordering::SeqCst) {
        return refused;
    }
    match office.change_isr((wish.leader_epoch, wish.partition_epoch), &isr) {
        Err(_) => refused,
        Ok(granted) => answer
            .with_leader_id(BrokerId(granted.leader))
            .with_leader_epoch(granted.leader_epoch)
            .with_isr(ids(&granted.isr))
            .with_partition_epoch(granted.partition_epoch),
    }
}
