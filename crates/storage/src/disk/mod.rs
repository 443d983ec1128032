//! What the logs need of a file system, as two traits, so that the same code runs on a real disk
//! ([`RealDisk`]) and on one that forgets what was not synced ([`crash::CrashDisk`]).
//!
//! A written byte is visible to every reader at once, and durable only after `sync_data` or `sync_all`
//! of its file; a created, renamed or removed name is durable only after `sync_dir` of its directory.
//! Nothing here retries: a failed sync means that the data may be lost, however often it is repeated.

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

pub mod atomic;
pub mod crash;
pub mod handles;
mod range;
mod real;

pub use range::FileRange;
pub use real::RealDisk;

/// How a file is opened. Every file may be read; `write` adds writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// The file may be written and its length changed.
    pub write: bool,
    /// The file is created (empty) if it does not exist.
    pub create: bool,
    /// The file is emptied when opened.
    pub truncate: bool,
}

impl OpenOptions {
    /// Opens an existing file for reading only.
    pub const READ: Self = Self { write: false, create: false, truncate: false };
    /// Opens an existing file for reading and writing.
    pub const WRITE: Self = Self { write: true, create: false, truncate: false };
    /// Opens a file for reading and writing, creating it if it is absent.
    pub const CREATE: Self = Self { write: true, create: true, truncate: false };
    /// Opens a file for reading and writing, creating it or emptying the one there is.
    pub const REPLACE: Self = Self { write: true, create: true, truncate: true };
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name without its directory. A name that is not UTF-8 has its bad bytes replaced.
    pub name: String,
    /// Whether the name is a directory.
    pub is_dir: bool,
}

/// What is known of a path without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The length in bytes; of no meaning for a directory.
    pub len: u64,
    /// Whether the path is a directory.
    pub is_dir: bool,
    /// When the content last changed, in milliseconds since the Unix epoch.
    pub modified_ms: i64,
}

/// The room on the file system that holds a path, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The size of the file system.
    pub total: u64,
    /// What an unprivileged process may still write.
    pub usable: u64,
}

/// A lock on a file, held until it is dropped.
pub trait DiskLock: Send + Sync + fmt::Debug {}

/// A file system.
pub trait Disk: Send + Sync + fmt::Debug + 'static {
    /// Creates a directory and those above it; succeeds if it exists.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Opens a file. The handle stays valid when the file is renamed or removed.
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn DiskFile>>;
    /// Gives a file or directory another name, replacing a file that has it. Atomic.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes the name of a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all below it.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, sorted.
    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// Makes the names in a directory durable: what was created, renamed or removed.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// What is known of a path; [`io::ErrorKind::NotFound`] if there is none.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;
    /// Sets the time of the last change, in milliseconds since the Unix epoch.
    fn set_modified(&self, path: &Path, modified_ms: i64) -> io::Result<()>;
    /// The room on the file system that holds `path`.
    fn space(&self, path: &Path) -> io::Result<Space>;
    /// Locks the file `path` (created if absent) for this process and this caller alone.
    /// `None` if another process, or another caller in this one, holds it.
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>>;

    /// Whether the path exists.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// An open file. All methods may be called from several threads at once.
pub trait DiskFile: Send + Sync + fmt::Debug {
    /// Reads into `buf` from `position`; less than asked only at the end of the file.
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize>;
    /// Writes all slices one after the other from `position`. After an error any part may have been written.
    fn write_vectored_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<()>;
    /// Cuts the file, or extends it by a hole that reads as zeros and takes no room.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Makes the content and length durable.
    fn sync_data(&self) -> io::Result<()>;
    /// Makes the content and all metadata durable.
    fn sync_all(&self) -> io::Result<()>;
    /// The descriptor for `sendfile`, if there is one.
    fn as_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Whether the file holds no byte.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Writes all of `bytes` from `position`.
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.write_vectored_at(&[IoSlice::new(bytes)], position)
    }

    /// Fills `buf` from `position`; [`io::ErrorKind::UnexpectedEof`] if the file ends before.
    fn read_exact_at(&self, buf: &mut [u8], position: u64) -> io::Result<()> {
        if self.read_at(buf, position)? == buf.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}
