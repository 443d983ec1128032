//! Repeated batches that a snapshot does not keep.
//!
//! A snapshot holds the last batch of each producer only, so after a start or a cut a producer that sends five batches
//! again, because the answers to all of them were lost, would be told that the first four are out of order (a real
//! Kafka does; its producers then begin a new epoch and write them twice). The batches are in the log: the first time
//! that one may have been forgotten the end of what was not seen is read, once for each load of the log.

use kernel::producer::{AppendOrigin, ProducerBatch};
use wire::types::Offset;

use super::state::producer_batch;
use super::{PartitionLog, Writer};
use crate::dir_health::StorageError;
use crate::segment::SegmentError;
use crate::sync::read;

/// How much is read at the most, in bytes: what producers have under way is at the end.
pub(super) const LOOK_BACK_BYTES: u64 = 16 << 20;

impl PartitionLog {
    /// Finds batches of producers again if a client's `batch` may repeat one of them.
    pub(super) fn recall_if_forgotten(
        &self,
        writer: &mut Writer,
        batch: &ProducerBatch,
        origin: AppendOrigin,
    ) -> Result<(), StorageError> {
        let log_start = self.positions().log_start;
        let is_whole = writer.producers.seen_from() <= log_start;
        if is_whole || origin != AppendOrigin::Client || !writer.producers.may_have_forgotten(batch) {
            return Ok(());
        }
        let before = writer.producers.seen_from();
        let found = self.guard("read the producers of", self.batches_before(before))?;
        tracing::debug!(partition = %self.partition, batches = found.len(), "batches before the snapshot were read again");
        writer.producers.recall(found.into_iter().rev(), log_start);
        Ok(())
    }

    /// The batches of producers before `end` (exclusive), oldest first, as far as [`LOOK_BACK_BYTES`] reach.
    fn batches_before(&self, end: Offset) -> Result<Vec<ProducerBatch>, SegmentError> {
        let segments = read(&self.segments).clone();
        let (mut scans, mut left) = (Vec::new(), LOOK_BACK_BYTES);
        for segment in segments.iter().rev().filter(|segment| segment.base() < end) {
            let scan = segment.scan_before(end, left)?;
            left = left.saturating_sub(scan.end().saturating_sub(scan.position()));
            scans.push((segment, scan));
            if left == 0 {
                break;
            }
        }
        let mut found = Vec::new();
        for (segment, mut scan) in scans.into_iter().rev() {
            while let Some(batch) = segment.next_good(&mut scan)? {
                // Markers have no sequences.
                found.extend(producer_batch(&batch.header, None));
            }
        }
        Ok(found)
    }
}
