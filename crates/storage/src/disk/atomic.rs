//! Small files that are replaced whole: written beside their place, made durable, renamed into it.
//!
//! After a crash the file has its old or its new content, never a mixture, if it was written as
//! [`Durability::Synced`].

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::{Disk, OpenOptions};

/// What a finished write means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Content and name are durable.
    Synced,
    /// A killed process keeps the new content, a lost power may leave the old content, the new one, or an
    /// empty or torn file, until [`sync_written`] was called. For callers that write many files and sync
    /// them together, or that can do without the file.
    Deferred,
}

/// The name under which the new content of `path` is prepared: `<path>.tmp`.
pub fn temporary_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".tmp");
    PathBuf::from(name)
}

/// Replaces the content of `path` as a whole.
pub fn write_atomically(
    disk: &dyn Disk,
    path: &Path,
    content: &[u8],
    durability: Durability,
) -> io::Result<()> {
    let temporary = temporary_path(path);
    let file = disk.open(&temporary, OpenOptions::REPLACE)?;
    file.write_at(content, 0)?;
    if durability == Durability::Synced {
        file.sync_all()?;
    }
    drop(file);
    disk.rename(&temporary, path)?;
    match (durability, path.parent()) {
        (Durability::Synced, Some(dir)) => disk.sync_dir(dir),
        _ => Ok(()),
    }
}

/// Writes a small file that is known not to exist, in its place: one name less to make than [`write_atomically`].
/// As little durable as [`Durability::Deferred`], and a killed process may leave it empty.
pub fn write_new(disk: &dyn Disk, path: &Path, content: &[u8]) -> io::Result<()> {
    disk.open(path, OpenOptions::REPLACE)?.write_at(content, 0)
}

/// Makes a file durable that was written as [`Durability::Deferred`], with its name.
/// When several files of one directory wait, `sync_data` of each and one `sync_dir` are enough.
pub fn sync_written(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    disk.open(path, OpenOptions::WRITE)?.sync_all()?;
    match path.parent() {
        Some(dir) => disk.sync_dir(dir),
        None => Ok(()),
    }
}

/// The whole content of a file of at most `limit` bytes; `None` if there is no such file.
/// A longer file is an error of kind [`io::ErrorKind::InvalidData`].
pub fn read_file(disk: &dyn Disk, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(path, OpenOptions::READ) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let len = file.len()?;
    if len > limit {
        let reason = format!("{} has {len} bytes, more than the {limit} it may have", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    let mut content = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    let read = file.read_at(&mut content, 0)?;
    content.truncate(read);
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::crash::{CrashDisk, CrashMode};

    const PATH: &str = "/dir/file";

    fn disk_with(content: &[u8]) -> CrashDisk {
        let disk = CrashDisk::new();
        disk.create_dir_all(Path::new("/dir")).unwrap();
        write_atomically(&disk, Path::new(PATH), content, Durability::Synced).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk
    }

    /// apache/kafka#9621.
    #[test]
    fn a_crash_at_any_operation_leaves_the_old_or_the_new_content() {
        for seed in 0..40 {
            for at in 0.. {
                let disk = disk_with(b"old content");
                disk.crash_at(at);
                let done = write_atomically(&disk, Path::new(PATH), b"the new content", Durability::Synced);
                let after = disk.crash(CrashMode::PowerLoss { seed });
                let found = read_file(&after, Path::new(PATH), 100).unwrap().unwrap();
                if done.is_ok() {
                    assert_eq!(found, b"the new content");
                    break;
                }
                assert!(found == b"old content" || found == b"the new content", "{found:?}");
            }
        }
    }

    #[test]
    fn a_deferred_write_is_durable_after_its_sync() {
        let disk = disk_with(b"old");
        write_atomically(&disk, Path::new(PATH), b"new", Durability::Deferred).unwrap();
        let lost = disk.crash(CrashMode::LoseUnsynced);
        assert_eq!(read_file(&lost, Path::new(PATH), 9).unwrap().unwrap(), b"old");
        write_atomically(&lost, Path::new(PATH), b"new", Durability::Deferred).unwrap();
        sync_written(&lost, Path::new(PATH)).unwrap();
        let kept = lost.crash(CrashMode::LoseUnsynced);
        assert_eq!(read_file(&kept, Path::new(PATH), 9).unwrap().unwrap(), b"new");
    }

    #[test]
    fn a_file_beyond_the_limit_is_refused_and_an_absent_one_is_none() {
        let disk = disk_with(b"12345");
        assert_eq!(read_file(&disk, Path::new(PATH), 5).unwrap().unwrap(), b"12345");
        let error = read_file(&disk, Path::new(PATH), 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(read_file(&disk, Path::new("/dir/none"), 4).unwrap(), None);
    }
}
