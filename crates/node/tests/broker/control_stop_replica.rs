//! StopReplica: which replicas go, and what is left of them.

use std::time::Duration;

use wire::error_code::ErrorCode;
use wire::messages::{ProduceResponse, StopReplicaRequest};

use crate::cases_tools::good;
use crate::control_tools::{order, stop_replica};
use crate::harness::{Node, answer, frame, produce_request};

const DURING_DELETE: i32 = -2;

fn codes(response: &wire::messages::StopReplicaResponse) -> Vec<ErrorCode> {
    assert_eq!(response.error_code, 0);
    response.partition_errors.iter().map(|it| ErrorCode::from_code(it.error_code).unwrap()).collect()
}

fn dirs(node: &Node, prefix: &str) -> Vec<String> {
    let names = std::fs::read_dir(node.logs()).unwrap().map(|it| it.unwrap().file_name());
    names.map(|it| it.into_string().unwrap()).filter(|name| name.starts_with(prefix)).collect()
}

#[test]
fn each_version_deletes_a_replica() {
    for version in 0..=4 {
        let node = Node::start(&[]);
        node.obeys(&order("t", 0, 3, &[0]));
        node.produce("t", 0, good(1)).unwrap();
        let response = node.call(version, &stop_replica(version, &[("t", 3, true)]));
        assert_eq!(codes(&response), [ErrorCode::None], "v{version}");
        assert_eq!(response.partition_errors[0].topic_name.as_str(), "t");
        assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::UnknownTopicOrPartition));
        let left = dirs(&node, "t-0");
        assert!(left.len() == 1 && left[0].ends_with("-delete"), "v{version}: {left:?}");
        node.advance(Duration::from_secs(120));
        node.broker.housekeep();
        assert_eq!(dirs(&node, "t-0"), [""; 0]);
        // Deleted already: no error.
        assert_eq!(codes(&node.call(version, &stop_replica(version, &[("t", 3, true)]))), [ErrorCode::None]);
    }
}

#[test]
fn a_late_stop_of_an_older_epoch_deletes_nothing() {
    // KAFKA-9539: the partition was made anew, or its leader changed, since it was sent.
    let node = Node::start(&[]);
    node.obeys(&order("t", 0, 4, &[0]));
    assert_eq!(codes(&node.stop(&[("t", 3, true)])), [ErrorCode::FencedLeaderEpoch]);
    assert_eq!(node.produce("t", 0, good(1)), Ok(0));
}

#[test]
fn a_stop_of_the_same_epoch_is_obeyed_and_so_is_one_of_a_deletion_whatever_the_epoch() {
    // KAFKA-13972
    let node = Node::start(&[]);
    for epoch in [4, 5, DURING_DELETE, -1] {
        node.obeys(&order("t", 0, 4, &[0]));
        assert_eq!(codes(&node.stop(&[("t", epoch, true)])), [ErrorCode::None], "{epoch}");
        assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::UnknownTopicOrPartition));
    }
}

#[test]
fn a_replica_that_is_only_stopped_keeps_log_and_epoch() {
    let node = Node::start(&[]);
    node.tell(1, &[0, 1], &[]);
    node.obeys(&order("t", 1, 4, &[0, 1]));
    assert_eq!(codes(&node.stop(&[("t", 4, false)])), [ErrorCode::None]);
    assert_eq!(dirs(&node, "t-0"), ["t-0"]);
    assert_eq!(node.order(&[order("t", 1, 4, &[0, 1])]), [ErrorCode::StaleControllerEpoch]);
    node.obeys(&order("t", 1, 5, &[0, 1]));
}

#[test]
fn partitions_succeed_and_fail_on_their_own() {
    let node = Node::start(&[]);
    node.obeys(&order("a", 0, 4, &[0]));
    node.obeys(&order("b", 0, 4, &[0]));
    let told = codes(&node.stop(&[("a", 3, true), ("b", 4, true), ("absent", 0, true)]));
    assert_eq!(told, [ErrorCode::FencedLeaderEpoch, ErrorCode::None, ErrorCode::None]);
    assert_eq!(node.produce("a", 0, good(1)), Ok(0));
}

#[test]
fn a_log_that_nobody_has_asked_for_since_the_start_is_deleted_too() {
    // The topic was deleted while the broker was down.
    let node = Node::start(&[]);
    node.obeys(&order("t", 0, 4, &[0]));
    let node = node.restart(&[]);
    assert_eq!(dirs(&node, "t-0"), ["t-0"]);
    assert_eq!(codes(&node.stop(&[("t", DURING_DELETE, true)])), [ErrorCode::None]);
    assert!(dirs(&node, "t-0")[0].ends_with("-delete"));
}

#[test]
fn a_stale_request_is_answered_without_partitions() {
    let node = Node::start(&[]);
    node.obeys(&order("t", 0, 4, &[0]));
    let request = stop_replica(4, &[("t", 4, true)]);
    let stale_controller = StopReplicaRequest { controller_epoch: 0, ..request.clone() };
    let stale_broker = StopReplicaRequest { broker_epoch: 0, ..request };
    for (request, code) in
        [(stale_controller, ErrorCode::StaleControllerEpoch), (stale_broker, ErrorCode::StaleBrokerEpoch)]
    {
        let response = node.call(4, &request);
        assert_eq!((response.error_code, response.partition_errors.len()), (code.code(), 0));
    }
    assert_eq!(node.produce("t", 0, good(1)), Ok(0));
}

#[test]
fn a_produce_that_waits_at_a_deleted_replica_is_answered() {
    let node = Node::start(&[]);
    node.tell(1, &[0, 1], &[]);
    node.obeys(&order("t", 0, 1, &[0, 1]));
    let waiting = node.submit(frame(9, &produce_request("t", 0, good(1), -1)));
    assert!(waiting.try_recv().is_err());
    node.stop(&[("t", DURING_DELETE, true)]);
    let response: ProduceResponse = answer(&waiting, 9);
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ErrorCode::NotLeaderOrFollower.code());
}
