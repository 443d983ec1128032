//! What changes when records are in the log or the high watermark moves: producers, epochs, the published
//! offsets. All under the writer lock.

use kernel::producer::{
    BatchContent, CompletedTxn, EndMarker, PendingUpdates, ProducerBatch, ProducerStates,
};
use wire::batch::BatchHeader;
use wire::batch::control::{EndTxnMarker, MarkerType};
use wire::types::{LeaderEpoch, Offset, TopicId};

use super::positions::LogEnd;
use super::{LogError, PartitionLog, Positions, Writer};
use crate::dir_health::StorageError;
use crate::segment::{Segment, SegmentError};
use crate::sync::{lock, read};
use crate::txn_index::AbortedTxn;

/// A batch as the rules of producers see it; `None` if it names no producer.
pub(super) fn producer_batch(header: &BatchHeader, marker: Option<EndTxnMarker>) -> Option<ProducerBatch> {
    if !header.has_producer_id() {
        return None;
    }
    let content = match (header.is_control(), marker) {
        (false, _) => BatchContent::Data { transactional: header.is_transactional() },
        (true, None) => BatchContent::OtherControl,
        (true, Some(marker)) => BatchContent::Marker(EndMarker {
            aborted: marker.marker_type == MarkerType::Abort,
            coordinator_epoch: marker.coordinator_epoch,
            timestamp: header.max_timestamp.0,
        }),
    };
    Some(ProducerBatch {
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        last_sequence: header.last_sequence(),
        base_offset: header.base_offset,
        last_offset: header.last_offset(),
        max_timestamp: header.max_timestamp.0,
        content,
    })
}

/// Takes over updates of producers, and notes each aborted transaction in the index of the segment that holds
/// its marker before it counts as closed.
pub(super) fn apply_updates(
    producers: &mut ProducerStates,
    updates: PendingUpdates,
    segment: &Segment,
) -> Result<(), SegmentError> {
    for completed in producers.apply(updates) {
        if completed.aborted {
            segment.append_aborted(&aborted_txn(producers, &completed))?;
        }
        producers.complete(&completed);
    }
    Ok(())
}

fn aborted_txn(producers: &ProducerStates, completed: &CompletedTxn) -> AbortedTxn {
    AbortedTxn {
        producer_id: completed.producer_id,
        first_offset: completed.first_offset,
        last_offset: completed.last_offset,
        last_stable_offset: producers.last_stable_offset_after(completed),
    }
}

impl PartitionLog {
    /// The records up to `log_end` are written: the log end moves even if what follows fails (KAFKA-7866).
    pub(super) fn records_written(
        &self,
        writer: &mut Writer,
        updates: PendingUpdates,
        log_end: Offset,
    ) -> Result<(), StorageError> {
        let Some(active) = self.active() else { return Ok(()) };
        let applied = apply_updates(&mut writer.producers, updates, &active);
        writer.producers.set_map_end(log_end);
        let positions = Positions { log_end, ..self.positions() };
        self.publish(writer, positions, LogEnd { base: active.base(), position: active.size() });
        self.guard("note aborted transactions of", applied)
    }

    /// Publishes new offsets with the last stable offset that follows from them.
    pub(super) fn publish(&self, writer: &Writer, positions: Positions, end: LogEnd) {
        let unstable = writer.producers.first_unstable_offset();
        self.published.set(positions.with_first_unstable(unstable), end);
    }

    /// Moves the high watermark forward to `offset`, at most to the log end; returns whether it moved.
    pub fn advance_high_watermark(&self, offset: Offset) -> bool {
        if offset <= self.positions().high_watermark {
            return false;
        }
        let mut writer = lock(&self.writer);
        let positions = self.positions();
        let target = offset.min(positions.log_end);
        if target <= positions.high_watermark {
            return false;
        }
        self.move_high_watermark(&mut writer, positions, target);
        true
    }

    /// Sets the high watermark that a follower learned from its leader, kept within log start and log end. It
    /// may go back.
    pub fn set_high_watermark(&self, offset: Offset) -> Positions {
        let mut writer = lock(&self.writer);
        let positions = self.positions();
        let target = offset.clamp(positions.log_start, positions.log_end);
        self.move_high_watermark(&mut writer, positions, target);
        self.positions()
    }

    fn move_high_watermark(&self, writer: &mut Writer, positions: Positions, target: Offset) {
        writer.producers.on_high_watermark(target);
        let (_, end) = self.published.view();
        self.publish(writer, Positions { high_watermark: target, ..positions }, end);
    }

    /// Opens the epoch of a new leader at the log end, in memory and in its file; to be done before anything is appended
    /// in it (KAFKA-7415). Returns the start of the epoch.
    pub fn become_leader(&self, epoch: LeaderEpoch) -> Result<Offset, LogError> {
        if epoch.0 < 0 {
            return Err(LogError::BadEpoch { given: epoch });
        }
        self.check()?;
        let mut writer = lock(&self.writer);
        if writer.closed {
            return Err(LogError::Closed);
        }
        let start = self.positions().log_end;
        let entered = writer.epochs.change(&self.dir, |history| history.assign(epoch, start));
        self.guard_io("write the leader epochs of", entered)?;
        Ok(start)
    }

    /// Where a leader epoch ends: the largest known epoch at or below it and its end (exclusive), both -1 if
    /// that is undefined. Waits for no append: a leader is asked by its followers with every fetch.
    pub fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> (LeaderEpoch, Offset) {
        // An epoch is entered before its first record, so this end never reaches into an epoch that is not seen yet.
        let log_end = self.positions().log_end;
        let end = read(&self.epochs).end_offset_for(epoch, log_end);
        (end.epoch, end.end)
    }

    /// The latest leader epoch of the log; -1 if none is known.
    pub fn latest_epoch(&self) -> LeaderEpoch {
        read(&self.epochs).latest().map_or(LeaderEpoch::UNKNOWN, |entry| entry.epoch)
    }

    /// The leader epoch of the first offset; -1 if the epochs do not reach that far back.
    pub fn earliest_epoch(&self) -> LeaderEpoch {
        let log_start = self.positions().log_start;
        let earliest = read(&self.epochs).earliest();
        earliest.filter(|entry| entry.start <= log_start).map_or(LeaderEpoch::UNKNOWN, |entry| entry.epoch)
    }

    /// The id of the topic, if it is known.
    pub fn topic_id(&self) -> Option<TopicId> {
        lock(&self.writer).topic_id.get()
    }
}
