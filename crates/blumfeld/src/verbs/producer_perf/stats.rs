//! What a run has achieved: windows of five seconds, and the whole, in the lines of Kafka's tool.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::lane::Done;
use crate::error::VerbError;
use crate::output::{StreamFormat, stdout, write_json};
use crate::verbs::latencies::Latencies;

/// How often a line is printed.
const WINDOW: Duration = Duration::from_secs(5);
const MIB: f64 = 1024.0 * 1024.0;

/// Records, their bytes and their latencies over a time.
#[derive(Debug)]
struct Span {
    start: Instant,
    bytes: u64,
    latencies: Latencies,
}

impl Span {
    fn new(start: Instant) -> Self {
        Self { start, bytes: 0, latencies: Latencies::default() }
    }

    fn add(&mut self, done: &Done) {
        self.bytes += done.value_bytes;
        for made in &done.made {
            self.latencies.add(done.at.duration_since(*made));
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Stats {
    format: StreamFormat,
    all: Span,
    window: Span,
    batches: u64,
    failed: u64,
}

impl Stats {
    /// Begins now.
    pub(super) fn start(format: StreamFormat) -> Self {
        let now = Instant::now();
        Self { format, all: Span::new(now), window: Span::new(now), batches: 0, failed: 0 }
    }

    /// Counts a batch, and prints a line when a window ends with it.
    ///
    /// # Errors
    /// If the output cannot be written to.
    pub(super) fn done(&mut self, done: &Done) -> Result<(), VerbError> {
        self.batches += 1;
        if done.code != 0 {
            self.failed += u64::try_from(done.made.len()).unwrap_or(u64::MAX);
            return Ok(());
        }
        self.all.add(done);
        self.window.add(done);
        let elapsed = done.at.duration_since(self.window.start);
        if elapsed < WINDOW {
            return Ok(());
        }
        let mut out = stdout();
        match self.format {
            StreamFormat::Kafka => writeln!(out, "{}", window_line(&self.window, elapsed))?,
            StreamFormat::Json => write_json(&mut out, &to_json("window", &self.window, elapsed))?,
        }
        self.window = Span::new(done.at);
        Ok(out.flush()?)
    }

    /// Records that were not accepted.
    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// Prints the whole, and some figures of the client if they are wanted.
    ///
    /// # Errors
    /// If the output cannot be written to.
    pub(super) fn end(&self, print_metrics: bool) -> Result<(), VerbError> {
        let elapsed = self.all.start.elapsed();
        let mut out = stdout();
        match self.format {
            StreamFormat::Kafka => writeln!(out, "{}", total_line(&self.all, elapsed))?,
            StreamFormat::Json => write_json(&mut out, &to_json("total", &self.all, elapsed))?,
        }
        if print_metrics && self.format == StreamFormat::Kafka {
            writeln!(out, "\n{:<50} Value", "Metric Name")?;
            let records = self.all.latencies.count();
            let each = |total: u64, parts: u64| if parts == 0 { 0.0 } else { total as f64 / parts as f64 };
            for (name, value) in [
                ("producer-metrics:batch-size-avg", each(self.all.bytes, self.batches)),
                ("producer-metrics:record-error-total", self.failed as f64),
                ("producer-metrics:record-send-total", records as f64),
                ("producer-metrics:record-size-avg", each(self.all.bytes, records)),
                ("producer-metrics:records-per-request-avg", each(records, self.batches)),
                ("producer-metrics:request-total", self.batches as f64),
            ] {
                writeln!(out, "{name:<50} : {value:.3}")?;
            }
        }
        Ok(out.flush()?)
    }
}

/// Records and MiB a second.
fn rates(span: &Span, elapsed: Duration) -> (f64, f64) {
    let seconds = elapsed.as_secs_f64().max(1e-9);
    (span.latencies.count() as f64 / seconds, span.bytes as f64 / seconds / MIB)
}

fn window_line(span: &Span, elapsed: Duration) -> String {
    let (records, mib) = rates(span, elapsed);
    let latencies = &span.latencies;
    format!(
        "{} records sent, {records:.1} records/sec ({mib:.2} MB/sec), {:.1} ms avg latency, {:.1} ms max latency.",
        latencies.count(),
        latencies.mean_ms(),
        latencies.max_ms()
    )
}

fn total_line(span: &Span, elapsed: Duration) -> String {
    let (records, mib) = rates(span, elapsed);
    let latencies = &span.latencies;
    let [p50, p95, p99, p999] = [0.5, 0.95, 0.99, 0.999].map(|share| latencies.percentile_ms(share) as u64);
    format!(
        "{} records sent, {records:.6} records/sec ({mib:.2} MB/sec), {:.2} ms avg latency, {:.2} ms max latency, \
         {p50} ms 50th, {p95} ms 95th, {p99} ms 99th, {p999} ms 99.9th.",
        latencies.count(),
        latencies.mean_ms(),
        latencies.max_ms()
    )
}

fn to_json(what: &str, span: &Span, elapsed: Duration) -> Value {
    let (records, mib) = rates(span, elapsed);
    let latencies = &span.latencies;
    json!({
        "span": what,
        "records": latencies.count(),
        "bytes": span.bytes,
        "seconds": elapsed.as_secs_f64(),
        "recordsPerSecond": records,
        "mebibytesPerSecond": mib,
        "latencyMs": {
            "mean": latencies.mean_ms(),
            "max": latencies.max_ms(),
            "p50": latencies.percentile_ms(0.5),
            "p95": latencies.percentile_ms(0.95),
            "p99": latencies.percentile_ms(0.99),
            "p999": latencies.percentile_ms(0.999),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span() -> Span {
        let mut span = Span::new(Instant::now());
        span.bytes = 3 << 20;
        for millis in [1, 2, 30] {
            span.latencies.add(Duration::from_millis(millis));
        }
        span
    }

    #[test]
    fn the_lines_are_those_that_scripts_expect() {
        let elapsed = Duration::from_millis(1500);
        assert_eq!(
            window_line(&span(), elapsed),
            "3 records sent, 2.0 records/sec (2.00 MB/sec), 11.0 ms avg latency, 30.0 ms max latency."
        );
        assert_eq!(
            total_line(&span(), elapsed),
            "3 records sent, 2.000000 records/sec (2.00 MB/sec), 11.00 ms avg latency, 30.00 ms max latency, 2 ms \
             50th, 30 ms 95th, 30 ms 99th, 30 ms 99.9th."
        );
        assert_eq!(to_json("total", &span(), elapsed)["latencyMs"]["p50"], 2.0);
    }

    #[test]
    fn what_was_refused_is_counted_apart() {
        let mut stats = Stats::start(StreamFormat::Kafka);
        let now = Instant::now();
        stats.done(&Done { made: vec![now; 3], value_bytes: 5, at: now, code: 10 }).unwrap();
        assert_eq!((stats.failed(), stats.all.latencies.count()), (3, 0));
    }
}
