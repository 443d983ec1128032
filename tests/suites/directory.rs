//! One data directory, two brokers: what Blumfeld wrote, a real Kafka serves, and the other way round, after a
//! clean stop and after `kill -9`. Kafka's own dump tool reads every file.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use interop::batch::{Draft, now_ms};
use interop::broker::{Broker, Kind, Options};
use interop::cache;
use interop::calls;
use interop::clients::{CODECS, Client};
use interop::java::{self, Jars};
use interop::process::run_well;
use interop::raw::Connection;
use interop::wait;
use interop::zookeeper::{Znode, ZookeeperClient};
use serde_json::{Map, Value, json};

const TOPIC: &str = "carried";
const PARTITIONS: usize = 2;
const COUNT: usize = 300;
const LIMIT: Duration = Duration::from_secs(60);
/// Small segments, so that a log has several.
const SETTINGS: [(&str, &str); 4] = [
    ("log.segment.bytes", "80000"),
    ("log.index.interval.bytes", "1000"),
    ("log.retention.ms", "-1"),
    ("log.flush.start.offset.checkpoint.interval.ms", "500"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Clean,
    Killed,
}

/// What a client can learn of a partition.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    batches: Vec<Bytes>,
    earliest: i64,
    latest: i64,
    at_time: i64,
}

/// Fills a broker: every codec, an idempotent producer, and records deleted at the front.
fn fill(broker: &Broker) -> Result<()> {
    let bootstrap = broker.bootstrap();
    calls::create_topic(&bootstrap, TOPIC, i32::try_from(PARTITIONS)?, &[("max.message.bytes", "900000")])?;
    for codec in CODECS {
        Client::Go.produce(&bootstrap, TOPIC, codec, COUNT)?;
    }
    let mut connection = Connection::open(&bootstrap)?;
    let (id, epoch) = calls::init_producer_id(&mut connection)?;
    for sequence in 0..200 {
        let batch = Draft::of_values(now_ms(), &[&[b'v'; 500]]).from_producer(id, epoch, sequence).build();
        let answer = calls::produce(&mut connection, TOPIC, 0, batch)?;
        ensure!(answer.error_code == 0, "{answer:?}");
    }
    calls::delete_records(&bootstrap, TOPIC, 1, 37)?;
    // A start offset is promised only from its next checkpoint on.
    let checkpoint = broker.data().join("log-start-offset-checkpoint");
    wait::until("a checkpoint of start offsets", LIMIT, || {
        let text = std::fs::read_to_string(&checkpoint).unwrap_or_default();
        Ok(text.lines().any(|line| line == format!("{TOPIC} 1 37")).then_some(()))
    })
}

fn contents(broker: &Broker) -> Result<Vec<Contents>> {
    let bootstrap = broker.bootstrap();
    // A real Kafka leads its partitions a moment before it tells of them, and until then it refuses fetches.
    calls::wait_for_leaders(&bootstrap, TOPIC, PARTITIONS)?;
    (0..PARTITIONS)
        .map(|partition| {
            let earliest = calls::offset_at(&bootstrap, TOPIC, partition, -2)?;
            let batches = calls::fetch_all(&bootstrap, TOPIC, partition, earliest)?;
            let latest = calls::end_offset(&bootstrap, TOPIC, partition)?;
            let middle =
                batches.get(batches.len() / 2).and_then(|batch| batch.get(35..43)).context("no middle")?;
            let time = i64::from_be_bytes(middle.try_into()?);
            let at_time = calls::offset_at(&bootstrap, TOPIC, partition, time)?;
            Ok(Contents { batches, earliest, latest, at_time })
        })
        .collect()
}

/// Wants both to hold the same; names what differs without printing whole logs.
fn same(before: &[Contents], after: &[Contents]) -> Result<()> {
    for (partition, (before, after)) in before.iter().zip(after).enumerate() {
        let positions = |c: &Contents| (c.earliest, c.latest, c.at_time, c.batches.len());
        ensure!(
            positions(before) == positions(after),
            "partition {partition}: earliest, latest, offset at a time, batches: {:?} became {:?}",
            positions(before),
            positions(after)
        );
        let different = before.batches.iter().zip(&after.batches).position(|(before, after)| before != after);
        ensure!(different.is_none(), "partition {partition}: batch {different:?} changed");
    }
    ensure!(before.len() == after.len(), "another number of partitions");
    Ok(())
}

fn end(broker: &mut Broker, end: End) -> Result<()> {
    match end {
        End::Clean => broker.stop(),
        End::Killed => broker.kill(),
    }
}

/// Produces to every partition and sees the record there: the directory is served, not only read.
fn still_writable(broker: &Broker) -> Result<()> {
    let mut connection = Connection::open(&broker.bootstrap())?;
    for partition in 0..PARTITIONS {
        let latest = calls::end_offset(&broker.bootstrap(), TOPIC, partition)?;
        let batch = Draft::of_values(now_ms(), &[b"after the move"]).build();
        let answer = calls::produce(&mut connection, TOPIC, i32::try_from(partition)?, batch)?;
        ensure!((answer.error_code, answer.base_offset) == (0, latest), "{answer:?} at {latest}");
    }
    Ok(())
}

fn metadata_tool(verb: &str, data: &Path, file: &Path) -> Result<()> {
    let mut command = Command::new(cache::blumfeld_binary()?);
    command.args(["metadata", verb, "--data-dir"]).arg(data).arg("--file").arg(file);
    run_well(&mut command, "", LIMIT).map(|_| ())
}

/// The lines of an export as nodes. Values that are not text do not occur in these trees.
fn read_export(file: &Path) -> Result<Vec<Znode>> {
    let text = std::fs::read_to_string(file)?;
    text.lines()
        .map(|line| {
            let node: Map<String, Value> = serde_json::from_str(line)?;
            ensure!(!node.contains_key("base64"), "not text: {line}");
            let path = node.get("path").and_then(Value::as_str).context("a line without a path")?.to_owned();
            let data = node.get("value").and_then(Value::as_str).map(|value| value.as_bytes().to_vec());
            Ok(Znode { path, data })
        })
        .collect()
}

fn write_export(nodes: &[Znode], file: &Path) -> Result<()> {
    let mut text = String::new();
    for node in nodes {
        let line = match &node.data {
            None => json!({ "path": node.path, "value": null }),
            Some(data) => json!({ "path": node.path, "value": std::str::from_utf8(data)? }),
        };
        text.push_str(&line.to_string());
        text.push('\n');
    }
    Ok(std::fs::write(file, text)?)
}

/// What lives by a session, and what belongs to ZooKeeper itself.
fn is_carried(path: &str) -> bool {
    path != "/"
        && path != "/controller"
        && !path.starts_with("/brokers/ids/")
        && !path.starts_with("/zookeeper")
}

fn blumfeld_to_kafka(how: End) -> Result<()> {
    let mut blumfeld = Broker::start(Kind::Blumfeld, Options::with(&SETTINGS))?;
    fill(&blumfeld)?;
    let before = contents(&blumfeld)?;
    end(&mut blumfeld, how)?;
    dump_every_file(blumfeld.data(), how)?;

    let file = blumfeld.data().with_extension("export");
    metadata_tool("export", blumfeld.data(), &file)?;
    let data = blumfeld.data().to_string_lossy().into_owned();
    let mut settings = SETTINGS.to_vec();
    settings.push(("log.dirs", &data));
    let mut kafka = Broker::prepare(Kind::Kafka, Options::with(&settings))?;
    let mut zookeeper = ZookeeperClient::connect(&kafka.zookeeper()?.address())?;
    for node in read_export(&file)? {
        zookeeper.create(&node.path, node.data.as_deref())?;
    }
    kafka.resume()?;
    same(&before, &contents(&kafka)?)?;
    still_writable(&kafka)?;
    complaints(&kafka.log()?)?;
    kafka.stop()
}

fn kafka_to_blumfeld(how: End) -> Result<()> {
    let mut kafka = Broker::start(Kind::Kafka, Options::with(&SETTINGS))?;
    fill(&kafka)?;
    let before = contents(&kafka)?;
    end(&mut kafka, how)?;
    let mut nodes = ZookeeperClient::connect(&kafka.zookeeper()?.address())?.tree("/")?;
    nodes.retain(|node| is_carried(&node.path));
    let file = kafka.data().with_extension("export");
    write_export(&nodes, &file)?;
    metadata_tool("import", kafka.data(), &file)?;

    let data = kafka.data().to_string_lossy().into_owned();
    let mut settings = SETTINGS.to_vec();
    settings.push(("log.dirs", &data));
    let mut blumfeld = Broker::start(Kind::Blumfeld, Options::with(&settings))?;
    same(&before, &contents(&blumfeld)?)?;
    still_writable(&blumfeld)?;
    end(&mut blumfeld, how)?;
    dump_every_file(kafka.data(), how)
}

/// What a real Kafka logs when a directory is not as it left one.
fn complaints(log: &str) -> Result<()> {
    let signs = [
        "Error while loading log dir",
        "Found invalid",
        "CorruptIndexException",
        "Inconsistent",
        "InvalidOffset",
    ];
    let found: Vec<&str> = log.lines().filter(|line| signs.iter().any(|sign| line.contains(sign))).collect();
    ensure!(found.is_empty(), "Kafka complains of the directory:\n{}", found.join("\n"));
    Ok(())
}

/// Kafka's dump tool over all files of all partitions.
fn dump_every_file(data: &Path, how: End) -> Result<()> {
    let files = segment_files(data)?;
    ensure!(files.len() > 10, "only {} files to dump", files.len());
    let dump = |files: &[PathBuf], options: &[&str]| -> Result<()> {
        let list = files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>().join(",");
        let mut arguments = vec!["--files", &list];
        arguments.extend(options);
        let dumped = java::tool(Jars::Kafka39, "kafka.tools.DumpLogSegments", &arguments, "")?;
        let signs =
            ["mismatch", "Mismatch", "out of order", "Non-consecutive", "isvalid: false", "rror", "xception"];
        let bad = dumped.stdout.lines().chain(dumped.stderr.lines());
        let bad: Vec<&str> = bad.filter(|line| signs.iter().any(|sign| line.contains(sign))).collect();
        ensure!(bad.is_empty(), "the dump tool complains with {options:?}:\n{}", bad.join("\n"));
        let seen = dumped.stdout.lines().filter(|line| line.starts_with("Dumping ")).count();
        ensure!(seen == files.len(), "{seen} of {} files were dumped", files.len());
        Ok(())
    };
    dump(&files, &["--deep-iteration"])?;
    let checked = if how == End::Killed { without_active_indexes(files) } else { files };
    dump(&checked, &["--index-sanity-check"])
}

/// Leaves out the indexes of each partition's last segment: they are as long as they may become until a broker
/// closes them, and the check of a real Kafka's own directory fails on them too when it was killed.
fn without_active_indexes(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let last = |file: &PathBuf| {
        let logs =
            files.iter().filter(|other| other.parent() == file.parent() && has_extension(other, "log"));
        logs.max().and_then(|log| log.file_stem()).map(ToOwned::to_owned)
    };
    let is_active_index = |file: &PathBuf| {
        (has_extension(file, "index") || has_extension(file, "timeindex"))
            && last(file).as_deref() == file.file_stem()
    };
    files.iter().filter(|file| !is_active_index(file)).cloned().collect()
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|known| known == extension)
}

fn segment_files(data: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for partition in data.read_dir()? {
        let partition = partition?.path();
        if !partition.is_dir() {
            continue;
        }
        for file in partition.read_dir()? {
            let file = file?.path();
            let kinds = ["log", "index", "timeindex", "txnindex", "snapshot"];
            if file.extension().is_some_and(|e| kinds.iter().any(|kind| e == *kind)) {
                files.push(file);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[test]
fn kafka_serves_what_blumfeld_left_after_a_clean_stop() -> Result<()> {
    blumfeld_to_kafka(End::Clean)
}

#[test]
fn kafka_serves_what_blumfeld_left_when_it_was_killed() -> Result<()> {
    blumfeld_to_kafka(End::Killed)
}

#[test]
fn blumfeld_serves_what_kafka_left_after_a_clean_stop() -> Result<()> {
    kafka_to_blumfeld(End::Clean)
}

#[test]
fn blumfeld_serves_what_kafka_left_when_it_was_killed() -> Result<()> {
    kafka_to_blumfeld(End::Killed)
}
