//! Topics: creation, deletion, more partitions, auto-creation, what Metadata tells.

use std::time::Instant;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::create_partitions_request::CreatePartitionsTopic;
use wire::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeClusterRequest, FetchResponse,
    MetadataRequest, MetadataResponse,
};

use crate::harness::{Node, PATIENCE, answer, frame};
use crate::records::{batch, fetch_request, values};

fn metadata(node: &Node, version: i16, name: &str, create: bool) -> MetadataResponse {
    let topic = MetadataRequestTopic { name: Some(Str::from(name)), ..MetadataRequestTopic::default() };
    let request = MetadataRequest {
        topics: Some(vec![topic]),
        allow_auto_topic_creation: create,
        ..MetadataRequest::default()
    };
    node.call(version, &request)
}

fn create(node: &Node, topic: CreatableTopic) -> (i16, Option<Str>) {
    let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
    let it = node.call(7, &request).topics[0].clone();
    (it.error_code, it.error_message)
}

fn topic(name: &str, num_partitions: i32, replication_factor: i16) -> CreatableTopic {
    CreatableTopic { name: Str::from(name), num_partitions, replication_factor, ..CreatableTopic::default() }
}

#[test]
fn a_created_topic_is_led_here_and_stays_with_its_id_after_a_restart() {
    let node = Node::start(&[]);
    node.create_topic("t", 3, &[]);
    let before = metadata(&node, 12, "t", false);
    let it = &before.topics[0];
    assert_eq!((it.error_code, it.partitions.len()), (0, 3));
    assert!(it.partitions.iter().all(|p| p.leader_id == 0 && p.leader_epoch == 0 && p.isr_nodes == [0]));
    let node = node.restart(&[]);
    let after = metadata(&node, 12, "t", false);
    assert_eq!(after.topics, before.topics);
    assert_eq!(after.cluster_id, before.cluster_id);
}

#[test]
fn a_topic_that_a_client_asks_for_comes_into_being_unless_forbidden() {
    let node = Node::start(&[]);
    assert_eq!(metadata(&node, 9, "wanted", true).topics[0].error_code, ErrorCode::LeaderNotAvailable.code());
    let deadline = Instant::now() + PATIENCE;
    while metadata(&node, 9, "wanted", true).topics[0].error_code != 0 {
        assert!(Instant::now() < deadline);
    }
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    assert_eq!(metadata(&node, 9, "unwanted", false).topics[0].error_code, unknown);
    assert_eq!(metadata(&node, 9, "a b", true).topics[0].error_code, ErrorCode::InvalidTopicException.code());
    let node = node.restart(&[("auto.create.topics.enable", "false")]);
    assert_eq!(metadata(&node, 9, "unwanted", true).topics[0].error_code, unknown);
}

#[test]
fn null_means_all_topics_and_an_empty_list_none_but_for_the_first_version() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let count = |version, topics| {
        node.call(version, &MetadataRequest { topics, ..MetadataRequest::default() }).topics.len()
    };
    assert_eq!((count(1, None), count(1, Some(Vec::new())), count(0, Some(Vec::new()))), (1, 0, 1));
}

#[test]
fn a_topic_is_found_by_id_in_version_12_only() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let id = metadata(&node, 12, "t", false).topics[0].topic_id;
    let by_id = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic { topic_id: id, name: None }]),
        ..MetadataRequest::default()
    };
    assert_eq!(node.call(12, &by_id).topics[0].name.as_deref(), Some("t"));
    assert_eq!(node.call(11, &by_id).topics[0].error_code, ErrorCode::InvalidRequest.code());
}

#[test]
fn each_illegal_topic_gets_its_own_error() {
    let node = Node::start(&[]);
    node.create_topic("a.b", 1, &[]);
    let code = |topic| create(&node, topic).0;
    assert_eq!(code(topic("a.b", 1, 1)), ErrorCode::TopicAlreadyExists.code());
    assert_eq!(code(topic("a_b", 1, 1)), ErrorCode::InvalidTopicException.code());
    assert_eq!(code(topic("a b", 1, 1)), ErrorCode::InvalidTopicException.code());
    assert_eq!(code(topic("x", 0, 1)), ErrorCode::InvalidPartitions.code());
    assert_eq!(code(topic("x", 1, 2)), ErrorCode::InvalidReplicationFactor.code());
    assert_eq!(code(topic("__cluster_metadata", 1, 1)), ErrorCode::InvalidRequest.code());
    let assigned = |ids: &[i32]| CreatableReplicaAssignment { partition_index: 1, broker_ids: ids.to_vec() };
    let gap = CreatableTopic { assignments: vec![assigned(&[0])], ..topic("x", -1, -1) };
    assert_eq!(code(gap), ErrorCode::InvalidReplicaAssignment.code());
}

#[test]
fn a_deleted_topic_is_gone_and_its_name_can_be_used_again() {
    let node = Node::start(&[]);
    node.create_topic("t", 2, &[]);
    let id = metadata(&node, 12, "t", false).topics[0].topic_id;
    let by_id = DeleteTopicState { name: None, topic_id: id };
    let request =
        DeleteTopicsRequest { topics: vec![by_id], timeout_ms: 5_000, ..DeleteTopicsRequest::default() };
    let result = node.call(6, &request).responses[0].clone();
    assert_eq!((result.error_code, result.name.as_deref()), (0, Some("t")));
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    assert_eq!(metadata(&node, 12, "t", false).topics[0].error_code, unknown);
    node.create_topic("t", 1, &[]);
    assert_ne!(metadata(&node, 12, "t", false).topics[0].topic_id, id);
    let node = node.restart(&[]);
    assert_eq!(metadata(&node, 12, "t", false).topics[0].partitions.len(), 1);
}

#[test]
fn partitions_are_added_and_never_taken_away() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let grow = |count| {
        let topic = CreatePartitionsTopic { name: Str::from("t"), count, assignments: None };
        let request =
            CreatePartitionsRequest { topics: vec![topic], timeout_ms: 5_000, validate_only: false };
        node.call(3, &request).results[0].error_code
    };
    assert_eq!(grow(3), 0);
    assert_eq!(
        (grow(3), grow(2)),
        (ErrorCode::InvalidPartitions.code(), ErrorCode::InvalidPartitions.code())
    );
    assert_eq!(metadata(&node, 12, "t", false).topics[0].partitions.len(), 3);
}

#[test]
fn the_cluster_is_described() {
    let node = Node::start(&[]);
    let response =
        node.call(1, &DescribeClusterRequest { endpoint_type: 1, ..DescribeClusterRequest::default() });
    assert_eq!((response.controller_id, response.brokers[0].port), (0, 9092));
    let response =
        node.call(1, &DescribeClusterRequest { endpoint_type: 2, ..DescribeClusterRequest::default() });
    assert_eq!(response.error_code, ErrorCode::MismatchedEndpointType.code());
}

#[test]
fn a_fetch_that_waits_is_woken_though_its_topic_has_grown_meanwhile() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let waiting = node.submit(frame(12, &fetch_request("t", 0, 60_000, 1)));
    let topic = CreatePartitionsTopic { name: Str::from("t"), count: 2, assignments: None };
    let request = CreatePartitionsRequest { topics: vec![topic], timeout_ms: 5_000, validate_only: false };
    assert_eq!(node.call(3, &request).results[0].error_code, 0);
    node.produce("t", 0, batch(&["a"])).unwrap();
    let response: FetchResponse = answer(&waiting, 12);
    assert_eq!(values(&response), ["a"]);
}
