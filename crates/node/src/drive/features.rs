//! The cluster's features, as `/feature` has them: their version is told to clients as the epoch (KIP-584).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use metadata::store::{Request, Response};
use metadata::znode::feature;

use super::pipeline::one;
use crate::broker::Broker;

/// The epoch of no features at all.
const NONE: i64 = -1;

/// The version of the znode as last read.
#[derive(Debug)]
pub(crate) struct FeaturesCache(AtomicI64);

impl Default for FeaturesCache {
    fn default() -> Self {
        Self(AtomicI64::new(NONE))
    }
}

impl FeaturesCache {
    /// The version of the features node, -1 if there is none.
    pub(crate) fn epoch(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A watched znode changed.
pub(super) fn node_changed(broker: &Arc<Broker>, path: &str) {
    if path == feature::PATH {
        read(broker);
    }
}

/// Reads the version, and watches for the next one; the watch stands when there is no znode yet.
pub(super) fn read(broker: &Arc<Broker>) {
    let then = broker.clone();
    one(broker.store(), Request::exists(feature::PATH).watched(), move |answer| match answer {
        Ok(Response::Exists(stat)) => {
            let epoch = stat.map_or(NONE, |stat| i64::from(stat.version));
            then.features().0.store(epoch, Ordering::Relaxed);
        }
        Ok(_) => {}
        // The next session reads again.
        Err(error) => tracing::warn!(%error, "the features cannot be read"),
    });
}
