//! How often something happens, as Kafka's meters tell it: a mean over the last minute or so, in which the newest
//! counts most.

use std::sync::{Mutex, PoisonError};

/// How often the mean follows what was counted, in milliseconds.
const TICK_MS: i64 = 5_000;
/// How far the mean reaches back, in milliseconds.
const MINUTE_MS: f64 = 60_000.0;
/// After so many silent ticks nothing is left of the mean.
const MOST_TICKS: i64 = 1_000;

/// Events per second over about a minute.
#[derive(Debug)]
pub(crate) struct Rate(Mutex<State>);

#[derive(Debug)]
struct State {
    uncounted: u32,
    per_second: Option<f64>,
    next_tick_ms: i64,
}

impl Rate {
    /// A rate that is watched from `mono_ms` on.
    pub(crate) fn new(mono_ms: i64) -> Self {
        let next_tick_ms = mono_ms.saturating_add(TICK_MS);
        Self(Mutex::new(State { uncounted: 0, per_second: None, next_tick_ms }))
    }

    /// Something happened at `mono_ms`.
    pub(crate) fn mark(&self, mono_ms: i64) {
        self.mark_many(mono_ms, 1);
    }

    /// Something happened so many times at `mono_ms`.
    pub(crate) fn mark_many(&self, mono_ms: i64, times: u32) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.catch_up(mono_ms);
        state.uncounted = state.uncounted.saturating_add(times);
    }

    /// The rate at `mono_ms`; 0 before the first five seconds are over.
    pub(crate) fn per_second(&self, mono_ms: i64) -> f64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.catch_up(mono_ms);
        state.per_second.unwrap_or(0.0)
    }
}

impl State {
    fn catch_up(&mut self, mono_ms: i64) {
        let due = mono_ms.saturating_sub(self.next_tick_ms);
        if due < 0 {
            return;
        }
        let ticks = due / TICK_MS + 1;
        #[expect(clippy::cast_precision_loss, reason = "a tick is a few seconds")]
        let tick_ms = TICK_MS as f64;
        let weight = 1.0 - (-tick_ms / MINUTE_MS).exp();
        for _ in 0..ticks.min(MOST_TICKS) {
            let now = f64::from(std::mem::take(&mut self.uncounted)) * 1_000.0 / tick_ms;
            self.per_second = Some(self.per_second.map_or(now, |mean| mean + weight * (now - mean)));
        }
        self.next_tick_ms = self.next_tick_ms.saturating_add(ticks.saturating_mul(TICK_MS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(rate: f64, expected: f64) {
        assert!((rate - expected).abs() < 0.001, "{rate}, expected {expected}");
    }

    #[test]
    fn the_first_five_seconds_are_told_as_they_were_and_silence_wears_them_off_in_about_a_minute() {
        let rate = Rate::new(0);
        for at_ms in (0..5_000).step_by(100) {
            rate.mark(at_ms);
        }
        close(rate.per_second(4_999), 0.0);
        close(rate.per_second(5_000), 10.0);
        close(rate.per_second(65_000), 10.0 * (-1.0f64).exp());
        close(rate.per_second(i64::MAX), 0.0);
    }

    #[test]
    fn a_steady_rate_is_told_as_it_is() {
        let rate = Rate::new(0);
        for at_ms in (0..600_000).step_by(500) {
            rate.mark(at_ms);
        }
        close(rate.per_second(600_000), 2.0);
    }
}
