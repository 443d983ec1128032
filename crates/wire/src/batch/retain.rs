//! What compaction leaves of a batch: the records that are wanted, or nothing but the fixed fields.
//!
//! Offsets, sequences, producer, epoch and codec stay; a reader cannot tell that records between the others are gone
//! but by the gaps. Records are copied as they are encoded, and only where a delete horizon takes the place of the base
//! timestamp (KIP-534) are their timestamp deltas written anew.

use bytes::{Bytes, BytesMut};

use super::input::{Input, SliceInput};
use super::record::{Limits, RecordShape, read_record, walk};
use super::varint::{put_varint, put_varlong, varint_len};
use super::{
    Batch, BatchError, BatchHeader, Compression, CompressionType, HEADER_LEN, LOG_OVERHEAD,
    NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, TimestampType, compress,
};
use crate::types::{Millis, Offset};

/// What compaction judges a record by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedRecord<'a> {
    /// The offset in the partition.
    pub offset: Offset,
    /// The key, which may be null.
    pub key: Option<&'a [u8]>,
    /// Whether the value is null.
    pub is_tombstone: bool,
}

/// When a batch gets a delete horizon, unless it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewHorizon {
    /// The horizon, in milliseconds since the Unix epoch.
    pub at: Millis,
    /// Whether it is set in any case, and not only when a tombstone is kept.
    pub always: bool,
}

/// What is left of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retained {
    /// Every byte of it.
    Unchanged,
    /// This, in its place.
    Changed(Batch),
    /// No record.
    Nothing,
}

/// The records that are kept, as ranges of the decompressed records.
#[derive(Default)]
struct Kept {
    ranges: Vec<std::ops::Range<usize>>,
    count: i32,
    tombstones: bool,
    max_timestamp: Option<Millis>,
}

impl Kept {
    fn add(&mut self, header: &BatchHeader, shape: &RecordShape) {
        match self.ranges.last_mut() {
            Some(last) if last.end == shape.range.start => last.end = shape.range.end,
            _ => self.ranges.push(shape.range.clone()),
        }
        self.count = self.count.saturating_add(1);
        self.tombstones |= shape.value.is_none();
        self.max_timestamp = self.max_timestamp.max(Some(header.timestamp_of(shape.timestamp_delta)));
    }

    fn len(&self) -> usize {
        self.ranges.iter().map(ExactSizeIterator::len).sum()
    }

    /// The kept records as they are.
    fn copy(&self, records: &[u8], out: &mut Vec<u8>) {
        for range in &self.ranges {
            out.extend_from_slice(records.get(range.clone()).unwrap_or_default());
        }
    }

    /// The kept records with deltas that count from `to` instead of `from`.
    fn copy_rebased(
        &self,
        records: &[u8],
        from: Millis,
        to: Millis,
        out: &mut Vec<u8>,
    ) -> Result<(), BatchError> {
        for range in &self.ranges {
            let mut input = SliceInput::at(records, range.start);
            while input.position() < range.end {
                let shape = read_record(&mut input)?;
                let delta = from.0.wrapping_add(shape.timestamp_delta).wrapping_sub(to.0);
                let fields = records.get(shape.fields_at..shape.range.end).unwrap_or_default();
                let offset_len = varint_len(i64::from(shape.offset_delta));
                put_varlong(out, (1 + varint_len(delta) + offset_len + fields.len()) as i64);
                out.extend_from_slice(&shape.attributes.to_be_bytes());
                put_varlong(out, delta);
                put_varint(out, shape.offset_delta);
                out.extend_from_slice(fields);
            }
        }
        Ok(())
    }
}

impl Batch {
    /// Calls `visit` with each record.
    ///
    /// # Errors
    /// Any fault of a record or of the compressed stream; `visit` may have been called by then.
    pub fn visit_keys(
        &self,
        limits: Limits,
        mut visit: impl FnMut(&KeyedRecord<'_>),
    ) -> Result<(), BatchError> {
        if self.header.records_count == 0 {
            return Ok(());
        }
        let records = self.decompressed(limits)?;
        walk(&mut SliceInput::new(&records), self.header.records_count, |_, shape| {
            visit(&keyed(&self.header, &records, shape));
        })
    }

    /// The batch with those records that `keep` wants. A batch that keeps a tombstone gets a delete horizon, if it
    /// has none.
    ///
    /// # Errors
    /// Any fault of a record or of the compressed stream; `keep` may have been called by then.
    pub fn retain(
        &self,
        limits: Limits,
        horizon: NewHorizon,
        mut keep: impl FnMut(&KeyedRecord<'_>) -> bool,
    ) -> Result<Retained, BatchError> {
        let header = &self.header;
        if header.records_count == 0 {
            return Ok(Retained::Nothing);
        }
        let records = self.decompressed(limits)?;
        let mut kept = Kept::default();
        walk(&mut SliceInput::new(&records), header.records_count, |_, shape| {
            if keep(&keyed(header, &records, shape)) {
                kept.add(header, shape);
            }
        })?;
        let needs_horizon = header.delete_horizon().is_none() && (kept.tombstones || horizon.always);
        if kept.count == 0 {
            Ok(Retained::Nothing)
        } else if kept.count == header.records_count && !needs_horizon {
            Ok(Retained::Unchanged)
        } else {
            self.rewritten(&records, &kept, needs_horizon.then_some(horizon.at)).map(Retained::Changed)
        }
    }

    fn rewritten(&self, records: &[u8], kept: &Kept, horizon: Option<Millis>) -> Result<Self, BatchError> {
        let codec = self.header.compression()?;
        let mut header = self.header;
        header.clear_unknown_attributes();
        header.records_count = kept.count;
        if header.timestamp_type() == TimestampType::CreateTime {
            header.max_timestamp = kept.max_timestamp.unwrap_or(NO_TIMESTAMP);
        }
        let mut body = Vec::with_capacity(kept.len());
        match horizon {
            None => kept.copy(records, &mut body),
            Some(at) => {
                kept.copy_rebased(records, header.base_timestamp, at, &mut body)?;
                header.set_delete_horizon(at);
            }
        }
        if codec != CompressionType::None {
            body = compress::compress(Compression::from(codec), &body)?;
        }
        assemble(header, &body)
    }

    /// The batch without its records: what remembers a producer's last sequence, or the epoch of a marker.
    ///
    /// # Errors
    /// None in practice: the fixed fields always fit.
    pub fn emptied(&self) -> Result<Self, BatchError> {
        let mut header = self.header;
        header.clear_unknown_attributes();
        header.clear_delete_horizon();
        header.set_compression(CompressionType::None);
        header.base_timestamp = NO_TIMESTAMP;
        header.records_count = 0;
        assemble(header, &[])
    }

    /// An empty batch that holds the place of this one's offsets and says nothing of its producer and transaction.
    ///
    /// # Errors
    /// None in practice: the fixed fields always fit.
    pub fn placeholder(&self) -> Result<Self, BatchError> {
        let mut plain = self.clone();
        plain.header.set_transactional(false);
        plain.header.set_control(false);
        plain.header.producer_id = NO_PRODUCER_ID;
        plain.header.producer_epoch = NO_PRODUCER_EPOCH;
        plain.header.base_sequence = NO_SEQUENCE;
        plain.emptied()
    }
}

fn keyed<'a>(header: &BatchHeader, records: &'a [u8], shape: &RecordShape) -> KeyedRecord<'a> {
    KeyedRecord {
        offset: header.base_offset.plus(i64::from(shape.offset_delta)),
        key: shape.key.clone().and_then(|key| records.get(key)),
        is_tombstone: shape.value.is_none(),
    }
}

fn assemble(mut header: BatchHeader, body: &[u8]) -> Result<Batch, BatchError> {
    let length = HEADER_LEN - LOG_OVERHEAD + body.len();
    header.batch_length = i32::try_from(length).map_err(|_| BatchError::RecordLength(i32::MAX))?;
    header.crc = header.compute_crc(body);
    let mut bytes = BytesMut::with_capacity(HEADER_LEN + body.len());
    bytes.extend_from_slice(&header.to_bytes());
    bytes.extend_from_slice(body);
    Ok(Batch { header, bytes: Bytes::from(bytes) })
}

#[cfg(test)]
#[path = "retain/tests.rs"]
mod tests;
