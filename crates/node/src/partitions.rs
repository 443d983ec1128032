//! The partitions that this broker hosts: found, made, removed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use kernel::replica::control::Local;
use storage::log_dirs::{CreateError, NewLog};
use storage::partition_log::LogError;
use wire::error_code::ErrorCode;
use wire::types::{LeaderEpoch, TopicId, TopicName, TopicPartition};

use crate::broker::Broker;
use crate::partition::{Origin, Partition};

/// A map that is read with every request and changes rarely.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    hosted: RwLock<HashMap<TopicName, BTreeMap<i32, Arc<Partition>>>>,
    /// Those that should be here and have no log that can be used; they stay so until the broker is restarted.
    offline: RwLock<BTreeSet<TopicPartition>>,
}

impl Partitions {
    /// The partition, if this broker hosts it.
    pub(crate) fn get(&self, topic: &str, partition: i32) -> Option<Arc<Partition>> {
        self.hosted.read().unwrap_or_else(PoisonError::into_inner).get(topic)?.get(&partition).cloned()
    }

    /// Adds a partition.
    pub(crate) fn insert(&self, partition: Arc<Partition>) {
        let name = partition.name().clone();
        let mut map = self.hosted.write().unwrap_or_else(PoisonError::into_inner);
        map.entry(name.topic).or_default().insert(name.partition, partition);
    }

    /// Takes a partition out.
    pub(crate) fn remove(&self, name: &TopicPartition) -> Option<Arc<Partition>> {
        let mut map = self.hosted.write().unwrap_or_else(PoisonError::into_inner);
        let topic = map.get_mut(name.topic.as_str())?;
        let removed = topic.remove(&name.partition);
        if topic.is_empty() {
            map.remove(name.topic.as_str());
        }
        removed
    }

    /// Whether a partition of the topic is hosted.
    pub(crate) fn has_topic(&self, topic: &str) -> bool {
        self.hosted.read().unwrap_or_else(PoisonError::into_inner).contains_key(topic)
    }

    /// All of them, by topic and index, so that what is done to all is done in the same order each time.
    pub(crate) fn all(&self) -> Vec<Arc<Partition>> {
        let map = self.hosted.read().unwrap_or_else(PoisonError::into_inner);
        let mut topics: Vec<_> = map.iter().collect();
        topics.sort_unstable_by_key(|(name, _)| *name);
        topics.into_iter().flat_map(|(_, topic)| topic.values().cloned()).collect()
    }

    /// Whether the partition should be here and cannot.
    pub(crate) fn is_offline(&self, name: &TopicPartition) -> bool {
        self.offline.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// How many partitions should be here and cannot.
    pub(crate) fn offline_count(&self) -> usize {
        self.offline.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn set_offline(&self, name: &TopicPartition) {
        self.offline.write().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
    }
}

/// The replicas of this broker.
impl Broker {
    /// A hosted partition.
    ///
    /// # Errors
    /// NOT_LEADER_OR_FOLLOWER if it is elsewhere, KAFKA_STORAGE_ERROR if its log cannot be used,
    /// UNKNOWN_TOPIC_OR_PARTITION if there is none.
    pub(crate) fn partition(&self, topic: &str, partition: i32) -> Result<Arc<Partition>, ErrorCode> {
        self.partitions().get(topic, partition).ok_or_else(|| {
            if self.partitions().is_offline(&TopicPartition::new(topic, partition)) {
                ErrorCode::KafkaStorageError
            } else if self.image().partition(topic, partition).is_some() {
                ErrorCode::NotLeaderOrFollower
            } else {
                ErrorCode::UnknownTopicOrPartition
            }
        })
    }

    /// A partition, if it is hosted.
    pub(crate) fn hosted(&self, name: &TopicPartition) -> Option<Arc<Partition>> {
        self.partitions().get(name.topic.as_str(), name.partition)
    }

    /// What is here of a partition, as a request of the controller sees it.
    pub(crate) fn local(&self, name: &TopicPartition) -> Local {
        if let Some(partition) = self.hosted(name) {
            return partition.local();
        }
        let log = self.log_dirs().get(name);
        if self.partitions().is_offline(name) || log.as_ref().is_some_and(|log| !log.health().is_online()) {
            return Local::Offline;
        }
        Local::Present {
            leader_epoch: LeaderEpoch::UNKNOWN,
            partition_epoch: -1,
            topic_id: log.and_then(|log| log.topic_id()),
        }
    }

    /// Makes the logs of partitions that will be [hosted](Self::host), several at a time. One that cannot be made is
    /// told of when its partition is hosted.
    pub(crate) fn make_logs(&self, wanted: &BTreeMap<TopicPartition, NewLog>) {
        drop(self.log_dirs().get_or_create_many(wanted, self.now()));
    }

    /// Hosts a partition from now on, in no role yet. Makes its log if there is none; `is_new`: no log can exist yet, in
    /// a failed directory either.
    ///
    /// # Errors
    /// If there is no log that can be used.
    pub(crate) fn host(
        &self,
        name: &TopicPartition,
        topic_id: TopicId,
        configs: &BTreeMap<String, String>,
        is_new: bool,
    ) -> Result<Arc<Partition>, CreateError> {
        let config = Arc::new(self.log_config(configs));
        let opened = self.log_dirs().get_or_create(name, topic_id, config, is_new, self.now());
        let log = opened.inspect_err(|error| {
            tracing::error!(partition = %name, %error, "the partition has no log here");
            // A log of another topic may be removed by hand; a disk does not come back.
            if !matches!(error, CreateError::Log(_)) {
                self.partitions().set_offline(name);
            }
        })?;
        let topic_id = log.topic_id().unwrap_or(topic_id);
        let partition =
            Arc::new(Partition::new(name.clone(), topic_id, log, self.metrics().topic(&name.topic)));
        partition.note_loss(self);
        self.partitions().insert(partition.clone());
        Ok(partition)
    }

    /// Stops serving these replicas and removes their logs. The results are in the order of the names; a replica that
    /// is not here is no error.
    pub(crate) fn remove_replicas(
        self: &Arc<Self>,
        names: &[TopicPartition],
        origin: Origin,
    ) -> Vec<Result<(), LogError>> {
        for name in names {
            if let Some(partition) = self.partitions().remove(name) {
                self.departed().add(name, partition.become_deleted(self, origin));
            }
        }
        let results = self.log_dirs().delete_many(names, self.now());
        let topics: BTreeSet<_> = names.iter().map(|name| &name.topic).collect();
        for topic in topics.into_iter().filter(|topic| !self.partitions().has_topic(topic.as_str())) {
            self.metrics().forget_topic(topic);
        }
        results
    }
}
