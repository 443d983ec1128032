//! What the broker does by the clock: retention, checkpoints, flushes by age, expiry of producers, and the
//! removal of what was deleted. Each task has its interval; a task that is late runs once, not many times.

use std::sync::{Arc, Mutex, PoisonError};

use wire::types::Now;

use super::groups;
use crate::broker::Broker;
use crate::config::KafkaConfig;

/// One kind of work, by Kafka's property for its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Retention,
    Flush,
    RecoveryPoints,
    LogStarts,
    HighWatermarks,
    ProducerExpiry,
    OffsetExpiry,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    task: Task,
    interval_ms: i64,
    due_ms: i64,
}

/// The least pause between two rounds, in milliseconds: an interval of zero does not spin.
const LEAST_PAUSE_MS: i64 = 10;
/// Removals come at most this late, in milliseconds.
const LONGEST_PAUSE_MS: i64 = 10_000;

/// When each task is due next.
#[derive(Debug)]
pub(crate) struct Schedule(Mutex<Vec<Entry>>);

impl Schedule {
    /// The schedule of a broker that starts now.
    pub(crate) fn new(config: &KafkaConfig, now: Now) -> Self {
        let initial_ms = config.log_initial_task_delay_ms;
        let watermarks_ms = config.replica_high_watermark_checkpoint_interval_ms;
        let expiry_ms = i64::from(config.producer_id_expiration_check_interval_ms);
        let offsets_ms = config.offsets_retention_check_interval_ms;
        // The tasks of the logs begin after log.initial.task.delay.ms, the others after their own interval.
        let entries = [
            (Task::Retention, config.log_retention_check_interval_ms, initial_ms),
            (Task::Flush, config.log_flush_scheduler_interval_ms, initial_ms),
            (Task::RecoveryPoints, config.log_flush_offset_checkpoint_interval_ms, initial_ms),
            (Task::LogStarts, config.log_flush_start_offset_checkpoint_interval_ms, initial_ms),
            (Task::HighWatermarks, watermarks_ms, watermarks_ms),
            (Task::ProducerExpiry, expiry_ms, expiry_ms),
            (Task::OffsetExpiry, offsets_ms, offsets_ms),
        ];
        let entry = |(task, interval_ms, first_ms)| Entry {
            task,
            interval_ms,
            due_ms: now.mono_ms.saturating_add(first_ms),
        };
        Self(Mutex::new(entries.into_iter().map(entry).collect()))
    }

    /// Does what is due; returns when to come back, on the monotonic clock.
    pub(crate) fn run(&self, broker: &Arc<Broker>) -> i64 {
        while let Some(job) = broker.log_dirs().background().next_job(broker.now()) {
            job.run();
        }
        for task in self.take_due(broker.now().mono_ms) {
            perform(broker, task);
        }
        let now_ms = broker.now().mono_ms;
        let next_task = self.next_due().unwrap_or(i64::MAX);
        let next_job = broker.log_dirs().background().next_due().map_or(i64::MAX, |due| due.0);
        next_task.min(next_job).clamp(now_ms + LEAST_PAUSE_MS, now_ms + LONGEST_PAUSE_MS)
    }

    fn take_due(&self, now_ms: i64) -> Vec<Task> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = entries.iter_mut().filter(|entry| entry.due_ms <= now_ms);
        due.map(|entry| {
            entry.due_ms = now_ms.saturating_add(entry.interval_ms);
            entry.task
        })
        .collect()
    }

    fn next_due(&self) -> Option<i64> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().map(|entry| entry.due_ms).min()
    }
}

fn perform(broker: &Arc<Broker>, task: Task) {
    let (dirs, now) = (broker.log_dirs(), broker.now());
    match task {
        // What is compacted is left to the cleaner, if there is one.
        Task::Retention if broker.cleaner_threads() > 0 => {
            dirs.delete_old_segments_where(now, |config| !config.cleanup_compact);
        }
        Task::Retention => dirs.delete_old_segments(now),
        Task::Flush => dirs.flush_due(now),
        Task::RecoveryPoints => dirs.checkpoint_recovery_points(),
        Task::LogStarts => dirs.checkpoint_log_starts(),
        Task::HighWatermarks => dirs.checkpoint_high_watermarks(),
        Task::OffsetExpiry => groups::expire_offsets(broker),
        Task::ProducerExpiry => {
            let limit_ms = i64::from(broker.config().producer_id_expiration_ms);
            for partition in broker.partitions().all() {
                partition.log().expire_producers(now, wire::types::Millis(limit_ms));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule() -> Schedule {
        let (config, _) = KafkaConfig::without_file(&[]).unwrap();
        Schedule::new(&config, Now { mono_ms: 1, wall_ms: 0 })
    }

    #[test]
    fn the_tasks_of_the_logs_begin_after_the_initial_delay_and_the_others_after_their_interval() {
        let schedule = schedule();
        assert_eq!(schedule.next_due(), Some(5_001));
        assert_eq!(schedule.take_due(5_000), []);
        assert_eq!(schedule.take_due(5_001), [Task::HighWatermarks]);
        assert_eq!(schedule.take_due(30_000), [Task::HighWatermarks]);
        assert_eq!(schedule.take_due(30_001).len(), 4);
        assert!(!schedule.take_due(599_000).contains(&Task::ProducerExpiry));
        let due = schedule.take_due(600_001);
        assert!(due.contains(&Task::ProducerExpiry) && due.contains(&Task::OffsetExpiry));
    }

    #[test]
    fn a_late_task_runs_once_and_then_at_its_interval() {
        let schedule = schedule();
        schedule.take_due(1_000_000);
        assert_eq!(schedule.take_due(1_000_000), []);
        assert_eq!(schedule.take_due(1_005_000), [Task::HighWatermarks]);
    }
}
