//! A request on its way through the broker: who sent it, what it said, and where the answer goes.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
pub use storage::disk::FileRange;
use wire::header::RequestHeader;
use wire::response::Part;
use wire::types::Now;

/// What is known of a connection from its start.
#[derive(Debug)]
pub struct Connection {
    /// The name of the listener, in upper case.
    pub listener: String,
    /// The peer's address.
    pub client_address: IpAddr,
    /// `local-remote-index`, as in Kafka's request log.
    pub id: String,
    /// Its running number: one that was accepted later has a higher one.
    pub number: u64,
    /// Who the peer is, as `Type:name`.
    pub principal: String,
    /// Name and version of the client's library, once ApiVersions has told them.
    pub client_software: OnceLock<(String, String)>,
}

/// How a request ends.
#[derive(Debug)]
pub enum Outcome {
    /// These bytes, in this order, without the size prefix.
    Respond(Vec<Part<FileRange>>),
    /// The protocol wants no answer (Produce with acks 0).
    NoResponse,
    /// The connection is closed without an answer; the reason is logged.
    Close(String),
}

/// The way back to whoever sent a request.
pub trait ReplySink: Send {
    /// Ends the request.
    fn send(self: Box<Self>, outcome: Outcome);

    /// Whether nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool {
        false
    }
}

impl<F: FnOnce(Outcome) + Send> ReplySink for F {
    fn send(self: Box<Self>, outcome: Outcome) {
        self(outcome);
    }
}

/// Takes the outcome of one request, from whatever thread knows it first.
pub struct Reply(Box<dyn ReplySink>);

impl Reply {
    /// A reply by `sink`, which may be a closure.
    pub fn new(sink: impl ReplySink + 'static) -> Self {
        Self(Box::new(sink))
    }

    /// Ends the request.
    pub fn send(self, outcome: Outcome) {
        self.0.send(outcome);
    }

    /// Whether nobody waits for the answer any more: a request that waits may end.
    pub fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reply")
    }
}

/// One request: its header, its connection, its arrival.
#[derive(Clone, Debug)]
pub struct Call {
    /// The decoded header.
    pub header: RequestHeader,
    /// Where it came from.
    pub connection: Arc<Connection>,
    /// When it came.
    pub received: Now,
}

impl Call {
    /// The version of the request, and so of the answer.
    pub fn version(&self) -> i16 {
        self.header.api_version
    }

    /// The client id; absent counts as empty (KAFKA-13385).
    pub fn client_id(&self) -> &str {
        self.header.client_id.as_deref().unwrap_or_default()
    }
}

/// The bytes of an answer that has no file ranges.
pub(crate) fn inline(bytes: Bytes) -> Outcome {
    Outcome::Respond(vec![Part::Bytes(bytes)])
}
