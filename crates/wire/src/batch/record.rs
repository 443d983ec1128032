//! Records of a v2 batch: the one parser of their fields, and the reader for consumers.
//!
//! A record is `length, attributes, timestamp delta, offset delta, key, value, headers`, its integers
//! variable-length. The parser checks every length against the record and every record against its batch.

use std::ops::Range;

use bytes::Bytes;

use super::input::{Input, SliceInput};
use super::stream::Batch;
use super::varint::{read_varint, read_varlong};
use super::{BatchError, BatchHeader, sequence_after};
use crate::types::{Millis, Offset};

/// How much a reader is willing to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes that the records of one batch may take once decompressed.
    pub max_decompressed_bytes: usize,
}

impl Default for Limits {
    /// 256 MiB a batch.
    fn default() -> Self {
        Self { max_decompressed_bytes: 256 << 20 }
    }
}

/// Where the fields of one record lie. Positions count from the first byte of the (decompressed) records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordShape {
    /// The whole record, its length field included.
    pub range: Range<usize>,
    /// The record's own attributes; 0, as none has a meaning.
    pub attributes: i8,
    /// Timestamp minus the batch's base timestamp.
    pub timestamp_delta: i64,
    /// Offset minus the batch's base offset.
    pub offset_delta: i32,
    /// Where the part begins that follows the offset delta: key, value and headers with their lengths.
    pub fields_at: usize,
    /// The key, if it is not null.
    pub key: Option<Range<usize>>,
    /// The value, if it is not null.
    pub value: Option<Range<usize>>,
    /// The number of headers.
    pub header_count: usize,
    /// Where the first header begins.
    pub headers_at: usize,
}

/// Reads one record and passes over its contents.
///
/// # Errors
/// Any fault of a record, see [`BatchError`].
#[inline]
pub(super) fn read_record<I: Input>(input: &mut I) -> Result<RecordShape, BatchError> {
    let start = input.position();
    let length = read_varint(input)?;
    let size = usize::try_from(length).map_err(|_| BatchError::RecordLength(length))?;
    if input.left().is_some_and(|left| size > left) {
        return Err(BatchError::RecordLength(length));
    }
    let body_at = input.position();
    let end = body_at.checked_add(size).ok_or(BatchError::RecordLength(length))?;
    // A record that lies in one piece is read faster than one that a stream brings in several.
    match input.take(size) {
        Some(bytes) => read_fields(&mut SliceInput::new(bytes), start..end, body_at),
        None => read_split_fields(input, start..end),
    }
}

#[cold]
#[inline(never)]
fn read_split_fields<I: Input>(input: &mut I, range: Range<usize>) -> Result<RecordShape, BatchError> {
    read_fields(input, range, 0)
}

/// Reads the fields after the length of the record at `range`. Positions of `input` are `before` less than
/// those of the record.
#[inline]
fn read_fields<I: Input>(
    input: &mut I,
    range: Range<usize>,
    before: usize,
) -> Result<RecordShape, BatchError> {
    let end = range.end - before;
    let shift = |field: Range<usize>| field.start + before..field.end + before;
    let attributes = input.byte()? as i8;
    let timestamp_delta = read_varlong(input)?;
    let offset_delta = read_varint(input)?;
    let fields_at = input.position() + before;
    let key = read_nullable(input, end)?.map(shift);
    let value = read_nullable(input, end)?.map(shift);
    let count = read_varint(input)?;
    let header_count = usize::try_from(count)
        .ok()
        .filter(|count| *count <= end.saturating_sub(input.position()))
        .ok_or(BatchError::HeaderCount(count))?;
    let headers_at = input.position() + before;
    for _ in 0..header_count {
        read_header(input, end)?;
    }
    if input.position() != end {
        return Err(BatchError::RecordFields);
    }
    Ok(RecordShape {
        range,
        attributes,
        timestamp_delta,
        offset_delta,
        fields_at,
        key,
        value,
        header_count,
        headers_at,
    })
}

/// Reads one header of a record that ends at `end`: where its key and value lie.
fn read_header<I: Input>(
    input: &mut I,
    end: usize,
) -> Result<(Range<usize>, Option<Range<usize>>), BatchError> {
    let key = read_nullable(input, end)?.ok_or(BatchError::HeaderKey)?;
    Ok((key, read_nullable(input, end)?))
}

/// Reads a length and passes over as many bytes; a negative length is null.
#[inline]
fn read_nullable<I: Input>(input: &mut I, end: usize) -> Result<Option<Range<usize>>, BatchError> {
    let Ok(length) = usize::try_from(read_varint(input)?) else {
        return Ok(None);
    };
    let start = input.position();
    if length > end.saturating_sub(start) {
        return Err(BatchError::RecordFields);
    }
    input.skip(length)?;
    Ok(Some(start..start + length))
}

/// Calls `visit` for each record of a batch that is left in `input`, and checks that count and end agree.
///
/// # Errors
/// Any fault of a record, see [`BatchError`].
#[inline]
pub(super) fn walk<I: Input>(
    input: &mut I,
    count: i32,
    mut visit: impl FnMut(usize, &RecordShape),
) -> Result<(), BatchError> {
    let count = usize::try_from(count).map_err(|_| BatchError::NegativeCount(count))?;
    for index in 0..count {
        let shape = read_record(input)?;
        visit(index, &shape);
    }
    if input.is_at_end()? { Ok(()) } else { Err(BatchError::TrailingBytes) }
}

/// A header of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The key: text in UTF-8, though nobody checks.
    pub key: Bytes,
    /// The value, which may be null.
    pub value: Option<Bytes>,
}

/// One record, its contents slices of the batch (or of its decompressed form, which they keep alive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The offset in the partition.
    pub offset: Offset,
    /// Offset minus the batch's base offset.
    pub offset_delta: i32,
    /// The record's time, or the batch's time of append.
    pub timestamp: Millis,
    /// The producer's sequence number, or -1.
    pub sequence: i32,
    /// The key, which may be null.
    pub key: Option<Bytes>,
    /// The value; null is a tombstone.
    pub value: Option<Bytes>,
    /// The headers, in order.
    pub headers: Vec<Header>,
    /// The bytes that the record takes in its batch, uncompressed, its length field included.
    pub size_in_bytes: usize,
}

/// The records of one batch, in order. After an error it yields nothing more.
#[derive(Clone, Debug)]
pub struct Records {
    header: BatchHeader,
    data: Bytes,
    at: usize,
    index: i32,
    failed: Option<BatchError>,
    done: bool,
}

impl Records {
    /// Reads the records of `batch`, decompressed at once if need be.
    pub(super) fn new(batch: &Batch, limits: Limits) -> Self {
        let mut records = Self {
            header: batch.header,
            data: Bytes::new(),
            at: 0,
            index: 0,
            failed: None,
            done: batch.header.records_count == 0,
        };
        if !records.done {
            match batch.decompressed(limits) {
                Ok(data) => records.data = data,
                Err(error) => records.failed = Some(error),
            }
        }
        records
    }

    fn read_next(&mut self) -> Result<Option<Record>, BatchError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.header.records_count < 0 {
            return Err(BatchError::NegativeCount(self.header.records_count));
        }
        let mut input = SliceInput::at(&self.data, self.at);
        if self.index == self.header.records_count {
            return if input.is_at_end()? { Ok(None) } else { Err(BatchError::TrailingBytes) };
        }
        let shape = read_record(&mut input)?;
        self.at = shape.range.end;
        self.index += 1;
        self.record(shape).map(Some)
    }

    fn record(&self, shape: RecordShape) -> Result<Record, BatchError> {
        let mut headers = Vec::with_capacity(shape.header_count);
        let mut input = SliceInput::at(&self.data, shape.headers_at);
        for _ in 0..shape.header_count {
            let (key, value) = read_header(&mut input, shape.range.end)?;
            headers.push(Header { key: self.data.slice(key), value: value.map(|v| self.data.slice(v)) });
        }
        Ok(Record {
            offset: self.header.base_offset.plus(i64::from(shape.offset_delta)),
            offset_delta: shape.offset_delta,
            timestamp: self.header.timestamp_of(shape.timestamp_delta),
            sequence: sequence_after(self.header.base_sequence, shape.offset_delta),
            key: shape.key.map(|key| self.data.slice(key)),
            value: shape.value.map(|value| self.data.slice(value)),
            headers,
            size_in_bytes: shape.range.len(),
        })
    }
}

impl Iterator for Records {
    type Item = Result<Record, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.read_next().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}
