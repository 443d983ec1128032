//! Batches from the field that other brokers took, cut, or kept wrongly.

use std::time::Duration;

use bytes::Bytes;
use node::call::Outcome;
use wire::batch::{BatchBuilder, BatchHeader, Compression, Limits, TimestampType};
use wire::error_code::ErrorCode;
use wire::messages::ProduceResponse;
use wire::types::{LeaderEpoch, Millis, Offset};

use crate::cases_tools::{
    CODECS, all_records, batches_of, end_offset, fetched, forged, forged_body, good, listed, now_ms,
    produced, set_topic_config, sized, stamped,
};
use crate::harness::{Node, PATIENCE, answer, frame, produce_request};

/// segmentio/kafka-go#813, tulios/kafkajs#562, KAFKA-5490: a batch that compaction has emptied is served with
/// its range, so that readers get past it.
#[test]
fn an_emptied_batch_in_the_log_is_served_as_a_header_with_its_range() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.produce("t", 0, good(1)).unwrap();
    let emptied = forged_body(
        &BatchBuilder::new(Compression::None)
            .producer(7, 0, 0)
            .append(Millis(5), None, None)
            .build()
            .unwrap(),
        |h| (h.records_count, h.last_offset_delta, h.partition_leader_epoch) = (0, 2, LeaderEpoch(0)),
        &[],
    );
    let last = forged(&stamped(Compression::None, &[6]), |h| {
        (h.base_offset, h.partition_leader_epoch) = (Offset(3), LeaderEpoch(0));
    });
    let node = node.restart_killed(&[], |logs| {
        std::fs::write(logs.join("t-0/00000000000000000000.log"), [emptied, last].concat()).unwrap();
    });
    assert_eq!(end_offset(&node, "t"), 4);
    for offset in 0..3 {
        let batches = batches_of(&fetched(&node, 4, "t", offset));
        let header = batches[0].header;
        assert_eq!((header.base_offset, header.last_offset_delta, header.records_count), (Offset(0), 2, 0));
        batches[0].verify_crc().unwrap();
        assert_eq!(header.next_offset(), Offset(3));
    }
    assert_eq!(batches_of(&fetched(&node, 4, "t", 3))[0].header.base_offset, Offset(3));
}

/// KAFKA-6554: counts that do not fit the offsets would leave holes that break readers.
#[test]
fn a_batch_whose_counts_do_not_fit_its_offsets_leaves_no_trace() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.produce("t", 0, good(2)).unwrap();
    let three = stamped(Compression::None, &[1, 2, 3]);
    let mutants: [fn(&mut BatchHeader); 4] = [
        |h| h.last_offset_delta = 5,
        |h| h.last_offset_delta = -1,
        |h| h.records_count = 0,
        |h| h.records_count = -1,
    ];
    for mutant in mutants {
        let it = produced(&node, 7, "t", forged(&three, mutant));
        assert_eq!((it.error_code, it.base_offset), (ErrorCode::InvalidRecord.code(), -1));
        assert_eq!(end_offset(&node, "t"), 2);
    }
    assert_eq!(node.produce("t", 0, three.bytes), Ok(2));
}

/// TrackingSoft/Kafka#39, eapache/go-xerial-snappy#2: streams of several 32 KiB chunks come whole.
#[test]
fn snappy_of_any_size_is_stored_whole_in_another_codec() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("compression.type", "zstd")]);
    let mut noise = 1_u32;
    for size in (31 * 1024..1024 * 1024 - 200).step_by(67_111) {
        let mut builder = BatchBuilder::new(Compression::Snappy);
        let mut sent = Vec::new();
        for chunk in 0..size / 1024 {
            let value: Vec<u8> = (0..1024_usize)
                .map(|at| {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if (at + chunk) % 3 == 0 { noise.to_be_bytes()[0] } else { b'x' }
                })
                .collect();
            builder.append(Millis(now_ms()), None, Some(&value));
            sent.push(value);
        }
        let offset = node.produce("t", 0, builder.build().unwrap().bytes).unwrap();
        let batches = batches_of(&fetched(&node, 12, "t", offset));
        assert_eq!(batches[0].header.compression(), Ok(wire::batch::CompressionType::Zstd));
        let records = batches[0].records(Limits::default()).map(|record| record.unwrap().value.unwrap());
        assert!(records.eq(sent), "{size} bytes");
    }
}

/// IBM/sarama#1045, confluentinc/librdkafka#1716, twmb/franz-go#1129: the limit is for one batch as it is sent
/// or as it would be stored, whatever it expands to.
#[test]
fn max_message_bytes_is_compared_with_the_batch_as_sent_and_as_stored() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("max.message.bytes", "1000")]);
    node.create_topic("plain", 1, &[("max.message.bytes", "1000"), ("compression.type", "uncompressed")]);
    node.create_topic("short", 1, &[("segment.bytes", "1000")]);
    let mut gzip = BatchBuilder::new(Compression::Gzip { level: 9 });
    gzip.append(Millis(now_ms()), None, Some(&vec![0; 500_000]));
    let gzip = gzip.build().unwrap().bytes;
    assert!(gzip.len() < 1000);
    let many = good(100);
    assert!(many.len() > 1000);
    let too_large = Err(ErrorCode::MessageTooLarge);
    let table = [
        ("t", sized(999), Ok(0)),
        ("t", sized(1000), Ok(1)),
        ("t", sized(1001), too_large),
        ("t", gzip.clone(), Ok(2)),
        ("t", many, too_large),
        ("t", sized(100), Ok(3)),
        ("plain", gzip, too_large),
        ("plain", sized(1000), Ok(0)),
        ("short", sized(1001), Err(ErrorCode::RecordListTooLarge)),
        ("short", sized(1000), Ok(0)),
    ];
    for (at, (topic, records, expected)) in table.into_iter().enumerate() {
        assert_eq!(node.produce(topic, 0, records), expected, "case {at}");
    }
    assert_eq!((end_offset(&node, "t"), end_offset(&node, "plain"), end_offset(&node, "short")), (4, 1, 1));
}

/// redpanda-data/redpanda#29624: what only brokers may set is refused, and no byte of it is stored.
#[test]
fn clients_cannot_set_what_belongs_to_brokers() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("message.timestamp.type", "LogAppendTime")]);
    let marker = forged(&stamped(Compression::None, &[1]), |h| {
        (h.producer_id, h.producer_epoch, h.base_sequence) = (7, 0, 0);
        h.set_control(true);
    });
    let one = stamped(Compression::None, &[1]);
    let mut old_magic = one.bytes.to_vec();
    old_magic[16] = 1;
    let refused = [
        (forged(&one, |h| h.base_offset = Offset(42)), ErrorCode::InvalidRecord),
        (marker, ErrorCode::InvalidRecord),
        (forged(&one, |h| h.set_timestamp_type(TimestampType::LogAppendTime)), ErrorCode::InvalidTimestamp),
        ([&one.bytes[..], &one.bytes].concat().into(), ErrorCode::InvalidRecord),
        (old_magic.into(), ErrorCode::InvalidRecord),
        (Bytes::new(), ErrorCode::InvalidRecord),
    ];
    for (at, (records, code)) in refused.into_iter().enumerate() {
        assert_eq!(produced(&node, 7, "t", records).error_code, code.code(), "case {at}");
    }
    let mut null = produce_request("t", 0, Bytes::new(), -1);
    null.topic_data[0].partition_data[0].records = None;
    let null = node.call(7, &null).responses[0].partition_responses[0].error_code;
    assert_eq!(null, ErrorCode::InvalidRecord.code());
    let log = node.logs().join("t-0/00000000000000000000.log");
    assert_eq!(std::fs::metadata(log).unwrap().len(), 0);
    // The leader epoch is the broker's, whatever the client says.
    assert_eq!(node.produce("t", 0, forged(&one, |h| h.partition_leader_epoch = LeaderEpoch(9))), Ok(0));
    let stored = batches_of(&fetched(&node, 12, "t", 0));
    assert_eq!(stored[0].header.partition_leader_epoch, LeaderEpoch(0));
}

/// apache/kafka#7142, redpanda-data/redpanda#6631: damage is told in order, counted, and keeps the connection.
#[test]
fn wrong_checksums_are_answered_in_order_and_counted() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let batch = good(2);
    let flipped = |at: usize| {
        let mut bytes = batch.to_vec();
        bytes[at] ^= 1;
        Bytes::from(bytes)
    };
    let sent = [flipped(batch.len() - 2), flipped(17), flipped(15), batch.clone()];
    let waiting: Vec<_> =
        sent.into_iter().map(|it| node.submit(frame(9, &produce_request("t", 0, it, -1)))).collect();
    let codes: Vec<i16> = waiting
        .iter()
        .map(|it| answer::<ProduceResponse>(it, 9).responses[0].partition_responses[0].error_code)
        .collect();
    assert_eq!(codes, [2, 2, 0, 0]);
    let metrics = node.broker.render_metrics();
    let counter = metrics.lines().find(|line| {
        line.contains("invalidmessagecrcrecords") && !line.starts_with('#') && line.ends_with(" 2")
    });
    assert!(counter.is_some(), "{metrics}");
    assert_eq!(all_records(&node, "t").len(), 4);
}

/// KIP-467, apache/kafka#7612: every bad record is named, and a fault of a timestamp decides on the code.
#[test]
fn every_bad_record_of_a_batch_is_named_from_version_8_on() {
    let node = Node::start(&[]);
    let limits = [("cleanup.policy", "compact"), ("message.timestamp.before.max.ms", "3600000")];
    node.create_topic("t", 1, &limits);
    let now = now_ms();
    let build = |records: [(bool, i64); 5]| {
        let mut builder = BatchBuilder::new(Compression::None);
        for (keyed, timestamp) in records {
            builder.append(Millis(timestamp), keyed.then_some(b"k".as_slice()), Some(b"v"));
        }
        builder.build().unwrap().bytes
    };
    let keys = build([(true, now), (false, now), (true, now), (false, now), (true, now)]);
    let times = build([(true, 5), (true, now), (true, now), (true, now), (true, 5)]);
    let both = build([(true, now), (false, now), (true, now), (true, 5), (true, now)]);
    let invalid_record = ErrorCode::InvalidRecord.code();
    let invalid_timestamp = ErrorCode::InvalidTimestamp.code();
    for (records, code, places) in [
        (keys, invalid_record, [1, 3]),
        (times, invalid_timestamp, [0, 4]),
        (both, invalid_timestamp, [1, 3]),
    ] {
        for version in 3..=11 {
            let it = produced(&node, version, "t", records.clone());
            let named: Vec<i32> = it.record_errors.iter().map(|error| error.batch_index).collect();
            assert_eq!((it.error_code, it.base_offset), (code, -1), "v{version}");
            if version >= 8 {
                assert_eq!(named, places, "v{version}");
                assert!(it.error_message.is_some());
                assert!(it.record_errors.iter().all(|it| it.batch_index_error_message.is_some()));
            } else {
                assert!(named.is_empty() && it.error_message.is_none());
            }
        }
    }
    assert_eq!(end_offset(&node, "t"), 0);
}

/// redpanda-data/redpanda#11922: with LogAppendTime only the broker's time counts, everywhere and after a crash.
#[test]
fn log_append_time_leaves_nothing_of_the_clients_time() {
    let node = Node::start(&[]);
    let configs = [("message.timestamp.type", "LogAppendTime"), ("index.interval.bytes", "0")];
    node.create_topic("t", 1, &configs);
    let ahead = now_ms() + 10 * 365 * 24 * 3_600_000;
    let before = now_ms();
    for codec in CODECS {
        let it = produced(&node, 9, "t", stamped(codec, &[ahead, ahead + 1]).bytes);
        assert_eq!(it.error_code, 0);
        assert!((before..=now_ms()).contains(&it.log_append_time_ms), "{}", it.log_append_time_ms);
    }
    let mut idempotent = BatchBuilder::new(Compression::None).producer(900, 0, 0);
    idempotent.append(Millis(ahead), None, None);
    let told = produced(&node, 9, "t", idempotent.build().unwrap().bytes).log_append_time_ms;
    let after = now_ms();
    assert!((before..=after).contains(&told));
    let check = |node: &Node| {
        for batch in batches_of(&fetched(node, 12, "t", 0)) {
            batch.verify_crc().unwrap();
            assert_eq!(batch.header.timestamp_type(), TimestampType::LogAppendTime);
            assert!((before..=after).contains(&batch.header.max_timestamp.0));
        }
        assert!(all_records(node, "t").iter().all(|(_, timestamp)| (before..=after).contains(timestamp)));
        assert!((before..=after).contains(&listed(node, 7, "t", -3, 0).1));
        assert_eq!(listed(node, 7, "t", after + 1, 0), (0, -1, -1, -1));
    };
    check(&node);
    let node = node.restart_killed(&[], |logs| {
        std::fs::remove_file(logs.join("t-0/00000000000000000000.timeindex")).unwrap();
    });
    check(&node);
    set_topic_config(&node, "t", "retention.ms", "1");
    node.advance(Duration::from_secs(3_600));
    node.broker.housekeep();
    assert_eq!(listed(&node, 7, "t", -2, 0).2, 11);
}

/// redpanda-data/redpanda#4010: times that run backwards wrap nowhere, and lookups agree with a scan.
#[test]
fn times_that_run_backwards_are_found_as_by_a_scan() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("index.interval.bytes", "0")]);
    let now = now_ms();
    let hour = 3_600_000;
    let sent: [&[i64]; 8] = [
        &[now],
        &[now - hour],
        &[now - 30 * 24 * hour],
        &[now - 60 * 365 * 24 * hour],
        &[0],
        &[-1],
        &[now - 5, 17],
        &[3, now - 1],
    ];
    for timestamps in sent {
        node.produce("t", 0, stamped(Compression::None, timestamps).bytes).unwrap();
    }
    let check = |node: &Node| {
        let all = all_records(node, "t");
        assert_eq!(all.len(), 10);
        let edges = all.iter().flat_map(|(_, timestamp)| [timestamp - 1, *timestamp, timestamp + 1]);
        for target in edges.filter(|target| *target >= 0) {
            let expected = all.iter().find(|(_, timestamp)| *timestamp >= target);
            let (offset, timestamp) = expected.copied().unwrap_or((-1, -1));
            let epoch = if offset < 0 { -1 } else { 0 };
            assert_eq!(listed(node, 7, "t", target, 0), (0, timestamp, offset, epoch), "at {target}");
        }
        assert_eq!(listed(node, 7, "t", -3, 0), (0, now, 0, 0));
    };
    check(&node);
    let node = node.restart_killed(&[], |logs| {
        std::fs::remove_file(logs.join("t-0/00000000000000000000.timeindex")).unwrap();
    });
    check(&node);
}

/// apache/kafka#22162: what the LZ4 reader of consumers refuses is refused at once, and the connection goes on.
#[test]
fn compressed_garbage_is_refused_for_the_partition() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    for codec in CODECS.into_iter().skip(1) {
        let batch = stamped(codec, &[1, 2, 3]);
        let cut = forged_body(&batch, |_| {}, &batch.body()[..batch.body().len() / 2]);
        let receiver = node.submit(frame(9, &produce_request("t", 0, cut, -1)));
        let response: ProduceResponse = answer(&receiver, 9);
        let code = response.responses[0].partition_responses[0].error_code;
        assert_eq!(code, ErrorCode::InvalidRecord.code(), "{codec:?}");
    }
    let good = node.submit(frame(9, &produce_request("t", 0, good(1), 0)));
    assert!(matches!(good.recv_timeout(PATIENCE).unwrap(), Outcome::NoResponse));
    assert_eq!(end_offset(&node, "t"), 1);
}
