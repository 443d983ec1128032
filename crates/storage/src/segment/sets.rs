//! The last few appended sets, so that readers at the end of the log find their place without a read.

use std::sync::Mutex;

use wire::batch::BatchPrefix;
use wire::types::Offset;

use super::{AppendSet, BatchPosition};
use crate::sync::lock;

/// How many sets are remembered.
const SETS: usize = 16;

/// A batch that was appended alone.
#[derive(Clone, Copy, Debug)]
struct RecentBatch {
    first_offset: Offset,
    last_offset: Offset,
    place: BatchPosition,
}

/// A ring of the last sets of one batch. Sets of several batches (as followers append them) are left out:
/// they are found by the index.
#[derive(Debug, Default)]
pub(super) struct RecentSets(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    batches: Vec<RecentBatch>,
    next: usize,
}

impl RecentSets {
    /// Remembers a set of `length` bytes at `position`; the oldest is forgotten.
    pub(super) fn push(&self, set: &AppendSet<'_>, position: u64, length: u64) {
        let first = set.slices.first().and_then(|bytes| BatchPrefix::parse(bytes).ok());
        let Some(size) = first.map(|prefix| prefix.size_in_bytes()).filter(|size| *size as u64 == length)
        else {
            return;
        };
        let batch = RecentBatch {
            first_offset: set.first_offset,
            last_offset: set.last_offset,
            place: BatchPosition { position, size },
        };
        let mut ring = lock(&self.0);
        let next = ring.next;
        match ring.batches.get_mut(next) {
            Some(slot) => *slot = batch,
            None => ring.batches.push(batch),
        }
        ring.next = (next + 1) % SETS;
    }

    /// The place of the batch that holds `offset`, if it is one of the last.
    pub(super) fn find(&self, offset: Offset) -> Option<BatchPosition> {
        let ring = lock(&self.0);
        let holds = |batch: &&RecentBatch| batch.first_offset <= offset && offset <= batch.last_offset;
        ring.batches.iter().find(holds).map(|batch| batch.place)
    }

    /// Forgets all, because the log was cut.
    pub(super) fn clear(&self) {
        *lock(&self.0) = Ring::default();
    }
}
