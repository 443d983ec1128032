//! What the cluster looks like, as one immutable value: brokers, controller, topics, leaders.
//!
//! A change makes a new image that shares what stayed the same; readers hold the one they began with. In a cluster it
//! comes from the controller's UpdateMetadata requests ([`MetadataUpdate`]).

mod update;

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::types::{BrokerId, ControllerEpoch, LeaderEpoch, TopicId, TopicName};

pub use update::{MetadataUpdate, TopicUpdate};

/// An address of a broker under the name of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The listener's name, in upper case.
    pub listener: String,
    /// The advertised host.
    pub host: String,
    /// The advertised port.
    pub port: i32,
}

/// A live broker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BrokerInfo {
    /// The advertised addresses.
    pub endpoints: Vec<Endpoint>,
    /// `broker.rack`.
    pub rack: Option<String>,
}

impl BrokerInfo {
    /// The address for clients of `listener`.
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.listener == listener)
    }
}

/// The state of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionImage {
    /// The leader, [`BrokerId::NONE`] if there is none.
    pub leader: BrokerId,
    /// The epoch of that leadership.
    pub leader_epoch: LeaderEpoch,
    /// The version of the partition's state node.
    pub partition_epoch: i32,
    /// The term of the controller that decided so.
    pub controller_epoch: ControllerEpoch,
    /// The replicas in order of preference.
    pub replicas: Vec<BrokerId>,
    /// The in-sync replicas.
    pub isr: Vec<BrokerId>,
    /// The replicas on a failed log directory of a live broker.
    pub offline: Vec<BrokerId>,
}

/// One topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopicImage {
    /// The name.
    pub name: TopicName,
    /// The id, zero if the topic was made before ids existed.
    pub id: TopicId,
    /// The partitions by index.
    pub partitions: BTreeMap<i32, PartitionImage>,
}

/// The whole picture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MetadataImage {
    cluster_id: Option<String>,
    controller: Option<BrokerId>,
    brokers: Arc<BTreeMap<BrokerId, BrokerInfo>>,
    topics: Arc<BTreeMap<TopicName, Arc<TopicImage>>>,
    names: Arc<BTreeMap<TopicId, TopicName>>,
}

impl MetadataImage {
    /// The cluster's id.
    pub fn cluster_id(&self) -> Option<&str> {
        self.cluster_id.as_deref()
    }

    /// The controller, as far as known.
    pub fn controller(&self) -> Option<BrokerId> {
        self.controller
    }

    /// The live brokers in order of id.
    pub fn brokers(&self) -> &BTreeMap<BrokerId, BrokerInfo> {
        &self.brokers
    }

    /// All topics in order of name.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicImage>> {
        self.topics.values()
    }

    /// How many topics there are.
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    /// The topic of a name.
    pub fn topic(&self, name: &str) -> Option<&Arc<TopicImage>> {
        self.topics.get(name)
    }

    /// The topic of an id; the zero id names none.
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<TopicImage>> {
        self.topic(self.names.get(&id)?.as_str())
    }

    /// One partition of a topic.
    pub fn partition(&self, topic: &str, partition: i32) -> Option<&PartitionImage> {
        self.topic(topic)?.partitions.get(&partition)
    }

    /// Sets the cluster's id.
    #[must_use]
    pub fn with_cluster_id(mut self, id: &str) -> Self {
        self.cluster_id = Some(id.to_owned());
        self
    }

    /// Sets the controller.
    #[must_use]
    pub fn with_controller(mut self, controller: Option<BrokerId>) -> Self {
        self.controller = controller;
        self
    }

    /// Adds a live broker, or replaces it.
    #[must_use]
    pub fn with_broker(mut self, id: BrokerId, broker: BrokerInfo) -> Self {
        Arc::make_mut(&mut self.brokers).insert(id, broker);
        self
    }

    /// Adds topics, or replaces them.
    #[must_use]
    pub fn with_topics(mut self, topics: impl IntoIterator<Item = TopicImage>) -> Self {
        let (by_name, by_id) = (Arc::make_mut(&mut self.topics), Arc::make_mut(&mut self.names));
        for topic in topics {
            if let Some(old) = by_name.get(&topic.name) {
                by_id.remove(&old.id);
            }
            if !topic.id.is_zero() {
                by_id.insert(topic.id, topic.name.clone());
            }
            by_name.insert(topic.name.clone(), Arc::new(topic));
        }
        self
    }

    /// Removes a topic; an unknown one is no error.
    #[must_use]
    pub fn without_topic(mut self, name: &str) -> Self {
        if let Some(topic) = Arc::make_mut(&mut self.topics).remove(name) {
            Arc::make_mut(&mut self.names).remove(&topic.id);
        }
        self
    }
}

#[cfg(test)]
mod tests;
