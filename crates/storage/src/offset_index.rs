//! The offset index of a segment (`.index`): where in the log the batches around an offset lie.
//!
//! Entries of 8 bytes: the offset relative to the segment's base offset, and the position of the start of
//! the appended set whose last offset it is. Sparse; strictly rising in the offset. While the segment is
//! active the file is as long as `segment.index.bytes` allows, its tail zeros; then it is cut to its entries.

use wire::types::Offset;

use crate::disk::handles::CachedFile;
pub use crate::index_file::IndexError;
use crate::index_file::{Entry, IndexFile, relative_offset};

/// The size of an entry in bytes.
pub const OFFSET_INDEX_ENTRY_BYTES: usize = 8;

/// An offset and a position in the log file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetPosition {
    /// The last offset of the set that starts at `position`.
    pub offset: Offset,
    /// Bytes from the start of the log file.
    pub position: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RawEntry {
    relative: i32,
    position: i32,
}

impl Entry for RawEntry {
    const SIZE: usize = OFFSET_INDEX_ENTRY_BYTES;

    fn encode(&self) -> [u8; 12] {
        let value =
            u128::from(self.relative.cast_unsigned()) << 64 | u128::from(self.position.cast_unsigned()) << 32;
        let mut bytes = [0; 12];
        bytes.copy_from_slice(value.to_be_bytes().split_at(4).1);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (relative, rest) = bytes.split_first_chunk()?;
        let position = rest.first_chunk()?;
        Some(Self { relative: i32::from_be_bytes(*relative), position: i32::from_be_bytes(*position) })
    }
}

/// The index; shared by its readers and the one writer of its segment.
#[derive(Debug)]
pub struct OffsetIndex {
    base: Offset,
    file: IndexFile<RawEntry>,
}

impl OffsetIndex {
    /// The index in `file` of the segment at `base`. Nothing is opened; a new file will have room for
    /// `max_bytes` of entries.
    pub fn new(file: CachedFile, base: Offset, max_bytes: u64) -> Self {
        Self { base, file: IndexFile::new(file, max_bytes) }
    }

    fn position(&self, entry: RawEntry) -> OffsetPosition {
        OffsetPosition {
            offset: self.base.plus(i64::from(entry.relative)),
            position: u64::from(entry.position.cast_unsigned()),
        }
    }

    /// The greatest entry at or below `target`, else the base offset at position 0.
    pub fn lookup(&self, target: Offset) -> Result<OffsetPosition, IndexError> {
        let relative = target.0.saturating_sub(self.base.0);
        let (found, _) = self.file.last_where(|entry| i64::from(entry.relative) <= relative)?;
        Ok(found.map_or(OffsetPosition { offset: self.base, position: 0 }, |entry| self.position(entry)))
    }

    /// The first entry at or beyond `position`: its offset bounds what a read that ends there may hold.
    pub fn first_at_or_beyond(&self, position: u64) -> Result<Option<OffsetPosition>, IndexError> {
        let before = |entry: &RawEntry| u64::from(entry.position.cast_unsigned()) < position;
        let (_, after) = self.file.last_where(before)?;
        Ok(after.map(|entry| self.position(entry)))
    }

    /// Adds that the set whose last offset is `offset` starts at `position`.
    pub fn append(&self, offset: Offset, position: u64) -> Result<(), IndexError> {
        let relative = relative_offset(offset.0, self.base.0)?;
        let overflow = IndexError::OffsetOverflow { offset: offset.0, base: self.base.0 };
        let position = i32::try_from(position).map_err(|_| overflow)?;
        self.file.append(RawEntry { relative, position }, |last| match last {
            Some(last) if last.relative >= relative => Err(IndexError::OutOfOrder {
                key: i64::from(relative),
                value: i64::from(position),
                last_key: i64::from(last.relative),
                last_value: i64::from(last.position),
            }),
            _ => Ok(true),
        })
    }

    /// The last entry.
    pub fn last(&self) -> Result<Option<OffsetPosition>, IndexError> {
        Ok(self.file.last()?.map(|entry| self.position(entry)))
    }

    /// The number of entries.
    pub fn count(&self) -> Result<usize, IndexError> {
        self.file.count()
    }

    /// How many entries can be added.
    pub fn free_entries(&self) -> Result<usize, IndexError> {
        let free = self.file.capacity()?.saturating_sub(self.file.count()?);
        Ok(free)
    }

    /// Whether no entry fits any more.
    pub fn is_full(&self) -> Result<bool, IndexError> {
        Ok(self.file.count()? >= self.file.capacity()?)
    }

    /// Drops all entries at or above `offset`.
    pub fn truncate_to(&self, offset: Offset) -> Result<(), IndexError> {
        let relative = offset.0.saturating_sub(self.base.0);
        self.file.truncate_where(|entry| i64::from(entry.relative) < relative)
    }

    /// Whether the file is there and could be an index of a log of `log_bytes`: its length is a whole number
    /// of entries and the last entry lies in the log and rises above the first one, which a tail of zeros
    /// does not. Says nothing about the entries between.
    pub fn is_plausible(&self, log_bytes: u64) -> Result<bool, IndexError> {
        if !self.file.is_whole()? {
            return Ok(false);
        }
        let Some(last) = self.file.last()? else { return Ok(true) };
        let rises = last.relative > 0 || (last.relative == 0 && self.file.count()? == 1);
        Ok(rises && last.position >= 0 && u64::from(last.position.cast_unsigned()) < log_bytes)
    }

    /// The file is known not to exist.
    pub(crate) fn note_absent(&self) {
        self.file.note_absent();
    }

    /// Drops everything in the file and gives it room for `max_bytes`.
    pub fn reset(&self, max_bytes: u64) -> Result<(), IndexError> {
        self.file.reset(max_bytes)
    }

    /// Gives the file room for `max_bytes` of entries, as the index of an active segment has.
    pub fn resize(&self, max_bytes: u64) {
        self.file.resize(max_bytes);
    }

    /// Cuts the file to its entries, creating it if there is none.
    pub fn trim(&self) -> Result<(), IndexError> {
        self.file.trim()
    }

    /// Makes the entries durable.
    pub fn flush(&self) -> Result<(), IndexError> {
        self.file.flush()
    }

    /// The file.
    pub fn file(&self) -> &CachedFile {
        self.file.file()
    }
}

#[cfg(test)]
#[path = "offset_index/tests.rs"]
mod tests;
