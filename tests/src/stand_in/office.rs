//! What the stand-in keeps in ZooKeeper, below its chroot. Each use has a session of its own, so none can expire.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{EPOCH, ID, Leadership};
use crate::zookeeper::ZookeeperClient;

/// The id of each stand-in's one topic.
const TOPIC_ID: u128 = 0x5eed_0000_0000_4000_8000_0000_0000_0001;

#[derive(Debug)]
pub(super) struct Office {
    zookeeper: String,
    chroot: String,
    pub(super) topic: String,
    pub(super) topic_id: Uuid,
    pub(super) replicas: Vec<i32>,
    pub(super) granting: AtomicBool,
    /// One change at a time.
    writing: Mutex<()>,
}

impl Office {
    pub(super) fn begin(zookeeper: &str, chroot: &str, topic: &str, replicas: &[i32]) -> Result<Self> {
        let office = Self {
            zookeeper: zookeeper.to_owned(),
            chroot: chroot.to_owned(),
            topic: topic.to_owned(),
            topic_id: Uuid::from_u128(TOPIC_ID),
            replicas: replicas.to_vec(),
            granting: AtomicBool::new(true),
            writing: Mutex::new(()),
        };
        let mut client = office.client()?;
        let id = office.topic_id_text();
        let topic_path = format!("/brokers/topics/{topic}");
        let controller = json!({"version": 2, "brokerid": ID, "timestamp": "0", "kraftControllerEpoch": -1});
        let assignment = json!({
            "version": 3, "topic_id": id, "partitions": {"0": replicas},
            "adding_replicas": {}, "removing_replicas": {},
        });
        for (path, data) in [
            (String::new(), None),
            ("/controller".to_owned(), Some(controller.to_string())),
            ("/controller_epoch".to_owned(), Some(EPOCH.to_string())),
            ("/brokers".to_owned(), None),
            ("/brokers/topics".to_owned(), None),
            (topic_path.clone(), Some(assignment.to_string())),
            (format!("{topic_path}/partitions"), None),
            (format!("{topic_path}/partitions/0"), None),
            (office.state_path(), Some(state(-1, -1, &[]).to_string())),
            ("/config".to_owned(), None),
            ("/config/topics".to_owned(), None),
            (format!("/config/topics/{topic}"), Some(json!({"version": 1, "config": {}}).to_string())),
        ] {
            client.create(&office.path(&path), data.as_deref().map(str::as_bytes))?;
        }
        Ok(office)
    }

    fn client(&self) -> Result<ZookeeperClient> {
        ZookeeperClient::connect(&self.zookeeper)
    }

    fn path(&self, path: &str) -> String {
        format!("{}{path}", self.chroot)
    }

    fn state_path(&self) -> String {
        format!("/brokers/topics/{}/partitions/0/state", self.topic)
    }

    /// The id as Kafka writes it: URL-safe base 64 of its bytes.
    fn topic_id_text(&self) -> String {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let bits = self.topic_id.as_u128();
        // 128 bits and 4 of padding are 22 letters of 6 bits.
        let letter = |place: u32| {
            let shifted = if place == 0 { bits << 4 } else { bits >> (6 * place - 4) };
            let index = usize::try_from(shifted & 63).unwrap_or(0);
            char::from(ALPHABET.get(index).copied().unwrap_or(b'A'))
        };
        (0..22).rev().map(letter).collect()
    }

    /// The transaction of a broker's registration.
    pub(super) fn broker_epoch(&self, id: i32) -> Result<i64> {
        let path = self.path(&format!("/brokers/ids/{id}"));
        self.client()?.created_in(&path)?.with_context(|| format!("broker {id} is not registered"))
    }

    pub(super) fn decide(&self, leader: i32, leader_epoch: i32, isr: &[i32]) -> Result<()> {
        self.client()?
            .set(&self.path(&self.state_path()), state(leader, leader_epoch, isr).to_string().as_bytes())
            .map(|_| ())
    }

    pub(super) fn leadership(&self) -> Result<Leadership> {
        let found = self.client()?.versioned_data(&self.path(&self.state_path()))?;
        let (data, partition_epoch) = found.context("no state")?;
        let json: Value = serde_json::from_slice(&data.unwrap_or_default())?;
        let number = |key: &str| -> Result<i32> {
            let value = json.get(key).and_then(Value::as_i64).with_context(|| format!("no {key}"))?;
            Ok(i32::try_from(value)?)
        };
        let isr = json.get("isr").and_then(Value::as_array).context("no isr")?;
        let isr = isr.iter().filter_map(Value::as_i64).map(i32::try_from).collect::<Result<_, _>>()?;
        Ok(Leadership {
            leader: number("leader")?,
            leader_epoch: number("leader_epoch")?,
            isr,
            partition_epoch,
        })
    }

    /// Grants a leader another ISR, if it knows the present state.
    pub(super) fn change_isr(&self, known: (i32, i32), isr: &[i32]) -> Result<Leadership> {
        let _one_at_a_time = self.writing.lock();
        let present = self.leadership()?;
        let (leader_epoch, partition_epoch) = known;
        ensure!(
            (present.leader_epoch, present.partition_epoch) == (leader_epoch, partition_epoch),
            "outdated"
        );
        self.decide(present.leader, leader_epoch, isr)?;
        self.leadership()
    }
}

fn state(leader: i32, leader_epoch: i32, isr: &[i32]) -> Value {
    json!({
        "controller_epoch": EPOCH, "leader": leader, "version": 1,
        "leader_epoch": leader_epoch, "isr": isr,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_as_kafka_writes_it() {
        let office = |id: u128| Office {
            zookeeper: String::new(),
            chroot: String::new(),
            topic: String::new(),
            topic_id: Uuid::from_u128(id),
            replicas: Vec::new(),
            granting: AtomicBool::new(true),
            writing: Mutex::new(()),
        };
        assert_eq!(office(1).topic_id_text(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(office(u128::MAX).topic_id_text(), "_____________________w");
    }
}
