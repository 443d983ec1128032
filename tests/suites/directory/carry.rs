//! A data directory and its metadata tree on their way from one broker to one of the other kind, as an operator
//! takes them: the broker is down, the tree goes as a file of paths and values.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::broker::{Broker, Kind, Options};
use interop::cache;
use interop::process::run_well;
use interop::zookeeper::{Znode, ZookeeperClient};
use serde_json::{Map, Value, json};

use super::{End, SETTINGS, dump};

const LIMIT: Duration = Duration::from_secs(60);
/// How far leader epochs go up on the way, as if other replicas had led meanwhile.
const EPOCHS: i64 = 3;

/// A broker on the directory `data` that is not started yet.
pub(crate) fn prepare(kind: Kind, data: &Path) -> Result<Broker> {
    let data = data.to_string_lossy();
    let mut settings = SETTINGS.to_vec();
    settings.push(("log.dirs", &data));
    Broker::prepare(kind, Options::with(&settings))
}

/// Ends a broker, wants the dump tools to read what it left of a topic, and starts one of the other kind on it.
pub(crate) fn over(mut from: Broker, data: &Path, topic: &str, how: End) -> Result<Broker> {
    end(&mut from, data, topic, how)?;
    let mut nodes = match from.kind() {
        Kind::Blumfeld => exported(data)?,
        Kind::Kafka => ZookeeperClient::connect(&from.zookeeper()?.address())?.tree("/")?,
    };
    nodes.retain(|node| is_carried(&node.path));
    nodes.iter_mut().try_for_each(raise_leader_epoch)?;
    let mut to = prepare(if from.kind() == Kind::Kafka { Kind::Blumfeld } else { Kind::Kafka }, data)?;
    match to.kind() {
        Kind::Blumfeld => import(&nodes, data)?,
        Kind::Kafka => {
            let mut zookeeper = ZookeeperClient::connect(&to.zookeeper()?.address())?;
            nodes.iter().try_for_each(|node| zookeeper.create(&node.path, node.data.as_deref()))?;
        }
    }
    to.resume()?;
    Ok(to)
}

/// Ends a broker and wants the dump tools to read what it left of a topic.
pub(crate) fn end(broker: &mut Broker, data: &Path, topic: &str, how: End) -> Result<()> {
    match how {
        End::Clean => broker.stop()?,
        End::Killed => broker.kill()?,
    }
    if broker.kind() == Kind::Kafka {
        complaints(&broker.log()?)?;
    }
    dump::every_file(data, topic, how)
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

fn metadata_tool(arguments: &[&str], data: &Path, file: &Path) -> Result<()> {
    let mut command = Command::new(cache::blumfeld_binary()?);
    command.arg("metadata").args(arguments).arg("--data-dir").arg(data).arg("--file").arg(file);
    run_well(&mut command, "", LIMIT).map(|_| ())
}

/// The tree of Blumfeld's store. Values that are not text do not occur in these trees.
fn exported(data: &Path) -> Result<Vec<Znode>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("export");
    metadata_tool(&["export"], data, &file)?;
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

/// Puts a tree into Blumfeld's store, which may hold an older one.
fn import(nodes: &[Znode], data: &Path) -> Result<()> {
    let mut text = String::new();
    for node in nodes {
        let line = match &node.data {
            None => json!({ "path": node.path, "value": null }),
            Some(data) => json!({ "path": node.path, "value": std::str::from_utf8(data)? }),
        };
        text.push_str(&line.to_string());
        text.push('\n');
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("import");
    std::fs::write(&file, text)?;
    metadata_tool(&["import", "--replace"], data, &file)
}

/// What lives by a session, and what belongs to ZooKeeper itself, stays.
fn is_carried(path: &str) -> bool {
    path != "/"
        && path != "/controller"
        && !path.starts_with("/brokers/ids/")
        && !path.starts_with("/zookeeper")
}

fn raise_leader_epoch(node: &mut Znode) -> Result<()> {
    if !(node.path.starts_with("/brokers/topics/") && node.path.ends_with("/state")) {
        return Ok(());
    }
    let mut state: Value = serde_json::from_slice(node.data.as_deref().context("a state without data")?)?;
    let epoch = state.get_mut("leader_epoch").context("a state without a leader epoch")?;
    *epoch = json!(epoch.as_i64().context("a leader epoch that is no number")? + EPOCHS);
    node.data = Some(state.to_string().into_bytes());
    Ok(())
}
