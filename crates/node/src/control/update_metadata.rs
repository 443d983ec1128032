//! UpdateMetadata: the picture of the cluster that clients are shown, and that leaders judge their followers by.

use std::sync::Arc;

use kernel::metadata_image::MetadataUpdate;

use crate::broker::Broker;
use crate::drive::image_waits;

/// Obeys a request that the fence has let pass.
pub(crate) fn obey(broker: &Arc<Broker>, update: MetadataUpdate) {
    let before = broker.image();
    broker.update_image(|image| image.updated(update));
    let after = broker.image();
    if before.brokers().keys().ne(after.brokers().keys()) {
        for partition in broker.partitions().all() {
            partition.live_brokers_changed(broker);
        }
    }
    image_waits::recheck(broker);
}
