//! Where a listener can be reached: over IPv4, IPv6, or both. A machine without IPv6 has nothing to try here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use net::listener::ListenerSettings;
use net::table::{ConnectionLimits, ConnectionTable};
use tokio::net::TcpStream;

use crate::common::{Echo, METADATA, Peer, Server, request};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn has_ipv6() -> bool {
    std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

fn serve(settings: ListenerSettings) -> Server {
    Server::start_in(&ConnectionTable::new(ConnectionLimits::default()), settings, Arc::new(Echo))
}

/// Whether a request over this address is answered.
async fn is_served(server: &Server, address: IpAddr) -> bool {
    let to = SocketAddr::new(address, server.address.port());
    let Ok(stream) = TcpStream::connect(to).await else { return false };
    let mut peer = Peer { stream };
    peer.send(&request(METADATA, 1, 10)).await;
    peer.receive().await[2] == 1
}

#[tokio::test]
async fn every_wildcard_means_both_families() {
    if !has_ipv6() {
        return;
    }
    for host in ["", "::", "0.0.0.0"] {
        let server = serve(ListenerSettings::new("PLAINTEXT", host, 0));
        assert!(is_served(&server, V4).await && is_served(&server, V6).await, "{host:?}");
    }
}

#[tokio::test]
async fn an_address_is_of_one_family() {
    if !has_ipv6() {
        return;
    }
    for (host, here, not_here) in [("127.0.0.1", V4, V6), ("::1", V6, V4)] {
        let server = serve(ListenerSettings::new("PLAINTEXT", host, 0));
        assert!(is_served(&server, here).await, "{host}");
        assert!(!is_served(&server, not_here).await, "{host}");
    }
}

/// KIP-797.
#[tokio::test]
async fn an_ipv4_and_an_ipv6_address_may_share_a_port() {
    if !has_ipv6() {
        return;
    }
    for (six, four) in [("::1", "127.0.0.1"), ("::", "0.0.0.0")] {
        let sharing = |host, port| ListenerSettings {
            shares_port: true,
            ..ListenerSettings::new("PLAINTEXT", host, port)
        };
        let six = serve(sharing(six, 0));
        assert!(!is_served(&six, V4).await);
        let four = serve(sharing(four, six.address.port()));
        assert!(is_served(&four, V4).await && is_served(&six, V6).await);
        assert_eq!((six.counters.requests.get(), four.counters.requests.get()), (1, 1));
    }
}
