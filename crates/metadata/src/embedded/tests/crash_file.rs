//! A redb backend in memory that knows what a crash may take back: everything since the last sync, in any part.

use redb::StorageBackend;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A write that no sync has covered yet.
#[derive(Clone, Debug)]
enum Pending {
    Bytes(u64, Vec<u8>),
    Length(u64),
}

#[derive(Default)]
struct State {
    durable: Vec<u8>,
    current: Vec<u8>,
    pending: Vec<Pending>,
    writes_until_failure: Option<usize>,
    syncs: usize,
    on_sync: Option<Box<dyn Fn() + Send>>,
}

#[derive(Clone, Default)]
pub(super) struct CrashFile(Arc<Mutex<State>>);

impl std::fmt::Debug for CrashFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CrashFile")
    }
}

impl CrashFile {
    pub(super) fn with_image(image: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(State { durable: image.clone(), current: image, ..State::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("not poisoned")
    }

    /// After `count` more writes, changes of length and syncs everything fails.
    pub(super) fn fail_after(&self, count: usize) {
        self.lock().writes_until_failure = Some(count);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.lock().writes_until_failure == Some(0)
    }

    pub(super) fn syncs(&self) -> usize {
        self.lock().syncs
    }

    pub(super) fn on_sync(&self, call: impl Fn() + Send + 'static) {
        self.lock().on_sync = Some(Box::new(call));
    }

    /// What a crash leaves. If only the process ended it is everything; else of the writes that no sync covered some are
    /// lost, some are torn, and they reached the disk in any order.
    pub(super) fn crash(&self, random: &mut fastrand::Rng) -> Vec<u8> {
        let state = self.lock();
        if random.u8(..3) == 0 {
            return state.current.clone();
        }
        let mut image = state.durable.clone();
        let mut pending = state.pending.clone();
        random.shuffle(&mut pending);
        for write in pending {
            match write {
                _ if random.u8(..3) == 0 => {}
                Pending::Bytes(at, mut bytes) => {
                    if random.bool() {
                        bytes.truncate(random.usize(..=bytes.len()));
                    }
                    overwrite(&mut image, at, &bytes);
                }
                Pending::Length(length) => image.resize(image.len().max(as_index(length)), 0),
            }
        }
        image
    }
}

impl State {
    fn count_write(&mut self) -> io::Result<()> {
        match &mut self.writes_until_failure {
            Some(0) => Err(io::Error::other("the disk is gone")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn as_index(at: u64) -> usize {
    usize::try_from(at).expect("small files")
}

fn overwrite(image: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let at = as_index(at);
    let end = at + bytes.len();
    image.resize(image.len().max(end), 0);
    image[at..end].copy_from_slice(bytes);
}

impl StorageBackend for CrashFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.lock();
        let at = as_index(offset);
        let bytes = state.current.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.count_write()?;
        state.current.resize(as_index(len), 0);
        state.pending.push(Pending::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let call = self.lock().on_sync.take();
        if let Some(call) = call {
            call();
        }
        let mut state = self.lock();
        state.count_write()?;
        state.syncs += 1;
        state.durable = state.current.clone();
        state.pending.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.count_write()?;
        overwrite(&mut state.current, offset, data);
        state.pending.push(Pending::Bytes(offset, data.to_vec()));
        Ok(())
    }
}
