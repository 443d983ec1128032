//! [`Decoder`]: reads the primitive types of the protocol (KIP-482) from one frame.
//!
//! Nothing is allocated before the bytes for it are known to be there: a count of elements is compared with
//! the bytes left divided by the smallest size of an element, a length with the bytes left. Text and bytes
//! are slices of the frame. `flexible` selects the compact encodings of flexible versions.

use bytes::Bytes;
use thiserror::Error;

use crate::Str;
use crate::types::TopicId;

/// The longest text, in bytes, that a message may hold.
pub const MAX_STRING_LEN: usize = 0x7fff;

/// So many elements are reserved at once; more grow with what has really been read.
const MAX_RESERVED_ELEMENTS: usize = 1024;

/// Why bytes are not a message. Kafka closes the connection in each of these cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// A value reaches beyond the end of the frame.
    #[error("a value of {needed} bytes begins where only {left} are left")]
    UnexpectedEnd {
        /// Bytes the value takes.
        needed: usize,
        /// Bytes left in the frame.
        left: usize,
    },
    /// An array claims more elements than the bytes left can hold.
    #[error("an array of {count} elements begins where only {left} bytes are left")]
    CountTooLarge {
        /// Elements claimed.
        count: usize,
        /// Bytes left in the frame.
        left: usize,
    },
    /// A string longer than [`MAX_STRING_LEN`].
    #[error("a string of {0} bytes is longer than {MAX_STRING_LEN}")]
    StringTooLong(usize),
    /// A null where the message allows none.
    #[error("null in a field that is not nullable")]
    UnexpectedNull,
    /// A length or count below -1.
    #[error("length {0} is negative")]
    NegativeLength(i32),
    /// A variable-length integer that does not end within 5 bytes.
    #[error("a variable-length integer is longer than 5 bytes")]
    VarintTooLong,
    /// The content of a known tagged field is longer than the size before it.
    #[error("tagged field {tag} has {size} bytes, its content is longer")]
    TaggedFieldTooLong {
        /// The tag.
        tag: u32,
        /// The size that stood before the content.
        size: usize,
    },
    /// The message is not defined in this version.
    #[error("{message} has no version {version}")]
    UnsupportedVersion {
        /// The message's name in Kafka, such as `FetchRequest`.
        message: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// No message is defined for this key.
    #[error("no api has key {0}")]
    UnknownApiKey(i16),
}

type Result<T> = std::result::Result<T, DecodeError>;

/// A reading position in one frame.
#[derive(Clone, Debug)]
pub struct Decoder {
    frame: Bytes,
    at: usize,
}

impl Decoder {
    /// Reads `frame` from its first byte.
    pub fn new(frame: impl Into<Bytes>) -> Self {
        Self { frame: frame.into(), at: 0 }
    }

    /// Bytes not read yet.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.frame.len() - self.at
    }

    /// The bytes not read yet, as a slice of the frame.
    #[must_use]
    pub fn rest(&self) -> Bytes {
        self.frame.slice(self.at..)
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.frame.get(self.at..).and_then(<[u8]>::first_chunk::<N>) {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(self.ends_before(N)),
        }
    }

    #[cold]
    fn ends_before(&self, needed: usize) -> DecodeError {
        DecodeError::UnexpectedEnd { needed, left: self.remaining() }
    }

    /// Reads a boolean; every byte but 0 is true.
    #[inline]
    pub fn bool(&mut self) -> Result<bool> {
        Ok(self.i8()? != 0)
    }

    /// Reads one byte.
    #[inline]
    pub fn i8(&mut self) -> Result<i8> {
        self.fixed().map(i8::from_be_bytes)
    }

    /// Reads two bytes.
    #[inline]
    pub fn i16(&mut self) -> Result<i16> {
        self.fixed().map(i16::from_be_bytes)
    }

    /// Reads two bytes without a sign.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.fixed().map(u16::from_be_bytes)
    }

    /// Reads four bytes.
    #[inline]
    pub fn i32(&mut self) -> Result<i32> {
        self.fixed().map(i32::from_be_bytes)
    }

    /// Reads eight bytes.
    #[inline]
    pub fn i64(&mut self) -> Result<i64> {
        self.fixed().map(i64::from_be_bytes)
    }

    /// Reads an IEEE 754 number of eight bytes.
    #[inline]
    pub fn f64(&mut self) -> Result<f64> {
        self.fixed().map(f64::from_be_bytes)
    }

    /// Reads a UUID.
    #[inline]
    pub fn uuid(&mut self) -> Result<TopicId> {
        self.fixed().map(TopicId)
    }

    /// Reads an unsigned integer of seven bits a byte, low bits first; bits above the 32nd are dropped, as
    /// in Kafka.
    #[inline]
    pub fn uvarint(&mut self) -> Result<u32> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.fixed::<1>()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::VarintTooLong)
    }

    /// Takes the next `len` bytes as a slice of the frame.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<Bytes> {
        if len > self.remaining() {
            return Err(self.ends_before(len));
        }
        let start = self.at;
        self.at += len;
        Ok(self.frame.slice(start..self.at))
    }

    /// The length before a nullable value: `None` is null.
    #[inline]
    fn length(
        &mut self,
        flexible: bool,
        classic: impl FnOnce(&mut Self) -> Result<i32>,
    ) -> Result<Option<usize>> {
        if flexible {
            let length = self.uvarint()?;
            return Ok(length.checked_sub(1).map(|length| length as usize));
        }
        match classic(self)? {
            -1 => Ok(None),
            length => usize::try_from(length).map(Some).map_err(|_| DecodeError::NegativeLength(length)),
        }
    }

    /// Reads text that may be null.
    #[inline]
    pub fn nullable_string(&mut self, flexible: bool) -> Result<Option<Str>> {
        let Some(length) = self.length(flexible, |src| src.i16().map(i32::from))? else { return Ok(None) };
        if length > MAX_STRING_LEN {
            return Err(DecodeError::StringTooLong(length));
        }
        self.take(length).map(|bytes| Some(Str::from_utf8_lossy(bytes)))
    }

    /// Reads text; null is an error.
    #[inline]
    pub fn string(&mut self, flexible: bool) -> Result<Str> {
        self.nullable_string(flexible)?.ok_or(DecodeError::UnexpectedNull)
    }

    /// Reads bytes, or records, that may be null.
    #[inline]
    pub fn nullable_bytes(&mut self, flexible: bool) -> Result<Option<Bytes>> {
        let Some(length) = self.length(flexible, Self::i32)? else { return Ok(None) };
        self.take(length).map(Some)
    }

    /// Reads bytes, or records; null is an error.
    #[inline]
    pub fn bytes(&mut self, flexible: bool) -> Result<Bytes> {
        self.nullable_bytes(flexible)?.ok_or(DecodeError::UnexpectedNull)
    }

    /// Reads an array that may be null. `min_size` is the smallest number of bytes that one element takes.
    #[inline]
    pub fn nullable_array<T>(
        &mut self,
        flexible: bool,
        min_size: usize,
        mut element: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Option<Vec<T>>> {
        let Some(count) = self.length(flexible, Self::i32)? else { return Ok(None) };
        let left = self.remaining();
        if count > left / min_size.max(1) {
            return Err(DecodeError::CountTooLarge { count, left });
        }
        let mut elements = Vec::with_capacity(count.min(MAX_RESERVED_ELEMENTS));
        for _ in 0..count {
            elements.push(element(self)?);
        }
        Ok(Some(elements))
    }

    /// Reads an array; null is an error. `min_size` as in [`nullable_array`](Self::nullable_array).
    #[inline]
    pub fn array<T>(
        &mut self,
        flexible: bool,
        min_size: usize,
        element: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.nullable_array(flexible, min_size, element)?.ok_or(DecodeError::UnexpectedNull)
    }

    /// Reads a structure that may be null: a byte -1 for null, anything else before the structure.
    #[inline]
    pub fn nullable_struct<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.i8()? < 0 { Ok(None) } else { read(self).map(Some) }
    }

    /// Reads the tagged fields at the end of a structure. `known` reads the content of a field whose tag it
    /// knows and returns true, or returns false; what it leaves of the field's bytes is skipped.
    #[inline]
    pub fn tagged_fields(&mut self, mut known: impl FnMut(u32, &mut Self) -> Result<bool>) -> Result<()> {
        let count = self.uvarint()?;
        for _ in 0..count {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            if size > self.remaining() {
                return Err(self.ends_before(size));
            }
            let end = self.at + size;
            if known(tag, self)? && self.at > end {
                return Err(DecodeError::TaggedFieldTooLong { tag, size });
            }
            self.at = end;
        }
        Ok(())
    }

    /// Skips the tagged fields at the end of a structure that knows none.
    #[inline]
    pub fn skip_tagged_fields(&mut self) -> Result<()> {
        self.tagged_fields(|_, _| Ok(false))
    }
}
