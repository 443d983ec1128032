//! A listening socket. It is bound early, so that its port is known and a taken one stops the start, and
//! listens late, when requests can be served (KAFKA-14658): until then a connection is refused, not left
//! hanging.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, ConnectionSettings};
use crate::counters::ListenerCounters;
use crate::handler::{ConnectionInfo, FrameHandler};
use crate::table::{ConnectionTable, Origin, Refused};

/// How long an acceptor rests when the system has no descriptor or memory for another socket.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Sockets of a listener that came too fast from their addresses and wait to be closed; more are closed at once.
const MOST_TOO_FAST: usize = 1_000;

/// What a listener is told.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// Its name, in upper case.
    pub name: Arc<str>,
    /// A host name or address. Empty, `0.0.0.0` and `::` are all interfaces, IPv4 and IPv6, as in Java.
    pub host: String,
    /// The port; zero: any free one.
    pub port: u16,
    /// Whether a listener with an address of the other family has the same port (KIP-797): a wildcard means its own family
    /// only then.
    pub shares_port: bool,
    /// Connections that the kernel keeps until they are accepted (`socket.listen.backlog.size`).
    pub backlog: i32,
    /// SO_SNDBUF of its connections in bytes (`socket.send.buffer.bytes`); none: the system's choice.
    pub send_buffer: Option<usize>,
    /// SO_RCVBUF of its connections in bytes (`socket.receive.buffer.bytes`); none: the system's choice.
    pub receive_buffer: Option<usize>,
    /// How its connections behave.
    pub connection: ConnectionSettings,
}

impl ListenerSettings {
    /// Kafka's defaults for a listener.
    pub fn new(name: &str, host: &str, port: u16) -> Self {
        Self {
            name: Arc::from(name),
            host: String::from(host),
            port,
            shares_port: false,
            backlog: 50,
            send_buffer: None,
            receive_buffer: None,
            connection: ConnectionSettings::default(),
        }
    }
}

/// Why a listener cannot be had.
#[derive(Debug, Error)]
pub enum BindError {
    /// The host has no address.
    #[error("listener {name}: the host {host:?} cannot be resolved: {error}")]
    Resolve {
        /// The listener.
        name: Arc<str>,
        /// The host as given.
        host: String,
        /// What the resolver says.
        error: io::Error,
    },
    /// The address cannot be bound, mostly since another process has it.
    #[error("listener {name}: {address} cannot be bound: {error}")]
    Bind {
        /// The listener.
        name: Arc<str>,
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
}

/// A socket that has its port and does not listen yet.
#[derive(Debug)]
pub struct BoundListener {
    settings: ListenerSettings,
    socket: Socket,
    address: SocketAddr,
}

impl BoundListener {
    /// Takes the port.
    ///
    /// # Errors
    /// If the host has no address or the port is taken.
    pub fn bind(settings: ListenerSettings) -> Result<Self, BindError> {
        let mut last = None;
        for address in addresses(&settings)? {
            match bind(&settings, address) {
                Ok((socket, address)) => return Ok(Self { settings, socket, address }),
                // The second address of "all interfaces" is for machines without IPv6.
                Err(error) => last = Some((address, error)),
            }
        }
        let name = Arc::clone(&settings.name);
        Err(match last {
            Some((address, error)) => BindError::Bind { name, address, error },
            None => BindError::Resolve {
                name,
                host: settings.host,
                error: io::ErrorKind::AddrNotAvailable.into(),
            },
        })
    }

    /// The address with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it was told.
    pub fn settings(&self) -> &ListenerSettings {
        &self.settings
    }

    /// Begins to listen. To be called within a tokio runtime.
    ///
    /// # Errors
    /// If the port was taken by another process after all.
    pub fn listen(self, table: Arc<ConnectionTable>, handler: Arc<dyn FrameHandler>) -> io::Result<Listener> {
        self.socket.listen(self.settings.backlog)?;
        self.socket.set_nonblocking(true)?;
        let listener = TcpListener::from_std(self.socket.into())?;
        let origin = Origin {
            listener: Arc::clone(&self.settings.name),
            counters: Arc::new(ListenerCounters::default()),
        };
        Ok(Listener { settings: self.settings, listener, address: self.address, origin, table, handler })
    }
}

fn addresses(settings: &ListenerSettings) -> Result<Vec<SocketAddr>, BindError> {
    let port = settings.port;
    let is_everywhere = settings.host == Ipv4Addr::UNSPECIFIED.to_string() && !settings.shares_port;
    if settings.host.is_empty() || is_everywhere {
        return Ok(vec![(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()]);
    }
    let resolved = (settings.host.as_str(), port).to_socket_addrs();
    // Like Java, the first address that the resolver gives, IPv4 before IPv6.
    let mut resolved: Vec<_> = match resolved {
        Ok(resolved) => resolved.collect(),
        Err(error) => {
            let (name, host) = (Arc::clone(&settings.name), settings.host.clone());
            return Err(BindError::Resolve { name, host, error });
        }
    };
    resolved.sort_by_key(SocketAddr::is_ipv6);
    resolved.truncate(1);
    Ok(resolved)
}

fn bind(settings: &ListenerSettings, address: SocketAddr) -> io::Result<(Socket, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // Not both families if the IPv4 half belongs to another listener.
        socket.set_only_v6(!address.ip().is_unspecified() || settings.shares_port)?;
    }
    if let Some(bytes) = settings.receive_buffer {
        // Accepted sockets inherit it; set later it could not widen the window any more.
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(&address.into())?;
    let bound = socket.local_addr()?.as_socket();
    Ok((socket, bound.unwrap_or(address)))
}

/// A listening socket, whose connections are served while [`run`](Self::run) runs and after.
pub struct Listener {
    settings: ListenerSettings,
    listener: TcpListener,
    address: SocketAddr,
    origin: Origin,
    table: Arc<ConnectionTable>,
    handler: Arc<dyn FrameHandler>,
}

impl Listener {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it was told.
    pub fn settings(&self) -> &ListenerSettings {
        &self.settings
    }

    /// What it counts.
    pub fn counters(&self) -> Arc<ListenerCounters> {
        Arc::clone(&self.origin.counters)
    }

    /// Accepts connections and serves each on a task of its own, until `stop`. Connections live on.
    pub async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.accept_all()).await;
    }

    async fn accept_all(&self) {
        let mut too_fast = JoinSet::new();
        loop {
            while too_fast.try_join_next().is_some() {}
            match self.listener.accept().await {
                Ok((stream, peer)) => self.admit(stream, peer, &mut too_fast).await,
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => {
                    let listener = &self.settings.name;
                    tracing::warn!(%listener, %error, "cannot accept a connection; is the limit of open files too low?");
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
    }

    async fn admit(&self, stream: TcpStream, peer: SocketAddr, too_fast: &mut JoinSet<()>) {
        let seat = match self.table.enter(&self.origin, peer.ip()).await {
            Ok(seat) => seat,
            Err(refused) => {
                tracing::info!(listener = %self.settings.name, %peer, "closing: {refused}");
                if let Refused::Rate { early, .. } = refused
                    && too_fast.len() < MOST_TOO_FAST
                {
                    too_fast.spawn(async move {
                        tokio::time::sleep(early).await;
                        drop(stream);
                    });
                }
                return;
            }
        };
        if let Err(error) = self.prepare(&stream) {
            tracing::debug!(listener = %self.settings.name, %peer, %error, "the connection was gone at once");
            return;
        }
        let local = stream.local_addr().unwrap_or(self.address);
        let info = ConnectionInfo::new(Arc::clone(&self.settings.name), local, peer, seat.index());
        let handler = Arc::clone(&self.handler);
        tokio::spawn(Connection::new(stream, Arc::new(info), handler, &self.settings.connection, seat));
    }

    fn prepare(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(stream);
        socket.set_keepalive(true)?;
        if let Some(bytes) = self.settings.send_buffer {
            socket.set_send_buffer_size(bytes)?;
        }
        Ok(())
    }
}

/// Errors of `accept` that say something about the connection that was to be accepted, not about us.
fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
