//! Beginning a new segment.

use std::io;
use std::sync::Arc;

use wire::types::{Millis, Now, Offset};

use super::positions::LogEnd;
use super::{PartitionLog, Writer, new_jitter, segment_config};
use crate::dir_health::StorageError;
use crate::log_config::LogConfig;
use crate::names::{SegmentFile, SegmentFileName};
use crate::segment::{RollReason, Segment, new_base};
use crate::sync::write;

impl PartitionLog {
    /// Makes the active segment inactive and begins one for batches from the offset `first` to `last` (inclusive). What
    /// lies below is flushed in the background.
    pub(super) fn roll_to(
        &self,
        writer: &mut Writer,
        (first, last): (Offset, Offset),
        reason: RollReason,
        config: &LogConfig,
        now: Now,
    ) -> Result<(), StorageError> {
        let positions = self.positions();
        let base = new_base(positions.log_end, first, last);
        let Some(active) = self.active() else { return Ok(()) };
        tracing::debug!(partition = %self.partition, %base, reason = reason.as_str(), "new segment");
        if active.base() == base {
            // Nothing was appended to it, yet an index is full (KAFKA-6388).
            let segment = self.create_segment(base, config, now)?;
            self.replace_active(segment);
        } else {
            // A segment that outlived the one before it would begin the log too late. Mostly a flush has seen to it.
            self.guard("name the active segment of", active.sync_log_name())?;
            self.guard("close the active segment of", active.on_become_inactive())?;
            writer.producers.set_map_end(base);
            let taken = writer.snapshots.take(&self.dir, &writer.producers);
            self.guard_io("write a producer snapshot of", taken)?;
            let segment = self.create_segment(base, config, now)?;
            write(&self.segments).push(segment);
            self.request_flush(writer, base);
        }
        writer.jitter = new_jitter(config);
        writer.active_is_ready = true;
        self.publish(writer, positions, LogEnd { base, position: 0 });
        Ok(())
    }

    /// Creates an empty segment; files that stand in its place are removed.
    pub(super) fn create_segment(
        &self,
        base: Offset,
        config: &LogConfig,
        now: Now,
    ) -> Result<Arc<Segment>, StorageError> {
        for file in SegmentFile::ALL.into_iter().filter(|file| *file != SegmentFile::Snapshot) {
            let path = self.dir.path.get().join(SegmentFileName::new(base, file).to_string());
            let removed = match self.dir.files.disk().remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                other => other,
            };
            self.guard_io("create a segment of", removed)?;
        }
        let created = Segment::create(&self.dir, base, segment_config(config), Millis(now.wall_ms));
        Ok(Arc::new(self.guard("create a segment of", created)?))
    }

    fn replace_active(&self, segment: Arc<Segment>) {
        let mut segments = write(&self.segments);
        if let Some(last) = segments.last_mut() {
            *last = segment;
        }
    }

    /// Gives the indexes of the active segment their room back before the first append after a load or a cut.
    pub(super) fn ready_active(&self, writer: &mut Writer) -> Result<(), StorageError> {
        if writer.active_is_ready {
            return Ok(());
        }
        if let Some(active) = self.active() {
            active.resize_indexes();
        }
        writer.active_is_ready = true;
        Ok(())
    }
}
