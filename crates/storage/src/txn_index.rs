//! The index of aborted transactions of a segment (`.txnindex`), which tells a reader of committed records
//! what to leave out (KIP-98).
//!
//! Entries of 34 bytes, sorted by the offset of the ABORT marker, which lies in the segment. The file exists
//! from the first abort on. A partial entry at its end counts as not there and is overwritten.

use std::io;
use std::sync::{Mutex, MutexGuard};

use wire::types::Offset;

use crate::disk::handles::CachedFile;
use crate::sync::lock;

/// The size of an entry in bytes.
pub const TXN_INDEX_ENTRY_BYTES: usize = 34;

/// Entries read at a time.
const CHUNK_ENTRIES: usize = 240;

/// An aborted transaction of one producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTxn {
    /// The producer id.
    pub producer_id: i64,
    /// The first data offset of the transaction (inclusive).
    pub first_offset: Offset,
    /// The offset of the ABORT marker.
    pub last_offset: Offset,
    /// The last stable offset right after the abort: nothing before it is undecided.
    pub last_stable_offset: Offset,
}

/// Why the index cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TxnIndexError {
    /// The disk failed.
    #[error("transaction index {file}: {error}")]
    Io {
        /// The name of the file.
        file: String,
        /// The error of the disk.
        error: io::Error,
    },
    /// An entry has a version that only a newer broker knows.
    #[error("transaction index {file} has an entry of version {version}, only 0 is known")]
    Version {
        /// The name of the file.
        file: String,
        /// The version.
        version: i16,
    },
    /// The marker of a new entry does not come after that of the last one.
    #[error("marker offset {offset} does not come after the last one, {last}")]
    OutOfOrder {
        /// The marker's offset.
        offset: Offset,
        /// The last marker's offset.
        last: Offset,
    },
    /// An entry lies before the segment.
    #[error("transaction index {file} has a marker at {offset}, before the segment")]
    BeforeSegment {
        /// The name of the file.
        file: String,
        /// The marker's offset.
        offset: Offset,
    },
}

/// What one segment knows of the aborted transactions in a range of offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbortedInRange {
    /// Transactions that may have records in the range.
    pub aborted: Vec<AbortedTxn>,
    /// Whether no later segment can add any.
    pub complete: bool,
}

/// The index; shared by its readers and the one writer of its segment.
#[derive(Debug)]
pub struct TxnIndex {
    base: Offset,
    file: CachedFile,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    loaded: bool,
    exists: bool,
    count: usize,
    last: Option<Offset>,
    dirty: bool,
    /// Whether the file was created and its name not yet synced.
    is_new: bool,
}

impl TxnIndex {
    /// The index in `file` of the segment at `base`. Nothing is opened or created.
    pub fn new(file: CachedFile, base: Offset) -> Self {
        Self { base, file, state: Mutex::new(State::default()) }
    }

    fn io(&self, error: io::Error) -> TxnIndexError {
        TxnIndexError::Io { file: self.file.name(), error }
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, TxnIndexError> {
        let mut state = lock(&self.state);
        if state.loaded {
            return Ok(state);
        }
        match self.file.handle().and_then(|handle| handle.len()) {
            Ok(len) => {
                state.exists = true;
                state.count = usize::try_from(len).unwrap_or(usize::MAX) / TXN_INDEX_ENTRY_BYTES;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(self.io(error)),
        }
        if let Some(at) = state.count.checked_sub(1) {
            state.last = self.read(at, 1)?.first().map(|txn| txn.last_offset);
        }
        state.loaded = true;
        Ok(state)
    }

    /// The file is known not to exist, unless it was used already.
    pub(crate) fn note_absent(&self) {
        lock(&self.state).loaded = true;
    }

    fn read(&self, first: usize, count: usize) -> Result<Vec<AbortedTxn>, TxnIndexError> {
        let mut bytes = vec![0; count.saturating_mul(TXN_INDEX_ENTRY_BYTES)];
        let position = (first as u64).saturating_mul(TXN_INDEX_ENTRY_BYTES as u64);
        let read = self.file.handle().and_then(|handle| handle.read_at(&mut bytes, position));
        bytes.truncate(read.map_err(|error| self.io(error))?);
        let entries = bytes.chunks_exact(TXN_INDEX_ENTRY_BYTES).filter_map(decode);
        entries
            .map(|(version, txn)| match version {
                1.. => Err(TxnIndexError::Version { file: self.file.name(), version }),
                _ => Ok(txn),
            })
            .collect()
    }

    /// The number of entries.
    pub fn count(&self) -> Result<usize, TxnIndexError> {
        Ok(self.state()?.count)
    }

    /// Adds an aborted transaction; creates the file if there is none.
    pub fn append(&self, txn: &AbortedTxn) -> Result<(), TxnIndexError> {
        let (exists, count, last) = {
            let state = self.state()?;
            (state.exists, state.count, state.last)
        };
        if let Some(last) = last
            && last >= txn.last_offset
        {
            return Err(TxnIndexError::OutOfOrder { offset: txn.last_offset, last });
        }
        let position = (count as u64).saturating_mul(TXN_INDEX_ENTRY_BYTES as u64);
        // There is one writer, and nobody else waits while the disk does.
        let handle = if exists { self.file.handle() } else { self.file.create() };
        handle.and_then(|handle| handle.write_at(&encode(txn), position)).map_err(|error| self.io(error))?;
        let mut state = lock(&self.state);
        state.is_new |= !exists;
        state.exists = true;
        state.count = state.count.saturating_add(1);
        state.last = Some(txn.last_offset);
        state.dirty = true;
        Ok(())
    }

    /// The transactions whose marker is at or above `from` and whose first offset is below `to` (exclusive).
    /// May name some that have no records there.
    pub fn aborted_in(&self, from: Offset, to: Offset) -> Result<AbortedInRange, TxnIndexError> {
        let count = self.state()?.count;
        let mut found = AbortedInRange::default();
        let mut at = self.first_at_or_above(from, count)?;
        while at < count {
            let chunk = self.read(at, CHUNK_ENTRIES.min(count.saturating_sub(at)))?;
            if chunk.is_empty() {
                break;
            }
            at = at.saturating_add(chunk.len());
            for txn in chunk {
                if txn.first_offset < to {
                    found.aborted.push(txn);
                }
                if txn.last_stable_offset >= to {
                    found.complete = true;
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// The number of the first entry, of `count`, whose marker is at or above `offset`.
    fn first_at_or_above(&self, offset: Offset, count: usize) -> Result<usize, TxnIndexError> {
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            match self.read(middle, 1)?.first() {
                Some(txn) if txn.last_offset < offset => low = middle.saturating_add(1),
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// All entries, in order.
    pub fn all(&self) -> Result<Vec<AbortedTxn>, TxnIndexError> {
        let count = self.state()?.count;
        if count == 0 { Ok(Vec::new()) } else { self.read(0, count) }
    }

    /// Drops all entries whose marker is at or above `offset`.
    pub fn truncate_to(&self, offset: Offset) -> Result<(), TxnIndexError> {
        let mut state = self.state()?;
        let count = self.first_at_or_above(offset, state.count)?;
        if count < state.count {
            state.last = match count.checked_sub(1) {
                Some(at) => self.read(at, 1)?.first().map(|txn| txn.last_offset),
                None => None,
            };
            let len = (count as u64).saturating_mul(TXN_INDEX_ENTRY_BYTES as u64);
            self.file.handle().and_then(|handle| handle.set_len(len)).map_err(|error| self.io(error))?;
            state.count = count;
            state.dirty = true;
        }
        Ok(())
    }

    /// Drops all entries, whatever is in the file; a file that does not exist is not created.
    pub fn reset(&self) -> Result<(), TxnIndexError> {
        let mut state = lock(&self.state);
        if state.loaded && !state.exists {
            return Ok(());
        }
        *state = State { loaded: true, ..State::default() };
        match self.file.handle().and_then(|handle| handle.set_len(0)) {
            Ok(()) => (state.exists, state.dirty) = (true, true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(self.io(error)),
        }
        Ok(())
    }

    /// Whether every entry can be read and lies in the segment; otherwise the segment must be recovered.
    pub fn check(&self) -> Result<(), TxnIndexError> {
        for txn in self.all()? {
            if txn.last_offset < self.base {
                let file = self.file.name();
                return Err(TxnIndexError::BeforeSegment { file, offset: txn.last_offset });
            }
        }
        Ok(())
    }

    /// Makes the entries durable. Returns whether the file is new: its name then needs a sync of the directory.
    pub fn flush(&self) -> Result<bool, TxnIndexError> {
        let is_new;
        {
            let mut state = lock(&self.state);
            if !state.dirty {
                return Ok(false);
            }
            state.dirty = false;
            is_new = std::mem::take(&mut state.is_new);
        }
        self.file.handle().and_then(|handle| handle.sync_data()).map_err(|error| {
            lock(&self.state).dirty = true;
            self.io(error)
        })?;
        Ok(is_new)
    }

    /// The file.
    pub fn file(&self) -> &CachedFile {
        &self.file
    }
}

fn encode(txn: &AbortedTxn) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(TXN_INDEX_ENTRY_BYTES);
    bytes.extend_from_slice(&0i16.to_be_bytes());
    for field in [txn.producer_id, txn.first_offset.0, txn.last_offset.0, txn.last_stable_offset.0] {
        bytes.extend_from_slice(&field.to_be_bytes());
    }
    bytes
}

/// The version and content of an entry; `None` if there are too few bytes.
fn decode(bytes: &[u8]) -> Option<(i16, AbortedTxn)> {
    let (version, mut rest) = bytes.split_first_chunk()?;
    let mut next = || {
        let (field, after) = rest.split_first_chunk()?;
        rest = after;
        Some(i64::from_be_bytes(*field))
    };
    let txn = AbortedTxn {
        producer_id: next()?,
        first_offset: Offset(next()?),
        last_offset: Offset(next()?),
        last_stable_offset: Offset(next()?),
    };
    Some((i16::from_be_bytes(*version), txn))
}

#[cfg(test)]
#[path = "txn_index/tests.rs"]
mod tests;
