//! How fast connections may come from one address, over real sockets of several addresses of the loopback (KIP-612).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use net::listener::ListenerSettings;
use net::table::{AddressRates, ConnectionLimits, ConnectionTable, RateWindows};
use tokio::net::TcpSocket;
use tokio::time::Instant;

use crate::common::{Echo, METADATA, Peer, Server, request};

/// A listener to which everybody may connect once a second, and ten times at once.
fn server() -> Server {
    let address_rates = AddressRates { default: Some(1), ..AddressRates::default() };
    let table = ConnectionTable::new(ConnectionLimits { address_rates, ..ConnectionLimits::default() });
    Server::start_in(&table, ListenerSettings::new("PLAINTEXT", "127.0.0.1", 0), Arc::new(Echo))
}

/// Connects from this address.
async fn connect_from(server: &Server, last: u8) -> Peer {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(Ipv4Addr::new(127, 0, 0, last).into(), 0)).unwrap();
    Peer { stream: socket.connect(server.address).await.unwrap() }
}

async fn is_served(peer: &mut Peer) -> bool {
    peer.send(&request(METADATA, 1, 10)).await;
    peer.receive().await[2] == 1
}

/// KAFKA-10024.
#[tokio::test(start_paused = true)]
async fn who_connects_too_fast_is_closed_a_little_later_and_holds_up_nobody_else() {
    let server = server();
    for _ in 0..10 {
        assert!(is_served(&mut connect_from(&server, 8).await).await);
    }
    let start = Instant::now();
    let mut early = connect_from(&server, 8).await;
    let mut other = connect_from(&server, 9).await;
    assert!(is_served(&mut other).await);
    assert_eq!(early.end().await, b"");
    let waited = start.elapsed();
    assert!(waited >= Duration::from_millis(990) && waited < Duration::from_secs(2), "{waited:?}");
    assert_eq!(server.counters.connections_throttled.get(), 1);
    assert_eq!(server.counters.connections_opened.get(), 11, "it took nobody's place");
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(is_served(&mut connect_from(&server, 8).await).await);
}

#[tokio::test]
async fn no_more_than_a_thousand_sockets_wait_to_be_closed() {
    let limits = ConnectionLimits {
        // Nobody may connect, and whoever does is kept for an hour.
        address_rates: AddressRates { default: Some(0), ..AddressRates::default() },
        rate_windows: RateWindows { length: Duration::from_secs(3_600), ..RateWindows::default() },
        ..ConnectionLimits::default()
    };
    let table = ConnectionTable::new(limits);
    let server = Server::start_in(&table, ListenerSettings::new("PLAINTEXT", "127.0.0.1", 0), Arc::new(Echo));
    let mut kept = Vec::new();
    for _ in 0..1_000 {
        kept.push(connect_from(&server, 8).await);
    }
    let mut last = connect_from(&server, 8).await;
    assert_eq!(last.end().await, b"");
    for peer in &kept {
        let read = peer.stream.try_read(&mut [0; 1]);
        assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}

/// KAFKA-9796.
#[tokio::test]
async fn a_listener_that_ends_closes_who_waits_for_a_place() {
    let limits = ConnectionLimits { total: 1, ..ConnectionLimits::default() };
    let table = ConnectionTable::new(limits);
    let server = Server::start_in(&table, ListenerSettings::new("PLAINTEXT", "127.0.0.1", 0), Arc::new(Echo));
    let mut first = server.connect().await;
    assert!(is_served(&mut first).await);
    let mut waiting = server.connect().await;
    drop(server);
    assert_eq!(waiting.end().await, b"");
    assert!(is_served(&mut first).await, "who has a place keeps it");
    assert_eq!(table.len(), 1);
}
