//! The disk of the machine: `std::fs` with vectored positioned writes.
//!
//! Locks are fcntl locks, because a Java broker takes those. Such a lock does not exclude a second holder
//! in the same process, and vanishes as soon as *any* descriptor of the file is closed; so a registry
//! refuses the second holder before the file is opened again, and nobody else may open a lock file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{DirEntry, Disk, DiskFile, DiskLock, Metadata, OpenOptions, Space};

/// How many slices one system call takes (`IOV_MAX` of Linux).
const MAX_SLICES_PER_CALL: usize = 1024;

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn DiskFile>> {
        let file = File::options()
            .read(true)
            .write(options.write)
            .create(options.create)
            .truncate(options.truncate)
            .open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            // A link counts as what it leads to; one that leads nowhere counts as a file.
            let is_dir = if kind.is_symlink() {
                fs::metadata(entry.path()).is_ok_and(|m| m.is_dir())
            } else {
                kind.is_dir()
            };
            entries.push(DirEntry { name: entry.file_name().to_string_lossy().into_owned(), is_dir });
        }
        entries.sort();
        Ok(entries)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let found = fs::metadata(path)?;
        let modified_ms = match found.modified()?.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
        };
        Ok(Metadata { len: found.len(), is_dir: found.is_dir(), modified_ms })
    }

    fn set_modified(&self, path: &Path, modified_ms: i64) -> io::Result<()> {
        let distance = Duration::from_millis(modified_ms.unsigned_abs());
        let time: Option<SystemTime> = if modified_ms >= 0 {
            UNIX_EPOCH.checked_add(distance)
        } else {
            UNIX_EPOCH.checked_sub(distance)
        };
        let time = time.ok_or(io::ErrorKind::InvalidInput)?;
        File::options().write(true).open(path)?.set_modified(time)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(path)?;
        Ok(Space {
            total: found.f_blocks.saturating_mul(found.f_frsize),
            usable: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        // Held during the whole attempt: nobody may open the file between the look-up and the lock.
        let mut held = held_locks();
        if let Ok(found) = fs::metadata(path)
            && held.contains(&(found.dev(), found.ino()))
        {
            return Ok(None);
        }
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        match rustix::fs::fcntl_lock(&file, operation) {
            Ok(()) => {
                let found = file.metadata()?;
                let identity = (found.dev(), found.ino());
                held.insert(identity);
                Ok(Some(Box::new(RealLock { file: Some(file), identity })))
            }
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Device and inode of every lock file that this process holds.
static HELD_LOCKS: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

fn held_locks() -> MutexGuard<'static, BTreeSet<(u64, u64)>> {
    HELD_LOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct RealLock {
    file: Option<File>,
    identity: (u64, u64),
}

impl DiskLock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        let mut held = held_locks();
        // Closing the descriptor gives the lock up; only then may this process take it again.
        drop(self.file.take());
        held.remove(&self.identity);
    }
}

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buf.get_mut(filled..)
            && !rest.is_empty()
        {
            match self.0.read_at(rest, position.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        let total: usize = slices.iter().map(|slice| slice.len()).sum();
        let first = slices.get(..MAX_SLICES_PER_CALL).unwrap_or(slices);
        let written = write_once(&self.0, first, position)?;
        if written == total { Ok(()) } else { self.write_rest(slices, written, position) }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

impl RealFile {
    /// Goes on after a short write, of which `written` bytes from `position` are done.
    fn write_rest(&self, slices: &[IoSlice<'_>], written: usize, position: u64) -> io::Result<()> {
        let mut owned: Vec<IoSlice<'_>> = slices.to_vec();
        let mut rest = owned.as_mut_slice();
        let mut at = position.saturating_add(written as u64);
        IoSlice::advance_slices(&mut rest, written);
        while !rest.is_empty() {
            let now = rest.get(..MAX_SLICES_PER_CALL).unwrap_or(rest);
            let count = write_once(&self.0, now, at)?;
            at = at.saturating_add(count as u64);
            IoSlice::advance_slices(&mut rest, count);
        }
        Ok(())
    }
}

/// One `pwritev`; an error if it writes nothing although there is something to write.
fn write_once(file: &File, slices: &[IoSlice<'_>], position: u64) -> io::Result<usize> {
    loop {
        match rustix::io::pwritev(file, slices, position) {
            Ok(0) if slices.iter().any(|slice| !slice.is_empty()) => {
                return Err(io::ErrorKind::WriteZero.into());
            }
            Ok(count) => return Ok(count),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vectored_write_of_more_slices_than_one_call_takes_lands_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk.open(&dir.path().join("f"), OpenOptions::CREATE).unwrap();
        let parts: Vec<[u8; 2]> = (0..3000u16).map(u16::to_be_bytes).collect();
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        file.write_vectored_at(&slices, 3).unwrap();
        let mut read = vec![0; 6000];
        file.read_exact_at(&mut read, 3).unwrap();
        assert_eq!(read, parts.concat());
        assert_eq!(file.len().unwrap(), 6003);
        file.write_vectored_at(&[], 0).unwrap();
    }

    #[test]
    fn a_read_past_the_end_is_short_and_an_exact_one_fails() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk.open(&dir.path().join("f"), OpenOptions::CREATE).unwrap();
        file.write_at(b"abc", 0).unwrap();
        let mut buf = [0; 8];
        assert_eq!(file.read_at(&mut buf, 1).unwrap(), 2);
        assert_eq!(file.read_at(&mut buf, 9).unwrap(), 0);
        assert_eq!(file.read_exact_at(&mut buf, 0).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_lock_has_one_holder_in_this_process_and_can_be_taken_again_after_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let lock = RealDisk.try_lock(&path).unwrap();
        assert!(lock.is_some());
        assert!(RealDisk.try_lock(&path).unwrap().is_none());
        // The refused attempt opened and closed nothing, so another process is still kept out.
        assert!(!another_process_can_lock(&path));
        drop(lock);
        assert!(another_process_can_lock(&path));
        assert!(RealDisk.try_lock(&path).unwrap().is_some());
    }

    /// Asks for the same fcntl lock from a child process.
    fn another_process_can_lock(path: &Path) -> bool {
        let script = "import fcntl,sys\nf=open(sys.argv[1],'r+')\n\
                      try: fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB)\nexcept OSError: sys.exit(7)";
        let status = std::process::Command::new("python3").arg("-c").arg(script).arg(path).status().unwrap();
        assert!(matches!(status.code(), Some(0 | 7)), "python3 is needed for this test: {status}");
        status.code() == Some(0)
    }

    #[test]
    fn the_time_of_the_last_change_can_be_set_and_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        RealDisk.open(&path, OpenOptions::CREATE).unwrap();
        for time in [1_700_000_000_123, 0, -1500] {
            RealDisk.set_modified(&path, time).unwrap();
            assert_eq!(RealDisk.metadata(&path).unwrap().modified_ms, time);
        }
    }

    #[test]
    fn room_and_names_of_a_directory_can_be_asked() {
        let dir = tempfile::tempdir().unwrap();
        RealDisk.create_dir_all(&dir.path().join("b/c")).unwrap();
        RealDisk.open(&dir.path().join("a"), OpenOptions::CREATE).unwrap();
        let names = RealDisk.list_dir(dir.path()).unwrap();
        assert_eq!(
            names,
            [DirEntry { name: "a".into(), is_dir: false }, DirEntry { name: "b".into(), is_dir: true },]
        );
        let space = RealDisk.space(dir.path()).unwrap();
        assert!(space.total >= space.usable && space.usable > 0);
        assert!(!RealDisk.exists(&dir.path().join("none")).unwrap());
        RealDisk.sync_dir(dir.path()).unwrap();
    }
}
