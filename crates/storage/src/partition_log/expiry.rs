//! The producers of a log, for those who look, and the forgetting of those that have been silent for long (KIP-854).

use std::sync::atomic::Ordering;

use kernel::producer::ProducerEntry;
use wire::types::{Millis, Now};

use super::PartitionLog;
use crate::sync::{lock, try_lock};

impl PartitionLog {
    /// Drops the producers that wrote nothing for `expiration` (`producer.id.expiration.ms`) and have no open
    /// transaction; returns how many.
    pub fn expire_producers(&self, now: Now, expiration: Millis) -> usize {
        lock(&self.writer).producers.expire(now.wall_ms, expiration)
    }

    /// Every producer that is known, by rising id. Waits until nobody writes to the log.
    pub fn producers(&self) -> Vec<ProducerEntry> {
        lock(&self.writer).producers.entries().copied().collect()
    }

    /// How many producers are known, or were when nobody was writing last: who counts does not wait for the disk.
    pub fn producer_count(&self) -> usize {
        let Some(writer) = try_lock(&self.writer) else {
            return self.producers_counted.load(Ordering::Relaxed);
        };
        let count = writer.producers.len();
        self.producers_counted.store(count, Ordering::Relaxed);
        count
    }
}
