//! UpdateMetadata: the picture of the cluster that clients are shown, and that leaders judge their followers by.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::metadata_image::MetadataUpdate;
use kernel::replica::control::LEADER_DURING_DELETE;
use wire::types::TopicPartition;

use crate::broker::Broker;
use crate::drive::{groups, image_waits};

/// Obeys a request that the fence has let pass.
pub(crate) fn obey(broker: &Arc<Broker>, update: MetadataUpdate) {
    let deleted = deleted_by(&update);
    let before = broker.image();
    broker.update_image(|image| image.updated(update));
    let after = broker.image();
    if before.brokers().keys().ne(after.brokers().keys()) {
        for partition in broker.partitions().all() {
            partition.live_brokers_changed(broker);
        }
    }
    groups::image_changed(broker, &before, &after);
    groups::partitions_deleted(broker, deleted);
    image_waits::recheck(broker);
}

fn deleted_by(update: &MetadataUpdate) -> BTreeSet<TopicPartition> {
    let topics = update.topics.iter();
    let deleted = topics.flat_map(|topic| {
        let gone = topic.partitions.iter().filter(|(_, it)| it.leader == LEADER_DURING_DELETE);
        gone.map(|(index, _)| TopicPartition::new(topic.name.clone(), *index))
    });
    deleted.collect()
}
