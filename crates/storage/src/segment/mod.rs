//! One segment of a partition log: a file of batches from a base offset on, and three small indexes.
//!
//! One writer appends; any number of readers look up and read at the same time, up to the published size.
//! A batch becomes visible when it is written whole. Indexes are opened when first used; one that does not
//! fit its log is built anew (its damage must not hide records or delete them early).
//! The log file is synced before its indexes, and once a sync has failed no later one succeeds: what was lost
//! then would not be written again.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use wire::types::{Millis, Offset};

mod compacted;
mod error;
mod files;
mod flush;
mod read;
mod recover;
mod roll;
mod scan;
mod sets;
mod split;
#[cfg(test)]
mod tests;
mod time;
mod truncate;
mod verify;

pub(crate) use compacted::CompactedSegment;
pub use error::SegmentError;
pub use read::{BatchPosition, SegmentRead};
pub(crate) use recover::may_follow;
pub use recover::{Recovered, RecoveredBatch};
pub use roll::{RollParams, RollReason, RollState, must_roll, new_base};
pub use scan::{BatchScan, FileBatch, ScanError};
pub use time::RecordPosition;

use crate::disk::handles::{CachedFile, DirPath, FileCache};
use crate::index_file::IndexError;
use crate::names::{SegmentFile, SegmentFileName, Transient};
use crate::offset_index::OffsetIndex;
use crate::sync::lock;
use crate::time_index::{LastSlot, TimeIndex, TimestampOffset};
use crate::txn_index::{TxnIndex, TxnIndexError};
use sets::RecentSets;

/// Positions in a log file have 31 bits.
pub const MAX_SEGMENT_BYTES: u64 = i32::MAX as u64;

/// The files of a segment that come only when something is written to them.
pub(crate) const INDEXES: [SegmentFile; 3] =
    [SegmentFile::OffsetIndex, SegmentFile::TimeIndex, SegmentFile::TxnIndex];

/// What a segment needs to know of its topic's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentConfig {
    /// `index.interval.bytes`: bytes of log between two entries of the index.
    pub index_interval_bytes: u64,
    /// `segment.index.bytes`: the room of each index while the segment is active.
    pub max_index_bytes: u64,
    /// `segment.bytes` if `preallocate` is on: a new log file is made that long at once.
    pub preallocate_bytes: Option<u64>,
}

/// Where segments live: the directory of a partition.
#[derive(Clone, Debug)]
pub struct SegmentDir {
    /// The open files of the disk.
    pub files: Arc<FileCache>,
    /// The directory.
    pub path: Arc<DirPath>,
}

/// Batches to be appended together, their headers stamped already.
#[derive(Clone, Copy, Debug)]
pub struct AppendSet<'a> {
    /// The first offset (inclusive).
    pub first_offset: Offset,
    /// The last offset (inclusive).
    pub last_offset: Offset,
    /// The largest timestamp; -1 if there is none.
    pub max_timestamp: Millis,
    /// The last offset of the batch that holds the largest timestamp.
    pub offset_of_max_timestamp: Offset,
    /// The bytes, written one after the other.
    pub slices: &'a [IoSlice<'a>],
}

/// A segment; see the module's text.
#[derive(Debug)]
pub struct Segment {
    base: Offset,
    dir: SegmentDir,
    config: SegmentConfig,
    log: CachedFile,
    /// Bytes of whole batches, visible to readers.
    size: AtomicU64,
    offset_index: OffsetIndex,
    time_index: TimeIndex,
    txn_index: TxnIndex,
    /// Whether the offset and time index are known to fit the log.
    indexes_checked: AtomicBool,
    checking: Mutex<()>,
    /// Whether the log file holds bytes that were not synced.
    dirty: AtomicBool,
    /// Whether files were created whose names were not synced.
    names_dirty: AtomicBool,
    /// Whether the name of the log file was not synced.
    log_name_dirty: AtomicBool,
    sync_failed: AtomicBool,
    flushing: Mutex<()>,
    state: Mutex<State>,
    recent: RecentSets,
}

/// What the writer changes with an append, read as one value.
#[derive(Clone, Copy, Debug)]
struct State {
    /// `None`: not yet read from the time index.
    max_timestamp: Option<TimestampOffset>,
    first_timestamp: FirstTimestamp,
    bytes_since_index_entry: u64,
    created: Millis,
}

#[derive(Clone, Copy, Debug)]
enum FirstTimestamp {
    /// Not yet read from the log.
    Unread,
    Known(Option<Millis>),
}

impl Segment {
    /// Creates an empty segment. Its log file exists when this returns; indexes come when they are needed.
    /// The caller removes files of a former segment with the same base offset before.
    pub fn create(
        dir: &SegmentDir,
        base: Offset,
        config: SegmentConfig,
        now: Millis,
    ) -> Result<Self, SegmentError> {
        let segment = Self::new(dir, base, None, config, now);
        let file = segment.log.create().map_err(|error| segment.io(error))?;
        if let Some(bytes) = config.preallocate_bytes {
            file.set_len(bytes).map_err(|error| segment.io(error))?;
            segment.dirty.store(true, Ordering::Release);
        }
        segment.names_dirty.store(true, Ordering::Release);
        segment.indexes_checked.store(true, Ordering::Release);
        INDEXES.into_iter().for_each(|kind| segment.note_absent(kind));
        lock(&segment.state).first_timestamp = FirstTimestamp::Known(None);
        lock(&segment.state).max_timestamp = Some(segment.no_timestamp());
        Ok(segment)
    }

    /// Opens a segment whose log file exists. Nothing is read but the size of that file.
    /// `transient` is the suffix that its files carry now.
    pub fn open(
        dir: &SegmentDir,
        base: Offset,
        transient: Option<Transient>,
        config: SegmentConfig,
        now: Millis,
    ) -> Result<Self, SegmentError> {
        let segment = Self::new(dir, base, transient, config, now);
        let path = segment.log.path();
        let found = dir.files.disk().metadata(&path).map_err(|error| segment.io(error))?;
        if found.len > MAX_SEGMENT_BYTES {
            return Err(SegmentError::TooLarge { base, size: found.len });
        }
        segment.size.store(found.len, Ordering::Release);
        // Another process may have written what is there, and died before it was synced.
        segment.dirty.store(true, Ordering::Release);
        segment.names_dirty.store(true, Ordering::Release);
        Ok(segment)
    }

    fn new(
        dir: &SegmentDir,
        base: Offset,
        transient: Option<Transient>,
        config: SegmentConfig,
        now: Millis,
    ) -> Self {
        let file =
            |file| dir.files.file(&dir.path, SegmentFileName { offset: base, file, transient }.to_string());
        let state = State {
            max_timestamp: None,
            first_timestamp: FirstTimestamp::Unread,
            bytes_since_index_entry: 0,
            created: now,
        };
        Self {
            base,
            dir: dir.clone(),
            config,
            log: file(SegmentFile::Log),
            size: AtomicU64::new(0),
            offset_index: OffsetIndex::new(file(SegmentFile::OffsetIndex), base, config.max_index_bytes),
            time_index: TimeIndex::new(file(SegmentFile::TimeIndex), base, config.max_index_bytes),
            txn_index: TxnIndex::new(file(SegmentFile::TxnIndex), base),
            indexes_checked: AtomicBool::new(false),
            checking: Mutex::new(()),
            dirty: AtomicBool::new(false),
            names_dirty: AtomicBool::new(false),
            log_name_dirty: AtomicBool::new(true),
            sync_failed: AtomicBool::new(false),
            flushing: Mutex::new(()),
            state: Mutex::new(state),
            recent: RecentSets::default(),
        }
    }

    /// The base offset: no record of the segment lies below it.
    pub fn base(&self) -> Offset {
        self.base
    }

    /// The size of the log in bytes, whole batches only.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Whether nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// The log file.
    pub fn log(&self) -> &CachedFile {
        &self.log
    }

    /// The index of aborted transactions. Appending to it creates a file; [`Segment::flush`] covers it.
    pub fn txn_index(&self) -> &TxnIndex {
        &self.txn_index
    }

    /// The configuration the segment was opened with.
    pub fn config(&self) -> &SegmentConfig {
        &self.config
    }

    /// When the segment was created or opened, in milliseconds since the Unix epoch.
    pub fn created(&self) -> Millis {
        lock(&self.state).created
    }

    fn no_timestamp(&self) -> TimestampOffset {
        TimestampOffset { timestamp: Millis(-1), offset: self.base }
    }

    fn io(&self, error: io::Error) -> SegmentError {
        SegmentError::Io { base: self.base, error }
    }

    fn index(&self, error: IndexError) -> SegmentError {
        match error {
            IndexError::OffsetOverflow { offset, .. } => {
                SegmentError::OffsetOverflow { base: self.base, offset: Offset(offset) }
            }
            error => SegmentError::Index { base: self.base, error },
        }
    }

    fn txn(&self, error: TxnIndexError) -> SegmentError {
        SegmentError::TxnIndex { base: self.base, error }
    }

    fn scan_error(&self, error: ScanError) -> SegmentError {
        SegmentError::Scan { base: self.base, error }
    }

    /// Whether `offset` can be told relative to the base offset.
    pub fn covers(&self, offset: Offset) -> bool {
        split::fits(self.base, offset)
    }

    /// Appends a set of batches with one write, and returns the position of its first byte. Readers see it
    /// when this returns. After an error nothing is visible, but part of it may be in the file: no further
    /// append may follow until the segment was opened and recovered anew.
    pub fn append(&self, set: &AppendSet<'_>) -> Result<u64, SegmentError> {
        let position = self.size();
        self.append_group(set.slices, std::slice::from_ref(set))?;
        Ok(position)
    }

    /// Appends several sets with one write, as [`Segment::append`] does one; `slices` are those of the sets,
    /// one after the other. Each set counts for itself in the indexes. The caller makes sure that the indexes
    /// have room, see [`Segment::free_index_entries`].
    pub fn append_group(&self, slices: &[IoSlice<'_>], sets: &[AppendSet<'_>]) -> Result<(), SegmentError> {
        if let Some(set) = sets.iter().find(|set| !self.covers(set.last_offset)) {
            return Err(SegmentError::OffsetOverflow { base: self.base, offset: set.last_offset });
        }
        let length: u64 = slices.iter().map(|slice| slice.len() as u64).sum();
        let position = self.size();
        let size = position.saturating_add(length);
        if size > MAX_SEGMENT_BYTES {
            return Err(SegmentError::TooLarge { base: self.base, size });
        }
        if length == 0 {
            return Ok(());
        }
        // Read once if it is not known yet, while the log is as the time index describes it.
        self.max_timestamp()?;
        let file = self.log.handle().map_err(|error| self.io(error))?;
        file.write_vectored_at(slices, position).map_err(|error| self.io(error))?;
        // After the write, so that a flush meanwhile cannot take the mark away; before the size, so that a
        // flush of what is visible syncs it.
        self.dirty.store(true, Ordering::Release);
        let mut entries = Vec::new();
        let mut at = position;
        for set in sets {
            let length: u64 = set.slices.iter().map(|slice| slice.len() as u64).sum();
            self.recent.push(set, at, length);
            if let Some(max) = self.note_append(set, at, length) {
                entries.push((set.last_offset, at, max));
            }
            at = at.saturating_add(length);
        }
        // An index entry must not lead beyond what readers may see.
        self.size.store(size, Ordering::Release);
        entries
            .iter()
            .try_for_each(|(offset, position, max)| self.append_index_entries(*offset, *position, *max))
    }

    /// Updates what is known of the segment. If an index entry is due, returns the largest timestamp for it.
    fn note_append(&self, set: &AppendSet<'_>, position: u64, length: u64) -> Option<TimestampOffset> {
        let mut state = lock(&self.state);
        if position == 0 {
            state.first_timestamp = FirstTimestamp::Known(Some(set.max_timestamp));
        }
        let mut max = state.max_timestamp.unwrap_or_else(|| self.no_timestamp());
        if set.max_timestamp > max.timestamp {
            max = TimestampOffset { timestamp: set.max_timestamp, offset: set.offset_of_max_timestamp };
        }
        state.max_timestamp = Some(max);
        let due = state.bytes_since_index_entry > self.config.index_interval_bytes;
        if due {
            state.bytes_since_index_entry = 0;
        }
        state.bytes_since_index_entry = state.bytes_since_index_entry.saturating_add(length);
        due.then_some(max)
    }

    fn append_index_entries(
        &self,
        offset: Offset,
        position: u64,
        max: TimestampOffset,
    ) -> Result<(), SegmentError> {
        self.check_indexes()?;
        self.names_dirty.store(true, Ordering::Release);
        self.offset_index.append(offset, position).map_err(|error| self.index(error))?;
        self.time_index.maybe_append(max, LastSlot::Keep).map_err(|error| self.index(error))
    }

    /// How many sets can be appended before an index is full.
    pub fn free_index_entries(&self) -> Result<usize, SegmentError> {
        self.check_indexes()?;
        let offsets = self.offset_index.free_entries().map_err(|error| self.index(error))?;
        let times = self.time_index.free_entries().map_err(|error| self.index(error))?;
        Ok(offsets.min(times))
    }

    /// Whether an index has no room for another entry.
    pub fn indexes_full(&self) -> Result<bool, SegmentError> {
        self.check_indexes()?;
        let full = self.offset_index.is_full().map_err(|error| self.index(error))?;
        Ok(full || self.time_index.is_full().map_err(|error| self.index(error))?)
    }

    /// What [`must_roll`] needs to know of this segment.
    pub fn roll_state(&self, jitter: Millis) -> Result<RollState, SegmentError> {
        Ok(RollState {
            base: self.base,
            size: self.size(),
            first_timestamp: self.first_timestamp()?,
            created: self.created(),
            jitter,
            index_full: self.indexes_full()?,
        })
    }

    /// Gives the indexes the room of an active segment again, after a load or a truncation. Nothing is read or
    /// written; the files grow when their next entries come.
    pub fn resize_indexes(&self) {
        self.offset_index.resize(self.config.max_index_bytes);
        self.time_index.resize(self.config.max_index_bytes);
    }
}
