//! The cleaner: compaction of logs, by as many threads as `log.cleaner.threads` says. Each does one round after the other:
//! compacts the log of which the largest part is dirty, then removes old segments of compacted logs, and rests for
//! `log.cleaner.backoff.ms` when there was nothing to compact.
//!
//! A pass over a log may take minutes. It ends early when the broker begins to leave.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use storage::cleaner::{CleanOutcome, CleanerSettings, Pace, Throttle};
use wire::types::Millis;

use crate::broker::Broker;
use crate::clock::Clock;
use crate::config::KafkaConfig;

/// The least rest between two rounds without work, in milliseconds: a backoff of zero does not spin.
const LEAST_REST_MS: i64 = 10;
/// The memory for offsets of one thread at the most, in bytes.
const MOST_BUFFER_BYTES: u64 = i32::MAX as u64;

/// What the threads of the cleaner share. How many there are is fixed at the start; the other settings are taken anew with
/// each round.
#[derive(Debug)]
pub(crate) struct Cleaner {
    threads: usize,
    /// The limit in bytes per second, and what keeps to it.
    throttle: Mutex<(f64, Throttle)>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

impl Cleaner {
    /// The cleaner of a broker with this configuration, at rest.
    pub(crate) fn new(config: &KafkaConfig, now_ms: i64) -> Self {
        let limit = config.log_cleaner_io_max_bytes_per_second;
        Self {
            threads: threads_of(config),
            throttle: Mutex::new((limit, Throttle::new(limit, Millis(now_ms)))),
            stopped: Mutex::new(false),
            stop: Condvar::new(),
        }
    }

    /// How many threads are to call [`round`].
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// What one thread may use.
    fn settings(&self, config: &KafkaConfig) -> CleanerSettings {
        let threads = self.threads.max(config.log_cleaner_threads).max(1);
        let buffer = u64::try_from(config.log_cleaner_dedupe_buffer_size).unwrap_or(0);
        let io_buffer = usize::try_from(config.log_cleaner_io_buffer_size).unwrap_or(0);
        CleanerSettings {
            dedupe_buffer_bytes: (buffer / threads as u64).min(MOST_BUFFER_BYTES),
            load_factor: config.log_cleaner_io_buffer_load_factor,
            io_buffer_bytes: (io_buffer / threads / 2).max(1),
        }
    }

    /// Keeps to this limit from now on.
    fn limit(&self, bytes_per_second: f64, now_ms: i64) {
        let mut throttle = lock(&self.throttle);
        if throttle.0 != bytes_per_second {
            *throttle = (bytes_per_second, Throttle::new(bytes_per_second, Millis(now_ms)));
        }
    }

    /// Ends the passes at hand, and lets no other begin.
    pub(crate) fn stop(&self) {
        *lock(&self.stopped) = true;
        self.stop.notify_all();
    }

    /// Rests for so long, or until the cleaner is stopped; returns whether it is not.
    fn rest(&self, rest_ms: i64) -> bool {
        let stopped = lock(&self.stopped);
        let rest = Duration::from_millis(u64::try_from(rest_ms).unwrap_or(0));
        if rest.is_zero() {
            return !*stopped;
        }
        let waited = self.stop.wait_timeout_while(stopped, rest, |stopped| !*stopped);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Keeps all threads together below `log.cleaner.io.max.bytes.per.second`.
struct Paced<'a> {
    cleaner: &'a Cleaner,
    clock: &'a dyn Clock,
}

impl Pace for Paced<'_> {
    fn spend(&self, bytes: u64) -> bool {
        let now = Millis(self.clock.now().mono_ms);
        let rest_ms = lock(&self.cleaner.throttle).1.spend(bytes, now);
        self.cleaner.rest(rest_ms)
    }
}

fn threads_of(config: &KafkaConfig) -> usize {
    if config.log_cleaner_enable { config.log_cleaner_threads } else { 0 }
}

/// One round; returns when the next is due, on the monotonic clock.
pub(crate) fn round(broker: &Arc<Broker>) -> i64 {
    let _alive = Alive(broker);
    let cleaner = broker.cleaner();
    if !cleaner.rest(0) {
        return i64::MAX;
    }
    let begun_ms = broker.now().mono_ms;
    let (settings, backoff_ms) = {
        let config = broker.config();
        cleaner.limit(config.log_cleaner_io_max_bytes_per_second, begun_ms);
        (cleaner.settings(&config), config.log_cleaner_backoff_ms.max(LEAST_REST_MS))
    };
    let pace = Paced { cleaner, clock: broker.clock() };
    let outcome = broker.log_dirs().clean_filthiest(&settings, &pace, broker.now());
    let meters = &broker.metrics().cleaner;
    let worked = match &outcome {
        CleanOutcome::Cleaned(report) => {
            meters.cleaned(report, broker.now().mono_ms.saturating_sub(begun_ms));
            true
        }
        CleanOutcome::Failed(_) => true,
        CleanOutcome::Aborted(_) | CleanOutcome::Idle => false,
    };
    broker.log_dirs().delete_old_segments_where(broker.now(), |config| config.cleanup_compact);
    let now_ms = broker.now().mono_ms;
    if worked { now_ms } else { now_ms.saturating_add(backoff_ms) }
}

/// Counts the threads of the cleaner that a fault ends.
struct Alive<'a>(&'a Broker);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.metrics().cleaner.dead_threads.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(values: &[(&str, &str)]) -> KafkaConfig {
        let values: Vec<_> =
            values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        KafkaConfig::without_file(&values).unwrap().0
    }

    fn settings(values: &[(&str, &str)]) -> CleanerSettings {
        let config = config(values);
        Cleaner::new(&config, 0).settings(&config)
    }

    #[test]
    fn threads_share_the_buffers() {
        let one = settings(&[]);
        assert_eq!((one.dedupe_buffer_bytes, one.io_buffer_bytes), (134_217_728, 262_144));
        let four = settings(&[("log.cleaner.threads", "4")]);
        assert_eq!((four.dedupe_buffer_bytes, four.io_buffer_bytes), (33_554_432, 65_536));
        let large = settings(&[("log.cleaner.dedupe.buffer.size", "9000000000000")]);
        assert_eq!(large.dedupe_buffer_bytes, 2_147_483_647);
    }

    #[test]
    fn fewer_threads_in_the_configuration_give_the_others_no_more_memory() {
        let cleaner = Cleaner::new(&config(&[("log.cleaner.threads", "4")]), 0);
        assert_eq!(cleaner.settings(&config(&[])).dedupe_buffer_bytes, 33_554_432);
        let more = config(&[("log.cleaner.threads", "8")]);
        assert_eq!(cleaner.settings(&more).dedupe_buffer_bytes, 16_777_216);
    }

    #[test]
    fn a_cleaner_that_is_switched_off_has_no_threads() {
        let threads = |values: &[(&str, &str)]| Cleaner::new(&config(values), 0).threads();
        assert_eq!(threads(&[]), 1);
        assert_eq!(threads(&[("log.cleaner.enable", "false")]), 0);
        assert_eq!(threads(&[("log.cleaner.threads", "0")]), 0);
    }

    #[test]
    fn a_stop_ends_every_rest() {
        let cleaner = Cleaner::new(&config(&[]), 0);
        assert!(cleaner.rest(0) && cleaner.rest(1));
        std::thread::scope(|scope| {
            let resting = scope.spawn(|| cleaner.rest(3_600_000));
            cleaner.stop();
            assert!(!resting.join().unwrap());
        });
        assert!(!cleaner.rest(0));
    }
}
