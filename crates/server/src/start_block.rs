//! What the server says on standard output when it serves.

use std::io::{self, Write};
use std::net::SocketAddr;

use net::listener::Listener;

/// What is said of the start.
pub(crate) struct StartBlock<'a> {
    pub(crate) id: i32,
    pub(crate) listeners: &'a [Listener],
    pub(crate) http: Option<SocketAddr>,
    /// Whether the page is not where it was expected.
    pub(crate) http_moved: bool,
    pub(crate) about: &'a [(String, String)],
}

impl StartBlock<'_> {
    /// Says it, and as its last line what Kafka's tools wait for.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "Blumfeld {}, a Kafka broker", env!("CARGO_PKG_VERSION"))?;
        for listener in self.listeners {
            let name = listener.settings().name.to_lowercase();
            line(out, "listens", &format!("{} ({name})", reachable(listener)))?;
        }
        for (what, how) in self.about {
            line(out, what, how)?;
        }
        if let Some(address) = self.http {
            let moved = if self.http_moved { " (the usual port is taken)" } else { "" };
            line(out, "watch", &format!("http://{address}/readyz /metrics /recovery /explain{moved}"))?;
        }
        if let Some(listener) = self.listeners.first() {
            let address = reachable(listener);
            line(out, "try", &format!("kcat -b {address} -L"))?;
        }
        writeln!(out, "[KafkaServer id={}] started", self.id)?;
        out.flush()
    }
}

fn line(out: &mut impl Write, what: &str, how: &str) -> io::Result<()> {
    writeln!(out, "  {what:<9} {how}")
}

/// An address that reaches the listener from this machine.
fn reachable(listener: &Listener) -> String {
    let (host, port) = (&listener.settings().host, listener.address().port());
    match host.as_str() {
        "" | "0.0.0.0" | "::" => format!("localhost:{port}"),
        host if host.contains(':') => format!("[{host}]:{port}"),
        host => format!("{host}:{port}"),
    }
}
