//! What is left of batches.

use super::super::tests::unhex;
use super::*;
use crate::batch::{BatchBuilder, Record};
use crate::random::Rng;
use crate::types::LeaderEpoch;

const COMMIT_MARKER: &str = "00000000000000080000004200000003020203945600300000000000000000000003ee0000000000\
    0003ee00000000000003e80000ffffffff000000012000000008000000010c00000000000500";
const EMPTIED: &str = "0000000000000008000000310000000302f85b9bda003000000000ffffffffffffffff00000000000003ee\
    00000000000003e80000ffffffff00000000";

const NEVER: NewHorizon = NewHorizon { at: Millis(9_000), always: false };

/// Five records at 50 to 54; the one at 52 is a tombstone, the one at 53 is the latest.
fn batch(compression: Compression) -> Batch {
    let mut builder = BatchBuilder::new(compression)
        .base_offset(Offset(50))
        .leader_epoch(LeaderEpoch(4))
        .producer(7, 1, 30)
        .transactional(true);
    let times = [1_000, 1_005, 999, 2_000, 1_500];
    for (at, time) in times.into_iter().enumerate() {
        let value = (at != 2).then_some(&b"value"[..]);
        let headers: [(&[u8], Option<&[u8]>); 1] = [(b"h", Some(b"1"))];
        builder.append_with_headers(Millis(time), Some(&[b'a' + at as u8]), value, &headers);
    }
    builder.build().unwrap()
}

fn records(batch: &Batch) -> Vec<Record> {
    batch.records(Limits::default()).collect::<Result<_, _>>().unwrap()
}

fn changed(retained: Retained) -> Batch {
    let Retained::Changed(batch) = retained else { panic!("{retained:?}") };
    assert_eq!(batch.verify_crc(), Ok(()));
    assert_eq!(Batch::parse(&batch.bytes).unwrap(), batch);
    batch
}

fn keep(batch: &Batch, offsets: &[i64], horizon: NewHorizon) -> Retained {
    batch.retain(Limits::default(), horizon, |record| offsets.contains(&record.offset.0)).unwrap()
}

fn content(record: &Record) -> (Offset, Millis, i32, Option<Bytes>, Option<Bytes>, usize) {
    (
        record.offset,
        record.timestamp,
        record.sequence,
        record.key.clone(),
        record.value.clone(),
        record.headers.len(),
    )
}

#[test]
fn kept_records_keep_everything_and_so_does_their_batch() {
    for codec in CompressionType::ALL {
        let whole = batch(codec.into());
        let left = changed(keep(&whole, &[50, 54], NEVER));
        let expected: Vec<_> = records(&whole).iter().map(content).collect();
        let found: Vec<_> = records(&left).iter().map(content).collect();
        assert_eq!(found, [expected[0].clone(), expected[4].clone()]);
        let header = BatchHeader {
            batch_length: left.header.batch_length,
            crc: left.header.crc,
            max_timestamp: Millis(1_500),
            records_count: 2,
            ..whole.header
        };
        assert_eq!(left.header, header);
        assert_eq!(left.header.compression(), Ok(codec));
        assert_eq!(left.header.last_sequence(), 34);
    }
}

#[test]
fn a_batch_that_loses_nothing_is_left_as_it_is() {
    let whole = batch(Compression::None);
    let horizon = whole.retain(Limits::default(), NEVER, |record| !record.is_tombstone).unwrap();
    let without = changed(horizon);
    assert_eq!(keep(&without, &[50, 51, 53, 54], NEVER), Retained::Unchanged);
    assert_eq!(keep(&without, &[], NEVER), Retained::Nothing);
    assert_eq!(without.emptied().unwrap().retain(Limits::default(), NEVER, |_| true), Ok(Retained::Nothing));
}

#[test]
fn a_tombstone_that_is_kept_gives_its_batch_a_delete_horizon_once() {
    for codec in CompressionType::ALL {
        let whole = batch(codec.into());
        let marked = changed(keep(&whole, &[50, 51, 52, 53, 54], NEVER));
        assert_eq!(marked.header.delete_horizon(), Some(Millis(9_000)));
        let times =
            |batch: &Batch| records(batch).iter().map(|record| record.timestamp.0).collect::<Vec<_>>();
        assert_eq!(times(&marked), times(&whole));
        assert_eq!(marked.header.max_timestamp, Millis(2_000));
        let later = NewHorizon { at: Millis(10_000), always: true };
        assert_eq!(keep(&marked, &[50, 51, 52, 53, 54], later), Retained::Unchanged);
        // A later change of the batch keeps the horizon, and the times with it.
        let fewer = changed(keep(&marked, &[52], later));
        assert_eq!(fewer.header.delete_horizon(), Some(Millis(9_000)));
        assert_eq!(times(&fewer), [999]);
    }
}

#[test]
fn a_marker_whose_transaction_is_gone_gets_a_horizon_and_is_emptied_byte_for_byte() {
    let marker = Batch::parse(&unhex(COMMIT_MARKER)).unwrap();
    assert_eq!(keep(&marker, &[8], NEVER), Retained::Unchanged);
    let marked = changed(keep(&marker, &[8], NewHorizon { at: Millis(77), always: true }));
    assert_eq!(marked.header.delete_horizon(), Some(Millis(77)));
    assert_eq!(records(&marked)[0].timestamp, Millis(1006));
    for batch in [marker, marked] {
        assert_eq!(batch.emptied().unwrap().bytes, unhex(EMPTIED));
    }
}

#[test]
fn an_append_time_stays_the_time_of_all_records() {
    let mut builder = BatchBuilder::new(Compression::None).log_append_time(Millis(5_000));
    builder.append(Millis(1), Some(b"a"), None).append(Millis(2), Some(b"b"), Some(b"1"));
    let whole = builder.build().unwrap();
    for kept in [&[0][..], &[1], &[0, 1]] {
        let Retained::Changed(left) = keep(&whole, kept, NEVER) else { panic!() };
        assert!(records(&left).iter().all(|record| record.timestamp == Millis(5_000)));
        assert_eq!(left.header.max_timestamp, Millis(5_000));
    }
}

#[test]
fn a_placeholder_holds_the_offsets_and_names_no_producer() {
    let whole = batch(Compression::Gzip { level: -1 });
    let placeholder = whole.placeholder().unwrap();
    let BatchHeader { base_offset, partition_leader_epoch, last_offset_delta, max_timestamp, .. } =
        whole.header;
    let expected = BatchHeader {
        base_offset,
        partition_leader_epoch,
        last_offset_delta,
        max_timestamp,
        crc: placeholder.header.crc,
        ..BatchHeader::default()
    };
    assert_eq!(placeholder.header, expected);
    assert_eq!(placeholder.verify_crc(), Ok(()));
    assert_eq!(placeholder.placeholder().unwrap(), placeholder);
}

#[test]
fn what_is_left_is_what_was_wanted() {
    let mut rng = Rng::new(11);
    for round in 0..500 {
        let codec = CompressionType::ALL[round % 5];
        let mut builder = BatchBuilder::new(codec.into()).base_offset(Offset(100));
        for _ in 0..=rng.below(40) {
            let time = rng.below(100_000) as i64;
            let value = (rng.below(3) > 0).then_some(&b"v"[..]);
            builder.append(Millis(time), Some(&time.to_be_bytes()), value);
        }
        let whole = builder.build().unwrap();
        let wanted = rng.below(usize::MAX) as u64;
        let always = rng.below(4) == 0;
        let is_wanted = |offset: Offset| wanted >> (offset.0 - 100) & 1 == 1;
        let horizon = NewHorizon { at: Millis(50_000), always };
        let left = match whole.retain(Limits::default(), horizon, |record| is_wanted(record.offset)).unwrap()
        {
            Retained::Unchanged => Some(whole.clone()),
            Retained::Changed(batch) => Some(batch),
            Retained::Nothing => None,
        };
        let found: Vec<_> = left.iter().flat_map(records).map(|record| content(&record)).collect();
        let all = records(&whole);
        let expected: Vec<_> = all.iter().filter(|record| is_wanted(record.offset)).map(content).collect();
        assert_eq!(found, expected, "round {round}");
        let Some(left) = left else { continue };
        assert_eq!(left.verify_crc(), Ok(()));
        let tombstones = expected.iter().any(|record| record.4.is_none());
        assert_eq!(left.header.delete_horizon().is_some(), tombstones || always, "round {round}");
        assert_eq!(left.header.last_offset(), whole.header.last_offset());
        assert_eq!(Some(left.header.max_timestamp), expected.iter().map(|record| record.1).max());
    }
}
