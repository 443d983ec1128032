//! Forgetting producers that have been silent for long (KIP-854).

use wire::types::{Millis, Now};

use super::PartitionLog;
use crate::sync::lock;

impl PartitionLog {
    /// Drops the producers that wrote nothing for `expiration` (`producer.id.expiration.ms`) and have no open
    /// transaction; returns how many.
    pub fn expire_producers(&self, now: Now, expiration: Millis) -> usize {
        lock(&self.writer).producers.expire(now.wall_ms, expiration)
    }

    /// How many producers are known.
    pub fn producer_count(&self) -> usize {
        lock(&self.writer).producers.len()
    }
}
