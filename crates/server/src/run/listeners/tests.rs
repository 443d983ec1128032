use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::tests::{Double, Running, receive, send, settings};
use super::*;

fn listener(name: &str, port: u16) -> ListenerSettings {
    ListenerSettings::new(name, "127.0.0.1", port)
}

/// A server with the listener `PLAINTEXT` on a free port.
async fn start() -> Running {
    Running::start(Duration::ZERO).await
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn is_served(stream: &mut TcpStream) -> bool {
    let frame = [0, 0, 0, 2, b'h', b'i'];
    stream.write_all(&frame).await.is_ok() && receive(stream).await == b"hi"
}

async fn connect(bound: &Bound) -> TcpStream {
    let mut stream = send(&bound.address.to_string(), b"first").await;
    assert_eq!(receive(&mut stream).await, b"first");
    stream
}

async fn refuses(address: SocketAddr) -> bool {
    TcpStream::connect(address).await.is_err()
}

/// KIP-226.
#[tokio::test]
async fn a_listener_comes_and_goes_with_its_connections_and_leaves_others_alone() {
    let server = start().await;
    let bound = server.node.want(vec![listener("PLAINTEXT", 0), listener("EXTRA", 0)]).await;
    assert_eq!(bound.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["PLAINTEXT", "EXTRA"]);
    let (mut staying, mut going) = (connect(&bound[0]).await, connect(&bound[1]).await);
    assert!(server.get("/metrics").await.1.contains("listener=\"EXTRA\""));

    let left = server.node.want(vec![listener("PLAINTEXT", 0)]).await;
    assert_eq!(left, bound[..1]);
    assert_eq!(going.read(&mut [0]).await.unwrap_or(0), 0, "its connections are closed");
    assert!(refuses(bound[1].address).await);
    assert!(!server.get("/metrics").await.1.contains("listener=\"EXTRA\""));
    assert!(is_served(&mut staying).await);
    server.stop().await;
    assert!(refuses(bound[0].address).await);
}

#[tokio::test]
async fn a_listener_moves_with_its_clients_sent_after_it_and_another_takes_its_place() {
    let server = start().await;
    let port = free_port();
    let before = server.node.want(vec![listener("PLAINTEXT", 0), listener("EXTRA", port)]).await;
    let mut old = connect(&before[1]).await;
    let moved = vec![listener("PLAINTEXT", 0), listener("OTHER", port), listener("EXTRA", 0)];
    let after = server.node.want(moved).await;
    assert_eq!(old.read(&mut [0]).await.unwrap_or(0), 0, "whoever is at the old place is sent away");
    assert_eq!(after.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["PLAINTEXT", "OTHER", "EXTRA"]);
    assert_eq!(after[1].address, before[1].address);
    assert_ne!(after[2].address.port(), port);
    for bound in &after {
        connect(bound).await;
    }
}

#[tokio::test]
async fn a_listener_that_cannot_be_opened_leaves_the_others_alone_and_is_tried_again() {
    let server = start().await;
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let wanted = vec![listener("PLAINTEXT", 0), listener("EXTRA", port)];
    let bound = server.node.want(wanted.clone()).await;
    assert_eq!(bound.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["PLAINTEXT"]);
    connect(&bound[0]).await;
    drop(holder);
    let bound = server.node.want(wanted).await;
    assert_eq!(bound[1].address.port(), port);
    connect(&bound[1]).await;
}

#[tokio::test]
async fn a_server_starts_with_the_listeners_that_its_node_wants() {
    let node = Double::wanting(vec![listener("OTHER", free_port())]);
    let server = Running::start_with(settings(Duration::ZERO), node).await;
    assert!(server.text.contains("(other)") && !server.text.contains("(plaintext)"), "{}", server.text);
    let metrics = server.get("/metrics").await.1;
    assert!(metrics.contains("listener=\"OTHER\"") && !metrics.contains("listener=\"PLAINTEXT\""));
}
