//! Requests of controllers are obeyed one at a time, in the order in which they come.

use std::sync::mpsc::Receiver;

use node::call::Outcome;
use wire::error_code::ErrorCode;
use wire::messages::{LeaderAndIsrResponse, StopReplicaResponse, UpdateMetadataResponse};

use crate::cases_tools::good;
use crate::control_tools::{LATEST, errors, leader_and_isr, order, stop_replica, update_metadata};
use crate::harness::{Node, PATIENCE, answer, frame};

/// A LeaderAndIsr that must read the configs of a topic first, and cannot.
fn stuck(node: &Node) -> Receiver<Outcome> {
    node.gate.hold();
    let waiting = node.submit(frame(LATEST, &leader_and_isr(LATEST, &[order("t", 0, 0, &[0])])));
    assert!(waiting.try_recv().is_err());
    waiting
}

#[test]
fn a_later_request_does_not_overtake_one_that_has_to_read_the_store() {
    let node = Node::start(&[]);
    let first = stuck(&node);
    // From other connections, as when a controller reconnects.
    let second = node.submit(frame(4, &stop_replica(4, &[("t", -2, true)])));
    let third = node.submit(frame(8, &update_metadata(3, &[0], &[])));
    assert!(second.try_recv().is_err() && third.try_recv().is_err());
    node.gate.open();
    let response: LeaderAndIsrResponse = answer(&first, LATEST);
    assert_eq!(errors(&response), [ErrorCode::None]);
    let response: StopReplicaResponse = answer(&second, 4);
    assert_eq!(response.partition_errors[0].error_code, 0);
    let response: UpdateMetadataResponse = answer(&third, 8);
    assert_eq!(response.error_code, 0);
    // What was made first was deleted second.
    assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::UnknownTopicOrPartition));
    assert!(!node.logs().join("t-0").exists());
}

#[test]
fn a_request_beyond_those_that_may_wait_ends_its_connection() {
    let node = Node::start(&[]);
    let first = stuck(&node);
    let update = || node.submit(frame(8, &update_metadata(3, &[0], &[])));
    let waiting: Vec<_> = (0..100).map(|_| update()).collect();
    let refused = update().recv_timeout(PATIENCE).unwrap();
    assert!(matches!(refused, Outcome::Close(_)), "{refused:?}");
    node.gate.open();
    let response: LeaderAndIsrResponse = answer(&first, LATEST);
    assert_eq!(response.error_code, 0);
    for waiting in waiting {
        let response: UpdateMetadataResponse = answer(&waiting, 8);
        assert_eq!(response.error_code, 0);
    }
}

#[test]
fn clients_are_served_while_the_controller_waits() {
    let node = Node::start(&[]);
    node.obeys(&order("u", 0, 0, &[0]));
    let first = stuck(&node);
    assert_eq!(node.produce("u", 0, good(1)), Ok(0));
    node.gate.open();
    let response: LeaderAndIsrResponse = answer(&first, LATEST);
    assert_eq!(response.error_code, 0);
}
