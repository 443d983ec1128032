//! Details of answers that a comparison with a real Kafka brought up.

use bytes::Bytes;
use wire::Str;
use wire::batch::{BatchBuilder, Compression};
use wire::error_code::ErrorCode;
use wire::messages::create_partitions_request::CreatePartitionsTopic;
use wire::messages::create_topics_request::CreatableTopic;
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::fetch_request::{FetchPartition, FetchTopic};
use wire::messages::fetch_response::PartitionData;
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::produce_response::PartitionProduceResponse;
use wire::messages::{
    ApiVersionsRequest, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, FetchRequest, MetadataRequest,
};
use wire::types::{Millis, TopicId};

use crate::harness::{Node, produce_request};

fn batch() -> Bytes {
    BatchBuilder::new(Compression::None).append(Millis(1_000), None, Some(b"value")).build().unwrap().bytes
}

fn produced(node: &Node, topic: &str, partition: i32, acks: i16, records: Bytes) -> PartitionProduceResponse {
    let response = node.call(9, &produce_request(topic, partition, records, acks));
    response.responses[0].partition_responses[0].clone()
}

fn fetched(node: &Node, version: i16, topic: &str, partition: FetchPartition) -> PartitionData {
    let topic = FetchTopic { topic: Str::from(topic), partitions: vec![partition], ..FetchTopic::default() };
    let request = FetchRequest { topics: vec![topic], ..FetchRequest::default() };
    node.call(version, &request).responses[0].partitions[0].clone()
}

fn at(partition: i32, offset: i64) -> FetchPartition {
    FetchPartition {
        partition,
        fetch_offset: offset,
        partition_max_bytes: 1_000,
        ..FetchPartition::default()
    }
}

#[test]
fn a_partition_that_does_not_exist_is_told_before_wrong_acks() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let code = |partition| produced(&node, "t", partition, 5, batch()).error_code;
    assert_eq!(code(1), ErrorCode::UnknownTopicOrPartition.code());
    assert_eq!(code(0), ErrorCode::InvalidRequiredAcks.code());
}

#[test]
fn the_start_of_the_log_is_told_with_invalid_records_but_not_with_corrupt_ones() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("cleanup.policy", "compact")]);
    let invalid = produced(&node, "t", 0, 1, batch());
    assert_eq!((invalid.error_code, invalid.log_start_offset), (ErrorCode::InvalidRecord.code(), 0));
    let mut bytes = batch().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let corrupt = produced(&node, "t", 0, 1, Bytes::from(bytes));
    assert_eq!((corrupt.error_code, corrupt.log_start_offset), (ErrorCode::CorruptMessage.code(), -1));
}

#[test]
fn a_topic_of_zstd_is_not_for_consumers_that_do_not_know_it() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("compression.type", "zstd")]);
    produced(&node, "t", 0, 1, batch());
    let old = fetched(&node, 9, "t", at(0, 0));
    assert_eq!((old.error_code, old.high_watermark), (ErrorCode::UnsupportedCompressionType.code(), -1));
    assert_eq!(old.aborted_transactions, Some(Vec::new()));
    let new = fetched(&node, 10, "t", at(0, 0));
    assert_eq!((new.error_code, new.high_watermark), (0, 1));
    assert!(!new.records.unwrap().is_empty());
}

#[test]
fn a_fetch_reads_negative_epochs_as_none() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let asked = |current_leader_epoch| FetchPartition { current_leader_epoch, ..at(0, 0) };
    assert_eq!(fetched(&node, 11, "t", asked(-2)).error_code, 0);
    assert_eq!(fetched(&node, 11, "t", asked(1)).error_code, ErrorCode::UnknownLeaderEpoch.code());
}

#[test]
fn a_name_that_stands_twice_is_refused_twice() {
    let node = Node::start(&[]);
    let topic = CreatableTopic {
        name: Str::from("t"),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let create = |topics, timeout_ms| {
        node.call(7, &CreateTopicsRequest { topics, timeout_ms, validate_only: false }).topics
    };
    let refused = create(vec![topic.clone(), topic.clone()], 60_000);
    let codes: Vec<_> = refused.iter().map(|it| it.error_code).collect();
    assert_eq!(codes, [ErrorCode::InvalidRequest.code(); 2]);
    let created = create(vec![topic.clone()], 60_000);
    assert_eq!((created[0].error_code, &created[0].error_message), (0, &None));
    // Who does not wait learns the id all the same.
    let hasty = create(vec![CreatableTopic { name: Str::from("hasty"), ..topic }], 0);
    assert_eq!(hasty[0].error_code, ErrorCode::RequestTimedOut.code());
    assert_ne!(hasty[0].topic_id, TopicId::ZERO);
}

#[test]
fn the_id_of_a_deleted_topic_is_told_to_those_who_gave_it() {
    let node = Node::start(&[]);
    node.create_topic("by-name", 1, &[]);
    node.create_topic("by-id", 1, &[]);
    let id = id_of(&node, "by-id");
    let delete = |name: Option<&str>, topic_id| {
        let topics = vec![DeleteTopicState { name: name.map(Str::from), topic_id }];
        let request = DeleteTopicsRequest { topics, timeout_ms: 60_000, ..DeleteTopicsRequest::default() };
        node.call(6, &request).responses[0].clone()
    };
    let by_name = delete(Some("by-name"), TopicId::ZERO);
    assert_eq!((by_name.error_code, by_name.topic_id), (0, TopicId::ZERO));
    let by_id = delete(None, id);
    assert_eq!((by_id.error_code, by_id.topic_id, by_id.name), (0, id, Some(Str::from("by-id"))));
    assert_eq!(delete(None, TopicId::ZERO).error_code, ErrorCode::TopicAuthorizationFailed.code());
}

fn id_of(node: &Node, name: &str) -> TopicId {
    metadata(node, name, false).0
}

/// A topic's id, and what its operations are told to be.
fn metadata(node: &Node, name: &str, operations: bool) -> (TopicId, i32) {
    let topic = MetadataRequestTopic { name: Some(Str::from(name)), ..MetadataRequestTopic::default() };
    let request = MetadataRequest {
        topics: Some(vec![topic]),
        allow_auto_topic_creation: false,
        include_topic_authorized_operations: operations,
        ..MetadataRequest::default()
    };
    let topic = node.call(12, &request).topics.remove(0);
    (topic.topic_id, topic.topic_authorized_operations)
}

#[test]
fn what_may_be_done_with_a_topic_is_told_of_unknown_ones_too() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let (known, unknown) = (metadata(&node, "t", true).1, metadata(&node, "nobody", true).1);
    assert_eq!((known, unknown), (0x0df8, 0x0df8));
    assert_eq!(metadata(&node, "nobody", false).1, i32::MIN);
}

#[test]
fn the_features_of_a_new_cluster_are_finalized_at_epoch_0() {
    let node = Node::start(&[]);
    let request = ApiVersionsRequest {
        client_software_name: Str::from("test"),
        client_software_version: Str::from("1"),
    };
    assert_eq!(node.call(3, &request).finalized_features_epoch, 0);
    let node = node.restart(&[]);
    assert_eq!(node.call(3, &request).finalized_features_epoch, 0);
}

#[test]
fn a_refused_description_of_the_cluster_names_the_usual_endpoints() {
    let node = Node::start(&[]);
    let request = DescribeClusterRequest { endpoint_type: 2, ..DescribeClusterRequest::default() };
    let refused = node.call(1, &request);
    assert_eq!((refused.error_code, refused.endpoint_type), (ErrorCode::MismatchedEndpointType.code(), 1));
}

#[test]
fn a_number_of_partitions_that_nobody_could_serve_is_refused() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    for count in [200_002, i32::MAX] {
        let topic = CreatableTopic {
            name: Str::from("vast"),
            num_partitions: count,
            replication_factor: 1,
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
        assert_eq!(node.call(7, &request).topics[0].error_code, ErrorCode::InvalidPartitions.code());
        let topics = vec![CreatePartitionsTopic { name: Str::from("t"), count, assignments: None }];
        let request = CreatePartitionsRequest { topics, ..CreatePartitionsRequest::default() };
        assert_eq!(node.call(3, &request).results[0].error_code, ErrorCode::InvalidPartitions.code());
    }
}
