//! Produce and fetch, list offsets, idempotence, long polls.

use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use bytes::Bytes;
use node::call::{Outcome, Reply, ReplySink};
use wire::batch::{BatchBuilder, Compression, batches};
use wire::error_code::ErrorCode;
use wire::messages::fetch_request::{FetchPartition, FetchTopic};
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use wire::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use wire::messages::{
    FetchRequest, FetchResponse, InitProducerIdRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest,
};
use wire::types::Millis;
use wire::{Str, batch};

use crate::harness::{Node, PATIENCE, answer, frame, produce_request};

pub(crate) fn batch(values: &[&str]) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    for (at, value) in (0..).zip(values) {
        builder.append(Millis(1_000 + at), Some(b"key"), Some(value.as_bytes()));
    }
    builder.build().unwrap().bytes
}

fn idempotent(producer_id: i64, sequence: i32, values: &[&str]) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None).producer(producer_id, 0, sequence);
    // A producer whose records are old is forgotten with the next load of the log.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    for value in values {
        builder.append(Millis(now.as_millis().try_into().unwrap()), None, Some(value.as_bytes()));
    }
    builder.build().unwrap().bytes
}

pub(crate) fn fetch_request(topic: &str, offset: i64, max_wait_ms: i32, min_bytes: i32) -> FetchRequest {
    let partition = FetchPartition {
        partition: 0,
        fetch_offset: offset,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    let topic = FetchTopic { topic: Str::from(topic), partitions: vec![partition], ..FetchTopic::default() };
    FetchRequest { max_wait_ms, min_bytes, topics: vec![topic], ..FetchRequest::default() }
}

pub(crate) fn values(response: &FetchResponse) -> Vec<String> {
    let mut values = Vec::new();
    for partition in response.responses.iter().flat_map(|topic| &topic.partitions) {
        for batch in batches(partition.records.clone().unwrap()) {
            for record in batch.unwrap().records(batch::Limits::default()) {
                values.push(String::from_utf8(record.unwrap().value.unwrap().to_vec()).unwrap());
            }
        }
    }
    values
}

#[test]
fn what_was_produced_is_fetched_from_any_offset_and_after_a_restart() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    assert_eq!(node.produce("t", 0, batch(&["a", "b"])), Ok(0));
    assert_eq!(node.produce("t", 0, batch(&["c"])), Ok(2));
    let all = node.call(4, &fetch_request("t", 0, 0, 1));
    assert_eq!(values(&all), ["a", "b", "c"]);
    assert_eq!(all.responses[0].partitions[0].high_watermark, 3);
    let node = node.restart(&[]);
    assert_eq!(values(&node.call(11, &fetch_request("t", 2, 0, 1))), ["c"]);
    assert_eq!(node.produce("t", 0, batch(&["d"])), Ok(3));
}

#[test]
fn a_fetch_at_the_end_waits_for_the_next_record_and_no_longer() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let waiting = node.submit(frame(12, &fetch_request("t", 0, 10_000, 1)));
    assert!(waiting.try_recv().is_err());
    node.produce("t", 0, batch(&["a"])).unwrap();
    // The produce wakes the fetch before it is itself answered or right after: no timer is involved.
    assert_eq!(values(&answer(&waiting, 12)), ["a"]);
}

#[test]
fn a_fetch_that_gets_too_little_is_answered_when_its_time_is_over() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.produce("t", 0, batch(&["a"])).unwrap();
    let waiting = node.submit(frame(12, &fetch_request("t", 0, 50, 1_000_000)));
    assert!(waiting.try_recv().is_err());
    let deadline = Instant::now() + PATIENCE;
    let outcome = loop {
        node.broker.poll();
        match waiting.recv_timeout(Duration::from_millis(5)) {
            Ok(outcome) => break outcome,
            Err(_) => assert!(Instant::now() < deadline, "the fetch never ended"),
        }
    };
    assert!(matches!(outcome, Outcome::Respond(_)));
}

struct Gone(Sender<()>);

impl ReplySink for Gone {
    fn send(self: Box<Self>, _: Outcome) {}

    fn is_abandoned(&self) -> bool {
        true
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        // A test that has failed no longer listens.
        let _ = self.0.send(());
    }
}

#[test]
fn a_fetch_whose_client_is_gone_does_not_wait_for_as_long_as_it_wished() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let (sender, ended) = mpsc::channel();
    node.submit_with(frame(12, &fetch_request("t", 0, i32::MAX, 1)), Reply::new(Gone(sender)));
    assert!(ended.try_recv().is_err());
    node.advance(Duration::from_secs(11));
    node.broker.poll();
    ended.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn a_repeated_batch_is_answered_with_its_first_offset_and_written_once() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let producer = node.call(4, &anonymous());
    assert_eq!((producer.error_code, producer.producer_epoch), (0, 0));
    let id = producer.producer_id;
    assert_eq!(node.produce("t", 0, idempotent(id, 0, &["a", "b"])), Ok(0));
    assert_eq!(node.produce("t", 0, idempotent(id, 0, &["a", "b"])), Ok(0));
    assert_eq!(node.produce("t", 0, idempotent(id, 2, &["c"])), Ok(2));
    let gap = node.produce("t", 0, idempotent(id, 7, &["x"]));
    assert_eq!(gap, Err(ErrorCode::OutOfOrderSequenceNumber));
    assert_eq!(values(&node.call(4, &fetch_request("t", 0, 0, 1))), ["a", "b", "c"]);
    // The window survives a restart by the snapshot of the producers.
    let node = node.restart(&[]);
    assert_eq!(node.produce("t", 0, idempotent(id, 2, &["c"])), Ok(2));
    assert_eq!(node.produce("t", 0, idempotent(id, 3, &["d"])), Ok(3));
}

#[test]
fn producer_ids_are_never_given_twice() {
    let node = Node::start(&[]);
    let mut ids: Vec<_> = (0..1500).map(|_| node.call(0, &anonymous()).producer_id).collect();
    let node = node.restart(&[]);
    ids.extend((0..10).map(|_| node.call(0, &anonymous()).producer_id));
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn produce_with_acks_0_is_not_answered_and_an_error_closes_the_connection() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let good = node.submit(frame(9, &produce_request("t", 0, batch(&["a"]), 0)));
    assert!(matches!(good.recv_timeout(PATIENCE).unwrap(), Outcome::NoResponse));
    let bad = node.submit(frame(9, &produce_request("absent", 0, batch(&["a"]), 0)));
    assert!(matches!(bad.recv_timeout(PATIENCE).unwrap(), Outcome::Close(_)));
}

#[test]
fn other_acks_than_the_three_are_refused_for_each_partition() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let response = node.call(9, &produce_request("t", 0, batch(&["a"]), 2));
    let it = &response.responses[0].partition_responses[0];
    assert_eq!(it.error_code, ErrorCode::InvalidRequiredAcks.code());
    assert_eq!(values(&node.call(4, &fetch_request("t", 0, 0, 1))), Vec::<String>::new());
}

#[test]
fn a_damaged_batch_is_refused_and_nothing_of_it_is_written() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let mut damaged = batch(&["abc"]).to_vec();
    let last = damaged.len() - 2;
    damaged[last] ^= 0x40;
    assert_eq!(node.produce("t", 0, Bytes::from(damaged)), Err(ErrorCode::CorruptMessage));
    assert_eq!(node.produce("t", 0, batch(&["b"])), Ok(0));
}

#[test]
fn old_formats_and_old_fetches_are_refused_for_the_partition() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    // One record of format 1: offset, size, checksum, magic, attributes, timestamp, null key, "v".
    let old =
        b"\0\0\0\0\0\0\0\0\0\0\0\x17\xe4\xe3\x21\xbc\x01\0\0\0\0\0\0\0\x03\xe8\xff\xff\xff\xff\0\0\0\x01v";
    let response = node.call(2, &produce_request("t", 0, Bytes::from_static(old), 1));
    let error = response.responses[0].partition_responses[0].error_code;
    assert_eq!(error, ErrorCode::UnsupportedForMessageFormat.code());
    let response = node.call(3, &fetch_request("t", 0, 0, 1));
    assert_eq!(response.responses[0].partitions[0].error_code, ErrorCode::UnsupportedVersion.code());
}

#[test]
fn offsets_are_found_by_time_and_by_meaning() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.produce("t", 0, batch(&["a", "b", "c"])).unwrap();
    let ask = |version, timestamp| {
        let partition = ListOffsetsPartition { timestamp, ..ListOffsetsPartition::default() };
        let topic = ListOffsetsTopic { name: Str::from("t"), partitions: vec![partition] };
        let request =
            ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() };
        let response = node.call(version, &request);
        let it = response.topics[0].partitions[0].clone();
        (it.error_code, it.timestamp, it.offset)
    };
    assert_eq!(ask(7, -1), (0, -1, 3));
    assert_eq!(ask(7, -2), (0, -1, 0));
    assert_eq!(ask(7, -3), (0, 1_002, 2));
    assert_eq!(ask(8, -4), (0, -1, 0));
    assert_eq!(ask(9, -5), (0, -1, -1));
    assert_eq!(ask(7, 1_001), (0, 1_001, 1));
    assert_eq!(ask(7, 9_999), (0, -1, -1));
    assert_eq!(ask(6, -3), (ErrorCode::UnsupportedVersion.code(), -1, -1));
}

#[test]
fn the_end_of_an_epoch_is_told_and_other_epochs_are_fenced() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.produce("t", 0, batch(&["a"])).unwrap();
    let ask = |current_leader_epoch, leader_epoch| {
        let partition = OffsetForLeaderPartition { partition: 0, current_leader_epoch, leader_epoch };
        let topic = OffsetForLeaderTopic { topic: Str::from("t"), partitions: vec![partition] };
        let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![topic] };
        let it = node.call(4, &request).topics[0].partitions[0].clone();
        (it.error_code, it.leader_epoch, it.end_offset)
    };
    assert_eq!(ask(-1, 0), (0, 0, 1));
    assert_eq!(ask(0, 5), (0, -1, -1));
    assert_eq!(ask(3, 0), (ErrorCode::UnknownLeaderEpoch.code(), -1, -1));
}

#[test]
fn a_session_names_only_what_has_changed() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let mut request = fetch_request("t", 0, 0, 1);
    request.session_epoch = 0;
    let full = node.call(12, &request);
    assert!(full.session_id > 0);
    assert_eq!(full.responses.len(), 1);
    let incremental = FetchRequest {
        session_id: full.session_id,
        session_epoch: 1,
        min_bytes: 1,
        ..FetchRequest::default()
    };
    assert_eq!(node.call(12, &incremental).responses.len(), 0);
    node.produce("t", 0, batch(&["a"])).unwrap();
    let next = FetchRequest { session_epoch: 2, ..incremental.clone() };
    assert_eq!(values(&node.call(12, &next)), ["a"]);
    let stale = node.call(12, &next);
    assert_eq!(stale.error_code, ErrorCode::InvalidFetchSessionEpoch.code());
    let unknown = FetchRequest { session_id: 999_999_999, ..incremental };
    assert_eq!(node.call(12, &unknown).error_code, ErrorCode::FetchSessionIdNotFound.code());
}

fn anonymous() -> InitProducerIdRequest {
    InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() }
}
