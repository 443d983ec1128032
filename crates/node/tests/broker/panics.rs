//! A panic over one request ends that one, whose connection closes; everybody else goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use node::call::Reply;
use wire::error_code::ErrorCode;
use wire::messages::{FetchResponse, ProduceResponse};

use crate::cases_tools::good;
use crate::harness::{Node, answer, frame, produce_request};
use crate::records::{fetch_request, values};
use crate::troubled_disk::{Trouble, TroubledDisk};

const PRODUCE: i16 = 9;
const FETCH: i16 = 11;

fn panicking() -> Reply {
    Reply::new(|_| panic!("by the test"))
}

fn has_panicked(act: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(act)).is_err()
}

fn produce_frame() -> Bytes {
    frame(PRODUCE, &produce_request("t", 0, good(1), 1))
}

fn fetch_frame(max_wait_ms: i32) -> Bytes {
    frame(FETCH, &fetch_request("t", 0, max_wait_ms, 1))
}

/// Base offset or error of a produce.
fn told(response: &ProduceResponse) -> Result<i64, ErrorCode> {
    let it = &response.responses[0].partition_responses[0];
    if it.error_code == 0 { Ok(it.base_offset) } else { Err(ErrorCode::from_code(it.error_code).unwrap()) }
}

/// A broker with the topics `t` and `u`, and what may trouble the log of `t`.
fn troubled() -> (Node, Arc<Trouble>) {
    let trouble = Arc::new(Trouble::default());
    let node =
        Node::start_with_disk(Arc::new(TroubledDisk { trouble: trouble.clone(), name: "t-0" }), &["logs"]);
    node.create_topic("t", 1, &[]);
    node.create_topic("u", 1, &[]);
    (node, trouble)
}

#[test]
fn a_panic_in_the_answer_to_one_append_takes_nothing_from_those_behind_it() {
    let (node, trouble) = troubled();
    trouble.begin();
    let (first, third) = std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let reply = std::sync::mpsc::channel();
            let sender = reply.0;
            let reply_of_first = Reply::new(move |outcome| sender.send(outcome).unwrap());
            let panicked = has_panicked(|| node.submit_with(produce_frame(), reply_of_first));
            (panicked, reply.1)
        });
        while !trouble.caught.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        // Both wait for the thread that writes.
        node.submit_with(produce_frame(), panicking());
        let third = node.submit(produce_frame());
        trouble.end();
        let (panicked, first) = serving.join().unwrap();
        assert!(panicked, "whoever tells it");
        (first, third)
    });
    assert_eq!([first, third].map(|it| told(&answer(&it, PRODUCE))), [Ok(0), Ok(2)]);
    assert_eq!(node.produce("t", 0, good(1)), Ok(3));
}

#[test]
fn a_panic_in_the_answer_to_one_fetch_does_not_leave_the_others_waiting() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.submit_with(fetch_frame(60_000), panicking());
    let other = node.submit(fetch_frame(60_000));
    assert!(has_panicked(|| drop(node.submit(produce_frame()))));
    let response: FetchResponse = answer(&other, FETCH);
    assert_eq!(values(&response).len(), 1);
    assert_eq!(node.produce("t", 0, good(1)), Ok(1));
}

#[test]
fn a_panic_over_one_whose_time_is_over_does_not_hold_up_the_others() {
    for is_room_for_a_job in [true, false] {
        let node = Node::start(&[]);
        node.create_topic("t", 1, &[]);
        node.submit_with(fetch_frame(1_000), panicking());
        let other = node.submit(fetch_frame(1_000));
        if !is_room_for_a_job {
            node.jobs.fill();
        }
        node.advance(Duration::from_secs(2));
        assert!(has_panicked(|| _ = node.broker.poll()));
        node.jobs.open();
        node.advance(Duration::from_secs(1));
        node.broker.poll();
        let response: FetchResponse = answer(&other, FETCH);
        assert_eq!(values(&response), Vec::<String>::new());
    }
}

#[test]
fn a_panic_in_the_middle_of_a_write_takes_that_log_out_of_service_until_the_next_start_and_no_other() {
    let (node, trouble) = troubled();
    assert_eq!(node.produce("t", 0, good(1)), Ok(0));
    trouble.panic_in_next_write();
    let (sender, receiver) = std::sync::mpsc::channel();
    let reply = Reply::new(move |outcome| sender.send(outcome).unwrap());
    assert!(has_panicked(|| node.submit_with(produce_frame(), reply)));
    assert_eq!(told(&answer(&receiver, PRODUCE)), Err(ErrorCode::UnknownServerError));
    assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::KafkaStorageError));
    assert_eq!(node.produce("u", 0, good(1)), Ok(0));
    let node = node.restart(&[]);
    assert_eq!(node.produce("t", 0, good(1)), Ok(1), "nothing of it was written");
    assert_eq!(node.produce("u", 0, good(1)), Ok(1));
}
