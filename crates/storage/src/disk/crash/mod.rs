//! A disk in memory that forgets, for tests: it knows what was synced and what was not, loses, tears and
//! reorders the rest when it crashes, fails on demand, and can crash at any operation.
//!
//! All is decided by the seed of the crash; the same operations and the same seed give the same image.
//! It is stricter than most file systems: syncing a file does not make its name durable, and a name may
//! survive without the content of its file.

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

mod image;
mod sparse;
#[cfg(test)]
mod tests;
mod world;

use super::{DirEntry, Disk, DiskFile, DiskLock, Metadata, OpenOptions, Space};
use crate::sync::lock;
use world::{Inode, World};

/// What is left after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMode {
    /// The process died: everything written stays, and is as little durable as before.
    ProcessKill,
    /// The power failed and nothing unsynced survived.
    LoseUnsynced,
    /// The power failed, and of what was not synced an arbitrary part survived: whole writes, writes torn
    /// at a byte or in sectors of 512 bytes, later ones without earlier ones, names without their files.
    PowerLoss {
        /// Decides what survived.
        seed: u64,
    },
}

/// The kinds of operations that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opening or creating a file.
    Open,
    /// Reading.
    Read,
    /// Writing; half of the bytes are written before the error.
    Write,
    /// Changing the length of a file.
    SetLen,
    /// Syncing a file; what was not yet durable will not survive a power loss, whatever is synced later.
    Sync,
    /// Syncing a directory.
    SyncDir,
    /// Renaming.
    Rename,
    /// Removing a file or directory.
    Remove,
    /// Creating a directory.
    CreateDir,
    /// Listing a directory.
    List,
}

/// An error to be met later.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The operation that fails.
    pub operation: Operation,
    /// Only paths that contain this text are concerned.
    pub path_contains: String,
    /// How many matching operations succeed first.
    pub skip: usize,
    /// How many fail after that.
    pub times: usize,
    /// The error.
    pub kind: io::ErrorKind,
}

/// A disk in memory; see the module's text. Clones are the same disk.
#[derive(Clone, Default)]
pub struct CrashDisk {
    world: Arc<Mutex<World>>,
}

impl fmt::Debug for CrashDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CrashDisk")
    }
}

impl CrashDisk {
    /// An empty disk; the directory `/` exists.
    pub fn new() -> Self {
        Self::default()
    }

    /// The disk as the next process finds it. This one is dead afterwards: every operation fails.
    #[must_use]
    pub fn crash(&self, mode: CrashMode) -> Self {
        let mut world = lock(&self.world);
        let after = image::after_crash(&world, mode);
        world.kill();
        Self { world: Arc::new(Mutex::new(after)) }
    }

    /// A copy of the disk as it is, with what is durable and what is not; this one lives on.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { world: Arc::new(Mutex::new(lock(&self.world).fork())) }
    }

    /// Lets the disk die at the change number `at` from now on (0 = the next one): if it is a write, half
    /// of it is done. That operation and all later ones fail; [`CrashDisk::crash`] gives what is left.
    pub fn crash_at(&self, at: u64) {
        lock(&self.world).crash_at(at);
    }

    /// Injects an error.
    pub fn fail(&self, fault: Fault) {
        lock(&self.world).faults.push(fault);
    }

    /// Takes back all injected errors that were not met yet.
    pub fn heal(&self) {
        lock(&self.world).faults.clear();
    }

    /// The number of operations so far that changed or synced something.
    pub fn changes(&self) -> u64 {
        lock(&self.world).changes
    }

    /// The number of files opened so far.
    pub fn opens(&self) -> u64 {
        lock(&self.world).opens
    }

    /// The number of syncs of files and directories so far.
    pub fn syncs(&self) -> u64 {
        lock(&self.world).syncs
    }

    /// Sets the clock that stamps changed files, in milliseconds since the Unix epoch.
    pub fn set_now(&self, now_ms: i64) {
        lock(&self.world).now_ms = now_ms;
    }
}

impl Disk for CrashDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        lock(&self.world).create_dir_all(path)
    }

    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn DiskFile>> {
        let inode = lock(&self.world).open(path, options)?;
        let file = CrashFile { disk: self.clone(), inode, path: path.to_path_buf(), writable: options.write };
        Ok(Arc::new(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        lock(&self.world).rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        lock(&self.world).remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        lock(&self.world).remove_dir_all(path)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        lock(&self.world).list_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        lock(&self.world).sync_dir(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        lock(&self.world).metadata(path)
    }

    fn set_modified(&self, path: &Path, modified_ms: i64) -> io::Result<()> {
        lock(&self.world).set_modified(path, modified_ms)
    }

    fn space(&self, _path: &Path) -> io::Result<Space> {
        Ok(Space { total: 1 << 40, usable: 1 << 39 })
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        let mut world = lock(&self.world);
        world.open(path, OpenOptions::CREATE)?;
        if !world.locks.insert(path.to_path_buf()) {
            return Ok(None);
        }
        Ok(Some(Box::new(CrashLock { disk: self.clone(), path: path.to_path_buf() })))
    }
}

#[derive(Debug)]
struct CrashLock {
    disk: CrashDisk,
    path: PathBuf,
}

impl DiskLock for CrashLock {}

impl Drop for CrashLock {
    fn drop(&mut self) {
        lock(&self.disk.world).locks.remove(&self.path);
    }
}

#[derive(Debug)]
struct CrashFile {
    disk: CrashDisk,
    inode: Inode,
    path: PathBuf,
    writable: bool,
}

impl CrashFile {
    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl DiskFile for CrashFile {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        lock(&self.disk.world).read(self.inode, &self.path, buf, position)
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        self.check_writable()?;
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        if bytes.is_empty() {
            return Ok(());
        }
        lock(&self.disk.world).write(self.inode, &self.path, bytes, position)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        lock(&self.disk.world).set_len(self.inode, &self.path, len)
    }

    fn len(&self) -> io::Result<u64> {
        lock(&self.disk.world).len(self.inode)
    }

    fn sync_data(&self) -> io::Result<()> {
        lock(&self.disk.world).sync(self.inode, &self.path)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
