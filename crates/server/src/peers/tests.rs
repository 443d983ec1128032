use std::io;
use std::sync::mpsc;

use net::peer_link::MAX_WAITING;
use node::peers::PeerAddress;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use wire::types::BrokerId;

use super::*;

const LIMIT: Duration = Duration::from_secs(60);

type End = mpsc::Receiver<Result<Bytes, PeerError>>;

/// A runtime with the peers on it; the test itself is outside, as the node is.
struct World {
    runtime: Runtime,
    peers: Arc<TcpPeers>,
}

impl World {
    fn new() -> Self {
        Self::with_channels(MAX_CHANNELS)
    }

    fn with_channels(max_channels: usize) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let peers = TcpPeers::new(runtime.handle().clone(), PeerSettings::default());
        Self { runtime, peers: Arc::new(TcpPeers { max_channels, ..peers }) }
    }

    fn listener(&self) -> TcpListener {
        self.runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap()
    }

    /// A broker that answers every frame with itself.
    fn echo(&self) -> PeerAddress {
        let listener = self.listener();
        let address = address_of(&listener);
        self.runtime.spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    while let Ok(size) = stream.read_i32().await {
                        let mut body = vec![0; usize::try_from(size).unwrap()];
                        stream.read_exact(&mut body).await.unwrap();
                        stream.write_i32(size).await.unwrap();
                        stream.write_all(&body).await.unwrap();
                    }
                });
            }
        });
        address
    }

    /// A broker that accepts and never answers; the accepted connection is given to the test.
    fn silent(&self) -> (PeerAddress, mpsc::Receiver<TcpStream>) {
        let listener = self.listener();
        let address = address_of(&listener);
        let (sender, accepted) = mpsc::channel();
        self.runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if sender.send(stream).is_err() {
                    return;
                }
            }
        });
        (address, accepted)
    }

    fn send(&self, channel: Channel, address: &PeerAddress) -> End {
        let (sender, end) = mpsc::channel();
        self.peers.send(request(channel, address), Box::new(move |answer| drop(sender.send(answer))));
        end
    }
}

fn address_of(listener: &TcpListener) -> PeerAddress {
    let address = listener.local_addr().unwrap();
    PeerAddress { host: address.ip().to_string(), port: address.port() }
}

fn channel(broker: i32, purpose: Purpose) -> Channel {
    Channel { broker: BrokerId(broker), purpose }
}

fn request(channel: Channel, address: &PeerAddress) -> PeerRequest {
    let frame = Bytes::copy_from_slice(format!("{channel:?}").as_bytes());
    PeerRequest { channel, address: address.clone(), frame, timeout: LIMIT }
}

fn answer(end: &End) -> Result<Bytes, PeerError> {
    end.recv_timeout(LIMIT).unwrap()
}

#[test]
fn a_broker_that_never_answers_holds_up_no_other_channel() {
    let world = World::new();
    let ((silent, _accepted), echo) = (world.silent(), world.echo());
    let held: Vec<End> = (0..8).map(|n| world.send(channel(1, Purpose::Fetcher(n)), &silent)).collect();
    for purpose in [Purpose::Control, Purpose::ToController, Purpose::Fetcher(0)] {
        let channel = channel(2, purpose);
        assert_eq!(answer(&world.send(channel, &echo)).unwrap(), format!("{channel:?}"));
    }
    assert!(held.iter().all(|end| end.try_recv().is_err()));
}

#[test]
fn each_channel_has_a_connection_of_its_own() {
    let world = World::new();
    let echo = world.echo();
    for _ in 0..2 {
        for purpose in [Purpose::Control, Purpose::ToController, Purpose::Fetcher(0), Purpose::Fetcher(1)] {
            answer(&world.send(channel(1, purpose), &echo)).unwrap();
        }
    }
    assert_eq!(world.peers.counters().connections_opened.get(), 4);
}

#[test]
fn closing_a_channel_fails_what_waits_there_and_the_next_request_opens_it_anew() {
    let world = World::new();
    let (silent, accepted) = world.silent();
    let (closed, other) = (channel(1, Purpose::Control), channel(2, Purpose::Control));
    let sent = world.send(closed, &silent);
    let mut stream = accepted.recv_timeout(LIMIT).unwrap();
    world.runtime.block_on(stream.read_i32()).unwrap();
    let waits = world.send(closed, &silent);
    let elsewhere = world.send(other, &silent);
    world.peers.close(closed);
    assert!(matches!(answer(&sent), Err(PeerError::Disconnected(_))));
    assert_eq!(answer(&waits), Err(PeerError::Refused));
    assert!(elsewhere.try_recv().is_err(), "another channel is not concerned");
    assert!(answer(&world.send(closed, &world.echo())).is_ok());
    world.peers.close(channel(3, Purpose::Control));
}

#[test]
fn a_request_too_many_is_refused_within_the_call() {
    let world = World::new();
    let (silent, accepted) = world.silent();
    let full = channel(1, Purpose::ToController);
    let _sent = world.send(full, &silent);
    let mut stream = accepted.recv_timeout(LIMIT).unwrap();
    world.runtime.block_on(stream.read_i32()).unwrap();
    let waiting: Vec<End> = (0..MAX_WAITING).map(|_| world.send(full, &silent)).collect();
    assert_eq!(world.send(full, &silent).try_recv(), Ok(Err(PeerError::Refused)));
    assert!(waiting.iter().all(|end| end.try_recv().is_err()));
}

#[test]
fn whoever_is_told_may_send_and_close() {
    let world = World::new();
    let echo = world.echo();
    let (first, second) = (channel(1, Purpose::Fetcher(0)), channel(1, Purpose::Fetcher(1)));
    let (sender, end) = mpsc::channel();
    let (peers, address) = (Arc::clone(&world.peers), echo.clone());
    let done: PeerDone = Box::new(move |_| {
        peers.close(second);
        for channel in [first, second] {
            let sender = sender.clone();
            let done: PeerDone = Box::new(move |answer| drop(sender.send(answer)));
            peers.send(request(channel, &address), done);
        }
    });
    world.peers.send(request(first, &echo), done);
    for _ in 0..2 {
        answer(&end).unwrap();
    }
}

#[test]
fn a_callback_that_panics_takes_no_later_request_along() {
    let world = World::new();
    let echo = world.echo();
    let channel = channel(1, Purpose::Control);
    let (sender, told) = mpsc::channel::<()>();
    let done: PeerDone = Box::new(move |_| {
        // Its end tells the test that the thread has unwound.
        let _sender = sender;
        panic!("for the test");
    });
    world.peers.send(request(channel, &echo), done);
    assert!(told.recv_timeout(LIMIT).is_err());
    let until = Instant::now() + LIMIT;
    while answer(&world.send(channel, &echo)).is_err() {
        assert!(Instant::now() < until, "the channel is dead");
        std::thread::yield_now();
    }
}

#[test]
fn at_the_limit_idle_channels_make_room_and_busy_ones_do_not() {
    let world = World::with_channels(3);
    let ((silent, _accepted), echo) = (world.silent(), world.echo());
    let mut busy = vec![world.send(channel(1, Purpose::Control), &silent)];
    for idle in [2, 3] {
        answer(&world.send(channel(idle, Purpose::Control), &echo)).unwrap();
    }
    busy.push(world.send(channel(4, Purpose::Control), &silent));
    busy.push(world.send(channel(5, Purpose::Control), &silent));
    assert_eq!(world.peers.lock().len(), 3);
    assert_eq!(world.send(channel(6, Purpose::Control), &echo).try_recv(), Ok(Err(PeerError::Refused)));
    assert_eq!(world.peers.counters().refused.get(), 1);
    assert!(busy.iter().all(|end| end.try_recv().is_err()), "a request under way was given up");
    world.peers.close(channel(1, Purpose::Control));
    answer(&world.send(channel(6, Purpose::Control), &echo)).unwrap();
}

#[test]
fn a_failure_is_told_in_one_line_with_the_address_and_the_systems_reason() {
    let world = World::new();
    let address = address_of(&world.listener());
    let error = answer(&world.send(channel(1, Purpose::Control), &address)).unwrap_err().to_string();
    let expected = format!("cannot connect: 127.0.0.1:{}: Connection refused", address.port);
    assert!(error.starts_with(&expected), "{error}");
    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    assert_eq!(peer_error(LinkError::Io(reset)).to_string(), "the connection failed: connection reset");
    let closed = peer_error(LinkError::Closed).to_string();
    assert_eq!(closed, "the connection failed: the peer closed the connection");
}

#[test]
fn only_a_buffer_that_is_asked_for_is_set() {
    let settings = |overrides: &[(&str, &str)]| {
        let overrides: Vec<_> =
            overrides.iter().map(|(key, value)| (String::from(*key), String::from(*value))).collect();
        PeerSettings::from_config(&KafkaConfig::without_file(&overrides).unwrap().0).fetcher_receive_buffer
    };
    assert_eq!(settings(&[]), None);
    assert_eq!(settings(&[("replica.socket.receive.buffer.bytes", "-1")]), None);
    assert_eq!(settings(&[("replica.socket.receive.buffer.bytes", "65536")]), Some(65536));
}
