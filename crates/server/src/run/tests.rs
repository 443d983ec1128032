use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use net::listener::ListenerSettings;
use net::table::ConnectionLimits;
use net::{ConnectionInfo, FrameHandler, Outcome, Part, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::*;
use crate::node_trait::{DeadlineHook, Readiness, WantedHook};
use crate::settings::HttpSettings;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Called when a node is shut down.
pub(super) type OnEnd = Box<dyn FnOnce() + Send>;

/// Echoes requests, but keeps those of `park` until the end.
#[derive(Default)]
pub(super) struct Double {
    id: i32,
    on_end: Mutex<Option<OnEnd>>,
    /// Held by the test as long as the node shall be leaving.
    leaving: Mutex<()>,
    left: AtomicBool,
    parked: Mutex<Vec<Reply>>,
    hook: Mutex<Option<DeadlineHook>>,
    /// What it wants before it serves.
    wanted_first: Option<Wanted>,
    want: Mutex<Option<WantedHook>>,
    bound: watch::Sender<Vec<Bound>>,
    polls: AtomicUsize,
    housekeepings: AtomicUsize,
    shut_down: AtomicBool,
}

impl Double {
    pub(super) fn with_end(id: i32, on_end: OnEnd) -> Self {
        Self { id, on_end: Mutex::new(Some(on_end)), ..Self::default() }
    }

    /// One that wants other listeners than the server was started with.
    pub(super) fn wanting(listeners: Vec<ListenerSettings>) -> Self {
        Self { wanted_first: Some(wanted(listeners)), ..Self::default() }
    }

    /// Wants these listeners from now on, and waits until the server has told what is bound.
    pub(super) async fn want(&self, listeners: Vec<ListenerSettings>) -> Vec<Bound> {
        let mut told = self.bound.subscribe();
        self.want.lock().unwrap().as_ref().unwrap()(wanted(listeners));
        timeout(PATIENCE, told.changed()).await.unwrap().unwrap();
        told.borrow().clone()
    }
}

fn wanted(listeners: Vec<ListenerSettings>) -> Wanted {
    Wanted { limits: ConnectionLimits::default(), listeners }
}

impl FrameHandler for Double {
    fn handle(&self, _: &Arc<ConnectionInfo>, frame: Bytes, reply: Reply) {
        if frame.ends_with(b"thread") {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            reply.send(Outcome::Respond(vec![Part::Bytes(Bytes::from(name))]));
        } else if frame.ends_with(b"park") {
            self.parked.lock().unwrap().push(reply);
        } else {
            reply.send(Outcome::Respond(vec![Part::Bytes(frame)]));
        }
    }
}

impl Node for Double {
    fn id(&self) -> i32 {
        self.id
    }

    fn poll(&self) -> Option<Duration> {
        self.polls.fetch_add(1, Ordering::SeqCst);
        None
    }

    fn housekeep(&self) -> Duration {
        self.housekeepings.fetch_add(1, Ordering::SeqCst);
        Duration::from_millis(1)
    }

    fn on_earlier_deadline(&self, hook: DeadlineHook) {
        *self.hook.lock().unwrap() = Some(hook);
    }

    fn wanted(&self) -> Option<Wanted> {
        self.wanted_first.clone()
    }

    fn on_wanted(&self, hook: WantedHook) {
        *self.want.lock().unwrap() = Some(hook);
    }

    fn bound(&self, bound: &[Bound]) {
        self.bound.send_replace(bound.to_vec());
    }

    fn leave(&self) {
        drop(self.leaving.lock().unwrap());
        self.left.store(true, Ordering::SeqCst);
    }

    fn shut_down(&self) {
        assert!(self.left.load(Ordering::SeqCst), "shut down before it has left");
        for reply in self.parked.lock().unwrap().drain(..) {
            reply.send(Outcome::Respond(vec![Part::Bytes(Bytes::from_static(b"late"))]));
        }
        self.shut_down.store(true, Ordering::SeqCst);
        if let Some(on_end) = self.on_end.lock().unwrap().take() {
            on_end();
        }
    }

    fn render_metrics(&self) -> String {
        String::from("# TYPE double_polls counter\ndouble_polls_total 1\n# EOF\n")
    }

    fn readiness(&self) -> Readiness {
        Readiness { ready: true, state: String::from("running") }
    }

    fn recovery(&self) -> String {
        String::from("{\"logs\":0}")
    }

    fn explain(&self, topic: &str, partition: i32) -> Option<String> {
        (topic == "known").then(|| format!("{{\"partition\":{partition}}}"))
    }
}

/// A server in this test's runtime.
pub(super) struct Running {
    pub(super) node: Arc<Double>,
    pub(super) text: String,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    pub(super) async fn start(drain: Duration) -> Self {
        Self::start_with(settings(drain), Double::default()).await
    }

    pub(super) async fn start_with(settings: ServerSettings, node: Double) -> Self {
        let node = Arc::new(Double { id: 7, ..node });
        let stop = CancellationToken::new();
        let (said, saying) = oneshot::channel();
        let (made, token) = (Arc::clone(&node), stop.clone());
        let task = tokio::spawn(serve(
            settings,
            move |_: &[Bound]| Ok(made as Arc<dyn Node>),
            token,
            move |block: &StartBlock<'_>| {
                let mut text = Vec::new();
                block.print(&mut text)?;
                said.send(String::from_utf8(text).unwrap()).unwrap();
                Ok(())
            },
        ));
        let text = saying.await.unwrap();
        Self { node, text, stop, task }
    }

    /// The port in the line of the start block that begins with `what`.
    fn address(&self, what: &str) -> String {
        let line = self.text.lines().find(|line| line.trim_start().starts_with(what)).unwrap();
        let start = line.find("127.0.0.1:").unwrap();
        let end = line[start..].find([' ', '/']).unwrap();
        String::from(&line[start..start + end])
    }

    pub(super) async fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address("watch")).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let code = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (code, String::from(answer.split_once("\r\n\r\n").unwrap().1))
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }

    async fn send(&self, body: &[u8]) -> TcpStream {
        send(&self.address("listens"), body).await
    }
}

pub(super) async fn send(address: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_i32(i32::try_from(body.len()).unwrap()).await.unwrap();
    stream.write_all(body).await.unwrap();
    stream
}

pub(super) fn settings(drain: Duration) -> ServerSettings {
    ServerSettings {
        listeners: vec![ListenerSettings::new("PLAINTEXT", "127.0.0.1", 0)],
        control_plane: None,
        limits: ConnectionLimits::default(),
        network_threads: 2,
        blocking_threads: 2,
        http: HttpSettings { address: String::from("127.0.0.1:0"), asked: true },
        drain,
        about: vec![(String::from("data"), String::from("nowhere"))],
    }
}

pub(super) async fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let size = stream.read_i32().await.unwrap();
    let mut body = vec![0; usize::try_from(size).unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    body
}

#[tokio::test]
async fn the_start_block_tells_where_it_serves_and_ends_with_kafkas_line() {
    let server = Running::start(Duration::ZERO).await;
    assert!(server.text.contains("  data      nowhere\n"), "{}", server.text);
    assert!(server.text.ends_with("\n[KafkaServer id=7] started\n"), "{}", server.text);
    let body = receive(&mut server.send(b"hello").await).await;
    assert_eq!(body, b"hello");
}

#[tokio::test]
async fn the_page_answers_each_of_its_paths() {
    let server = Running::start(Duration::ZERO).await;
    receive(&mut server.send(b"hello").await).await;
    assert_eq!(server.get("/livez").await, (200, String::from("ok\n")));
    assert_eq!(server.get("/readyz").await, (200, String::from("running\n")));
    assert_eq!(server.get("/recovery").await, (200, String::from("{\"logs\":0}")));
    assert_eq!(
        server.get("/explain?topic=known&partition=3").await,
        (200, String::from("{\"partition\":3}"))
    );
    assert_eq!(server.get("/explain?topic=unknown").await.0, 404);
    assert_eq!(server.get("/explain").await.0, 400);
    assert_eq!(server.get("/nothing").await.0, 404);
    let (code, metrics) = server.get("/metrics").await;
    assert_eq!(code, 200);
    let requests =
        "kafka_server_socket_server_metrics_request_total{listener=\"PLAINTEXT\",networkProcessor=\"0\"} 1\n";
    assert!(metrics.contains(requests), "{metrics}");
    assert!(metrics.ends_with("double_polls_total 1\n# EOF\n"), "{metrics}");
}

#[tokio::test]
async fn time_and_disks_have_threads_of_their_own() {
    let server = Running::start(Duration::ZERO).await;
    while server.node.housekeepings.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    let before = server.node.polls.load(Ordering::SeqCst);
    let hook = server.node.hook.lock().unwrap().clone().unwrap();
    hook(Duration::ZERO);
    while server.node.polls.load(Ordering::SeqCst) == before {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_end_answers_what_waits_and_closes_all() {
    let server = Running::start(Duration::from_millis(1)).await;
    let mut idle = server.send(b"hello").await;
    receive(&mut idle).await;
    let mut parked = server.send(b"please park").await;
    while server.node.parked.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let address = server.address("listens");
    server.stop.cancel();
    assert_eq!(receive(&mut parked).await, b"late");
    server.task.await.unwrap().unwrap();
    assert!(server.node.shut_down.load(Ordering::SeqCst));
    for mut stream in [idle, parked] {
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    }
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn while_the_node_leaves_everything_is_served() {
    let server = Running::start(Duration::ZERO).await;
    let node = Arc::clone(&server.node);
    let (held, holding) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
        let _leaving = node.leaving.lock().unwrap();
        held.send(()).unwrap();
        // The end of the test's half lets it go.
        let _ = released.recv();
    });
    holding.recv().unwrap();
    let mut old = server.send(b"before").await;
    receive(&mut old).await;
    server.stop.cancel();
    while server.get("/readyz").await != (503, String::from("stopping\n")) {
        tokio::task::yield_now().await;
    }
    assert_eq!(receive(&mut server.send(b"new").await).await, b"new");
    old.write_all(b"\0\0\0\x03old").await.unwrap();
    assert_eq!(receive(&mut old).await, b"old");
    assert!(!server.node.shut_down.load(Ordering::SeqCst));
    drop(release);
    server.task.await.unwrap().unwrap();
    assert!(server.node.shut_down.load(Ordering::SeqCst));
    holder.join().unwrap();
}

#[tokio::test]
async fn a_node_that_does_not_start_stops_the_server() {
    let start = |_: &[Bound]| Err(String::from("no disk"));
    let result = serve(settings(Duration::ZERO), start, CancellationToken::new(), |_| Ok(())).await;
    assert_eq!(result.unwrap_err().to_string(), "no disk");
}

#[tokio::test]
async fn a_node_that_panics_at_its_start_stops_the_server() {
    let start = |_: &[Bound]| panic!("for the test");
    let result = serve(settings(Duration::ZERO), start, CancellationToken::new(), |_| Ok(())).await;
    assert!(matches!(result, Err(RunError::Node(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_start_that_waits_for_long_is_given_up_when_the_server_is_to_stop() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let stop = CancellationToken::new();
    stop.cancel();
    let start = move |_: &[Bound]| {
        // Ends when the test does.
        let _ = held.recv();
        Err("too late".to_owned())
    };
    serve(settings(Duration::ZERO), start, stop, |_| panic!("nothing is served")).await.unwrap();
    drop(release);
}

#[tokio::test]
async fn a_taken_port_stops_the_start_before_the_node() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut settings = settings(Duration::ZERO);
    settings.listeners = vec![ListenerSettings::new("PLAINTEXT", "127.0.0.1", port)];
    let start = |_: &[Bound]| panic!("the node must not start");
    let result = serve(settings, start, CancellationToken::new(), |_| Ok(())).await;
    assert!(matches!(result, Err(RunError::Bind(_))));
}

/// KAFKA-16703.
#[tokio::test]
async fn a_start_that_fails_gives_the_ports_back_that_it_had() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let at = |name, port| ListenerSettings::new(name, "127.0.0.1", port);
    let mut settings = settings(Duration::ZERO);
    settings.listeners = vec![at("FIRST", free.port()), at("SECOND", taken.local_addr().unwrap().port())];
    let start = |_: &[Bound]| panic!("the node must not start");
    let result = serve(settings, start, CancellationToken::new(), |_| Ok(())).await;
    assert!(matches!(result, Err(RunError::Bind(_))));
    TcpListener::bind(free).await.unwrap();
}

#[tokio::test]
async fn the_node_learns_the_ports_and_nobody_can_connect_before_it_is_ready() {
    let (ports, started) = oneshot::channel();
    let (go, gone) = std::sync::mpsc::channel();
    let start = move |bound: &[Bound]| {
        ports.send(bound.to_vec()).unwrap();
        gone.recv().unwrap();
        Err(String::from("enough"))
    };
    let task = tokio::spawn(serve(settings(Duration::ZERO), start, CancellationToken::new(), |_| Ok(())));
    let bound = started.await.unwrap();
    assert_eq!(&*bound[0].name, "PLAINTEXT");
    assert!(TcpStream::connect(bound[0].address).await.is_err(), "a connection was accepted too early");
    go.send(()).unwrap();
    assert!(task.await.unwrap().is_err());
}

#[tokio::test]
async fn the_page_moves_only_if_its_address_was_not_asked_for() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let moved = http::bind(&HttpSettings { address: address.clone(), asked: false }).unwrap();
    assert_ne!(moved.local_addr().unwrap().to_string(), address);
    let error = http::bind(&HttpSettings { address: address.clone(), asked: true }).unwrap_err();
    assert!(error.to_string().contains(&address), "{error}");
}

/// KIP-291.
#[tokio::test]
async fn the_connections_of_the_control_plane_have_a_thread_of_their_own() {
    let with_control = ServerSettings {
        listeners: ["DATA", "CONTROL"].map(|name| ListenerSettings::new(name, "127.0.0.1", 0)).to_vec(),
        control_plane: Some(Arc::from("CONTROL")),
        ..settings(Duration::from_secs(1))
    };
    let running = Running::start_with(with_control, Double::default()).await;
    let addresses: Vec<_> =
        running.text.lines().filter_map(|line| line.trim().strip_prefix("listens")).collect();
    let mut names = Vec::new();
    for line in addresses {
        let address = line.split_whitespace().next().unwrap();
        names.push(receive(&mut send(address, b"thread").await).await);
    }
    assert_eq!(names.len(), 2);
    assert_ne!(names[0], b"control-plane");
    assert_eq!(names[1], b"control-plane");
    // What is in service there is answered at the end, too.
    let node = Arc::clone(&running.node);
    running.stop().await;
    assert!(node.shut_down.load(Ordering::SeqCst));
}
