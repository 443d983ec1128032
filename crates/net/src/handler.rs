//! Where requests go, and how their answers come back.
//!
//! A request is handed over on the connection's own task, strictly in the order of arrival; its [`Reply`] may
//! be used there and then, which is the fast way, or later from any thread.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;

use crate::exchange::Exchange;
use crate::range::Part;

/// Serves the requests of all connections of a listener.
pub trait FrameHandler: Send + Sync + 'static {
    /// Takes one request: the bytes of `frame` without their size. Called on a thread that serves many other
    /// connections, so it must not wait for anything; what must wait keeps the `reply` for later.
    fn handle(&self, connection: &Arc<ConnectionInfo>, frame: Bytes, reply: Reply);

    /// The connection is gone; answers to its requests will be thrown away.
    fn closed(&self, _connection: &Arc<ConnectionInfo>) {}
}

/// How a request ends.
pub enum Outcome {
    /// These parts, in this order, without the size: header and body of the response.
    Respond(Vec<Part>),
    /// The protocol wants no answer (Produce with acks 0).
    NoResponse,
    /// The connection is closed once the answers to earlier requests are written.
    Close {
        /// Why, for the log.
        reason: String,
    },
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Respond(parts) => f.debug_tuple("Respond").field(&parts.len()).finish(),
            Self::NoResponse => f.write_str("NoResponse"),
            Self::Close { reason } => f.debug_struct("Close").field("reason", reason).finish(),
        }
    }
}

/// Ends one request, once. Dropped unused, it closes the connection.
pub struct Reply {
    exchange: Option<Arc<Exchange>>,
    sequence: u64,
}

impl Reply {
    pub(crate) fn new(exchange: Arc<Exchange>, sequence: u64) -> Self {
        Self { exchange: Some(exchange), sequence }
    }

    /// Ends the request.
    pub fn send(mut self, outcome: Outcome) {
        self.answer(outcome, Duration::ZERO);
    }

    /// Ends the request, and lets the connection start no other one for `mute` from now (KIP-219): the answer
    /// itself is not held back.
    pub fn send_and_mute(mut self, outcome: Outcome, mute: Duration) {
        self.answer(outcome, mute);
    }

    /// Whether nobody waits for the answer any more, since the connection is gone.
    pub fn is_abandoned(&self) -> bool {
        self.exchange.as_ref().is_none_or(|exchange| exchange.is_closed())
    }

    fn answer(&mut self, outcome: Outcome, mute: Duration) {
        if let Some(exchange) = self.exchange.take() {
            exchange.answer(self.sequence, outcome, mute);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.exchange.is_some() {
            let reason = String::from("the request was dropped without an answer");
            self.answer(Outcome::Close { reason }, Duration::ZERO);
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

/// What is known of a connection from its start.
#[derive(Debug)]
pub struct ConnectionInfo {
    /// The listener's name, in upper case.
    pub listener: Arc<str>,
    /// Our end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// The running number of the connection in this process.
    pub index: u64,
    /// Whatever the handler wants to keep with the connection.
    pub attachment: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl ConnectionInfo {
    /// What is known when a connection has been accepted.
    pub fn new(listener: Arc<str>, local: SocketAddr, peer: SocketAddr, index: u64) -> Self {
        Self { listener, local, peer, index, attachment: OnceLock::new() }
    }
}

impl fmt::Display for ConnectionInfo {
    /// `localHost:localPort-remoteHost:remotePort-index`, as Kafka's request log has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (local, peer) = (self.local, self.peer);
        let (here, there) = (local.ip().to_canonical(), peer.ip().to_canonical());
        write!(f, "{here}:{}-{there}:{}-{}", local.port(), peer.port(), self.index)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6};

    use super::*;

    /// confluentinc/librdkafka#437: a scope is no part of an address, and nobody who parses one expects it.
    #[test]
    fn a_connection_is_named_by_addresses_without_scopes() {
        let listener = || Arc::from("PLAINTEXT");
        let six = |address: Ipv6Addr, port| SocketAddr::V6(SocketAddrV6::new(address, port, 0, 3));
        let near: Ipv6Addr = "fe80::1".parse().unwrap();
        let info =
            ConnectionInfo::new(listener(), six(near, 9092), six("fe80::2".parse().unwrap(), 40_000), 7);
        assert_eq!(info.to_string(), "fe80::1:9092-fe80::2:40000-7");
        let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
        let info = ConnectionInfo::new(listener(), six(mapped, 9092), six(mapped, 40_000), 8);
        assert_eq!(info.to_string(), "127.0.0.1:9092-127.0.0.1:40000-8");
    }
}
