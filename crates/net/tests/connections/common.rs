//! A server with a handler that the test plays itself, and a peer that speaks bytes.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use net::counters::ListenerCounters;
use net::listener::{BoundListener, ListenerSettings};
use net::table::{ConnectionLimits, ConnectionTable};
use net::{ConnectionInfo, ConnectionSettings, FrameHandler, Outcome, Part, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The first bytes of a Produce request.
pub(crate) const PRODUCE: [u8; 2] = [0, 0];
/// The first bytes of a Metadata request.
pub(crate) const METADATA: [u8; 2] = [0, 3];

/// Answers each request with its own bytes.
pub(crate) struct Echo;

impl FrameHandler for Echo {
    fn handle(&self, _: &Arc<ConnectionInfo>, frame: Bytes, reply: Reply) {
        reply.send(respond(frame));
    }
}

/// Passes each request on to the test.
pub(crate) struct Passing(mpsc::UnboundedSender<(Bytes, Reply)>);

impl FrameHandler for Passing {
    fn handle(&self, _: &Arc<ConnectionInfo>, frame: Bytes, reply: Reply) {
        // A test that has seen enough does not listen any more.
        let _ = self.0.send((frame, reply));
    }
}

/// The requests that a test has been given.
pub(crate) struct Requests(mpsc::UnboundedReceiver<(Bytes, Reply)>);

impl Requests {
    /// A handler that passes requests on, and the place where they come out.
    pub(crate) fn passing() -> (Arc<Passing>, Self) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Passing(sender)), Self(receiver))
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> (Bytes, Reply) {
        self.0.recv().await.expect("a request")
    }

    /// Lets all tasks do what they can do by now, and checks that no request comes of it.
    pub(crate) async fn none(&mut self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert!(self.0.try_recv().is_err(), "a request was started too early");
    }
}

/// An answer of these bytes.
pub(crate) fn respond(bytes: impl Into<Bytes>) -> Outcome {
    Outcome::Respond(vec![Part::Bytes(bytes.into())])
}

/// A listener on a free port, with all that belongs to it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) table: Arc<ConnectionTable>,
    pub(crate) counters: Arc<ListenerCounters>,
    _stop: DropGuard,
}

impl Server {
    pub(crate) fn start(connection: ConnectionSettings, handler: Arc<dyn FrameHandler>) -> Self {
        let settings = ListenerSettings { connection, ..ListenerSettings::new("PLAINTEXT", "127.0.0.1", 0) };
        Self::start_in(&ConnectionTable::new(ConnectionLimits::default()), settings, handler)
    }

    pub(crate) fn start_in(
        table: &Arc<ConnectionTable>,
        settings: ListenerSettings,
        handler: Arc<dyn FrameHandler>,
    ) -> Self {
        let bound = BoundListener::bind(settings).unwrap();
        let address = bound.address();
        let listener = bound.listen(Arc::clone(table), handler).unwrap();
        let counters = listener.counters();
        let stop = CancellationToken::new();
        tokio::spawn(listener.run(stop.clone()));
        Self { address, table: Arc::clone(table), counters, _stop: stop.drop_guard() }
    }

    pub(crate) async fn connect(&self) -> Peer {
        Peer { stream: TcpStream::connect(self.address).await.unwrap() }
    }
}

/// The other end of a connection.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
}

impl Peer {
    /// Sends bytes as they are.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends one frame.
    pub(crate) async fn send(&mut self, body: &[u8]) {
        self.send_raw(&framed(body)).await;
    }

    /// Receives one frame.
    pub(crate) async fn receive(&mut self) -> Vec<u8> {
        let size = self.stream.read_i32().await.unwrap();
        let mut body = vec![0; usize::try_from(size).unwrap()];
        self.stream.read_exact(&mut body).await.unwrap();
        body
    }

    /// Waits for the end, and returns the bytes before it. A reset is an end too: the broker closes a
    /// connection with bytes unread when it distrusts them.
    pub(crate) async fn end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // What was read before a reset is in `bytes` all the same.
        let _ = self.stream.read_to_end(&mut bytes).await;
        bytes
    }
}

/// A request that begins with `key` and is `len` bytes long, marked with `mark`.
pub(crate) fn request(key: [u8; 2], mark: u8, len: usize) -> Vec<u8> {
    let mut body = vec![mark; len.max(3)];
    body[..2].copy_from_slice(&key);
    body
}

/// `body` behind its size.
pub(crate) fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = i32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}
