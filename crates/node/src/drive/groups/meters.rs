//! What is counted of groups, as Kafka's `group-coordinator-metrics`.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::metrics::{Counter, Rate};

/// A number of events, and how many there are a second.
#[derive(Debug)]
pub(crate) struct Meter {
    count: Counter,
    rate: Rate,
}

/// The meters of the group coordinator.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) offset_commits: Meter,
    pub(crate) offset_expirations: Meter,
    pub(crate) offset_deletions: Meter,
    pub(crate) completed_rebalances: Meter,
    pub(crate) load_times: LoadTimes,
}

impl Meters {
    /// Meters that are watched from `mono_ms` on.
    pub(super) fn new(mono_ms: i64) -> Self {
        let meter = || Meter { count: Counter::default(), rate: Rate::new(mono_ms) };
        Self {
            offset_commits: meter(),
            offset_expirations: meter(),
            offset_deletions: meter(),
            completed_rebalances: meter(),
            load_times: LoadTimes::default(),
        }
    }
}

impl Meter {
    /// So many events happened at `mono_ms`.
    pub(super) fn add(&self, mono_ms: i64, events: usize) {
        self.count.add(u64::try_from(events).unwrap_or(u64::MAX));
        self.rate.mark_many(mono_ms, u32::try_from(events).unwrap_or(u32::MAX));
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count.get()
    }

    /// How many there are a second, over about a minute.
    pub(crate) fn per_second(&self, mono_ms: i64) -> f64 {
        self.rate.per_second(mono_ms)
    }
}

/// How far back the times of loads are looked at, in milliseconds.
const WINDOW_MS: i64 = 60_000;
/// The most loads that are looked at; the oldest make room.
const MOST_LOADS: usize = 10_000;

/// How long the loads of the last minute took.
#[derive(Debug, Default)]
pub(crate) struct LoadTimes(Mutex<VecDeque<(i64, i64)>>);

impl LoadTimes {
    /// A load has ended at `mono_ms` that took `took_ms`.
    pub(super) fn add(&self, mono_ms: i64, took_ms: i64) {
        let mut loads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if loads.len() >= MOST_LOADS {
            loads.pop_front();
        }
        loads.push_back((mono_ms, took_ms));
    }

    /// The longest and the mean time in milliseconds; not a number if there was no load.
    #[expect(clippy::cast_precision_loss, reason = "Prometheus knows only doubles")]
    pub(crate) fn max_and_avg(&self, mono_ms: i64) -> (f64, f64) {
        let mut loads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first_ms = mono_ms.saturating_sub(WINDOW_MS);
        while loads.front().is_some_and(|(at_ms, _)| *at_ms < first_ms) {
            loads.pop_front();
        }
        let Some(max) = loads.iter().map(|(_, took_ms)| *took_ms).max() else {
            return (f64::NAN, f64::NAN);
        };
        let sum: i64 = loads.iter().map(|(_, took_ms)| *took_ms).fold(0, i64::saturating_add);
        (max as f64, sum as f64 / loads.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_loads_are_those_of_the_last_minute() {
        let times = LoadTimes::default();
        assert!(times.max_and_avg(0).0.is_nan());
        times.add(1_000, 500);
        times.add(2_000, 100);
        assert_eq!(times.max_and_avg(3_000), (500.0, 300.0));
        assert_eq!(times.max_and_avg(61_001), (100.0, 100.0));
        assert!(times.max_and_avg(70_000).1.is_nan());
    }

    #[test]
    fn of_very_many_loads_the_oldest_make_room() {
        let times = LoadTimes::default();
        times.add(0, 9_000);
        (1..MOST_LOADS).for_each(|_| times.add(0, 10));
        assert!(times.max_and_avg(0).0 > 8_999.0, "there is room for all");
        times.add(0, 10);
        assert_eq!(times.max_and_avg(0), (10.0, 10.0));
    }
}
