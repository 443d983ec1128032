//! The time index of a segment (`.timeindex`): the largest timestamp of the segment up to an offset.
//!
//! Entries of 12 bytes: timestamp, and offset relative to the segment's base offset. Timestamps rise
//! strictly, offsets do not fall. The offset is the last one of the batch that holds the timestamp.
//! The last slot is kept free for the entry that closes the segment.

use wire::types::{Millis, Offset};

use crate::disk::handles::CachedFile;
use crate::index_file::{Entry, IndexError, IndexFile, relative_offset};

/// The size of an entry in bytes.
pub const TIME_INDEX_ENTRY_BYTES: usize = 12;

/// A timestamp and the offset of the batch that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampOffset {
    /// Milliseconds since the Unix epoch; -1 if there is none.
    pub timestamp: Millis,
    /// The last offset of the batch; the base offset of the segment if there is no timestamp.
    pub offset: Offset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RawEntry {
    timestamp: i64,
    relative: i32,
}

impl Entry for RawEntry {
    const SIZE: usize = TIME_INDEX_ENTRY_BYTES;

    fn encode(&self) -> [u8; 12] {
        let value =
            u128::from(self.timestamp.cast_unsigned()) << 32 | u128::from(self.relative.cast_unsigned());
        let mut bytes = [0; 12];
        bytes.copy_from_slice(value.to_be_bytes().split_at(4).1);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (timestamp, rest) = bytes.split_first_chunk()?;
        let relative = rest.first_chunk()?;
        Some(Self { timestamp: i64::from_be_bytes(*timestamp), relative: i32::from_be_bytes(*relative) })
    }
}

/// What to do when only the last slot is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastSlot {
    /// Refuse the entry.
    Keep,
    /// Use it: the entry closes the segment.
    Use,
}

/// The index; shared by its readers and the one writer of its segment.
#[derive(Debug)]
pub struct TimeIndex {
    base: Offset,
    file: IndexFile<RawEntry>,
}

impl TimeIndex {
    /// The index in `file` of the segment at `base`. Nothing is opened; a new file will have room for
    /// `max_bytes` of entries.
    pub fn new(file: CachedFile, base: Offset, max_bytes: u64) -> Self {
        Self { base, file: IndexFile::new(file, max_bytes) }
    }

    fn entry(&self, entry: Option<RawEntry>) -> TimestampOffset {
        entry.map_or(TimestampOffset { timestamp: Millis(-1), offset: self.base }, |entry| TimestampOffset {
            timestamp: Millis(entry.timestamp),
            offset: self.base.plus(i64::from(entry.relative)),
        })
    }

    /// The greatest entry at or below `target`, else timestamp -1 at the base offset.
    pub fn lookup(&self, target: Millis) -> Result<TimestampOffset, IndexError> {
        let (found, _) = self.file.last_where(|entry| entry.timestamp <= target.0)?;
        Ok(self.entry(found))
    }

    /// The last entry, else timestamp -1 at the base offset.
    pub fn last(&self) -> Result<TimestampOffset, IndexError> {
        Ok(self.entry(self.file.last()?))
    }

    /// Adds an entry if its timestamp is larger than the last one.
    pub fn maybe_append(&self, new: TimestampOffset, last_slot: LastSlot) -> Result<(), IndexError> {
        if last_slot == LastSlot::Keep && self.is_full()? {
            return Err(IndexError::Full);
        }
        let relative = relative_offset(new.offset.0, self.base.0)?;
        let timestamp = new.timestamp.0;
        self.file.append(RawEntry { timestamp, relative }, |last| {
            let last_timestamp = last.map_or(-1, |last| last.timestamp);
            match last {
                Some(last) if relative < last.relative || timestamp < last_timestamp => {
                    Err(IndexError::OutOfOrder {
                        key: timestamp,
                        value: i64::from(relative),
                        last_key: last_timestamp,
                        last_value: i64::from(last.relative),
                    })
                }
                _ => Ok(timestamp > last_timestamp),
            }
        })
    }

    /// The number of entries.
    pub fn count(&self) -> Result<usize, IndexError> {
        self.file.count()
    }

    /// How many entries can be added, but for the slot of the closing one.
    pub fn free_entries(&self) -> Result<usize, IndexError> {
        let free = self.file.capacity()?.saturating_sub(self.file.count()?);
        Ok(free.saturating_sub(1))
    }

    /// Whether only the slot of the closing entry is left.
    pub fn is_full(&self) -> Result<bool, IndexError> {
        Ok(self.file.count()?.saturating_add(1) >= self.file.capacity()?)
    }

    /// Drops all entries at or above `offset`.
    pub fn truncate_to(&self, offset: Offset) -> Result<(), IndexError> {
        let relative = offset.0.saturating_sub(self.base.0);
        self.file.truncate_where(|entry| i64::from(entry.relative) < relative)
    }

    /// Whether the file is there and could be a time index: its length is a whole number of entries, and the
    /// last entry has a timestamp and a place in the segment, which a tail of zeros has not unless it is the
    /// only entry. Whether the log agrees must be looked up there.
    pub fn is_plausible(&self) -> Result<bool, IndexError> {
        if !self.file.is_whole()? {
            return Ok(false);
        }
        let Some(last) = self.file.last()? else { return Ok(true) };
        let one = self.file.count()? == 1;
        Ok(last.relative >= 0 && (last.timestamp > 0 || (one && last.timestamp == 0)))
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
#[path = "time_index/tests.rs"]
mod tests;
