//! The replica fetchers: what this broker follows is copied from its leaders.

use std::sync::Arc;

use wire::types::{TopicId, TopicPartition};

use crate::broker::Broker;
use crate::partition::Partition;

/// Takes up partitions that follow from now on; each tells by its role whom and in which epoch.
pub(crate) fn add(_broker: &Arc<Broker>, _partitions: Vec<Arc<Partition>>) {}

/// Lets go of partitions; those that nobody fetches are no error. What a fetcher still has in its hands it can no longer
/// write once the role has changed ([`Partition::while_following`]).
pub(crate) fn remove(_broker: &Arc<Broker>, _partitions: &[TopicPartition]) {}

/// The id of a partition's topic has become known, or is no longer to be used; the epoch is the same (KAFKA-13132,
/// KAFKA-13394).
pub(crate) fn topic_id_changed(_broker: &Arc<Broker>, _partition: &TopicPartition, _id: Option<TopicId>) {}
