//! Connecting to a peer: its name is looked up each time, so that a peer may move, and its addresses are tried
//! in turn, IPv4 before IPv6 as Java has it.
//!
//! A lookup cannot be interrupted. So only a few may be under way in the process, those that nobody waits for
//! any more included; and addresses in digits need none.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::PeerHost;

/// Lookups of names that may be under way.
const LOOKUPS: usize = 4;
/// Addresses of one name that are tried.
const ADDRESSES: usize = 8;

/// Makes connections to peers; its clones share the limit of lookups.
#[derive(Clone, Debug)]
pub struct Dialer {
    lookups: Arc<Semaphore>,
}

impl Default for Dialer {
    fn default() -> Self {
        Self { lookups: Arc::new(Semaphore::new(LOOKUPS)) }
    }
}

impl Dialer {
    /// A connection without delay of small segments, and with keep-alive. Each address has an equal share of
    /// the time left, so that one which swallows everything does not hide the next.
    pub(super) async fn connect(
        &self,
        peer: &PeerHost,
        receive_buffer: Option<usize>,
        deadline: Instant,
    ) -> io::Result<TcpStream> {
        let addresses = timeout_at(deadline, self.look_up(peer)).await.map_err(|_| late())??;
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for (index, address) in addresses.iter().enumerate() {
            let left = u32::try_from(addresses.len().saturating_sub(index)).unwrap_or(1).max(1);
            let now = Instant::now();
            let until = now + deadline.saturating_duration_since(now) / left;
            match timeout_at(until, open(*address, receive_buffer)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error,
                Err(_) => last = late(),
            }
        }
        Err(last)
    }

    async fn look_up(&self, peer: &PeerHost) -> io::Result<Vec<SocketAddr>> {
        let host = peer.host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, peer.port)]);
        }
        let permit = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
        let name = (host.to_owned(), peer.port);
        let looked_up = tokio::task::spawn_blocking(move || {
            let addresses = name.to_socket_addrs().map(Vec::from_iter);
            drop(permit);
            addresses
        });
        let mut addresses = looked_up.await.map_err(io::Error::other)??;
        addresses.sort_by_key(SocketAddr::is_ipv6);
        addresses.truncate(ADDRESSES);
        Ok(addresses)
    }
}

async fn open(address: SocketAddr, receive_buffer: Option<usize>) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(bytes) = receive_buffer {
        // Set after the handshake it could not widen the window any more.
        SockRef::from(&socket).set_recv_buffer_size(bytes)?;
    }
    socket.set_nodelay(true)?;
    socket.set_keepalive(true)?;
    let stream = socket.connect(address).await?;
    // A port of this machine that nobody listens on may, by chance, be connected with itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

fn late() -> io::Error {
    io::ErrorKind::TimedOut.into()
}
