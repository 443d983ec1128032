//! What a cluster keeps in ZooKeeper, as tests ask for it. The paths and fields are written down here once more,
//! apart from the broker's own code on purpose.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::zookeeper::ZookeeperClient;

/// `/brokers/topics/T/partitions/N/state`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionState {
    /// The leader, or -1.
    pub leader: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// The in-sync replicas, in their order.
    pub isr: Vec<i32>,
    /// The epoch of the controller that wrote it.
    pub controller_epoch: i32,
    /// The partition epoch: the version of the node.
    pub partition_epoch: i32,
    /// Whether the leader was elected uncleanly and the others have not caught up yet.
    pub recovering: bool,
}

/// A session with ZooKeeper for reading, and for the few writes that tests make.
#[derive(Debug)]
pub struct Tree {
    client: ZookeeperClient,
}

impl Tree {
    /// Opens a session with one of the servers at these `host:port`.
    ///
    /// # Errors
    /// When none of them can be reached.
    pub fn open(addresses: &[String]) -> Result<Self> {
        Ok(Self { client: ZookeeperClient::connect_to_one_of(addresses)? })
    }

    /// The session below.
    pub fn client(&mut self) -> &mut ZookeeperClient {
        &mut self.client
    }

    /// The JSON of a node; none when there is no such node.
    ///
    /// # Errors
    /// When it holds something else, or cannot be read.
    pub fn json(&mut self, path: &str) -> Result<Option<Value>> {
        let Some(data) = self.client.data(path)? else { return Ok(None) };
        parse(path, data).map(Some)
    }

    /// The broker that is the controller.
    ///
    /// # Errors
    /// When the tree cannot be read.
    pub fn controller(&mut self) -> Result<Option<i32>> {
        self.json("/controller")?.map(|json| integer(&json, "brokerid")).transpose()
    }

    /// The epoch of the last election of a controller; 0 before the first.
    ///
    /// # Errors
    /// When the tree cannot be read.
    pub fn controller_epoch(&mut self) -> Result<i32> {
        match self.client.data("/controller_epoch")? {
            None => Ok(0),
            Some(data) => Ok(String::from_utf8(data.unwrap_or_default())?.trim().parse()?),
        }
    }

    /// Takes the controller's office away, as an operator does it: another election follows.
    ///
    /// # Errors
    /// When the node cannot be deleted.
    pub fn depose_controller(&mut self) -> Result<bool> {
        self.client.delete("/controller")
    }

    /// The brokers that are registered.
    ///
    /// # Errors
    /// When the tree cannot be read.
    pub fn brokers(&mut self) -> Result<BTreeSet<i32>> {
        if self.client.data("/brokers/ids")?.is_none() {
            return Ok(BTreeSet::new());
        }
        self.client.children("/brokers/ids")?.iter().map(|name| Ok(name.parse()?)).collect()
    }

    /// Where a broker says that it is reached, `host:port` by listener; none when it is not registered.
    ///
    /// # Errors
    /// When the tree cannot be read.
    pub fn endpoints(&mut self, broker: i32) -> Result<Option<BTreeMap<String, String>>> {
        let Some(json) = self.json(&format!("/brokers/ids/{broker}"))? else { return Ok(None) };
        let endpoints = json.get("endpoints").and_then(Value::as_array).context("no endpoints")?;
        let endpoint = |it: &Value| {
            let (name, address) = it.as_str()?.split_once("://")?;
            Some((name.to_owned(), address.to_owned()))
        };
        endpoints
            .iter()
            .map(|it| endpoint(it).with_context(|| format!("no endpoint: {it}")))
            .collect::<Result<_>>()
            .map(Some)
    }

    /// The replicas of each partition of a topic.
    ///
    /// # Errors
    /// When there is no such topic.
    pub fn assignment(&mut self, topic: &str) -> Result<BTreeMap<i32, Vec<i32>>> {
        let json = self.json(&format!("/brokers/topics/{topic}"))?;
        let json = json.with_context(|| format!("no topic {topic}"))?;
        let partitions = json.get("partitions").and_then(Value::as_object).context("no partitions")?;
        partitions.iter().map(|(index, replicas)| Ok((index.parse()?, integers(replicas)?))).collect()
    }

    /// Leader and in-sync replicas of a partition; none before its first election.
    ///
    /// # Errors
    /// When the tree cannot be read.
    pub fn state(&mut self, topic: &str, partition: i32) -> Result<Option<PartitionState>> {
        let path = format!("/brokers/topics/{topic}/partitions/{partition}/state");
        let Some((data, partition_epoch)) = self.client.versioned_data(&path)? else { return Ok(None) };
        let json = parse(&path, data)?;
        Ok(Some(PartitionState {
            leader: integer(&json, "leader")?,
            leader_epoch: integer(&json, "leader_epoch")?,
            isr: integers(json.get("isr").context("no isr")?)?,
            controller_epoch: integer(&json, "controller_epoch")?,
            partition_epoch,
            recovering: json.get("leader_recovery_state").is_some_and(|state| state == 1),
        }))
    }
}

fn parse(path: &str, data: Option<Vec<u8>>) -> Result<Value> {
    serde_json::from_slice(&data.unwrap_or_default()).with_context(|| format!("{path} is no JSON"))
}

fn integer(json: &Value, key: &str) -> Result<i32> {
    let value =
        json.get(key).and_then(Value::as_i64).with_context(|| format!("no number {key} in {json}"))?;
    Ok(i32::try_from(value)?)
}

fn integers(json: &Value) -> Result<Vec<i32>> {
    let values = json.as_array().with_context(|| format!("no list: {json}"))?;
    values.iter().map(|value| Ok(i32::try_from(value.as_i64().context("no number")?)?)).collect()
}
