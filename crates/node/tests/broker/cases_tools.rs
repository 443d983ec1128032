//! What the cases share: batches with chosen faults, and requests cut down to one partition.

use bytes::Bytes;
use wire::Str;
use wire::batch::{Batch, BatchBuilder, BatchHeader, Compression, HEADER_LEN, LOG_OVERHEAD, Limits, batches};
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::fetch_request::{FetchPartition, FetchTopic};
use wire::messages::fetch_response::PartitionData;
use wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::produce_response::PartitionProduceResponse;
use wire::messages::{
    DeleteRecordsRequest, DeleteTopicsRequest, FetchRequest, IncrementalAlterConfigsRequest,
    ListOffsetsRequest, MetadataRequest,
};
use wire::types::{LeaderEpoch, Millis, Offset, TopicId};

use crate::harness::{Node, produce_request};

/// The codecs, each at its default.
pub(crate) const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip { level: 6 },
    Compression::Snappy,
    Compression::Lz4 { level: 9 },
    Compression::Zstd { level: 3 },
];

/// The machine's clock, in milliseconds.
pub(crate) fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_millis().try_into().unwrap()
}

/// A batch of keyed records with these timestamps and values that number them.
pub(crate) fn stamped(codec: Compression, timestamps: &[i64]) -> Batch {
    let mut builder = BatchBuilder::new(codec);
    for (at, timestamp) in timestamps.iter().enumerate() {
        builder.append(Millis(*timestamp), Some(b"key"), Some(at.to_string().as_bytes()));
    }
    builder.build().unwrap()
}

/// `count` small records of the present.
pub(crate) fn good(count: usize) -> Bytes {
    stamped(Compression::None, &vec![now_ms(); count]).bytes
}

/// One record of `size` bytes, the batch's header included.
pub(crate) fn sized(size: usize) -> Bytes {
    let build = |len: usize| {
        BatchBuilder::new(Compression::None)
            .append(Millis(now_ms()), None, Some(&vec![7; len]))
            .build()
            .unwrap()
            .bytes
    };
    // The length fields of a record grow with it.
    let overhead = build(size - HEADER_LEN - 10).len() - (size - HEADER_LEN - 10);
    let bytes = build(size - overhead);
    assert_eq!(bytes.len(), size);
    bytes
}

/// `batch` with header fields changed, its length and checksum made right again.
pub(crate) fn forged(batch: &Batch, change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    forged_body(batch, change, batch.body())
}

/// As [`forged`], with another body.
pub(crate) fn forged_body(batch: &Batch, change: impl FnOnce(&mut BatchHeader), body: &[u8]) -> Bytes {
    let mut header = batch.header;
    change(&mut header);
    header.batch_length = i32::try_from(HEADER_LEN - LOG_OVERHEAD + body.len()).unwrap();
    header.crc = header.compute_crc(body);
    [&header.to_bytes(), body].concat().into()
}

/// Produces to partition 0 with acks -1; gives all that is answered.
pub(crate) fn produced(node: &Node, version: i16, topic: &str, records: Bytes) -> PartitionProduceResponse {
    let response = node.call(version, &produce_request(topic, 0, records, -1));
    response.responses[0].partition_responses[0].clone()
}

/// A fetch that does not wait.
pub(crate) fn fetch(topic: &str, partitions: &[(i32, i64)], max_bytes: i32) -> FetchRequest {
    let partitions = partitions.iter().map(|(partition, fetch_offset)| FetchPartition {
        partition: *partition,
        fetch_offset: *fetch_offset,
        partition_max_bytes: max_bytes,
        ..FetchPartition::default()
    });
    let topic =
        FetchTopic { topic: Str::from(topic), partitions: partitions.collect(), ..FetchTopic::default() };
    FetchRequest { topics: vec![topic], ..FetchRequest::default() }
}

/// What is answered for partition 0, asked at `offset`.
pub(crate) fn fetched(node: &Node, version: i16, topic: &str, offset: i64) -> PartitionData {
    let response = node.call(version, &fetch(topic, &[(0, offset)], 1 << 26));
    response.responses[0].partitions[0].clone()
}

/// The batches of an answer.
pub(crate) fn batches_of(partition: &PartitionData) -> Vec<Batch> {
    batches(partition.records.clone().unwrap()).map(Result::unwrap).collect()
}

/// Offsets and timestamps of all records from the first on.
pub(crate) fn all_records(node: &Node, topic: &str) -> Vec<(i64, i64)> {
    let mut all = Vec::new();
    let mut offset = 0;
    loop {
        let partition = fetched(node, 12, topic, offset);
        assert_eq!(partition.error_code, 0);
        let batches = batches_of(&partition);
        let Some(last) = batches.last() else { return all };
        offset = last.header.next_offset().0;
        for batch in &batches {
            batch.verify_crc().unwrap();
            let records = batch.records(Limits::default()).map(Result::unwrap);
            all.extend(records.map(|record| (record.offset.0, record.timestamp.0)));
        }
    }
}

/// Error, timestamp, offset and leader epoch that ListOffsets tells for partition 0.
pub(crate) fn listed(
    node: &Node,
    version: i16,
    topic: &str,
    timestamp: i64,
    isolation_level: i8,
) -> (i16, i64, i64, i32) {
    listed_in(node, version, topic, 0, timestamp, isolation_level)
}

/// As [`listed`], for any partition.
pub(crate) fn listed_in(
    node: &Node,
    version: i16,
    topic: &str,
    partition_index: i32,
    timestamp: i64,
    isolation_level: i8,
) -> (i16, i64, i64, i32) {
    let partition = ListOffsetsPartition { partition_index, timestamp, ..ListOffsetsPartition::default() };
    let topic = ListOffsetsTopic { name: Str::from(topic), partitions: vec![partition] };
    let request = ListOffsetsRequest { replica_id: -1, isolation_level, topics: vec![topic] };
    let it = node.call(version, &request).topics[0].partitions[0].clone();
    (it.error_code, it.timestamp, it.offset, it.leader_epoch)
}

/// The marker that ends a transaction of producer `producer_id`, at `offset`.
pub(crate) fn marker(offset: i64, producer_id: i64, commit: bool) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None)
        .base_offset(Offset(offset))
        .leader_epoch(LeaderEpoch(0))
        .producer(producer_id, 0, -1)
        .transactional(true)
        .control(true);
    // Version and kind; version and coordinator epoch.
    let key = [0, 0, 0, u8::from(commit)];
    builder.append(Millis(now_ms()), Some(&key), Some(&[0; 6]));
    builder.build().unwrap().bytes
}

/// The end of partition 0.
pub(crate) fn end_offset(node: &Node, topic: &str) -> i64 {
    listed(node, 7, topic, -1, 0).2
}

/// Sets one config of a topic.
pub(crate) fn set_topic_config(node: &Node, topic: &str, key: &str, value: &str) {
    let config = AlterableConfig { name: Str::from(key), config_operation: 0, value: Some(Str::from(value)) };
    let resource =
        AlterConfigsResource { resource_type: 2, resource_name: Str::from(topic), configs: vec![config] };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    assert_eq!(node.call(1, &request).responses[0].error_code, 0);
}

/// Deletes the records of partition 0 below `offset`; gives error and low watermark.
pub(crate) fn delete_records(node: &Node, topic: &str, offset: i64) -> (i16, i64) {
    let partition = DeleteRecordsPartition { partition_index: 0, offset };
    let topic = DeleteRecordsTopic { name: Str::from(topic), partitions: vec![partition] };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 1_000 };
    let it = node.call(2, &request).topics[0].partitions[0].clone();
    (it.error_code, it.low_watermark)
}

/// The id of a topic.
pub(crate) fn topic_id(node: &Node, name: &str) -> TopicId {
    let topic = MetadataRequestTopic { name: Some(Str::from(name)), ..MetadataRequestTopic::default() };
    let request = MetadataRequest { topics: Some(vec![topic]), ..MetadataRequest::default() };
    node.call(12, &request).topics[0].topic_id
}

/// Deletes a topic.
pub(crate) fn delete_topic(node: &Node, name: &str) {
    let topics = vec![DeleteTopicState { name: Some(Str::from(name)), topic_id: TopicId::ZERO }];
    let request = DeleteTopicsRequest { topics, timeout_ms: 60_000, ..DeleteTopicsRequest::default() };
    assert_eq!(node.call(6, &request).responses[0].error_code, 0);
}
