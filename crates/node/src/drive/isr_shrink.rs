//! Looks every half of `replica.lag.time.max.ms` whether followers have fallen behind.

use std::sync::Arc;

use crate::broker::Broker;

/// The least pause between two looks, in milliseconds.
const LEAST_PAUSE_MS: i64 = 10;

/// Looks from now on, as long as the broker runs.
pub(crate) fn schedule(broker: &Arc<Broker>) {
    let interval_ms = (broker.config().replica_lag_time_max_ms / 2).max(LEAST_PAUSE_MS);
    let at_ms = broker.now().mono_ms.saturating_add(interval_ms);
    broker.timers().add_task(at_ms, |broker| {
        let then = broker.clone();
        broker.run_job(move || {
            for partition in then.partitions().all() {
                partition.tick(&then);
            }
            schedule(&then);
        });
    });
}
