//! `log.cleaner.io.max.bytes.per.second`: how long to rest so that reads and writes of compaction stay below it.

use wire::types::Millis;

/// How long a rate is measured before it is held against the limit, in milliseconds.
const PERIOD_MS: i64 = 300;

/// The bytes of one period after the other; shared by all threads that compact.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttle {
    bytes_per_second: f64,
    since_ms: i64,
    bytes: u64,
}

impl Throttle {
    /// Allows `bytes_per_second` from `now` (the monotonic clock) on. A limit that is not positive allows everything.
    pub fn new(bytes_per_second: f64, now: Millis) -> Self {
        Self { bytes_per_second, since_ms: now.0, bytes: 0 }
    }

    /// Counts `bytes`; returns for how many milliseconds to rest before the next.
    pub fn spend(&mut self, bytes: u64, now: Millis) -> i64 {
        self.bytes = self.bytes.saturating_add(bytes);
        let elapsed_ms = now.0.saturating_sub(self.since_ms);
        if elapsed_ms < PERIOD_MS || self.bytes_per_second <= 0.0 {
            return 0;
        }
        let needed_ms = self.bytes as f64 * 1000.0 / self.bytes_per_second;
        // A cast keeps what is too large at the largest number.
        let rest_ms = (needed_ms - elapsed_ms as f64).max(0.0).round() as i64;
        self.since_ms = now.0.saturating_add(rest_ms);
        self.bytes = 0;
        rest_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_too_fast_rests_until_the_rate_is_right() {
        let mut throttle = Throttle::new(1000.0, Millis(0));
        assert_eq!(throttle.spend(400, Millis(299)), 0, "not measured yet");
        assert_eq!(throttle.spend(100, Millis(300)), 200);
        assert_eq!(throttle.spend(300, Millis(800)), 0, "a new period from the end of the rest on");
        assert_eq!(throttle.spend(10, Millis(5000)), 0);
    }

    #[test]
    fn without_a_limit_nobody_rests() {
        for limit in [f64::MAX, 0.0, -1.0] {
            let mut throttle = Throttle::new(limit, Millis(0));
            assert_eq!(throttle.spend(u64::MAX, Millis(1000)), 0);
        }
    }
}
