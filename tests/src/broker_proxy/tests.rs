use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest};

use super::*;
use crate::raw::{Answer, Connection, frame};
use crate::wait;

const LIMIT: Duration = Duration::from_secs(20);
const METADATA: i16 = ApiKey::Metadata as i16;

/// A broker that answers each frame with its correlation id and the whole frame.
struct Scripted {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Bytes>>>,
}

impl Scripted {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (address, received) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<Bytes>>>::default());
        let notes = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut connection = Connection::over(stream.unwrap()).unwrap();
                let notes = Arc::clone(&notes);
                std::thread::spawn(move || {
                    while let Ok(Answer::Frame(request)) = connection.receive() {
                        lock(&notes).push(request.clone());
                        let mut answer = request.slice(4..8).to_vec();
                        answer.extend_from_slice(&request);
                        if connection.send(&answer).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, received }
    }

    fn received(&self) -> usize {
        lock(&self.received).len()
    }
}

/// A client through a proxy.
struct World {
    broker: Scripted,
    proxy: BrokerProxy,
}

impl World {
    fn new() -> Self {
        let broker = Scripted::start();
        let proxy = BrokerProxy::start(broker.address).unwrap();
        Self { broker, proxy }
    }

    fn connect(&self) -> Connection {
        let connection = Connection::open(&self.proxy.address()).unwrap();
        connection.set_answer_limit(LIMIT).unwrap();
        connection
    }
}

fn request(id: i32) -> Bytes {
    frame(1, id, &MetadataRequest::default()).unwrap()
}

fn coordinator_request(id: i32) -> Bytes {
    frame(1, id, &FindCoordinatorRequest::default()).unwrap()
}

fn expect_answer(connection: &mut Connection, id: i32) {
    match connection.receive().unwrap() {
        Answer::Frame(answer) => assert_eq!(correlation_id(&answer), Some(id)),
        other => panic!("{other:?} instead of answer {id}"),
    }
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    wait::until(what, LIMIT, || Ok(condition().then_some(()))).unwrap();
}

#[test]
fn frames_pass_unchanged_and_are_counted() {
    let world = World::new();
    let mut client = world.connect();
    for id in 0..3 {
        client.send(&request(id)).unwrap();
        expect_answer(&mut client, id);
    }
    client.send(&frame(3, 9, &ApiVersionsRequest::default()).unwrap()).unwrap();
    expect_answer(&mut client, 9);
    assert_eq!(lock(&world.broker.received)[1], request(1));
    for direction in [Direction::Request, Direction::Response] {
        assert_eq!(world.proxy.count(direction, METADATA), 3);
        assert_eq!(world.proxy.count(direction, ApiKey::ApiVersions as i16), 1);
    }
    let seen = world.proxy.seen();
    assert_eq!(seen.len(), 8);
    assert_eq!(seen[7].direction, Direction::Response);
    assert_eq!((seen[7].header.version, seen[7].header.correlation_id), (3, 9));
    assert_eq!(seen[7].header.client_id.as_deref(), Some("interop"));
    assert_eq!((seen[0].size, seen[0].connection), (request(0).len(), 0));
}

#[test]
fn exactly_the_named_request_is_dropped_and_the_connection_lives() {
    let world = World::new();
    let applied = world.proxy.rule(Rule::for_requests(Action::Drop).of_key(METADATA).after(1).times(1));
    let mut client = world.connect();
    for id in 0..4 {
        client.send(&request(id)).unwrap();
    }
    for id in [0, 2, 3] {
        expect_answer(&mut client, id);
    }
    assert_eq!((applied.count(), world.broker.received()), (1, 3));
}

#[test]
fn exactly_the_named_response_is_dropped_and_its_request_arrives() {
    let world = World::new();
    world.proxy.rule(Rule::for_responses(Action::Drop).of_key(METADATA).times(1));
    let mut client = world.connect();
    client.send(&coordinator_request(1)).unwrap();
    client.send(&request(2)).unwrap();
    client.send(&request(3)).unwrap();
    expect_answer(&mut client, 1);
    expect_answer(&mut client, 3);
    assert_eq!(world.broker.received(), 3);
}

#[test]
fn a_request_may_cost_the_connection_before_or_after_it_was_served() {
    for (rule, arrives) in [(Rule::for_requests(Action::Close), 0), (Rule::for_responses(Action::Close), 1)] {
        let world = World::new();
        world.proxy.rule(rule.times(1));
        let mut client = world.connect();
        client.send(&request(1)).unwrap();
        assert_eq!(client.receive().unwrap(), Answer::Closed);
        assert_eq!(world.broker.received(), arrives);
        let mut again = world.connect();
        again.send(&request(2)).unwrap();
        expect_answer(&mut again, 2);
        assert_eq!(world.proxy.connections(), 2);
    }
}

#[test]
fn what_is_held_goes_on_in_order_when_the_gate_opens() {
    let world = World::new();
    let gate = Arc::new(Gate::new(false));
    world.proxy.rule(Rule::for_requests(Action::Hold(Arc::clone(&gate))).times(1));
    let mut client = world.connect();
    client.send(&request(1)).unwrap();
    client.send(&request(2)).unwrap();
    until("a held request", || gate.waiting() == 1);
    let mut other = world.connect();
    other.send(&request(3)).unwrap();
    expect_answer(&mut other, 3);
    assert_eq!(world.broker.received(), 1, "what is held has arrived");
    gate.open();
    expect_answer(&mut client, 1);
    expect_answer(&mut client, 2);
}

#[test]
fn a_delay_lets_nothing_arrive_early() {
    let world = World::new();
    let delay = Duration::from_millis(40);
    world.proxy.rule(Rule::for_responses(Action::Delay(delay)));
    let mut client = world.connect();
    let start = Instant::now();
    client.send(&request(1)).unwrap();
    expect_answer(&mut client, 1);
    assert!(start.elapsed() >= delay);
}

#[test]
fn a_cut_direction_holds_frames_and_ends_while_the_other_lives() {
    let world = World::new();
    let mut client = world.connect();
    client.send(&request(1)).unwrap();
    expect_answer(&mut client, 1);
    world.proxy.cut(Direction::Response);
    client.send(&request(2)).unwrap();
    until("the request at the broker", || world.broker.received() == 2);
    world.proxy.cut(Direction::Request);
    client.send(&request(3)).unwrap();
    until("the request at the proxy", || world.proxy.count(Direction::Request, METADATA) == 3);
    client.stream().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(world.broker.received(), 2);
    world.proxy.heal();
    expect_answer(&mut client, 2);
    expect_answer(&mut client, 3);
    assert_eq!(client.receive().unwrap(), Answer::Closed);
}

#[test]
fn severing_closes_what_is_cut_too() {
    let world = World::new();
    world.proxy.cut(Direction::Request);
    let mut client = world.connect();
    client.send(&request(1)).unwrap();
    until("the connection", || lock(&world.proxy.shared.links).len() == 1);
    world.proxy.sever();
    assert_eq!(client.receive().unwrap(), Answer::Closed);
    assert_eq!(world.broker.received(), 0);
}

#[test]
fn a_broker_that_is_down_closes_the_connection_and_may_come_back_elsewhere() {
    let world = World::new();
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    world.proxy.set_target(nobody);
    assert_eq!(world.connect().receive().unwrap(), Answer::Closed);
    world.proxy.set_target(world.broker.address);
    let mut client = world.connect();
    client.send(&request(1)).unwrap();
    expect_answer(&mut client, 1);
}

#[test]
fn a_proxy_ends_with_all_that_it_holds() {
    let world = World::new();
    let gate = Arc::new(Gate::new(false));
    world.proxy.rule(Rule::for_requests(Action::Hold(Arc::clone(&gate))));
    let (mut held, mut cut) = (world.connect(), world.connect());
    held.send(&request(1)).unwrap();
    until("a held request", || gate.waiting() == 1);
    world.proxy.cut(Direction::Response);
    drop(world.proxy);
    for client in [&mut held, &mut cut] {
        assert_eq!(client.receive().unwrap(), Answer::Closed);
    }
    assert_eq!(world.broker.received(), 0);
}

#[test]
fn bytes_that_are_no_frames_close_the_connection() {
    let world = World::new();
    for bytes in [&b"\xff\xff\xff\xff"[..], b"\0\0\0\x02ab", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut client = world.connect();
        client.send_bytes(bytes).unwrap();
        assert_eq!(client.receive().unwrap(), Answer::Closed, "{bytes:?}");
    }
}
