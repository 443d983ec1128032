//! A write whose answer is lost with the connection to the store: the client gets the answer that the cluster's state
//! deserves, whether the write was done or was lost too.

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::create_partitions_request::CreatePartitionsTopic;
use wire::messages::create_topics_request::CreatableTopic;
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use wire::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, IncrementalAlterConfigsRequest,
};

use crate::cases_tools::good;
use crate::gate::Lost;
use crate::harness::Node;

const BOTH: [Lost; 2] = [Lost::Undone, Lost::Done];
const TOPIC: i8 = 2;
const SET: i8 = 0;

fn create(node: &Node) -> ErrorCode {
    let topic = CreatableTopic {
        name: Str::from("t"),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..CreateTopicsRequest::default() };
    ErrorCode::from_code(node.call(7, &request).topics[0].error_code).unwrap()
}

fn grow(node: &Node, count: i32) -> ErrorCode {
    let topic = CreatePartitionsTopic { name: Str::from("t"), count, assignments: None };
    let request = CreatePartitionsRequest {
        topics: vec![topic],
        timeout_ms: 20_000,
        ..CreatePartitionsRequest::default()
    };
    ErrorCode::from_code(node.call(3, &request).results[0].error_code).unwrap()
}

#[test]
fn a_topic_is_created_once_and_said_to_be() {
    for lost in BOTH {
        let node = Node::start(&[]);
        node.gate.lose_a_write(lost);
        assert_eq!(create(&node), ErrorCode::None, "{lost:?}");
        assert!(node.gate.has_lost());
        assert_eq!(create(&node), ErrorCode::TopicAlreadyExists);
        assert_eq!(node.produce("t", 0, good(1)), Ok(0));
    }
}

#[test]
fn partitions_are_added_once_and_said_to_be() {
    for lost in BOTH {
        let node = Node::start(&[]);
        node.create_topic("t", 1, &[]);
        node.gate.lose_a_write(lost);
        assert_eq!(grow(&node, 3), ErrorCode::None, "{lost:?}");
        assert!(node.gate.has_lost());
        assert_eq!(grow(&node, 3), ErrorCode::InvalidPartitions, "there are three");
        assert_eq!(node.produce("t", 2, good(1)), Ok(0));
    }
}

#[test]
fn a_topic_is_deleted_and_said_to_be() {
    for lost in BOTH {
        let node = Node::start(&[]);
        node.create_topic("t", 1, &[]);
        node.gate.lose_a_write(lost);
        let topics = vec![DeleteTopicState { name: Some(Str::from("t")), ..DeleteTopicState::default() }];
        let request = DeleteTopicsRequest { topics, timeout_ms: 20_000, ..DeleteTopicsRequest::default() };
        assert_eq!(node.call(6, &request).responses[0].error_code, 0, "{lost:?}");
        assert!(node.gate.has_lost());
        assert_eq!(create(&node), ErrorCode::None, "the name is free");
    }
}

#[test]
fn configs_are_changed_and_said_to_be() {
    for lost in BOTH {
        let node = Node::start(&[]);
        node.create_topic("t", 1, &[]);
        node.gate.lose_a_write(lost);
        let config = AlterableConfig {
            name: Str::from("max.message.bytes"),
            config_operation: SET,
            value: Some(Str::from("10")),
        };
        let resource = AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: Str::from("t"),
            configs: vec![config],
        };
        let request = IncrementalAlterConfigsRequest {
            resources: vec![resource],
            ..IncrementalAlterConfigsRequest::default()
        };
        assert_eq!(node.call(1, &request).responses[0].error_code, 0, "{lost:?}");
        assert!(node.gate.has_lost());
        assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::MessageTooLarge));
    }
}

/// Both requests are checked while there is one partition; the second must not give the first one's other replicas.
#[test]
fn of_two_who_add_the_same_partition_at_once_one_is_refused() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.gate.hold();
    let ask = |count| {
        let topic = CreatePartitionsTopic { name: Str::from("t"), count, assignments: None };
        let request = CreatePartitionsRequest {
            topics: vec![topic],
            timeout_ms: 20_000,
            ..CreatePartitionsRequest::default()
        };
        node.submit(crate::harness::frame(3, &request))
    };
    let (two, three) = (ask(2), ask(3));
    node.gate.open();
    let code = |waiting| -> i16 {
        let response: wire::messages::CreatePartitionsResponse = crate::harness::answer(waiting, 3);
        response.results[0].error_code
    };
    let codes = [code(&two), code(&three)];
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert!(codes.contains(&ErrorCode::InvalidPartitions.code()), "{codes:?}");
}
