//! What a store counts: plain numbers, read whenever somebody asks. The names are those of Kafka's metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets of latencies for each doubling.
const STEPS: usize = 4;
/// Latencies of 2^30 µs, about 18 minutes, and more share the last bucket.
const DOUBLINGS: usize = 30;

/// The numbers of one store.
#[derive(Debug, Default)]
pub struct ZooKeeperStats {
    disconnects: AtomicU64,
    connects: AtomicU64,
    expires: AtomicU64,
    is_connected: AtomicU64,
    session_timeout_ms: AtomicU64,
    longest_silence_ms: AtomicU64,
    latencies: Latencies,
}

impl ZooKeeperStats {
    /// Connections of a session that were lost.
    pub fn disconnects(&self) -> u64 {
        self.disconnects.load(Ordering::Relaxed)
    }

    /// Connections of a session that were made.
    pub fn connects(&self) -> u64 {
        self.connects.load(Ordering::Relaxed)
    }

    /// Sessions that the ensemble has ended.
    pub fn expires(&self) -> u64 {
        self.expires.load(Ordering::Relaxed)
    }

    /// Whether the session has a connection now.
    pub fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Relaxed) != 0
    }

    /// The session timeout that the ensemble has granted, in milliseconds; 0 before the first session.
    pub fn session_timeout_ms(&self) -> u64 {
        self.session_timeout_ms.load(Ordering::Relaxed)
    }

    /// How long the ensemble was not heard of at most while a session lived, in milliseconds: what is left to the
    /// timeout is how far the session was from its end.
    pub fn longest_silence_ms(&self) -> u64 {
        self.longest_silence_ms.load(Ordering::Relaxed)
    }

    /// How long requests took from their sending to their answer.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    pub(super) fn connected(&self) {
        self.connects.fetch_add(1, Ordering::Relaxed);
        self.is_connected.store(1, Ordering::Relaxed);
    }

    pub(super) fn disconnected(&self) {
        self.disconnects.fetch_add(1, Ordering::Relaxed);
        self.is_connected.store(0, Ordering::Relaxed);
    }

    pub(super) fn expired(&self) {
        self.expires.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_latency(&self, duration: Duration) {
        self.latencies.note(duration);
    }

    pub(super) fn closed(&self) {
        self.is_connected.store(0, Ordering::Relaxed);
    }

    pub(super) fn heard(&self, session_timeout: Duration, longest_silence: Duration) {
        self.session_timeout_ms.store(milliseconds(session_timeout), Ordering::Relaxed);
        self.longest_silence_ms.store(milliseconds(longest_silence), Ordering::Relaxed);
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Durations in buckets that grow by a fifth each, since the start of the process.
#[derive(Debug)]
pub struct Latencies([AtomicU64; DOUBLINGS * STEPS]);

impl Default for Latencies {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Latencies {
    fn note(&self, duration: Duration) {
        if let Some(bucket) = self.0.get(bucket(duration)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many were noted.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// The duration that the share `quantile` (0 to 1) of them did not exceed, up to the width of a bucket; none if none was
    /// noted.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let counts = self.0.each_ref().map(|bucket| bucket.load(Ordering::Relaxed));
        let total: u64 = counts.iter().sum();
        let wanted = (total as f64 * quantile).ceil().max(1.0);
        let mut seen = 0;
        for (place, count) in counts.into_iter().enumerate() {
            seen += count;
            if count > 0 && seen as f64 >= wanted {
                return Some(upper_bound(place));
            }
        }
        None
    }
}

/// The doubling, and a quarter of it.
fn bucket(duration: Duration) -> usize {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1);
    let doubling = usize::try_from(micros.ilog2()).unwrap_or(DOUBLINGS);
    if doubling >= DOUBLINGS {
        return DOUBLINGS * STEPS - 1;
    }
    let beyond = (micros << 2 >> doubling) & 3;
    doubling * STEPS + usize::try_from(beyond).unwrap_or(0)
}

fn upper_bound(bucket: usize) -> Duration {
    let (doubling, step) = (bucket / STEPS, bucket % STEPS);
    let quarters = u64::try_from(step + STEPS + 1).unwrap_or(u64::MAX);
    Duration::from_micros((quarters << doubling).div_ceil(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_not_below_its_latency_and_at_most_a_quarter_above() {
        let latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), None);
        for micros in 1..=1000_u64 {
            latencies.note(Duration::from_micros(micros));
        }
        assert_eq!(latencies.count(), 1000);
        for (quantile, exact) in [(0.001, 1), (0.5, 500), (0.99, 990), (1.0, 1000)] {
            let told = u64::try_from(latencies.quantile(quantile).unwrap().as_micros()).unwrap();
            assert!(told >= exact && told <= exact + exact / 4 + 1, "{quantile}: {told}");
        }
        latencies.note(Duration::from_secs(86_400));
        assert!(
            latencies.quantile(1.0).unwrap() > Duration::from_secs(1000),
            "the last bucket takes the rest"
        );
    }
}
