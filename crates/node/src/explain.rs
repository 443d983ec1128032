//! What an operator may ask of a running broker: why a partition is as it is, and what its start recovered.

use serde_json::{Value, json};
use wire::types::TopicPartition;

use crate::broker::Broker;
use crate::partition::{Happened, Partition, Role};

impl Broker {
    /// What is known of a partition, as JSON; `None` if nothing is. Of one that was deleted the histories stay for a while.
    pub fn explain(&self, topic: &str, partition: i32) -> Option<String> {
        let name = TopicPartition::new(topic, partition);
        let image = self.image();
        let known = image.partition(topic, partition);
        let hosted = self.partition(topic, partition).ok();
        let departed = self.departed().of(&name);
        let controller = self.controller().history(&name);
        if known.is_none() && hosted.is_none() && departed.is_empty() && controller.is_empty() {
            return None;
        }
        let why = match known {
            None => "the cluster does not know it, or no longer",
            Some(it) if it.leader.0 < 0 => "no in-sync replica is alive",
            Some(it) if hosted.is_none() && it.leader == self.id() => {
                "its log directory has failed, or its log could not be opened; see the broker's log"
            }
            Some(_) => "served",
        };
        let text = json!({
            "broker": self.id().0,
            "topic": topic,
            "partition": partition,
            "topicId": image.topic(topic).map(|topic| topic.id.to_string()),
            "leader": known.map(|it| it.leader.0),
            "leaderEpoch": known.map(|it| it.leader_epoch.0),
            "partitionEpoch": known.map(|it| it.partition_epoch),
            "replicas": known.map(|it| it.replicas.iter().map(|id| id.0).collect::<Vec<_>>()),
            "isr": known.map(|it| it.isr.iter().map(|id| id.0).collect::<Vec<_>>()),
            "state": why,
            "log": hosted.map_or(Value::Null, |hosted| log(&hosted)),
            "removed": departed.iter().map(entry).collect::<Vec<_>>(),
            "history": controller,
        });
        Some(text.to_string())
    }

    /// What the start found in the log directories, as JSON.
    pub fn recovery(&self) -> String {
        let dirs = self.log_dirs().describe().into_iter().map(|dir| {
            json!({
                "directory": dir.path.to_string_lossy(),
                "online": dir.is_online,
                "logs": dir.logs.len(),
            })
        });
        let losses = self.log_dirs().all().into_iter().filter_map(|log| {
            let loss = log.loss()?;
            Some(json!({
                "topic": log.partition().topic.as_str(),
                "partition": log.partition().partition,
                "highWatermark": loss.high_watermark.0,
                "logEndOffset": loss.log_end.0,
                "cause": loss.cause.to_string(),
            }))
        });
        let losses: Vec<_> = losses.collect();
        json!({ "state": self.state(), "logDirs": dirs.collect::<Vec<_>>(), "losses": losses }).to_string()
    }
}

/// The replica of this broker.
fn log(hosted: &Partition) -> Value {
    let log = hosted.log();
    let positions = log.positions();
    json!({
        "role": match hosted.role() {
            Role::Leader(_) => "leader",
            Role::Follower(_) => "follower",
            Role::Offline => "offline",
            Role::Deleted => "deleted",
        },
        "history": hosted.history().iter().map(entry).collect::<Vec<_>>(),
        "directory": log.dir_name(),
        "segments": log.segment_count(),
        "sizeBytes": log.size_bytes(),
        "logStartOffset": positions.log_start.0,
        "lastStableOffset": positions.last_stable.0,
        "highWatermark": positions.high_watermark.0,
        "logEndOffset": positions.log_end.0,
        "recoveryPoint": positions.recovery_point.0,
        "loss": log.loss().map(|loss| loss.to_string()),
    })
}

/// One thing that happened, named as in the history of a controller.
fn entry(it: &Happened) -> Value {
    json!({
        "timestampMs": it.at_ms,
        "event": it.number,
        "cause": it.trigger.to_string(),
        "causedByEvent": it.parent,
        "leaderEpochBefore": it.before.leader.0,
        "leaderEpoch": it.after.leader.0,
        "partitionEpochBefore": it.before.partition,
        "partitionEpoch": it.after.partition,
        "logStartOffset": it.offsets.log_start.0,
        "highWatermark": it.offsets.high_watermark.0,
        "logEndOffset": it.offsets.log_end.0,
        "what": it.what.to_string(),
    })
}
