//! Answers with file ranges, to peers that read fast, slowly, or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use net::listener::ListenerSettings;
use net::table::{ConnectionLimits, ConnectionTable};
use net::{ConnectionInfo, ConnectionSettings, FrameHandler, Outcome, Part, RangeMode, RangeSource, Reply};
use tokio::io::AsyncReadExt;

use crate::common::{METADATA, PRODUCE, Peer, Server, framed, request};

const FILE_LEN: usize = 3_000_000;

/// A range of a real file, or of memory.
struct Piece {
    file: Option<Arc<File>>,
    bytes: Bytes,
    start: usize,
    len: usize,
}

impl RangeSource for Piece {
    fn len(&self) -> u64 {
        self.len as u64
    }

    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        let at = usize::try_from(at).unwrap();
        let count = buf.len().min(self.len - at);
        match &self.file {
            Some(file) => file.read_at(&mut buf[..count], (self.start + at) as u64),
            None => {
                let from = self.start + at;
                buf[..count].copy_from_slice(&self.bytes[from..from + count]);
                Ok(count)
            }
        }
    }

    fn fd(&self) -> Option<(BorrowedFd<'_>, u64)> {
        self.file.as_ref().map(|file| (file.as_fd(), self.start as u64))
    }
}

/// Answers with pieces of its file: a head, ranges of several sizes with bytes between, and a tail.
struct Ranges {
    file: Arc<File>,
    bytes: Bytes,
    answered: AtomicUsize,
}

const PIECES: [(usize, usize); 7] =
    [(0, 100), (5000, 20_000), (1, 1_500_000), (700, 0), (2_000_000, 1_000_000), (42, 5), (9, 70_000)];

impl Ranges {
    fn new() -> Arc<Self> {
        let bytes: Vec<u8> = (0..FILE_LEN).map(|i| (i * 7 % 253) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        Arc::new(Self { file: Arc::new(file), bytes: bytes.into(), answered: AtomicUsize::new(0) })
    }

    fn expected(&self) -> Vec<u8> {
        let mut expected = b"head".to_vec();
        for (start, len) in PIECES.into_iter().chain(PIECES) {
            expected.extend_from_slice(&self.bytes[start..start + len]);
            expected.extend_from_slice(b"--");
        }
        expected
    }
}

impl FrameHandler for Ranges {
    fn handle(&self, _: &Arc<ConnectionInfo>, _: Bytes, reply: Reply) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let mut parts = vec![Part::Bytes(Bytes::from_static(b"head"))];
        for file in [Some(&self.file), None] {
            for (start, len) in PIECES {
                let piece = Piece { file: file.cloned(), bytes: self.bytes.clone(), start, len };
                parts.push(Part::Range(Box::new(piece)));
                parts.push(Part::Bytes(Bytes::from_static(b"--")));
            }
        }
        reply.send(Outcome::Respond(parts));
    }
}

fn serve(handler: Arc<Ranges>, range_mode: RangeMode) -> Server {
    let connection = ConnectionSettings { range_mode, ..ConnectionSettings::default() };
    let settings = ListenerSettings {
        connection,
        send_buffer: Some(100_000),
        ..ListenerSettings::new("PLAINTEXT", "127.0.0.1", 0)
    };
    Server::start_in(&ConnectionTable::new(ConnectionLimits::default()), settings, handler)
}

/// Reads one frame in steps of `step` bytes.
async fn receive_slowly(peer: &mut Peer, step: usize) -> Vec<u8> {
    let size = peer.stream.read_i32().await.unwrap();
    let mut body = vec![0; usize::try_from(size).unwrap()];
    for chunk in body.chunks_mut(step) {
        peer.stream.read_exact(chunk).await.unwrap();
        tokio::task::yield_now().await;
    }
    body
}

#[tokio::test]
async fn ranges_arrive_whole_in_each_mode_and_at_each_pace() {
    for mode in [RangeMode::Copy, RangeMode::Sendfile { from: 0 }, RangeMode::default()] {
        let handler = Ranges::new();
        let server = serve(Arc::clone(&handler), mode);
        let mut peer = server.connect().await;
        for step in [1_000_000, 10_007, 1_013] {
            peer.send(&request(METADATA, 1, 10)).await;
            assert!(
                receive_slowly(&mut peer, step).await == handler.expected(),
                "{mode:?} in steps of {step}"
            );
        }
    }
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_not_served_on() {
    let handler = Ranges::new();
    let server = serve(Arc::clone(&handler), RangeMode::default());
    let mut peer = server.connect().await;
    let requests: Vec<u8> = (0..8).flat_map(|mark| framed(&request(PRODUCE, mark, 10))).collect();
    peer.send_raw(&requests).await;
    let mut before = usize::MAX;
    // Until nothing moves any more.
    while handler.answered.load(Ordering::Relaxed) != before {
        before = handler.answered.load(Ordering::Relaxed);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    assert!(before <= 3, "{before} answers of 5 MB were asked for");
    let expected = handler.expected();
    for _ in 0..8 {
        assert!(receive_slowly(&mut peer, 1_000_000).await == expected);
    }
    assert_eq!(handler.answered.load(Ordering::Relaxed), 8);
}

#[tokio::test]
async fn small_answers_to_a_peer_that_does_not_read_are_bounded_too() {
    let server = serve_echo();
    let mut peer = server.connect().await;
    let body = request(METADATA, 1, 1000);
    let (mut reader, mut writer) = peer.stream.split();
    let frame = framed(&body);
    let mut sent = 0u64;
    let writing = async {
        // As much as goes in before the sockets are full in both directions.
        while sent < 100_000 {
            if tokio::io::AsyncWriteExt::write_all(&mut writer, &frame).await.is_err() {
                break;
            }
            sent += 1;
        }
    };
    tokio::select! {
        () = writing => panic!("a peer that reads nothing was served 100 MB"),
        () = stalled(&server) => {}
    }
    let unread = server.counters.requests.get() - server.counters.bytes_out.get() / 1004;
    assert!(unread <= 80, "{unread} answers are held for a peer that does not read");
    let mut one = vec![0; frame.len()];
    reader.read_exact(&mut one).await.unwrap();
    assert_eq!(one, frame);
}

fn serve_echo() -> Server {
    let settings = ListenerSettings {
        send_buffer: Some(20_000),
        receive_buffer: Some(20_000),
        ..ListenerSettings::new("PLAINTEXT", "127.0.0.1", 0)
    };
    Server::start_in(
        &ConnectionTable::new(ConnectionLimits::default()),
        settings,
        Arc::new(crate::common::Echo),
    )
}

/// Waits until the server has not read or written for a while, measured in turns of the runtime.
async fn stalled(server: &Server) {
    let mut seen = (0, 0);
    loop {
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        let now = (server.counters.bytes_in.get(), server.counters.bytes_out.get());
        if now == seen && now.0 > 0 {
            return;
        }
        seen = now;
    }
}

#[tokio::test]
async fn a_range_that_ends_too_early_ends_the_connection() {
    for mode in [RangeMode::Copy, RangeMode::Sendfile { from: 0 }] {
        let handler = Ranges::new();
        handler.file.set_len(10_000).unwrap();
        let server = serve(handler, mode);
        let mut peer = server.connect().await;
        peer.send(&request(METADATA, 1, 10)).await;
        let got = peer.end().await;
        assert!(got.len() < 30_000, "{} bytes", got.len());
        server.table.emptied().await;
    }
}
