//! Loading all logs of all directories, each directory with several threads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wire::types::{Now, Offset, TopicPartition};

use super::logs::Entry;
use super::{LogDir, LogDirs, LogDirsError};
use crate::checkpoints::{Offsets, create_if_absent, read_offsets, read_offsets_or_none};
use crate::clean_shutdown::take_clean_shutdown;
use crate::disk::handles::DirPath;
use crate::log_config::LogConfig;
use crate::names::{self, DirKind, DirName, PartitionDir, parse_dir};
use crate::partition_log::{LoadError, Loss, OpenLog, PartitionLog, Removal, Removed};
use crate::sync::{lock, write};

/// Gives the settings of a partition's log.
pub type ConfigOf<'a> = dyn Fn(&TopicPartition) -> Arc<LogConfig> + Sync + 'a;

/// What loading came to.
#[derive(Debug, Default)]
pub struct LoadReport {
    /// How many logs are served.
    pub loaded: usize,
    /// The logs that cannot be served, and why; their directories are untouched.
    pub failed: Vec<(TopicPartition, LoadError)>,
    /// The logs that end below their high watermarks.
    pub lost: Vec<(TopicPartition, Loss)>,
    /// Partitions without a directory that have records by their high watermark.
    pub gone: Vec<(TopicPartition, Offset)>,
}

/// What was found in one directory.
struct Found {
    dir: Arc<LogDir>,
    clean: bool,
    recovery_points: Offsets,
    log_starts: Offsets,
    high_watermarks: Offsets,
    first_dirty: Offsets,
    current: Vec<TopicPartition>,
    /// Partitions whose removal had begun.
    leaving: BTreeSet<TopicPartition>,
}

impl LogDirs {
    /// Loads all logs, `threads` at a time in each directory. Replicas that wait for deletion are queued for it.
    ///
    /// # Errors
    /// If a directory has a name that no broker gives, a partition lies in two places, or no directory is left
    /// online. A log that cannot be served is none: see [`LoadReport::failed`].
    pub fn load(
        &self,
        threads: usize,
        config_of: &ConfigOf<'_>,
        now: Now,
    ) -> Result<LoadReport, LogDirsError> {
        let mut found = Vec::new();
        for dir in self.online_dirs() {
            if let Some(one) = self.examine(&dir, now)? {
                found.push(one);
            }
        }
        check_duplicates(&found)?;
        let mut report = LoadReport::default();
        let parts = in_parallel(&found, found.len(), |one| self.load_dir(one, threads, config_of, now));
        for part in parts {
            report.loaded = report.loaded.saturating_add(part.loaded);
            report.failed.extend(part.failed);
            report.lost.extend(part.lost);
            report.gone.extend(part.gone);
        }
        // One that was moved to another directory is there.
        report.gone.retain(|(partition, _)| self.get(partition).is_none());
        lock(&self.gone).extend(report.gone.iter().cloned());
        self.check_some_online()?;
        Ok(report)
    }

    /// Takes the mark of a clean shutdown away and lists the directory. `None` if it goes offline.
    fn examine(&self, dir: &Arc<LogDir>, now: Now) -> Result<Option<Found>, LogDirsError> {
        let Ok(clean) = dir
            .health
            .guard("remove the mark of a clean shutdown", take_clean_shutdown(&*self.disk, dir.path()))
        else {
            return Ok(None);
        };
        let path = |name: &str| dir.path().join(name);
        let recovery_points = read_offsets_or_none(&*self.disk, &path(names::RECOVERY_POINT_CHECKPOINT));
        let log_starts = read_offsets_or_none(&*self.disk, &path(names::LOG_START_CHECKPOINT));
        let high_watermarks = read_offsets(&*self.disk, &path(names::HIGH_WATERMARK_CHECKPOINT));
        let high_watermarks = high_watermarks.map_err(std::io::Error::other);
        let high_watermarks = dir.health.guard("read the high watermarks", high_watermarks);
        let first_dirty = read_offsets_or_none(&*self.disk, &path(names::CLEANER_CHECKPOINT));
        let listed = dir.health.guard("list the log directory", self.disk.list_dir(dir.path()));
        let cleaner = create_if_absent(&*self.disk, &path(names::CLEANER_CHECKPOINT));
        let cleaner = dir.health.guard("create the cleaner's checkpoint", cleaner);
        let (Ok(high_watermarks), Ok(listed), Ok(())) = (high_watermarks, listed, cleaner) else {
            return Ok(None);
        };
        dir.may_be_clean.store(clean, Ordering::Release);
        let (mut current, mut leaving) = (Vec::new(), BTreeSet::new());
        for entry in listed.into_iter().filter(|entry| entry.is_dir) {
            let parsed = parse_dir(&entry.name)
                .map_err(|error| LogDirsError::BadName { dir: dir.path().to_path_buf(), error })?;
            match parsed {
                DirName::Partition(PartitionDir { partition, kind: DirKind::Current }) => {
                    current.push(partition)
                }
                DirName::Partition(PartitionDir { partition, kind: DirKind::Delete }) => {
                    leaving.insert(partition);
                    self.queue_removal(dir, path(&entry.name), now);
                }
                DirName::Partition(_) | DirName::Foreign => {
                    tracing::warn!(dir = %path(&entry.name).display(), "directory is left as it is");
                }
                DirName::RemoteIndexCache => {}
            }
        }
        let dir = dir.clone();
        Ok(Some(Found {
            dir,
            clean,
            recovery_points,
            log_starts,
            high_watermarks,
            first_dirty,
            current,
            leaving,
        }))
    }

    pub(super) fn queue_removal(&self, dir: &LogDir, path: PathBuf, now: Now) {
        let what = Removed::Dir { disk: self.disk.clone(), path: DirPath::new(path) };
        self.background.remove(Removal { health: dir.health.clone(), what }, now, self.delete_delay);
    }

    fn load_dir(&self, found: &Found, threads: usize, config_of: &ConfigOf<'_>, now: Now) -> LoadReport {
        let context = self.context(&found.dir);
        let offset =
            |of: &Offsets, partition: &TopicPartition| of.get(partition).copied().unwrap_or(Offset(0));
        let results = in_parallel(&found.current, threads, |partition| {
            PartitionLog::open(
                &context,
                OpenLog {
                    partition: partition.clone(),
                    dir: found.dir.path().join(names::current_dir(partition)),
                    config: config_of(partition),
                    clean: found.clean,
                    boot: self.boot,
                    recovery_point: offset(&found.recovery_points, partition).max(Offset(0)),
                    log_start: offset(&found.log_starts, partition).max(Offset(0)),
                    high_watermark: offset(&found.high_watermarks, partition).max(Offset(0)),
                    first_dirty: found.first_dirty.get(partition).copied(),
                    producer_expiration: self.producer_expiration,
                    now,
                },
            )
        });
        let mut report = LoadReport::default();
        let mut logs = write(&self.logs);
        for (partition, result) in found.current.iter().zip(results) {
            match result {
                Ok(log) => {
                    report.lost.extend(log.loss().map(|loss| (partition.clone(), loss)));
                    report.loaded = report.loaded.saturating_add(1);
                    logs.by_partition.insert(partition.clone(), Entry { log, dir: found.dir.clone() });
                }
                Err(error) => {
                    tracing::error!(%partition, %error, "log is not served");
                    logs.unusable.insert(partition.clone(), error.clone());
                    report.failed.push((partition.clone(), error));
                }
            }
            found.dir.count.fetch_add(1, Ordering::AcqRel);
        }
        drop(logs);
        report.gone = gone(found);
        if report.failed.is_empty() {
            found.dir.may_be_clean.store(true, Ordering::Release);
        }
        if !found.clean {
            // What lies below these was checked or is gone; older points could be beyond a shortened log's end.
            drop(self.checkpoint(&found.dir, super::Checkpoint::RecoveryPoint));
        }
        report
    }
}

/// The partitions that have records by their high watermark and no directory, though nobody had begun to remove it.
fn gone(found: &Found) -> Vec<(TopicPartition, Offset)> {
    let here: BTreeSet<&TopicPartition> = found.current.iter().chain(&found.leaving).collect();
    let of = found.high_watermarks.iter();
    let of = of.filter(|(partition, offset)| offset.0 > 0 && !here.contains(partition));
    of.map(|(partition, offset)| (partition.clone(), *offset)).collect()
}

fn check_duplicates(found: &[Found]) -> Result<(), LogDirsError> {
    let mut seen: BTreeMap<&TopicPartition, &LogDir> = BTreeMap::new();
    for one in found {
        for partition in &one.current {
            if let Some(first) = seen.insert(partition, &one.dir) {
                return Err(LogDirsError::Duplicate {
                    partition: partition.clone(),
                    first: first.path().to_path_buf(),
                    second: one.dir.path().to_path_buf(),
                });
            }
        }
    }
    Ok(())
}

/// Does `work` for each item with at most `threads` threads, here if that is one; the results are in the order of the
/// items. A panic of a thread is passed on.
pub(super) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.clamp(1, items.len().max(1));
    if threads == 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let results = std::sync::Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::AcqRel);
                    let Some(item) = items.get(at) else { return };
                    let result = work(item);
                    lock(&results).push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
