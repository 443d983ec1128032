//! Directories and times that other brokers choked on.

use std::time::Duration;

use wire::batch::Compression;
use wire::error_code::ErrorCode;

use crate::cases_tools::{
    all_records, delete_topic, end_offset, good, listed, now_ms, produced, set_topic_config, stamped,
};
use crate::harness::Node;

/// strimzi/strimzi-kafka-operator#1307, KAFKA-5232: a volume may hold more than logs, and nothing of it is touched.
#[test]
fn foreign_content_of_a_log_directory_is_left_as_it_is() {
    let node = Node::start(&[]);
    node.create_topic("a.b", 4, &[]);
    node.produce("a.b", 0, good(3)).unwrap();
    let foreign = ["lost+found/x", ".snapshot/y", "c.d-0.0123456789abcdef0123456789abcdef-stray/z"];
    let deleted = "a.b-3.fedcba9876543210fedcba9876543210-delete";
    let node = node.restart_killed(&[], |logs| {
        for path in foreign {
            std::fs::create_dir(logs.join(path).parent().unwrap()).unwrap();
            std::fs::write(logs.join(path), path).unwrap();
        }
        std::fs::write(logs.join("t-0"), "a file with the name of a log").unwrap();
        std::fs::create_dir(logs.join(deleted)).unwrap();
    });
    assert_eq!(end_offset(&node, "a.b"), 3);
    node.advance(Duration::from_secs(3_600));
    node.broker.housekeep();
    let logs = node.logs();
    for path in foreign {
        assert_eq!(std::fs::read_to_string(logs.join(path)).unwrap(), path);
    }
    assert!(logs.join("t-0").is_file());
    assert!(!logs.join(deleted).exists());
    assert!(logs.join("a.b-3").is_dir());
}

/// bitnami/bitnami-docker-kafka#34, bitnami/bitnami-docker-kafka#33, apache/kafka#8936: damaged indexes cost neither
/// records nor their times, after a clean stop as after a crash.
#[test]
fn damaged_indexes_are_built_anew_and_nothing_is_deleted() {
    type Damage = fn(&std::path::Path);
    let damages: [Damage; 5] = [
        |file| std::fs::remove_file(file).unwrap(),
        |file| std::fs::write(file, [1, 2, 3]).unwrap(),
        |file| std::fs::write(file, vec![0; 1_000_008]).unwrap(),
        |file| std::fs::write(file, vec![0xff; 1_200]).unwrap(),
        |file| std::fs::write(file, []).unwrap(),
    ];
    for damage in damages {
        for clean in [true, false] {
            let mut node = Node::start(&[]);
            let configs = [("index.interval.bytes", "100"), ("segment.bytes", "2000")];
            node.create_topic("t", 1, &configs);
            let start = now_ms();
            for at in 0..60 {
                node.produce("t", 0, stamped(Compression::None, &[start + at]).bytes).unwrap();
            }
            if clean {
                node = node.restart(&[]);
                node.broker.shut_down();
            }
            let node = node.restart_killed(&[], |logs| {
                let entries = std::fs::read_dir(logs.join("t-0")).unwrap();
                let paths = entries.map(|entry| entry.unwrap().path());
                let indexes = paths
                    .filter(|path| path.extension().is_some_and(|it| it == "index" || it == "timeindex"));
                indexes.for_each(|path| damage(&path));
            });
            node.advance(Duration::from_secs(3_600));
            node.broker.housekeep();
            assert_eq!(all_records(&node, "t"), (0..60).map(|at| (at, start + at)).collect::<Vec<_>>());
            for at in [0, 1, 31, 59] {
                assert_eq!(listed(&node, 7, "t", start + at, 0), (0, start + at, at, 0));
            }
            assert_eq!(node.produce("t", 0, good(1)), Ok(60));
        }
    }
}

/// apache/kafka#4473, redpanda-data/redpanda#9820, apache/kafka#19137: a record from the future holds its segment, size
/// goes on counting, and a limit keeps such records out.
#[test]
fn a_record_from_the_future_is_kept_by_time_and_removed_by_size() {
    let node = Node::start(&[]);
    node.create_topic(
        "t",
        1,
        &[("retention.ms", "60000"), ("message.timestamp.after.max.ms", "9223372036854775807")],
    );
    let retention = |node: &Node| {
        node.advance(Duration::from_secs(600));
        node.broker.housekeep();
        listed(node, 7, "t", -2, 0).2
    };
    // Microseconds taken for milliseconds.
    node.produce("t", 0, stamped(Compression::None, &[now_ms() * 1000]).bytes).unwrap();
    for _ in 0..3 {
        set_topic_config(&node, "t", "segment.bytes", "100");
        node.produce("t", 0, good(1)).unwrap();
        assert_eq!(retention(&node), 0);
    }
    set_topic_config(&node, "t", "retention.bytes", "1");
    assert!(retention(&node) > 0);
    set_topic_config(&node, "t", "message.timestamp.after.max.ms", "3600000");
    set_topic_config(&node, "t", "segment.bytes", "1000000");
    let ahead = stamped(Compression::None, &[now_ms() * 1000]).bytes;
    assert_eq!(produced(&node, 9, "t", ahead).error_code, ErrorCode::InvalidTimestamp.code());
    for timestamp in [0, -1] {
        assert_eq!(produced(&node, 9, "t", stamped(Compression::None, &[timestamp]).bytes).error_code, 0);
    }
}

/// confluentinc/librdkafka#1238: records stamped in seconds are of 1970, and old; their offsets are not used again.
#[test]
fn records_stamped_in_seconds_are_deleted_at_once_unless_they_are_refused() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    for timestamp in [now_ms() / 1000, 0] {
        node.produce("t", 0, stamped(Compression::None, &[timestamp, timestamp]).bytes).unwrap();
    }
    node.advance(Duration::from_secs(600));
    node.broker.housekeep();
    assert_eq!((listed(&node, 7, "t", -2, 0).2, end_offset(&node, "t")), (4, 4));
    assert_eq!(node.produce("t", 0, good(1)), Ok(4));
    let node = node.restart(&[]);
    assert_eq!(node.produce("t", 0, good(1)), Ok(5));
    set_topic_config(&node, "t", "message.timestamp.before.max.ms", "86400000");
    let old = stamped(Compression::None, &[now_ms() / 1000]).bytes;
    assert_eq!(produced(&node, 9, "t", old).error_code, ErrorCode::InvalidTimestamp.code());
}

/// apache/kafka#4517, apache/kafka#7773: topics that come and go and segments that roll leave no file open.
#[test]
fn deleted_topics_and_removed_segments_leave_no_file_open() {
    let node = Node::start(&[]);
    let open_here = || {
        let logs = node.logs();
        let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        links.filter(|link| std::fs::read_link(link.path()).is_ok_and(|file| file.starts_with(&logs))).count()
    };
    let rest = |node: &Node| {
        node.advance(Duration::from_secs(3_600));
        node.broker.housekeep();
    };
    let before = open_here();
    for _ in 0..20 {
        node.create_topic("t", 10, &[]);
        for partition in 0..10 {
            node.produce("t", partition, good(1)).unwrap();
        }
        assert!(open_here() > before);
        delete_topic(&node, "t");
        rest(&node);
        assert_eq!(open_here(), before);
    }
    node.create_topic("t", 1, &[("segment.bytes", "100"), ("retention.bytes", "100")]);
    node.produce("t", 0, good(1)).unwrap();
    rest(&node);
    let one_segment = open_here();
    for _ in 0..200 {
        node.produce("t", 0, good(1)).unwrap();
    }
    rest(&node);
    rest(&node);
    assert!(open_here() <= one_segment + 4, "{} files are open, {one_segment} were", open_here());
}
