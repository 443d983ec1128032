//! Record batches as they come in Produce requests and from disk.

use bytes::{BufMut, Bytes, BytesMut};
use wire::batch::validate::{
    AnalyzeRules, AppendOrigin, ProduceRules, TopicCompression, analyze, validate_produce,
};
use wire::batch::{Batch, HEADER_LEN, Limits, TimestampType};
use wire::types::Millis;

/// How far a batch may expand here.
const LIMITS: Limits = Limits { max_decompressed_bytes: 1 << 20 };
const CRC_AT: usize = 17;
const CRC_FROM: usize = 21;

/// A run of batches, checked as a leader checks it.
pub fn batches(input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    let mut stream = wire::batch::batches(bytes.clone());
    let mut whole = 0;
    for batch in stream.by_ref().flatten() {
        whole += batch.bytes.len();
        read(&batch);
    }
    assert!(whole <= input.len() && stream.position() <= input.len(), "more batches than bytes");
    let rules = AnalyzeRules { origin: AppendOrigin::Client, max_message_bytes: 1 << 20 };
    if let Ok(Some(analysis)) = analyze(bytes, &rules) {
        assert!(analysis.valid_bytes <= input.len(), "more valid bytes than bytes");
        validated(&analysis.first);
    }
}

/// The records of one batch: the first byte is the codec, the second and third the count, the rest the body.
/// Header and checksum are made to fit, so that what is behind them is reached.
pub fn records(input: &[u8]) {
    let Some(([codec, high, low], body)) = input.split_first_chunk::<3>() else { return };
    let count = i32::from(u16::from_be_bytes([*high, *low]));
    let mut bytes = BytesMut::with_capacity(HEADER_LEN + body.len());
    bytes.put_i64(0);
    bytes.put_i32(i32::try_from(HEADER_LEN - 12 + body.len()).unwrap_or(i32::MAX));
    bytes.put_i32(-1);
    bytes.put_i8(2);
    bytes.put_u32(0);
    bytes.put_i16(i16::from(codec % 5));
    bytes.put_i32(count - 1);
    bytes.put_i64(1_000);
    bytes.put_i64(1_000);
    bytes.put_i64(-1);
    bytes.put_i16(-1);
    bytes.put_i32(-1);
    bytes.put_i32(count);
    bytes.put_slice(body);
    let crc = wire_crc(bytes.get(CRC_FROM..).unwrap_or_default());
    if let Some(place) = bytes.get_mut(CRC_AT..CRC_FROM) {
        place.copy_from_slice(&crc.to_be_bytes());
    }
    if let Ok(batch) = Batch::parse(&bytes.freeze()) {
        assert!(batch.verify_crc().is_ok(), "a checksum that was just computed is wrong");
        read(&batch);
        validated(&batch);
    }
}

/// CRC-32C by the book, bit by bit.
fn wire_crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 },
        )
    })
}

fn read(batch: &Batch) {
    let mut visited = 0_usize;
    let visit = batch.visit_records(LIMITS, |_, _| visited += 1);
    let mut read = 0_usize;
    let mut whole = true;
    for record in batch.records(LIMITS) {
        match record {
            Ok(_) => read += 1,
            Err(_) => whole = false,
        }
    }
    if whole && visit.is_ok() {
        assert_eq!(visited, read, "two ways to read a batch differ");
    }
    if let Ok(bytes) = batch.decompressed(LIMITS) {
        assert!(bytes.len() <= LIMITS.max_decompressed_bytes.max(batch.bytes.len()), "a limit was passed");
    }
}

fn validated(batch: &Batch) {
    let rules = ProduceRules {
        origin: AppendOrigin::Client,
        compression: TopicCompression::Producer,
        zstd_allowed: true,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        compacted: false,
        max_message_bytes: 1 << 20,
        limits: LIMITS,
    };
    let Ok(kept) = validate_produce(batch, &rules, Millis(1_000)) else { return };
    // What is written can be read back, record by record.
    let mut bytes = BytesMut::from(&kept.header_bytes()[..]);
    bytes.put_slice(&kept.body);
    let written = Batch::parse(&bytes.freeze());
    let readable = written.as_ref().is_ok_and(|written| {
        written.verify_crc().is_ok() && written.visit_records(LIMITS, |_, _| ()).is_ok()
    });
    assert!(readable, "an accepted batch cannot be read back");
}
