//! Public reports of lost records, stuck replicas and wrong codes, each as a test on whole brokers, where the parts alone
//! would not show it. The table of all is docs/regressions.md.

use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use metadata::store::{Blocking, Op};
use metadata::znode::config::{self, ConfigEntity};
use metadata::znode::config_change;
use wire::Str;
use wire::batch::{BatchBuilder, Compression};
use wire::error_code::ErrorCode;
use wire::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use wire::messages::{FetchRequest, LeaderAndIsrResponse, OffsetForLeaderEpochRequest, ProduceResponse};
use wire::types::{LeaderEpoch, Millis, Offset, TopicName};

use crate::cases_tools::{batches_of, delete_records, fetch, good, listed, now_ms, produced};
use crate::control_tools::{LATEST, errors, leader_and_isr, order};
use crate::harness::{Node, PATIENCE, answer, frame, produce_request};
use crate::pair::{Pair, Way};

/// Longer than `replica.fetch.backoff.ms` and `replica.fetch.wait.max.ms`.
const PAUSE: Duration = Duration::from_millis(1_100);

/// Two brokers with topic `t`, led by broker 0 in epoch 0, both in sync for ever.
fn pair() -> Pair {
    let mut pair = Pair::start(2, &[("replica.lag.time.max.ms", "3600000")]);
    pair.lead("t", 0, 0, &[0, 1]);
    pair
}

/// Produces with acks 1.
fn append(node: &Node, records: Bytes) {
    let response: ProduceResponse = node.call(9, &produce_request("t", 0, records, 1));
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
}

/// KIP-101's basic flow, KAFKA-7415.
#[test]
fn an_epoch_is_in_the_leaders_file_at_once_and_in_the_followers_with_its_first_record() {
    let mut pair = pair();
    append(pair.node(0), good(1));
    assert_eq!((pair.epochs(0, "t"), pair.epochs(1, "t")), (vec![(0, 0)], vec![(0, 0)]));
    pair.kill(1);
    pair.lead("t", 0, 1, &[0]);
    pair.restart(1);
    pair.pass(PAUSE);
    assert_eq!((pair.epochs(0, "t"), pair.epochs(1, "t")), (vec![(0, 0), (1, 1)], vec![(0, 0)]));
    append(pair.node(0), good(1));
    assert_eq!(pair.epochs(1, "t"), [(0, 0), (1, 1)]);
    pair.kill(0);
    pair.lead("t", 1, 2, &[1]);
    pair.restart(0);
    pair.pass(PAUSE);
    assert_eq!(pair.epochs(1, "t"), [(0, 0), (1, 1), (2, 2)]);
    assert_eq!(pair.epochs(0, "t"), [(0, 0), (1, 1)]);
    append(pair.node(1), good(1));
    assert_eq!(pair.epochs(0, "t"), [(0, 0), (1, 1), (2, 2)]);
}

/// KAFKA-10706, and the liveness of it: nobody truncates for ever.
#[test]
fn after_twenty_elections_without_a_record_followers_copy_on() {
    for protocol in ["3.9", "2.0-IV0"] {
        let settings = [("replica.lag.time.max.ms", "3600000"), ("inter.broker.protocol.version", protocol)];
        let mut pair = Pair::start(2, &settings);
        pair.lead("t", 0, 0, &[0, 1]);
        append(pair.node(0), good(3));
        for epoch in 1..=20 {
            pair.lead("t", epoch % 2, epoch, &[0, 1]);
        }
        pair.pass(PAUSE);
        append(pair.node(0), good(2));
        pair.pass(PAUSE);
        assert_eq!(pair.log_bytes(0, "t"), pair.log_bytes(1, "t"), "{protocol}");
        assert_eq!(pair.offsets(1, "t"), (0, 5, 5), "{protocol}");
        assert_eq!(pair.epochs(1, "t"), [(0, 0), (20, 3)], "{protocol}");
    }
}

/// KAFKA-9491.
#[test]
fn a_follower_that_began_anew_at_the_leaders_start_serves_at_once_when_it_leads() {
    let mut pair = pair();
    append(pair.node(0), good(2));
    pair.pass(PAUSE);
    pair.kill(1);
    pair.lead("t", 0, 1, &[0]);
    (0..3).for_each(|_| append(pair.node(0), good(2)));
    assert_eq!(delete_records(pair.node(0), "t", 8), (0, 8));
    pair.restart(1);
    pair.pass(PAUSE);
    pair.pass(PAUSE);
    assert_eq!(pair.offsets(1, "t"), (8, 8, 8), "{}", pair.node(1).explained("t"));
    pair.kill(0);
    pair.lead("t", 1, 2, &[1]);
    let it = pair.node(1).call(12, &fetch("t", &[(0, 8)], 1 << 20)).responses[0].partitions[0].clone();
    assert_eq!((it.error_code, it.high_watermark, it.log_start_offset), (0, 8, 8));
    append(pair.node(1), good(1));
    assert_eq!(listed(pair.node(1), 7, "t", -2, 0).2, 8);
}

/// KAFKA-8542.
#[test]
fn a_committed_reader_at_a_follower_stops_at_an_open_transaction() {
    let mut pair = pair();
    append(pair.node(0), good(1));
    pair.pass(PAUSE);
    pair.kill(0);
    let mut transactional = BatchBuilder::new(Compression::None)
        .base_offset(Offset(1))
        .leader_epoch(LeaderEpoch(0))
        .producer(77, 0, 0)
        .transactional(true);
    transactional.append(Millis(now_ms()), None, Some(b"open"));
    let transactional = transactional.build().unwrap().bytes;
    pair.edit(0, |logs| {
        let file = logs.join("t-0/00000000000000000000.log");
        let log = std::fs::read(&file).unwrap();
        std::fs::write(file, [&log[..], &transactional[..]].concat()).unwrap();
    });
    pair.restart(0);
    pair.lead("t", 0, 1, &[0, 1]);
    append(pair.node(0), good(1));
    pair.pass(PAUSE);
    assert_eq!(pair.offsets(1, "t"), (0, 3, 3));
    let read = |isolation_level, offset| {
        let request = FetchRequest { isolation_level, ..fetch("t", &[(0, offset)], 1 << 20) };
        pair.node(1).call(12, &request).responses[0].partitions[0].clone()
    };
    let committed = read(1, 0);
    assert_eq!((committed.error_code, committed.last_stable_offset, batches_of(&committed).len()), (0, 1, 1));
    let beyond = read(1, 1);
    assert_eq!((beyond.error_code, batches_of(&beyond).len()), (0, 0));
    assert_eq!(batches_of(&read(0, 0)).len(), 3);
}

/// KAFKA-7347: the client asks for metadata again, and does not take the topic for gone.
#[test]
fn a_replica_elsewhere_is_told_apart_from_a_partition_that_nobody_has() {
    let node = Node::start(&[]);
    node.tell(1, &[0, 1], &[order("elsewhere", 1, 0, &[1])]);
    for (topic, expected) in
        [("elsewhere", ErrorCode::NotLeaderOrFollower), ("nowhere", ErrorCode::UnknownTopicOrPartition)]
    {
        let partition = OffsetForLeaderPartition { partition: 0, current_leader_epoch: -1, leader_epoch: 0 };
        let asked = OffsetForLeaderTopic { topic: Str::from(topic), partitions: vec![partition] };
        let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![asked] };
        let told = [
            node.call(3, &request).topics[0].partitions[0].error_code,
            produced(&node, 9, topic, good(1)).error_code,
            node.call(11, &fetch(topic, &[(0, 0)], 1_000)).responses[0].partitions[0].error_code,
            listed(&node, 7, topic, -1, 0).0,
        ];
        assert_eq!(told, [expected.code(); 4], "{topic}");
    }
}

/// KAFKA-10687: 90 would make the producer give up for good.
#[test]
fn a_producer_of_an_older_epoch_is_told_that_its_epoch_is_invalid() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let records = |epoch| {
        let mut builder = BatchBuilder::new(Compression::None).producer(5, epoch, 0);
        builder.append(Millis(now_ms()), None, Some(b"v"));
        builder.build().unwrap().bytes
    };
    assert_eq!(node.produce("t", 0, records(1)), Ok(0));
    assert_eq!(node.produce("t", 0, records(0)), Err(ErrorCode::InvalidProducerEpoch));
}

/// KAFKA-8813.
#[test]
fn a_config_that_changes_while_its_log_is_made_is_in_force() {
    let node = Node::start(&[]);
    node.obeys(&order("u", 0, 0, &[0]));
    node.gate.hold_answer();
    let waiting = node.submit(frame(LATEST, &leader_and_isr(LATEST, &[order("t", 0, 0, &[0])])));
    node.gate.wait_for_answer();
    // The configs were read, and change before there is a log.
    let store = node.store();
    let configs = [("max.message.bytes".to_owned(), "10".to_owned())].into();
    let mut change = Vec::new();
    for topic in ["t", "u"] {
        let entity = ConfigEntity::Topic(TopicName::from(topic));
        change.push(Op::create(
            entity.path(),
            config::encode(&configs),
            metadata::store::CreateMode::Persistent,
        ));
        change.push(config_change::notify(&entity));
    }
    Blocking::new(&store).multi(change).unwrap();
    let begun = std::time::Instant::now();
    while node.produce("u", 0, good(1)) != Err(ErrorCode::MessageTooLarge) {
        assert!(begun.elapsed() < PATIENCE, "the change is not followed");
        std::thread::yield_now();
    }
    assert_eq!(waiting.try_recv().err(), Some(mpsc::TryRecvError::Empty));
    node.gate.let_answer_go();
    let response: LeaderAndIsrResponse = answer(&waiting, LATEST);
    assert_eq!(errors(&response), [ErrorCode::None]);
    assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::MessageTooLarge));
}

/// KAFKA-7164: the leader is the same, but somebody else has led in between.
#[test]
fn a_follower_that_missed_a_leader_is_checked_for_divergence() {
    for protocol in ["3.9", "2.0-IV0"] {
        let settings = [("replica.lag.time.max.ms", "3600000"), ("inter.broker.protocol.version", protocol)];
        let mut pair = Pair::start(2, &settings);
        pair.lead("t", 0, 0, &[0, 1]);
        append(pair.node(0), good(1));
        // What the follower has of epoch 0 beyond that, the leader lost when it was cut in epoch 1.
        append(pair.node(0), good(1));
        pair.set_way(0, Way::Cut);
        pair.kill(0);
        pair.edit(0, |logs| {
            let file =
                std::fs::File::options().write(true).open(logs.join("t-0/00000000000000000000.log")).unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        });
        pair.set_way(0, Way::Open);
        pair.restart(0);
        pair.node(0).obeys(&order("t", 0, 2, &[0, 1]));
        append(pair.node(0), good(3));
        pair.node(1).obeys(&order("t", 0, 2, &[0, 1]));
        pair.pass(PAUSE);
        assert_eq!(pair.log_bytes(0, "t"), pair.log_bytes(1, "t"), "{protocol}");
        assert_eq!(pair.epochs(1, "t"), [(0, 0), (2, 1)], "{protocol}");
    }
}
