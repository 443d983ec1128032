//! Codecs against batches that Kafka's Java producer wrote (kafka-clients 3.9.2), and against damage.

use bytes::Bytes;

use super::*;
use crate::batch::{Batch, Header, Record};
use crate::random::Rng;
use crate::types::Millis;

const WRITTEN_BY_JAVA: [(CompressionType, &[u8], usize, usize); 9] = [
    (CompressionType::None, include_bytes!("../vectors/none.bin"), 40, 20),
    (CompressionType::Gzip, include_bytes!("../vectors/gzip.bin"), 40, 20),
    (CompressionType::Snappy, include_bytes!("../vectors/snappy.bin"), 40, 20),
    (CompressionType::Lz4, include_bytes!("../vectors/lz4.bin"), 40, 20),
    (CompressionType::Zstd, include_bytes!("../vectors/zstd.bin"), 40, 20),
    (CompressionType::Gzip, include_bytes!("../vectors/gzip-large.bin"), 100, 1500),
    (CompressionType::Snappy, include_bytes!("../vectors/snappy-large.bin"), 100, 1500),
    (CompressionType::Lz4, include_bytes!("../vectors/lz4-large.bin"), 100, 1500),
    (CompressionType::Zstd, include_bytes!("../vectors/zstd-large.bin"), 100, 1500),
];

/// The record `at` of those batches, as the program that wrote them made it.
fn assert_written_by_java(at: usize, value_len: usize, record: &Record) {
    let key = format!("key-{at}");
    assert_eq!(record.key.as_deref(), (at % 5 != 4).then_some(key.as_bytes()));
    let value = format!("value-{at} ").repeat(value_len);
    assert_eq!(record.value.as_deref(), (at % 7 != 6).then_some(&value.as_bytes()[..value_len]));
    let headers = [
        Header { key: format!("h{at}").into(), value: Some(at.to_string().into()) },
        Header { key: "null".into(), value: None },
    ];
    assert_eq!(record.headers, if at.is_multiple_of(3) { &headers[..] } else { &[] });
    assert_eq!(record.timestamp, Millis(1000 + (at as i64 * 7) % 50));
    assert_eq!((record.offset_delta, record.sequence), (at as i32, at as i32 + 5));
}

#[test]
fn batches_of_the_java_producer_are_read() {
    for (codec, bytes, count, value_len) in WRITTEN_BY_JAVA {
        let batch = Batch::parse(&Bytes::from_static(bytes)).unwrap();
        batch.verify_crc().unwrap();
        assert_eq!(batch.header.compression(), Ok(codec));
        let records: Vec<Record> = batch.records(Limits::default()).map(Result::unwrap).collect();
        assert_eq!(records.len(), count);
        for (at, record) in records.iter().enumerate() {
            assert_written_by_java(at, value_len, record);
        }
    }
}

#[test]
fn streaming_sees_the_same_records_as_reading_at_once() {
    for (_, bytes, _, _) in WRITTEN_BY_JAVA {
        let batch = Batch::parse(&Bytes::from_static(bytes)).unwrap();
        let mut sizes = Vec::new();
        batch.visit_records(Limits::default(), |_, shape| sizes.push(shape.range.len())).unwrap();
        let read = batch.records(Limits::default()).map(|record| record.unwrap().size_in_bytes);
        assert_eq!(sizes, read.collect::<Vec<_>>());
    }
}

#[test]
fn snappy_and_lz4_are_framed_as_kafka_frames_them() {
    let snappy = compress(Compression::Snappy, &[7; 32_769]).unwrap();
    assert_eq!(snappy[..16], *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
    let first = u32::from_be_bytes([snappy[16], snappy[17], snappy[18], snappy[19]]) as usize;
    assert_eq!(snap::raw::decompress_len(&snappy[20..]), Ok(32_768));
    assert_eq!(snap::raw::decompress_len(&snappy[24 + first..]), Ok(1));

    let lz4 = compress(Compression::Lz4 { level: 9 }, b"abc").unwrap();
    assert_eq!(lz4, b"\x04\x22\x4d\x18\x60\x40\x82\x03\0\0\x80abc\0\0\0\0");
}

#[test]
fn nothing_compresses_to_an_empty_stream() {
    for codec in CompressionType::ALL {
        let empty = compress(codec.into(), b"").unwrap();
        assert_eq!(decompress(codec, &empty, Limits { max_decompressed_bytes: 0 }), Ok(Vec::new()));
    }
}

#[test]
fn headers_of_gzip_may_carry_names_and_comments() {
    let member = compress(Compression::Gzip { level: 6 }, b"payload").unwrap();
    let mut named = member[..10].to_vec();
    named[3] = 0x1e;
    named.extend_from_slice(b"\x03\0xyzname\0comment\0\xab\xcd");
    named.extend_from_slice(&member[10..]);
    named.extend_from_slice(b"bytes behind the last member");
    let decompressed = decompress(CompressionType::Gzip, &named, Limits::default());
    assert_eq!(decompressed, Ok(b"payload".to_vec()));
    for len in 0..named.len() - 28 {
        assert!(decompress(CompressionType::Gzip, &named[..len], Limits::default()).is_err(), "{len}");
    }
}

#[test]
fn damaged_gzip_is_noticed_by_its_checksum_and_length() {
    let member = compress(Compression::Gzip { level: 6 }, b"payload").unwrap();
    for at in [member.len() - 1, member.len() - 5] {
        let mut damaged = member.clone();
        damaged[at] ^= 1;
        assert!(decompress(CompressionType::Gzip, &damaged, Limits::default()).is_err());
    }
}

#[test]
fn any_data_comes_back_whatever_its_size() {
    let mut rng = Rng::new(7);
    let sizes = [1, 2, 12, 13, 31, 32 << 10, (32 << 10) + 1, 64 << 10, (64 << 10) + 1, 200_003];
    for size in sizes {
        let noise = rng.below(256).max(1);
        let data: Vec<u8> = (0..size).map(|_| rng.below(noise) as u8).collect();
        for codec in CompressionType::ALL {
            let compressed = compress(codec.into(), &data).unwrap();
            let limits = Limits { max_decompressed_bytes: size };
            assert_eq!(decompress(codec, &compressed, limits).as_deref(), Ok(&data[..]), "{codec:?} {size}");
            let short = Limits { max_decompressed_bytes: size - 1 };
            if codec != CompressionType::None {
                let error = BatchError::ExpandsTooFar { limit: size - 1 };
                assert_eq!(decompress(codec, &compressed, short), Err(error), "{codec:?} {size}");
            }
        }
    }
}

#[test]
fn damaged_streams_neither_panic_nor_exceed_the_limit() {
    let limits = Limits { max_decompressed_bytes: 300_000 };
    let mut rng = Rng::new(11);
    for (codec, bytes, _, _) in WRITTEN_BY_JAVA {
        let body = &bytes[crate::batch::HEADER_LEN..];
        for _ in 0..100 {
            let mut damaged = body.to_vec();
            for _ in 0..=rng.below(3) {
                let at = rng.below(damaged.len());
                damaged[at] = rng.below(256) as u8;
            }
            damaged.truncate(damaged.len() - rng.below(2) * rng.below(40));
            if codec == CompressionType::None {
                continue;
            }
            match decompress(codec, &damaged, limits) {
                Ok(data) => assert!(data.len() <= limits.max_decompressed_bytes),
                Err(BatchError::Compressed(error)) => assert_eq!(error.codec, codec),
                Err(error) => assert_eq!(error, BatchError::ExpandsTooFar { limit: 300_000 }),
            }
        }
    }
}
