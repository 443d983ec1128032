//! `/brokers/topics/<topic>`: the assignment of a topic's partitions and, since 2.8, its id (KIP-516).
//!
//! Version 3. Replicas that a reassignment adds or removes are listed apart (KIP-455), and are part of the replicas.
//! Older releases write neither the id nor the two lists.

use super::{DecodeError, json};
use crate::path;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::types::{BrokerId, TopicId, TopicName};

/// The parent of all topics.
pub const ROOT: &str = "/brokers/topics";

const KIND: &str = "topic";

/// The path of a topic.
pub fn path(topic: &TopicName) -> String {
    path::child(ROOT, topic.as_str())
}

/// The partitions of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TopicAssignment {
    /// The id; a topic of releases before 2.8 has none until a controller assigns one.
    pub topic_id: Option<TopicId>,
    /// The replicas of each partition, by partition number.
    pub partitions: BTreeMap<i32, PartitionAssignment>,
}

/// The replicas of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PartitionAssignment {
    /// All replicas; the first is the preferred leader.
    pub replicas: Vec<BrokerId>,
    /// Those of them that a reassignment is adding.
    pub adding_replicas: Vec<BrokerId>,
    /// Those of them that a reassignment is removing.
    pub removing_replicas: Vec<BrokerId>,
}

impl PartitionAssignment {
    /// An assignment that nothing is changing.
    pub fn of(replicas: Vec<BrokerId>) -> Self {
        Self { replicas, ..Self::default() }
    }
}

type Replicas = BTreeMap<i32, Vec<i32>>;

#[derive(Serialize, Deserialize)]
struct Json {
    #[serde(default)]
    partitions: Replicas,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topic_id: Option<String>,
    #[serde(default)]
    adding_replicas: Replicas,
    #[serde(default)]
    removing_replicas: Replicas,
    #[serde(default)]
    version: i32,
}

impl TopicAssignment {
    /// The value of the znode, version 3.
    pub fn encode(&self) -> Vec<u8> {
        let partitions = self.partitions.iter();
        json::encode(&Json {
            partitions: partitions
                .map(|(p, assignment)| (*p, json::ids_to_ints(&assignment.replicas)))
                .collect(),
            topic_id: self.topic_id.map(|id| id.to_string()),
            adding_replicas: self.under_change(|assignment| &assignment.adding_replicas),
            removing_replicas: self.under_change(|assignment| &assignment.removing_replicas),
            version: 3,
        })
    }

    fn under_change(&self, part: impl Fn(&PartitionAssignment) -> &Vec<BrokerId>) -> Replicas {
        let lists = self.partitions.iter().map(|(p, assignment)| (*p, json::ids_to_ints(part(assignment))));
        lists.filter(|(_, ids)| !ids.is_empty()).collect()
    }

    /// Reads versions 1 to 3.
    pub fn decode(data: Option<&[u8]>) -> Result<Self, DecodeError> {
        let mut json: Json = json::decode(KIND, data)?;
        let topic_id = match json.topic_id {
            None => None,
            Some(text) => {
                let id = TopicId::parse(&text);
                Some(id.ok_or_else(|| DecodeError::new(KIND, format!("{text:?} is no topic id")))?)
            }
        };
        let part = |lists: &mut Replicas, partition: i32| {
            json::ints_to_ids(lists.remove(&partition).unwrap_or_default())
        };
        let partitions = json.partitions.into_iter().map(|(partition, replicas)| {
            let assignment = PartitionAssignment {
                replicas: json::ints_to_ids(replicas),
                adding_replicas: part(&mut json.adding_replicas, partition),
                removing_replicas: part(&mut json.removing_replicas, partition),
            };
            (partition, assignment)
        });
        Ok(Self { topic_id, partitions: partitions.collect() })
    }
}
