//! Writing a v2 batch record by record, as a producer or a coordinator does.

use bytes::{Bytes, BytesMut};

use super::varint::{put_varint, put_varlong, varint_len};
use super::{Batch, BatchError, BatchHeader, HEADER_LEN, LOG_OVERHEAD, TimestampType, compress};
use super::{Compression, NO_TIMESTAMP};
use crate::types::{LeaderEpoch, Millis, Offset};

/// Collects records and writes them as one batch.
///
/// Records get offset deltas 0, 1, 2 … unless [`skip_to`](Self::skip_to) leaves a gap, as compaction does. The
/// first record's timestamp becomes the base timestamp.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    header: BatchHeader,
    compression: Compression,
    records: Vec<u8>,
    next_delta: i32,
    max_timestamp: Millis,
    log_append_time: Option<Millis>,
}

impl BatchBuilder {
    /// An empty batch at offset 0, without a producer, CreateTime.
    pub fn new(compression: Compression) -> Self {
        Self {
            header: BatchHeader::default(),
            compression,
            records: Vec::new(),
            next_delta: 0,
            max_timestamp: NO_TIMESTAMP,
            log_append_time: None,
        }
    }

    /// Sets the offset of delta 0.
    #[must_use]
    pub fn base_offset(mut self, offset: Offset) -> Self {
        self.header.base_offset = offset;
        self
    }

    /// Sets the leader epoch.
    #[must_use]
    pub fn leader_epoch(mut self, epoch: LeaderEpoch) -> Self {
        self.header.partition_leader_epoch = epoch;
        self
    }

    /// Names the producer and the sequence number of the first record.
    #[must_use]
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self
    }

    /// Says whether the batch is part of a transaction.
    #[must_use]
    pub fn transactional(mut self, transactional: bool) -> Self {
        self.header.set_transactional(transactional);
        self
    }

    /// Says whether the records are control records.
    #[must_use]
    pub fn control(mut self, control: bool) -> Self {
        self.header.set_control(control);
        self
    }

    /// Gives all records the time of an append (LogAppendTime).
    #[must_use]
    pub fn log_append_time(mut self, time: Millis) -> Self {
        self.log_append_time = Some(time);
        self
    }

    /// Leaves a gap: the next record gets offset delta `delta`.
    pub fn skip_to(&mut self, delta: i32) -> &mut Self {
        self.next_delta = delta;
        self
    }

    /// Adds a record.
    pub fn append(&mut self, timestamp: Millis, key: Option<&[u8]>, value: Option<&[u8]>) -> &mut Self {
        self.append_with_headers(timestamp, key, value, &[])
    }

    /// Adds a record with headers.
    pub fn append_with_headers(
        &mut self,
        timestamp: Millis,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) -> &mut Self {
        let headers_len: usize =
            headers.iter().map(|(key, value)| nullable_len(Some(key)) + nullable_len(*value)).sum();
        let fields_len =
            nullable_len(key) + nullable_len(value) + varint_len(headers.len() as i64) + headers_len;
        self.begin_record(timestamp, fields_len);
        put_nullable(&mut self.records, key);
        put_nullable(&mut self.records, value);
        put_varlong(&mut self.records, headers.len() as i64);
        for (key, value) in headers {
            put_nullable(&mut self.records, Some(key));
            put_nullable(&mut self.records, *value);
        }
        self
    }

    /// Adds a record whose key, value and headers are encoded already.
    pub(super) fn append_encoded(&mut self, timestamp: Millis, fields: &[u8]) {
        self.begin_record(timestamp, fields.len());
        self.records.extend_from_slice(fields);
    }

    /// The number of records so far.
    pub fn count(&self) -> i32 {
        self.header.records_count
    }

    /// The bytes that the batch would take without compression.
    pub fn uncompressed_size(&self) -> usize {
        HEADER_LEN + self.records.len()
    }

    /// Writes the batch.
    ///
    /// # Errors
    /// [`BatchError::Compressed`] if the codec fails; [`BatchError::RecordLength`] if the batch is longer than
    /// its length field can say.
    pub fn build(&self) -> Result<Batch, BatchError> {
        let codec = self.compression.codec();
        let compressed;
        let body = match self.compression {
            Compression::None => &self.records,
            _ => {
                compressed = compress::compress(self.compression, &self.records)?;
                &compressed
            }
        };
        let mut header = self.header;
        header.set_compression(codec);
        header.max_timestamp = self.max_timestamp;
        if let Some(time) = self.log_append_time {
            header.set_timestamp_type(TimestampType::LogAppendTime);
            header.max_timestamp = time;
        }
        header.last_offset_delta = self.next_delta.wrapping_sub(1).max(0);
        header.batch_length = i32::try_from(HEADER_LEN - LOG_OVERHEAD + body.len())
            .map_err(|_| BatchError::RecordLength(i32::MAX))?;
        header.crc = header.compute_crc(body);
        let mut bytes = BytesMut::with_capacity(HEADER_LEN + body.len());
        bytes.extend_from_slice(&header.to_bytes());
        bytes.extend_from_slice(body);
        Ok(Batch { header, bytes: Bytes::from(bytes) })
    }

    /// Writes a record up to its offset delta; `fields_len` bytes are to follow.
    fn begin_record(&mut self, timestamp: Millis, fields_len: usize) {
        if self.header.records_count == 0 {
            self.header.base_timestamp = timestamp;
        }
        let delta = timestamp.0.wrapping_sub(self.header.base_timestamp.0);
        let length = 1 + varint_len(delta) + varint_len(i64::from(self.next_delta)) + fields_len;
        self.records.reserve(length + 5);
        put_varlong(&mut self.records, length as i64);
        self.records.push(0);
        put_varlong(&mut self.records, delta);
        put_varint(&mut self.records, self.next_delta);
        self.next_delta = self.next_delta.wrapping_add(1);
        self.header.records_count = self.header.records_count.wrapping_add(1);
        self.max_timestamp = self.max_timestamp.max(timestamp);
    }
}

fn nullable_len(bytes: Option<&[u8]>) -> usize {
    match bytes {
        Some(bytes) => varint_len(bytes.len() as i64) + bytes.len(),
        None => 1,
    }
}

fn put_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            put_varlong(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
        None => put_varint(out, -1),
    }
}
