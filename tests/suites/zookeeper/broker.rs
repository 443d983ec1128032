//! A broker that keeps its metadata in a ZooKeeper: its registration over kills and foreign sessions, and the way of a
//! cluster's metadata between a ZooKeeper, an embedded store and a real Kafka.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use interop::batch::{Draft, now_ms};
use interop::broker::{Broker, Kind, Member, Options};
use interop::cache;
use interop::calls;
use interop::cluster::{Tree, cluster_view};
use interop::ports;
use interop::process::{run, run_well};
use interop::raw::Connection;
use interop::wait;
use interop::zookeeper::{Zookeeper, ZookeeperClient};
use metadata::store::{Blocking, CreateMode, Stat, Value};
use metadata::zookeeper::{SESSION_FILE, ZooKeeperStore};

use super::fixture::options;

const LIMIT: Duration = Duration::from_secs(60);
const ID: i32 = 1;
const REGISTRATION: &str = "/brokers/ids/1";
const TOPIC: &str = "kept";
const COUNT: usize = 20;

/// A ZooKeeper and a broker that is not started yet.
struct Lab {
    // Declared first: it ends before its ZooKeeper.
    broker: Broker,
    zookeeper: Zookeeper,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Lab {
    fn new(tick_ms: &str, session_timeout_ms: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let zookeeper = taking_sessions(Zookeeper::start_with(folder.path(), &[("tickTime", tick_ms)])?)?;
        let port = ports::free()?;
        let timeout = [("zookeeper.session.timeout.ms", session_timeout_ms)];
        let broker = member(Kind::Blumfeld, &zookeeper, port, Options::with(&timeout))?;
        Ok(Self { broker, zookeeper, port, _folder: folder })
    }

    /// A session of the test's own.
    fn session(&self) -> Result<ZooKeeperStore> {
        Ok(ZooKeeperStore::connect(&options(&self.zookeeper.address()), Arc::new(|_| {}))?)
    }

    /// Starts the broker, which must end by itself with a line that contains `text`.
    fn must_refuse(&self, text: &str) -> Result<()> {
        let mut process = self.broker.spawn()?;
        wait::until("the end of the broker", LIMIT, || Ok((!process.is_running()?).then_some(())))?;
        let tail = process.log_tail(5);
        ensure!(tail.lines().any(|line| line.contains(text)), "expected {text:?}:\n{tail}");
        Ok(())
    }
}

/// A server answers questions of its health before it takes sessions.
fn taking_sessions(zookeeper: Zookeeper) -> Result<Zookeeper> {
    ZookeeperClient::connect(&zookeeper.address())?;
    Ok(zookeeper)
}

fn registration(session: &ZooKeeperStore) -> Result<Option<Stat>> {
    Ok(Blocking::new(session).exists(REGISTRATION)?)
}

/// What a broker at a port of this machine tells of itself.
fn registration_of(port: u16) -> String {
    format!(
        r#"{{"version":5,"host":"127.0.0.1","port":{port},"jmx_port":-1,"timestamp":"0","endpoints":["PLAINTEXT://127.0.0.1:{port}"],"listener_security_protocol_map":{{"PLAINTEXT":"PLAINTEXT"}},"features":{{}}}}"#
    )
}

fn member(kind: Kind, zookeeper: &Zookeeper, port: u16, options: Options) -> Result<Broker> {
    let member = Member { id: ID, connect: zookeeper.address(), advertised_port: None };
    Broker::prepare_member(kind, options, port, member)
}

#[test]
fn a_killed_broker_registers_again_without_waiting_for_the_end_of_its_session() -> Result<()> {
    let mut lab = Lab::new("2000", "30000")?;
    lab.broker.resume()?;
    let session = lab.session()?;
    let before = registration(&session)?.context("not registered")?;
    lab.broker.kill()?;
    ensure!(registration(&session)? == Some(before), "the session outlives its process");
    let start = Instant::now();
    lab.broker.resume()?;
    ensure!(start.elapsed() < Duration::from_secs(15), "it took {:?}", start.elapsed());
    let after = registration(&session)?.context("not registered")?;
    ensure!(after.czxid > before.czxid && after.ephemeral_owner != before.ephemeral_owner);
    lab.broker.stop()?;
    ensure!(registration(&session)?.is_none(), "a broker that stops leaves no registration");
    Ok(())
}

#[test]
fn a_broker_that_cannot_end_its_predecessors_session_waits_for_its_end() -> Result<()> {
    let mut lab = Lab::new("200", "3000")?;
    lab.broker.resume()?;
    lab.broker.kill()?;
    std::fs::remove_file(lab.broker.data().join(SESSION_FILE))?;
    let session = lab.session()?;
    let before = registration(&session)?.context("not registered")?;
    lab.broker.resume()?;
    let after = registration(&session)?.context("not registered")?;
    ensure!(after.ephemeral_owner != before.ephemeral_owner);
    let told = "another session has registered this broker id; waiting for its end";
    ensure!(lab.broker.log()?.contains(told), "{}", lab.broker.log()?);
    Ok(())
}

#[test]
fn a_broker_id_and_an_address_belong_to_one_live_broker() -> Result<()> {
    let lab = Lab::new("200", "1000")?;
    let session = lab.session()?;
    let calls = Blocking::new(&session);
    calls.ensure_path("/brokers/ids")?;
    calls.create(REGISTRATION, Value::NULL, CreateMode::Ephemeral)?;
    lab.must_refuse("broker id 1 is registered by another live broker")?;
    calls.delete(REGISTRATION, None)?;
    let other = registration_of(lab.port);
    calls.create("/brokers/ids/2", other.as_str(), CreateMode::Ephemeral)?;
    lab.must_refuse(&format!("the advertised address 127.0.0.1:{} is registered by broker 2", lab.port))?;
    ensure!(calls.exists(REGISTRATION)?.is_none());
    Ok(())
}

#[test]
fn a_zookeeper_that_is_wrong_or_not_there_ends_the_start_with_one_line() -> Result<()> {
    let mut lab = Lab::new("200", "1000")?;
    lab.broker.resume()?;
    lab.broker.stop()?;
    let folder = tempfile::tempdir()?;
    // The same directory, and a ZooKeeper that knows nothing of its cluster.
    lab.zookeeper = taking_sessions(Zookeeper::start(folder.path())?)?;
    let log_dirs = lab.broker.data().to_string_lossy().into_owned();
    let settings = Options::with(&[("log.dirs", &log_dirs), ("zookeeper.session.timeout.ms", "1000")]);
    let elsewhere = member(Kind::Blumfeld, &lab.zookeeper, lab.port, settings.clone())?;
    // The folder of the first lives as long as its broker.
    let _first = std::mem::replace(&mut lab.broker, elsewhere);
    lab.must_refuse("but zookeeper.connect leads to a ZooKeeper without a cluster")?;
    let nobody = Member { id: ID, connect: format!("127.0.0.1:{}", ports::free()?), advertised_port: None };
    lab.broker = Broker::prepare_member(Kind::Blumfeld, settings, lab.port, nobody)?;
    lab.must_refuse("no session with ZooKeeper 127.0.0.1:")
}

#[test]
fn a_broker_whose_logs_may_lack_their_tail_waits_until_it_is_out_of_the_isr() -> Result<()> {
    let mut lab = Lab::new("200", "2000")?;
    lab.broker.resume()?;
    lab.broker.kill()?;
    let file = lab.broker.data().join(SESSION_FILE);
    let record = std::fs::read_to_string(&file)?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    ensure!(record.contains(boot.trim()), "{record}");
    std::fs::write(&file, record.replace(boot.trim(), "the boot before"))?;
    let session = lab.session()?;
    let calls = Blocking::new(&session);
    let state = |isr: &str| {
        format!(r#"{{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[{isr}]}}"#)
    };
    let topic = r#"{"partitions":{"0":[2,1]},"topic_id":"le-ACRm5S1yO8kh-_XTjTw","adding_replicas":{},"removing_replicas":{},"version":3}"#;
    calls.create("/brokers/topics/t", topic, CreateMode::Persistent)?;
    calls.ensure_path("/brokers/topics/t/partitions/0")?;
    let path = "/brokers/topics/t/partitions/0/state";
    calls.create(path, state("2,1").as_str(), CreateMode::Persistent)?;
    let other = registration_of(ports::free()?);
    calls.create("/brokers/ids/2", other.as_str(), CreateMode::Ephemeral)?;
    wait::until("the end of the old session", LIMIT, || Ok(registration(&session)?.is_none().then_some(())))?;
    let told = "waiting until the broker does not count as in sync any more";
    let mut process = lab.broker.spawn()?;
    process.wait_for_log(told, 0, LIMIT)?;
    // The next process is one of the same boot, but the logs are no better for it.
    process.kill()?;
    let from = lab.broker.log()?.len().try_into()?;
    let mut process = lab.broker.spawn()?;
    process.wait_for_log(told, from, LIMIT)?;
    ensure!(registration(&session)?.is_none());
    calls.set(path, state("2").as_str(), None)?;
    wait::until("the registration", LIMIT, || registration(&session))?;
    lab.broker.adopt(process);
    Ok(())
}

fn metadata_tool(verb: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(cache::blumfeld_binary().unwrap_or_default());
    command.args(["metadata", verb]).args(arguments);
    command
}

/// A broker of a cluster may serve a moment before it is, or knows, the controller.
fn knows_its_controller(broker: &Broker) -> Result<()> {
    let known = || Ok(cluster_view(&broker.bootstrap())?.0.map(drop));
    wait::until("a controller", LIMIT, known)
}

fn fill(broker: &Broker) -> Result<()> {
    knows_its_controller(broker)?;
    calls::create_topic(&broker.bootstrap(), TOPIC, 1, &[("retention.ms", "-1")])?;
    let mut connection = Connection::open(&broker.bootstrap())?;
    for number in 0..COUNT {
        let batch = Draft::of_values(now_ms(), &[number.to_string().as_bytes()]).build();
        let answer = calls::produce(&mut connection, TOPIC, 0, batch)?;
        ensure!(answer.error_code == 0, "{answer:?}");
    }
    Ok(())
}

fn holds_all(broker: &Broker) -> Result<()> {
    calls::wait_for_leaders(&broker.bootstrap(), TOPIC, 1)?;
    let batches = calls::fetch_all(&broker.bootstrap(), TOPIC, 0, 0)?;
    ensure!(batches.len() == COUNT, "{} batches", batches.len());
    Ok(())
}

#[test]
fn a_cluster_moves_from_an_embedded_store_to_a_zookeeper_and_back() -> Result<()> {
    let mut alone = Broker::start(Kind::Blumfeld, Options::with(&[("broker.id", "0")]))?;
    fill(&alone)?;
    alone.stop()?;
    let folder = tempfile::tempdir()?;
    let zookeeper = Zookeeper::start(folder.path())?;
    let (there, back) = (folder.path().join("there"), folder.path().join("back"));
    let data = alone.data().to_string_lossy().into_owned();
    let chroot = format!("{}/kafka/one", zookeeper.address());
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let tool = |verb: &str, store: &[&str], file: &Path| {
        run_well(&mut metadata_tool(verb, &[store, &["--file", &path(file)]].concat()), "", LIMIT)
    };
    tool("export", &["--data-dir", &data], &there)?;
    tool("import", &["--zookeeper", &chroot], &there)?;

    let place = Member { id: 0, connect: chroot.clone(), advertised_port: None };
    let settings = Options::with(&[("log.dirs", &data)]);
    let mut member = Broker::prepare_member(Kind::Blumfeld, settings, ports::free()?, place)?;
    member.resume()?;
    holds_all(&member)?;
    let refused =
        run(&mut metadata_tool("import", &["--zookeeper", &chroot, "--file", &path(&there)]), "", LIMIT)?;
    ensure!(
        !refused.status.success() && refused.stderr.contains("registered: 0; stop them first"),
        "{refused:?}"
    );
    member.stop()?;

    tool("export", &["--config", &path(&member.properties_path())], &back)?;
    let lines = |file: &Path| -> Result<Vec<String>> {
        // What the member has written itself: the controller's epoch, the states of partitions.
        let is_same = |line: &&str| !line.contains("epoch");
        Ok(std::fs::read_to_string(file)?.lines().filter(is_same).map(str::to_owned).collect())
    };
    ensure!(lines(&there)? == lines(&back)?, "{:?}\n{:?}", lines(&there)?, lines(&back)?);
    std::fs::remove_file(alone.data().join("blumfeld-metadata.redb"))?;
    tool("import", &["--data-dir", &data], &back)?;
    alone.resume()?;
    holds_all(&alone)
}

#[test]
fn a_real_kafka_and_blumfeld_take_over_from_each_other_on_one_zookeeper_and_directory() -> Result<()> {
    let mut lab = Lab::new("2000", "18000")?;
    lab.broker.resume()?;
    fill(&lab.broker)?;
    lab.broker.stop()?;
    let data = lab.broker.data().to_string_lossy().into_owned();
    let settings = Options::with(&[("log.dirs", &data)]);
    let mut kafka = member(Kind::Kafka, &lab.zookeeper, lab.port, settings.clone())?;
    kafka.resume()?;
    holds_all(&kafka)?;
    let config =
        Tree::open(&[lab.zookeeper.address()])?.json("/config/topics/kept")?.context("no configs")?;
    ensure!(config["config"]["retention.ms"] == "-1", "{config}");
    knows_its_controller(&kafka)?;
    calls::create_topic(&kafka.bootstrap(), "of-kafka", 2, &[])?;
    kafka.stop()?;
    lab.broker.resume()?;
    holds_all(&lab.broker)?;
    calls::wait_for_leaders(&lab.broker.bootstrap(), "of-kafka", 2)?;
    lab.broker.kill()?;
    let session = lab.session()?;
    wait::until("the end of the session", LIMIT, || Ok(registration(&session)?.is_none().then_some(())))?;
    kafka.resume()?;
    holds_all(&kafka)?;
    kafka.stop()
}
