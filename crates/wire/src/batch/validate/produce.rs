//! The rules of a topic, applied to one batch of format 2.

use bytes::Bytes;

use super::super::input::SliceInput;
use super::super::record::{self, Limits, RecordShape};
use super::super::{Batch, BatchHeader, Compression, CompressionType, NO_TIMESTAMP, TimestampType};
use super::{
    AppendOrigin, Change, RecordError, RecordErrors, RecordFault, Validated, ValidationError, rebuild,
};
use crate::types::{Millis, Offset};

/// A topic's `compression.type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TopicCompression {
    /// `producer`: whatever the producer used.
    #[default]
    Producer,
    /// One codec (or none, `uncompressed`) for all.
    Fixed(Compression),
}

/// What [`validate_produce`] needs to know of the topic and the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProduceRules {
    /// Who hands in the batch; never [`AppendOrigin::Replication`].
    pub origin: AppendOrigin,
    /// `compression.type`, with the topic's level.
    pub compression: TopicCompression,
    /// Whether `inter.broker.protocol.version` is 2.1 or later.
    pub zstd_allowed: bool,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far a CreateTime may lie behind the clock (KIP-937).
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far a CreateTime may lie ahead of the clock (KIP-937).
    pub timestamp_after_max_ms: i64,
    /// Whether `cleanup.policy` holds `compact`, so that every record needs a key.
    pub compacted: bool,
    /// `max.message.bytes`, checked again if the batch is rebuilt.
    pub max_message_bytes: usize,
    /// How far a batch may expand.
    pub limits: Limits,
}

/// Checks `batch`, whose checksum is known to be right ([`super::analyze`]), against the rules of the topic, and
/// decides what to write. `wall_ms` is the broker's clock.
///
/// A batch stays as it is unless its codec is not the topic's, or its records are not numbered 0, 1, 2 …: then
/// it is rebuilt. If only type or maximum of its timestamps are not what they must be, its header is corrected.
///
/// # Errors
/// The first fault of the batch, or all faults of its records, see [`ValidationError`].
pub fn validate_produce(
    batch: &Batch,
    rules: &ProduceRules,
    wall_ms: Millis,
) -> Result<Validated, ValidationError> {
    let header = &batch.header;
    let source = header.compression()?;
    let target = match rules.compression {
        TopicCompression::Fixed(fixed) => fixed,
        TopicCompression::Producer => source.into(),
    };
    if target.codec() == CompressionType::Zstd && !rules.zstd_allowed {
        return Err(ValidationError::ZstdNotInCluster);
    }
    check_header(header, rules.origin)?;
    // Markers stay as the coordinator wrote them.
    let keeps_codec = source == target.codec() || (source == CompressionType::None && header.is_control());
    if keeps_codec {
        let mut scan = Scan::new(header, rules, wall_ms);
        batch.visit_records(rules.limits, |index, shape| scan.record(index, shape))?;
        let findings = scan.finish()?;
        if findings.in_order {
            return Ok(keep(batch, rules, wall_ms, findings.max_timestamp));
        }
        let records = batch.decompressed(rules.limits)?;
        return rebuild::rebuild(header, &records, source.into(), rules, wall_ms);
    }
    let records: Bytes = batch.decompressed(rules.limits)?;
    let mut scan = Scan::new(header, rules, wall_ms);
    record::walk(&mut SliceInput::new(&records), header.records_count, |index, shape| {
        scan.record(index, shape);
    })?;
    scan.finish()?;
    rebuild::rebuild(header, &records, target, rules, wall_ms)
}

/// The batch with its own bytes, its header corrected if need be.
fn keep(batch: &Batch, rules: &ProduceRules, wall_ms: Millis, true_max: Millis) -> Validated {
    let mut header = batch.header;
    let (max_timestamp, log_append_time) = match rules.timestamp_type {
        TimestampType::CreateTime => (true_max, None),
        TimestampType::LogAppendTime => (wall_ms, Some(wall_ms)),
    };
    let mut change = Change::InPlace;
    if header.timestamp_type() != rules.timestamp_type || header.max_timestamp != max_timestamp {
        header.clear_unknown_attributes();
        header.set_timestamp_type(rules.timestamp_type);
        header.max_timestamp = max_timestamp;
        header.crc = header.compute_crc(batch.body());
        change = Change::Header;
    }
    Validated { header, body: batch.body_bytes(), change, log_append_time }
}

/// The faults that the header alone shows.
fn check_header(header: &BatchHeader, origin: AppendOrigin) -> Result<(), ValidationError> {
    if origin != AppendOrigin::Client {
        return Ok(());
    }
    if header.base_offset != Offset(0) {
        return Err(ValidationError::BaseOffset(header.base_offset.0));
    }
    let (count, last_offset_delta) = (header.records_count, header.last_offset_delta);
    if last_offset_delta < 0 {
        return Err(ValidationError::OffsetRange(last_offset_delta));
    }
    if count <= 0 {
        return Err(ValidationError::Count(count));
    }
    if count - 1 != last_offset_delta {
        return Err(ValidationError::CountMismatch { count, last_offset_delta });
    }
    if header.is_control() {
        return Err(ValidationError::ControlByClient);
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        return Err(ValidationError::Sequence {
            producer_id: header.producer_id,
            sequence: header.base_sequence,
        });
    }
    Ok(())
}

/// What the records of a batch turned out to be.
struct Findings {
    /// The largest timestamp, at least -1.
    max_timestamp: Millis,
    /// Whether the records are numbered 0, 1, 2 ….
    in_order: bool,
}

/// The faults of records, collected while they pass.
struct Scan<'a> {
    rules: &'a ProduceRules,
    base_timestamp: i64,
    claims_log_append_time: bool,
    wall_ms: i64,
    max_timestamp: i64,
    in_order: bool,
    errors: RecordErrors,
}

impl<'a> Scan<'a> {
    fn new(header: &BatchHeader, rules: &'a ProduceRules, wall_ms: Millis) -> Self {
        Self {
            rules,
            base_timestamp: header.base_timestamp.0,
            claims_log_append_time: header.timestamp_type() == TimestampType::LogAppendTime,
            wall_ms: wall_ms.0,
            max_timestamp: NO_TIMESTAMP.0,
            in_order: true,
            errors: RecordErrors::default(),
        }
    }

    #[inline]
    fn record(&mut self, index: usize, shape: &RecordShape) {
        let timestamp = self.base_timestamp.wrapping_add(shape.timestamp_delta);
        self.in_order &= usize::try_from(shape.offset_delta) == Ok(index);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        if let Some(fault) = self.fault(timestamp, shape.key.is_some()) {
            self.errors.push(RecordError { batch_index: index as i32, fault });
        }
    }

    #[inline]
    fn fault(&self, timestamp: i64, has_key: bool) -> Option<RecordFault> {
        if self.rules.compacted && !has_key {
            return Some(RecordFault::KeyMissing);
        }
        if self.rules.timestamp_type == TimestampType::CreateTime && timestamp != NO_TIMESTAMP.0 {
            return self.out_of_range(timestamp);
        }
        self.claims_log_append_time.then_some(RecordFault::LogAppendTimeByProducer)
    }

    #[inline]
    fn out_of_range(&self, timestamp: i64) -> Option<RecordFault> {
        let (before, after) = (self.rules.timestamp_before_max_ms, self.rules.timestamp_after_max_ms);
        if self.wall_ms.saturating_sub(timestamp) <= before && timestamp.saturating_sub(self.wall_ms) <= after
        {
            return None;
        }
        Some(RecordFault::TimestampOutOfRange {
            timestamp: Millis(timestamp),
            least: Millis(self.wall_ms.saturating_sub(before)),
            greatest: Millis(self.wall_ms.saturating_add(after)),
        })
    }

    fn finish(self) -> Result<Findings, ValidationError> {
        if self.errors.count() == 0 {
            Ok(Findings { max_timestamp: Millis(self.max_timestamp), in_order: self.in_order })
        } else {
            Err(ValidationError::Records(self.errors))
        }
    }
}
