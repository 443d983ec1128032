//! What an operator may ask of a running broker: why a partition is as it is, and what its start recovered.

use serde_json::{Value, json};
use wire::types::TopicPartition;

use crate::broker::Broker;
use crate::partition::Role;

impl Broker {
    /// What is known of a partition, as JSON; `None` if there is no such partition.
    pub fn explain(&self, topic: &str, partition: i32) -> Option<String> {
        let image = self.image();
        let it = image.partition(topic, partition)?;
        let local = self.partition(topic, partition).ok().map(|hosted| {
            let positions = hosted.log().positions();
            json!({
                "role": match hosted.role() {
                    Role::Leader(_) => "leader",
                    Role::Follower(_) => "follower",
                    Role::Offline => "offline",
                    Role::Deleted => "deleted",
                },
                "history": hosted.history().iter().map(|it| {
                    json!({ "timestampMs": it.at_ms, "what": it.what.to_string() })
                }).collect::<Vec<_>>(),
                "directory": hosted.log().dir_name(),
                "segments": hosted.log().segment_count(),
                "sizeBytes": hosted.log().size_bytes(),
                "logStartOffset": positions.log_start.0,
                "lastStableOffset": positions.last_stable.0,
                "highWatermark": positions.high_watermark.0,
                "logEndOffset": positions.log_end.0,
                "recoveryPoint": positions.recovery_point.0,
            })
        });
        let why = if it.leader.0 < 0 {
            "no in-sync replica is alive"
        } else if local.is_none() && it.leader == self.id() {
            "its log directory has failed, or its log could not be opened; see the broker's log"
        } else {
            "served"
        };
        let text = json!({
            "topic": topic,
            "partition": partition,
            "topicId": image.topic(topic).map(|topic| topic.id.to_string()),
            "leader": it.leader.0,
            "leaderEpoch": it.leader_epoch.0,
            "partitionEpoch": it.partition_epoch,
            "replicas": it.replicas.iter().map(|id| id.0).collect::<Vec<_>>(),
            "isr": it.isr.iter().map(|id| id.0).collect::<Vec<_>>(),
            "state": why,
            "log": local.unwrap_or(Value::Null),
            "history": self.controller().history(&TopicPartition::new(topic, partition)),
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
        json!({ "state": self.state(), "logDirs": dirs.collect::<Vec<_>>() }).to_string()
    }
}
