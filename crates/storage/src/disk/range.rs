//! A piece of a file on its way to a socket.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::DiskFile;

/// `len` bytes of an open file from `position`. Holds its handle open, so that the bytes can be sent even
/// after the file was closed by the cache of handles, renamed or removed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// The open file.
    pub file: Arc<dyn DiskFile>,
    /// Where the range starts, in bytes from the start of the file.
    pub position: u64,
    /// How many bytes it has.
    pub len: usize,
}

impl FileRange {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the range has no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads into `buf` from byte `at` of the range (not of the file); less than asked only at the end of
    /// the range, or of the file if that was cut meanwhile.
    pub fn read_at(&self, buf: &mut [u8], at: usize) -> io::Result<usize> {
        let wanted = buf.len().min(self.len.saturating_sub(at));
        let Some(buf) = buf.get_mut(..wanted) else { return Ok(0) };
        self.file.read_at(buf, self.position.saturating_add(at as u64))
    }

    /// Reads the whole range; shorter only if the file was cut meanwhile.
    pub fn to_vec(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.len];
        let read = self.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The descriptor of the file for `sendfile`, if the disk has descriptors.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_fd()
    }

    /// The first `len` bytes of the range, or all of it if it is shorter.
    #[must_use]
    pub fn prefix(&self, len: usize) -> Self {
        Self { len: self.len.min(len), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disk::crash::CrashDisk;
    use crate::disk::{Disk, OpenOptions};

    #[test]
    fn a_range_reads_its_own_bytes_and_no_others() {
        let disk = CrashDisk::new();
        let file = disk.open(Path::new("/f"), OpenOptions::CREATE).unwrap();
        file.write_at(b"0123456789", 0).unwrap();
        let range = FileRange { file, position: 2, len: 5 };
        assert_eq!(range.to_vec().unwrap(), b"23456");
        let mut buf = [0; 10];
        assert_eq!(range.read_at(&mut buf, 3).unwrap(), 2);
        assert_eq!(&buf[..2], b"56");
        assert_eq!(range.read_at(&mut buf, 9).unwrap(), 0);
        assert_eq!(range.prefix(2).to_vec().unwrap(), b"23");
        assert_eq!(range.prefix(20).len(), 5);
    }

    #[test]
    fn a_range_can_be_read_after_its_file_was_removed() {
        let disk = CrashDisk::new();
        let file = disk.open(Path::new("/f"), OpenOptions::CREATE).unwrap();
        file.write_at(b"data", 0).unwrap();
        let range = FileRange { file, position: 0, len: 4 };
        disk.remove_file(Path::new("/f")).unwrap();
        assert_eq!(range.to_vec().unwrap(), b"data");
    }
}
