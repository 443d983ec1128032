//! Cutting a segment back, as a follower does that diverged from its leader.

use std::sync::atomic::Ordering;

use wire::types::{Millis, Offset};

use super::{FirstTimestamp, Segment, SegmentError};
use crate::sync::lock;

impl Segment {
    /// Removes every batch that holds an offset at or above `offset`, whole batches only, and the entries of
    /// the indexes. Returns the number of bytes removed. The segment is active afterwards.
    /// Not durable until it is flushed.
    pub fn truncate_to(&self, offset: Offset, now: Millis) -> Result<u64, SegmentError> {
        let first_removed = self.find_batch(offset)?;
        let old_size = self.size();
        let size = first_removed.map_or(old_size, |batch| batch.position);
        // Readers stop at the new size before anything goes away.
        self.size.store(size, Ordering::Release);
        self.recent.clear();
        self.offset_index.truncate_to(offset).map_err(|error| self.index(error))?;
        self.time_index.truncate_to(offset).map_err(|error| self.index(error))?;
        self.txn_index.truncate_to(offset).map_err(|error| self.txn(error))?;
        self.resize_indexes();
        if size < old_size {
            let file = self.log().handle().map_err(|error| self.io(error))?;
            file.set_len(size).map_err(|error| self.io(error))?;
            self.dirty.store(true, Ordering::Release);
        }
        {
            let mut state = lock(&self.state);
            state.bytes_since_index_entry = 0;
            if size == 0 {
                state.created = now;
                state.first_timestamp = FirstTimestamp::Known(None);
            }
        }
        self.reload_max_timestamp()?;
        Ok(old_size.saturating_sub(size))
    }
}
