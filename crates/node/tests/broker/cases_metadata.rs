//! Metadata as clients of other brokers missed it: creation in passing, names, ids, listeners.

use std::time::Instant;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::create_topics_request::CreatableTopic;
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use wire::messages::{CreateTopicsRequest, MetadataRequest, MetadataResponse, OffsetForLeaderEpochRequest};
use wire::types::TopicId;

use crate::cases_tools::{fetched, good, listed, produced};
use crate::harness::{Node, PATIENCE, answer, frame};

fn named(names: &[&str], create: bool) -> MetadataRequest {
    let topics = names
        .iter()
        .map(|name| MetadataRequestTopic { name: Some(Str::from(*name)), ..MetadataRequestTopic::default() });
    MetadataRequest {
        topics: Some(topics.collect()),
        allow_auto_topic_creation: create,
        ..MetadataRequest::default()
    }
}

fn all_names(node: &Node) -> Vec<String> {
    let response = node.call(9, &MetadataRequest { topics: None, ..MetadataRequest::default() });
    response.topics.iter().map(|topic| topic.name.as_deref().unwrap().to_owned()).collect()
}

/// redpanda-data/redpanda#3787, apache/kafka#3098: only who says so creates, and only where the broker allows it.
#[test]
fn a_topic_is_created_in_passing_only_if_client_and_broker_want_it() {
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    for allowed in [true, false] {
        let settings =
            [("auto.create.topics.enable", if allowed { "true" } else { "false" }), ("num.partitions", "3")];
        let node = Node::start(&settings);
        node.call(9, &MetadataRequest { topics: None, ..MetadataRequest::default() });
        assert_eq!(node.call(4, &named(&["no"], false)).topics[0].error_code, unknown);
        assert_eq!(produced(&node, 9, "no", good(1)).error_code, unknown);
        assert_eq!(fetched(&node, 11, "no", 0).error_code, unknown);
        assert_eq!(listed(&node, 5, "no", -1, 0).0, unknown);
        assert_eq!(all_names(&node), Vec::<String>::new());
        for (version, name) in [(3, "old"), (4, "new"), (12, "newest")] {
            let first = node.call(version, &named(&[name], true)).topics[0].error_code;
            let expected = if allowed { ErrorCode::LeaderNotAvailable.code() } else { unknown };
            assert_eq!(first, expected, "v{version}");
            let deadline = Instant::now() + PATIENCE;
            while allowed && node.call(version, &named(&[name], true)).topics[0].error_code != 0 {
                assert!(Instant::now() < deadline);
            }
        }
        if allowed {
            assert_eq!(all_names(&node), ["new", "newest", "old"]);
            assert_eq!(node.call(9, &named(&["new"], false)).topics[0].partitions.len(), 3);
        } else {
            assert_eq!(all_names(&node), Vec::<String>::new());
        }
    }
}

/// dpkp/kafka-python#867, hstreamdb/hstream#1597: null and an empty list are two things.
#[test]
fn no_list_of_topics_and_an_empty_one_are_told_apart() {
    let node = Node::start(&[]);
    for name in ["a", "b", "c"] {
        node.create_topic(name, 1, &[]);
    }
    let count = |version, topics: Option<Vec<MetadataRequestTopic>>| {
        let response = node.call(version, &MetadataRequest { topics, ..MetadataRequest::default() });
        assert_eq!(response.brokers.len(), 1);
        response.topics.len()
    };
    let empty = || Some(Vec::new());
    let counts = [count(0, empty()), count(1, empty()), count(1, None), count(9, None), count(9, empty())];
    assert_eq!(counts, [3, 0, 3, 3, 0]);
}

/// apache/kafka#10584: ids and missing names in versions that have the fields but do not serve them.
#[test]
fn ids_and_missing_names_are_answered_in_every_version() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let id = node.call(12, &named(&["t"], false)).topics[0].topic_id;
    let ask = |version, topic_id, name: Option<&str>| {
        let topics = Some(vec![MetadataRequestTopic { topic_id, name: name.map(Str::from) }]);
        let response = node.call(version, &MetadataRequest { topics, ..MetadataRequest::default() });
        (response.topics[0].error_code, response.topics[0].name.as_deref().map(str::to_owned))
    };
    let invalid = ErrorCode::InvalidRequest.code();
    for version in [10, 11] {
        assert_eq!(ask(version, TopicId::ZERO, None).0, invalid);
        assert_eq!(ask(version, id, None).0, invalid);
        assert_eq!(ask(version, id, Some("t")).0, invalid);
    }
    assert_eq!(ask(12, id, None), (0, Some("t".to_owned())));
    assert_eq!(ask(12, TopicId([9; 16]), None), (ErrorCode::UnknownTopicId.code(), None));
    assert_ne!(ask(12, TopicId::ZERO, None).0, 0);
}

/// apache/kafka#5189, apache/kafka#9112: a leader that a client's listener does not lead to is none for it.
#[test]
fn a_leader_without_the_listener_of_the_client_is_told_as_none() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    for version in 0..=12 {
        let request = named(&["t"], false);
        let request = if version < 4 { named(&["t"], true) } else { request };
        let waiting = node.submit_over("EXTERNAL", frame(version, &request));
        let response: MetadataResponse = answer(&waiting, version);
        assert!(response.brokers.is_empty());
        let it = &response.topics[0].partitions[0];
        let expected = if version >= 6 { ErrorCode::ListenerNotFound } else { ErrorCode::LeaderNotAvailable };
        assert_eq!((it.error_code, it.leader_id), (expected.code(), -1), "v{version}");
        assert_eq!(it.leader_epoch, if version >= 7 { 0 } else { -1 }, "v{version}");
        assert_eq!(it.replica_nodes, if version == 0 { vec![] } else { vec![0] }, "v{version}");
    }
}

/// PlaytikaOSS/testcontainers-spring-boot#974, KAFKA-3719: addresses are told as clients can use them.
#[test]
fn advertised_hosts_are_told_without_brackets() {
    for (listener, host) in [
        ("PLAINTEXT://[::1]:9092", "::1"),
        ("PLAINTEXT://[fe80::1%eth0]:9092", "fe80::1%eth0"),
        ("PLAINTEXT://my_host:9092", "my_host"),
    ] {
        let node = Node::start(&[("advertised.listeners", listener)]);
        let brokers = node.call(9, &named(&[], false)).brokers;
        assert_eq!((&*brokers[0].host, brokers[0].port), (host, 9092));
    }
}

/// michelin/ns4kafka#63, dpkp/kafka-python#961, apache/kafka#898: a bad name is refused alone and leaves nothing.
#[test]
fn illegal_and_colliding_names_are_refused_by_both_ways_to_create() {
    let node = Node::start(&[]);
    node.create_topic("a_b.c", 1, &[]);
    let longest = "x".repeat(249);
    let too_long = "x".repeat(250);
    let illegal = ["", ".", "..", "a/b", "a b", "t\u{f6}pic", &too_long, "a.b_c"];
    let invalid = ErrorCode::InvalidTopicException.code();
    let create = |name: &str| {
        let topic = CreatableTopic {
            name: Str::from(name),
            num_partitions: 1,
            replication_factor: 1,
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
        node.call(7, &request).topics[0].error_code
    };
    for name in illegal {
        assert_eq!(create(name), invalid, "{name:?}");
        let response = node.call(9, &named(&[name, "a_b.c"], true));
        let codes: Vec<i16> = response.topics.iter().map(|topic| topic.error_code).collect();
        assert_eq!(codes, [invalid, 0], "{name:?}");
    }
    assert_eq!(all_names(&node), ["a_b.c"]);
    let on_disk = || {
        let entries = std::fs::read_dir(node.logs()).unwrap().map(|entry| entry.unwrap());
        entries.filter(|entry| entry.file_type().unwrap().is_dir()).count()
    };
    assert_eq!(on_disk(), 1);
    assert_eq!(create(&longest), 0);
    assert_eq!(create("__consumer_offsets"), 0);
    let response = node.call(9, &named(&["__consumer_offsets", &longest], false));
    let internal: Vec<bool> = response.topics.iter().map(|topic| topic.is_internal).collect();
    assert_eq!(internal, [true, false]);
    assert_eq!(on_disk(), 3);
}

/// apache/kafka#4883, apache/kafka#8979: a partition that does not exist has one code, whoever asks.
#[test]
fn a_partition_that_does_not_exist_is_unknown_to_every_request() {
    let node = Node::start(&[("auto.create.topics.enable", "false")]);
    node.create_topic("t", 1, &[]);
    let epoch = |topic: &str, partition| {
        let partition = OffsetForLeaderPartition { partition, current_leader_epoch: -1, leader_epoch: 0 };
        let topic = OffsetForLeaderTopic { topic: Str::from(topic), partitions: vec![partition] };
        let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![topic] };
        node.call(3, &request).topics[0].partitions[0].error_code
    };
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    for (topic, partition) in [("t", 99), ("nobody", 0), ("t", -1)] {
        let produce = crate::harness::produce_request(topic, partition, good(1), -1);
        assert_eq!(node.call(9, &produce).responses[0].partition_responses[0].error_code, unknown);
        let fetch = crate::cases_tools::fetch(topic, &[(partition, 0)], 1000);
        assert_eq!(node.call(11, &fetch).responses[0].partitions[0].error_code, unknown);
        assert_eq!(crate::cases_tools::listed_in(&node, 7, topic, partition, -1, 0).0, unknown);
        assert_eq!(epoch(topic, partition), unknown);
    }
}
