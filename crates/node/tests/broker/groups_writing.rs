//! What a group does while whoever writes for it is held up, what becomes of what it wanted written if its partition is
//! another one's by then, and the limits of what may be on its way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, Scope};
use std::time::Duration;

use node::call::{Outcome, Reply};
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use wire::messages::{
    JoinGroupResponse, ListGroupsRequest, OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest,
};
use wire::types::TopicId;

use crate::controller::until;
use crate::group_tools::{JOIN, code, commit_request, coordinator, join_request, synced};
use crate::groups_loading::{OFFSETS, alone, follow, forget, lead};
use crate::harness::{Node, PATIENCE, answer, frame};

/// A group's members are gone after that.
const SESSION: Duration = Duration::from_secs(11);
/// Longer than the pause before a job is offered again.
const A_WHILE: Duration = Duration::from_millis(20);
/// `MAX_QUEUED` of a partition.
const MOST_APPENDS: usize = 10_000;
/// `MOST_GIVEN_OUT` of a broker.
const MOST_GIVEN_OUT: usize = 20_000;

/// Commits; whoever gives the answer, and so whoever writes for the group, is held until the sender is dropped.
fn commit_and_hold<'scope>(
    scope: &'scope Scope<'scope, '_>,
    node: &'scope Node,
    request: &OffsetCommitRequest,
) -> Sender<()> {
    let ((caught, is_caught), (go, may_go)) = (mpsc::channel(), mpsc::channel::<()>());
    let reply = Reply::new(move |_| {
        caught.send(()).unwrap();
        // It comes to its end when the sender goes.
        let _ = may_go.recv();
    });
    let bytes = frame(8, request);
    scope.spawn(move || node.submit_with(bytes, reply));
    is_caught.recv_timeout(PATIENCE).unwrap();
    go
}

fn begin_to_commit(node: &Node, group: &str, offset: i64) -> Receiver<Outcome> {
    node.begin_to_commit(8, &commit_request(group, "t", 0, offset))
}

fn committed(answered: &Receiver<Outcome>) -> ErrorCode {
    let response: OffsetCommitResponse = answer(answered, 8);
    code(response.topics[0].partitions[0].error_code)
}

// KAFKA-13134
#[test]
fn members_are_answered_while_whoever_writes_for_their_group_is_held_up() {
    let node = coordinator(&[]);
    let (id, generation) = node.stable_group("g");
    let request = OffsetCommitRequest {
        generation_id_or_member_epoch: generation,
        member_id: Str::from(&id),
        ..commit_request("g", "t", 0, 5)
    };
    thread::scope(|scope| {
        let go = commit_and_hold(scope, &node, &request);
        assert_eq!(node.heartbeat("g", &id, generation), ErrorCode::None);
        let second = node.begin_to_commit(8, &request);
        assert!(second.try_recv().is_err(), "what is written waits its turn");
        drop(go);
        assert_eq!(committed(&second), ErrorCode::None);
    });
}

#[test]
fn what_was_wanted_written_in_a_leadership_that_is_over_is_not_written_in_the_next_one() {
    let (node, id) = alone();
    thread::scope(|scope| {
        let _go = commit_and_hold(scope, &node, &commit_request("g", "t", 0, 5));
        let second = begin_to_commit(&node, "g", 6);
        follow(&node, id, 1);
        assert_eq!(committed(&second), ErrorCode::NotCoordinator);
        lead(&node, id, 2);
    });
    // What the log says is what is told.
    follow(&node, id, 3);
    lead(&node, id, 4);
    assert_eq!(node.committed("g"), Ok(5));
}

#[test]
fn what_was_wanted_written_before_a_topic_was_deleted_is_not_written_into_the_next_of_its_name() {
    let (node, _) = alone();
    let next = TopicId([7; 16]);
    thread::scope(|scope| {
        let _go = commit_and_hold(scope, &node, &commit_request("g", "t", 0, 5));
        let second = begin_to_commit(&node, "g", 6);
        forget(&node);
        assert_eq!(committed(&second), ErrorCode::NotCoordinator);
        lead(&node, next, 0);
    });
    follow(&node, next, 1);
    lead(&node, next, 2);
    assert_eq!(node.committed("g"), Ok(-1));
}

fn log_end(node: &Node) -> i64 {
    let told: serde_json::Value = serde_json::from_str(&node.explained(OFFSETS)).unwrap();
    told["log"]["logEndOffset"].as_i64().unwrap()
}

#[test]
fn sessions_that_end_together_are_written_by_one_job_and_never_by_whoever_keeps_the_time() {
    let (node, _) = alone();
    for name in ["a", "b", "c"] {
        node.stable_group(name);
    }
    let before = log_end(&node);
    node.jobs.hold();
    node.advance(SESSION);
    node.broker.poll();
    assert_eq!((node.jobs.held(), log_end(&node)), (1, before));
    node.jobs.let_go();
    assert_eq!(log_end(&node), before + 3);
}

#[test]
fn whoever_keeps_the_time_does_not_write_even_if_there_is_no_room_for_a_job() {
    let (node, _) = alone();
    node.stable_group("g");
    let before = log_end(&node);
    node.jobs.fill();
    node.advance(SESSION);
    node.broker.poll();
    assert_eq!(log_end(&node), before);
    node.jobs.open();
    node.advance(A_WHILE);
    node.broker.poll();
    assert_eq!(log_end(&node), before + 1);
}

#[test]
fn a_panic_in_one_answer_keeps_no_group_from_going_on() {
    let node = coordinator(&[]);
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    assert_eq!(node.commit_as(8, &commit_request("g", "t", 1, 5)), ErrorCode::None);
    let partitions = vec![OffsetDeleteRequestPartition { partition_index: 0 }];
    let topics = vec![OffsetDeleteRequestTopic { name: Str::from("t"), partitions }];
    // Its answer comes behind a tombstone.
    let delete = OffsetDeleteRequest { group_id: Str::from("g"), topics };
    let panics = || node.submit_with(frame(0, &delete), Reply::new(|_| panic!("by the test")));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!((node.committed("g"), node.commit("g", 6)), (Ok(-1), ErrorCode::None));
}

#[test]
fn a_panic_in_one_answer_does_not_lose_the_others() {
    let node = coordinator(&[]);
    let (first, _) = node.stable_group("g");
    let second = node.member_id("g");
    let has_panicked = Arc::new(AtomicBool::new(false));
    let begin = |id: &str| {
        let (sender, receiver) = mpsc::channel();
        let has_panicked = has_panicked.clone();
        let reply = Reply::new(move |outcome| {
            assert!(has_panicked.swap(true, Ordering::SeqCst), "by the test: the first one that is answered");
            let _ = sender.send(outcome);
        });
        let submit = || node.submit_with(frame(JOIN, &join_request("g", id)), reply);
        (catch_unwind(AssertUnwindSafe(submit)).is_err(), receiver)
    };
    let (panicked, waits) = begin(&second);
    assert!(!panicked && waits.try_recv().is_err());
    let (panicked, other) = begin(&first);
    assert!(panicked);
    node.heartbeat("g", &first, 2);
    let answered = [waits, other].iter().filter_map(|it| it.try_recv().ok()).count();
    assert_eq!(answered, 1, "the one that was left");
}

#[test]
fn a_partition_whose_queue_is_full_takes_no_more_of_its_groups() {
    let (node, _) = alone();
    let it = node.join("m");
    assert_eq!(code(it.error_code), ErrorCode::None);
    let queued: Vec<_> = thread::scope(|scope| {
        let _go = commit_and_hold(scope, &node, &commit_request("g", "t", 0, 5));
        let queued = (0..MOST_APPENDS).map(|n| begin_to_commit(&node, &format!("g{n}"), 5)).collect();
        assert_eq!(committed(&begin_to_commit(&node, "one too many", 5)), ErrorCode::RequestTimedOut);
        // Its members are to join again.
        let synced = synced(&node.begin_to_sync("m", &it.member_id, it.generation_id, &[]));
        assert_eq!(code(synced.error_code), ErrorCode::RebalanceInProgress);
        queued
    });
    for answered in queued {
        assert_eq!(committed(&answered), ErrorCode::None);
    }
}

#[test]
fn no_more_ids_are_given_out_in_all_groups_together_than_the_limit() {
    let node = coordinator(&[]);
    let groups = || node.call(4, &ListGroupsRequest::default()).groups.len();
    for n in 0..MOST_GIVEN_OUT {
        node.member_id(&format!("g{n}"));
    }
    let one_too_many: JoinGroupResponse = node.call(JOIN, &join_request("one too many", ""));
    assert_eq!(code(one_too_many.error_code), ErrorCode::CoordinatorNotAvailable);
    assert_eq!(groups(), MOST_GIVEN_OUT + 1, "one of which holds nothing");
    node.advance(SESSION);
    node.broker.poll();
    // Nobody has come back, and not all of the groups are kept that hold nothing now.
    until(&node, "the oldest groups to end", || groups() < MOST_GIVEN_OUT);
    node.member_id("g");
}
