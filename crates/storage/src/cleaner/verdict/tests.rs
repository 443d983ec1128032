//! Rules of batches and records, one by one.

use wire::batch::{Batch, BatchBuilder, Compression, Limits, NewHorizon, Retained};

use super::*;

const NOW: Millis = Millis(10_000);
const HORIZON: NewHorizon = NewHorizon { at: NOW, always: true };

fn data(offset: i64, producer_id: i64) -> BatchHeader {
    BatchHeader { base_offset: Offset(offset), producer_id, producer_epoch: 2, ..BatchHeader::default() }
}

fn control(offset: i64, producer_id: i64) -> BatchHeader {
    let mut header = data(offset, producer_id);
    header.set_control(true);
    header
}

/// The header of a batch with a delete horizon at `NOW`.
fn with_horizon(is_control: bool) -> BatchHeader {
    let mut builder = BatchBuilder::new(Compression::None).control(is_control);
    let batch = builder.append(Millis(1), Some(b"k"), None).build().unwrap();
    match batch.retain(Limits::default(), HORIZON, |_| true).unwrap() {
        Retained::Changed(Batch { header, .. }) => header,
        other => panic!("{other:?}"),
    }
}

fn map(entries: &[(&[u8], i64)], latest: i64) -> OffsetMap {
    let mut map = OffsetMap::new(100, 0.9);
    for (key, offset) in entries {
        assert!(map.put(key, Offset(*offset)));
    }
    map.cover(Offset(latest));
    map
}

fn record(offset: i64, key: &[u8], is_tombstone: bool) -> KeyedRecord<'_> {
    KeyedRecord { offset: Offset(offset), key: Some(key), is_tombstone }
}

#[test]
fn of_a_key_only_the_latest_record_stays() {
    let map = map(&[(b"a", 20), (b"b", 30)], 40);
    let stays = |offset, key| keeps_record(&data(0, -1), &record(offset, key, false), &map, NOW);
    assert!(!stays(19, b"a") && stays(20, b"a") && stays(21, b"a"));
    assert!(!stays(29, b"b") && stays(30, b"b"));
    assert!(stays(1, b"c"), "a key that the map does not have");
}

#[test]
fn what_lies_beyond_the_map_stays() {
    let map = map(&[(b"a", 20)], 40);
    let no_key = |offset| KeyedRecord { offset: Offset(offset), key: None, is_tombstone: false };
    assert!(keeps_record(&data(0, -1), &no_key(41), &map, NOW));
    assert!(!keeps_record(&data(0, -1), &no_key(40), &map, NOW), "a record without a key goes");
    assert!(keeps_record(&with_horizon(false), &record(41, b"a", true), &map, NOW));
}

#[test]
fn a_tombstone_stays_until_the_horizon_of_its_batch() {
    let map = map(&[(b"a", 20)], 40);
    let header = with_horizon(false);
    let at = |header: &BatchHeader, is_tombstone, now| {
        keeps_record(header, &record(20, b"a", is_tombstone), &map, Millis(now))
    };
    assert!(at(&data(0, -1), true, i64::MAX), "no horizon yet");
    assert!(at(&header, true, NOW.0 - 1) && !at(&header, true, NOW.0));
    assert!(at(&header, false, NOW.0), "other records of the batch stay");
}

#[test]
fn aborted_data_goes_and_other_data_is_judged() {
    let none = LastOfProducers::new();
    assert_eq!(judge_batch(&data(5, 1), true, &none, NOW).records, Records::Drop);
    let other = judge_batch(&data(5, 1), false, &none, NOW);
    assert_eq!(other, BatchVerdict { records: Records::Judge, keep_empty: false, starts_horizon: false });
}

/// KAFKA-14055, KAFKA-8522.
#[test]
fn a_marker_goes_when_it_is_not_needed_and_its_horizon_has_come() {
    let none = LastOfProducers::new();
    let needed = judge_batch(&control(5, 1), false, &none, NOW);
    assert_eq!(needed, BatchVerdict { records: Records::Keep, keep_empty: false, starts_horizon: false });
    let free = judge_batch(&control(5, 1), true, &none, NOW);
    assert_eq!(free, BatchVerdict { records: Records::Keep, keep_empty: false, starts_horizon: true });
    let marked = with_horizon(true);
    assert_eq!(judge_batch(&marked, true, &none, Millis(NOW.0 - 1)).records, Records::Keep);
    assert_eq!(judge_batch(&marked, true, &none, NOW).records, Records::Drop);
    assert_eq!(judge_batch(&marked, false, &none, NOW).records, Records::Keep, "needed again");
}

/// KAFKA-8335: the group coordinator writes many batches with sequence 0.
#[test]
fn only_the_batch_with_the_last_data_offset_of_an_active_producer_stays_empty() {
    let producers = LastOfProducers::from([(1, (Some(Offset(9)), 2))]);
    let stays = |header: &BatchHeader| judge_batch(header, true, &producers, NOW).keep_empty;
    assert!(stays(&data(9, 1)) && !stays(&data(8, 1)) && !stays(&data(9, 3)));
    assert!(stays(&BatchHeader { last_offset_delta: 3, ..data(6, 1) }));
    assert!(!stays(&control(10, 1)), "its data tells its epoch");
    assert!(!stays(&data(9, -1)));
}

#[test]
fn the_marker_that_alone_carries_an_epoch_stays_empty() {
    let producers = LastOfProducers::from([(1, (None, 2))]);
    let stays = |header: &BatchHeader| judge_batch(header, true, &producers, NOW).keep_empty;
    assert!(stays(&control(10, 1)));
    assert!(!stays(&data(9, 1)));
    assert!(!stays(&BatchHeader { producer_epoch: 1, ..control(10, 1) }));
}
