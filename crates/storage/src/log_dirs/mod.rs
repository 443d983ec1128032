//! The log directories of a broker (`log.dirs`) and all logs in them.
//!
//! Life of a directory: opened and locked, identified by its `meta.properties`, loaded (the mark of a clean
//! shutdown is taken away first), used, closed. The first IO error takes it offline until the next start; the
//! other directories go on. Its checkpoints are written whole and atomically.

mod checkpoints;
mod cleaning;
mod describe;
mod identity;
mod load;
mod logs;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use wire::types::{BrokerEpoch, BrokerId, Millis, Now, TopicPartition};

pub use crate::partition_log::LoadError;
pub use cleaning::CleaningReport;
pub use describe::{LogDirReport, LogReport};
pub use load::{ConfigOf, LoadReport};
pub use logs::{CreateError, NewLog};

use crate::boot::Boot;
use crate::checkpoints::Offsets;
use crate::clean_shutdown::write_clean_shutdown;
use crate::dir_health::{DirHealth, StorageError};
use crate::disk::handles::FileCache;
use crate::disk::{Disk, RealDisk};
use crate::lock::{DirLock, LockError};
use crate::meta_properties::MetaProperties;
use crate::names::BadDirName;
use crate::partition_log::{Background, LogContext, PartitionLog};
use crate::sync::{lock, read};
use checkpoints::{Checkpoint, Written};

/// How the directories are used.
pub struct LogDirsOptions {
    /// The disk; the machine's by default.
    pub disk: Arc<dyn Disk>,
    /// The most files that are kept open.
    pub max_open_files: usize,
    /// Called when there is background work; by default nobody is.
    pub wake_up: Box<dyn Fn() + Send + Sync>,
    /// Called once for each directory that goes offline, perhaps under the lock of a log: it may only take
    /// note. By default nobody is.
    pub on_offline: Arc<dyn Fn(&StorageError) + Send + Sync>,
    /// Whether the machine has been up since the directories were used last; by default that is not known.
    pub boot: Boot,
    /// `producer.id.expiration.ms`.
    pub producer_expiration: Millis,
    /// `log.segment.delete.delay.ms`: how long the directory of a deleted replica stays.
    pub delete_delay: Millis,
}

impl Default for LogDirsOptions {
    fn default() -> Self {
        Self {
            disk: Arc::new(RealDisk),
            max_open_files: 8192,
            wake_up: Box::new(|| {}),
            on_offline: Arc::new(|_| {}),
            boot: Boot::Unknown,
            producer_expiration: Millis(86_400_000),
            delete_delay: Millis(60_000),
        }
    }
}

impl fmt::Debug for LogDirsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogDirsOptions").field("disk", &self.disk).finish_non_exhaustive()
    }
}

/// How many logs of a directory are closed at a time at the least. Closing waits for syncs, and those that wait
/// together share one commit of the file system.
const CLOSING_THREADS: usize = 8;

/// Why the log directories cannot be used, so that the broker must not start.
#[derive(Debug, thiserror::Error)]
pub enum LogDirsError {
    /// Another broker uses a directory.
    #[error(transparent)]
    InUse(LockError),
    /// No directory is online.
    #[error("none of the log directories can be used; the first one: {0}")]
    AllOffline(StorageError),
    /// No directory, or one twice.
    #[error("log directories must be given, each once: {0}")]
    Configuration(String),
    /// `meta.properties` of a directory cannot be used.
    #[error("log directory {}: {error}", dir.display())]
    MetaProperties {
        /// The directory.
        dir: PathBuf,
        /// What is wrong.
        error: crate::meta_properties::MetaPropertiesError,
    },
    /// The directory belongs to another broker or cluster than the other directories, or than this broker.
    #[error("log directory {} belongs to {found}, not to {expected}", dir.display())]
    Foreign {
        /// The directory.
        dir: PathBuf,
        /// Whose it is.
        found: String,
        /// Whose it should be.
        expected: String,
    },
    /// A directory has a name that no broker gives.
    #[error("log directory {}: {error}", dir.display())]
    BadName {
        /// The log directory.
        dir: PathBuf,
        /// The name.
        error: BadDirName,
    },
    /// A partition lies in two directories.
    #[error("partition {partition} lies both in {} and in {}; remove one of them", first.display(), second.display())]
    Duplicate {
        /// The partition.
        partition: TopicPartition,
        /// One directory.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
}

/// One log directory.
#[derive(Debug)]
pub(crate) struct LogDir {
    health: Arc<DirHealth>,
    /// Held while the broker uses the directory.
    lock: Mutex<Option<DirLock>>,
    meta: Mutex<Option<MetaProperties>>,
    /// How many logs are in it.
    count: AtomicUsize,
    written: Written,
    /// Whether it may be marked as closed in order: it was so at the start, or all its logs were loaded.
    may_be_clean: AtomicBool,
}

impl LogDir {
    fn path(&self) -> &Path {
        self.health.dir()
    }
}

/// All log directories and their logs; see the module's text.
pub struct LogDirs {
    disk: Arc<dyn Disk>,
    files: Arc<FileCache>,
    background: Arc<Background>,
    dirs: Vec<Arc<LogDir>>,
    logs: RwLock<logs::Logs>,
    /// Held while a log is created or deleted.
    changing: Mutex<()>,
    /// The high watermarks of partitions whose directories were gone at the start, until they are made anew.
    gone: Mutex<Offsets>,
    cleaning: cleaning::Cleaning,
    boot: Boot,
    producer_expiration: Millis,
    delete_delay: Millis,
}

impl fmt::Debug for LogDirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogDirs").field("dirs", &self.dirs).finish_non_exhaustive()
    }
}

impl LogDirs {
    /// Creates the directories that are absent, locks all, and reads whose they are.
    pub fn open(paths: &[PathBuf], options: LogDirsOptions) -> Result<Self, LogDirsError> {
        for (at, path) in paths.iter().enumerate() {
            if paths.iter().skip(at.saturating_add(1)).any(|other| other == path) {
                return Err(LogDirsError::Configuration(format!("{} is given twice", path.display())));
            }
        }
        let dirs = paths.iter().map(|path| open_dir(&*options.disk, path, &options.on_offline));
        let dirs = Self {
            files: FileCache::new(options.disk.clone(), options.max_open_files),
            disk: options.disk.clone(),
            background: Background::new(options.wake_up),
            dirs: dirs.collect::<Result<_, _>>()?,
            logs: RwLock::default(),
            changing: Mutex::new(()),
            gone: Mutex::default(),
            cleaning: cleaning::Cleaning::default(),
            boot: options.boot,
            producer_expiration: options.producer_expiration,
            delete_delay: options.delete_delay,
        };
        dirs.check_some_online()?;
        dirs.check_agreement()?;
        Ok(dirs)
    }

    fn check_some_online(&self) -> Result<(), LogDirsError> {
        let failures: Vec<_> = self.dirs.iter().map(|dir| dir.health.check()).collect();
        match failures.into_iter().collect::<Result<Vec<()>, _>>() {
            Ok(online) if online.is_empty() => Err(LogDirsError::Configuration("none is given".into())),
            Err(failure) if self.offline_count() == self.dirs.len() => Err(LogDirsError::AllOffline(failure)),
            _ => Ok(()),
        }
    }

    /// The directories that are online.
    pub(crate) fn online_dirs(&self) -> Vec<Arc<LogDir>> {
        self.dirs.iter().filter(|dir| dir.health.is_online()).cloned().collect()
    }

    /// The state of each directory, in the order of `log.dirs`.
    pub fn healths(&self) -> Vec<Arc<DirHealth>> {
        self.dirs.iter().map(|dir| dir.health.clone()).collect()
    }

    /// How many directories are offline.
    pub fn offline_count(&self) -> usize {
        self.dirs.iter().filter(|dir| !dir.health.is_online()).count()
    }

    /// The work that waits: flushes of rolled segments, and removals.
    pub fn background(&self) -> &Arc<Background> {
        &self.background
    }

    /// How many files are open.
    pub fn open_files(&self) -> usize {
        self.files.open_count()
    }

    fn context(&self, dir: &LogDir) -> LogContext {
        LogContext {
            files: self.files.clone(),
            health: dir.health.clone(),
            background: self.background.clone(),
        }
    }

    /// Closes all logs, writes the checkpoints, and marks each directory as closed in order if all went well;
    /// then gives the locks up. At least `threads` logs of a directory are closed at a time.
    pub fn shut_down(&self, threads: usize, broker_epoch: BrokerEpoch) {
        let _one = lock(&self.changing);
        let threads = threads.max(CLOSING_THREADS);
        for dir in self.online_dirs() {
            let logs = self.logs_of(&dir);
            let closed = load::in_parallel(&logs, threads, |log| log.close().is_ok());
            // An error is kept by the health of the directory, which has logged it.
            let all = [Checkpoint::RecoveryPoint, Checkpoint::LogStart, Checkpoint::HighWatermark];
            let written = all.map(|checkpoint| self.checkpoint(&dir, checkpoint).is_ok());
            let well = closed.into_iter().chain(written).all(|ok| ok);
            if well && dir.may_be_clean.load(Ordering::Acquire) {
                let marked = write_clean_shutdown(&*self.disk, dir.path(), broker_epoch);
                drop(dir.health.guard("mark the clean shutdown", marked));
            }
        }
        for dir in &self.dirs {
            lock(&dir.lock).take();
        }
    }

    /// Removes old segments of all logs; due every `log.retention.check.interval.ms`.
    pub fn delete_old_segments(&self, now: Now) {
        self.delete_old_segments_where(now, |_| true);
    }

    /// Asks for a flush of all logs that `flush.ms` makes due; checked every
    /// `log.flush.scheduler.interval.ms`.
    pub fn flush_due(&self, now: Now) {
        for log in self.all() {
            log.request_flush_if_due(now);
        }
    }

    /// All logs, by partition.
    pub fn all(&self) -> Vec<Arc<PartitionLog>> {
        read(&self.logs).by_partition.values().map(|entry| entry.log.clone()).collect()
    }
}

fn open_dir(
    disk: &dyn Disk,
    path: &Path,
    on_offline: &Arc<dyn Fn(&StorageError) + Send + Sync>,
) -> Result<Arc<LogDir>, LogDirsError> {
    let told = on_offline.clone();
    let health = DirHealth::new(path, Box::new(move |failure| told(failure)));
    let dir = LogDir {
        health,
        lock: Mutex::new(None),
        meta: Mutex::new(None),
        count: AtomicUsize::new(0),
        written: Written::default(),
        may_be_clean: AtomicBool::new(false),
    };
    if dir.health.guard("create the log directory", create_dir(disk, path)).is_err() {
        return Ok(Arc::new(dir));
    }
    match DirLock::acquire(disk, path) {
        Ok(held) => *lock(&dir.lock) = Some(held),
        Err(LockError::Io { error, .. }) => drop(dir.health.fail("lock the log directory", &error)),
        Err(in_use) => return Err(LogDirsError::InUse(in_use)),
    }
    dir.read_meta(disk)?;
    Ok(Arc::new(dir))
}

fn create_dir(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    if disk.exists(path)? {
        return Ok(());
    }
    disk.create_dir_all(path)?;
    path.parent().map_or(Ok(()), |parent| disk.sync_dir(parent))
}

/// Whose directories these are, as far as it is known.
impl LogDirs {
    /// The cluster id that the directories tell.
    pub fn cluster_id(&self) -> Option<String> {
        self.dirs.iter().find_map(|dir| lock(&dir.meta).as_ref()?.cluster_id.clone())
    }

    /// The broker id that the directories tell.
    pub fn broker_id(&self) -> Option<BrokerId> {
        self.dirs.iter().find_map(|dir| lock(&dir.meta).as_ref()?.broker_id)
    }
}
