//! A disk that stalls: whoever is caught by it, others are served.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use node::AppendThreads;
use node::jobs::{Executor, Job};
use wire::error_code::ErrorCode;
use wire::messages::fetch_request::{FetchPartition, FetchTopic};
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use wire::messages::{FetchRequest, FetchResponse, ListOffsetsRequest, ProduceResponse};

use crate::cases_tools::good;
use crate::controller;
use crate::harness::{self, Node, PATIENCE, produce_request};
use crate::troubled_disk::{Trouble, TroubledDisk};

/// A thread for each job.
struct Threads;

impl Executor for Threads {
    fn submit(&self, job: Job) -> Result<(), Job> {
        drop(std::thread::spawn(job));
        Ok(())
    }
}

/// A broker of two directories, the first of which stalls when told to; appends may use `on_sockets` threads of
/// the caller. Gives a partition of topic `t` in each.
fn two_directories(on_sockets: usize) -> (Node, Arc<Trouble>, mpsc::Receiver<()>, (i32, i32)) {
    let stall = Arc::new(Trouble::default());
    let disk = TroubledDisk { trouble: stall.clone(), name: "slow" };
    let node = Node::start_with_disk(Arc::new(disk), &["slow", "fast"]);
    let (relieve, relieved) = mpsc::channel();
    node.broker.spread_appends(AppendThreads {
        on_sockets,
        lanes: Arc::new(Threads),
        watch_within: Box::new(|_| {}),
        relieve: Box::new(move || relieve.send(()).unwrap_or_default()),
    });
    let store = node.store();
    controller::register_another(&store);
    controller::write_topic_on(&store, "t", 2, &[0, 1]);
    controller::until(&node, "a leader", || controller::leader(&node, "t") == Some(0));
    // The other broker stays registered.
    std::mem::forget(store);
    let slow = i32::from(!node.logs().with_file_name("slow").join("t-0").exists());
    for partition in 0..2 {
        produce(&node, partition);
    }
    (node, stall, relieved, (slow, 1 - slow))
}

fn end_offset(node: &Node, partition: i32) -> i64 {
    let asked = ListOffsetsPartition {
        partition_index: partition,
        current_leader_epoch: -1,
        timestamp: -1,
        ..ListOffsetsPartition::default()
    };
    let topic = ListOffsetsTopic { name: "t".into(), partitions: vec![asked] };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() };
    node.call(5, &request).topics[0].partitions[0].offset
}

fn submit(node: &Node, partition: i32) -> mpsc::Receiver<node::call::Outcome> {
    node.submit(harness::frame(9, &produce_request("t", partition, good(1), 1)))
}

/// Broker 1 tells that it has the first record.
fn fetch_of_a_follower(partition: i32) -> FetchRequest {
    let asked = FetchPartition {
        partition,
        current_leader_epoch: -1,
        fetch_offset: 1,
        partition_max_bytes: 1000,
        ..FetchPartition::default()
    };
    let topic = FetchTopic { topic: "t".into(), partitions: vec![asked], ..FetchTopic::default() };
    FetchRequest { replica_id: 1, max_bytes: 1000, topics: vec![topic], ..FetchRequest::default() }
}

/// Produces with acks 1: the other broker only seems to be there.
fn produce(node: &Node, partition: i32) {
    assert_eq!(code(&submit(node, partition)), ErrorCode::None.code());
}

fn code(answer: &mpsc::Receiver<node::call::Outcome>) -> i16 {
    let answer: ProduceResponse = harness::answer(answer, 9);
    answer.responses[0].partition_responses[0].error_code
}

#[test]
fn an_append_beyond_the_threads_of_sockets_holds_its_caller_up_no_longer_than_a_hand_over() {
    let (node, stall, _relieved, (slow, fast)) = two_directories(0);
    stall.begin();
    // This thread is the one of the sockets: it comes back from an append that does not end.
    let waiting = submit(&node, slow);
    assert!(waiting.recv_timeout(Duration::from_millis(20)).is_err());
    produce(&node, fast);
    // What the partition has is still told.
    assert_eq!(end_offset(&node, slow), 0);
    stall.end();
    assert_eq!(code(&waiting), ErrorCode::None.code());
}

#[test]
fn a_thread_of_the_sockets_that_a_stalled_disk_has_caught_is_found_and_the_next_append_goes_elsewhere() {
    let (node, stall, relieved, (slow, fast)) = two_directories(2);
    stall.begin();
    let node = Arc::new(node);
    let (caught, frame) = (node.clone(), harness::frame(9, &produce_request("t", slow, good(1), 1)));
    let socket = std::thread::spawn(move || caught.submit(frame));
    while !stall.caught.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    while relieved.try_recv().is_err() {
        assert!(node.broker.watch_appends().is_some(), "an append is under way");
    }
    assert!(node.broker.render_metrics().contains("blumfeld_stalled_log_directories 1"));
    // Queued behind the first: nobody is held up, nor is a follower that has read what the log held before.
    let second = submit(&node, slow);
    let fetch = fetch_of_a_follower(slow);
    let fetched = node.submit(harness::frame(11, &fetch));
    produce(&node, fast);
    stall.end();
    assert_eq!(code(&socket.join().unwrap()), ErrorCode::None.code());
    assert_eq!(code(&second), ErrorCode::None.code());
    let fetched: FetchResponse = harness::answer(&fetched, 11);
    assert_eq!(fetched.error_code, ErrorCode::None.code());
    let start = std::time::Instant::now();
    while node.broker.watch_appends().is_some() {
        assert!(start.elapsed() < PATIENCE);
    }
    assert!(node.broker.render_metrics().contains("blumfeld_stalled_log_directories 0"));
    produce(&node, slow);
}
