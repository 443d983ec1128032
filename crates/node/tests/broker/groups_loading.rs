//! What is told and what may happen while the groups of a partition are read from its log.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wire::batch::{BatchBuilder, BatchHeader, Compression};
use wire::error_code::ErrorCode;
use wire::messages::{ListGroupsRequest, UpdateMetadataResponse};
use wire::types::{LeaderEpoch, Millis, Offset, TopicId};

use crate::cases_tools::forged_body;
use crate::control_tools::{Order, order, update_metadata};
use crate::controller::until;
use crate::group_tools::{NO_DELAY, code, coordinator};
use crate::harness::{Node, answer, frame};
use crate::troubled_disk::{Trouble, TroubledDisk};

pub(crate) const OFFSETS: &str = "__consumer_offsets";
pub(crate) const DURING_DELETE: i32 = -2;

/// This broker, alone, coordinates all groups in the one partition of this topic.
pub(crate) fn lead(node: &Node, id: TopicId, leader_epoch: i32) {
    let it = Order { id, ..order(OFFSETS, 0, leader_epoch, &[0]) };
    node.tell(9, &[0, 1], std::slice::from_ref(&it));
    node.obeys(&it);
}

pub(crate) fn follow(node: &Node, id: TopicId, leader_epoch: i32) {
    node.obeys(&Order { id, ..order(OFFSETS, 1, leader_epoch, &[1, 0]) });
}

/// A broker that coordinates all groups in epoch 0, and knows topic `t`.
pub(crate) fn alone() -> (Node, TopicId) {
    coordinating(Node::start(&[NO_DELAY]))
}

fn coordinating(node: Node) -> (Node, TopicId) {
    let id = TopicId([8; 16]);
    begin_to_lead(&node, id);
    (node, id)
}

/// As [`alone`], where the topic of offsets has this id.
pub(crate) fn lead_first(id: TopicId) -> Node {
    let node = Node::start(&[NO_DELAY]);
    begin_to_lead(&node, id);
    node
}

fn begin_to_lead(node: &Node, id: TopicId) {
    node.tell(9, &[0, 1], &[order("t", 0, 0, &[0])]);
    node.obeys(&order("t", 0, 0, &[0]));
    lead(node, id, 0);
}

/// The topic of offsets is deleted, as the controller tells it.
pub(crate) fn forget(node: &Node) {
    take_out_of_the_picture(node);
    node.stop(&[(OFFSETS, DURING_DELETE, true)]);
}

/// The first thing that is told of that, and to all brokers.
pub(crate) fn take_out_of_the_picture(node: &Node) {
    node.tell(9, &[0, 1], &[Order { leader: DURING_DELETE, ..order(OFFSETS, 0, DURING_DELETE, &[0]) }]);
}

/// The topic `t` is deleted, as the controller tells it.
fn deletion_of_t() -> Order {
    Order { leader: DURING_DELETE, ..order("t", 0, DURING_DELETE, &[0]) }
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
    node.keeps_members_waiting();
    let listed = node.call(4, &ListGroupsRequest::default());
    assert_eq!(code(listed.error_code), ErrorCode::CoordinatorLoadInProgress);
    loads.let_go();
    assert_eq!(node.committed("g"), Ok(5));
}

/// What compaction leaves of a batch of a transaction, or of its marker, that was the last of its producer.
fn emptied(offset: i64, is_control: bool) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None).producer(7, 0, 0).control(is_control);
    builder.append(Millis(1_000), None, None);
    let change = |header: &mut BatchHeader| {
        header.base_offset = Offset(offset);
        header.partition_leader_epoch = LeaderEpoch(0);
        header.records_count = 0;
    };
    forged_body(&builder.build().unwrap(), change, &[])
}

/// KAFKA-7467, KAFKA-9065.
#[test]
fn emptied_batches_and_a_gap_before_the_log_end_do_not_hold_a_load_up() {
    let node = coordinator(&[]);
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    let settings = [NO_DELAY, ("offsets.load.buffer.size", "1")];
    let node = node.restart_killed(&settings, |logs| {
        let log = logs.join(format!("{OFFSETS}-3"));
        let first = log.join("00000000000000000000.log");
        let rest = [emptied(1, true), emptied(9, false), emptied(20, true)].concat();
        let all = [std::fs::read(&first).unwrap(), rest].concat();
        std::fs::write(&first, all).unwrap();
        // The last segment, where the log goes on.
        std::fs::write(log.join("00000000000000000050.log"), []).unwrap();
    });
    assert_eq!(node.committed("g"), Ok(5));
    assert_eq!(node.commit("g", 6), ErrorCode::None);
    let last = node.logs().join(format!("{OFFSETS}-3/00000000000000000050.log"));
    assert_ne!(last.metadata().unwrap().len(), 0, "there is no gap");
    assert_eq!(node.restart(&settings).committed("g"), Ok(6));
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
    node.tell(9, &[0, 1], &[deletion_of_t()]);
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

#[test]
fn when_the_deletion_of_a_topic_is_answered_no_group_knows_what_was_committed_for_it() {
    let (node, _) = alone();
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    node.jobs.hold();
    let answered = node.submit(frame(8, &update_metadata(9, &[0, 1], &[deletion_of_t()])));
    // What obeys the controller; what that leaves to others is held on.
    until(&node, "its turn", || node.jobs.held() == 1);
    node.jobs.let_go();
    let response: UpdateMetadataResponse = answer(&answered, 8);
    assert_eq!((code(response.error_code), node.committed("g")), (ErrorCode::None, Ok(-1)));
}

#[test]
fn a_load_that_the_system_has_failed_is_done_again_after_a_while() {
    let trouble = Arc::new(Trouble::default());
    let disk = TroubledDisk { trouble: trouble.clone(), name: "__consumer_offsets-0" };
    let (node, id) = coordinating(Node::start_with_disk(Arc::new(disk), &["logs"]));
    // So much that it is not read while looking for where it lies.
    for offset in 1..=60 {
        assert_eq!(node.commit("g", offset), ErrorCode::None);
    }
    follow(&node, id, 1);
    trouble.fail_reads(2);
    lead(&node, id, 2);
    let loading = Err(ErrorCode::CoordinatorLoadInProgress);
    // A second, then two.
    for told in [loading, loading, loading, Ok(60)] {
        assert_eq!(node.committed("g"), told);
        node.advance(Duration::from_secs(1));
        node.broker.poll();
    }
}

#[test]
fn a_log_that_ends_before_its_end_is_not_served_as_if_it_were_whole() {
    let (node, id) = alone();
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    assert_eq!(node.commit("h", 6), ErrorCode::None);
    follow(&node, id, 1);
    let log = node.logs().join(format!("{OFFSETS}-0/00000000000000000000.log"));
    let file = File::options().write(true).open(log).unwrap();
    file.set_len(file.metadata().unwrap().len() - 10).unwrap();
    lead(&node, id, 2);
    assert_eq!(node.committed("g"), Err(ErrorCode::CoordinatorLoadInProgress));
    assert_eq!(node.committed("h"), Err(ErrorCode::CoordinatorLoadInProgress));
}
