//! A way to another broker: one connection, and one request on it at a time, in the order of handing in.
//!
//! Brokers talk to each other in the versions that `inter.broker.protocol.version` fixes, so nothing is
//! negotiated: a frame goes out as it was handed in, and the next frame that comes back is its answer. The
//! connection is made when there is something to send and kept while it works. Whatever goes wrong with a
//! request ends it, since nobody can tell any more where the next answer begins. A connection that the peer
//! ends while nothing is asked is replaced without a failure. Every request is told its end exactly once, also
//! when the link or the runtime under it goes away.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::counters::Counter;
use crate::frame_reader::FrameError;

mod answer;
mod dial;

pub use dial::Dialer;

/// Requests that may wait behind the one that is being served.
pub const MAX_WAITING: usize = 64;

/// Where a peer listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerHost {
    /// A host name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for PeerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') && !host.starts_with('[') {
            write!(f, "[{host}]:{port}")
        } else {
            write!(f, "{host}:{port}")
        }
    }
}

/// Takes the end of a request: the answer without its size prefix, or why there is none.
pub type LinkDone = Box<dyn FnOnce(Result<Bytes, LinkError>) + Send>;

/// A request to the peer.
pub struct LinkRequest {
    /// Where it goes. Another address than that of the request before replaces the connection.
    pub address: PeerHost,
    /// Header and body, without the size prefix.
    pub frame: Bytes,
    /// When it ends at the latest, counted from its handing in: waiting, connecting and answering together.
    pub deadline: Instant,
    /// Told the end, on a thread of the runtime or within [`PeerLink::send`].
    pub done: LinkDone,
}

/// Why a request has no answer.
#[derive(Debug, Error)]
pub enum LinkError {
    /// No connection can be had; nothing was sent.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// The address as given.
        address: PeerHost,
        /// What the system says.
        error: io::Error,
    },
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// The peer closed the connection instead of answering.
    #[error("the peer closed the connection")]
    Closed,
    /// The answer has a size that no answer may have.
    #[error("the answer is a {0}")]
    Size(#[from] FrameError),
    /// The peer said something that nobody asked for.
    #[error("bytes behind the answer")]
    Unasked,
    /// The link was closed while the answer was awaited.
    #[error("closed by this broker")]
    Ended,
    /// No answer came in time.
    #[error("no answer in time")]
    TimedOut,
    /// Too many requests wait, or the link is closed; nothing was sent.
    #[error("not sent")]
    Refused,
}

/// What all links of one purpose have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// SO_RCVBUF in bytes; none: the system's choice.
    pub receive_buffer: Option<usize>,
    /// The largest answer in bytes.
    pub max_answer_bytes: usize,
}

/// What links count; all only rise.
#[derive(Debug, Default)]
pub struct LinkCounters {
    /// Connections that were made.
    pub connections_opened: Counter,
    /// Connections that are gone, for whatever reason.
    pub connections_closed: Counter,
    /// Connections that could not be had.
    pub connections_failed: Counter,
    /// Requests that were sent.
    pub requests: Counter,
    /// Answers that came back whole and in time.
    pub answers: Counter,
    /// Requests without an answer in time.
    pub timed_out: Counter,
    /// Requests that were not sent, since too many waited or their link was closed.
    pub refused: Counter,
    /// Bytes of the requests that were sent, size prefixes included.
    pub bytes_out: Counter,
    /// Bytes of the answers, size prefixes included.
    pub bytes_in: Counter,
}

/// See the module. Dropping it closes it.
#[derive(Debug)]
pub struct PeerLink {
    requests: mpsc::Sender<Waiting>,
    outstanding: Arc<AtomicUsize>,
    counters: Arc<LinkCounters>,
    closed: CancellationToken,
}

impl PeerLink {
    /// Starts the link's task on `runtime`; it connects with its first request.
    pub fn start(
        runtime: &Handle,
        settings: LinkSettings,
        dialer: Dialer,
        counters: Arc<LinkCounters>,
    ) -> Self {
        let (sender, requests) = mpsc::channel(MAX_WAITING);
        let closed = CancellationToken::new();
        let task = Task { settings, dialer, counters: Arc::clone(&counters), requests, connection: None };
        runtime.spawn(task.run(closed.clone()));
        Self { requests: sender, outstanding: Arc::default(), counters, closed }
    }

    /// Hands in a request. Its `done` is called exactly once, within this call if it is refused.
    pub fn send(&self, request: LinkRequest) {
        let LinkRequest { address, frame, deadline, done } = request;
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        let ticket = Ticket {
            done: Some(done),
            sent: false,
            outstanding: Arc::clone(&self.outstanding),
            counters: Arc::clone(&self.counters),
        };
        // What the queue does not take is dropped here, and thereby told that it is refused.
        let _ = self.requests.try_send(Waiting { address, frame, deadline, ticket });
    }

    /// Whether no request waits or is being served.
    pub fn is_idle(&self) -> bool {
        self.outstanding.load(Ordering::Relaxed) == 0
    }

    /// Whether the link takes no more requests.
    pub fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Ends the connection. What waits is told [`LinkError::Refused`], what was sent [`LinkError::Ended`].
    pub fn close(&self) {
        self.closed.cancel();
    }
}

impl Drop for PeerLink {
    fn drop(&mut self) {
        self.close();
    }
}

/// A request and the promise to tell its end.
#[derive(Debug)]
struct Waiting {
    address: PeerHost,
    frame: Bytes,
    deadline: Instant,
    ticket: Ticket,
}

/// Tells a request its end, exactly once, whatever happens to those who should do it.
struct Ticket {
    done: Option<LinkDone>,
    sent: bool,
    outstanding: Arc<AtomicUsize>,
    counters: Arc<LinkCounters>,
}

impl Ticket {
    fn tell(&mut self, end: Result<Bytes, LinkError>) {
        let Some(done) = self.done.take() else { return };
        match &end {
            Ok(_) => self.counters.answers.add(1),
            Err(LinkError::TimedOut) => self.counters.timed_out.add(1),
            Err(LinkError::Connect { .. }) => self.counters.connections_failed.add(1),
            Err(LinkError::Refused) => self.counters.refused.add(1),
            Err(_) => {}
        }
        // Whoever is told may hand in the next request at once, and finds room for it.
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
        done(end);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.tell(Err(if self.sent { LinkError::Ended } else { LinkError::Refused }));
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("sent", &self.sent).finish_non_exhaustive()
    }
}

/// A connection that nothing is asked on.
struct Connection {
    address: PeerHost,
    stream: TcpStream,
    _counted: Counted,
}

/// Counts the end of a connection.
struct Counted(Arc<LinkCounters>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections_closed.add(1);
    }
}

/// Serves the requests of one link.
struct Task {
    settings: LinkSettings,
    dialer: Dialer,
    counters: Arc<LinkCounters>,
    requests: mpsc::Receiver<Waiting>,
    connection: Option<Connection>,
}

impl Task {
    async fn run(mut self, closed: CancellationToken) {
        closed.run_until_cancelled(self.serve()).await;
        self.connection = None;
        self.requests.close();
        // Those who still wait are told as they are dropped.
        while self.requests.recv().await.is_some() {}
    }

    async fn serve(&mut self) {
        while let Some(Waiting { address, frame, deadline, mut ticket }) = self.next().await {
            let end = self.exchange(address, frame, deadline, &mut ticket).await;
            ticket.tell(end);
        }
    }

    /// The next request. A connection that ends meanwhile, or on which something unasked comes, is given up.
    async fn next(&mut self) -> Option<Waiting> {
        if let Some(connection) = &self.connection {
            tokio::select! {
                biased;
                request = self.requests.recv() => return request,
                () = broken(&connection.stream) => self.connection = None,
            }
        }
        self.requests.recv().await
    }

    async fn exchange(
        &mut self,
        address: PeerHost,
        frame: Bytes,
        deadline: Instant,
        ticket: &mut Ticket,
    ) -> Result<Bytes, LinkError> {
        if Instant::now() >= deadline {
            return Err(LinkError::TimedOut);
        }
        // Taken out: it is put back only when the answer has come as a whole.
        let kept = self.connection.take().filter(|it| it.address == address && is_silent(&it.stream));
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect(address, deadline).await?,
        };
        ticket.sent = true;
        self.counters.requests.add(1);
        self.counters.bytes_out.add(answer::with_prefix(frame.len()));
        let asked = answer::ask(&mut connection.stream, &frame, self.settings.max_answer_bytes);
        let answer = timeout_at(deadline, asked).await.map_err(|_| LinkError::TimedOut)??;
        self.counters.bytes_in.add(answer::with_prefix(answer.len()));
        self.connection = Some(connection);
        Ok(answer)
    }

    async fn connect(&self, address: PeerHost, deadline: Instant) -> Result<Connection, LinkError> {
        match self.dialer.connect(&address, self.settings.receive_buffer, deadline).await {
            Ok(stream) => {
                self.counters.connections_opened.add(1);
                Ok(Connection { address, stream, _counted: Counted(Arc::clone(&self.counters)) })
            }
            Err(error) => Err(LinkError::Connect { address, error }),
        }
    }
}

/// Waits until a connection on which nothing is asked ends or says something.
async fn broken(stream: &TcpStream) {
    while is_silent(stream) {
        if stream.readable().await.is_err() {
            return;
        }
    }
}

/// Whether the peer has neither ended the connection nor said anything.
fn is_silent(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests;
