//! The store of a cluster against a real ZooKeeper: the contract of all stores, expiry by time, restarts of the
//! server, limits, and the session of a process that was killed; and a broker that stands on it.

mod broker;
mod ensemble;
mod fixture;
mod outage;

use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use fixture::{Ensemble, options};
use interop::tcp_proxy::TcpProxy;
use interop::wait;
use interop::zookeeper::{Zookeeper, ZookeeperClient};
use metadata::store::{Blocking, CreateMode, EventSink, Request, Store, StoreError, StoreEvent, Value};
use metadata::zookeeper::{ConnectError, SessionCredentials, SessionEnd, ZooKeeperOptions, ZooKeeperStore};

const LIMIT: Duration = Duration::from_secs(60);

/// A server with short ticks: sessions may end after 400 ms.
fn server(folder: &Path) -> Result<Zookeeper> {
    Zookeeper::start_with(folder, &[("tickTime", "200")])
}

fn recorded() -> (EventSink, Receiver<StoreEvent>) {
    let (sender, events) = mpsc::channel();
    (Arc::new(move |event| drop(sender.send(event))), events)
}

fn silent() -> EventSink {
    Arc::new(|_| {})
}

fn next(events: &Receiver<StoreEvent>) -> Result<StoreEvent> {
    events.recv_timeout(LIMIT).context("no event")
}

#[test]
fn zookeeper_passes_the_contract() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let ensemble = Ensemble::new(server(folder.path())?);
    metadata::contract::run(&|| Box::new(ensemble.fixture()));
    Ok(())
}

#[test]
fn a_chroot_is_created_when_that_is_wished_for() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = server(folder.path())?;
    let mut options = options(&format!("{}/kafka/one", server.address()));
    options.create_chroot = false;
    match ZooKeeperStore::connect(&options, silent()) {
        Err(ConnectError::NoChroot(_)) => {}
        other => bail!("unexpected {:?}", other.map(|_| ())),
    }
    options.create_chroot = true;
    let store = ZooKeeperStore::connect(&options, silent())?;
    Blocking::new(&store).create("/n", Value::NULL, CreateMode::Persistent)?;
    store.close();
    let tree: Vec<_> = ZookeeperClient::connect(&server.address())?.tree("/kafka")?;
    let tree: Vec<_> = tree.into_iter().map(|node| (node.path, node.data)).collect();
    let expected = ["/kafka", "/kafka/one", "/kafka/one/n"].map(|path| (path.to_owned(), None));
    ensure!(tree == expected, "{tree:?}");
    Ok(())
}

#[test]
fn a_session_without_a_connection_expires_by_the_clock_of_the_ensemble() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = server(folder.path())?;
    let proxy = TcpProxy::start(&server.address())?;
    let mut options = options(&proxy.address());
    options.session_timeout = Duration::from_millis(1000);
    let (sink, events) = recorded();
    let store = ZooKeeperStore::connect(&options, sink)?;
    Blocking::new(&store).create("/e", Value::NULL, CreateMode::Ephemeral)?;
    let StoreEvent::Connected { session_id } = next(&events)? else { bail!("not connected") };
    proxy.cut();
    let cut = Instant::now();
    ensure!(next(&events)? == StoreEvent::Disconnected);
    let mut witness = ZookeeperClient::connect(&server.address())?;
    wait::until("the end of the ephemeral", LIMIT, || Ok(witness.data("/e")?.is_none().then_some(())))?;
    ensure!(cut.elapsed() >= Duration::from_millis(900), "too early: {:?}", cut.elapsed());
    ensure!(store.session_id() == Some(session_id), "nobody has told it yet");
    proxy.heal();
    ensure!(next(&events)? == StoreEvent::SessionExpired);
    let tries = proxy.accepted();
    ensure!(Blocking::new(&store).exists("/") == Err(StoreError::SessionExpired));
    ensure!(proxy.accepted() == tries, "a session that is over connects no more");
    store.renew();
    let StoreEvent::Connected { session_id: renewed } = next(&events)? else { bail!("not connected") };
    ensure!(renewed != session_id);
    Blocking::new(&store).create("/e", Value::NULL, CreateMode::Ephemeral)?;
    Ok(())
}

#[test]
fn a_quiet_session_lives_on() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = server(folder.path())?;
    let mut options = options(&server.address());
    options.session_timeout = Duration::from_millis(600);
    let (sink, events) = recorded();
    let store = ZooKeeperStore::connect(&options, sink)?;
    Blocking::new(&store).create("/e", Value::NULL, CreateMode::Ephemeral)?;
    ensure!(matches!(next(&events)?, StoreEvent::Connected { .. }));
    match events.recv_timeout(Duration::from_secs(3)) {
        Err(mpsc::RecvTimeoutError::Timeout) => {}
        other => bail!("a session that gives signs of life was told {other:?}"),
    }
    ensure!(Blocking::new(&store).exists("/e")?.is_some());
    Ok(())
}

#[test]
fn a_session_goes_on_after_the_server_was_killed_and_started_again() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut server = server(folder.path())?;
    let mut options = options(&server.address());
    options.session_timeout = Duration::from_secs(4);
    let (sink, events) = recorded();
    let store = ZooKeeperStore::connect(&options, sink)?;
    let calls = Blocking::new(&store);
    calls.create("/e", Value::NULL, CreateMode::Ephemeral)?;
    store.call(Request::exists("/new").watched())?;
    ensure!(matches!(next(&events)?, StoreEvent::Connected { .. }));
    server.restart(|| {})?;
    ensure!(next(&events)? == StoreEvent::Disconnected);
    ensure!(matches!(next(&events)?, StoreEvent::Connected { .. }));
    ensure!(calls.exists("/e")?.is_some());
    ZookeeperClient::connect(&server.address())?.create("/new", None)?;
    ensure!(matches!(next(&events)?, StoreEvent::Node { .. }));
    Ok(())
}

#[test]
fn a_value_that_the_server_refuses_fails_and_the_session_goes_on() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = server(folder.path())?;
    let store = ZooKeeperStore::connect(&options(&server.address()), silent())?;
    let calls = Blocking::new(&store);
    let large = Bytes::from(vec![b'x'; 2 * 1024 * 1024]);
    ensure!(
        calls.create("/large", large, CreateMode::Persistent) == Err(StoreError::ConnectionLoss),
        "the server hangs up on what is beyond its jute.maxbuffer"
    );
    ensure!(calls.exists("/large")?.is_none());
    calls.create("/fine", Bytes::from(vec![b'x'; 1_000_000]), CreateMode::Persistent)?;
    Ok(())
}

/// KAFKA-13270: more children than fit into the mebibyte that ZooKeeper's own client reads by default.
#[test]
fn a_long_list_of_children_is_read_whole_and_listed_in_a_pipeline() -> Result<()> {
    const COUNT: usize = 12_000;
    let folder = tempfile::tempdir()?;
    let server = server(folder.path())?;
    let mut options = options(&server.address());
    options.max_in_flight = 200;
    let store = ZooKeeperStore::connect(&options, silent())?;
    let calls = Blocking::new(&store);
    let name = |number: usize| format!("/{number:0>100}");
    let create = |number| Request::create(name(number), Value::NULL, CreateMode::Persistent);
    for answer in calls.pipeline((0..COUNT).map(create).collect()) {
        answer?;
    }
    ensure!(calls.children("/")?.len() == COUNT + 1, "all of them and ZooKeeper's own");
    Ok(())
}

fn kept_options(address: &str) -> (ZooKeeperOptions, Arc<Mutex<Option<SessionCredentials>>>) {
    let kept = Arc::new(Mutex::new(None));
    let mut options = options(address);
    let keeping = kept.clone();
    options.keep = Some(Arc::new(move |credentials: &SessionCredentials| {
        if let Ok(mut kept) = keeping.lock() {
            *kept = Some(credentials.clone());
        }
    }));
    (options, kept)
}

#[test]
fn a_successor_ends_the_session_of_a_process_that_died() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = server(folder.path())?;
    let (options, kept) = kept_options(&server.address());
    let store = ZooKeeperStore::connect(&options, silent())?;
    Blocking::new(&store).create("/e", Value::NULL, CreateMode::Ephemeral)?;
    // As a process that is killed: the connection ends, the session does not.
    drop(store);
    let credentials = kept.lock().ok().and_then(|kept| kept.clone()).context("no session was kept")?;
    let mut witness = ZookeeperClient::connect(&server.address())?;
    ensure!(witness.data("/e")?.is_some(), "the session lives on");
    let forged = SessionCredentials { id: credentials.id, password: Bytes::from_static(&[0; 16]) };
    ensure!(ZooKeeperStore::end_session(&options, forged)? == SessionEnd::WasOver);
    ensure!(witness.data("/e")?.is_some(), "nobody ends it without its password");
    let start = Instant::now();
    ensure!(ZooKeeperStore::end_session(&options, credentials.clone())? == SessionEnd::Ended);
    ensure!(witness.data("/e")?.is_none());
    ensure!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    ensure!(ZooKeeperStore::end_session(&options, credentials)? == SessionEnd::WasOver);
    Ok(())
}
