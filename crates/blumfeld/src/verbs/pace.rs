//! A pace to be kept: so many records a second, evenly.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A pace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    start: Instant,
    /// Records a second; none is as fast as can be.
    rate: Option<f64>,
}

impl Pace {
    /// A pace of `rate` records a second from now on; below zero there is none to be kept.
    pub(crate) fn start(rate: f64) -> Self {
        Self { start: Instant::now(), rate: (rate > 0.0).then_some(rate) }
    }

    /// When record `number`, counted from 0, is due.
    fn due(&self, number: u64) -> Option<Instant> {
        let seconds = number as f64 / self.rate?;
        Some(self.start + Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// Whether record `number` is to be waited for.
    pub(crate) fn is_early(&self, number: u64) -> bool {
        self.due(number).is_some_and(|due| due > Instant::now())
    }

    /// Waits until record `number` is due.
    pub(crate) async fn wait(&self, number: u64) {
        if let Some(due) = self.due(number) {
            sleep_until(due).await;
        }
    }

    /// The time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_due_evenly_and_without_a_rate_at_once() {
        let pace = Pace::start(4.0);
        assert_eq!(pace.due(6), Some(pace.start + Duration::from_millis(1500)));
        assert!(pace.is_early(100) && !pace.is_early(0));
        assert!(!Pace::start(-1.0).is_early(u64::MAX));
    }
}
