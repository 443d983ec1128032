//! Open files by the thousand with descriptors by the hundred: a [`CachedFile`] opens itself when it is
//! used and is closed again when too many others are open.
//!
//! A handle that somebody still uses (a fetch response on its way to the socket) lives on until its last
//! user drops it. Names are resolved when a file is opened, under the lock that a rename takes too, so an
//! access never meets the moment between a rename and the note of it.
//! Closing a file loses nothing: what was written stays in the page cache, and a later sync covers it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};

use super::{Disk, DiskFile, FileRange, Metadata, OpenOptions};
use crate::sync::{lock, read, write};

/// Where a directory is, known to all files in it, so that it can be renamed under them.
#[derive(Debug)]
pub struct DirPath(RwLock<Arc<Path>>);

impl DirPath {
    /// The directory at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::from(path.into()))))
    }

    /// Where it is now.
    pub fn get(&self) -> Arc<Path> {
        read(&self.0).clone()
    }

    /// Renames the directory; no file of it is being opened meanwhile. Open handles stay valid.
    pub fn rename(&self, disk: &dyn Disk, to: &Path) -> io::Result<()> {
        let mut path = write(&self.0);
        disk.rename(&path, to)?;
        *path = Arc::from(to);
        Ok(())
    }
}

/// The open files of one disk, at most `limit` of them (a few more while all are in use at one moment).
pub struct FileCache {
    disk: Arc<dyn Disk>,
    limit: usize,
    ring: Mutex<Ring>,
}

/// All open slots, and the hand of the clock that closes those not used since its last round.
#[derive(Default)]
struct Ring {
    open: Vec<Weak<Slot>>,
    hand: usize,
}

impl fmt::Debug for FileCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileCache").field("disk", &self.disk).field("limit", &self.limit).finish()
    }
}

impl FileCache {
    /// A cache that keeps at most `limit` files open (at least one).
    pub fn new(disk: Arc<dyn Disk>, limit: usize) -> Arc<Self> {
        Arc::new(Self { disk, limit: limit.max(1), ring: Mutex::new(Ring::default()) })
    }

    /// The disk below.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// The file `name` in `dir`. Nothing is opened or created yet.
    pub fn file(self: &Arc<Self>, dir: &Arc<DirPath>, name: String) -> CachedFile {
        let slot = Slot {
            state: Mutex::new(SlotState { name, handle: None, admitted: false }),
            used: AtomicBool::new(false),
        };
        CachedFile { cache: self.clone(), dir: dir.clone(), slot: Arc::new(slot) }
    }

    /// How many files are open.
    pub fn open_count(&self) -> usize {
        lock(&self.ring).open.iter().filter_map(Weak::upgrade).filter(|s| s.is_open()).count()
    }

    /// Notes an opened slot, and closes another if there are too many. The caller holds the slot's lock.
    fn admit(&self, slot: &Arc<Slot>) {
        let mut closed = Vec::new();
        let mut ring = lock(&self.ring);
        // One round clears the marks of use, the second finds a victim; a third would find no more.
        let mut steps = ring.open.len().saturating_mul(2);
        while ring.open.len() >= self.limit && steps > 0 {
            steps -= 1;
            if ring.hand >= ring.open.len() {
                ring.hand = 0;
            }
            let hand = ring.hand;
            match ring.open.get(hand).and_then(Weak::upgrade).map(|other| other.try_close()) {
                // Dead, or already closed by itself.
                None | Some(Closing::Closed(None)) => drop(ring.open.swap_remove(hand)),
                Some(Closing::Closed(handle)) => {
                    ring.open.swap_remove(hand);
                    closed.push(handle);
                }
                Some(Closing::InUse) => ring.hand += 1,
            }
        }
        ring.open.push(Arc::downgrade(slot));
        drop(ring);
        // The descriptors are closed here, outside the lock.
        drop(closed);
    }
}

/// A file of a [`FileCache`].
pub struct CachedFile {
    cache: Arc<FileCache>,
    dir: Arc<DirPath>,
    slot: Arc<Slot>,
}

struct Slot {
    state: Mutex<SlotState>,
    used: AtomicBool,
}

struct SlotState {
    name: String,
    handle: Option<Arc<dyn DiskFile>>,
    /// Whether the ring knows this slot.
    admitted: bool,
}

enum Closing {
    Closed(Option<Arc<dyn DiskFile>>),
    InUse,
}

impl Slot {
    /// Takes the handle out unless the file was used since the last call or is being used right now.
    fn try_close(&self) -> Closing {
        if self.used.swap(false, Ordering::Relaxed) {
            return Closing::InUse;
        }
        match self.state.try_lock() {
            Ok(mut state) => {
                state.admitted = false;
                Closing::Closed(state.handle.take())
            }
            Err(_) => Closing::InUse,
        }
    }

    fn is_open(&self) -> bool {
        lock(&self.state).handle.is_some()
    }
}

impl fmt::Debug for CachedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CachedFile").field(&self.path()).finish()
    }
}

impl CachedFile {
    /// The open file, opened for reading and writing if it is not open. It must exist.
    pub fn handle(&self) -> io::Result<Arc<dyn DiskFile>> {
        self.open(OpenOptions::WRITE)
    }

    /// The open file, created if it does not exist.
    pub fn create(&self) -> io::Result<Arc<dyn DiskFile>> {
        self.open(OpenOptions::CREATE)
    }

    fn open(&self, options: OpenOptions) -> io::Result<Arc<dyn DiskFile>> {
        self.slot.used.store(true, Ordering::Relaxed);
        let mut state = lock(&self.slot.state);
        if let Some(handle) = &state.handle {
            return Ok(handle.clone());
        }
        let dir = read(&self.dir.0);
        let handle = self.cache.disk.open(&dir.join(&state.name), options)?;
        drop(dir);
        state.handle = Some(handle.clone());
        if !state.admitted {
            state.admitted = true;
            self.cache.admit(&self.slot);
        }
        Ok(handle)
    }

    /// A piece of the file that stays readable whatever happens to the file.
    pub fn range(&self, position: u64, len: usize) -> io::Result<FileRange> {
        Ok(FileRange { file: self.handle()?, position, len })
    }

    /// Where the file is now.
    pub fn path(&self) -> PathBuf {
        let name = lock(&self.slot.state).name.clone();
        self.dir.get().join(name)
    }

    /// The name of the file in its directory.
    pub fn name(&self) -> String {
        lock(&self.slot.state).name.clone()
    }

    /// Renames the file within its directory. Fails if it does not exist.
    pub fn rename(&self, name: String) -> io::Result<()> {
        let mut state = lock(&self.slot.state);
        let dir = read(&self.dir.0);
        self.cache.disk.rename(&dir.join(&state.name), &dir.join(&name))?;
        state.name = name;
        Ok(())
    }

    /// Renames the file if it exists, and will use the new name in any case.
    pub fn rename_if_exists(&self, name: String) -> io::Result<()> {
        let mut state = lock(&self.slot.state);
        let dir = read(&self.dir.0);
        match self.cache.disk.rename(&dir.join(&state.name), &dir.join(&name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => state.name = name,
        }
        Ok(())
    }

    /// Removes the file and closes it; succeeds if there is none. Handles in use stay valid.
    pub fn remove(&self) -> io::Result<()> {
        let mut state = lock(&self.slot.state);
        state.handle = None;
        let dir = read(&self.dir.0);
        match self.cache.disk.remove_file(&dir.join(&state.name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// What is known of the file without opening it; never asked in the middle of a renaming.
    pub fn metadata(&self) -> io::Result<Metadata> {
        let state = lock(&self.slot.state);
        let dir = read(&self.dir.0);
        self.cache.disk.metadata(&dir.join(&state.name))
    }

    /// Whether the file exists.
    pub fn exists(&self) -> io::Result<bool> {
        let state = lock(&self.slot.state);
        if state.handle.is_some() {
            return Ok(true);
        }
        let dir = read(&self.dir.0);
        self.cache.disk.exists(&dir.join(&state.name))
    }

    /// Closes the file until it is used again.
    pub fn close(&self) {
        lock(&self.slot.state).handle = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::crash::CrashDisk;

    fn files(limit: usize, count: usize) -> (CrashDisk, Arc<FileCache>, Vec<CachedFile>) {
        let disk = CrashDisk::new();
        let cache = FileCache::new(Arc::new(disk.clone()), limit);
        let dir = DirPath::new("/");
        let files = (0..count).map(|n| cache.file(&dir, n.to_string())).collect();
        (disk, cache, files)
    }

    #[test]
    fn no_more_files_than_the_limit_stay_open_and_all_keep_their_content() {
        let (_, cache, files) = files(3, 20);
        for (n, file) in files.iter().enumerate() {
            file.create().unwrap().write_at(&[n as u8], 0).unwrap();
            assert!(cache.open_count() <= 3);
        }
        assert_eq!(cache.open_count(), 3);
        for (n, file) in files.iter().enumerate() {
            assert_eq!(file.range(0, 1).unwrap().to_vec().unwrap(), [n as u8]);
            assert!(cache.open_count() <= 3);
        }
    }

    #[test]
    fn a_file_in_frequent_use_stays_open() {
        let (disk, _, files) = files(3, 10);
        for file in &files {
            file.create().unwrap();
        }
        files[0].handle().unwrap();
        let before = disk.opens();
        for file in &files[1..] {
            file.handle().unwrap();
            files[0].handle().unwrap();
        }
        // Those from 1 on were opened, the busy one never again.
        assert!(disk.opens() - before <= 9);
    }

    #[test]
    fn dropped_and_closed_files_leave_room() {
        let (_, cache, mut files) = files(2, 6);
        files[0].create().unwrap();
        files[1].create().unwrap();
        files.remove(0);
        files[0].close();
        assert_eq!(cache.open_count(), 0);
        for file in &files {
            file.create().unwrap();
        }
        assert_eq!(cache.open_count(), 2);
    }

    #[test]
    fn a_range_in_flight_survives_closing_and_removal() {
        let (_, cache, files) = files(1, 2);
        files[0].create().unwrap().write_at(b"abc", 0).unwrap();
        let range = files[0].range(1, 2).unwrap();
        files[1].create().unwrap();
        files[1].create().unwrap();
        files[0].remove().unwrap();
        assert!(cache.open_count() <= 1);
        assert_eq!(range.to_vec().unwrap(), b"bc");
        assert_eq!(files[0].handle().unwrap_err().kind(), io::ErrorKind::NotFound);
        files[0].remove().unwrap();
    }

    #[test]
    fn a_closed_file_is_found_after_it_and_its_directory_were_renamed() {
        let disk = CrashDisk::new();
        disk.create_dir_all(Path::new("/a")).unwrap();
        let cache = FileCache::new(Arc::new(disk.clone()), 1);
        let dir = DirPath::new("/a");
        let file = cache.file(&dir, "x".into());
        file.create().unwrap().write_at(b"1", 0).unwrap();
        file.close();
        file.rename("x.deleted".into()).unwrap();
        dir.rename(&disk, Path::new("/b")).unwrap();
        assert_eq!(file.path(), Path::new("/b/x.deleted"));
        assert_eq!(file.range(0, 1).unwrap().to_vec().unwrap(), b"1");
        assert!(file.exists().unwrap());
    }

    #[test]
    fn a_file_that_does_not_exist_yet_takes_its_new_name_when_it_is_created() {
        let (disk, _, files) = files(2, 1);
        assert!(files[0].rename("x".into()).is_err());
        files[0].rename_if_exists("y".into()).unwrap();
        assert!(!files[0].exists().unwrap());
        files[0].create().unwrap();
        assert!(disk.exists(Path::new("/y")).unwrap());
        files[0].rename_if_exists("z".into()).unwrap();
        assert!(disk.exists(Path::new("/z")).unwrap() && !disk.exists(Path::new("/y")).unwrap());
        assert_eq!(files[0].name(), "z");
    }

    #[test]
    fn many_threads_share_few_open_files() {
        let (_, cache, files) = files(4, 12);
        for (n, file) in files.iter().enumerate() {
            file.create().unwrap().write_at(&[n as u8; 8], 0).unwrap();
        }
        std::thread::scope(|scope| {
            for start in 0..4 {
                let files = &files;
                scope.spawn(move || {
                    for step in 0..2000 {
                        let n = (start * 5 + step * 7) % files.len();
                        assert_eq!(files[n].range(0, 8).unwrap().to_vec().unwrap(), [n as u8; 8]);
                    }
                });
            }
        });
        // While four are held at one moment a fifth may be open besides; afterwards the limit holds again.
        files[0].close();
        files[0].handle().unwrap();
        assert!(cache.open_count() <= 8, "{}", cache.open_count());
    }
}
