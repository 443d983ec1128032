//! What the session with ZooKeeper counts, as text of the OpenMetrics format under the names of Kafka's metrics; what
//! Kafka does not tell has names of our own.

use std::fmt::Write;
use std::time::Duration;

use metadata::zookeeper::ZooKeeperStats;

/// The shares of requests whose latency is told.
const QUANTILES: [f64; 6] = [0.5, 0.75, 0.95, 0.98, 0.99, 0.999];

/// All of them, without the final `# EOF`.
pub(super) fn render(stats: &ZooKeeperStats) -> String {
    let mut text = String::with_capacity(2048);
    let listener = [
        ("disconnects", "Connections to ZooKeeper that were lost", stats.disconnects()),
        ("syncconnects", "Connections to ZooKeeper that were made", stats.connects()),
        ("expires", "Sessions that ZooKeeper has ended", stats.expires()),
        // What cannot happen yet is told as never, as it is of a Kafka that does not use it.
        ("authfailures", "Failed authentications with ZooKeeper", 0),
        ("readonlyconnects", "Connections to read-only servers", 0),
        ("saslauthentications", "SASL authentications with ZooKeeper", 0),
    ];
    // Writing to a string cannot fail.
    for (name, help, value) in listener {
        let name = format!("kafka_server_sessionexpirelistener_zookeeper{name}");
        let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} counter\n{name}_total {value}");
    }
    let name = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms";
    let _ = writeln!(text, "# HELP {name} Milliseconds from request to answer.\n# TYPE {name} gauge");
    for quantile in QUANTILES {
        let latency = stats.latencies().quantile(quantile).unwrap_or(Duration::ZERO);
        let _ = writeln!(text, "{name}{{quantile=\"{quantile:.3}\"}} {}", latency.as_secs_f64() * 1000.0);
    }
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    let gauges = [
        (format!("{name}_count"), "Requests that were timed", stats.latencies().count() as f64),
        gauge("connected", "Whether there is a connection", u64::from(stats.is_connected())),
        gauge("session_timeout_ms", "The timeout that ZooKeeper has granted", stats.session_timeout_ms()),
        gauge(
            "longest_silence_ms",
            "How long ZooKeeper was not heard of at most while a session lived",
            stats.longest_silence_ms(),
        ),
    ];
    for (name, help, value) in gauges {
        let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} gauge\n{name} {value}");
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
fn gauge(name: &str, help: &'static str, value: u64) -> (String, &'static str, f64) {
    (format!("blumfeld_zookeeper_{name}"), help, value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_shown_from_the_start() {
        let text = render(&ZooKeeperStats::default());
        for line in [
            "kafka_server_sessionexpirelistener_zookeeperexpires_total 0",
            "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms{quantile=\"0.999\"} 0",
            "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms_count 0",
            "blumfeld_zookeeper_connected 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
        }
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 16);
    }
}
