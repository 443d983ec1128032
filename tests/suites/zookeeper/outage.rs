//! A broker while its ZooKeeper, or the way there, is gone: it serves its clients from what it knows, and registers again
//! when its session was lost (KAFKA-4229, KAFKA-1387).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use interop::batch::{Draft, now_ms};
use interop::broker::{Broker, Kind, Member, Options};
use interop::calls;
use interop::ports;
use interop::raw::Connection;
use interop::tcp_proxy::TcpProxy;
use interop::wait;
use interop::zookeeper::{Zookeeper, ZookeeperClient};
use metadata::store::{Blocking, Stat};
use metadata::zookeeper::ZooKeeperStore;

use super::fixture::options;

const LIMIT: Duration = Duration::from_secs(60);
const SESSION_TIMEOUT: Duration = Duration::from_millis(2000);
const REGISTRATION: &str = "/brokers/ids/1";
const TOPIC: &str = "served";

struct Lab {
    // Declared first: it ends before its ZooKeeper.
    broker: Broker,
    proxy: TcpProxy,
    zookeeper: Zookeeper,
    _folder: tempfile::TempDir,
}

impl Lab {
    fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let zookeeper = Zookeeper::start_with(folder.path(), &[("tickTime", "200")])?;
        ZookeeperClient::connect(&zookeeper.address())?;
        let proxy = TcpProxy::start(&zookeeper.address())?;
        let member = Member { id: 1, connect: proxy.address(), advertised_port: None };
        let timeout = SESSION_TIMEOUT.as_millis().to_string();
        let settings = Options::with(&[("zookeeper.session.timeout.ms", &timeout)]);
        let mut broker = Broker::prepare_member(Kind::Blumfeld, settings, ports::free()?, member)?;
        broker.resume()?;
        wait::until("a topic", LIMIT, || {
            // The broker may serve a moment before it is the controller.
            Ok(calls::create_topic(&broker.bootstrap(), TOPIC, 1, &[]).ok())
        })?;
        calls::wait_for_leaders(&broker.bootstrap(), TOPIC, 1)?;
        Ok(Self { broker, proxy, zookeeper, _folder: folder })
    }

    fn session(&self) -> Result<ZooKeeperStore> {
        Ok(ZooKeeperStore::connect(&options(&self.zookeeper.address()), Arc::new(|_| {}))?)
    }

    /// Produces and fetches for a while.
    fn serves_for(&self, time: Duration) -> Result<()> {
        let start = Instant::now();
        let mut count = calls::fetch_all(&self.broker.bootstrap(), TOPIC, 0, 0)?.len();
        while start.elapsed() < time {
            produce(&self.broker.bootstrap())?;
            count += 1;
            let held = calls::fetch_all(&self.broker.bootstrap(), TOPIC, 0, 0)?.len();
            ensure!(held == count, "{held} batches instead of {count}");
        }
        Ok(())
    }

    /// The lines of the broker's metrics.
    fn metrics(&self) -> Result<Vec<String>> {
        let properties = std::fs::read_to_string(self.broker.properties_path())?;
        let mut lines = properties.lines();
        let address =
            lines.find_map(|line| line.strip_prefix("blumfeld.http.address=")).context("no page")?;
        let mut page = TcpStream::connect(address)?;
        page.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        page.read_to_string(&mut text)?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Creates a topic: the broker is a controller that can write.
    fn administrates(&self, topic: &str) -> Result<()> {
        wait::until("a new topic", LIMIT, || {
            Ok(calls::create_topic(&self.broker.bootstrap(), topic, 1, &[]).ok())
        })?;
        calls::wait_for_leaders(&self.broker.bootstrap(), topic, 1)
    }
}

fn produce(address: &str) -> Result<()> {
    let mut connection = Connection::open(address)?;
    let batch = Draft::of_values(now_ms(), &[b"value"]).build();
    let answer = calls::produce(&mut connection, TOPIC, 0, batch)?;
    ensure!(answer.error_code == 0, "{answer:?}");
    Ok(())
}

fn registration(session: &ZooKeeperStore) -> Result<Option<Stat>> {
    Ok(Blocking::new(session).exists(REGISTRATION)?)
}

fn registered_anew(session: &ZooKeeperStore, before: Stat) -> Result<()> {
    wait::until("a new registration", LIMIT, || {
        Ok(registration(session)?.filter(|now| now.czxid > before.czxid).map(drop))
    })
}

#[test]
fn a_broker_whose_session_ended_serves_all_the_while_and_registers_again() -> Result<()> {
    let lab = Lab::start()?;
    let session = lab.session()?;
    let before = registration(&session)?.context("not registered")?;
    lab.proxy.cut();
    wait::until("the end of the session", LIMIT, || Ok(registration(&session)?.is_none().then_some(())))?;
    lab.serves_for(Duration::from_secs(1))?;
    lab.proxy.heal();
    let healed = Instant::now();
    registered_anew(&session, before)?;
    ensure!(healed.elapsed() < SESSION_TIMEOUT + Duration::from_secs(5), "{:?}", healed.elapsed());
    let metrics = lab.metrics()?;
    for line in [
        "kafka_server_sessionexpirelistener_zookeeperexpires_total 1",
        "kafka_server_sessionexpirelistener_zookeepersyncconnects_total 2",
        "blumfeld_zookeeper_session_timeout_ms 2000",
    ] {
        ensure!(metrics.iter().any(|it| it == line), "{line} is missing");
    }
    lab.administrates("after")?;
    lab.serves_for(Duration::from_millis(200))
}

#[test]
fn a_short_outage_costs_nothing() -> Result<()> {
    let lab = Lab::start()?;
    let session = lab.session()?;
    let before = registration(&session)?.context("not registered")?;
    lab.proxy.cut();
    lab.serves_for(Duration::from_millis(500))?;
    lab.proxy.heal();
    lab.administrates("after")?;
    ensure!(registration(&session)? == Some(before), "the session goes on");
    Ok(())
}

#[test]
fn a_broker_outlives_its_zookeeper() -> Result<()> {
    let mut lab = Lab::start()?;
    let before = registration(&lab.session()?)?.context("not registered")?;
    let mut outage = Ok(());
    let address = lab.broker.bootstrap();
    lab.zookeeper.restart(|| outage = (0..20).try_for_each(|_| produce(&address)))?;
    outage?;
    lab.administrates("after")?;
    let after = registration(&lab.session()?)?.context("not registered")?;
    ensure!(after == before, "a server that comes back grants every session its timeout again");
    Ok(())
}

#[test]
fn a_broker_that_was_frozen_beyond_its_session_registers_again() -> Result<()> {
    let mut lab = Lab::start()?;
    let session = lab.session()?;
    let before = registration(&session)?.context("not registered")?;
    lab.broker.freeze()?;
    wait::until("the end of the session", LIMIT, || Ok(registration(&session)?.is_none().then_some(())))?;
    lab.broker.thaw()?;
    registered_anew(&session, before)?;
    lab.administrates("after")?;
    lab.broker.stop()
}
