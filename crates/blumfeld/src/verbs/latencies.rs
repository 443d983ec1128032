//! How long things took: a histogram of bounded size, for percentiles over any number of measurements.
//!
//! Times below a second are kept to 10 µs, longer ones to a millisecond, and what takes longer than two minutes counts
//! as two minutes.

use std::time::Duration;

/// Steps of 10 µs below a second.
const FINE: usize = 100_000;
/// Steps of a millisecond from one second to 120.
const COARSE: usize = 119_000;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    counts: Vec<u64>,
    total: u64,
    sum_ms: f64,
    max: Duration,
}

impl Latencies {
    /// Adds one measurement.
    pub(crate) fn add(&mut self, time: Duration) {
        let slot = slot(time);
        if self.counts.len() <= slot {
            self.counts.resize(slot + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(slot) {
            *count += 1;
        }
        self.total += 1;
        self.sum_ms += milliseconds_of(time);
        self.max = self.max.max(time);
    }

    /// The number of measurements.
    pub(crate) fn count(&self) -> u64 {
        self.total
    }

    /// The mean in milliseconds; 0 without measurements.
    pub(crate) fn mean_ms(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.sum_ms / self.total as f64 }
    }

    /// The longest time in milliseconds.
    pub(crate) fn max_ms(&self) -> f64 {
        milliseconds_of(self.max)
    }

    /// The time in milliseconds that `share` of the measurements (0 to 1) do not exceed; 0 without measurements.
    pub(crate) fn percentile_ms(&self, share: f64) -> f64 {
        let rank = (share * self.total as f64) as u64;
        let rank = rank.min(self.total.saturating_sub(1));
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen > rank {
                return milliseconds(at);
            }
        }
        0.0
    }
}

fn milliseconds_of(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

fn slot(time: Duration) -> usize {
    let micros = usize::try_from(time.as_micros()).unwrap_or(usize::MAX);
    match micros / 10 {
        fine if fine < FINE => fine,
        _ => FINE + (micros / 1000 - 1000).min(COARSE - 1),
    }
}

fn milliseconds(slot: usize) -> f64 {
    if slot < FINE { slot as f64 / 100.0 } else { (slot - FINE + 1000) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact_to_the_step() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.percentile_ms(0.5), latencies.mean_ms()), (0.0, 0.0));
        for millis in 1..=1000 {
            latencies.add(Duration::from_millis(millis));
        }
        assert_eq!(latencies.percentile_ms(0.5), 501.0);
        assert_eq!(latencies.percentile_ms(0.99), 991.0);
        assert_eq!(latencies.percentile_ms(1.0), 1000.0);
        assert_eq!((latencies.mean_ms(), latencies.max_ms(), latencies.count()), (500.5, 1000.0, 1000));
        latencies.add(Duration::from_micros(237));
        assert_eq!(latencies.percentile_ms(0.0), 0.23);
    }

    #[test]
    fn its_size_is_bounded() {
        let mut latencies = Latencies::default();
        latencies.add(Duration::MAX);
        assert_eq!(latencies.counts.len(), FINE + COARSE);
        assert_eq!(latencies.percentile_ms(0.5), 119_999.0);
    }
}
