//! Time as the broker sees it: one trait, so that a simulation can hold the hands.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wire::types::Now;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The present instant.
    fn now(&self) -> Now;

    /// Returns when `duration` has passed: for the steps of the start, which may wait. By default the thread sleeps.
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now, at one: zero is kept for "never".
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        let mono_ms = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX).saturating_add(1);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono_ms, wall_ms: i64::try_from(wall.as_millis()).unwrap_or(i64::MAX) }
    }
}
