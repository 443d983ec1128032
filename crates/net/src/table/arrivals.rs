//! How fast connections come, and how long the next one must wait so that they do not come faster than they may
//! (`max.connection.creation.rate`, KIP-612).
//!
//! As Kafka counts: in windows of which the last ones are kept (`quota.window.num`, `quota.window.size.seconds`), as if all
//! but the present one had passed in full. An arrival is counted even if it must wait.

use std::collections::VecDeque;
use std::time::Duration;

/// The windows in which arrivals are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateWindows {
    /// How many are kept, the present one included (`quota.window.num`); at least one.
    pub count: u32,
    /// How long each is (`quota.window.size.seconds`); also the longest wait.
    pub length: Duration,
}

impl Default for RateWindows {
    fn default() -> Self {
        Self { count: 11, length: Duration::from_secs(1) }
    }
}

/// The arrivals of the last windows.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Start and arrivals of each window in which there were some, the oldest first; at most [`RateWindows::count`].
    windows: VecDeque<(Duration, u64)>,
}

impl Arrivals {
    /// Counts an arrival at `now`, on a clock that does not go back, and tells how long it must wait, at most a window, so
    /// that no more than `limit` come in a second.
    pub(super) fn arrived(&mut self, now: Duration, limit: usize, shape: RateWindows) -> Duration {
        let kept = shape.length.saturating_mul(shape.count.max(1));
        while self.windows.front().is_some_and(|(start, _)| now.saturating_sub(*start) >= kept) {
            self.windows.pop_front();
        }
        match self.windows.back_mut() {
            Some((start, count)) if now.saturating_sub(*start) < shape.length => *count += 1,
            _ => self.windows.push_back((now, 1)),
        }
        let arrivals: u64 = self.windows.iter().map(|(_, count)| count).sum();
        let oldest = self.windows.front().map_or(now, |(start, _)| *start);
        // The time in which so many may come.
        let Some(needed_ms) = arrivals.saturating_mul(1000).checked_div(limit as u64) else {
            return shape.length;
        };
        let needed = Duration::from_millis(needed_ms);
        needed.saturating_sub(shape.measured(now.saturating_sub(oldest))).min(shape.length)
    }

    /// The last arrival does not count.
    pub(super) fn take_back(&mut self) {
        if let Some((_, count)) = self.windows.back_mut() {
            *count = count.saturating_sub(1);
        }
    }

    /// When the last window began.
    pub(super) fn last(&self) -> Duration {
        self.windows.back().map_or(Duration::ZERO, |(start, _)| *start)
    }
}

impl RateWindows {
    /// The time over which arrivals are measured whose oldest window began `elapsed` ago: all windows but the present one
    /// count in full.
    fn measured(self, elapsed: Duration) -> Duration {
        let length = self.length.as_millis().max(1);
        let full = elapsed.as_millis() / length;
        let missing = u128::from(self.count.saturating_sub(1)).saturating_sub(full);
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        elapsed.saturating_add(self.length.saturating_mul(missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: RateWindows = RateWindows { count: 11, length: Duration::from_secs(1) };

    fn arrive(arrivals: &mut Arrivals, at_ms: u64, limit: usize) -> u128 {
        arrivals.arrived(Duration::from_millis(at_ms), limit, SHAPE).as_millis()
    }

    #[test]
    fn arrivals_within_the_rate_do_not_wait() {
        let mut arrivals = Arrivals::default();
        for second in 0..100 {
            for at in 0..10 {
                assert_eq!(arrive(&mut arrivals, second * 1000 + at * 100, 11), 0, "second {second}");
            }
        }
    }

    #[test]
    fn a_burst_is_let_in_and_what_comes_after_it_waits_until_the_rate_is_met_again() {
        let mut arrivals = Arrivals::default();
        let waits: Vec<_> = (0..103).map(|_| arrive(&mut arrivals, 0, 10)).collect();
        assert!(waits[..100].iter().all(|wait| *wait == 0), "ten seconds' worth");
        assert_eq!(waits[100..], [100, 200, 300]);
        assert_eq!(arrive(&mut arrivals, 200, 10), 200, "time that passes counts");
        assert_eq!(arrive(&mut arrivals, 20_000, 10), 0, "a burst is forgotten with its window");
    }

    #[test]
    fn nobody_waits_longer_than_a_window() {
        let mut arrivals = Arrivals::default();
        let longest = (0..1000).map(|_| arrive(&mut arrivals, 0, 1)).max();
        assert_eq!(longest, Some(1000));
        assert_eq!(arrive(&mut Arrivals::default(), 0, 0), 1000, "a rate of nothing lets one in each window");
    }

    #[test]
    fn no_more_windows_are_kept_than_are_asked_for() {
        let mut arrivals = Arrivals::default();
        for second in 0..100 {
            arrive(&mut arrivals, second * 1000, 1000);
            assert!(arrivals.windows.len() <= 11);
        }
    }
}
