//! Writing the records of a batch anew: another codec, or offset deltas 0, 1, 2 ….
//!
//! Producer, sequence and transaction stay. Keys, values and headers are taken over as they are encoded.

use bytes::Bytes;

use super::super::input::SliceInput;
use super::super::record::walk;
use super::super::{BatchBuilder, BatchHeader, Compression, TimestampType};
use super::{Change, ProduceRules, Validated, ValidationError};
use crate::types::Millis;

/// Builds the batch of `header` anew from its decompressed `records`, which have been checked.
///
/// # Errors
/// [`ValidationError::TooLarge`] if the new batch is too large; [`ValidationError::Unreadable`] if the codec
/// fails.
pub(super) fn rebuild(
    header: &BatchHeader,
    records: &Bytes,
    compression: Compression,
    rules: &ProduceRules,
    wall_ms: Millis,
) -> Result<Validated, ValidationError> {
    let mut builder = BatchBuilder::new(compression)
        .producer(header.producer_id, header.producer_epoch, header.base_sequence)
        .transactional(header.is_transactional());
    let log_append_time = match rules.timestamp_type {
        TimestampType::CreateTime => None,
        TimestampType::LogAppendTime => Some(wall_ms),
    };
    if let Some(time) = log_append_time {
        builder = builder.log_append_time(time);
    }
    walk(&mut SliceInput::new(records), header.records_count, |_, shape| {
        let timestamp = Millis(header.base_timestamp.0.wrapping_add(shape.timestamp_delta));
        builder.append_encoded(timestamp, records.get(shape.fields_at..shape.range.end).unwrap_or_default());
    })?;
    let batch = builder.build()?;
    let size = batch.bytes.len();
    if size > rules.max_message_bytes {
        return Err(ValidationError::TooLarge { size, limit: rules.max_message_bytes });
    }
    Ok(Validated { header: batch.header, body: batch.body_bytes(), change: Change::Rebuilt, log_append_time })
}
