//! What connections to other brokers count, as text of the OpenMetrics format. Kafka has no metric of all of them
//! together, so the names are our own.

use std::fmt::Write;

use net::counters::Counter;
use net::peer_link::LinkCounters;

/// One counter: name, help, and where it is.
type Shown = (&'static str, &'static str, fn(&LinkCounters) -> &Counter);

const COUNTERS: [Shown; 8] = [
    ("blumfeld_peers_connections_opened", "Connections made to other brokers", |c| &c.connections_opened),
    ("blumfeld_peers_connections_failed", "Connections to other brokers that could not be had", |c| {
        &c.connections_failed
    }),
    ("blumfeld_peers_requests", "Requests sent to other brokers", |c| &c.requests),
    ("blumfeld_peers_answers", "Answers of other brokers", |c| &c.answers),
    ("blumfeld_peers_timed_out", "Requests to other brokers without an answer in time", |c| &c.timed_out),
    ("blumfeld_peers_refused", "Requests to other brokers that were not sent, since too many waited", |c| {
        &c.refused
    }),
    ("blumfeld_peers_outgoing_byte", "Bytes written to other brokers", |c| &c.bytes_out),
    ("blumfeld_peers_incoming_byte", "Bytes of the answers of other brokers", |c| &c.bytes_in),
];

/// All of them, without the final `# EOF`.
pub fn render(counters: &LinkCounters) -> String {
    let mut text = String::with_capacity(1024);
    // Writing to a string cannot fail.
    for (name, help, counter) in COUNTERS {
        let value = counter(counters).get();
        let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} counter\n{name}_total {value}");
    }
    let (opened, closed) = (counters.connections_opened.get(), counters.connections_closed.get());
    let name = "blumfeld_peers_connection_count";
    let help = "Connections to other brokers";
    let open = opened.saturating_sub(closed);
    let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} gauge\n{name} {open}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_shown_once_with_its_value() {
        let counters = LinkCounters::default();
        counters.connections_opened.add(3);
        counters.connections_closed.add(1);
        counters.bytes_in.add(70);
        let text = render(&counters);
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), COUNTERS.len() + 1);
        for line in ["blumfeld_peers_connection_count 2", "blumfeld_peers_incoming_byte_total 70"] {
            assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
        }
    }
}
