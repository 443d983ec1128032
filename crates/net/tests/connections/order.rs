//! Answers come in the order of the requests, and what may overlap.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::common::{METADATA, PRODUCE, Requests, Server, framed, request, respond};
use net::connection::{MAX_PRODUCE_BYTES, MAX_PRODUCES};
use net::{ConnectionInfo, ConnectionSettings, FrameHandler, Outcome, Reply};

#[tokio::test]
async fn answers_wait_for_the_answers_before_them() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let mut peer = server.connect().await;
    for mark in 1..=3 {
        peer.send(&request(PRODUCE, mark, 10)).await;
    }
    let mut replies = Vec::new();
    for mark in 1..=3 {
        let (frame, reply) = requests.next().await;
        assert_eq!(frame[2], mark, "requests are handed over in order");
        replies.push(reply);
    }
    // The last is answered first, on other threads even.
    for mark in (1..=3).rev() {
        let reply = replies.pop().unwrap();
        std::thread::spawn(move || reply.send(respond(vec![mark]))).join().unwrap();
    }
    for mark in 1..=3 {
        assert_eq!(peer.receive().await, [mark]);
    }
}

#[tokio::test]
async fn only_five_produces_are_in_service() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let mut peer = server.connect().await;
    let all: Vec<u8> = (0..20).flat_map(|mark| framed(&request(PRODUCE, mark, 10))).collect();
    peer.send_raw(&all).await;
    let mut open = Vec::new();
    for _ in 0..MAX_PRODUCES {
        open.push(requests.next().await);
    }
    for mark in 0..20u8 {
        requests.none().await;
        let (frame, reply) = open.remove(0);
        assert_eq!(frame[2], mark);
        reply.send(respond(vec![mark]));
        assert_eq!(peer.receive().await, [mark]);
        if usize::from(mark) + MAX_PRODUCES < 20 {
            open.push(requests.next().await);
        }
    }
}

#[tokio::test]
async fn produces_in_service_hold_16_mib_at_most() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let mut peer = server.connect().await;
    let sizes = [MAX_PRODUCE_BYTES - 100, 100, 1];
    let sender = tokio::spawn(async move {
        for size in sizes {
            peer.send(&request(PRODUCE, 1, size)).await;
        }
        peer
    });
    let first = requests.next().await;
    let second = requests.next().await;
    let mut peer = sender.await.unwrap();
    requests.none().await;
    second.1.send(respond("second"));
    requests.none().await;
    first.1.send(respond("first"));
    assert_eq!(peer.receive().await, b"first");
    assert_eq!(peer.receive().await, b"second");
    assert_eq!(requests.next().await.0.len(), 3);
}

#[tokio::test]
async fn a_produce_larger_than_the_window_is_served_alone() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let mut peer = server.connect().await;
    peer.send(&request(PRODUCE, 1, 10)).await;
    let small = requests.next().await;
    let large = tokio::spawn(async move {
        peer.send(&request(PRODUCE, 2, MAX_PRODUCE_BYTES + 1)).await;
        peer
    });
    requests.none().await;
    small.1.send(Outcome::NoResponse);
    let (frame, reply) = requests.next().await;
    assert_eq!(frame.len(), MAX_PRODUCE_BYTES + 1);
    reply.send(respond("ok"));
    assert_eq!(large.await.unwrap().receive().await, b"ok");
}

/// apache/kafka#5920: a client that writes far ahead fills no memory.
#[tokio::test]
async fn what_may_not_start_is_not_read() {
    const MIB: usize = 1024 * 1024;
    for (size, started) in [(MIB, MAX_PRODUCES), (10 * MIB, 1)] {
        let (handler, mut requests) = Requests::passing();
        let server = Server::start(ConnectionSettings::default(), handler);
        let mut peer = server.connect().await;
        let sending = tokio::spawn(async move {
            for _ in 0..20 {
                peer.send(&request(PRODUCE, 1, size)).await;
            }
            peer
        });
        let mut open = Vec::new();
        for _ in 0..started {
            open.push(requests.next().await);
        }
        requests.none().await;
        let read = server.counters.bytes_in.get();
        assert!(read <= (started * size + 10_000) as u64, "{read} bytes are read of which few are served");
        // Once the answers come, all is served.
        for _ in 0..20 {
            open.remove(0).1.send(Outcome::NoResponse);
            if server.counters.requests.get() < 20 {
                open.push(requests.next().await);
            }
        }
        sending.await.unwrap();
    }
}

#[tokio::test]
async fn anything_but_a_produce_starts_alone() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let mut peer = server.connect().await;
    let kinds = [PRODUCE, METADATA, METADATA, PRODUCE, PRODUCE, METADATA];
    let all: Vec<u8> = (1u8..).zip(kinds).flat_map(|(mark, key)| framed(&request(key, mark, 10))).collect();
    peer.send_raw(&all).await;
    for mark in 1..=3 {
        let (frame, reply) = requests.next().await;
        assert_eq!(frame[2], mark);
        requests.none().await;
        reply.send(respond(vec![mark]));
        assert_eq!(peer.receive().await, [mark]);
    }
    let (fourth, fifth) = (requests.next().await, requests.next().await);
    fifth.1.send(respond("5"));
    requests.none().await;
    fourth.1.send(respond("4"));
    assert_eq!(requests.next().await.0[2], 6);
}

#[tokio::test]
async fn a_request_without_answer_lets_the_next_one_start() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let mut peer = server.connect().await;
    peer.send(&request(PRODUCE, 1, 10)).await;
    peer.send(&request(METADATA, 2, 10)).await;
    requests.next().await.1.send(Outcome::NoResponse);
    requests.next().await.1.send(respond("metadata"));
    assert_eq!(peer.receive().await, b"metadata");
}

#[tokio::test]
async fn closing_sends_the_answers_before_and_none_after() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let mut peer = server.connect().await;
    for mark in 1..=3 {
        peer.send(&request(PRODUCE, mark, 10)).await;
    }
    let (first, second, third) = (requests.next().await, requests.next().await, requests.next().await);
    third.1.send(respond("third"));
    second.1.send(Outcome::Close { reason: String::from("the second fails") });
    first.1.send(respond("first"));
    assert_eq!(peer.end().await, framed(b"first"));
    server.table.emptied().await;
}

#[tokio::test]
async fn a_forgotten_reply_closes_the_connection() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let mut peer = server.connect().await;
    peer.send(&request(METADATA, 1, 10)).await;
    drop(requests.next().await);
    assert_eq!(peer.end().await, b"");
}

#[tokio::test]
async fn a_reply_knows_that_its_connection_is_gone() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let mut peer = server.connect().await;
    peer.send(&request(METADATA, 1, 10)).await;
    let (_, reply) = requests.next().await;
    assert!(!reply.is_abandoned());
    server.table.end_all();
    server.table.emptied().await;
    assert!(reply.is_abandoned());
    reply.send(respond("to nobody"));
    assert_eq!(peer.end().await, b"");
}

#[tokio::test(start_paused = true)]
async fn a_muted_connection_gets_its_answer_at_once_and_starts_nothing_until_the_mute_is_over() {
    let (handler, mut requests) = Requests::passing();
    let server = Server::start(ConnectionSettings::default(), handler);
    let mut peer = server.connect().await;
    peer.send(&request(METADATA, 1, 10)).await;
    peer.send(&request(METADATA, 2, 10)).await;
    let (_, reply) = requests.next().await;
    let start = tokio::time::Instant::now();
    reply.send_and_mute(respond("throttled"), Duration::from_secs(7));
    assert_eq!(peer.receive().await, b"throttled");
    assert_eq!(start.elapsed(), Duration::ZERO, "the answer itself is not held back");
    requests.none().await;
    requests.next().await;
    assert!(start.elapsed() >= Duration::from_secs(7));
    assert!(start.elapsed() < Duration::from_secs(8));
}

/// redpanda-data/redpanda#25636, IBM/sarama#992: whatever is pipelined and however long each request takes, the
/// answers come in the order of the requests.
#[tokio::test]
async fn mixed_pipelines_on_many_connections_are_answered_in_order() {
    let server = Server::start(ConnectionSettings::default(), Arc::new(Shuffling));
    let mut peers = tokio::task::JoinSet::new();
    for seed in 0..50_u8 {
        let mut peer = server.connect().await;
        let length = 2 + seed % 19;
        peers.spawn(async move {
            let key = |mark: u8| if (mark ^ seed).is_multiple_of(3) { METADATA } else { PRODUCE };
            let sent: Vec<u8> = (0..length).flat_map(|mark| framed(&request(key(mark), mark, 10))).collect();
            peer.send_raw(&sent).await;
            for mark in (0..length).filter(|mark| !is_unanswered(&request(key(*mark), *mark, 10))) {
                assert_eq!(peer.receive().await, [mark]);
            }
        });
    }
    while let Some(peer) = peers.join_next().await {
        peer.unwrap();
    }
}

/// Every fourth produce wants no answer.
fn is_unanswered(frame: &[u8]) -> bool {
    frame[..2] == PRODUCE && frame[2] % 4 == 1
}

/// Answers at once or from another thread, in turn.
struct Shuffling;

impl FrameHandler for Shuffling {
    fn handle(&self, _: &Arc<ConnectionInfo>, frame: Bytes, reply: Reply) {
        let mark = frame[2];
        let outcome = if is_unanswered(&frame) { Outcome::NoResponse } else { respond(vec![mark]) };
        if mark.is_multiple_of(2) {
            std::thread::spawn(move || reply.send(outcome));
        } else {
            reply.send(outcome);
        }
    }
}
