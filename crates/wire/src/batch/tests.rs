//! Batches as a whole: the byte vectors of the format, and building against reading.

use bytes::Bytes;

use super::*;
use crate::random::Rng;
use crate::types::{LeaderEpoch, Millis, Offset};

const PRODUCED: &str = "000000000000000000000049ffffffff02f78c163300000000000100000000000003e8000000000000\
    03edffffffffffffffffffffffffffff0000000214000000046b300476300018000a02046b31010202680278";
const EMPTIED: &str = "0000000000000008000000310000000302f85b9bda003000000000ffffffffffffffff000000000000\
    03ee00000000000003e80000ffffffff00000000";

pub(crate) fn unhex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter_map(|b| char::from(b).to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn produced() -> BatchBuilder {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.append(Millis(1000), Some(b"k0"), Some(b"v0"));
    builder.append_with_headers(Millis(1005), Some(b"k1"), None, &[(b"h", Some(b"x"))]);
    builder
}

#[test]
fn a_producers_batch_is_written_byte_for_byte() {
    assert_eq!(produced().build().unwrap().bytes, unhex(PRODUCED));
}

#[test]
fn a_producers_batch_is_read_back() {
    let batch = Batch::parse(&unhex(PRODUCED)).unwrap();
    batch.verify_crc().unwrap();
    assert_eq!(batch.header.last_offset(), Offset(1));
    assert_eq!(batch.header.max_timestamp, Millis(1005));
    let records: Vec<Record> = batch.records(Limits::default()).map(Result::unwrap).collect();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].key.as_deref(), Some(b"k0".as_slice()));
    assert_eq!(records[0].value.as_deref(), Some(b"v0".as_slice()));
    assert_eq!(records[1].value, None);
    assert_eq!(records[1].offset, Offset(1));
    assert_eq!(records[1].timestamp, Millis(1005));
    assert_eq!(records[1].headers, [Header { key: "h".into(), value: Some("x".into()) }]);
}

#[test]
fn offset_and_leader_epoch_are_stamped_outside_the_checksum() {
    let mut header = BatchHeader::parse(&unhex(PRODUCED)).unwrap();
    header.base_offset = Offset(7);
    header.partition_leader_epoch = LeaderEpoch(3);
    let stamped = header.to_bytes();
    assert_eq!(stamped[..21], unhex("0000000000000007000000490000000302f78c1633")[..]);
    assert_eq!(stamped[21..], unhex(PRODUCED)[21..HEADER_LEN]);
}

/// segmentio/kafka-go#813, KAFKA-5490.
#[test]
fn an_emptied_batch_is_read_as_no_records_and_keeps_its_range() {
    let batch = Batch::parse(&unhex(EMPTIED)).unwrap();
    batch.verify_crc().unwrap();
    assert_eq!(batch.records(Limits::default()).count(), 0);
    assert_eq!(batch.header.next_offset(), Offset(9));
    assert!(batch.header.is_control() && batch.header.is_transactional());
    assert_eq!(batch.header.base_timestamp, NO_TIMESTAMP);
}

#[test]
fn every_codec_gives_back_what_was_written() {
    for codec in CompressionType::ALL {
        let mut builder = BatchBuilder::new(codec.into());
        for i in 0..500i64 {
            let value = vec![(i % 7) as u8; (i * 3) as usize];
            builder.append(Millis(i), Some(&i.to_be_bytes()), Some(&value));
        }
        let batch = builder.build().unwrap();
        assert_eq!(batch.header.compression(), Ok(codec));
        let mut visited = 0;
        batch.visit_records(Limits::default(), |_, _| visited += 1).unwrap();
        assert_eq!(visited, 500);
        for (i, record) in batch.records(Limits::default()).enumerate() {
            let record = record.unwrap();
            assert_eq!(record.key.as_deref(), Some((i as i64).to_be_bytes().as_slice()));
            assert_eq!(record.value.unwrap().len(), i * 3);
        }
    }
}

/// A batch whose every field is drawn.
fn drawn(rng: &mut Rng) -> (Batch, Vec<Record>) {
    let codec = CompressionType::ALL[rng.below(5)];
    let mut builder = BatchBuilder::new(codec.into())
        .base_offset(Offset(rng.below(1 << 40) as i64))
        .leader_epoch(LeaderEpoch(rng.i32()))
        .producer(rng.i64(), rng.below(100) as i16, rng.below(1 << 31) as i32)
        .transactional(rng.bool());
    let mut expected = Vec::new();
    let mut delta = 0;
    for _ in 0..rng.below(30) {
        delta += rng.below(4) as i32;
        let timestamp = Millis(rng.i64());
        let bytes = |rng: &mut Rng, most| -> Option<Bytes> {
            let len = rng.below(most);
            (!rng.below(4).eq(&0)).then(|| (0..len).map(|_| rng.below(7) as u8).collect())
        };
        let (key, value) = (bytes(rng, 20), bytes(rng, 3000));
        let headers: Vec<Header> = (0..rng.below(3))
            .map(|i| Header { key: format!("header-{i}").into(), value: bytes(rng, 9) })
            .collect();
        let parts: Vec<(&[u8], Option<&[u8]>)> =
            headers.iter().map(|header| (&header.key[..], header.value.as_deref())).collect();
        builder.skip_to(delta);
        let before = builder.uncompressed_size();
        builder.append_with_headers(timestamp, key.as_deref(), value.as_deref(), &parts);
        expected.push(Record {
            offset: Offset(i64::from(delta)),
            offset_delta: delta,
            timestamp,
            sequence: 0,
            key,
            value,
            headers,
            size_in_bytes: builder.uncompressed_size() - before,
        });
        delta += 1;
    }
    let batch = builder.build().unwrap();
    for record in &mut expected {
        record.offset = Offset(record.offset.0 + batch.header.base_offset.0);
        record.sequence = sequence_after(batch.header.base_sequence, record.offset_delta);
    }
    (batch, expected)
}

#[test]
fn drawn_batches_are_read_as_they_were_built() {
    let mut rng = Rng::new(1);
    for round in 0..100 {
        let (batch, expected) = drawn(&mut rng);
        assert_eq!(BatchHeader::parse(&batch.header.to_bytes()), Ok(batch.header));
        batch.verify_crc().unwrap();
        let read: Result<Vec<Record>, _> = batch.records(Limits::default()).collect();
        assert_eq!(read, Ok(expected), "round {round}");
    }
}

#[test]
fn any_damage_is_an_error_and_never_a_panic() {
    let limits = Limits { max_decompressed_bytes: 200_000 };
    let mut rng = Rng::new(2);
    for _ in 0..500 {
        let (batch, _) = drawn(&mut rng);
        let mut bytes = batch.bytes.to_vec();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.below(256) as u8;
        }
        for damaged in batches(bytes.into()).map_while(Result::ok) {
            let whole = damaged.records(limits).collect::<Result<Vec<_>, _>>();
            let mut visited = 0;
            let streamed = damaged.visit_records(limits, |_, _| visited += 1);
            // Both readers agree, but on which fault they meet first.
            assert_eq!(whole.is_ok(), streamed.is_ok());
            if let Ok(records) = whole {
                assert_eq!(records.len(), visited);
                let size: usize = records.iter().map(|record| record.size_in_bytes).sum();
                assert!(size <= limits.max_decompressed_bytes);
            }
        }
    }
}

#[test]
fn a_run_of_batches_is_split_until_its_partial_end() {
    let whole = produced().build().unwrap().bytes;
    let run = Bytes::from([&whole[..], &whole, &whole[..whole.len() - 1]].concat());
    let mut split = batches(run.clone());
    assert_eq!(split.by_ref().map(|batch| batch.unwrap().bytes).collect::<Vec<_>>(), [&whole, &whole]);
    assert_eq!(split.position(), 2 * whole.len());
    for cut in 0..run.len() {
        let read = batches(run.slice(..cut)).map(Result::unwrap).count();
        assert_eq!(read, cut / whole.len());
    }
}

#[test]
fn a_run_ends_at_its_first_fault() {
    let whole = produced().build().unwrap().bytes;
    let mut run = [&whole[..], &whole, &whole].concat();
    run[whole.len() + 16] = 3;
    let read: Vec<_> = batches(run.into()).map(|batch| batch.map(|batch| batch.bytes)).collect();
    assert_eq!(read, [Ok(whole), Err(BatchError::UnknownMagic(3))]);
}

#[test]
fn sequences_wrap_to_zero_and_none_stays_none() {
    assert_eq!(sequence_after(i32::MAX, 1), 0);
    assert_eq!(sequence_after(i32::MAX - 1, 3), 1);
    assert_eq!(sequence_after(5, 2), 7);
    assert_eq!(sequence_after(NO_SEQUENCE, 2), NO_SEQUENCE);
}

#[test]
fn a_delete_horizon_is_told_by_its_bit() {
    let mut header = produced().build().unwrap().header;
    assert_eq!(header.delete_horizon(), None);
    header.attributes |= 0x40;
    assert_eq!(header.delete_horizon(), Some(Millis(1000)));
    assert_eq!(header.timestamp_of(-7), Millis(993));
}
