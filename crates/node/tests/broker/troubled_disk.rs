//! A disk that stalls, cannot be read for a while, or panics, when a test says so.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use storage::disk::{DirEntry, Disk, DiskFile, DiskLock, Metadata, OpenOptions, RealDisk, Space};

/// Reads of more bytes than that are of records, not of where they lie.
const MOST_LOOKUP_BYTES: usize = 4 << 10;

/// What troubles the disk: a stall that begins and ends when the test says, reads that fail, a write that panics.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    stands: Mutex<bool>,
    over: Condvar,
    pub(crate) caught: AtomicBool,
    failing_reads: AtomicUsize,
    panics: AtomicBool,
}

impl Trouble {
    pub(crate) fn begin(&self) {
        *self.stands.lock().unwrap() = true;
    }

    pub(crate) fn end(&self) {
        *self.stands.lock().unwrap() = false;
        self.over.notify_all();
    }

    /// So many reads of records are going to fail for want of memory.
    pub(crate) fn fail_reads(&self, count: usize) {
        self.failing_reads.store(count, Ordering::SeqCst);
    }

    /// The next write panics, and writes nothing.
    pub(crate) fn panic_in_next_write(&self) {
        self.panics.store(true, Ordering::SeqCst);
    }

    fn read(&self, bytes: usize) -> io::Result<()> {
        let one_less = |left: usize| left.checked_sub(1).filter(|_| bytes > MOST_LOOKUP_BYTES);
        match self.failing_reads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) {
            Ok(_) => Err(io::ErrorKind::OutOfMemory.into()),
            Err(_) => Ok(()),
        }
    }

    fn pass(&self) {
        let mut stands = self.stands.lock().unwrap();
        while *stands {
            self.caught.store(true, Ordering::SeqCst);
            stands = self.over.wait(stands).unwrap();
        }
    }
}

/// The real disk; the trouble is with files under directories of this name, which take no writes during a stall.
#[derive(Debug)]
pub(crate) struct TroubledDisk {
    pub(crate) trouble: Arc<Trouble>,
    pub(crate) name: &'static str,
}

#[derive(Debug)]
struct TroubledFile {
    file: Arc<dyn DiskFile>,
    trouble: Arc<Trouble>,
}

impl Disk for TroubledDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_dir_all(path)
    }

    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn DiskFile>> {
        let file = RealDisk.open(path, options)?;
        let stalls = path.components().any(|it| it.as_os_str() == self.name);
        Ok(if stalls { Arc::new(TroubledFile { file, trouble: self.trouble.clone() }) } else { file })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_dir_all(path)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        RealDisk.list_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_dir(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        RealDisk.metadata(path)
    }

    fn set_modified(&self, path: &Path, modified_ms: i64) -> io::Result<()> {
        RealDisk.set_modified(path, modified_ms)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        RealDisk.space(path)
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        RealDisk.try_lock(path)
    }
}

impl DiskFile for TroubledFile {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        self.trouble.read(buf.len())?;
        self.file.read_at(buf, position)
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        self.trouble.pass();
        assert!(!self.trouble.panics.swap(false, Ordering::SeqCst), "by the test");
        self.file.write_vectored_at(slices, position)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.trouble.pass();
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_fd()
    }
}
