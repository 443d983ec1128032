//! The topic of offsets itself: how many partitions it has, which all brokers must agree on, and what it leaves behind when
//! it is deleted and made again.

use std::time::Duration;

use metadata::store::{Blocking, CreateMode};
use metadata::znode::topic::{self, PartitionAssignment, TopicAssignment};
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::{DeleteGroupsRequest, DeleteTopicsRequest};
use wire::types::{BrokerId, TopicId, TopicName};

use crate::control_tools::{Order, order};
use crate::controller::{leader, until};
use crate::group_tools::{NO_DELAY, PARTITIONS, coordinator};
use crate::groups_loading::{
    DURING_DELETE, OFFSETS, alone, follow, forget, lead, lead_first, take_out_of_the_picture,
};
use crate::harness::Node;

fn delete_topic(node: &Node, name: &str) {
    let topic = DeleteTopicState { name: Some(Str::from(name)), ..DeleteTopicState::default() };
    let request =
        DeleteTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..DeleteTopicsRequest::default() };
    assert_eq!(node.call(6, &request).responses[0].error_code, 0);
}

#[test]
fn a_topic_of_offsets_that_is_deleted_and_made_again_is_coordinated_again() {
    let node = coordinator(&[]);
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    let node = node.restart(&[NO_DELAY]);
    assert_eq!(node.committed("g"), Ok(5));
    delete_topic(&node, OFFSETS);
    until(&node, "the deletion", || node.find_coordinator("g").0 == ErrorCode::CoordinatorNotAvailable);
    until(&node, "a coordinator", || node.find_coordinator("g") == (ErrorCode::None, 0));
    assert_eq!(node.committed("g"), Ok(-1), "what was committed is gone with the topic");
    assert_eq!(node.commit("g", 6), ErrorCode::None);
    let node = node.restart(&[NO_DELAY]);
    assert_eq!(node.committed("g"), Ok(6));
}

#[test]
fn a_topic_of_offsets_of_another_number_of_partitions_keeps_groups_where_others_look_for_them() {
    // Ids of topics tell one from the next, as far as there are ids.
    for version in ["3.9", "2.7"] {
        of_another_number_of_partitions(&[NO_DELAY, ("inter.broker.protocol.version", version)]);
    }
}

fn of_another_number_of_partitions(settings: &[(&str, &str)]) {
    let node = coordinator(settings);
    delete_topic(&node, OFFSETS);
    until(&node, "the deletion", || !node.logs().join(format!("{OFFSETS}-0")).exists());
    node.create_topic(OFFSETS, PARTITIONS * 8, &[]);
    let names: Vec<_> = (0..20).map(|number| format!("group{number}")).collect();
    for (name, offset) in names.iter().zip(1..) {
        assert_eq!(node.commit(name, offset), ErrorCode::None);
    }
    // A start reads how many there are; groups that lie elsewhere are not found.
    let node = node.restart(settings);
    for (name, offset) in names.iter().zip(1..) {
        assert_eq!(node.committed(name), Ok(offset), "{name}");
    }
}

/// Writes the topic of offsets into the store, without an id: for each partition its replica.
fn write_topic(node: &Node, replicas: &[i32]) {
    let partitions = (0..).zip(replicas);
    let partitions =
        partitions.map(|(index, replica)| (index, PartitionAssignment::of(vec![BrokerId(*replica)])));
    let value = TopicAssignment { topic_id: None, partitions: partitions.collect() }.encode();
    let path = topic::path(&TopicName::from(OFFSETS));
    Blocking::new(&node.store()).create(&path, value, CreateMode::Persistent).unwrap();
}

#[test]
fn a_topic_of_offsets_that_is_made_again_is_coordinated_in_whatever_epoch_it_begins() {
    let (node, id) = alone();
    follow(&node, id, 1);
    lead(&node, id, 2);
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    forget(&node);
    lead(&node, TopicId([7; 16]), 0);
    assert_eq!((node.committed("g"), node.commit("g", 6)), (Ok(-1), ErrorCode::None));
}

#[test]
fn partitions_that_nobody_has_ever_led_count() {
    let node = Node::start(&[NO_DELAY]);
    node.create_topic("t", 1, &[]);
    // Of four; the fourth lies on a broker that is not there.
    write_topic(&node, &[0, 0, 0, 7]);
    until(&node, "a leader", || leader(&node, OFFSETS) == Some(0));
    // In Java "g" is 103 and "h" is 104.
    assert_eq!(node.find_coordinator("g").0, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(node.commit("g", 5), ErrorCode::NotCoordinator);
    assert_eq!((node.find_coordinator("h"), node.commit("h", 5)), ((ErrorCode::None, 0), ErrorCode::None));
}

#[test]
fn without_ids_the_number_is_read_anew_once_a_log_of_the_topic_is_deleted() {
    let node = lead_first(TopicId::ZERO);
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    // The picture of the cluster does not show that: what was told later has made it void.
    node.stop(&[(OFFSETS, DURING_DELETE, true)]);
    write_topic(&node, &[0, 0, 0, 0]);
    lead(&node, TopicId::ZERO, 0);
    assert_eq!(node.commit("g", 5), ErrorCode::NotCoordinator, "it lies in partition 3");
    assert_eq!(node.commit("h", 5), ErrorCode::None, "it lies in partition 0");
}

#[test]
fn without_ids_the_number_is_read_anew_once_the_topic_is_out_of_the_picture() {
    let node = lead_first(TopicId::ZERO);
    assert_eq!(node.find_coordinator("g"), (ErrorCode::None, 0));
    // Where no replica of it is, nothing else is heard of the deletion.
    take_out_of_the_picture(&node);
    write_topic(&node, &[0, 0, 0, 0]);
    node.tell(9, &[0, 1], &[Order { id: TopicId::ZERO, ..order(OFFSETS, 0, 0, &[0]) }]);
    until(&node, "the number", || node.find_coordinator("h") == (ErrorCode::None, 0));
    assert_eq!(node.find_coordinator("g").0, ErrorCode::CoordinatorNotAvailable, "of partition 3");
}

fn bytes_of_logs(node: &Node) -> u64 {
    let files = std::fs::read_dir(node.logs().join(format!("{OFFSETS}-0"))).unwrap().map(Result::unwrap);
    let logs = files.filter(|it| it.path().extension().is_some_and(|it| it == "log"));
    logs.map(|it| it.metadata().unwrap().len()).sum()
}

// KAFKA-7467, KAFKA-9065
#[test]
fn what_compaction_has_left_of_the_topic_is_loaded() {
    let node = Node::start(&[NO_DELAY]);
    node.create_topic("t", 1, &[]);
    let configs = [("cleanup.policy", "compact"), ("segment.bytes", "1000"), ("delete.retention.ms", "0")];
    node.create_topic(OFFSETS, 1, &configs);
    assert_eq!(node.commit("kept", 1), ErrorCode::None);
    assert_eq!(node.commit("deleted", 2), ErrorCode::None);
    let delete = DeleteGroupsRequest { groups_names: vec![Str::from("deleted")] };
    assert_eq!(node.call(2, &delete).results[0].error_code, 0);
    for offset in 1..=40 {
        assert_eq!(node.commit("g", offset), ErrorCode::None);
    }
    let before = bytes_of_logs(&node);
    // The second time tombstones go, too.
    for _ in 0..3 {
        node.broker.clean();
        node.advance(Duration::from_secs(60));
    }
    assert!(bytes_of_logs(&node) < before / 2);
    let node = node.restart(&[NO_DELAY]);
    let told = ["kept", "deleted", "g"].map(|group| node.committed(group));
    assert_eq!(told, [Ok(1), Ok(-1), Ok(40)]);
    assert_eq!(node.commit("g", 41), ErrorCode::None);
}
