//! A file of fixed-size, sorted entries: what the offset index and the time index have in common.
//!
//! The file is opened when it is first used, and created (as a hole of the configured size) when the first
//! entry comes; a file that was cut to its entries grows again in the same way. Every entry goes to the file at once. A look-up first reads the end of the file, where most
//! readers are (KAFKA-6432), else it searches blocks whose first entries it remembers. Appends, of which there is
//! one at a time, and look-ups run side by side, also while a write waits for the disk; whatever takes entries away
//! waits for the look-ups.
//! Entries lost in a crash are no harm: segments at or above the recovery point are indexed anew.

use std::io;
use std::sync::{Mutex, MutexGuard, RwLock};

use crate::disk::handles::CachedFile;
use crate::sync::{lock, read, write};

/// How much of the end of the file a look-up reads first, in bytes.
const WARM_BYTES: usize = 8192;
/// How much of the rest is read at a time, in bytes.
const BLOCK_BYTES: usize = 4096;

/// Why an index does not take an entry or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The disk failed.
    #[error("index file {file}: {error}")]
    Io {
        /// The name of the file.
        file: String,
        /// The error of the disk.
        error: io::Error,
    },
    /// The offset cannot be told relative to the base offset of the segment in 31 bits.
    #[error("offset {offset} is out of the range of the segment at {base}")]
    OffsetOverflow {
        /// The offset.
        offset: i64,
        /// The base offset of the segment.
        base: i64,
    },
    /// The entry does not come after the last one.
    #[error("entry ({key}, {value}) does not come after the last one, ({last_key}, {last_value})")]
    OutOfOrder {
        /// The key of the entry: an offset or a timestamp.
        key: i64,
        /// Its value: a position or an offset.
        value: i64,
        /// The key of the last entry.
        last_key: i64,
        /// The value of the last entry.
        last_value: i64,
    },
    /// No entry fits any more.
    #[error("index is full")]
    Full,
}

/// A fixed-size entry.
pub(crate) trait Entry: Copy {
    /// Its size in bytes.
    const SIZE: usize;
    /// Its bytes, the first [`Entry::SIZE`] of the array.
    fn encode(&self) -> [u8; 12];
    /// Reads it from [`Entry::SIZE`] bytes; `None` if there are fewer.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// The file; see the module's text.
#[derive(Debug)]
pub(crate) struct IndexFile<E> {
    file: CachedFile,
    /// Held for reading by look-ups, for writing by whatever takes entries away.
    entries_stay: RwLock<()>,
    /// The first entry of each block, as far as a look-up has met it.
    block_firsts: Mutex<Vec<Option<E>>>,
    state: Mutex<State<E>>,
}

#[derive(Clone, Copy, Debug)]
struct State<E> {
    /// Whether the rest is known, or the file must be looked at first.
    loaded: bool,
    exists: bool,
    /// How long the file may be; it is made that long when the next entry comes.
    room: u64,
    /// Whether `room` holds for a file that exists; before that its length does.
    room_given: bool,
    /// How long the file is.
    len: u64,
    count: usize,
    last: Option<E>,
    dirty: bool,
}

impl<E> State<E> {
    const UNKNOWN: Self = Self {
        loaded: false,
        exists: false,
        room: 0,
        room_given: false,
        len: 0,
        count: 0,
        last: None,
        dirty: false,
    };
}

impl<E: Entry> IndexFile<E> {
    /// The index in `file`; nothing is opened. It will be created with room for `max_bytes`.
    pub(crate) fn new(file: CachedFile, max_bytes: u64) -> Self {
        let state = State::<E> { room: whole_entries::<E>(max_bytes), ..State::UNKNOWN };
        Self {
            file,
            entries_stay: RwLock::new(()),
            block_firsts: Mutex::new(Vec::new()),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn file(&self) -> &CachedFile {
        &self.file
    }

    pub(crate) fn error(&self, error: io::Error) -> IndexError {
        IndexError::Io { file: self.file.name(), error }
    }

    /// The state, after a look at the file if there was none yet.
    fn state(&self) -> Result<MutexGuard<'_, State<E>>, IndexError> {
        let mut state = lock(&self.state);
        if !state.loaded {
            self.load(&mut state).map_err(|error| self.error(error))?;
        }
        Ok(state)
    }

    /// Every entry of an existing file counts up to its length.
    fn load(&self, state: &mut State<E>) -> io::Result<()> {
        match self.file.handle() {
            Ok(handle) => {
                let len = handle.len()?;
                let count = usize::try_from(len).unwrap_or(usize::MAX) / E::SIZE;
                let last = match count.checked_sub(1) {
                    Some(at) => self.read_entries(at, 1)?.pop(),
                    None => None,
                };
                let used = (count as u64).saturating_mul(E::SIZE as u64);
                let room = if state.room_given { state.room.max(used) } else { len };
                *state = State { loaded: true, exists: true, room, len, count, last, ..State::UNKNOWN };
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => state.loaded = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The file is known not to exist, for instance from a listing of its directory, unless it was used already.
    pub(crate) fn note_absent(&self) {
        lock(&self.state).loaded = true;
    }

    fn read_entries(&self, first: usize, count: usize) -> io::Result<Vec<E>> {
        if count == 0 {
            // There may be no file.
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; count.saturating_mul(E::SIZE)];
        let position = (first as u64).saturating_mul(E::SIZE as u64);
        let read = self.file.handle()?.read_at(&mut bytes, position)?;
        bytes.truncate(read);
        Ok(bytes.chunks_exact(E::SIZE).filter_map(E::decode).collect())
    }

    /// The number of entries.
    pub(crate) fn count(&self) -> Result<usize, IndexError> {
        Ok(self.state()?.count)
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Result<Option<E>, IndexError> {
        Ok(self.state()?.last)
    }

    /// The number of entries the file has room for.
    pub(crate) fn capacity(&self) -> Result<usize, IndexError> {
        Ok(usize::try_from(self.state()?.room).unwrap_or(usize::MAX) / E::SIZE)
    }

    /// Whether the file exists and its length is a whole number of entries.
    pub(crate) fn is_whole(&self) -> Result<bool, IndexError> {
        let state = self.state()?;
        Ok(state.exists && state.len % E::SIZE as u64 == 0)
    }

    /// Appends an entry if `accept`, given the last one, says so; creates the file if there is none.
    pub(crate) fn append(
        &self,
        entry: E,
        accept: impl FnOnce(Option<E>) -> Result<bool, IndexError>,
    ) -> Result<(), IndexError> {
        let known = *self.state()?;
        if !accept(known.last)? {
            return Ok(());
        }
        if (known.count as u64).saturating_add(1).saturating_mul(E::SIZE as u64) > known.room {
            return Err(IndexError::Full);
        }
        // There is one writer, and nobody else waits while the disk does.
        self.write_entry(&known, entry).map_err(|error| self.error(error))?;
        let mut state = lock(&self.state);
        (state.exists, state.dirty) = (true, true);
        state.len = state.len.max(state.room);
        state.count = state.count.saturating_add(1);
        state.last = Some(entry);
        Ok(())
    }

    fn write_entry(&self, known: &State<E>, entry: E) -> io::Result<()> {
        let handle = if known.exists { self.file.handle()? } else { self.file.create()? };
        if known.len < known.room {
            handle.set_len(known.room)?;
        }
        let bytes = entry.encode();
        let position = (known.count as u64).saturating_mul(E::SIZE as u64);
        handle.write_at(bytes.get(..E::SIZE).unwrap_or_default(), position)
    }

    /// The last entry for which `holds` is true, and the one after it. `holds` must be true for the entries
    /// before some point and false from there on.
    pub(crate) fn last_where(
        &self,
        holds: impl Fn(&E) -> bool,
    ) -> Result<(Option<E>, Option<E>), IndexError> {
        let _stay = read(&self.entries_stay);
        let count = self.state()?.count;
        self.search(count, holds).map(|found| (found.last, found.after)).map_err(|error| self.error(error))
    }

    fn search(&self, count: usize, holds: impl Fn(&E) -> bool) -> io::Result<Found<E>> {
        let warm = count.min(WARM_BYTES / E::SIZE);
        let warm_start = count.saturating_sub(warm);
        let entries = self.read_entries(warm_start, warm)?;
        if warm_start == 0 || entries.first().is_some_and(&holds) {
            return Ok(split(&entries, warm_start, holds));
        }
        // The point lies before the warm part: find the last block whose first entry holds.
        let per_block = BLOCK_BYTES / E::SIZE;
        let (mut low, mut high) = (0, warm_start.div_ceil(per_block));
        while low < high {
            let middle = low.midpoint(high);
            match self.block_first(middle, per_block)? {
                Some(entry) if holds(&entry) => low = middle.saturating_add(1),
                _ => high = middle,
            }
        }
        let Some(block) = low.checked_sub(1) else {
            return Ok(Found { at: 0, last: None, after: self.block_first(0, per_block)? });
        };
        let start = block.saturating_mul(per_block);
        // One more than the block, so that the entry after the found one is there too.
        let length = per_block.saturating_add(1).min(count.saturating_sub(start));
        Ok(split(&self.read_entries(start, length)?, start, holds))
    }

    fn block_first(&self, block: usize, per_block: usize) -> io::Result<Option<E>> {
        if let Some(Some(entry)) = lock(&self.block_firsts).get(block) {
            return Ok(Some(*entry));
        }
        let entry = self.read_entries(block.saturating_mul(per_block), 1)?.pop();
        let mut firsts = lock(&self.block_firsts);
        if firsts.len() <= block {
            firsts.resize(block.saturating_add(1), None);
        }
        if let Some(slot) = firsts.get_mut(block) {
            *slot = entry;
        }
        Ok(entry)
    }

    /// Drops the first entry for which `stays` is false and all after it.
    pub(crate) fn truncate_where(&self, stays: impl Fn(&E) -> bool) -> Result<(), IndexError> {
        let _gone = write(&self.entries_stay);
        let mut state = self.state()?;
        let found = self.search(state.count, stays).map_err(|error| self.error(error))?;
        if found.at < state.count {
            state.count = found.at;
            state.last = found.last;
            lock(&self.block_firsts).clear();
        }
        Ok(())
    }

    /// Drops all entries and gives the file room for `max_bytes`, whatever is in it now. A file that is known not
    /// to exist is not created.
    pub(crate) fn reset(&self, max_bytes: u64) -> Result<(), IndexError> {
        let _gone = write(&self.entries_stay);
        let mut state = lock(&self.state);
        lock(&self.block_firsts).clear();
        let room = whole_entries::<E>(max_bytes);
        let absent = state.loaded && !state.exists;
        *state = State { loaded: true, exists: !absent, room, dirty: !absent, ..State::UNKNOWN };
        if absent {
            return Ok(());
        }
        self.file.create().and_then(|file| file.set_len(0)).map_err(|error| self.error(error))
    }

    /// Gives the file room for `max_bytes`, or for its entries if those take more. The file itself grows when
    /// the next entry comes, so this costs nothing.
    pub(crate) fn resize(&self, max_bytes: u64) {
        let mut state = lock(&self.state);
        let used = (state.count as u64).saturating_mul(E::SIZE as u64);
        state.room = whole_entries::<E>(max_bytes).max(used);
        state.room_given = true;
    }

    /// Cuts the file to its entries, creating it if it does not exist.
    pub(crate) fn trim(&self) -> Result<(), IndexError> {
        let mut state = self.state()?;
        state.room = (state.count as u64).saturating_mul(E::SIZE as u64);
        self.cut(&mut state).map_err(|error| self.error(error))
    }

    fn cut(&self, state: &mut State<E>) -> io::Result<()> {
        if !state.exists {
            self.file.create()?;
            (state.exists, state.dirty) = (true, true);
        }
        if state.len != state.room {
            self.file.handle()?.set_len(state.room)?;
            (state.len, state.dirty) = (state.room, true);
        }
        Ok(())
    }

    /// Makes the entries durable. The name of a new file needs a sync of its directory besides.
    pub(crate) fn flush(&self) -> Result<(), IndexError> {
        {
            let mut state = lock(&self.state);
            if !state.dirty {
                return Ok(());
            }
            state.dirty = false;
        }
        self.file.handle().and_then(|handle| handle.sync_data()).map_err(|error| {
            lock(&self.state).dirty = true;
            self.error(error)
        })
    }
}

struct Found<E> {
    /// The number of entries that hold.
    at: usize,
    last: Option<E>,
    after: Option<E>,
}

fn split<E: Entry>(entries: &[E], start: usize, holds: impl Fn(&E) -> bool) -> Found<E> {
    let point = entries.partition_point(holds);
    Found {
        at: start.saturating_add(point),
        last: point.checked_sub(1).and_then(|at| entries.get(at)).copied(),
        after: entries.get(point).copied(),
    }
}

fn whole_entries<E: Entry>(bytes: u64) -> u64 {
    bytes - bytes % E::SIZE as u64
}

/// `offset` relative to `base`, if it fits into 31 bits.
pub(crate) fn relative_offset(offset: i64, base: i64) -> Result<i32, IndexError> {
    offset
        .checked_sub(base)
        .and_then(|relative| i32::try_from(relative).ok())
        .filter(|relative| *relative >= 0)
        .ok_or(IndexError::OffsetOverflow { offset, base })
}
