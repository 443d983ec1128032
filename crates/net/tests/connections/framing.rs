//! What the broker does with bytes that are no requests.

use crate::common::{Echo, METADATA, Server, framed, request};
use net::ConnectionSettings;
use std::sync::Arc;

fn settings() -> ConnectionSettings {
    ConnectionSettings::default()
}

#[tokio::test]
async fn requests_are_answered_one_after_the_other() {
    let server = Server::start(settings(), Arc::new(Echo));
    let mut peer = server.connect().await;
    for len in [8, 100, 10_000, 3_000_000] {
        let body = request(METADATA, 7, len);
        peer.send(&body).await;
        assert_eq!(peer.receive().await, body);
    }
    assert_eq!(server.counters.requests.get(), 4);
    assert_eq!(server.counters.responses.get(), 4);
}

/// quarkusio/quarkus-quickstarts#1088, confluentinc/cp-docker-images#869: HTTP and TLS on the wrong port.
#[tokio::test]
async fn sizes_that_no_frame_may_have_close_the_connection() {
    let server = Server::start(settings(), Arc::new(Echo));
    let too_large = 104_857_601i32.to_be_bytes();
    let hello = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03];
    let bad: [&[u8]; 6] =
        [&[0xff; 4], &[0; 4], &too_large, &[0x7f, 0xff, 0xff, 0xff], b"GET / HTTP/1.1\r\n\r\n", &hello];
    for (n, bytes) in bad.iter().enumerate() {
        let mut peer = server.connect().await;
        peer.send_raw(bytes).await;
        assert_eq!(peer.end().await, b"", "nothing is answered to {bytes:?}");
        server.table.emptied().await;
        assert_eq!(server.counters.invalid_frames.get(), n as u64 + 1);
    }
    assert_eq!(server.counters.requests.get(), 0);
}

#[tokio::test]
async fn requests_before_a_bad_size_are_answered() {
    let server = Server::start(settings(), Arc::new(Echo));
    let mut peer = server.connect().await;
    let body = request(METADATA, 1, 20);
    let mut bytes = framed(&body);
    bytes.extend_from_slice(&framed(&body));
    bytes.extend_from_slice(&(-5i32).to_be_bytes());
    peer.send_raw(&bytes).await;
    assert_eq!(peer.end().await, [framed(&body), framed(&body)].concat());
}

#[tokio::test]
async fn the_largest_frame_is_the_limit() {
    let server = Server::start(ConnectionSettings { max_frame_bytes: 1000, ..settings() }, Arc::new(Echo));
    let mut peer = server.connect().await;
    peer.send(&request(METADATA, 1, 1000)).await;
    assert_eq!(peer.receive().await.len(), 1000);
    peer.send_raw(&1001i32.to_be_bytes()).await;
    assert_eq!(peer.end().await, b"");
}

#[tokio::test]
async fn a_peer_that_leaves_within_a_frame_leaves_nothing_behind() {
    let server = Server::start(settings(), Arc::new(Echo));
    let mut peer = server.connect().await;
    peer.send_raw(&[0, 0, 1, 0, 1, 2, 3]).await;
    drop(peer);
    server.table.emptied().await;
    assert_eq!(server.counters.requests.get(), 0);
    assert_eq!(server.counters.invalid_frames.get(), 0);
}
