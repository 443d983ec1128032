//! What connections cost in memory. A process of its own, and one test after the other, so that nothing else
//! is measured along.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail so")]

#[expect(dead_code, reason = "the other tests need more of it")]
#[path = "connections/common.rs"]
mod common;

use std::sync::Arc;

use common::{Echo, METADATA, Server, request};
use net::ConnectionSettings;

#[tokio::test]
async fn connections_cost_little_memory() {
    an_idle_connection_costs_little().await;
    claims_of_large_frames_cost_no_memory().await;
}

async fn claims_of_large_frames_cost_no_memory() {
    let server = Server::start(ConnectionSettings::default(), Arc::new(Echo));
    let mut peers = Vec::new();
    let before = resident_bytes();
    for _ in 0..200 {
        let mut peer = server.connect().await;
        peer.send_raw(&[&100_000_000i32.to_be_bytes()[..], &[0, 3, 0, 1]].concat()).await;
        peers.push(peer);
    }
    // All 200 times 8 bytes are read before the last answer of a later connection.
    let mut last = server.connect().await;
    while server.counters.bytes_in.get() < 200 * 8 {
        last.send(&request(METADATA, 1, 10)).await;
        last.receive().await;
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 10 << 20, "{grown} bytes for claims of 20 GB");
}

async fn an_idle_connection_costs_little() {
    let server = Server::start(ConnectionSettings::default(), Arc::new(Echo));
    let mut peers = Vec::new();
    let mut open = async |count: usize| {
        for _ in 0..count {
            let mut peer = server.connect().await;
            peer.send(&request(METADATA, 1, 10_000)).await;
            peer.receive().await;
            peers.push(peer);
        }
    };
    open(10).await;
    let before = resident_bytes();
    open(400).await;
    let each = resident_bytes().saturating_sub(before) / 400;
    // The peer's half is in this process, too.
    assert!(each < 10_000, "{each} bytes for an idle connection");
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
