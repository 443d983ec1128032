//! The store of a single process: one [`Tree`] in memory, kept in a file or not at all.
//!
//! A write takes effect in memory when it is submitted and is answered when it is durable; many writes that wait share
//! one durable transaction (group commit). A read sees the tree as it is when it is submitted and is answered after
//! everything that it saw is durable, so nobody acts on what a crash could take back. Ephemerals are never written:
//! they die with the process. Zxids and sequence numbers survive it.

mod committer;
mod core;
mod file;
mod record;
mod session;

#[cfg(test)]
mod tests;

pub use session::EmbeddedSession;

use self::core::Shared;
use crate::store::{EventSink, SessionId, StoreEvent};
use crate::tree::Tree;
use committer::Committer;
use file::FileBackend;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};
use wire::types::Millis;

/// Tells the milliseconds since the Unix epoch.
pub type WallClock = Arc<dyn Fn() -> Millis + Send + Sync>;

/// Why an embedded store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another store of this one, holds the file.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a metadata store or is damaged.
    #[error("{} is not a sound metadata store: {reason}", path.display())]
    Corrupted {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file was written by a later release.
    #[error("{} has format {format}, which this release does not know", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The format it names.
        format: i64,
    },
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The thread of the store cannot be started.
    #[error("cannot start the store's thread: {0}")]
    Thread(std::io::Error),
}

/// Where the tree is kept beside memory.
enum Backend {
    Memory,
    File(FileBackend),
}

/// The embedded store. Dropping it, or [`EmbeddedStore::shutdown`], answers what waits and closes the file.
pub struct EmbeddedStore {
    shared: Arc<Shared>,
    driver: Driver,
}

/// Who delivers answers and events.
enum Driver {
    Thread(Mutex<Option<JoinHandle<()>>>),
    Caller(Arc<Mutex<Committer>>),
}

impl EmbeddedStore {
    /// A store that is empty and forgets everything at the end.
    pub fn open_memory() -> Result<Self, OpenError> {
        Self::start(Tree::new(), Backend::Memory, system_clock())
    }

    /// A store in memory without a thread: nothing is answered but by [`EmbeddedStore::pump`]. For simulations, which
    /// bring their own clock.
    pub fn open_manual(clock: WallClock) -> Self {
        let shared = Arc::new(Shared::new(Tree::new(), clock));
        let committer = Committer::new(shared.clone(), Backend::Memory);
        Self { shared, driver: Driver::Caller(Arc::new(Mutex::new(committer))) }
    }

    /// The store in the file `path`, created if it is missing; its directory exists. Creation is atomic: after a crash
    /// the file is whole or absent.
    pub fn open_file(path: &Path) -> Result<Self, OpenError> {
        let (backend, tree) = FileBackend::open(path)?;
        Self::start(tree, Backend::File(backend), system_clock())
    }

    fn start(tree: Tree, backend: Backend, clock: WallClock) -> Result<Self, OpenError> {
        let shared = Arc::new(Shared::new(tree, clock));
        let committer = Committer::new(shared.clone(), backend);
        let thread = committer.spawn().map_err(OpenError::Thread)?;
        Ok(Self { shared, driver: Driver::Thread(Mutex::new(Some(thread))) })
    }

    /// Begins a session whose events go to `sink`; the first is [`StoreEvent::Connected`].
    pub fn session(&self, sink: EventSink) -> EmbeddedSession {
        let pump = match &self.driver {
            Driver::Thread(_) => None,
            Driver::Caller(committer) => Some(committer.clone()),
        };
        EmbeddedSession::begin(self.shared.clone(), sink, pump)
    }

    /// Ends a session as a cluster does that has not heard of it for too long: its ephemerals vanish and it is told
    /// [`StoreEvent::SessionExpired`].
    pub fn expire(&self, session: SessionId) {
        self.shared.end_session(session, Some(StoreEvent::SessionExpired));
    }

    /// Delivers everything that waits, of a store opened by [`EmbeddedStore::open_manual`]. Returns whether there was
    /// anything. Not to be called from within an answer or an event.
    pub fn pump(&self) -> bool {
        match &self.driver {
            Driver::Thread(_) => false,
            Driver::Caller(committer) => {
                let mut committer = committer.lock().unwrap_or_else(PoisonError::into_inner);
                let mut any = false;
                while committer.run_once() {
                    any = true;
                }
                any
            }
        }
    }

    /// How many requests wait for their answer.
    pub fn waiting(&self) -> usize {
        self.shared.waiting()
    }

    /// A copy of the tree as it is in memory.
    pub fn tree(&self) -> Tree {
        self.shared.tree()
    }

    /// Refuses new requests, answers those that wait, and closes the file.
    pub fn shutdown(&self) {
        self.shared.stop();
        let Driver::Thread(thread) = &self.driver else {
            self.pump();
            return;
        };
        let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the metadata store panicked");
        }
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.shutdown();
    }
}

fn system_clock() -> WallClock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    })
}
