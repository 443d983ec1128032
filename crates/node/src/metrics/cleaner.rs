//! `LogCleaner` and `LogCleanerManager`: what the last passes of the cleaner came to, and what waits for it.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use prometheus_client::encoding::DescriptorEncoder;
use storage::cleaner::PassReport;

use super::export::{gauge, gauges, total};
use crate::broker::Broker;

/// What a broker notes of its compactions: each the figure of the last pass.
#[derive(Debug, Default)]
pub(crate) struct CleanerMeters {
    /// Thousandths of the memory for offsets that were in use.
    buffer_permille: AtomicU64,
    /// Thousandths of what was read that were written again.
    recopied_permille: AtomicU64,
    clean_time_ms: AtomicI64,
    /// Threads that a fault has ended.
    pub(crate) dead_threads: AtomicU64,
}

impl CleanerMeters {
    /// A pass took `elapsed_ms`.
    pub(crate) fn cleaned(&self, report: &PassReport, elapsed_ms: i64) {
        let permille = |part: u64, whole: u64| part.saturating_mul(1000) / whole.max(1);
        // A cast of what is between 0 and 1000.
        let buffer = (report.buffer_utilization.clamp(0.0, 1.0) * 1000.0) as u64;
        self.buffer_permille.store(buffer, Ordering::Relaxed);
        self.recopied_permille.store(permille(report.kept_bytes, report.read_bytes), Ordering::Relaxed);
        self.clean_time_ms.store(elapsed_ms, Ordering::Relaxed);
    }
}

/// Writes all of it.
pub(super) fn encode(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    if broker.cleaner().threads() == 0 {
        return Ok(());
    }
    let meters = &broker.metrics().cleaner;
    let report = broker.log_dirs().cleaning_report(broker.now());
    let percent = |permille: &AtomicU64| (number(permille.load(Ordering::Relaxed)) / 10.0).floor();
    for (name, help, value) in [
        (
            "logcleaner_max_buffer_utilization_percent",
            "Use of the memory for offsets",
            percent(&meters.buffer_permille),
        ),
        ("logcleaner_cleaner_recopy_percent", "What the last pass kept", percent(&meters.recopied_permille)),
        (
            "logcleaner_max_clean_time_secs",
            "Seconds of the last pass",
            (whole(meters.clean_time_ms.load(Ordering::Relaxed)) / 1000.0).floor(),
        ),
        (
            "logcleaner_max_compaction_delay_secs",
            "Seconds beyond max.compaction.lag.ms",
            (whole(report.overdue_ms) / 1000.0).floor(),
        ),
        (
            "logcleaner_deadthreadcount",
            "Threads that a fault has ended",
            number(meters.dead_threads.load(Ordering::Relaxed)),
        ),
        ("logcleanermanager_max_dirty_percent", "The dirtiest log", (report.dirtiest_ratio * 100.0).floor()),
        (
            "logcleanermanager_time_since_last_run_ms",
            "Milliseconds since logs were looked at",
            whole(report.since_last_look_ms),
        ),
    ] {
        gauge(encoder, &format!("kafka_log_{name}"), help, value)?;
    }
    let each = |value: &dyn Fn(usize, u64) -> f64| {
        let dirs = report.uncleanable.iter();
        let series = dirs.map(|(dir, logs, bytes)| {
            (vec![("logDirectory", dir.display().to_string())], value(*logs, *bytes))
        });
        series.collect::<Vec<_>>()
    };
    let count = each(&|logs, _| total(logs));
    gauges(encoder, "kafka_log_logcleanermanager_uncleanable_partitions_count", "Logs left alone", count)?;
    let bytes = each(&|_, bytes| number(bytes));
    gauges(encoder, "kafka_log_logcleanermanager_uncleanable_bytes", "Their bytes that wait", bytes)
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows only doubles")]
fn number(n: u64) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows only doubles")]
fn whole(n: i64) -> f64 {
    n as f64
}
