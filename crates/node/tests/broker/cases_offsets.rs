//! Offsets by time and by meaning, where other brokers gave the nearest instead of the right one.

use std::time::Duration;

use bytes::Bytes;
use wire::batch::{BatchBuilder, Compression};
use wire::error_code::ErrorCode;
use wire::types::{LeaderEpoch, Millis, Offset};

use crate::cases_tools::{CODECS, good, listed, marker, now_ms, set_topic_config, stamped};
use crate::harness::Node;

const NOTHING: (i16, i64, i64, i32) = (0, -1, -1, -1);

/// redpanda-data/redpanda#4308, redpanda-data/redpanda#4322: nothing found is told as nothing.
#[test]
fn no_record_at_or_after_a_time_is_no_offset() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    assert_eq!(listed(&node, 7, "t", 0, 0), NOTHING);
    node.produce("t", 0, stamped(Compression::None, &[1_000, 2_000]).bytes).unwrap();
    for version in 4..=9 {
        assert_eq!(listed(&node, version, "t", 2_001, 0), NOTHING, "v{version}");
        assert_eq!(listed(&node, version, "t", 2_000, 0), (0, 2_000, 1, 0), "v{version}");
    }
    set_topic_config(&node, "t", "retention.ms", "1");
    node.advance(Duration::from_secs(3_600));
    node.broker.housekeep();
    assert_eq!(listed(&node, 7, "t", -2, 0).2, 2);
    assert_eq!(listed(&node, 7, "t", 0, 0), NOTHING);
    assert_eq!(listed(&node, 7, "t", -3, 0), NOTHING);
}

/// apache/kafka#15474, apache/kafka#15621, redpanda-data/redpanda#17829: the largest timestamp has a record, and
/// it need not be the last of its batch.
#[test]
fn the_largest_timestamp_leads_to_its_own_record() {
    for codec in CODECS {
        let node = Node::start(&[]);
        node.create_topic("t", 1, &[]);
        assert_eq!(listed(&node, 7, "t", -3, 0), NOTHING);
        node.produce("t", 0, stamped(codec, &[100, 300, 200]).bytes).unwrap();
        // A tie goes to the earliest.
        node.produce("t", 0, stamped(codec, &[300, 5]).bytes).unwrap();
        let unsupported = (ErrorCode::UnsupportedVersion.code(), -1, -1, -1);
        let check = |node: &Node| {
            assert_eq!(listed(node, 7, "t", -3, 0), (0, 300, 1, 0), "{codec:?}");
            assert_eq!(listed(node, 6, "t", -3, 0), unsupported);
        };
        check(&node);
        let node = node.restart(&[]);
        check(&node);
        let node = node.restart_killed(&[], |logs| {
            let _ = std::fs::remove_file(logs.join("t-0/00000000000000000000.timeindex"));
        });
        check(&node);
    }
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("message.timestamp.type", "LogAppendTime")]);
    node.produce("t", 0, good(3)).unwrap();
    let (error, timestamp, offset, _) = listed(&node, 7, "t", -3, 0);
    assert_eq!((error, offset), (0, 0));
    assert!((now_ms() - 60_000..=now_ms()).contains(&timestamp));
}

/// redpanda-data/redpanda#3161, apache/kafka#3456: readers of committed records see no end beyond what is decided.
#[test]
fn an_open_transaction_bounds_what_committed_readers_are_told() {
    let plain = |base: i64, time: i64| {
        let mut builder =
            BatchBuilder::new(Compression::None).base_offset(Offset(base)).leader_epoch(LeaderEpoch(0));
        for at in 0..10 {
            builder.append(Millis(time + at), None, Some(b"v"));
        }
        builder.build().unwrap().bytes
    };
    let mut open = BatchBuilder::new(Compression::None)
        .base_offset(Offset(10))
        .leader_epoch(LeaderEpoch(0))
        .producer(77, 0, 0)
        .transactional(true);
    for at in 0..5 {
        open.append(Millis(now_ms() + at), None, Some(b"t"));
    }
    let start = now_ms() - 1_000;
    let log: Bytes =
        [plain(0, start), open.build().unwrap().bytes, plain(15, now_ms() + 1_000)].concat().into();
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let file = "t-0/00000000000000000000.log";
    let node = node.restart_killed(&[], |logs| std::fs::write(logs.join(file), &log).unwrap());
    let (committed, uncommitted) = (1, 0);
    assert_eq!(listed(&node, 7, "t", -1, committed).2, 10);
    assert_eq!(listed(&node, 7, "t", -1, uncommitted).2, 25);
    assert_eq!(listed(&node, 7, "t", start + 3, committed).2, 3);
    assert_eq!(listed(&node, 7, "t", start + 10, committed), NOTHING);
    assert_eq!(listed(&node, 7, "t", start + 10, uncommitted).2, 10);
    // Both agree once the marker of the transaction is there.
    let decided: Bytes = [&log[..], &marker(25, 77, true)].concat().into();
    let node = node.restart_killed(&[], |logs| std::fs::write(logs.join(file), &decided).unwrap());
    for isolation in [committed, uncommitted] {
        assert_eq!(listed(&node, 7, "t", -1, isolation).2, 26);
        assert_eq!(listed(&node, 7, "t", start + 10, isolation).2, 10);
    }
}

/// redpanda-data/redpanda#25769: times of 1970 in few batches or one record each lead to their records.
#[test]
fn times_far_from_the_clock_are_found_exactly() {
    for per_batch in [1, 30] {
        let node = Node::start(&[]);
        node.create_topic("t", 1, &[("index.interval.bytes", "100")]);
        let times: Vec<i64> = (1..=100).collect();
        for times in times.chunks(per_batch) {
            node.produce("t", 0, stamped(Compression::Snappy, times).bytes).unwrap();
        }
        let check = |node: &Node| {
            for time in 1..=100 {
                assert_eq!(listed(node, 7, "t", time, 0), (0, time, time - 1, 0));
            }
            assert_eq!(listed(node, 7, "t", 101, 0), NOTHING);
        };
        check(&node);
        check(&node.restart(&[]));
    }
}
