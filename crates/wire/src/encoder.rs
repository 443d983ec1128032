//! [`Encoder`]: writes the primitive types of the protocol (KIP-482) into one growing buffer.
//!
//! `flexible` selects the compact encodings of flexible versions. Records can be left out of the buffer
//! ([`Encoder::detach_records`]): then only their lengths are written and the places where they belong are
//! kept, so that a Fetch response can carry ranges of files.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::Str;
use crate::decoder::MAX_STRING_LEN;
use crate::types::TopicId;

/// Why a message cannot be written in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// A field that this version lacks, and whose loss would change the meaning, is not at its default.
    #[error("version {version} of {structure} cannot carry {field}")]
    UnsupportedField {
        /// The structure's name in Kafka.
        structure: &'static str,
        /// The field's name in Kafka.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A field is null that may not be null in this version.
    #[error("{field} of {structure} is null, which version {version} does not allow")]
    UnexpectedNull {
        /// The structure's name in Kafka.
        structure: &'static str,
        /// The field's name in Kafka.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// The message is not defined in this version.
    #[error("{message} has no version {version}")]
    UnsupportedVersion {
        /// The message's name in Kafka.
        message: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A string longer than [`MAX_STRING_LEN`] bytes.
    #[error("a string of {0} bytes is longer than {MAX_STRING_LEN}")]
    StringTooLong(usize),
    /// A length, a count or a whole frame beyond the range of an `int32`.
    #[error("{0} bytes or elements do not fit a length of four bytes")]
    TooLong(usize),
    /// More or fewer detached records were given than the message has partitions.
    #[error("the records given do not match the partitions of the message")]
    RecordsMismatch,
}

type Result<T> = std::result::Result<T, EncodeError>;

/// A message under construction.
#[derive(Debug, Default)]
pub struct Encoder {
    buffer: BytesMut,
    detached: Option<Detached>,
    #[cfg(any(test, feature = "testing"))]
    lengths: Vec<LengthPosition>,
}

/// Where a length or count was written, and how; so that tests can falsify it.
#[cfg(any(test, feature = "testing"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthPosition {
    /// The first byte of the length.
    pub start: usize,
    /// The byte behind the length.
    pub end: usize,
    /// Whether it is a variable-length integer.
    pub flexible: bool,
}

#[derive(Debug)]
struct Detached {
    lengths: std::vec::IntoIter<usize>,
    positions: Vec<usize>,
}

impl Encoder {
    /// An empty message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty message in a buffer that takes `capacity` bytes before it grows.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { buffer: BytesMut::with_capacity(capacity), ..Self::default() }
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.buffer.freeze()
    }

    /// From here on, each records field is written as a length of `lengths` in turn and left out itself.
    pub fn detach_records(&mut self, lengths: Vec<usize>) {
        let positions = Vec::with_capacity(lengths.len());
        self.detached = Some(Detached { lengths: lengths.into_iter(), positions });
    }

    /// What was written, and for each length given to [`detach_records`](Self::detach_records) the position
    /// at which the records belong, ascending.
    ///
    /// # Errors
    /// `RecordsMismatch` if the message had fewer records fields than lengths were given.
    pub fn into_detached(self) -> Result<(BytesMut, Vec<usize>)> {
        match self.detached {
            None => Ok((self.buffer, Vec::new())),
            Some(detached) if detached.lengths.len() == 0 => Ok((self.buffer, detached.positions)),
            Some(_) => Err(EncodeError::RecordsMismatch),
        }
    }

    /// Overwrites the four bytes at `position`; nothing happens if they are not written yet.
    pub fn set_i32_at(&mut self, position: usize, value: i32) {
        if let Some(place) = self.buffer.get_mut(position..).and_then(<[u8]>::first_chunk_mut::<4>) {
            *place = value.to_be_bytes();
        }
    }

    /// Writes bytes as they are, without a length.
    #[inline]
    pub fn put_slice(&mut self, bytes: &[u8]) {
        self.buffer.put_slice(bytes);
    }

    /// Writes a boolean.
    #[inline]
    pub fn put_bool(&mut self, value: bool) {
        self.buffer.put_u8(u8::from(value));
    }

    /// Writes one byte.
    #[inline]
    pub fn put_i8(&mut self, value: i8) {
        self.buffer.put_i8(value);
    }

    /// Writes two bytes.
    #[inline]
    pub fn put_i16(&mut self, value: i16) {
        self.buffer.put_i16(value);
    }

    /// Writes two bytes without a sign.
    #[inline]
    pub fn put_u16(&mut self, value: u16) {
        self.buffer.put_u16(value);
    }

    /// Writes four bytes.
    #[inline]
    pub fn put_i32(&mut self, value: i32) {
        self.buffer.put_i32(value);
    }

    /// Writes eight bytes.
    #[inline]
    pub fn put_i64(&mut self, value: i64) {
        self.buffer.put_i64(value);
    }

    /// Writes an IEEE 754 number of eight bytes.
    #[inline]
    pub fn put_f64(&mut self, value: f64) {
        self.buffer.put_f64(value);
    }

    /// Writes a UUID.
    #[inline]
    pub fn put_uuid(&mut self, value: TopicId) {
        self.buffer.put_slice(&value.0);
    }

    /// Writes an unsigned integer of seven bits a byte, low bits first.
    #[inline]
    pub fn put_uvarint(&mut self, value: u32) {
        let (bytes, length) = uvarint(value);
        self.buffer.put_slice(bytes.get(..length).unwrap_or_default());
    }

    /// Writes a length or count as flexible versions do, or as `int32`.
    #[inline]
    fn put_length(&mut self, length: usize, flexible: bool) -> Result<()> {
        #[cfg(any(test, feature = "testing"))]
        let start = self.buffer.len();
        let short = i32::try_from(length).map_err(|_| EncodeError::TooLong(length))?;
        if flexible {
            self.put_uvarint(short.unsigned_abs() + 1);
        } else {
            self.put_i32(short);
        }
        #[cfg(any(test, feature = "testing"))]
        self.lengths.push(LengthPosition { start, end: self.buffer.len(), flexible });
        Ok(())
    }

    /// Writes the count before the elements of an array.
    ///
    /// # Errors
    /// `TooLong` if the count is no `int32`.
    #[inline]
    pub fn put_count(&mut self, count: usize, flexible: bool) -> Result<()> {
        self.put_length(count, flexible)
    }

    /// Writes null in place of an array, bytes or records.
    #[inline]
    pub fn put_null(&mut self, flexible: bool) {
        if flexible { self.buffer.put_u8(0) } else { self.buffer.put_i32(-1) }
    }

    /// Writes text.
    ///
    /// # Errors
    /// `StringTooLong` above [`MAX_STRING_LEN`] bytes.
    #[inline]
    pub fn put_string(&mut self, text: &Str, flexible: bool) -> Result<()> {
        #[cfg(any(test, feature = "testing"))]
        let start = self.buffer.len();
        let length = text.len();
        match i16::try_from(length) {
            Ok(_) if flexible => self.put_uvarint(length as u32 + 1),
            Ok(length) => self.buffer.put_i16(length),
            Err(_) => return Err(EncodeError::StringTooLong(length)),
        }
        #[cfg(any(test, feature = "testing"))]
        self.lengths.push(LengthPosition { start, end: self.buffer.len(), flexible });
        self.buffer.put_slice(text.as_bytes());
        Ok(())
    }

    /// Writes text that may be null.
    ///
    /// # Errors
    /// As [`put_string`](Self::put_string).
    #[inline]
    pub fn put_nullable_string(&mut self, text: Option<&Str>, flexible: bool) -> Result<()> {
        match text {
            Some(text) => self.put_string(text, flexible)?,
            None if flexible => self.buffer.put_u8(0),
            None => self.buffer.put_i16(-1),
        }
        Ok(())
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// `TooLong` if their length is no `int32`.
    #[inline]
    pub fn put_bytes(&mut self, bytes: &Bytes, flexible: bool) -> Result<()> {
        self.put_length(bytes.len(), flexible)?;
        self.buffer.put_slice(bytes);
        Ok(())
    }

    /// Writes bytes that may be null.
    ///
    /// # Errors
    /// As [`put_bytes`](Self::put_bytes).
    #[inline]
    pub fn put_nullable_bytes(&mut self, bytes: Option<&Bytes>, flexible: bool) -> Result<()> {
        match bytes {
            Some(bytes) => self.put_bytes(bytes, flexible)?,
            None => self.put_null(flexible),
        }
        Ok(())
    }

    /// Writes records that may be null, or the length of detached ones.
    ///
    /// # Errors
    /// `TooLong` if their length is no `int32`; `RecordsMismatch` if the detached ones are used up.
    #[inline]
    pub fn put_records(&mut self, records: Option<&Bytes>, flexible: bool) -> Result<()> {
        let Some(detached) = &mut self.detached else { return self.put_nullable_bytes(records, flexible) };
        let length = detached.lengths.next().ok_or(EncodeError::RecordsMismatch)?;
        self.put_length(length, flexible)?;
        if let Some(detached) = &mut self.detached {
            detached.positions.push(self.buffer.len());
        }
        Ok(())
    }

    /// Writes one tagged field: tag, size, content.
    ///
    /// # Errors
    /// Those of `content`; `TooLong` if the size is no `int32`.
    pub fn put_tagged(&mut self, tag: u32, content: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.put_uvarint(tag);
        let start = self.buffer.len();
        #[cfg(any(test, feature = "testing"))]
        let inner = self.lengths.len();
        content(self)?;
        let end = self.buffer.len();
        let size = i32::try_from(end - start).map_err(|_| EncodeError::TooLong(end - start))?;
        let (prefix, shift) = uvarint(size.unsigned_abs());
        self.buffer.put_bytes(0, shift);
        self.buffer.copy_within(start..end, start + shift);
        if let Some((place, prefix)) = self.buffer.get_mut(start..start + shift).zip(prefix.get(..shift)) {
            place.copy_from_slice(prefix);
        }
        #[cfg(any(test, feature = "testing"))]
        for position in self.lengths.iter_mut().skip(inner) {
            position.start += shift;
            position.end += shift;
        }
        Ok(())
    }

    /// Where lengths and counts stand in what was written, in no particular order.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn length_positions(&self) -> &[LengthPosition] {
        &self.lengths
    }
}

/// The bytes of a variable-length integer and how many of them count.
#[inline]
fn uvarint(mut value: u32) -> ([u8; 5], usize) {
    let mut bytes = [0; 5];
    let mut length = 0;
    for byte in &mut bytes {
        length += 1;
        *byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            break;
        }
        *byte |= 0x80;
    }
    (bytes, length)
}
