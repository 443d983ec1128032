//! Compaction of the logs of all directories: which one is next, and what is told of it.
//!
//! Several threads may look for work; a log is taken by one of them at a time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use wire::types::{Millis, Now, Offset};

use super::logs::Entry;
use super::{Checkpoint, LogDirs};
use crate::cleaner::choice::{Cleanable, cleanable};
use crate::cleaner::{self, CleanOutcome, CleanerSettings, Pace, PassReport};
use crate::dir_health::StorageError;
use crate::log_config::LogConfig;
use crate::partition_log::{CompactionError, PartitionLog};
use crate::sync::{lock, read};

/// What the last look at all logs has shown.
#[derive(Debug, Default)]
pub(super) struct Cleaning(Mutex<Seen>);

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    dirtiest: f64,
    overdue_ms: i64,
    looked_ms: Option<i64>,
}

/// What is known of compaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CleaningReport {
    /// The largest dirty part of a log, from 0 to 1, when it was looked for work last.
    pub dirtiest_ratio: f64,
    /// For how long something had waited beyond `max.compaction.lag.ms` then, in milliseconds.
    pub overdue_ms: i64,
    /// How long that is ago, in milliseconds; 0 if nobody has looked yet.
    pub since_last_look_ms: i64,
    /// For each directory that is online: the logs that could not be compacted, and their bytes that wait for it.
    pub uncleanable: Vec<(PathBuf, usize, u64)>,
}

/// A log that is due.
struct Candidate {
    entry: Entry,
    found: Cleanable,
}

impl LogDirs {
    /// Compacts the log of which the largest part is dirty, if one is due.
    pub fn clean_filthiest(&self, settings: &CleanerSettings, pace: &dyn Pace, now: Now) -> CleanOutcome {
        let Some(Candidate { entry, found }) = self.take_filthiest(now) else { return CleanOutcome::Idle };
        let log = &entry.log;
        let partition = log.partition().clone();
        tracing::debug!(
            %partition, first_dirty = %found.first_dirty, end = %found.first_uncleanable, ratio = found.ratio(),
            "log is compacted"
        );
        let result = self
            .flush_below(&entry, found.first_uncleanable)
            .map_err(CompactionError::Storage)
            .and_then(|()| cleaner::compact(log, &found, settings, pace, now));
        log.release_from_compaction();
        match result {
            Ok(report) => {
                tell(&report);
                // The error is kept by the health of the directory, which has logged it.
                drop(self.checkpoint(&entry.dir, Checkpoint::Cleaner));
                CleanOutcome::Cleaned(report)
            }
            Err(CompactionError::Aborted) => CleanOutcome::Aborted(partition),
            Err(CompactionError::Storage(_)) => CleanOutcome::Failed(partition),
            Err(CompactionError::Uncleanable(error)) => {
                log.mark_uncleanable(now);
                tracing::warn!(
                    %partition, %error,
                    "log cannot be compacted and grows; it is served, and tried again in an hour or at the next start"
                );
                CleanOutcome::Failed(partition)
            }
        }
    }

    /// What a pass may change is flushed, and the checkpoint says so, before it changes anything: no recovery finds a part of
    /// it missing and takes that for a loss.
    fn flush_below(&self, entry: &Entry, offset: Offset) -> Result<(), StorageError> {
        entry.log.flush_to(offset)?;
        self.checkpoint(&entry.dir, Checkpoint::RecoveryPoint)
    }

    /// Removes old segments of the logs with settings that `wanted` names, as
    /// [`delete_old_segments`](Self::delete_old_segments) does of all. A log under compaction has its turn later.
    pub fn delete_old_segments_where(&self, now: Now, wanted: impl Fn(&LogConfig) -> bool) {
        for log in self.all() {
            if wanted(&log.config()) && !log.is_being_compacted() {
                // The error is kept by the health of the directory, which has logged it; a closed log has nothing
                // to remove.
                drop(log.delete_old_segments(now));
            }
        }
    }

    /// What is known of compaction.
    pub fn cleaning_report(&self, now: Now) -> CleaningReport {
        let seen = *lock(&self.cleaning.0);
        let uncleanable = |dir: &Arc<super::LogDir>| {
            let logs: Vec<_> = self.logs_of(dir).into_iter().filter(|log| log.is_uncleanable()).collect();
            let waiting = |log: &Arc<PartitionLog>| {
                log.compaction_facts()
                    .map_or(0, |facts| cleanable(&facts, Millis(now.wall_ms)).cleanable_bytes)
            };
            (dir.path().to_path_buf(), logs.len(), logs.iter().map(waiting).sum())
        };
        CleaningReport {
            dirtiest_ratio: seen.dirtiest,
            overdue_ms: seen.overdue_ms,
            since_last_look_ms: seen.looked_ms.map_or(0, |at| now.mono_ms.saturating_sub(at)),
            uncleanable: self.online_dirs().iter().map(uncleanable).collect(),
        }
    }

    /// Takes the log of which the largest part is dirty, of those that are due.
    fn take_filthiest(&self, now: Now) -> Option<Candidate> {
        let entries: Vec<Entry> = read(&self.logs).by_partition.values().cloned().collect();
        let mut seen = Seen { looked_ms: Some(now.mono_ms), ..Seen::default() };
        let mut due: Vec<Candidate> = Vec::new();
        for entry in entries {
            let config = entry.log.config();
            if !config.cleanup_compact || entry.log.is_being_compacted() {
                continue;
            }
            let found = match entry.log.compaction_facts() {
                Ok(facts) => cleanable(&facts, Millis(now.wall_ms)),
                Err(CompactionError::Uncleanable(error)) => {
                    tracing::warn!(partition = %entry.log.partition(), %error, "log cannot be compacted");
                    entry.log.mark_uncleanable(now);
                    continue;
                }
                Err(CompactionError::Aborted | CompactionError::Storage(_)) => continue,
            };
            seen.dirtiest = seen.dirtiest.max(found.ratio());
            seen.overdue_ms = seen.overdue_ms.max(found.overdue_ms);
            if found.is_due(config.min_cleanable_dirty_ratio) {
                due.push(Candidate { entry, found });
            }
        }
        *lock(&self.cleaning.0) = seen;
        due.sort_by(|one, other| other.found.ratio().total_cmp(&one.found.ratio()));
        due.into_iter().find(|candidate| candidate.entry.log.take_for_compaction(now))
    }
}

fn tell(report: &PassReport) {
    tracing::info!(
        partition = %report.partition, from = %report.first_dirty, to = %report.clean_end,
        read = report.read_bytes, kept = report.kept_bytes, "log was compacted"
    );
    if report.keyless_records > 0 {
        tracing::warn!(
            partition = %report.partition, records = report.keyless_records,
            "records without a key were dropped from a compacted log"
        );
    }
}
