//! The fixed fields of a batch: 61 bytes, big-endian.
//!
//! The checksum (CRC-32C) covers everything from the attributes at byte 21 to the end. Base offset, length,
//! leader epoch and magic are outside of it. Deltas, sequence and count survive compaction, so the number of
//! records may be smaller than the range of offsets.

use super::BatchError;
use super::compress::CompressionType;
use crate::types::{LeaderEpoch, Millis, Offset};

/// Bytes of the fixed fields of a batch; the records begin here.
pub const HEADER_LEN: usize = 61;
/// Bytes of base offset and length, which the length field does not count.
pub const LOG_OVERHEAD: usize = 12;
/// Bytes that tell offset, size and format of a batch of any format ([`BatchPrefix`]).
pub const PREFIX_LEN: usize = 17;
/// The producer id of a batch without one.
pub const NO_PRODUCER_ID: i64 = -1;
/// The producer epoch of a batch without a producer id.
pub const NO_PRODUCER_EPOCH: i16 = -1;
/// The base sequence of a batch without sequences.
pub const NO_SEQUENCE: i32 = -1;
/// The timestamp of a record without one.
pub const NO_TIMESTAMP: Millis = Millis(-1);

/// Where the checksummed part begins.
const CRC_START: usize = 21;
/// The least length field of any format: an empty message of format 0.
const LEAST_LENGTH: i32 = 14;
/// The least length field of a v2 batch.
const LEAST_LENGTH_V2: i32 = (HEADER_LEN - LOG_OVERHEAD) as i32;
const MAGIC_V2: i8 = 2;

const COMPRESSION_MASK: i16 = 0x07;
const TIMESTAMP_TYPE_BIT: i16 = 0x08;
const TRANSACTIONAL_BIT: i16 = 0x10;
const CONTROL_BIT: i16 = 0x20;
const DELETE_HORIZON_BIT: i16 = 0x40;
/// The bits that have a meaning.
const KNOWN_BITS: i16 = 0x7f;

/// Who set the timestamps of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// The producer, record by record.
    #[default]
    CreateTime,
    /// The broker: one time for all records of a batch.
    LogAppendTime,
}

impl TimestampType {
    /// The value of `message.timestamp.type` that names this type.
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateTime => "CreateTime",
            Self::LogAppendTime => "LogAppendTime",
        }
    }

    /// The type named by a value of `message.timestamp.type`.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::CreateTime, Self::LogAppendTime].into_iter().find(|t| t.name() == name)
    }
}

/// The sequence number `delta` after `sequence`: after 2147483647 comes 0. No sequence stays none.
pub fn sequence_after(sequence: i32, delta: i32) -> i32 {
    if sequence == NO_SEQUENCE {
        return NO_SEQUENCE;
    }
    let sum = i64::from(sequence) + i64::from(delta);
    i32::try_from(sum.rem_euclid(1 << 31)).unwrap_or(NO_SEQUENCE)
}

/// What can be told of a batch or message of any format by its first 17 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPrefix {
    /// The base offset of a v2 batch; the offset, or last offset, of a message of an older format.
    pub offset: Offset,
    /// The length field: the bytes that follow it.
    pub length: i32,
    /// The record format.
    pub magic: i8,
}

impl BatchPrefix {
    /// Reads the first [`PREFIX_LEN`] bytes of a batch.
    ///
    /// # Errors
    /// [`BatchError::Truncated`] if fewer bytes are given; [`BatchError::LengthTooSmall`] if the size is below
    /// that of any format.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let Some(prefix) = bytes.first_chunk::<PREFIX_LEN>() else {
            return Err(BatchError::Truncated { available: bytes.len() });
        };
        let length = i32::from_be_bytes(field(prefix, 8));
        if length < LEAST_LENGTH {
            return Err(BatchError::LengthTooSmall { length });
        }
        Ok(Self {
            offset: Offset(i64::from_be_bytes(field(prefix, 0))),
            length,
            magic: i8::from_be_bytes(field(prefix, 16)),
        })
    }

    /// The whole size in bytes, offset and length fields included.
    pub fn size_in_bytes(&self) -> usize {
        size_with_overhead(self.length)
    }
}

/// The fixed fields of a v2 batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchHeader {
    /// Offset of the first record that the batch had when it was written; 0 from a producer.
    pub base_offset: Offset,
    /// Bytes that follow the length field; at least 49.
    pub batch_length: i32,
    /// Epoch of the leader that appended the batch; -1 from a producer.
    pub partition_leader_epoch: LeaderEpoch,
    /// The record format, 2.
    pub magic: i8,
    /// CRC-32C of everything from the attributes on.
    pub crc: u32,
    /// Codec, timestamp type and flags, as they are in the batch.
    pub attributes: i16,
    /// Last offset minus base offset; survives compaction.
    pub last_offset_delta: i32,
    /// The timestamp that deltas count from, or the delete horizon (KIP-534), or -1 in an empty batch.
    pub base_timestamp: Millis,
    /// The largest timestamp of the records, or the time of the append.
    pub max_timestamp: Millis,
    /// The producer id, or [`NO_PRODUCER_ID`].
    pub producer_id: i64,
    /// The producer epoch, or [`NO_PRODUCER_EPOCH`].
    pub producer_epoch: i16,
    /// The sequence number of the first record, or [`NO_SEQUENCE`]; survives compaction.
    pub base_sequence: i32,
    /// The number of records; negative is invalid.
    pub records_count: i32,
}

impl BatchHeader {
    /// Reads the first [`HEADER_LEN`] bytes of a batch. Neither the checksum nor the records are looked at.
    /// A magic above 2 is read as 2, as a log's reader does; [`super::batches`] refuses it.
    ///
    /// # Errors
    /// [`BatchError::Truncated`], [`BatchError::LengthTooSmall`], [`BatchError::OldFormat`] for formats 0 and 1,
    /// [`BatchError::UnknownMagic`] for a negative one.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let prefix = BatchPrefix::parse(bytes)?;
        match prefix.magic {
            0 | 1 => return Err(BatchError::OldFormat(prefix.magic)),
            magic if magic < 0 => return Err(BatchError::UnknownMagic(magic)),
            _ => {}
        }
        let batch_length = prefix.length;
        if batch_length < LEAST_LENGTH_V2 {
            return Err(BatchError::LengthTooSmall { length: batch_length });
        }
        let Some(bytes) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(BatchError::Truncated { available: bytes.len() });
        };
        Ok(Self {
            base_offset: prefix.offset,
            batch_length,
            partition_leader_epoch: LeaderEpoch(i32::from_be_bytes(field(bytes, 12))),
            magic: prefix.magic,
            crc: u32::from_be_bytes(field(bytes, 17)),
            attributes: i16::from_be_bytes(field(bytes, 21)),
            last_offset_delta: i32::from_be_bytes(field(bytes, 23)),
            base_timestamp: Millis(i64::from_be_bytes(field(bytes, 27))),
            max_timestamp: Millis(i64::from_be_bytes(field(bytes, 35))),
            producer_id: i64::from_be_bytes(field(bytes, 43)),
            producer_epoch: i16::from_be_bytes(field(bytes, 51)),
            base_sequence: i32::from_be_bytes(field(bytes, 53)),
            records_count: i32::from_be_bytes(field(bytes, 57)),
        })
    }

    /// Writes the fields as they are, checksum included.
    pub fn write_to(&self, bytes: &mut [u8; HEADER_LEN]) {
        put(bytes, 0, self.base_offset.0.to_be_bytes());
        put(bytes, 8, self.batch_length.to_be_bytes());
        put(bytes, 12, self.partition_leader_epoch.0.to_be_bytes());
        put(bytes, 16, self.magic.to_be_bytes());
        put(bytes, 17, self.crc.to_be_bytes());
        put(bytes, 21, self.attributes.to_be_bytes());
        put(bytes, 23, self.last_offset_delta.to_be_bytes());
        put(bytes, 27, self.base_timestamp.0.to_be_bytes());
        put(bytes, 35, self.max_timestamp.0.to_be_bytes());
        put(bytes, 43, self.producer_id.to_be_bytes());
        put(bytes, 51, self.producer_epoch.to_be_bytes());
        put(bytes, 53, self.base_sequence.to_be_bytes());
        put(bytes, 57, self.records_count.to_be_bytes());
    }

    /// The fields as bytes, as [`write_to`](Self::write_to) writes them.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        self.write_to(&mut bytes);
        bytes
    }

    /// The checksum of these fields followed by `body`, the bytes after the header.
    pub fn compute_crc(&self, body: &[u8]) -> u32 {
        let bytes = self.to_bytes();
        let (_, covered) = bytes.split_at(CRC_START);
        crc32c::crc32c_append(crc32c::crc32c(covered), body)
    }

    /// The whole size in bytes, offset and length fields included.
    pub fn size_in_bytes(&self) -> usize {
        size_with_overhead(self.batch_length)
    }

    /// The offset of the last record that the batch had when it was written.
    pub fn last_offset(&self) -> Offset {
        self.base_offset.plus(i64::from(self.last_offset_delta))
    }

    /// The offset after the last one: where the next batch may begin.
    pub fn next_offset(&self) -> Offset {
        self.last_offset().plus(1)
    }

    /// The sequence number of the last record, or [`NO_SEQUENCE`].
    pub fn last_sequence(&self) -> i32 {
        sequence_after(self.base_sequence, self.last_offset_delta)
    }

    /// The codec of the records.
    ///
    /// # Errors
    /// [`BatchError::UnknownCompression`] for the numbers 5 to 7.
    pub fn compression(&self) -> Result<CompressionType, BatchError> {
        let id = (self.attributes & COMPRESSION_MASK) as u8;
        CompressionType::from_id(id).ok_or(BatchError::UnknownCompression(id))
    }

    /// Sets the codec's number; the checksum is left as it is.
    pub fn set_compression(&mut self, compression: CompressionType) {
        self.attributes = (self.attributes & !COMPRESSION_MASK) | i16::from(compression.id());
    }

    /// Who set the timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        match self.attributes & TIMESTAMP_TYPE_BIT {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        }
    }

    /// Sets who set the timestamps; the checksum is left as it is.
    pub fn set_timestamp_type(&mut self, timestamp_type: TimestampType) {
        self.set_bit(TIMESTAMP_TYPE_BIT, timestamp_type == TimestampType::LogAppendTime);
    }

    /// Whether the batch is part of a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_BIT != 0
    }

    /// Sets whether the batch is part of a transaction; the checksum is left as it is.
    pub fn set_transactional(&mut self, transactional: bool) {
        self.set_bit(TRANSACTIONAL_BIT, transactional);
    }

    /// Whether the batch holds control records, which clients never see.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// Sets whether the batch holds control records; the checksum is left as it is.
    pub fn set_control(&mut self, control: bool) {
        self.set_bit(CONTROL_BIT, control);
    }

    /// The time from which the cleaner may drop the tombstones and markers of this batch (KIP-534), if set.
    pub fn delete_horizon(&self) -> Option<Millis> {
        (self.attributes & DELETE_HORIZON_BIT != 0).then_some(self.base_timestamp)
    }

    /// Sets the delete horizon, which takes the place of the base timestamp: the deltas of the records must count from it.
    /// The checksum is left as it is.
    pub(super) fn set_delete_horizon(&mut self, horizon: Millis) {
        self.set_bit(DELETE_HORIZON_BIT, true);
        self.base_timestamp = horizon;
    }

    /// Takes the delete horizon away; base timestamp and checksum are left as they are.
    pub(super) fn clear_delete_horizon(&mut self) {
        self.set_bit(DELETE_HORIZON_BIT, false);
    }

    /// Whether the batch names a producer, and so carries sequences unless it is a control batch.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > NO_PRODUCER_ID
    }

    /// The timestamp of a record whose delta is `delta`.
    pub fn timestamp_of(&self, delta: i64) -> Millis {
        match self.timestamp_type() {
            TimestampType::CreateTime => Millis(self.base_timestamp.0.wrapping_add(delta)),
            TimestampType::LogAppendTime => self.max_timestamp,
        }
    }

    /// Clears the bits that have no meaning, as every writer does.
    pub(super) fn clear_unknown_attributes(&mut self) {
        self.attributes &= KNOWN_BITS;
    }

    fn set_bit(&mut self, bit: i16, on: bool) {
        self.attributes = if on { self.attributes | bit } else { self.attributes & !bit };
    }
}

impl Default for BatchHeader {
    /// An empty batch at offset 0 without producer, leader epoch and timestamps. Its checksum is not set.
    fn default() -> Self {
        Self {
            base_offset: Offset(0),
            batch_length: LEAST_LENGTH_V2,
            partition_leader_epoch: LeaderEpoch::UNKNOWN,
            magic: MAGIC_V2,
            crc: 0,
            attributes: 0,
            last_offset_delta: 0,
            base_timestamp: NO_TIMESTAMP,
            max_timestamp: NO_TIMESTAMP,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            records_count: 0,
        }
    }
}

fn size_with_overhead(length: i32) -> usize {
    LOG_OVERHEAD + usize::try_from(length).unwrap_or(0)
}

#[expect(clippy::indexing_slicing, reason = "callers give constant positions within a constant length")]
fn field<const LEN: usize, const N: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

#[expect(clippy::indexing_slicing, reason = "callers give constant positions within the header")]
fn put<const N: usize>(bytes: &mut [u8; HEADER_LEN], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}
