//! Replica fetchers as their leader sees them: the test plays broker 1, which leads what broker 0 follows.

use std::time::Duration;

use bytes::Bytes;
use node::peers::{Channel, Purpose};
use wire::Str;
use wire::batch::{Batch, BatchBuilder, Compression};
use wire::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use wire::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use wire::messages::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
use wire::messages::{
    FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
};
use wire::types::{BrokerId, LeaderEpoch, Millis, Offset};

use crate::cases_tools::{forged_body, good};
use crate::control_tools::{ID, order};
use crate::harness::Node;
use crate::peers::Sent;

const BACKOFF: Duration = Duration::from_millis(1_000);

/// Broker 0 follows broker 1 in epoch 3.
fn follower(settings: &[(&str, &str)]) -> Node {
    let node = Node::start(settings);
    follow(&node, 3);
    node
}

fn follow(node: &Node, epoch: i32) {
    let order = order("t", 1, epoch, &[0, 1]);
    node.tell(9, &[0, 1], std::slice::from_ref(&order));
    node.obeys(&order);
}

/// Broker 0 has led `t` in epoch 2 and written so many records; then it follows.
fn follower_with(settings: &[(&str, &str)], records: usize) -> Node {
    let node = Node::start(settings);
    node.obeys(&order("t", 0, 2, &[0]));
    node.produce("t", 0, good(records)).unwrap();
    follow(&node, 3);
    node
}

fn asked(node: &Node) -> Sent<FetchRequest> {
    node.peers.take::<FetchRequest>()
}

/// What is asked of the partition: offset, leader epoch, last fetched epoch.
fn place(sent: &Sent<FetchRequest>) -> (i64, i32, i32) {
    let it = &sent.request.topics[0].partitions[0];
    (it.fetch_offset, it.current_leader_epoch, it.last_fetched_epoch)
}

fn nothing() -> PartitionData {
    PartitionData { high_watermark: 0, log_start_offset: 0, ..PartitionData::default() }
}

fn reply(sent: Sent<FetchRequest>, data: PartitionData) {
    let topic = FetchableTopicResponse { topic: Str::from("t"), topic_id: ID, partitions: vec![data] };
    let session_id = if sent.version >= 7 { 77 } else { 0 };
    sent.answer(&FetchResponse { session_id, responses: vec![topic], ..FetchResponse::default() });
}

/// A batch as the leader has it.
fn stamped(base: i64, epoch: i32, count: usize) -> Bytes {
    let mut builder =
        BatchBuilder::new(Compression::None).base_offset(Offset(base)).leader_epoch(LeaderEpoch(epoch));
    for _ in 0..count {
        builder.append(Millis(1_000), None, Some(b"value"));
    }
    builder.build().unwrap().bytes
}

fn log_end(node: &Node) -> i64 {
    let told: serde_json::Value = serde_json::from_str(&node.explained("t")).unwrap();
    told["log"]["logEndOffset"].as_i64().unwrap()
}

fn pass(node: &Node, time: Duration) {
    node.advance(time);
    node.broker.poll();
}

#[test]
fn each_protocol_speaks_its_versions() {
    let by_version = [
        ("3.9", 17),
        ("3.7-IV4", 16),
        ("3.5", 15),
        ("3.1", 13),
        ("2.8", 12),
        ("2.7-IV1", 12),
        ("2.3", 11),
        ("2.1", 10),
        ("2.0", 8),
        ("1.1", 7),
        ("0.11.0", 5),
    ];
    for (protocol, version) in by_version {
        let settings = [
            ("inter.broker.protocol.version", protocol),
            ("replica.fetch.max.bytes", "1000"),
            ("replica.fetch.response.max.bytes", "5000"),
            ("replica.fetch.min.bytes", "3"),
            ("replica.fetch.wait.max.ms", "123"),
        ];
        let sent = asked(&follower(&settings));
        assert_eq!(sent.version, version, "{protocol}");
        assert_eq!(sent.channel, Channel { broker: BrokerId(1), purpose: Purpose::Fetcher(0) });
        assert_eq!((sent.address.as_str(), sent.client_id.as_str()), ("host1:9093", "broker-0-fetcher-0"));
        let request = &sent.request;
        let state = &request.replica_state;
        let replica = if version >= 15 { state.replica_id } else { request.replica_id };
        assert_eq!(replica, 0, "{protocol}");
        assert_eq!((request.max_wait_ms, request.min_bytes, request.max_bytes), (123, 3, 5000), "{protocol}");
        assert_eq!((request.session_id, request.session_epoch), (0, if version >= 7 { 0 } else { -1 }));
        let topic = &request.topics[0];
        if version >= 13 {
            assert_eq!(topic.topic_id, ID, "{protocol}");
        } else {
            assert_eq!(topic.topic.as_str(), "t", "{protocol}");
        }
        assert_eq!(topic.partitions[0].partition_max_bytes, 1000);
        assert_eq!(place(&sent), (0, if version >= 9 { 3 } else { -1 }, -1), "{protocol}");
    }
}

#[test]
fn a_topic_without_an_id_goes_by_its_name() {
    let node = Node::start(&[]);
    let order = crate::control_tools::Order { id: wire::types::TopicId::ZERO, ..order("t", 1, 3, &[0, 1]) };
    node.tell(9, &[0, 1], std::slice::from_ref(&order));
    node.obeys(&order);
    let sent = asked(&node);
    assert_eq!((sent.version, sent.request.topics[0].topic.as_str()), (12, "t"));
}

#[test]
fn a_log_with_epochs_is_checked_by_the_fetch_or_before_it() {
    let sent = asked(&follower_with(&[], 3));
    assert_eq!(place(&sent), (3, 3, 2));
    for (protocol, version, current) in [("2.7-IV0", 3, 3), ("2.1", 2, 3), ("2.0", 1, -1), ("1.0", 0, -1)] {
        let node = follower_with(&[("inter.broker.protocol.version", protocol)], 3);
        let sent = node.peers.take::<OffsetForLeaderEpochRequest>();
        assert_eq!(sent.version, version, "{protocol}");
        let topic = &sent.request.topics[0];
        let asked_of = &topic.partitions[0];
        assert_eq!((topic.topic.as_str(), asked_of.partition), ("t", 0));
        assert_eq!((asked_of.current_leader_epoch, asked_of.leader_epoch), (current, 2), "{protocol}");
        if version >= 3 {
            assert_eq!(sent.request.replica_id, 0);
        }
        let end =
            EpochEndOffset { partition: 0, leader_epoch: 2, end_offset: 2, ..EpochEndOffset::default() };
        let topic = OffsetForLeaderTopicResult { topic: Str::from("t"), partitions: vec![end] };
        sent.answer(&OffsetForLeaderEpochResponse {
            topics: vec![topic],
            ..OffsetForLeaderEpochResponse::default()
        });
        // The batch of three records that holds offset 2 is gone, and the log goes on from there.
        assert_eq!((log_end(&node), asked(&node).request.topics[0].partitions[0].fetch_offset), (2, 2));
    }
}

#[test]
fn an_offset_out_of_range_is_looked_up() {
    for (protocol, version) in [("3.9", 9), ("2.8", 6), ("2.2", 5), ("2.1", 4), ("2.0", 3), ("0.11.0", 2)] {
        let node = follower(&[("inter.broker.protocol.version", protocol)]);
        reply(asked(&node), PartitionData { error_code: 1, ..nothing() });
        for (timestamp, offset) in [(-1, 90), (-2, 50)] {
            let sent = node.peers.take::<ListOffsetsRequest>();
            assert_eq!((sent.version, sent.request.replica_id), (version, 0), "{protocol}");
            let it = &sent.request.topics[0].partitions[0];
            assert_eq!(
                (it.timestamp, it.current_leader_epoch),
                (timestamp, if version >= 4 { 3 } else { -1 })
            );
            let found = ListOffsetsPartitionResponse { offset, ..ListOffsetsPartitionResponse::default() };
            let topic = ListOffsetsTopicResponse { name: Str::from("t"), partitions: vec![found] };
            sent.answer(&ListOffsetsResponse { topics: vec![topic], ..ListOffsetsResponse::default() });
        }
        assert_eq!((log_end(&node), place(&asked(&node)).0), (50, 50), "{protocol}");
        assert!(node.explained("t").contains("the leader's log starts at 50"));
    }
}

#[test]
fn damaged_records_are_fetched_again_after_a_pause_and_nothing_of_them_is_kept() {
    let node = follower(&[]);
    let mut damaged = [stamped(0, 3, 2), stamped(2, 3, 2)].concat();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    reply(asked(&node), PartitionData { records: Some(damaged.into()), ..nothing() });
    let forgets = asked(&node);
    assert_eq!((forgets.request.forgotten_topics_data.len(), log_end(&node)), (1, 0));
    forgets.answer(&FetchResponse::default());
    assert_eq!(node.peers.count::<FetchRequest>(), 0);
    pass(&node, BACKOFF);
    let again = asked(&node);
    assert_eq!(place(&again), (0, 3, -1));
    let whole = [stamped(0, 3, 2), stamped(2, 3, 2)].concat();
    reply(again, PartitionData { records: Some(whole.into()), ..nothing() });
    assert_eq!((log_end(&node), place(&asked(&node))), (4, (4, 3, 3)));
}

/// KAFKA-18723.
#[test]
fn batches_of_a_later_leader_epoch_are_left_out() {
    let node = follower(&[]);
    let records = [stamped(0, 3, 2), stamped(2, 4, 2)].concat();
    reply(asked(&node), PartitionData { records: Some(records.into()), ..nothing() });
    assert_eq!((log_end(&node), place(&asked(&node))), (2, (2, 3, 3)));
}

#[test]
fn a_batch_that_is_cut_is_left_out() {
    let node = follower(&[]);
    let records = [stamped(0, 3, 2), stamped(2, 3, 2)].concat();
    let cut = Bytes::from(records).slice(..100);
    reply(asked(&node), PartitionData { records: Some(cut), ..nothing() });
    assert_eq!((log_end(&node), place(&asked(&node)).0), (2, 2));
}

#[test]
fn records_that_do_not_fit_make_the_partition_rest_until_the_next_epoch() {
    let node = follower_with(&[], 3);
    let records = stamped(1, 3, 1);
    reply(asked(&node), PartitionData { records: Some(records), ..nothing() });
    asked(&node).answer(&FetchResponse::default());
    pass(&node, BACKOFF);
    assert_eq!((node.peers.count::<FetchRequest>(), log_end(&node)), (0, 3));
    follow(&node, 4);
    assert_eq!(place(&asked(&node)), (3, 4, 2));
}

#[test]
fn a_request_that_fails_is_made_again_after_a_pause_in_a_new_session() {
    let node = follower(&[]);
    reply(asked(&node), nothing());
    let second = asked(&node);
    assert_eq!((second.request.session_id, second.request.session_epoch), (77, 1));
    second.fail();
    assert_eq!(node.peers.count::<FetchRequest>(), 0);
    pass(&node, BACKOFF - Duration::from_millis(100));
    assert_eq!(node.peers.count::<FetchRequest>(), 0);
    pass(&node, Duration::from_millis(100));
    let third = asked(&node);
    assert_eq!((third.request.session_id, third.request.session_epoch), (77, 0));
}

#[test]
fn an_answer_that_cannot_be_read_counts_as_none() {
    let node = follower(&[]);
    let sent = asked(&node);
    // An answer of another version.
    sent.answer_as(0, &FetchResponse::default());
    assert_eq!(node.peers.count::<FetchRequest>(), 0);
    pass(&node, BACKOFF);
    asked(&node);
}

#[test]
fn a_fetcher_with_nothing_to_do_ends_its_connection_after_a_while() {
    let node = follower(&[]);
    let sent = asked(&node);
    let channel = sent.channel;
    node.tell(9, &[0, 1], &[order("t", 0, 4, &[0, 1])]);
    node.obeys(&order("t", 0, 4, &[0, 1]));
    reply(sent, nothing());
    asked(&node).answer(&FetchResponse::default());
    pass(&node, Duration::from_secs(4));
    assert_eq!(node.peers.closed(), []);
    pass(&node, Duration::from_secs(2));
    assert_eq!(node.peers.closed(), [channel]);
    // It is needed again.
    follow(&node, 5);
    assert_eq!(place(&asked(&node)).1, 5);
}

#[test]
fn an_answer_that_comes_after_the_broker_leads_changes_nothing() {
    // KAFKA-13266
    let node = follower(&[]);
    let sent = asked(&node);
    node.tell(9, &[0, 1], &[order("t", 0, 4, &[0, 1])]);
    node.obeys(&order("t", 0, 4, &[0, 1]));
    reply(sent, PartitionData { records: Some(stamped(0, 3, 2)), ..nothing() });
    assert_eq!(log_end(&node), 0);
}

#[test]
fn a_leader_that_nobody_knows_is_tried_again_when_it_is_known() {
    let node = follower(&[]);
    let sent = asked(&node);
    node.tell(9, &[0], &[order("t", 1, 3, &[0, 1])]);
    reply(sent, nothing());
    assert_eq!(node.peers.count::<FetchRequest>(), 0, "there is no address to send to");
    node.tell(9, &[0, 1], &[order("t", 1, 3, &[0, 1])]);
    pass(&node, BACKOFF);
    asked(&node);
}

#[test]
fn a_topic_id_that_comes_late_is_used_from_the_next_fetch_on() {
    // KAFKA-13132
    let node = Node::start(&[]);
    let without = crate::control_tools::Order { id: wire::types::TopicId::ZERO, ..order("t", 1, 3, &[0, 1]) };
    node.tell(9, &[0, 1], std::slice::from_ref(&without));
    node.obeys(&without);
    let sent = asked(&node);
    assert_eq!(sent.version, 12);
    node.obeys(&order("t", 1, 3, &[0, 1]));
    reply(sent, nothing());
    let sent = asked(&node);
    assert_eq!((sent.version, sent.request.topics[0].topic_id), (17, ID));
}

#[test]
fn a_batch_of_the_leader_is_stored_with_all_that_its_header_says() {
    let node = follower(&[]);
    let batch = Batch::parse(&stamped(0, 3, 2)).unwrap();
    // Fields that only a leader sets, and gaps in the offsets that compaction leaves.
    let sent = forged_body(
        &batch,
        |header| {
            header.base_offset = Offset(5);
            header.last_offset_delta = 9;
        },
        batch.body(),
    );
    reply(asked(&node), PartitionData { records: Some(sent.clone()), ..nothing() });
    assert_eq!(log_end(&node), 15);
    let stored = std::fs::read(node.logs().join("t-0/00000000000000000000.log")).unwrap();
    assert_eq!(stored, sent);
}
