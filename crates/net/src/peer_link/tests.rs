use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::*;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);
/// As long as the tests of a silent peer wait for it.
const SHORT: Duration = Duration::from_millis(50);

/// The other broker, played by the test.
struct Peer {
    listener: TcpListener,
}

impl Peer {
    async fn listen() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    fn address(&self) -> PeerHost {
        let address = self.listener.local_addr().unwrap();
        PeerHost { host: address.ip().to_string(), port: address.port() }
    }

    async fn accept(&self) -> TcpStream {
        tokio::time::timeout(LONG, self.listener.accept()).await.expect("a connection").unwrap().0
    }
}

async fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let size = stream.read_i32().await.unwrap();
    let mut body = vec![0; usize::try_from(size).unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    body
}

async fn answer(stream: &mut TcpStream, body: &[u8]) {
    stream.write_i32(i32::try_from(body.len()).unwrap()).await.unwrap();
    stream.write_all(body).await.unwrap();
}

/// A link with its counters.
struct Link {
    link: PeerLink,
    counters: Arc<LinkCounters>,
}

type End = oneshot::Receiver<Result<Bytes, LinkError>>;

impl Link {
    fn new() -> Self {
        let counters = Arc::new(LinkCounters::default());
        let settings = LinkSettings { receive_buffer: None, max_answer_bytes: 16 * 1024 * 1024 };
        let link = PeerLink::start(&Handle::current(), settings, Dialer::default(), Arc::clone(&counters));
        Self { link, counters }
    }

    fn send(&self, address: PeerHost, frame: &'static [u8]) -> End {
        self.send_within(address, frame, LONG)
    }

    fn send_within(&self, address: PeerHost, frame: &'static [u8], limit: Duration) -> End {
        let (sender, end) = oneshot::channel();
        let done: LinkDone = Box::new(move |end| drop(sender.send(end)));
        let (frame, deadline) = (Bytes::from_static(frame), Instant::now() + limit);
        self.link.send(LinkRequest { address, frame, deadline, done });
        end
    }

    async fn until(&self, condition: impl Fn(&LinkCounters) -> bool) {
        let looking = async {
            while !condition(&self.counters) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, looking).await.unwrap();
    }
}

#[tokio::test]
async fn requests_go_one_after_the_other_over_one_connection() {
    let (peer, link) = (Peer::listen().await, Link::new());
    let ends = [b"a", b"b", b"c"].map(|frame| link.send(peer.address(), frame));
    let mut stream = peer.accept().await;
    for (frame, end) in [b"a", b"b", b"c"].into_iter().zip(ends) {
        assert_eq!(receive(&mut stream).await, frame);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let early = stream.try_read(&mut [0]).unwrap_err();
        assert_eq!(
            early.kind(),
            io::ErrorKind::WouldBlock,
            "a request was sent before the last was answered"
        );
        answer(&mut stream, frame).await;
        assert_eq!(end.await.unwrap().unwrap(), &frame[..]);
    }
    assert!(link.link.is_idle());
    assert_eq!(link.counters.connections_opened.get(), 1);
    assert_eq!((link.counters.requests.get(), link.counters.answers.get()), (3, 3));
    assert_eq!((link.counters.bytes_out.get(), link.counters.bytes_in.get()), (15, 15));
}

#[tokio::test]
async fn a_large_answer_that_comes_in_pieces_is_one_buffer() {
    let (peer, link) = (Peer::listen().await, Link::new());
    let end = link.send(peer.address(), b"fetch");
    let mut stream = peer.accept().await;
    receive(&mut stream).await;
    let body: Vec<u8> = (0..10_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    stream.write_i32(10_000_000).await.unwrap();
    for piece in body.chunks(1_000_003) {
        stream.write_all(piece).await.unwrap();
        tokio::task::yield_now().await;
    }
    let got = end.await.unwrap().unwrap();
    assert!(got == body);
    assert!(got.try_into_mut().is_ok(), "somebody else holds a part of the buffer");
}

#[tokio::test]
async fn a_request_without_an_answer_in_time_ends_the_connection_and_the_next_opens_another() {
    let (peer, link) = (Peer::listen().await, Link::new());
    let late = link.send_within(peer.address(), b"late", SHORT);
    let next = link.send(peer.address(), b"next");
    let mut first = peer.accept().await;
    assert_eq!(receive(&mut first).await, b"late");
    assert!(matches!(late.await.unwrap(), Err(LinkError::TimedOut)));
    assert_eq!(first.read(&mut [0]).await.unwrap(), 0, "the connection must be closed");
    let mut second = peer.accept().await;
    assert_eq!(receive(&mut second).await, b"next");
    answer(&mut second, b"here").await;
    assert_eq!(next.await.unwrap().unwrap(), &b"here"[..]);
    assert_eq!((link.counters.timed_out.get(), link.counters.connections_opened.get()), (1, 2));
}

#[tokio::test]
async fn time_spent_waiting_counts_and_what_is_late_by_then_is_not_sent() {
    let (peer, link) = (Peer::listen().await, Link::new());
    let slow = link.send_within(peer.address(), b"slow", SHORT * 2);
    let queued = link.send_within(peer.address(), b"queued", SHORT);
    let mut stream = peer.accept().await;
    assert!(matches!(slow.await.unwrap(), Err(LinkError::TimedOut)));
    assert!(matches!(queued.await.unwrap(), Err(LinkError::TimedOut)));
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes, b"\0\0\0\x04slow");
    assert_eq!(link.counters.connections_opened.get(), 1);
}

#[tokio::test]
async fn a_connection_that_ends_in_the_middle_of_an_answer_fails_the_request_and_the_next_opens_another() {
    let (peer, link) = (Peer::listen().await, Link::new());
    for part in [&b""[..], b"\0\0", b"\0\0\0\x05hel"] {
        let end = link.send(peer.address(), b"hello?");
        let mut stream = peer.accept().await;
        receive(&mut stream).await;
        stream.write_all(part).await.unwrap();
        drop(stream);
        assert!(matches!(end.await.unwrap(), Err(LinkError::Closed)), "{part:?}");
    }
    let end = link.send(peer.address(), b"hello?");
    let mut stream = peer.accept().await;
    receive(&mut stream).await;
    answer(&mut stream, b"hello").await;
    assert_eq!(end.await.unwrap().unwrap(), &b"hello"[..]);
}

#[tokio::test]
async fn a_size_that_no_answer_may_have_ends_the_connection() {
    let (peer, link) = (Peer::listen().await, Link::new());
    for size in [0, -1, i32::MIN, 16 * 1024 * 1024 + 1] {
        let end = link.send(peer.address(), b"hello?");
        let mut stream = peer.accept().await;
        receive(&mut stream).await;
        stream.write_i32(size).await.unwrap();
        assert!(matches!(end.await.unwrap(), Err(LinkError::Size(_))), "{size}");
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn bytes_that_nobody_asked_for_end_the_connection() {
    let (peer, link) = (Peer::listen().await, Link::new());
    let end = link.send(peer.address(), b"hello?");
    let mut stream = peer.accept().await;
    receive(&mut stream).await;
    stream.write_all(b"\0\0\0\x01x\0\0\0\x01y").await.unwrap();
    assert!(matches!(end.await.unwrap(), Err(LinkError::Unasked)));

    let end = link.send(peer.address(), b"hello?");
    let mut stream = peer.accept().await;
    receive(&mut stream).await;
    answer(&mut stream, b"x").await;
    end.await.unwrap().unwrap();
    answer(&mut stream, b"y").await;
    link.until(|counters| counters.connections_closed.get() == 2).await;
}

#[tokio::test]
async fn a_connection_that_the_peer_ends_while_idle_is_replaced_without_a_failure() {
    let (peer, link) = (Peer::listen().await, Link::new());
    for round in 1..=3 {
        let end = link.send(peer.address(), b"hello?");
        let mut stream = peer.accept().await;
        receive(&mut stream).await;
        answer(&mut stream, b"hello").await;
        end.await.unwrap().unwrap();
        drop(stream);
        link.until(|counters| counters.connections_closed.get() == round).await;
    }
}

#[tokio::test]
async fn another_address_replaces_the_connection() {
    let (old, new, link) = (Peer::listen().await, Peer::listen().await, Link::new());
    let end = link.send(old.address(), b"old");
    let mut first = old.accept().await;
    receive(&mut first).await;
    answer(&mut first, b"x").await;
    end.await.unwrap().unwrap();
    let end = link.send(new.address(), b"new");
    let mut second = new.accept().await;
    assert_eq!(receive(&mut second).await, b"new");
    assert_eq!(first.read(&mut [0]).await.unwrap(), 0, "the old connection must be closed");
    answer(&mut second, b"y").await;
    assert_eq!(end.await.unwrap().unwrap(), &b"y"[..]);
}

#[tokio::test]
async fn a_request_over_the_limit_is_refused_at_once_and_there_is_room_again_after_an_answer() {
    let (peer, link) = (Peer::listen().await, Link::new());
    let first = link.send(peer.address(), b"first");
    let mut stream = peer.accept().await;
    receive(&mut stream).await;
    let mut waiting: Vec<End> = (0..MAX_WAITING).map(|_| link.send(peer.address(), b"waits")).collect();
    let mut over = link.send(peer.address(), b"over");
    assert!(matches!(over.try_recv(), Ok(Err(LinkError::Refused))));
    assert_eq!(link.counters.refused.get(), 1);
    answer(&mut stream, b"x").await;
    first.await.unwrap().unwrap();
    receive(&mut stream).await;
    let mut last = link.send(peer.address(), b"last");
    assert!(last.try_recv().is_err(), "there is room for one");
    for end in waiting.drain(..) {
        answer(&mut stream, b"x").await;
        end.await.unwrap().unwrap();
        receive(&mut stream).await;
    }
    answer(&mut stream, b"x").await;
    last.await.unwrap().unwrap();
}

#[tokio::test]
async fn closing_fails_what_was_sent_and_what_waits() {
    let (peer, link) = (Peer::listen().await, Link::new());
    let sent = link.send(peer.address(), b"sent");
    let mut stream = peer.accept().await;
    receive(&mut stream).await;
    let waits = link.send(peer.address(), b"waits");
    link.link.close();
    assert!(matches!(sent.await.unwrap(), Err(LinkError::Ended)));
    assert!(matches!(waits.await.unwrap(), Err(LinkError::Refused)));
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    let after = link.send(peer.address(), b"after");
    assert!(matches!(after.await.unwrap(), Err(LinkError::Refused)));
    assert!(link.link.is_closed() && link.link.is_idle());
}

#[test]
fn the_end_of_the_runtime_is_the_end_of_every_request() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (link, ends) = runtime.block_on(async {
        let (peer, link) = (Peer::listen().await, Link::new());
        let ends = [link.send(peer.address(), b"sent"), link.send(peer.address(), b"waits")];
        receive(&mut peer.accept().await).await;
        link.until(|counters| counters.requests.get() == 1).await;
        (link, ends)
    });
    drop(runtime);
    let [mut sent, mut waits] = ends;
    assert!(matches!(sent.try_recv(), Ok(Err(LinkError::Ended))));
    assert!(matches!(waits.try_recv(), Ok(Err(LinkError::Refused))));
    assert!(link.link.is_closed());
}

#[tokio::test]
async fn whoever_is_told_may_hand_in_the_next_request_at_once() {
    let (peer, link) = (Peer::listen().await, Arc::new(Link::new()));
    let next: Arc<Mutex<Option<End>>> = Arc::default();
    let (again, put, address) = (Arc::clone(&link), Arc::clone(&next), peer.address());
    let done: LinkDone = Box::new(move |_| {
        assert!(again.link.is_idle());
        *put.lock().unwrap() = Some(again.send(address, b"second"));
    });
    let deadline = Instant::now() + LONG;
    link.link.send(LinkRequest {
        address: peer.address(),
        frame: Bytes::from_static(b"first"),
        deadline,
        done,
    });
    let mut stream = peer.accept().await;
    assert_eq!(receive(&mut stream).await, b"first");
    answer(&mut stream, b"x").await;
    assert_eq!(receive(&mut stream).await, b"second");
    answer(&mut stream, b"y").await;
    let end = next.lock().unwrap().take().unwrap();
    assert_eq!(end.await.unwrap().unwrap(), &b"y"[..]);
}

#[tokio::test]
async fn a_peer_that_does_not_listen_is_told_with_its_address() {
    let link = Link::new();
    let peer = Peer::listen().await;
    let address = peer.address();
    drop(peer);
    let error = link.send(address.clone(), b"x").await.unwrap().unwrap_err();
    assert!(matches!(&error, LinkError::Connect { address: told, .. } if *told == address), "{error}");
    let error = link.send(PeerHost { host: "no.such.host.invalid".into(), port: 1 }, b"x").await.unwrap();
    assert!(error.unwrap_err().to_string().starts_with("cannot connect to no.such.host.invalid:1: "));
    assert_eq!((link.counters.connections_failed.get(), link.counters.requests.get()), (2, 0));
}

#[tokio::test]
async fn names_and_bracketed_addresses_lead_to_the_peer() {
    let peer = Peer::listen().await;
    let port = peer.address().port;
    for host in ["localhost", "127.0.0.1", "[127.0.0.1]"] {
        let link = Link::new();
        let end = link.send(PeerHost { host: host.into(), port }, b"hello?");
        let mut stream = peer.accept().await;
        receive(&mut stream).await;
        answer(&mut stream, b"hello").await;
        end.await.unwrap().unwrap();
    }
    assert_eq!(PeerHost { host: "::1".into(), port: 9092 }.to_string(), "[::1]:9092");
}

#[tokio::test]
async fn a_receive_buffer_is_set_if_it_is_asked_for() {
    let peer = Peer::listen().await;
    let deadline = Instant::now() + LONG;
    let stream = Dialer::default().connect(&peer.address(), Some(16 * 1024), deadline).await.unwrap();
    let socket = socket2::SockRef::from(&stream);
    // Linux doubles what it is told.
    assert_eq!(socket.recv_buffer_size().unwrap(), 32 * 1024);
    assert!(stream.nodelay().unwrap() && socket.keepalive().unwrap());
}
