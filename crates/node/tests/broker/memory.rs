//! What a broker leaves in memory when it has ended: nothing, whatever waited in it.

use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Weak};
use std::time::Instant;

use storage::disk::{Disk, RealDisk};
use wire::Str;
use wire::messages::create_topics_request::CreatableTopic;
use wire::messages::{CreateTopicsRequest, InitProducerIdRequest};

use crate::harness::{Node, PATIENCE, frame};
use crate::records::fetch_request;

/// A broker, and the disk that it and all of its logs hold.
fn start() -> (Node, Weak<dyn Disk>) {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let held = Arc::downgrade(&disk);
    (Node::start_with_disk(disk, &["logs"]), held)
}

/// Whatever the store's thread still has in its hands, it lets go of.
fn assert_leaves_memory(node: Node, held: &Weak<dyn Disk>) {
    node.gate.forget();
    let broker = Arc::downgrade(&node.broker);
    drop(node);
    let deadline = Instant::now() + PATIENCE;
    while held.strong_count() > 0 {
        let holders = (broker.strong_count(), held.strong_count());
        assert!(Instant::now() < deadline, "broker and disk are held {holders:?} times");
        std::thread::yield_now();
    }
}

#[test]
fn a_broker_that_shuts_down_while_it_waits_for_an_answer_of_its_own_leaves_memory() {
    let (node, held) = start();
    let init = InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
    node.gate.hold();
    // It asks its controller, itself, which asks the store.
    let given = node.submit(frame(4, &init));
    node.gate.wait_for_one();
    node.broker.shut_down();
    assert_leaves_memory(node, &held);
    assert_eq!(given.recv_timeout(PATIENCE).unwrap_err(), RecvTimeoutError::Disconnected);
}

#[test]
fn a_broker_that_is_abandoned_while_a_fetch_waits_leaves_memory_with_its_logs() {
    let (node, held) = start();
    node.create_topic("t", 1, &[]);
    let fetched = node.submit(frame(12, &fetch_request("t", 0, 60_000, 1)));
    node.broker.abandon();
    assert_leaves_memory(node, &held);
    assert_eq!(fetched.recv_timeout(PATIENCE).unwrap_err(), RecvTimeoutError::Disconnected);
}

#[test]
fn a_broker_that_is_abandoned_while_a_topic_waits_for_its_leaders_leaves_memory() {
    let (node, held) = start();
    let topic = CreatableTopic {
        name: Str::from("t"),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let create =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 60_000, ..CreateTopicsRequest::default() };
    node.gate.hold();
    let created = node.submit(frame(7, &create));
    node.gate.let_one_through();
    // The topic is written, and the controller wants to read it.
    node.gate.wait_for_one();
    node.broker.abandon();
    assert_leaves_memory(node, &held);
    assert_eq!(created.recv_timeout(PATIENCE).unwrap_err(), RecvTimeoutError::Disconnected);
}
