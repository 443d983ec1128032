//! One replica of a partition: segments of batches, the state of its producers, its leader epochs, and the
//! four offsets that everyone else looks at.
//!
//! One writer at a time, under one lock; readers take none of it: they read the published [`Positions`] and the
//! list of segments. No sync happens under the lock: small files are written without one, and every flush
//! syncs them before the recovery point moves, so what lies below the recovery point is durable with its
//! epochs, and what lies above is read again after a crash. IO errors take the log directory offline.
//!
//! Start reading at [`PartitionLog::append_as_leader`] and [`PartitionLog::read`]; loading after a crash is in
//! `load/`.

mod append;
mod background;
mod compact;
mod epoch_file;
mod error;
mod expiry;
mod flush;
mod follow;
mod group;
mod load;
mod loss;
mod positions;
mod read;
mod recall;
mod retention;
mod roll;
mod snapshots;
mod state;
#[cfg(test)]
mod tests;
mod timestamps;
mod topic_id;
mod truncate;

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};

use kernel::producer::ProducerStates;
use wire::types::{Millis, Offset, TopicPartition};

pub use append::{AppendInfo, LeaderAppend};
pub use background::{Background, Job, WakeUp};
pub(crate) use background::{Removal, Removed};
pub(crate) use compact::{CompactionError, CompactionView};
pub use error::{AppendError, LogError, ReadError};
pub use load::{LoadError, OpenLog};
pub use loss::{Loss, LossCause};
pub use positions::Positions;
pub use read::{LogRead, ReadBound};
pub use retention::RetentionReason;
pub use timestamps::TimestampedOffset;

use crate::dir_health::{DirHealth, StorageError};
use crate::disk::handles::FileCache;
use crate::log_config::LogConfig;
use crate::segment::{MAX_SEGMENT_BYTES, Segment, SegmentConfig, SegmentDir, SegmentError};
use crate::sync::{lock, read as read_lock, write as write_lock};
use epoch_file::{EpochFile, SharedEpochs};
use positions::Published;
use snapshots::Snapshots;
use topic_id::TopicIdFile;

/// What the logs of one log directory share.
#[derive(Clone, Debug)]
pub struct LogContext {
    /// The open files of the disk.
    pub files: Arc<FileCache>,
    /// The state of the log directory.
    pub health: Arc<DirHealth>,
    /// Work for later.
    pub background: Arc<Background>,
}

/// A replica of a partition; see the module's text.
pub struct PartitionLog {
    partition: TopicPartition,
    dir: SegmentDir,
    context: LogContext,
    config: RwLock<Arc<LogConfig>>,
    published: Published,
    /// All segments by rising base offset; never empty. The last one is active.
    segments: RwLock<Vec<Arc<Segment>>>,
    writer: Mutex<Writer>,
    /// How many producers there were at the last count.
    producers_counted: AtomicUsize,
    /// The leader epochs, changed by the writer.
    epochs: SharedEpochs,
    /// Held during a flush, so that no flush reports files as durable that another is still syncing.
    flushing: Mutex<()>,
    /// Held while compacted segments take their place, and while segments are removed or cut; before the writer.
    replacing: Mutex<()>,
    compaction: Mutex<compact::Compaction>,
    /// Why this log alone is out of service.
    failure: OnceLock<StorageError>,
    loss: OnceLock<Loss>,
    this: Weak<PartitionLog>,
}

/// What only the holder of the writer lock sees.
#[derive(Debug)]
struct Writer {
    producers: ProducerStates,
    snapshots: Snapshots,
    epochs: EpochFile,
    /// Taken off `segment.ms` for the active segment.
    jitter: Millis,
    /// Up to where a flush in the background is asked for.
    flush_target: Option<Offset>,
    /// When the oldest record above the recovery point was appended, on the monotonic clock.
    unflushed_since: Option<Millis>,
    topic_id: TopicIdFile,
    /// Whether the name of the directory waits for a sync.
    dir_name_unsynced: bool,
    /// Whether the indexes of the active segment have their room for appends.
    active_is_ready: bool,
    /// How often the log was cut; a flush that began before a cut does not move the recovery point.
    truncations: u64,
    closed: bool,
}

impl fmt::Debug for PartitionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionLog")
            .field("partition", &self.partition)
            .field("positions", &self.positions())
            .finish_non_exhaustive()
    }
}

impl PartitionLog {
    /// The partition.
    pub fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    /// The name of the directory, without the log directory it is in.
    pub fn dir_name(&self) -> String {
        let path = self.dir.path.get();
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The health of the log directory that holds the log.
    pub fn health(&self) -> &Arc<DirHealth> {
        &self.context.health
    }

    /// The offsets, all of one moment.
    pub fn positions(&self) -> Positions {
        self.published.get()
    }

    /// The settings.
    pub fn config(&self) -> Arc<LogConfig> {
        read_lock(&self.config).clone()
    }

    /// Replaces the settings. Those of index files and preallocation take effect with the next segment.
    pub fn update_config(&self, config: Arc<LogConfig>) {
        *write_lock(&self.config) = config;
    }

    /// The base offset of the first segment.
    pub fn first_segment_base(&self) -> Offset {
        read_lock(&self.segments).first().map_or(Offset(0), |segment| segment.base())
    }

    /// The number of segments.
    pub fn segment_count(&self) -> usize {
        read_lock(&self.segments).len()
    }

    /// The bytes of all batches.
    pub fn size_bytes(&self) -> u64 {
        read_lock(&self.segments).iter().map(|segment| segment.size()).sum()
    }

    /// Whether the log was closed or its replica deleted.
    pub fn is_closed(&self) -> bool {
        lock(&self.writer).closed
    }

    /// Closes the log without writing anything and gives its directory the name `to`. Ranges that were read
    /// stay readable.
    pub(crate) fn rename_for_deletion(&self, to: &Path) -> Result<(), LogError> {
        let _one = lock(&self.flushing);
        let _whole = lock(&self.replacing);
        self.check()?;
        lock(&self.writer).closed = true;
        let renamed = self.dir.path.rename(&**self.dir.files.disk(), to);
        Ok(self.guard_io("rename the directory of", renamed)?)
    }

    /// All segments at this moment.
    fn segments(&self) -> Vec<Arc<Segment>> {
        read_lock(&self.segments).clone()
    }

    /// The segment that is appended to.
    fn active(&self) -> Option<Arc<Segment>> {
        read_lock(&self.segments).last().cloned()
    }

    /// Fails if the log directory is offline, or this log alone has failed. After a panic in the middle of a change nobody
    /// knows what the log holds until it is loaded again.
    fn check(&self) -> Result<(), StorageError> {
        self.context.health.check()?;
        if self.writer.is_poisoned() && self.failure.get().is_none() {
            return Err(self.out_of_service("change", &"a panic"));
        }
        match self.failure.get() {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    /// Passes a result on; see [`fail`](Self::fail).
    fn guard<T>(&self, operation: &str, result: Result<T, SegmentError>) -> Result<T, StorageError> {
        result.map_err(|error| self.fail(operation, error))
    }

    /// Notes a failure. An error of the disk takes the log directory offline; any other one, such as an index
    /// that contradicts its log, takes only this log out of service until it is loaded again.
    fn fail(&self, operation: &str, error: SegmentError) -> StorageError {
        if error.is_io() {
            let operation = format!("{operation} {}", self.partition);
            return self.context.health.fail(&operation, &std::io::Error::other(error));
        }
        self.out_of_service(operation, &error)
    }

    fn out_of_service(&self, operation: &str, error: &dyn fmt::Display) -> StorageError {
        let operation = format!("{operation} {}", self.partition);
        tracing::error!(
            partition = %self.partition, operation, %error,
            "log fails and is out of service until the broker is restarted"
        );
        let cause = Arc::from(format!("{operation}: {error}"));
        let failure = StorageError { dir: self.context.health.dir().clone(), cause };
        self.failure.get_or_init(|| failure).clone()
    }

    fn guard_io<T>(&self, operation: &str, result: std::io::Result<T>) -> Result<T, StorageError> {
        result.map_err(|error| self.context.health.fail(&format!("{operation} {}", self.partition), &error))
    }
}

/// The part of the settings that a segment needs.
fn segment_config(config: &LogConfig) -> SegmentConfig {
    SegmentConfig {
        index_interval_bytes: u64::from(config.index_interval_bytes),
        max_index_bytes: u64::from(config.segment_index_bytes),
        preallocate_bytes: config.preallocate.then(|| u64::from(config.segment_bytes).min(MAX_SEGMENT_BYTES)),
    }
}

/// A new jitter, in `[0, min(segment.jitter.ms, segment.ms))`.
fn new_jitter(config: &LogConfig) -> Millis {
    let most = config.segment_jitter_ms.0.min(config.segment_ms.0);
    Millis(if most > 0 { fastrand::i64(0..most) } else { 0 })
}
