//! The rules, case by case. What is accepted and refused was compared with `LogValidator` of Kafka 3.9.2.

mod batches;
mod codecs;
mod records;
mod timestamps;

use bytes::Bytes;

use super::*;
use crate::batch::{
    Batch, BatchBuilder, BatchHeader, Compression, CompressionType, LOG_OVERHEAD, Limits, Record,
    TimestampType,
};
use crate::types::Millis;

const NOW: Millis = Millis(1_700_000_000_000);
const HOUR_MS: i64 = 3_600_000;

fn rules() -> ProduceRules {
    ProduceRules {
        origin: AppendOrigin::Client,
        compression: TopicCompression::Producer,
        zstd_allowed: true,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: HOUR_MS,
        compacted: false,
        max_message_bytes: 1_048_588,
        limits: Limits::default(),
    }
}

/// Three records with keys, one millisecond apart, the last one at [`NOW`].
fn three(codec: CompressionType) -> Batch {
    let mut builder = BatchBuilder::new(codec.into());
    for (at, value) in ["first", "second", "third"].into_iter().enumerate() {
        builder.append(Millis(NOW.0 + at as i64 - 2), Some(b"key"), Some(value.as_bytes()));
    }
    builder.build().unwrap()
}

/// `batch` with header fields changed, its length and checksum made right again.
fn forge(batch: &Batch, change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    forge_body(batch, change, batch.body())
}

/// As [`forge`], with another body.
fn forge_body(batch: &Batch, change: impl FnOnce(&mut BatchHeader), body: &[u8]) -> Bytes {
    let mut header = batch.header;
    change(&mut header);
    header.batch_length = (crate::batch::HEADER_LEN - LOG_OVERHEAD + body.len()) as i32;
    header.crc = header.compute_crc(body);
    [&header.to_bytes(), body].concat().into()
}

/// Takes `bytes` the way of a leader.
fn append(bytes: Bytes, rules: &ProduceRules) -> Result<Validated, ValidationError> {
    let analyze_rules = AnalyzeRules { origin: rules.origin, max_message_bytes: rules.max_message_bytes };
    let analysis = analyze(bytes, &analyze_rules)?.expect("a whole batch");
    validate_produce(analysis.only_batch()?, rules, NOW)
}

fn refusal(bytes: Bytes, rules: &ProduceRules) -> Rejection {
    append(bytes, rules).expect_err("refused").rejection()
}

/// Kind of refusal, and the places of the refused records.
fn refused_records(bytes: Bytes, rules: &ProduceRules) -> (Rejection, Vec<i32>) {
    let error = append(bytes, rules).expect_err("refused");
    (error.rejection(), error.record_errors().iter().map(|error| error.batch_index).collect())
}

/// What is written to the log, read back.
fn written(validated: &Validated) -> Batch {
    let bytes = Bytes::from([&validated.header_bytes()[..], &validated.body].concat());
    let batch = Batch::parse(&bytes).unwrap();
    batch.verify_crc().unwrap();
    assert_eq!(bytes.len(), validated.size_in_bytes());
    batch
}

fn records_of(batch: &Batch) -> Vec<Record> {
    batch.records(Limits::default()).map(Result::unwrap).collect()
}
