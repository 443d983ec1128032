//! The logs of the directories: found, created, deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use wire::types::{LeaderEpoch, Now, Offset, TopicId, TopicPartition};

use super::load::in_parallel;
use super::{Checkpoint, LogDir, LogDirs};
use crate::dir_health::StorageError;
use crate::log_config::LogConfig;
use crate::names::{self, DirKind};
use crate::partition_log::{LoadError, LogError, PartitionLog};
use crate::sync::{lock, read, write};

/// All logs, and those that exist but cannot be served.
#[derive(Debug, Default)]
pub(super) struct Logs {
    pub(super) by_partition: BTreeMap<TopicPartition, Entry>,
    pub(super) unusable: BTreeMap<TopicPartition, LoadError>,
}

/// A log and the directory it is in.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) log: Arc<PartitionLog>,
    pub(super) dir: Arc<LogDir>,
}

/// What a log that may have to be created needs.
#[derive(Clone, Debug)]
pub struct NewLog {
    /// The topic's id; zero if it has none.
    pub topic_id: TopicId,
    /// The settings.
    pub config: Arc<LogConfig>,
    /// Whether no log can exist yet, in a failed directory either.
    pub is_new: bool,
    /// The epoch in which this broker is going to lead, if it is: it is entered at the log end
    /// ([`PartitionLog::become_leader`]).
    pub leader_epoch: Option<LeaderEpoch>,
}

/// How many threads create logs.
const CREATING_THREADS: usize = 4;
/// A thread more is worth its start for this many logs.
const LOGS_PER_THREAD: usize = 16;

/// Why there is no log for a partition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// There is one, but it cannot be served.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is one, and it belongs to a topic of another id, or its id cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A directory is offline, and the log could be in it (KAFKA_STORAGE_ERROR).
    #[error("the log may lie in a directory that is offline: {0}")]
    MayBeOffline(StorageError),
    /// Every directory is offline (KAFKA_STORAGE_ERROR).
    #[error("no log directory is online")]
    NoneOnline,
}

impl LogDirs {
    /// The log of a partition, if there is one that can be served.
    pub fn get(&self, partition: &TopicPartition) -> Option<Arc<PartitionLog>> {
        read(&self.logs).by_partition.get(partition).map(|entry| entry.log.clone())
    }

    /// The log of a partition; created if there is none, in the online directory with the fewest logs. An
    /// existing log takes the settings, and the topic id if it has none.
    ///
    /// `is_new` says that no log can exist yet; otherwise none is created while a directory is offline, since
    /// the records may be there.
    pub fn get_or_create(
        &self,
        partition: &TopicPartition,
        topic_id: TopicId,
        config: Arc<LogConfig>,
        is_new: bool,
        now: Now,
    ) -> Result<Arc<PartitionLog>, CreateError> {
        let _one = lock(&self.changing);
        self.find_or_create(partition, &NewLog { topic_id, config, is_new, leader_epoch: None }, now)
    }

    /// The logs of many partitions, as [`get_or_create`](Self::get_or_create) gives one. Several are created at a
    /// time: a file system makes names in different directories side by side. The results are in the order of the
    /// partitions.
    pub fn get_or_create_many(
        &self,
        wanted: &BTreeMap<TopicPartition, NewLog>,
        now: Now,
    ) -> Vec<Result<Arc<PartitionLog>, CreateError>> {
        let _one = lock(&self.changing);
        let threads = (wanted.len() / LOGS_PER_THREAD).clamp(1, CREATING_THREADS);
        let wanted: Vec<_> = wanted.iter().collect();
        in_parallel(&wanted, threads, |(partition, new)| {
            let log = self.find_or_create(partition, new, now)?;
            if let Some(epoch) = new.leader_epoch {
                log.become_leader(epoch)?;
            }
            Ok(log)
        })
    }

    /// Called by one thread for each partition.
    fn find_or_create(
        &self,
        partition: &TopicPartition,
        new: &NewLog,
        now: Now,
    ) -> Result<Arc<PartitionLog>, CreateError> {
        let NewLog { topic_id, config, is_new, .. } = new;
        if let Some(log) = self.get(partition) {
            log.set_topic_id(*topic_id)?;
            log.update_config(config.clone());
            return Ok(log);
        }
        if let Some(error) = read(&self.logs).unusable.get(partition) {
            return Err(error.clone().into());
        }
        if !is_new && let Some(failure) = self.dirs.iter().find_map(|dir| dir.health.check().err()) {
            return Err(CreateError::MayBeOffline(failure));
        }
        let mut dirs = self.online_dirs();
        dirs.sort_by_key(|dir| dir.count.load(Ordering::Acquire));
        let mut failed = CreateError::NoneOnline;
        for dir in dirs {
            let path = dir.path().join(names::current_dir(partition));
            let context = self.context(&dir);
            // Before it is there, so that others that are created meanwhile go elsewhere.
            dir.count.fetch_add(1, Ordering::AcqRel);
            match PartitionLog::create(&context, partition.clone(), &path, config.clone(), *topic_id, now) {
                Ok(log) => {
                    if let Some(high_watermark) = lock(&self.gone).remove(partition) {
                        log.replaces_one_that_is_gone(high_watermark);
                    }
                    let entry = Entry { log: log.clone(), dir };
                    write(&self.logs).by_partition.insert(partition.clone(), entry);
                    return Ok(log);
                }
                Err(error) => {
                    dir.count.fetch_sub(1, Ordering::AcqRel);
                    failed = error.into();
                }
            }
        }
        Err(failed)
    }

    /// Removes the log of a partition: nothing can be appended to it from now on, its directory gets another
    /// name, and is removed after `log.segment.delete.delay.ms`. Succeeds if there is no log.
    ///
    /// # Errors
    /// If the directory is offline.
    pub fn delete(&self, partition: &TopicPartition, now: Now) -> Result<(), LogError> {
        self.delete_many(std::slice::from_ref(partition), now).pop().unwrap_or(Ok(()))
    }

    /// Removes several logs as [`delete`](Self::delete) does one, and writes the checkpoints of each directory
    /// once. The results are in the order of the partitions.
    pub fn delete_many(&self, partitions: &[TopicPartition], now: Now) -> Vec<Result<(), LogError>> {
        let _one = lock(&self.changing);
        let mut touched: Vec<Arc<LogDir>> = Vec::new();
        let mut were_compacted = false;
        let mut results = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let removed = write(&self.logs).by_partition.remove(partition);
            let Some(Entry { log, dir }) = removed else {
                results.push(Ok(()));
                continue;
            };
            dir.count.fetch_sub(1, Ordering::AcqRel);
            were_compacted |= log.first_dirty_offset().is_some();
            let name = names::dir_of_kind(partition, DirKind::Delete, fastrand::u128(..));
            let renamed = log.rename_for_deletion(&dir.path().join(&name));
            if renamed.is_ok() {
                self.queue_removal(&dir, dir.path().join(name), now);
            }
            results.push(renamed);
            if !touched.iter().any(|other| Arc::ptr_eq(other, &dir)) {
                touched.push(dir);
            }
        }
        for dir in touched {
            // An error is kept by the health of the directory, which has logged it.
            drop(self.checkpoint(&dir, Checkpoint::RecoveryPoint));
            drop(self.checkpoint(&dir, Checkpoint::LogStart));
            // A topic of the same name that is made again must not seem to have lost what this one had.
            drop(self.checkpoint(&dir, Checkpoint::HighWatermark));
            if were_compacted {
                drop(self.checkpoint(&dir, Checkpoint::Cleaner));
            }
        }
        results
    }

    /// Cuts a log at its end, and notes its recovery point before anything is appended again; see
    /// [`PartitionLog::truncate_to`].
    pub fn truncate_to(
        &self,
        partition: &TopicPartition,
        offset: Offset,
        now: Now,
    ) -> Result<bool, LogError> {
        let Some(Entry { log, dir }) = read(&self.logs).by_partition.get(partition).cloned() else {
            return Err(LogError::Closed);
        };
        let high_watermark = log.positions().high_watermark;
        let cut = log.truncate_to(offset, now, self.producer_expiration)?;
        if cut {
            if log.first_dirty_offset().is_some() {
                // The cut may lie in a gap that compaction has left: the next segment must not seem to begin behind a loss.
                log.flush_to(offset)?;
            }
            self.note_cut(&dir, &log, high_watermark)?;
        }
        Ok(cut)
    }

    /// Empties a log, and notes its recovery point before anything is appended again; see
    /// [`PartitionLog::truncate_fully_and_start_at`].
    pub fn truncate_fully_and_start_at(
        &self,
        partition: &TopicPartition,
        offset: Offset,
        now: Now,
    ) -> Result<(), LogError> {
        let Some(Entry { log, dir }) = read(&self.logs).by_partition.get(partition).cloned() else {
            return Err(LogError::Closed);
        };
        let high_watermark = log.positions().high_watermark;
        log.truncate_fully_and_start_at(offset, now)?;
        Ok(self.note_cut(&dir, &log, high_watermark)?)
    }

    /// Notes where a log that was cut ends. After a crash it must not seem to have lost what was cut on purpose.
    fn note_cut(&self, dir: &LogDir, log: &PartitionLog, high_watermark: Offset) -> Result<(), StorageError> {
        self.checkpoint(dir, Checkpoint::RecoveryPoint)?;
        if log.positions().log_end < high_watermark {
            self.checkpoint(dir, Checkpoint::HighWatermark)?;
        }
        if log.first_dirty_offset().is_some() {
            self.checkpoint(dir, Checkpoint::Cleaner)?;
        }
        Ok(())
    }

    /// The logs of one directory.
    pub(super) fn logs_of(&self, dir: &LogDir) -> Vec<Arc<PartitionLog>> {
        let logs = read(&self.logs);
        let here = logs.by_partition.values().filter(|entry| std::ptr::eq(&*entry.dir, dir));
        here.map(|entry| entry.log.clone()).collect()
    }
}
