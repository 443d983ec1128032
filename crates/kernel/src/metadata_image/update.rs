//! What an UpdateMetadata makes of the picture: brokers and controller are told whole, partitions by and by.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::types::{BrokerId, TopicId, TopicName};

use super::{BrokerInfo, MetadataImage, PartitionImage, TopicImage};
use crate::replica::control::LEADER_DURING_DELETE;

/// What the controller tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MetadataUpdate {
    /// The controller; `None` if there is none.
    pub controller: Option<BrokerId>,
    /// All live brokers.
    pub brokers: BTreeMap<BrokerId, BrokerInfo>,
    /// The topics of the partitions that have changed.
    pub topics: Vec<TopicUpdate>,
}

/// What the controller tells of one topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopicUpdate {
    /// The name.
    pub name: TopicName,
    /// The id; zero takes away the one that is known.
    pub id: TopicId,
    /// The partitions that have changed. The leader [`LEADER_DURING_DELETE`] takes a partition away, and the topic with
    /// its last one.
    pub partitions: Vec<(i32, PartitionImage)>,
}

impl MetadataImage {
    /// The image after an update. Partitions and topics that it does not name stay as they are.
    #[must_use]
    pub fn updated(mut self, update: MetadataUpdate) -> Self {
        self.controller = update.controller;
        if *self.brokers != update.brokers {
            self.brokers = Arc::new(update.brokers);
        }
        if update.topics.is_empty() {
            return self;
        }
        let (by_name, by_id) = (Arc::make_mut(&mut self.topics), Arc::make_mut(&mut self.names));
        for told in update.topics {
            let before = by_name.get(&told.name);
            if let Some(before) = before {
                by_id.remove(&before.id);
            }
            let mut topic = before.map_or_else(|| empty(&told.name), |topic| TopicImage::clone(topic));
            topic.id = told.id;
            for (index, partition) in told.partitions {
                if partition.leader == LEADER_DURING_DELETE {
                    topic.partitions.remove(&index);
                } else {
                    topic.partitions.insert(index, partition);
                }
            }
            if topic.partitions.is_empty() {
                by_name.remove(&told.name);
                continue;
            }
            if !topic.id.is_zero() {
                by_id.insert(topic.id, told.name.clone());
            }
            by_name.insert(told.name, Arc::new(topic));
        }
        self
    }
}

fn empty(name: &TopicName) -> TopicImage {
    TopicImage { name: name.clone(), id: TopicId::ZERO, partitions: BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use wire::types::{ControllerEpoch, LeaderEpoch};

    use super::*;

    const ID: TopicId = TopicId([1; 16]);

    fn broker(rack: &str) -> BrokerInfo {
        BrokerInfo { endpoints: Vec::new(), rack: Some(rack.to_owned()) }
    }

    fn partition(leader: i32, leader_epoch: i32) -> PartitionImage {
        PartitionImage {
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(leader_epoch),
            partition_epoch: 0,
            controller_epoch: ControllerEpoch(1),
            replicas: vec![BrokerId(1), BrokerId(2)],
            isr: vec![BrokerId(1)],
            offline: Vec::new(),
        }
    }

    fn of_topic(id: TopicId, partitions: &[(i32, PartitionImage)]) -> MetadataUpdate {
        let topic = TopicUpdate { name: "t".into(), id, partitions: partitions.to_vec() };
        MetadataUpdate { topics: vec![topic], ..MetadataUpdate::default() }
    }

    fn image() -> MetadataImage {
        MetadataImage::default().updated(of_topic(ID, &[(0, partition(1, 4)), (1, partition(2, 4))]))
    }

    #[test]
    fn brokers_and_controller_are_replaced_by_every_update() {
        let told = |controller, ids: &[i32]| MetadataUpdate {
            controller,
            brokers: ids.iter().map(|id| (BrokerId(*id), broker("r"))).collect(),
            topics: Vec::new(),
        };
        let image = image().updated(told(Some(BrokerId(1)), &[1, 2]));
        assert_eq!((image.controller(), image.brokers().len()), (Some(BrokerId(1)), 2));
        let image = image.updated(told(None, &[2]));
        assert_eq!(image.controller(), None);
        assert_eq!(image.brokers().keys().copied().collect::<Vec<_>>(), [BrokerId(2)]);
        assert!(image.partition("t", 1).is_some(), "without partitions an update leaves all as they are");
    }

    #[test]
    fn partitions_that_are_told_replace_their_like_and_others_stay() {
        let image = image().updated(of_topic(ID, &[(1, partition(1, 5)), (2, partition(2, 0))]));
        assert_eq!(image.partition("t", 0), Some(&partition(1, 4)));
        assert_eq!(image.partition("t", 1), Some(&partition(1, 5)));
        assert_eq!(image.partition("t", 2), Some(&partition(2, 0)));
    }

    #[test]
    fn epochs_are_not_compared_since_order_comes_from_the_connection() {
        let image = image().updated(of_topic(ID, &[(0, partition(2, 3))]));
        assert_eq!(image.partition("t", 0), Some(&partition(2, 3)));
    }

    #[test]
    fn the_leader_of_a_deletion_takes_the_partition_away_and_the_topic_with_its_last_one() {
        let deleted = partition(LEADER_DURING_DELETE.0, 0);
        let image = image().updated(of_topic(ID, &[(0, deleted.clone())]));
        assert!(image.partition("t", 0).is_none() && image.partition("t", 1).is_some());
        let image = image.updated(of_topic(ID, &[(1, deleted.clone()), (7, deleted)]));
        assert!(image.topic("t").is_none() && image.topic_by_id(ID).is_none());
    }

    #[test]
    fn a_topic_id_that_is_told_later_is_found_and_a_zero_id_takes_it_away() {
        // KAFKA-12835: as while a cluster is rolled up and down.
        let none = image().updated(of_topic(TopicId::ZERO, &[(0, partition(1, 4))]));
        assert!(none.topic_by_id(ID).is_none() && none.topic("t").is_some_and(|topic| topic.id.is_zero()));
        let again = none.updated(of_topic(ID, &[(0, partition(1, 4))]));
        assert_eq!(again.topic_by_id(ID).map(|topic| topic.partitions.len()), Some(2));
    }

    #[test]
    fn a_topic_that_was_made_anew_is_not_found_by_its_old_id() {
        let new = TopicId([2; 16]);
        let image = image().updated(of_topic(new, &[(0, partition(1, 0))]));
        assert!(image.topic_by_id(ID).is_none() && image.topic_by_id(new).is_some());
    }

    #[test]
    fn an_image_that_is_held_does_not_change() {
        let held = image();
        let next = held.clone().updated(of_topic(ID, &[(0, partition(2, 9))]));
        assert_eq!(held.partition("t", 0), Some(&partition(1, 4)));
        assert_eq!(next.partition("t", 0), Some(&partition(2, 9)));
    }
}
