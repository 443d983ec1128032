//! UpdateMetadata: what clients see of the cluster afterwards.

use node::call::Outcome;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::metadata_response::MetadataResponsePartition;
use wire::messages::update_metadata_request::{
    UpdateMetadataBroker, UpdateMetadataEndpoint, UpdateMetadataPartitionState,
};
use wire::messages::{MetadataRequest, MetadataResponse, UpdateMetadataRequest};
use wire::types::TopicId;

use crate::control_tools::{ID, Order, TERM, order, update_metadata};
use crate::harness::{Node, PATIENCE, frame};

fn metadata(node: &Node, topic: &str) -> MetadataResponse {
    let topics =
        vec![MetadataRequestTopic { name: Some(Str::from(topic)), ..MetadataRequestTopic::default() }];
    let request = MetadataRequest {
        topics: Some(topics),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    };
    node.call(12, &request)
}

fn partition(node: &Node, topic: &str) -> MetadataResponsePartition {
    metadata(node, topic).topics[0].partitions[0].clone()
}

#[test]
fn brokers_controller_and_leaders_are_told_as_the_controller_tells_them() {
    let node = Node::start(&[]);
    node.tell(2, &[0, 1, 2], &[order("t", 1, 7, &[1, 2])]);
    let response = metadata(&node, "t");
    assert_eq!(response.controller_id, 2);
    let brokers: Vec<_> =
        response.brokers.iter().map(|it| (it.node_id, it.host.to_string(), it.port)).collect();
    let at = |id: i32| (id, format!("host{id}"), 9092 + id);
    assert_eq!(brokers, [at(0), at(1), at(2)]);
    assert_eq!(response.topics[0].topic_id, ID);
    let it = partition(&node, "t");
    assert_eq!((it.error_code, it.leader_id, it.leader_epoch), (0, 1, 7));
    assert_eq!((it.replica_nodes, it.isr_nodes, it.offline_replicas), (vec![1, 2], vec![1, 2], vec![]));
    node.tell(-1, &[0], &[]);
    assert_eq!((metadata(&node, "t").controller_id, metadata(&node, "t").brokers.len()), (-1, 1));
}

#[test]
fn what_comes_late_over_a_connection_that_the_controller_has_given_up_undoes_no_later_news() {
    let node = Node::start(&[]);
    let tell = |number, live: &[i32]| {
        node.submit_numbered(number, frame(8, &update_metadata(0, live, &[]))).recv_timeout(PATIENCE).unwrap()
    };
    let live = || metadata(&node, "t").brokers.len();
    assert!(matches!(tell(7, &[0, 1]), Outcome::Respond(_)));
    assert!(matches!(tell(9, &[0, 1, 2]), Outcome::Respond(_)));
    assert_eq!(live(), 3);
    // Nobody waits for an answer there.
    assert!(matches!(tell(7, &[0, 1]), Outcome::Close(_)));
    assert_eq!(live(), 3);
    assert!(matches!(tell(9, &[0]), Outcome::Respond(_)));
    assert_eq!(live(), 1);
}

#[test]
fn a_partition_whose_leader_is_dead_is_told_with_all_that_is_known() {
    // KAFKA-8442
    let node = Node::start(&[]);
    let led = Order { isr: vec![1], ..order("t", 1, 7, &[1, 2]) };
    node.tell(0, &[0, 2], &[led]);
    let it = partition(&node, "t");
    assert_eq!((it.error_code, it.leader_id), (ErrorCode::LeaderNotAvailable.code(), -1));
    assert_eq!((it.leader_epoch, it.replica_nodes, it.isr_nodes), (7, vec![1, 2], vec![1]));
    assert_eq!(it.offline_replicas, [1]);
}

#[test]
fn a_deleted_topic_is_forgotten_with_its_last_partition() {
    let node = Node::start(&[]);
    node.tell(0, &[0], &[order("t", 0, 1, &[0])]);
    node.tell(0, &[0], &[order("t", -2, 0, &[0])]);
    let topic = &metadata(&node, "t").topics[0];
    assert_eq!((topic.error_code, topic.partitions.len()), (ErrorCode::UnknownTopicOrPartition.code(), 0));
}

#[test]
fn each_version_is_understood() {
    for version in 0..=8 {
        let node = Node::start(&[]);
        let mut request = update_metadata(3, &[0], &[order("t", 3, 5, &[3])]);
        let endpoint = |listener: &str| UpdateMetadataEndpoint {
            port: 9095,
            host: Str::from("host3"),
            listener: if version >= 3 { Str::from(listener) } else { Str::default() },
            security_protocol: 0,
        };
        request.live_brokers = vec![UpdateMetadataBroker {
            id: 3,
            v0_host: Str::from("host3"),
            v0_port: 9095,
            endpoints: vec![endpoint("PLAINTEXT")],
            rack: Some(Str::from("r")),
        }];
        if version < 5 {
            let topic = request.topic_states.remove(0);
            let state = topic.partition_states[0].clone();
            let state = UpdateMetadataPartitionState { topic_name: Str::from("t"), ..state };
            request.ungrouped_partition_states.push(state);
        }
        assert_eq!(node.call(version, &request).error_code, 0);
        let response = metadata(&node, "t");
        let broker = &response.brokers[0];
        assert_eq!((broker.node_id, broker.host.as_str(), broker.port), (3, "host3", 9095), "v{version}");
        assert_eq!(broker.rack.as_deref(), if version >= 2 { Some("r") } else { None });
        assert_eq!(response.topics[0].topic_id, if version >= 7 { ID } else { TopicId::ZERO });
        assert_eq!(partition(&node, "t").leader_id, 3);
    }
}

#[test]
fn a_stale_request_changes_nothing() {
    let node = Node::start(&[]);
    node.tell(2, &[0, 1], &[]);
    let request = update_metadata(9, &[], &[]);
    for (request, code) in [
        (
            UpdateMetadataRequest { controller_epoch: TERM - 1, ..request.clone() },
            ErrorCode::StaleControllerEpoch,
        ),
        (UpdateMetadataRequest { broker_epoch: 0, ..request }, ErrorCode::StaleBrokerEpoch),
    ] {
        assert_eq!(node.call(8, &request).error_code, code.code());
    }
    assert_eq!((metadata(&node, "t").controller_id, metadata(&node, "t").brokers.len()), (2, 2));
}
