//! The lock of a log directory (`.lock`), held while a broker uses it.
//!
//! It is the same lock that a Java broker takes, so the two keep each other out. There must be one holder
//! object per directory, and nobody else may open the file: closing any descriptor of it would give the
//! lock up.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskLock};
use crate::names::LOCK;

/// Why a directory cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another broker uses the directory; the start must fail.
    #[error("log directory {dir} is in use: another process or thread holds the lock on {LOCK} in it")]
    InUse {
        /// The log directory.
        dir: PathBuf,
    },
    /// The disk failed; the directory is offline.
    #[error("cannot lock log directory {dir}: {error}")]
    Io {
        /// The log directory.
        dir: PathBuf,
        /// The error of the disk.
        error: io::Error,
    },
}

/// The lock of a log directory, until it is dropped.
#[derive(Debug)]
pub struct DirLock {
    dir: PathBuf,
    _held: Box<dyn DiskLock>,
}

impl DirLock {
    /// Locks `dir`, creating the lock file if there is none. Does not wait.
    pub fn acquire(disk: &dyn Disk, dir: &Path) -> Result<Self, LockError> {
        match disk.try_lock(&dir.join(LOCK)) {
            Ok(Some(held)) => Ok(Self { dir: dir.to_path_buf(), _held: held }),
            Ok(None) => Err(LockError::InUse { dir: dir.to_path_buf() }),
            Err(error) => Err(LockError::Io { dir: dir.to_path_buf(), error }),
        }
    }

    /// The directory that is locked.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use crate::disk::crash::{CrashDisk, Fault, Operation};

    #[test]
    fn a_directory_has_one_holder_at_a_time() {
        let temporary = tempfile::tempdir().unwrap();
        let crash = CrashDisk::new();
        let disks: [(&dyn Disk, &Path); 2] = [(&RealDisk, temporary.path()), (&crash, Path::new("/"))];
        for (disk, dir) in disks {
            let held = DirLock::acquire(disk, dir).unwrap();
            assert_eq!(held.dir(), dir);
            assert!(matches!(DirLock::acquire(disk, dir), Err(LockError::InUse { .. })));
            drop(held);
            DirLock::acquire(disk, dir).unwrap();
        }
    }

    #[test]
    fn the_same_directory_by_another_path_is_the_same_lock() {
        let temporary = tempfile::tempdir().unwrap();
        let held = DirLock::acquire(&RealDisk, temporary.path()).unwrap();
        let link = temporary.path().join("link");
        std::os::unix::fs::symlink(temporary.path(), &link).unwrap();
        assert!(matches!(DirLock::acquire(&RealDisk, &link), Err(LockError::InUse { .. })));
        drop(held);
        DirLock::acquire(&RealDisk, &link).unwrap();
    }

    #[test]
    fn a_disk_error_is_not_taken_for_another_holder() {
        let disk = CrashDisk::new();
        let kind = io::ErrorKind::PermissionDenied;
        disk.fail(Fault { operation: Operation::Open, path_contains: LOCK.into(), skip: 0, times: 1, kind });
        let result = DirLock::acquire(&disk, Path::new("/"));
        assert!(matches!(result, Err(LockError::Io { error, .. }) if error.kind() == kind));
    }
}
