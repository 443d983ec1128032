//! The hosted partitions by topic and index.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use wire::types::{TopicName, TopicPartition};

use crate::partition::Partition;

type Map = HashMap<TopicName, BTreeMap<i32, Arc<Partition>>>;

/// A map that is read with every request and changes rarely.
#[derive(Debug, Default)]
pub(crate) struct Partitions(RwLock<Map>);

impl Partitions {
    /// The partition, if this broker hosts it.
    pub(crate) fn get(&self, topic: &str, partition: i32) -> Option<Arc<Partition>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(topic)?.get(&partition).cloned()
    }

    /// Adds a partition, or replaces it.
    pub(crate) fn insert(&self, partition: Arc<Partition>) {
        let name = partition.name().clone();
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        map.entry(name.topic).or_default().insert(name.partition, partition);
    }

    /// Takes a partition out.
    pub(crate) fn remove(&self, name: &TopicPartition) -> Option<Arc<Partition>> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let topic = map.get_mut(name.topic.as_str())?;
        let removed = topic.remove(&name.partition);
        if topic.is_empty() {
            map.remove(name.topic.as_str());
        }
        removed
    }

    /// All of them, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Partition>> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        map.values().flat_map(|topic| topic.values().cloned()).collect()
    }
}
