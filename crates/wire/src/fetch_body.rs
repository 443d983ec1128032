//! The Fetch response, whose records are not copied: bytes between them in memory, the records themselves
//! as ranges of files.
//!
//! The bytes are exactly those of [`FetchResponse::encode`] with the records in place. Records are never
//! null, since librdkafka fails on that (KAFKA-18646); a partition without records gets empty ones.

use bytes::Bytes;

use crate::api::ApiKey;
use crate::messages::FetchResponse;
use crate::response::{Part, begin};
use crate::{EncodeError, Encoder};

/// Bytes that a partition takes in a response, except its records and aborted transactions.
const PARTITION_LEN: usize = 64;
/// Bytes that a topic takes, except its partitions.
const TOPIC_LEN: usize = 64;

/// Header and body of a Fetch response. `records` has one part for each partition, in their order, and
/// replaces whatever records `response` holds; `range_len` tells the bytes in a range.
///
/// # Errors
/// `RecordsMismatch` unless there is one part for each partition; `TooLong` if records are longer than an
/// `int32` tells; else what the version cannot carry.
pub fn encode<R>(
    response: &FetchResponse,
    version: i16,
    correlation_id: i32,
    records: Vec<Part<R>>,
    range_len: impl Fn(&R) -> usize,
) -> Result<Vec<Part<R>>, EncodeError> {
    let mut lengths = Vec::with_capacity(records.len());
    for part in &records {
        lengths.push(match part {
            Part::Bytes(bytes) => bytes.len(),
            Part::Range(range) => range_len(range),
        });
    }
    let capacity = 32 + records.len() * PARTITION_LEN + response.responses.len() * TOPIC_LEN;
    let mut dst = begin(ApiKey::Fetch, version, correlation_id, capacity);
    dst.detach_records(lengths.clone());
    response.encode(&mut dst, version)?;
    join(dst, &lengths, records)
}

/// Cuts what was written where records belong, and puts these in between.
fn join<R>(dst: Encoder, lengths: &[usize], records: Vec<Part<R>>) -> Result<Vec<Part<R>>, EncodeError> {
    let (buffer, positions) = dst.into_detached()?;
    let mut rest: Bytes = buffer.freeze();
    let mut parts = Vec::with_capacity(2 * records.len() + 1);
    let mut cut = 0;
    for ((position, length), part) in positions.into_iter().zip(lengths).zip(records) {
        if *length > 0 {
            parts.push(Part::Bytes(rest.split_to(position - cut)));
            parts.push(part);
            cut = position;
        }
    }
    if !rest.is_empty() {
        parts.push(Part::Bytes(rest));
    }
    Ok(parts)
}
