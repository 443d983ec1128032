//! Batches as a whole: the byte vectors of the format, and building against reading.

use bytes::Bytes;

use super::*;
use crate::types::{LeaderEpoch, Millis, Offset};

const PRODUCED: &str = "000000000000000000000049ffffffff02f78c163300000000000100000000000003e8000000000000\
    03edffffffffffffffffffffffffffff0000000214000000046b300476300018000a02046b31010202680278";
const EMPTIED: &str = "0000000000000008000000310000000302f85b9bda003000000000ffffffffffffffff000000000000\
    03ee00000000000003e80000ffffffff00000000";

pub(super) fn unhex(text: &str) -> Bytes {
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
