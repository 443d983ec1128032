//! What is told and what may happen while the groups of a partition are read from its log, and what a topic of offsets
//! leaves behind that is deleted and made again.

use wire::error_code::ErrorCode;
use wire::messages::{DeleteTopicsRequest, ListGroupsRequest};
use wire::types::TopicId;
use wire::{Str, messages::delete_topics_request::DeleteTopicState};

use crate::control_tools::{Order, order};
use crate::controller::until;
use crate::group_tools::{NO_DELAY, PARTITIONS, code, coordinator, synced};
use crate::harness::Node;

const OFFSETS: &str = "__consumer_offsets";
const DURING_DELETE: i32 = -2;

/// This broker, alone, coordinates all groups in the one partition of this topic.
fn lead(node: &Node, id: TopicId, leader_epoch: i32) {
    let it = Order { id, ..order(OFFSETS, 0, leader_epoch, &[0]) };
    node.tell(9, &[0, 1], std::slice::from_ref(&it));
    node.obeys(&it);
}

fn follow(node: &Node, id: TopicId, leader_epoch: i32) {
    node.obeys(&Order { id, ..order(OFFSETS, 1, leader_epoch, &[1, 0]) });
}

/// A broker that coordinates all groups in epoch 0, and knows topic `t`.
fn alone() -> (Node, TopicId) {
    let (node, id) = (Node::start(&[NO_DELAY]), TopicId([8; 16]));
    node.tell(9, &[0, 1], &[order("t", 0, 0, &[0])]);
    node.obeys(&order("t", 0, 0, &[0]));
    lead(&node, id, 0);
    (node, id)
}

/// The topic `t` is deleted, as the controller tells it.
fn delete_t(node: &Node) {
    node.tell(9, &[0, 1], &[Order { leader: DURING_DELETE, ..order("t", 0, DURING_DELETE, &[0]) }]);
}

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
    // Every start of a broker that is alone raises the epochs.
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
    let node = coordinator(&[]);
    delete_topic(&node, OFFSETS);
    until(&node, "the deletion", || !node.logs().join(format!("{OFFSETS}-0")).exists());
    node.create_topic(OFFSETS, PARTITIONS * 8, &[]);
    let names: Vec<_> = (0..20).map(|number| format!("group{number}")).collect();
    for (name, offset) in names.iter().zip(1..) {
        assert_eq!(node.commit(name, offset), ErrorCode::None);
    }
    // A start reads how many there are; groups that lie elsewhere are not found.
    let node = node.restart(&[NO_DELAY]);
    for (name, offset) in names.iter().zip(1..) {
        assert_eq!(node.committed(name), Ok(offset), "{name}");
    }
}

#[test]
fn while_groups_are_loaded_members_neither_give_up_nor_look_elsewhere() {
    let (node, id) = alone();
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    follow(&node, id, 1);
    assert_eq!(node.committed("g"), Err(ErrorCode::NotCoordinator));
    let loads = node.hold_loads();
    lead(&node, id, 2);
    assert_eq!(loads.held(), 1, "orders of the controller do not wait for it");
    assert_eq!(node.find_coordinator("g"), (ErrorCode::None, 0));
    assert_eq!(node.committed("g"), Err(ErrorCode::CoordinatorLoadInProgress));
    assert_eq!(node.commit("g", 7), ErrorCode::CoordinatorLoadInProgress);
    assert_eq!(node.heartbeat("g", "m", 1), ErrorCode::None);
    assert_eq!(
        code(synced(&node.begin_to_sync("g", "m", 1, &[])).error_code),
        ErrorCode::RebalanceInProgress
    );
    let listed = node.call(4, &ListGroupsRequest::default());
    assert_eq!(code(listed.error_code), ErrorCode::CoordinatorLoadInProgress);
    loads.let_go();
    assert_eq!(node.committed("g"), Ok(5));
}

#[test]
fn the_end_of_a_load_counts_only_for_the_last_leadership() {
    let (node, id) = alone();
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    follow(&node, id, 1);
    let loads = node.hold_loads();
    lead(&node, id, 2);
    follow(&node, id, 3);
    loads.let_go();
    assert_eq!(node.committed("g"), Err(ErrorCode::NotCoordinator));
    lead(&node, id, 4);
    follow(&node, id, 5);
    lead(&node, id, 6);
    assert_eq!(node.committed("g"), Err(ErrorCode::CoordinatorLoadInProgress));
    loads.let_go();
    assert_eq!(node.committed("g"), Ok(5));
}

#[test]
fn what_was_committed_for_a_topic_that_is_deleted_during_a_load_is_not_there_after_it() {
    let (node, id) = alone();
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    follow(&node, id, 1);
    let loads = node.hold_loads();
    lead(&node, id, 2);
    delete_t(&node);
    node.tell(9, &[0, 1], &[Order { id: TopicId([3; 16]), ..order("t", 0, 0, &[0]) }]);
    loads.let_go();
    assert_eq!(node.committed("g"), Ok(-1), "the next topic of that name begins with none");
    assert_eq!(node.commit("g", 1), ErrorCode::None);
    // That is in the log, too.
    follow(&node, id, 3);
    lead(&node, id, 4);
    loads.let_go();
    assert_eq!(node.committed("g"), Ok(1));
}

#[test]
fn a_broker_that_is_shut_down_loads_nothing_any_more() {
    let (node, id) = alone();
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    follow(&node, id, 1);
    let loads = node.hold_loads();
    lead(&node, id, 2);
    node.broker.shut_down();
    loads.let_go();
    let text = node.broker.render_metrics();
    assert!(text.lines().any(|line| line == "kafka_coordinator_group_groupmetadatamanager_numgroups 0.0"));
}
