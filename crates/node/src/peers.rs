//! The other brokers of the cluster, as this broker reaches them: one request out, one answer back.
//!
//! Whoever sends decides what to do with a failure; a connection is made when it is needed, kept while it works, and
//! forgotten when it fails. Requests over one [`Channel`] reach the peer in the order in which they were handed in.

use std::time::Duration;

use bytes::Bytes;
use wire::types::BrokerId;

/// Why two requests to the same broker go over different connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// The controller's orders: LeaderAndIsr, UpdateMetadata, StopReplica.
    Control,
    /// What a broker asks of the controller: AlterPartition, AllocateProducerIds, ControlledShutdown.
    ToController,
    /// Replica fetcher of this number (`num.replica.fetchers`).
    Fetcher(u32),
}

/// One ordered way to one broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel {
    /// The broker at the other end.
    pub broker: BrokerId,
    /// What the way is for.
    pub purpose: Purpose,
}

/// Where a peer listens for brokers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddress {
    /// The advertised host.
    pub host: String,
    /// The advertised port.
    pub port: u16,
}

/// A request to a peer.
#[derive(Clone, Debug)]
pub struct PeerRequest {
    /// The way it goes.
    pub channel: Channel,
    /// Where the peer listens. Another address than that of the request before replaces the connection.
    pub address: PeerAddress,
    /// Header and body, without the size prefix. The correlation id is the sender's to choose and to check.
    pub frame: Bytes,
    /// How long connecting and answering may take together.
    pub timeout: Duration,
}

/// Why a request has no answer. In every case but [`PeerError::Refused`] it may have reached the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// No connection can be had.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The connection ended before the answer.
    #[error("the connection failed: {0}")]
    Disconnected(String),
    /// No answer came in time; the connection is closed.
    #[error("no answer in time")]
    TimedOut,
    /// The channel was closed, or too many requests wait for it; nothing was sent.
    #[error("not sent")]
    Refused,
}

/// Takes the answer to one request, once: header and body without the size prefix.
pub type PeerDone = Box<dyn FnOnce(Result<Bytes, PeerError>) + Send>;

/// The way to the other brokers.
pub trait Peers: Send + Sync {
    /// Hands in a request. `done` is called exactly once, possibly within this call, from any thread.
    fn send(&self, request: PeerRequest, done: PeerDone);

    /// Ends the connection of a channel; what waits for an answer there fails. The next request opens it anew.
    fn close(&self, channel: Channel);
}

/// No other brokers: for a broker that is alone in its cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPeers;

impl Peers for NoPeers {
    fn send(&self, _request: PeerRequest, done: PeerDone) {
        done(Err(PeerError::Refused));
    }

    fn close(&self, _channel: Channel) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_is_alone_is_told_at_once_that_nothing_was_sent() {
        let channel = Channel { broker: BrokerId(2), purpose: Purpose::Fetcher(0) };
        let address = PeerAddress { host: "localhost".to_owned(), port: 9092 };
        let request = PeerRequest { channel, address, frame: Bytes::new(), timeout: Duration::from_secs(1) };
        let (sender, receiver) = std::sync::mpsc::channel();
        NoPeers.send(request, Box::new(move |answer| drop(sender.send(answer))));
        assert_eq!(receiver.try_recv(), Ok(Err(PeerError::Refused)));
    }
}
