//! A log on a disk that forgets, and short ways to write and read it.

mod append;
mod compact;
mod compact_crash;
mod compact_model;
mod cost;
mod crash;
mod flush;
mod follow;
mod load;
mod model;
mod overflow;
mod producers;
mod read;
mod retention;
mod roll;
mod timestamps;
mod truncate;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use kernel::producer::AppendOrigin;
use wire::batch::control::{EndTxnMarker, MarkerType};
use wire::batch::{Batch, BatchBuilder, Compression, batches};
use wire::types::{LeaderEpoch, TopicId};

use super::*;
use crate::boot::Boot;
use crate::disk::Disk;
use crate::disk::crash::{CrashDisk, CrashMode, Fault, Operation};
use crate::partition_log::load::OpenLog;
use wire::types::Now;

const DIR: &str = "/logs/t-0";
const EXPIRATION: Millis = Millis(86_400_000);

/// A disk and what a log directory keeps beside the logs.
struct Bench {
    disk: CrashDisk,
    config: LogConfig,
    background: Arc<Background>,
    health: Arc<DirHealth>,
    now: Now,
    /// Whether the machine has been up since the process before.
    boot: Boot,
    /// The checkpoints.
    recovery_point: Offset,
    log_start: Offset,
    high_watermark: Offset,
    first_dirty: Option<Offset>,
}

impl Bench {
    fn new() -> Self {
        Self::with(small_segments())
    }

    fn with(config: LogConfig) -> Self {
        let disk = CrashDisk::new();
        disk.create_dir_all(Path::new("/logs")).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        Self::on(disk, config)
    }

    fn on(disk: CrashDisk, config: LogConfig) -> Self {
        Self {
            disk,
            config,
            background: Background::new(Box::new(|| {})),
            health: DirHealth::new("/logs", Box::new(|_| {})),
            now: Now { mono_ms: 1_000, wall_ms: 1_000_000 },
            boot: Boot::Unknown,
            recovery_point: Offset(0),
            log_start: Offset(0),
            high_watermark: Offset(0),
            first_dirty: None,
        }
    }

    /// The same on a copy of the disk, for a process that knows this of the machine.
    fn after_as(&self, boot: Boot) -> Self {
        Self { boot, ..self.after(CrashMode::ProcessKill) }
    }

    /// The same on the disk as the next process finds it.
    fn after(&self, mode: CrashMode) -> Self {
        let disk = self.disk.crash(mode);
        Self {
            recovery_point: self.recovery_point,
            log_start: self.log_start,
            high_watermark: self.high_watermark,
            first_dirty: self.first_dirty,
            now: self.now,
            boot: if mode == CrashMode::ProcessKill { Boot::Same } else { Boot::Another },
            ..Self::on(disk, self.config.clone())
        }
    }

    fn context(&self) -> LogContext {
        LogContext {
            files: FileCache::new(Arc::new(self.disk.clone()), 100),
            health: self.health.clone(),
            background: self.background.clone(),
        }
    }

    fn create(&self) -> Arc<PartitionLog> {
        let config = Arc::new(self.config.clone());
        let partition = TopicPartition::new("t", 0);
        PartitionLog::create(&self.context(), partition, Path::new(DIR), config, TopicId([7; 16]), self.now)
            .unwrap()
    }

    fn try_open(&self, clean: bool) -> Result<Arc<PartitionLog>, LoadError> {
        let args = OpenLog {
            partition: TopicPartition::new("t", 0),
            dir: PathBuf::from(DIR),
            config: Arc::new(self.config.clone()),
            clean,
            boot: self.boot,
            recovery_point: self.recovery_point,
            log_start: self.log_start,
            high_watermark: self.high_watermark,
            first_dirty: self.first_dirty,
            producer_expiration: EXPIRATION,
            now: self.now,
        };
        PartitionLog::open(&self.context(), args)
    }

    fn open(&self, clean: bool) -> Arc<PartitionLog> {
        self.try_open(clean).unwrap()
    }

    /// Notes what the checkpoint files of the log directory would say.
    fn checkpoint(&mut self, log: &PartitionLog) {
        let positions = log.positions();
        self.recovery_point = positions.recovery_point;
        self.log_start = positions.log_start;
        self.high_watermark = positions.high_watermark;
    }

    /// Closes the log in order and opens it again.
    fn reopen_clean(&mut self, log: Arc<PartitionLog>) -> Arc<PartitionLog> {
        log.close().unwrap();
        self.checkpoint(&log);
        drop(log);
        self.open(true)
    }

    fn run_jobs(&self) {
        while let Some(job) = self.background.next_job(self.now) {
            job.run();
        }
    }

    fn files(&self) -> Vec<String> {
        self.disk.list_dir(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name).collect()
    }

    fn fail(&self, operation: Operation, path: &str, skip: usize) {
        let kind = std::io::ErrorKind::Other;
        self.disk.fail(Fault { operation, path_contains: path.into(), skip, times: 1, kind });
    }
}

/// Segments of a kilobyte, an index entry for nearly every batch.
fn small_segments() -> LogConfig {
    LogConfig {
        segment_bytes: 1000,
        index_interval_bytes: 100,
        segment_index_bytes: 1200,
        ..LogConfig::default()
    }
}

/// `count` records with values of `size` bytes, stamped 1000, 1001 ….
fn records(count: usize, size: usize) -> Bytes {
    records_at(1000, count, size)
}

fn records_at(timestamp: i64, count: usize, size: usize) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    for at in 0..count {
        builder.append(Millis(timestamp + at as i64), Some(b"k"), Some(&vec![at as u8; size]));
    }
    builder.build().unwrap().bytes
}

/// Records of a producer.
fn produced(id: i64, epoch: i16, sequence: i32, count: usize) -> Bytes {
    producer_records(id, epoch, sequence, count, false)
}

fn transactional(id: i64, epoch: i16, sequence: i32, count: usize) -> Bytes {
    producer_records(id, epoch, sequence, count, true)
}

fn producer_records(id: i64, epoch: i16, sequence: i32, count: usize, transactional: bool) -> Bytes {
    let mut builder =
        BatchBuilder::new(Compression::None).producer(id, epoch, sequence).transactional(transactional);
    for at in 0..count {
        builder.append(Millis(5000 + at as i64), None, Some(b"value"));
    }
    builder.build().unwrap().bytes
}

fn marker(id: i64, epoch: i16, aborted: bool) -> Bytes {
    let marker_type = if aborted { MarkerType::Abort } else { MarkerType::Commit };
    EndTxnMarker { marker_type, coordinator_epoch: 0 }.to_batch(id, epoch, Millis(6000)).unwrap().bytes
}

trait Shortcuts {
    fn put(&self, records: Bytes) -> AppendInfo;
    fn try_put(&self, records: Bytes) -> Result<AppendInfo, AppendError>;
    fn put_marker(&self, marker: Bytes);
    fn end(&self) -> i64;
    fn all(&self) -> Vec<Batch>;
    fn read_from(&self, from: i64, max_bytes: usize, bound: ReadBound) -> Vec<Batch>;
    fn replicate(&self);
}

impl Shortcuts for Arc<PartitionLog> {
    fn put(&self, records: Bytes) -> AppendInfo {
        self.try_put(records).unwrap()
    }

    fn try_put(&self, records: Bytes) -> Result<AppendInfo, AppendError> {
        self.append_as_leader(records, AppendOrigin::Client, LeaderEpoch(3), now())
    }

    fn put_marker(&self, marker: Bytes) {
        self.append_as_leader(marker, AppendOrigin::Coordinator, LeaderEpoch(3), now()).unwrap();
    }

    fn end(&self) -> i64 {
        self.positions().log_end.0
    }

    /// All batches, read one read after the other from the log start to the log end.
    fn all(&self) -> Vec<Batch> {
        let mut found: Vec<Batch> = Vec::new();
        let mut at = self.positions().log_start.0;
        while at < self.end() {
            let some = self.read_from(at, 500, ReadBound::LogEnd);
            let Some(last) = some.last() else { break };
            at = last.header.next_offset().0;
            found.extend(some);
        }
        found
    }

    fn read_from(&self, from: i64, max_bytes: usize, bound: ReadBound) -> Vec<Batch> {
        let read = self.read(Offset(from), max_bytes, true, bound).unwrap();
        let bytes = read.range.map_or_else(Vec::new, |range| range.to_vec().unwrap());
        let found: Vec<Batch> = batches(bytes.into()).collect::<Result<_, _>>().unwrap();
        found.iter().for_each(|batch| batch.verify_crc().unwrap());
        found
    }

    fn replicate(&self) {
        self.advance_high_watermark(self.positions().log_end);
    }
}

fn now() -> Now {
    Now { mono_ms: 1_000, wall_ms: 1_000_000 }
}

fn offsets(batches: &[Batch]) -> Vec<(i64, i64)> {
    batches.iter().map(|batch| (batch.header.base_offset.0, batch.header.last_offset().0)).collect()
}

fn segment_bases(log: &PartitionLog) -> Vec<i64> {
    log.segments().iter().map(|segment| segment.base().0).collect()
}

fn epochs(log: &PartitionLog) -> Vec<(i32, i64)> {
    read_lock(&log.epochs).entries().iter().map(|entry| (entry.epoch.0, entry.start.0)).collect()
}
