//! The cleaner of a broker: what clients, metrics and files see of it.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use wire::batch::{BatchBuilder, Compression, Limits};
use wire::types::Millis;

use crate::cases_tools::{batches_of, fetched, set_topic_config};
use crate::harness::Node;

const COMPACT: [(&str, &str); 3] =
    [("cleanup.policy", "compact"), ("segment.bytes", "1000"), ("min.cleanable.dirty.ratio", "0.1")];

fn record(key: &str, value: &str) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.append(Millis(1_000), Some(key.as_bytes()), Some(value.as_bytes()));
    builder.build().unwrap().bytes
}

/// Writes two keys again and again, and one that is written once.
fn write(node: &Node, topic: &str) -> i64 {
    node.produce(topic, 0, record("once", "0")).unwrap();
    let mut last = 0;
    for round in 0..40 {
        last = node.produce(topic, 0, record(&format!("k{}", round % 2), &format!("{round:0100}"))).unwrap();
    }
    last
}

/// The offsets and keys that a consumer finds, reading on from where each answer ends.
fn keys(node: &Node, topic: &str, end: i64) -> Vec<(i64, String)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < end {
        let batches = batches_of(&fetched(node, 11, topic, at));
        assert!(!batches.is_empty(), "nothing at {at}");
        for batch in batches {
            batch.verify_crc().unwrap();
            for record in batch.records(Limits::default()).map(Result::unwrap) {
                found.push((record.offset.0, String::from_utf8(record.key.unwrap().to_vec()).unwrap()));
            }
            at = batch.header.next_offset().0;
        }
    }
    found
}

fn rounds(node: &Node, count: usize) {
    for _ in 0..count {
        node.broker.clean();
    }
}

fn metric(node: &Node, name: &str) -> String {
    let text = node.broker.render_metrics();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.rsplit_once(' ')).unwrap().1.to_owned()
}

fn checkpoint(node: &Node) -> PathBuf {
    node.logs().join("cleaner-offset-checkpoint")
}

#[test]
fn a_consumer_finds_the_latest_record_of_each_key_at_its_offset_and_the_end_where_it_was() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &COMPACT);
    let last = write(&node, "t");
    assert_eq!(node.broker.cleaner_threads(), 1);
    assert_eq!(metric(&node, "kafka_log_logcleaner_cleaner_recopy_percent"), "0.0");
    rounds(&node, 3);
    let found = keys(&node, "t", last + 1);
    assert!(found.len() < 15, "{found:?}");
    assert_eq!(found[0], (0, "once".into()));
    assert_eq!(found[found.len() - 2..], [(last - 1, "k0".into()), (last, "k1".into())]);
    assert_eq!(node.produce("t", 0, record("next", "1")).unwrap(), last + 1);
    let text = std::fs::read_to_string(checkpoint(&node)).unwrap();
    assert!(text.starts_with("0\n1\nt 0 "), "{text}");
    assert_ne!(metric(&node, "kafka_log_logcleaner_cleaner_recopy_percent"), "0.0");
    assert_eq!(metric(&node, "kafka_log_logcleanermanager_max_dirty_percent"), "0.0");
    assert_eq!(metric(&node, "kafka_log_logcleaner_deadthreadcount"), "0.0");
    assert_eq!(metric(&node, "kafka_log_logcleanermanager_uncleanable_partitions_count{"), "0.0");
    let node = node.restart(&[]);
    assert_eq!(keys(&node, "t", last + 2)[..found.len()], found);
    assert_eq!(std::fs::read_to_string(checkpoint(&node)).unwrap(), text);
}

/// KAFKA-7322.
#[test]
fn another_policy_holds_from_the_next_round_on() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &COMPACT);
    set_topic_config(&node, "t", "cleanup.policy", "delete");
    let last = write(&node, "t");
    rounds(&node, 2);
    assert_eq!(keys(&node, "t", last + 1).len(), 41);
    set_topic_config(&node, "t", "cleanup.policy", "compact");
    rounds(&node, 2);
    assert!(keys(&node, "t", last + 1).len() < 15);
}

#[test]
fn retention_of_a_compacted_topic_is_the_cleaners_where_there_is_one() {
    let policy = [("cleanup.policy", "compact,delete"), ("segment.bytes", "1000"), ("retention.ms", "5000")];
    for (cleaner, by_the_cleaner) in [("true", true), ("false", false)] {
        let node = Node::start(&[("log.cleaner.enable", cleaner)]);
        assert_eq!(node.broker.cleaner_threads(), usize::from(by_the_cleaner));
        node.create_topic("t", 1, &policy);
        let last = write(&node, "t");
        node.advance(Duration::from_secs(600));
        node.broker.housekeep();
        let segments = || metric(&node, "kafka_log_log_numlogsegments");
        assert_eq!(segments() == "1.0", !by_the_cleaner);
        if by_the_cleaner {
            rounds(&node, 2);
        }
        assert_eq!(segments(), "1.0");
        assert_eq!(node.produce("t", 0, record("next", "1")).unwrap(), last + 1);
    }
}

#[test]
fn a_broker_that_shuts_down_compacts_no_more() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &COMPACT);
    write(&node, "t");
    node.broker.shut_down();
    assert_eq!(node.broker.clean(), i64::MAX);
    assert!(std::fs::read_to_string(checkpoint(&node)).unwrap().lines().count() < 3);
}

/// The rest between two rounds, and none while there is work.
#[test]
fn the_cleaner_rests_only_when_there_is_nothing_to_compact() {
    let node = Node::start(&[("log.cleaner.backoff.ms", "70000")]);
    node.create_topic("t", 1, &COMPACT);
    write(&node, "t");
    let worked = node.broker.clean();
    let idle = node.broker.clean();
    assert!(idle - worked >= 70_000, "{worked}, {idle}");
}
