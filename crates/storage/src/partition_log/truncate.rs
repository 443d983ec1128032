//! Cutting the log: at its end when a follower diverged from its leader, wholly when it starts anew, and at its
//! start when records are deleted.
//!
//! Order of a cut: segments, epochs, producers, then the published offsets, so that no offset ever points
//! beyond what is there and the last stable offset never comes from producers of records that are gone
//! (KAFKA-12153).

use std::sync::Arc;

use wire::types::{Millis, Now, Offset};

use super::background::{Removal, Removed};
use super::load::producers::rebuild;
use super::positions::LogEnd;
use super::{LogError, PartitionLog, Positions, Writer};
use crate::dir_health::StorageError;
use crate::names::Transient;
use crate::segment::Segment;
use crate::sync::{lock, read, write};

impl PartitionLog {
    /// Removes everything at or above `offset`, whole batches only; the log ends at `offset` afterwards. Returns
    /// whether records could go: at or above the log end only a leader epoch that starts there goes
    /// (KAFKA-10706). Producers silent for `producer_expiration` are forgotten.
    ///
    /// The caller writes the recovery-point checkpoint before it appends again.
    pub fn truncate_to(
        &self,
        offset: Offset,
        now: Now,
        producer_expiration: Millis,
    ) -> Result<bool, LogError> {
        if offset.0 < 0 {
            return Err(LogError::NegativeOffset(offset));
        }
        let _whole = lock(&self.replacing);
        let mut writer = self.writer_to_cut()?;
        let positions = self.positions();
        if offset >= positions.log_end {
            let changed =
                writer.epochs.change(&self.dir, |history| history.truncate_from_end(positions.log_end));
            self.guard_io("write the leader epochs of", changed)?;
            return Ok(false);
        }
        if offset < self.first_segment_base() {
            self.start_at(&mut writer, offset, now)?;
            return Ok(true);
        }
        writer.truncations += 1;
        self.cut_segments(&mut writer, offset, now)?;
        self.lower_first_dirty(self.active().map_or(offset, |active| active.base()));
        let changed = writer.epochs.change(&self.dir, |history| history.truncate_from_end(offset));
        self.guard_io("write the leader epochs of", changed)?;
        let log_start = positions.log_start.min(offset);
        self.cut_producers(&mut writer, log_start, offset, now, producer_expiration)?;
        let cut = Positions {
            log_start,
            last_stable: offset,
            high_watermark: positions.high_watermark.min(offset),
            log_end: offset,
            recovery_point: positions.recovery_point.min(offset),
        };
        self.publish_end(&writer, cut);
        Ok(true)
    }

    /// Removes all records; the log starts and ends at `offset`, which may lie anywhere.
    ///
    /// The caller writes the recovery-point checkpoint before it appends again.
    pub fn truncate_fully_and_start_at(&self, offset: Offset, now: Now) -> Result<(), LogError> {
        if offset.0 < 0 {
            return Err(LogError::NegativeOffset(offset));
        }
        let _whole = lock(&self.replacing);
        let mut writer = self.writer_to_cut()?;
        Ok(self.start_at(&mut writer, offset, now)?)
    }

    /// Raises the log start to `offset` (DeleteRecords, or what a leader tells its follower); returns whether it
    /// moved. No file is removed; retention does that.
    pub fn increment_log_start(&self, offset: Offset) -> Result<bool, LogError> {
        let mut writer = self.writer_to_cut()?;
        let positions = self.positions();
        if offset > positions.high_watermark {
            let high_watermark = positions.high_watermark;
            return Err(LogError::AboveHighWatermark { given: offset, high_watermark });
        }
        if offset <= positions.log_start {
            return Ok(false);
        }
        self.raise_log_start(&mut writer, positions, offset)?;
        Ok(true)
    }

    pub(super) fn writer_to_cut(&self) -> Result<std::sync::MutexGuard<'_, Writer>, LogError> {
        self.check()?;
        let writer = lock(&self.writer);
        if writer.closed { Err(LogError::Closed) } else { Ok(writer) }
    }

    pub(super) fn raise_log_start(
        &self,
        writer: &mut Writer,
        positions: Positions,
        log_start: Offset,
    ) -> Result<(), StorageError> {
        writer.producers.on_log_start(log_start);
        let (_, end) = self.published.view();
        self.publish(writer, Positions { log_start, ..positions }, end);
        let changed = writer.epochs.change(&self.dir, |history| history.truncate_from_start(log_start));
        self.guard_io("write the leader epochs of", changed)?;
        Ok(())
    }

    /// Drops the segments above `offset` and cuts the one that holds it, which becomes active.
    fn cut_segments(&self, writer: &mut Writer, offset: Offset, now: Now) -> Result<(), StorageError> {
        let removed = {
            let mut segments = write(&self.segments);
            let kept = segments.partition_point(|segment| segment.base() <= offset).max(1);
            let kept = kept.min(segments.len());
            segments.split_off(kept)
        };
        let names_changed = !removed.is_empty();
        self.remove_segments(writer, removed, now)?;
        // What is cut must be gone for good before other records take its place: with the power lost in between, good
        // batches of before the cut would stand below good ones of after it, and no epoch would tell (L6).
        if let Some(active) = self.active() {
            self.guard("truncate", active.truncate_to(offset, Millis(now.wall_ms)))?;
            self.guard("flush", active.flush())?;
        }
        if names_changed {
            self.sync_names()?;
        }
        writer.active_is_ready = true;
        Ok(())
    }

    fn cut_producers(
        &self,
        writer: &mut Writer,
        log_start: Offset,
        end: Offset,
        now: Now,
        expiration: Millis,
    ) -> Result<(), StorageError> {
        let segments = read(&self.segments).clone();
        let removed = writer.snapshots.remove_where(&self.dir, |at| at > end || at <= log_start);
        self.guard_io("remove producer snapshots of", removed)?;
        let rebuilt = rebuild(&self.dir, &mut writer.snapshots, &segments, log_start..end, now, expiration);
        writer.producers = self.guard("read the producers of", rebuilt)?;
        writer.producers.on_high_watermark(self.positions().high_watermark.min(end));
        Ok(())
    }

    fn start_at(&self, writer: &mut Writer, offset: Offset, now: Now) -> Result<(), StorageError> {
        writer.truncations += 1;
        let config = self.config();
        // The old segments are renamed first: the new one may need a name of theirs.
        let old = read(&self.segments).clone();
        for segment in &old {
            self.guard("truncate", segment.rename_files(Some(Transient::Deleted)))?;
        }
        let segment = self.create_segment(offset, &config, now)?;
        // There is an active segment at every moment (KAFKA-12875).
        *write(&self.segments) = vec![segment];
        self.lower_first_dirty(offset);
        self.sync_names()?;
        self.schedule_removal(old, now);
        let removed = writer.snapshots.remove_where(&self.dir, |_| true);
        self.guard_io("remove producer snapshots of", removed)?;
        let changed = writer.epochs.change(&self.dir, kernel::epochs::EpochHistory::clear);
        self.guard_io("write the leader epochs of", changed)?;
        writer.producers = kernel::producer::ProducerStates::new(offset);
        writer.active_is_ready = true;
        let recovery_point = self.positions().recovery_point.min(offset);
        let positions = Positions {
            log_start: offset,
            last_stable: offset,
            high_watermark: offset,
            log_end: offset,
            recovery_point,
        };
        self.publish_end(writer, positions);
        Ok(())
    }

    /// Makes the names of files durable.
    pub(super) fn sync_names(&self) -> Result<(), StorageError> {
        let synced = self.dir.files.disk().sync_dir(&self.dir.path.get());
        self.guard_io("sync the directory of", synced)
    }

    fn publish_end(&self, writer: &Writer, positions: Positions) {
        let end = self.active().map(|active| LogEnd { base: active.base(), position: active.size() });
        self.publish(writer, positions, end.unwrap_or(LogEnd { base: positions.log_end, position: 0 }));
    }

    /// Marks the files of segments that are no longer part of the log as deleted, and has them removed later.
    /// The snapshots at their base offsets go at once.
    pub(super) fn remove_segments(
        &self,
        writer: &mut Writer,
        segments: Vec<Arc<Segment>>,
        now: Now,
    ) -> Result<(), StorageError> {
        for segment in &segments {
            self.guard("remove a segment of", segment.rename_files(Some(Transient::Deleted)))?;
            let removed = writer.snapshots.remove(&self.dir, segment.base());
            self.guard_io("remove producer snapshots of", removed)?;
        }
        self.schedule_removal(segments, now);
        Ok(())
    }

    pub(super) fn schedule_removal(&self, segments: Vec<Arc<Segment>>, now: Now) {
        if segments.is_empty() {
            return;
        }
        let health = self.context.health.clone();
        let removal = Removal { health, what: Removed::Segments(segments) };
        self.context.background.remove(removal, now, self.config().file_delete_delay_ms);
    }
}
