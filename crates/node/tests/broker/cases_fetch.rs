//! Fetches that skipped, starved or misled consumers of other brokers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use wire::Str;
use wire::batch::{BatchBuilder, Compression, Limits};
use wire::error_code::ErrorCode;
use wire::messages::fetch_request::ForgottenTopic;
use wire::messages::fetch_response::PartitionData;
use wire::messages::{FetchRequest, FetchResponse};
use wire::types::{LeaderEpoch, Millis, Offset};

use crate::cases_tools::{
    CODECS, batches_of, delete_records, delete_topic, end_offset, fetch, fetched, good, listed, marker,
    now_ms, sized, topic_id,
};
use crate::harness::{Node, answer, frame};

/// The partitions of an answer that hold records, with the first offset of each.
fn with_records(response: &FetchResponse) -> Vec<(i32, i64)> {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    let first = |it: &PartitionData| batches_of(it).first().map(|batch| batch.header.base_offset.0);
    partitions.filter_map(|it| Some((it.partition_index, first(it)?))).collect()
}

/// KIP-74, Parsely/pykafka#102, tulios/kafkajs#1677: one batch always comes, however small the limits.
#[test]
fn the_first_partition_with_data_gives_one_whole_batch_whatever_the_limits() {
    let node = Node::start(&[("fetch.max.bytes", "1024")]);
    node.create_topic("t", 3, &[]);
    for partition in [1, 2] {
        for _ in 0..2 {
            node.produce("t", partition, sized(900_000)).unwrap();
        }
    }
    for (max_bytes, partition_max_bytes) in [(1, 1), (1000, 1 << 20), (i32::MAX, i32::MAX)] {
        for order in [[0, 1, 2], [2, 0, 1]] {
            let asked = order.map(|partition| (partition, 0));
            let request = FetchRequest { max_bytes, ..fetch("t", &asked, partition_max_bytes) };
            let response = node.call(4, &request);
            let first = order.into_iter().find(|partition| *partition != 0).unwrap();
            assert_eq!(with_records(&response), [(first, 0)]);
            let it = response.responses[0].partitions.iter().find(|it| it.partition_index == first);
            assert_eq!(it.unwrap().records.as_ref().unwrap().len(), 900_000);
        }
    }
}

/// platformatic/kafka#321, KIP-227: what was forgotten is never told again, what was not is told from where it was.
#[test]
fn a_session_forgets_what_it_is_told_to_and_nothing_else() {
    let node = Node::start(&[]);
    node.create_topic("t", 2, &[]);
    let mut open = fetch("t", &[(0, 0), (1, 0)], 1000);
    open.session_epoch = 0;
    let id = node.call(12, &open).session_id;
    assert!(id > 0);
    let next = |session_epoch, forgotten: &[i32], asked: &[(i32, i64)]| {
        let forget = ForgottenTopic {
            topic: Str::from("t"),
            partitions: forgotten.to_vec(),
            ..ForgottenTopic::default()
        };
        let mut request = fetch("t", asked, 1000);
        request.topics.retain(|topic| !topic.partitions.is_empty());
        request.forgotten_topics_data = if forgotten.is_empty() { vec![] } else { vec![forget] };
        (request.session_id, request.session_epoch) = (id, session_epoch);
        node.call(12, &request)
    };
    node.produce("t", 1, good(1)).unwrap();
    // Not moved, it is told each time from the same offset.
    assert_eq!(with_records(&next(1, &[], &[])), [(1, 0)]);
    assert_eq!(with_records(&next(2, &[], &[])), [(1, 0)]);
    assert_eq!(with_records(&next(3, &[1], &[])), []);
    node.produce("t", 1, good(1)).unwrap();
    assert_eq!(with_records(&next(4, &[], &[])), []);
    // Added again; a request that names it in both lists forgets it.
    assert_eq!(with_records(&next(5, &[], &[(1, 1)])), [(1, 1)]);
    assert_eq!(with_records(&next(6, &[1], &[(1, 0)])), []);
    let wrong = next(9, &[], &[]);
    assert_eq!(wrong.error_code, ErrorCode::InvalidFetchSessionEpoch.code());
    assert!(wrong.responses.is_empty());
    let unknown = FetchRequest { session_id: id ^ 1, session_epoch: 7, ..FetchRequest::default() };
    let unknown = node.call(12, &unknown);
    assert_eq!(unknown.error_code, ErrorCode::FetchSessionIdNotFound.code());
    assert!(unknown.responses.is_empty());
}

/// KIP-516, platformatic/kafka#321: the topic of an old id is forgotten and that of a new one added at once.
#[test]
fn a_topic_made_anew_takes_its_place_in_a_session_in_one_request() {
    let node = Node::start(&[]);
    let make = || {
        node.create_topic("t", 1, &[]);
        node.produce("t", 0, good(1)).unwrap();
        topic_id(&node, "t")
    };
    let old = make();
    let mut open = fetch("", &[(0, 0)], 1000);
    (open.session_epoch, open.topics[0].topic_id) = (0, old);
    let full = node.call(13, &open);
    assert_eq!(with_records(&full), [(0, 0)]);
    delete_topic(&node, "t");
    let new = make();
    let mut next = fetch("", &[(0, 0)], 1000);
    next.topics[0].topic_id = new;
    (next.session_id, next.session_epoch) = (full.session_id, 1);
    let forget = ForgottenTopic { topic_id: old, partitions: vec![0], ..ForgottenTopic::default() };
    next.forgotten_topics_data = vec![forget];
    let response = node.call(13, &next);
    assert_eq!((response.responses.len(), response.responses[0].topic_id), (1, new));
    assert_eq!(with_records(&response), [(0, 0)]);
}

/// apache/kafka#7970, redpanda-data/redpanda#17674: the epoch that a session remembers is checked each time.
#[test]
fn an_incremental_fetch_is_fenced_by_the_epoch_it_was_opened_with() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.produce("t", 0, good(1)).unwrap();
    for (epoch, code) in [(-1, 0), (0, 0), (99, ErrorCode::UnknownLeaderEpoch.code())] {
        let mut open = fetch("t", &[(0, 0)], 1000);
        open.session_epoch = 0;
        open.topics[0].partitions[0].current_leader_epoch = epoch;
        let full = node.call(12, &open);
        let next = FetchRequest { session_id: full.session_id, session_epoch: 1, ..FetchRequest::default() };
        for response in [full, node.call(12, &next)] {
            let it = &response.responses[0].partitions[0];
            assert_eq!(
                (it.error_code, it.records.as_ref().is_some_and(|r| !r.is_empty())),
                (code, code == 0)
            );
        }
    }
}

/// apache/kafka#10318: under a limit that fits few partitions every one of a session gets its turn.
#[test]
fn no_partition_of_a_session_starves_under_a_small_limit() {
    const PARTITIONS: i32 = 20;
    let node = Node::start(&[]);
    node.create_topic("t", PARTITIONS, &[]);
    let all: Vec<(i32, i64)> = (0..PARTITIONS).map(|partition| (partition, 0)).collect();
    let mut request = FetchRequest { max_bytes: 1000, ..fetch("t", &all, 1000) };
    (request.session_epoch, request.max_wait_ms) = (0, 0);
    let mut progress: BTreeMap<i32, i64> = BTreeMap::new();
    for round in 0..200 {
        for partition in 0..PARTITIONS {
            // The watermarks of all change all the time.
            node.produce("t", partition, sized(400)).unwrap();
        }
        let response = node.call(12, &request);
        let mut moved = Vec::new();
        for it in response.responses.iter().flat_map(|topic| &topic.partitions) {
            let Some(last) = batches_of(it).last().map(|batch| batch.header.next_offset().0) else {
                continue;
            };
            *progress.entry(it.partition_index).or_default() += 1;
            moved.push((it.partition_index, last));
        }
        assert!(!moved.is_empty(), "round {round}");
        request = fetch("t", &moved, 1000);
        (request.max_bytes, request.session_id, request.session_epoch) =
            (1000, response.session_id, round + 1);
    }
    let total: i64 = progress.values().sum();
    let least =
        (0..PARTITIONS).map(|partition| progress.get(&partition).copied().unwrap_or(0)).min().unwrap();
    assert!(least * 2 >= total / i64::from(PARTITIONS), "{progress:?}");
}

/// nisshi-io/nisshi#689, apache/kafka#3239: undecided data is held back, and aborted data is named.
#[test]
fn committed_readers_stop_at_an_open_transaction_and_are_told_of_aborted_ones() {
    let batch = |base: i64, producer: Option<i64>| {
        let mut builder =
            BatchBuilder::new(Compression::None).base_offset(Offset(base)).leader_epoch(LeaderEpoch(0));
        if let Some(id) = producer {
            builder = builder.producer(id, 0, 0).transactional(true);
        }
        for _ in 0..5 {
            builder.append(Millis(now_ms()), None, Some(b"v"));
        }
        builder.build().unwrap().bytes
    };
    let log: Bytes = [batch(0, Some(77)), batch(5, None)].concat().into();
    let aborted: Bytes = [&log[..], &marker(10, 77, false)].concat().into();
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let file = "t-0/00000000000000000000.log";
    let read = |node: &Node, isolation_level| {
        let request = FetchRequest { isolation_level, ..fetch("t", &[(0, 0)], 1 << 20) };
        node.call(11, &request).responses[0].partitions[0].clone()
    };
    let node = node.restart_killed(&[], |logs| std::fs::write(logs.join(file), &log).unwrap());
    let committed = read(&node, 1);
    assert_eq!((committed.last_stable_offset, committed.high_watermark), (0, 10));
    assert!(batches_of(&committed).is_empty());
    assert!(committed.aborted_transactions.unwrap().is_empty());
    let uncommitted = read(&node, 0);
    assert_eq!((batches_of(&uncommitted).len(), uncommitted.aborted_transactions), (2, None));
    let node = node.restart_killed(&[], |logs| std::fs::write(logs.join(file), &aborted).unwrap());
    let committed = read(&node, 1);
    assert_eq!((committed.last_stable_offset, batches_of(&committed).len()), (11, 3));
    let named: Vec<_> =
        committed.aborted_transactions.unwrap().iter().map(|it| (it.producer_id, it.first_offset)).collect();
    assert_eq!(named, [(77, 0)]);
    // A fetch that had to wait is told the same.
    let mut request = FetchRequest { isolation_level: 1, ..fetch("t", &[(0, 0)], 1 << 20) };
    let held = i32::try_from(aborted.len()).unwrap();
    (request.max_wait_ms, request.min_bytes) = (60_000, held + 1);
    let waiting = node.submit(frame(11, &request));
    assert!(waiting.try_recv().is_err());
    node.produce("t", 0, good(1)).unwrap();
    let response: FetchResponse = answer(&waiting, 11);
    let it = &response.responses[0].partitions[0];
    assert_eq!((it.last_stable_offset, batches_of(it).len()), (12, 4));
    assert_eq!(it.aborted_transactions.as_ref().unwrap()[0].producer_id, 77);
}

/// apache/kafka#3191, apache/kafka#4813: a fetch from the middle of a batch gets the whole batch.
#[test]
fn a_fetch_within_a_batch_gives_the_batch_from_its_start() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.produce("t", 0, good(10)).unwrap();
    let headers: [(&[u8], Option<&[u8]>); 2] = [(b"h", Some(b"x")), (b"null", None)];
    let mut base = 10;
    for codec in CODECS {
        let mut builder = BatchBuilder::new(codec);
        for at in 0..10_i64 {
            builder.append_with_headers(Millis(now_ms()), None, Some(&at.to_be_bytes()), &headers);
        }
        assert_eq!(node.produce("t", 0, builder.build().unwrap().bytes), Ok(base));
        for version in 4..=12 {
            let batches = batches_of(&fetched(&node, version, "t", base + 5));
            let records: Vec<_> = batches[0].records(Limits::default()).map(Result::unwrap).collect();
            assert_eq!((batches[0].header.base_offset.0, records.len()), (base, 10), "{codec:?} v{version}");
            assert_eq!(records[5].offset.0, base + 5);
            assert_eq!(records[5].headers.len(), 2);
        }
        base += 10;
    }
}

/// redpanda-data/redpanda#12549, redpanda-data/redpanda#11403, apache/kafka#10930: what is told as the start is
/// readable, and what lies outside is out of range.
#[test]
fn the_start_that_is_told_is_readable_and_beyond_either_end_is_out_of_range() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    for _ in 0..4 {
        node.produce("t", 0, good(5)).unwrap();
    }
    // The start may lie within a batch.
    assert_eq!(delete_records(&node, "t", 7), (0, 7));
    let start = listed(&node, 7, "t", -2, 0).2;
    let at_start = fetched(&node, 11, "t", start);
    assert_eq!((start, at_start.error_code, at_start.log_start_offset), (7, 0, 7));
    assert_eq!(batches_of(&at_start)[0].header.base_offset.0, 5);
    let out_of_range = ErrorCode::OffsetOutOfRange.code();
    for (offset, code) in [(start - 1, out_of_range), (20, 0), (21, out_of_range), (-1, out_of_range)] {
        let it = fetched(&node, 11, "t", offset);
        assert_eq!((it.error_code, it.records.is_none_or(|it| it.is_empty())), (code, true), "at {offset}");
    }
    let mut diverging = fetch("t", &[(0, 2)], 1000);
    diverging.topics[0].partitions[0].last_fetched_epoch = 0;
    assert_eq!(node.call(12, &diverging).responses[0].partitions[0].error_code, out_of_range);
}

/// apache/kafka#8451: no answer holds records at or above its own high watermark, whatever is appended meanwhile.
#[test]
fn readers_beside_a_writer_see_nothing_above_the_high_watermark() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("segment.bytes", "20000")]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..400 {
                node.produce("t", 0, good(1 + round % 7)).unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
        let mut offset = 0;
        loop {
            let was_done = done.load(Ordering::SeqCst);
            let it = fetched(&node, 11, "t", offset);
            assert_eq!(it.error_code, 0);
            let batches = batches_of(&it);
            for batch in &batches {
                assert_eq!(batch.header.base_offset.0, offset);
                batch.verify_crc().unwrap();
                offset = batch.header.next_offset().0;
            }
            assert!(offset <= it.high_watermark, "{offset} was read below {}", it.high_watermark);
            if was_done && batches.is_empty() {
                break;
            }
        }
        assert_eq!(offset, end_offset(&node, "t"));
    });
}

/// Seen in another broker: a limit that fell near the end of a segment went on in the next one, and a million
/// records were never read.
#[test]
fn answers_adjoin_wherever_a_limit_falls() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("segment.bytes", "65536")]);
    let mut noise = 1_u32;
    for _ in 0..300 {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let wide = if noise.is_multiple_of(10) { 60_000 } else { 2_000 };
        let size = 200 + usize::try_from(noise >> 8).unwrap() % wide;
        node.produce("t", 0, sized(size)).unwrap();
    }
    let end = end_offset(&node, "t");
    let read_all = |node: &Node| {
        for limit in [1, 1_000, 30_000, 65_536, 1 << 20, 1 << 26] {
            for start in (0..end).step_by(if limit < 30_000 { 150 } else { 20 }) {
                let mut offset = start;
                while offset < end {
                    let response = node.call(11, &fetch("t", &[(0, offset)], limit));
                    let it = &response.responses[0].partitions[0];
                    assert_eq!(it.error_code, 0);
                    let batches = batches_of(it);
                    assert!(!batches.is_empty(), "nothing at {offset} under {limit}");
                    for batch in batches {
                        assert_eq!(batch.header.base_offset.0, offset, "under {limit}");
                        offset = batch.header.next_offset().0;
                    }
                }
            }
        }
    };
    read_all(&node);
    read_all(&node.restart_killed(&[], |_| {}));
}
