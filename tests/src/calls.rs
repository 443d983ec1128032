//! Calls that suites make again and again: topics, end offsets, raw produce and fetch.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, DeleteRecordsRequest, DeleteTopicsRequest, FetchRequest,
    IncrementalAlterConfigsRequest, InitProducerIdRequest, ListOffsetsRequest, MetadataRequest,
    ProduceRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::raw::Connection;
use crate::wait;

/// How long a broker may take until a partition serves.
pub const SERVE_LIMIT: Duration = Duration::from_secs(60);

/// UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER: what a client asks again after.
pub const NOT_YET: [i16; 3] = [3, 5, 6];

/// A topic name for the crate `kafka-protocol`.
#[must_use]
pub fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

/// A `CreateTopics` request for one topic with replication factor 1.
#[must_use]
pub fn create_topics_request(topic: &str, partitions: i32, configs: &[(&str, &str)]) -> CreateTopicsRequest {
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    let configs = configs
        .iter()
        .map(|(key, value)| {
            CreatableTopicConfig::default().with_name(text(key)).with_value(Some(text(value)))
        })
        .collect();
    let topic = CreatableTopic::default()
        .with_name(topic_name(topic))
        .with_num_partitions(partitions)
        .with_replication_factor(1)
        .with_configs(configs);
    CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(120_000)
}

/// Creates a topic and waits until all its partitions have a leader.
///
/// # Errors
/// When the broker refuses.
pub fn create_topic(bootstrap: &str, topic: &str, partitions: i32, configs: &[(&str, &str)]) -> Result<()> {
    let mut connection = Connection::open(bootstrap)?;
    let response = connection.call(4, &create_topics_request(topic, partitions, configs))?;
    let answer = response.topics.first().context("no topic in the answer")?;
    ensure!(answer.error_code == 0, "CreateTopics: {answer:?}");
    wait_for_leaders(bootstrap, topic, usize::try_from(partitions)?)
}

/// Sets one config of a topic.
///
/// # Errors
/// When the broker refuses.
pub fn set_topic_config(bootstrap: &str, topic: &str, key: &str, value: &str) -> Result<()> {
    const TOPIC: i8 = 2;
    alter_configs(bootstrap, TOPIC, topic, &[(key, Some(value))])
}

/// Sets dynamic configs of the broker at `bootstrap`, and deletes those without a value, all at once.
///
/// # Errors
/// When the broker refuses.
pub fn alter_broker(bootstrap: &str, id: i32, changes: &[(&str, Option<&str>)]) -> Result<()> {
    const BROKER: i8 = 4;
    alter_configs(bootstrap, BROKER, &id.to_string(), changes)
}

fn alter_configs(bootstrap: &str, kind: i8, name: &str, changes: &[(&str, Option<&str>)]) -> Result<()> {
    const SET: i8 = 0;
    const DELETE: i8 = 1;
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    let configs = changes.iter().map(|(key, value)| {
        AlterableConfig::default()
            .with_name(text(key))
            .with_config_operation(if value.is_some() { SET } else { DELETE })
            .with_value(value.map(text))
    });
    let resource = AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configs(configs.collect());
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let response = Connection::open(bootstrap)?.call(1, &request)?;
    let answer = response.responses.first().context("no resource in the answer")?;
    ensure!(answer.error_code == 0, "IncrementalAlterConfigs: {answer:?}");
    Ok(())
}

/// Waits until `topic` has `partitions` partitions with a leader each.
///
/// # Errors
/// When that does not happen in time.
pub fn wait_for_leaders(bootstrap: &str, topic: &str, partitions: usize) -> Result<()> {
    let mut connection = Connection::open(bootstrap)?;
    wait::until(&format!("leaders of {topic}"), SERVE_LIMIT, || {
        let described = describe_topic(&mut connection, topic)?;
        let led = described.partitions.iter().filter(|p| p.leader_id.0 >= 0).count();
        Ok((described.error_code == 0 && led == partitions).then_some(()))
    })
}

/// What `Metadata` says of a topic, without creating it.
///
/// # Errors
/// When no answer comes.
pub fn describe_topic(connection: &mut Connection, topic: &str) -> Result<MetadataResponseTopic> {
    let topic = MetadataRequestTopic::default().with_name(Some(topic_name(topic)));
    let request =
        MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(false);
    let response = connection.call(10, &request)?;
    response.topics.into_iter().next().context("no topic in the answer")
}

/// Deletes a topic.
///
/// # Errors
/// When the broker refuses.
pub fn delete_topic(bootstrap: &str, topic: &str) -> Result<()> {
    let request =
        DeleteTopicsRequest::default().with_topic_names(vec![topic_name(topic)]).with_timeout_ms(60_000);
    let response = Connection::open(bootstrap)?.call(3, &request)?;
    let answer = response.responses.first().context("no topic in the answer")?;
    ensure!(answer.error_code == 0, "DeleteTopics: {answer:?}");
    Ok(())
}

/// The timestamp that asks for the latest offset.
pub const LATEST: i64 = -1;

/// Asks the leader of this epoch, or of any (-1), for the offset for a timestamp.
#[must_use]
pub fn list_offsets_request(
    topic: &str,
    partition: i32,
    timestamp: i64,
    leader_epoch: i32,
) -> ListOffsetsRequest {
    let partition = ListOffsetsPartition::default()
        .with_partition_index(partition)
        .with_current_leader_epoch(leader_epoch)
        .with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic])
}

/// The offset for a timestamp, -1 (latest) and -2 (earliest) included.
///
/// # Errors
/// When the partition does not serve in time, or answers with an error.
pub fn offset_at(bootstrap: &str, topic: &str, partition: usize, timestamp: i64) -> Result<i64> {
    let request = list_offsets_request(topic, i32::try_from(partition)?, timestamp, -1);
    wait::until("an answer of ListOffsets", SERVE_LIMIT, || {
        let response = Connection::open(bootstrap)?.call(1, &request)?;
        let answer = response.topics.first().and_then(|t| t.partitions.first()).context("an empty answer")?;
        match answer.error_code {
            0 => Ok(Some(answer.offset)),
            code if NOT_YET.contains(&code) => Ok(None),
            code => bail!("ListOffsets: error {code}"),
        }
    })
}

/// The offset after the last record that a consumer sees.
///
/// # Errors
/// As [`offset_at`].
pub fn end_offset(bootstrap: &str, topic: &str, partition: usize) -> Result<i64> {
    offset_at(bootstrap, topic, partition, -1)
}

/// Deletes the records of a partition before `offset`.
///
/// # Errors
/// When the broker refuses.
pub fn delete_records(bootstrap: &str, topic: &str, partition: i32, offset: i64) -> Result<()> {
    let partition = DeleteRecordsPartition::default().with_partition_index(partition).with_offset(offset);
    let topic = DeleteRecordsTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000);
    let response = Connection::open(bootstrap)?.call(1, &request)?;
    let answer = response.topics.first().and_then(|t| t.partitions.first()).context("an empty answer")?;
    ensure!((answer.error_code, answer.low_watermark) == (0, offset), "DeleteRecords: {answer:?}");
    Ok(())
}

/// A `Produce` request with one batch for one partition.
#[must_use]
pub fn produce_request(topic: &str, partition: i32, batch: Bytes, acks: i16) -> ProduceRequest {
    let partition = PartitionProduceData::default().with_index(partition).with_records(Some(batch));
    let topic = TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![partition]);
    ProduceRequest::default().with_acks(acks).with_timeout_ms(30_000).with_topic_data(vec![topic])
}

/// Produces one batch with acks -1 and returns the partition's answer.
///
/// # Errors
/// When no well-formed answer comes.
pub fn produce(
    connection: &mut Connection,
    topic: &str,
    partition: i32,
    batch: Bytes,
) -> Result<PartitionProduceResponse> {
    let response = connection.call(9, &produce_request(topic, partition, batch, -1))?;
    let topic = response.responses.into_iter().next().context("no topic in the answer")?;
    topic.partition_responses.into_iter().next().context("no partition in the answer")
}

/// A new producer id and its epoch.
///
/// # Errors
/// When the broker gives none in time.
pub fn init_producer_id(connection: &mut Connection) -> Result<(i64, i16)> {
    wait::until("a producer id", SERVE_LIMIT, || ask_producer_id(connection))
}

/// A new producer id and its epoch; none while the broker has none to give.
///
/// # Errors
/// When the broker refuses or does not answer.
pub fn ask_producer_id(connection: &mut Connection) -> Result<Option<(i64, i16)>> {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(60_000)
        .with_producer_id((-1).into())
        .with_producer_epoch(-1);
    let response = connection.call(4, &request)?;
    match response.error_code {
        0 => Ok(Some((response.producer_id.0, response.producer_epoch))),
        // COORDINATOR_LOAD_IN_PROGRESS: ids are being had.
        14 => Ok(None),
        code => bail!("InitProducerId: error {code}"),
    }
}

/// A `Fetch` request for one partition, without a session.
#[must_use]
pub fn fetch_request(topic: &str, partition: i32, offset: i64, max_bytes: i32) -> FetchRequest {
    fetch_request_in(-1, topic, partition, offset, max_bytes)
}

/// A fetch that a leader of another epoch refuses; -1 is any.
pub fn fetch_request_in(
    leader_epoch: i32,
    topic: &str,
    partition: i32,
    offset: i64,
    max_bytes: i32,
) -> FetchRequest {
    let partition = FetchPartition::default()
        .with_partition(partition)
        .with_fetch_offset(offset)
        .with_current_leader_epoch(leader_epoch)
        .with_partition_max_bytes(max_bytes);
    let topic = FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![partition]);
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(100)
        .with_min_bytes(1)
        .with_max_bytes(i32::MAX)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

/// Reads the bytes of all batches from `offset` up to the end.
///
/// # Errors
/// When the broker answers with an error, or with bytes that are no batches.
pub fn fetch_all(bootstrap: &str, topic: &str, partition: usize, offset: i64) -> Result<Vec<Bytes>> {
    let end = end_offset(bootstrap, topic, partition)?;
    let mut connection = Connection::open(bootstrap)?;
    let (mut next, mut batches) = (offset, Vec::new());
    while next < end {
        let request = fetch_request(topic, i32::try_from(partition)?, next, 1 << 20);
        // A real Kafka that has just started may know the log before it knows the topic.
        let records = wait::until("an answer of Fetch", SERVE_LIMIT, || {
            let response = connection.call(11, &request)?;
            let answer = response.responses.first().and_then(|t| t.partitions.first());
            let answer = answer.context("an empty answer")?;
            match answer.error_code {
                0 => Ok(Some(answer.records.clone().unwrap_or_default())),
                code if NOT_YET.contains(&code) => Ok(None),
                code => bail!("Fetch at {next}: error {code}"),
            }
        })?;
        let got = whole_batches(records);
        let last = got.last().with_context(|| format!("nothing at {next} of {end}"))?;
        next = last_offset(last)? + 1;
        batches.extend(got);
    }
    Ok(batches)
}

/// Splits what a fetch returned; a batch that was cut off at the end is left out.
#[must_use]
pub fn whole_batches(mut bytes: Bytes) -> Vec<Bytes> {
    let mut batches = Vec::new();
    while let Some(size) = bytes.get(8..12) {
        let size = size.try_into().map(u32::from_be_bytes).unwrap_or(u32::MAX);
        let whole = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(12);
        if whole > bytes.len() {
            break;
        }
        batches.push(bytes.split_to(whole));
    }
    batches
}

/// The offset of a batch's last record.
///
/// # Errors
/// When the bytes end before the header does.
pub fn last_offset(batch: &[u8]) -> Result<i64> {
    let base = batch.get(..8).context("a short batch")?.try_into().map(i64::from_be_bytes)?;
    let delta = batch.get(23..27).context("a short batch")?.try_into().map(i32::from_be_bytes)?;
    Ok(base + i64::from(delta))
}

/// The bytes of all batches in one piece.
#[must_use]
pub fn joined(batches: &[Bytes]) -> Bytes {
    let mut all = BytesMut::new();
    for batch in batches {
        all.extend_from_slice(batch);
    }
    all.freeze()
}
