//! How long connections live, how many there may be, and that none is forgotten.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Echo, METADATA, PRODUCE, Peer, Requests, Server, framed, request, respond};
use net::listener::ListenerSettings;
use net::table::{ConnectionLimits, ConnectionTable};
use net::{ConnectionSettings, Outcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

fn idle_after(max_idle: Duration) -> ConnectionSettings {
    ConnectionSettings { max_idle: Some(max_idle), ..ConnectionSettings::default() }
}

/// Waits for the end of an idle connection and returns how long it took.
async fn idle_time(peer: &mut Peer) -> Duration {
    let start = Instant::now();
    assert_eq!(peer.end().await, b"");
    start.elapsed()
}

/// apache/kafka#5712, confluentinc/librdkafka#437.
#[tokio::test(start_paused = true)]
async fn a_connection_that_never_spoke_is_closed_when_idle() {
    let server = Server::start(idle_after(Duration::from_secs(3)), Arc::new(Echo));
    let mut peer = server.connect().await;
    let took = idle_time(&mut peer).await;
    assert!(took >= Duration::from_millis(2990) && took < Duration::from_secs(4), "{took:?}");
    server.table.emptied().await;
    assert_eq!(server.counters.connections_expired.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn traffic_puts_the_idle_end_off() {
    let server = Server::start(idle_after(Duration::from_secs(3)), Arc::new(Echo));
    let mut peer = server.connect().await;
    for _ in 0..5 {
        tokio::time::advance(Duration::from_secs(2)).await;
        peer.send(&request(METADATA, 1, 10)).await;
        peer.receive().await;
    }
    let took = idle_time(&mut peer).await;
    assert!(took >= Duration::from_millis(2990) && took < Duration::from_secs(4), "{took:?}");
}

/// shotover/shotover-proxy#1752: a pool that keeps connections sees an end, and no reset.
#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends_in_order() {
    let server = Server::start(idle_after(Duration::from_secs(3)), Arc::new(Echo));
    let mut peer = server.connect().await;
    peer.send(&request(METADATA, 1, 10)).await;
    peer.receive().await;
    assert_eq!(peer.stream.read(&mut [0; 1]).await.unwrap(), 0);
}

/// apache/kafka#5712, confluentinc/librdkafka#437.
#[tokio::test(start_paused = true)]
async fn a_request_in_service_is_not_idle() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(idle_after(Duration::from_secs(3)), handler);
    let mut peer = server.connect().await;
    peer.send(&request(METADATA, 1, 10)).await;
    let (_, reply) = requests.next().await;
    tokio::time::advance(Duration::from_secs(60)).await;
    requests.none().await;
    reply.send(respond("late"));
    assert_eq!(peer.receive().await, b"late");
    let took = idle_time(&mut peer).await;
    assert!(took >= Duration::from_millis(2990) && took < Duration::from_secs(4), "{took:?}");
}

/// apache/kafka#5712, confluentinc/librdkafka#437.
#[tokio::test(start_paused = true)]
async fn half_a_request_does_not_keep_a_connection_alive() {
    let server = Server::start(idle_after(Duration::from_secs(3)), Arc::new(Echo));
    let mut peer = server.connect().await;
    peer.send_raw(&[0, 0, 0, 100, 0]).await;
    let took = idle_time(&mut peer).await;
    assert!(took < Duration::from_secs(4), "{took:?}");
}

/// Who takes nothing of his answer keeps his place no longer than who says nothing.
#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_its_answer_is_closed_when_idle() {
    const ANSWER: usize = 64 << 20;
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(idle_after(Duration::from_secs(3)), handler);
    let mut peer = server.connect().await;
    peer.send(&request(METADATA, 1, 10)).await;
    requests.next().await.1.send(respond(vec![0_u8; ANSWER]));
    server.table.emptied().await;
    assert_eq!(server.counters.connections_expired.get(), 1);
    assert!(server.counters.bytes_out.get() < ANSWER as u64);
}

#[tokio::test]
async fn a_half_closed_connection_is_served_to_its_end() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let mut peer = server.connect().await;
    // Three produces with acks 0, one request with an answer, and the end at once.
    let mut bytes: Vec<u8> = (1..=3).flat_map(|mark| framed(&request(PRODUCE, mark, 50_000))).collect();
    bytes.extend_from_slice(&framed(&request(METADATA, 4, 10)));
    peer.send_raw(&bytes).await;
    peer.stream.shutdown().await.unwrap();
    for mark in 1..=3 {
        let (frame, reply) = requests.next().await;
        assert_eq!((frame[2], frame.len()), (mark, 50_000));
        reply.send(Outcome::NoResponse);
    }
    requests.next().await.1.send(respond("last"));
    assert_eq!(peer.end().await, framed(b"last"));
    server.table.emptied().await;
}

/// apache/kafka#4517.
#[tokio::test]
async fn ten_thousand_connections_leave_no_trace() {
    let server = Server::start(ConnectionSettings::default(), Arc::new(Echo));
    for n in 0..10_000 {
        let mut peer = server.connect().await;
        match n % 4 {
            0 => {}
            1 => peer.send_raw(b"GET /").await,
            2 => peer.send_raw(&[0, 0, 0, 9, 1]).await,
            _ => {
                peer.send(&request(METADATA, 1, 10)).await;
                peer.receive().await;
            }
        }
        // Without lingering, so that the test does not use up the machine's ports.
        peer.stream.set_zero_linger().unwrap();
    }
    let mut last = server.connect().await;
    last.send(&request(METADATA, 1, 10)).await;
    last.receive().await;
    drop(last);
    server.table.emptied().await;
    assert_eq!(server.counters.connections_opened.get(), server.counters.connections_closed.get());
    assert_eq!(server.counters.connections(), 0);
    assert!(server.counters.connections_opened.get() > 9_000);
}

#[tokio::test]
async fn an_address_with_too_many_connections_gets_no_more() {
    let limits = ConnectionLimits { per_ip: 2, ..ConnectionLimits::default() };
    let table = ConnectionTable::new(limits);
    let settings = ListenerSettings::new("PLAINTEXT", "127.0.0.1", 0);
    let server = Server::start_in(&table, settings, Arc::new(Echo));
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut peer = server.connect().await;
        peer.send(&request(METADATA, 1, 10)).await;
        peer.receive().await;
        kept.push(peer);
    }
    let mut third = server.connect().await;
    assert_eq!(third.end().await, b"");
    assert_eq!(server.counters.connections_refused.get(), 1);
    drop(kept.pop());
    while table.len() > 1 {
        tokio::task::yield_now().await;
    }
    let mut fourth = server.connect().await;
    fourth.send(&request(METADATA, 1, 10)).await;
    fourth.receive().await;
}

#[tokio::test]
async fn a_connection_over_the_total_waits_for_its_turn() {
    let name = Arc::from("PLAINTEXT");
    for limits in [
        ConnectionLimits { total: 1, ..ConnectionLimits::default() },
        ConnectionLimits { per_listener: HashMap::from([(name, 1)]), ..ConnectionLimits::default() },
    ] {
        let table = ConnectionTable::new(limits);
        let settings = ListenerSettings::new("PLAINTEXT", "127.0.0.1", 0);
        let server = Server::start_in(&table, settings, Arc::new(Echo));
        let mut first = server.connect().await;
        first.send(&request(METADATA, 1, 10)).await;
        first.receive().await;
        let mut second = server.connect().await;
        second.send(&request(METADATA, 2, 10)).await;
        first.send(&request(METADATA, 3, 10)).await;
        first.receive().await;
        assert_eq!(server.counters.requests.get(), 2, "the second connection is not served yet");
        drop(first);
        assert_eq!(second.receive().await[2], 2);
    }
}

#[tokio::test]
async fn the_protected_listener_takes_the_place_of_the_least_recently_used() {
    let protected = Some(Arc::from("INTERNAL"));
    let table = ConnectionTable::new(ConnectionLimits { total: 2, protected, ..ConnectionLimits::default() });
    let open = ListenerSettings::new("EXTERNAL", "127.0.0.1", 0);
    let protected = ListenerSettings::new("INTERNAL", "127.0.0.1", 0);
    let open = Server::start_in(&table, open, Arc::new(Echo));
    let protected = Server::start_in(&table, protected, Arc::new(Echo));
    let mut peers = [open.connect().await, open.connect().await];
    for index in [1, 0, 1] {
        peers[index].send(&request(METADATA, 1, 10)).await;
        peers[index].receive().await;
    }
    let [mut old, mut new] = peers;
    let mut broker = protected.connect().await;
    broker.send(&request(METADATA, 1, 10)).await;
    broker.receive().await;
    assert_eq!(old.end().await, b"");
    new.send(&request(METADATA, 1, 10)).await;
    new.receive().await;
    assert_eq!(table.len(), 2);
}

#[tokio::test]
async fn draining_answers_what_is_in_service_and_starts_nothing() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let (mut busy, mut idle) = (server.connect().await, server.connect().await);
    idle.send(&request(METADATA, 1, 10)).await;
    requests.next().await.1.send(respond("idle"));
    assert_eq!(idle.receive().await, b"idle");
    busy.send(&request(METADATA, 2, 10)).await;
    busy.send(&request(METADATA, 3, 10)).await;
    let (_, reply) = requests.next().await;
    server.table.drain();
    assert_eq!(idle.end().await, b"");
    reply.send(respond("busy"));
    assert_eq!(busy.end().await, framed(b"busy"));
    server.table.emptied().await;
    requests.none().await;
}
