//! The leader's side of a follower's fetch: what it may see, what it tells, and what it waits for.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use node::call::Outcome;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use wire::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};
use wire::messages::fetch_response::PartitionData;
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use wire::messages::{
    DeleteRecordsRequest, FetchRequest, FetchResponse, ListOffsetsRequest, ProduceResponse,
};

use crate::cases_tools::{batches_of, fetched, good};
use crate::control_tools::{ID, order};
use crate::harness::{Node, answer, frame, produce_request};

const LATEST: i16 = 17;
/// The first version that tells the follower in a structure of its own.
const WITH_STATE: i16 = 15;

/// Broker 0 leads `t` in epoch 3 with brokers 1 and 2; all are in sync.
fn leader() -> Node {
    let node = Node::start(&[("replica.lag.time.max.ms", "3600000")]);
    let order = order("t", 0, 3, &[0, 1, 2]);
    node.tell(9, &[0, 1, 2], std::slice::from_ref(&order));
    node.obeys(&order);
    node
}

/// What a follower asks.
#[derive(Clone, Copy)]
struct Ask {
    version: i16,
    replica: i32,
    offset: i64,
    epoch: i32,
    last_epoch: i32,
    wait_ms: i32,
}

/// Broker 1 asks at `offset`, in epoch 3, and does not wait.
fn ask(offset: i64) -> Ask {
    Ask { version: LATEST, replica: 1, offset, epoch: 3, last_epoch: -1, wait_ms: 0 }
}

fn request(ask: Ask) -> FetchRequest {
    let partition = FetchPartition {
        partition: 0,
        current_leader_epoch: if ask.version >= 9 { ask.epoch } else { -1 },
        fetch_offset: ask.offset,
        last_fetched_epoch: if ask.version >= 12 { ask.last_epoch } else { -1 },
        log_start_offset: 0,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    let topic = FetchTopic { topic: Str::from("t"), topic_id: ID, partitions: vec![partition] };
    let mut request = FetchRequest {
        max_wait_ms: ask.wait_ms,
        min_bytes: 1,
        topics: vec![topic],
        ..FetchRequest::default()
    };
    if ask.version >= WITH_STATE {
        request.replica_state = ReplicaState { replica_id: ask.replica, replica_epoch: -1 };
    } else {
        request.replica_id = ask.replica;
    }
    request
}

fn fetch(node: &Node, ask: Ask) -> PartitionData {
    only(node.call(ask.version, &request(ask)))
}

fn submit(node: &Node, ask: Ask) -> Receiver<Outcome> {
    node.submit(frame(ask.version, &request(ask)))
}

fn only(response: FetchResponse) -> PartitionData {
    assert_eq!(response.error_code, 0);
    response.responses[0].partitions[0].clone()
}

fn error(data: &PartitionData) -> ErrorCode {
    ErrorCode::from_code(data.error_code).unwrap()
}

fn append(node: &Node, count: usize) {
    let response: ProduceResponse = node.call(9, &produce_request("t", 0, good(count), 1));
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
}

/// What a consumer is told of the high watermark.
fn high_watermark(node: &Node) -> i64 {
    fetched(node, 12, "t", 0).high_watermark
}

#[test]
fn a_follower_sees_what_is_not_committed_and_a_consumer_does_not() {
    for version in 4..=LATEST {
        let node = leader();
        append(&node, 3);
        let data = fetch(&node, Ask { version, ..ask(0) });
        assert_eq!((error(&data), data.high_watermark), (ErrorCode::None, 0), "v{version}");
        assert_eq!(batches_of(&data)[0].header.next_offset().0, 3, "v{version}");
        assert!(batches_of(&fetched(&node, 12, "t", 0)).is_empty(), "v{version}");
    }
}

#[test]
fn the_high_watermark_follows_what_the_followers_tell() {
    let node = leader();
    append(&node, 3);
    for (replica, offset, expected) in [(1, 3, 0), (2, 2, 2), (2, 3, 3)] {
        fetch(&node, Ask { replica, ..ask(offset) });
        assert_eq!(high_watermark(&node), expected);
    }
}

/// KAFKA-13837, KAFKA-14078.
#[test]
fn a_broker_that_has_no_replica_is_refused_after_epoch_and_leadership() {
    let node = leader();
    let stranger = Ask { replica: 7, ..ask(0) };
    assert_eq!(error(&fetch(&node, stranger)), ErrorCode::UnknownLeaderEpoch);
    assert_eq!(error(&fetch(&node, Ask { epoch: -1, ..stranger })), ErrorCode::NotLeaderOrFollower);
    assert_eq!(error(&fetch(&node, Ask { epoch: 2, ..stranger })), ErrorCode::FencedLeaderEpoch);
    node.tell(9, &[0, 1, 2], &[order("t", 1, 4, &[0, 1, 2])]);
    node.obeys(&order("t", 1, 4, &[0, 1, 2]));
    assert_eq!(error(&fetch(&node, Ask { epoch: 4, ..stranger })), ErrorCode::NotLeaderOrFollower);
}

#[test]
fn epochs_are_compared_before_anything_else() {
    let node = leader();
    assert_eq!(error(&fetch(&node, Ask { epoch: 2, ..ask(99) })), ErrorCode::FencedLeaderEpoch);
    assert_eq!(error(&fetch(&node, Ask { epoch: 4, ..ask(99) })), ErrorCode::UnknownLeaderEpoch);
    assert_eq!(error(&fetch(&node, Ask { epoch: -1, ..ask(0) })), ErrorCode::None);
}

#[test]
fn a_follower_is_told_where_the_logs_part() {
    let node = leader();
    append(&node, 2);
    node.obeys(&order("t", 0, 5, &[0, 1, 2]));
    append(&node, 2);
    let asked = |offset, last_epoch| {
        let data = fetch(&node, Ask { epoch: 5, last_epoch, ..ask(offset) });
        let (diverging, records) = (&data.diverging_epoch, data.records.as_ref());
        (error(&data), diverging.epoch, diverging.end_offset, records.is_some_and(|it| !it.is_empty()))
    };
    assert_eq!(asked(2, 3), (ErrorCode::None, -1, -1, true), "the end of epoch 3");
    assert_eq!(asked(3, 3), (ErrorCode::None, 3, 2, false), "beyond the end of epoch 3");
    assert_eq!(asked(1, 4), (ErrorCode::None, 3, 2, false), "an epoch that the leader never had");
    assert_eq!(asked(4, 6), (ErrorCode::OffsetOutOfRange, -1, -1, false), "an epoch above all");
}

/// KAFKA-12996.
#[test]
fn an_offset_below_the_log_start_is_out_of_range_before_the_logs_part() {
    let node = leader();
    append(&node, 4);
    for replica in [1, 2] {
        fetch(&node, Ask { replica, ..ask(4) });
    }
    // The log start moves at once; the answer waits for the followers.
    let partition = DeleteRecordsPartition { partition_index: 0, offset: 3 };
    let topic = DeleteRecordsTopic { name: Str::from("t"), partitions: vec![partition] };
    let _waiting = node.submit(frame(2, &DeleteRecordsRequest { topics: vec![topic], timeout_ms: 60_000 }));
    let data = fetch(&node, Ask { last_epoch: 2, ..ask(2) });
    assert_eq!((error(&data), data.diverging_epoch.epoch), (ErrorCode::OffsetOutOfRange, -1));
}

/// KAFKA-13141, KAFKA-8400.
#[test]
fn a_fetch_that_diverges_or_fails_says_nothing_of_the_follower() {
    let node = leader();
    append(&node, 3);
    fetch(&node, Ask { replica: 2, ..ask(3) });
    let diverging = fetch(&node, Ask { last_epoch: 2, ..ask(3) });
    assert_ne!(diverging.diverging_epoch.epoch, -1);
    assert_eq!(error(&fetch(&node, ask(99))), ErrorCode::OffsetOutOfRange);
    assert_eq!(error(&fetch(&node, Ask { epoch: 2, ..ask(3) })), ErrorCode::FencedLeaderEpoch);
    assert_eq!(high_watermark(&node), 0);
    fetch(&node, ask(3));
    assert_eq!(high_watermark(&node), 3);
}

/// KAFKA-9952.
#[test]
fn a_high_watermark_that_moves_alone_does_not_answer_a_follower_and_new_records_do() {
    let node = leader();
    append(&node, 2);
    let waiting = submit(&node, Ask { wait_ms: 60_000, ..ask(2) });
    fetch(&node, Ask { replica: 2, ..ask(2) });
    assert_eq!(high_watermark(&node), 2);
    assert!(waiting.try_recv().is_err());
    append(&node, 1);
    let data = only(answer(&waiting, LATEST));
    assert_eq!((data.high_watermark, batches_of(&data).len()), (2, 1));
}

#[test]
fn an_answer_that_was_waited_for_does_not_count_as_copied() {
    let node = leader();
    let waiting = [1, 2].map(|replica| submit(&node, Ask { replica, wait_ms: 60_000, ..ask(0) }));
    append(&node, 2);
    for waiting in &waiting {
        assert_eq!(batches_of(&only(answer(waiting, LATEST))).len(), 1);
    }
    // Both were given the records; that they have them they have not told.
    assert_eq!(high_watermark(&node), 0);
    for replica in [1, 2] {
        fetch(&node, Ask { replica, ..ask(2) });
    }
    assert_eq!(high_watermark(&node), 2);
}

#[test]
fn a_fetch_that_waits_is_fenced_when_the_epoch_changes_and_ends_when_its_time_is_over() {
    let node = leader();
    let waiting = submit(&node, Ask { wait_ms: 60_000, ..ask(0) });
    node.obeys(&order("t", 0, 4, &[0, 1, 2]));
    assert_eq!(error(&only(answer(&waiting, LATEST))), ErrorCode::FencedLeaderEpoch);
    let waiting = submit(&node, Ask { wait_ms: 500, epoch: 4, ..ask(0) });
    node.broker.poll();
    assert!(waiting.try_recv().is_err());
    node.advance(Duration::from_millis(600));
    node.broker.poll();
    assert_eq!(error(&only(answer(&waiting, LATEST))), ErrorCode::None);
}

#[test]
fn in_a_session_a_follower_is_told_what_moves() {
    let node = leader();
    append(&node, 1);
    let mut request = request(ask(1));
    (request.session_id, request.session_epoch) = (0, 0);
    let opened: FetchResponse = node.call(LATEST, &request);
    assert_ne!(opened.session_id, 0);
    assert_eq!(opened.responses[0].partitions[0].high_watermark, 0);
    let mut epoch = 0;
    let mut next = || {
        epoch += 1;
        let next = FetchRequest {
            session_id: opened.session_id,
            session_epoch: epoch,
            topics: Vec::new(),
            ..request.clone()
        };
        let response: FetchResponse = node.call(LATEST, &next);
        response.responses.first().map(|topic| topic.partitions[0].high_watermark)
    };
    assert_eq!(next(), None, "nothing has moved");
    fetch(&node, Ask { replica: 2, ..ask(1) });
    assert_eq!((next(), next()), (Some(1), None));
}

#[test]
fn a_follower_is_told_the_ends_of_the_log_and_a_consumer_those_of_what_is_committed() {
    let node = leader();
    append(&node, 3);
    let listed = |replica_id, version, timestamp| {
        let partition = ListOffsetsPartition { timestamp, ..ListOffsetsPartition::default() };
        let topic = ListOffsetsTopic { name: Str::from("t"), partitions: vec![partition] };
        let request = ListOffsetsRequest { replica_id, topics: vec![topic], ..ListOffsetsRequest::default() };
        node.call(version, &request).topics[0].partitions[0].offset
    };
    for version in 1..=9 {
        assert_eq!((listed(1, version, -1), listed(1, version, -2)), (3, 0), "v{version}");
        assert_eq!(listed(-1, version, -1), 0, "v{version}");
    }
}
