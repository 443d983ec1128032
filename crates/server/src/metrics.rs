//! The server's own metrics, under the names that jmx_exporter's usual rules give to Kafka's MBeans, as text of
//! the OpenMetrics format. What Kafka has no name for begins with `blumfeld_`.
//!
//! Threads that serve sockets serve all listeners, and handle the requests as well; so the label
//! `networkProcessor` is always 0, and both idle percentages are the same.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use net::counters::{Counter, ListenerCounters};
use tokio::runtime::Handle;

/// The least time over which an idle share is measured.
const IDLE_WINDOW: Duration = Duration::from_secs(1);

/// A listener's name, and what it counts.
type Counted = (Arc<str>, Arc<ListenerCounters>);

/// Reads the counters of listeners and threads.
#[derive(Debug)]
pub struct ServerMetrics {
    listeners: Mutex<Vec<Counted>>,
    runtime: Handle,
    idle: Mutex<IdleSample>,
}

#[derive(Clone, Copy, Debug)]
struct IdleSample {
    at: Instant,
    busy: Duration,
    /// The share of time, 0 to 1, in which the threads had nothing to do.
    idle: f64,
}

/// One kind of metric: name, help, and the counter it shows.
type Shown = (&'static str, &'static str, fn(&ListenerCounters) -> &Counter);

const COUNTERS: [Shown; 7] = [
    ("kafka_server_socket_server_metrics_connection_creation", "Connections accepted", |c| {
        &c.connections_opened
    }),
    ("kafka_server_socket_server_metrics_connection_close", "Connections ended", |c| &c.connections_closed),
    ("kafka_server_socket_server_metrics_incoming_byte", "Bytes read", |c| &c.bytes_in),
    ("kafka_server_socket_server_metrics_outgoing_byte", "Bytes written", |c| &c.bytes_out),
    ("kafka_server_socket_server_metrics_request", "Requests", |c| &c.requests),
    ("kafka_server_socket_server_metrics_response", "Responses", |c| &c.responses),
    ("kafka_server_socket_server_metrics_expired_connections_killed", "Idle connections closed", |c| {
        &c.connections_expired
    }),
];

const OWN_COUNTERS: [Shown; 5] = [
    ("blumfeld_net_invalid_frames", "Frames of a size that none may have", |c| &c.invalid_frames),
    ("blumfeld_net_refused_connections", "Connections over the limit of their address", |c| {
        &c.connections_refused
    }),
    ("blumfeld_net_throttled_connections", "Connections that came too fast from their address", |c| {
        &c.connections_throttled
    }),
    (
        "blumfeld_net_accept_throttle_ms",
        "Time for which nothing was accepted since connections came too fast",
        |c| &c.accept_throttle_ms,
    ),
    ("blumfeld_net_cold_ranges", "Pieces of files read from disk before they were sent", |c| &c.cold_ranges),
];

impl ServerMetrics {
    /// Metrics of this runtime's threads, and of no listener yet.
    pub fn new(runtime: Handle) -> Self {
        let idle = IdleSample { at: Instant::now(), busy: busy(&runtime), idle: 1.0 };
        Self { listeners: Mutex::default(), runtime, idle: Mutex::new(idle) }
    }

    /// A listener is there, and counts here.
    pub fn listens(&self, name: Arc<str>, counters: Arc<ListenerCounters>) {
        self.lock().push((name, counters));
    }

    /// A listener is gone, and its series with it.
    pub fn forget(&self, name: &str) {
        self.lock().retain(|(listener, _)| **listener != *name);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Counted>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them as text, without the final `# EOF`.
    pub fn render(&self) -> String {
        let listeners = self.lock().clone();
        let mut text = String::with_capacity(4096);
        connection_counts(&mut text, &listeners);
        for (name, help, counter) in COUNTERS {
            counters(&mut text, &listeners, (name, help, counter), &[("networkProcessor", "0")]);
        }
        for (name, help, counter) in OWN_COUNTERS {
            counters(&mut text, &listeners, (name, help, counter), &[]);
        }
        let idle = self.idle();
        let expired: u64 = listeners.iter().map(|(_, c)| c.connections_expired.get()).sum();
        for (name, help, value) in [
            ("kafka_network_socketserver_networkprocessoravgidle_percent", "Idle share of the threads", idle),
            ("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "Idle share", idle),
            (
                "kafka_network_socketserver_expiredconnectionskilledcount",
                "Idle connections closed",
                as_f64(expired),
            ),
        ] {
            gauge(&mut text, name, help, value);
        }
        text
    }

    /// The idle share since the last time somebody asked, over a second at least.
    fn idle(&self) -> f64 {
        let mut sample = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = sample.at.elapsed();
        if elapsed >= IDLE_WINDOW {
            let now = busy(&self.runtime);
            let threads = self.runtime.metrics().num_workers().max(1);
            let share = now.saturating_sub(sample.busy).as_secs_f64() / elapsed.as_secs_f64();
            let idle = 1.0 - share / as_f64(threads as u64);
            *sample = IdleSample { at: Instant::now(), busy: now, idle: idle.clamp(0.0, 1.0) };
        }
        sample.idle
    }
}

/// For how long the runtime's threads have been at work, all together.
fn busy(runtime: &Handle) -> Duration {
    let metrics = runtime.metrics();
    (0..metrics.num_workers()).map(|worker| metrics.worker_total_busy_duration(worker)).sum()
}

fn connection_counts(text: &mut String, listeners: &[Counted]) {
    let name = "kafka_server_socket_server_metrics_connection_count";
    head(text, name, "gauge", "Connections being served");
    for (listener, counters) in listeners {
        let count = counters.connections();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}{{listener=\"{listener}\",networkProcessor=\"0\"}} {count}");
    }
}

fn counters(text: &mut String, listeners: &[Counted], (name, help, counter): Shown, labels: &[(&str, &str)]) {
    head(text, name, "counter", help);
    for (listener, counters) in listeners {
        let _ = write!(text, "{name}_total{{listener=\"{listener}\"");
        for (key, value) in labels {
            let _ = write!(text, ",{key}=\"{value}\"");
        }
        let _ = writeln!(text, "}} {}", counter(counters).get());
    }
}

fn gauge(text: &mut String, name: &str, help: &str, value: f64) {
    head(text, name, "gauge", help);
    let _ = writeln!(text, "{name} {value}");
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}");
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; counts stay far below 2^53")]
fn as_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_listener_has_its_series() {
        let counters = Arc::new(ListenerCounters::default());
        counters.connections_opened.add(5);
        counters.connections_closed.add(2);
        counters.bytes_in.add(1234);
        let metrics = ServerMetrics::new(Handle::current());
        metrics.listens(Arc::from("PLAINTEXT"), counters);
        metrics.listens(Arc::from("INTERNAL"), Arc::default());
        let text = metrics.render();
        for line in [
            r#"kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT",networkProcessor="0"} 3"#,
            r#"kafka_server_socket_server_metrics_connection_count{listener="INTERNAL",networkProcessor="0"} 0"#,
            r#"kafka_server_socket_server_metrics_incoming_byte_total{listener="PLAINTEXT",networkProcessor="0"} 1234"#,
            r#"blumfeld_net_invalid_frames_total{listener="INTERNAL"} 0"#,
            "# TYPE kafka_server_socket_server_metrics_request counter",
            "kafka_network_socketserver_networkprocessoravgidle_percent 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        let heads: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let mut unique = heads.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(heads.len(), unique.len(), "no metric is declared twice");
        metrics.forget("INTERNAL");
        let text = metrics.render();
        assert!(text.contains("PLAINTEXT") && !text.contains("INTERNAL"));
    }
}
