//! Making the log durable. Nothing is synced under the writer lock.
//!
//! Order: small files (epochs, snapshots, topic id), segments from the recovery point on, names; then the
//! recovery point moves. It does not move if the log was cut meanwhile, since other records may have taken the
//! place of those that were synced.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use wire::types::{Millis, Now, Offset};

use super::append::Outcomes;
use super::load::producers::take_at_end;
use super::{AppendError, LogError, PartitionLog, Positions, Writer, snapshots, topic_id};
use crate::dir_health::StorageError;
use crate::disk::OpenOptions;
use crate::log_config::LogConfig;
use crate::names::LEADER_EPOCH_CHECKPOINT;
use crate::segment::{Segment, SegmentError};
use crate::sync::{lock, read};

/// What one flush has to sync.
pub(super) struct Plan {
    target: Offset,
    segments: Vec<Arc<Segment>>,
    /// Its name is made durable too, so that the roll away from it need not wait for that.
    active: Option<Arc<Segment>>,
    epochs: bool,
    topic_id: bool,
    snapshots: BTreeSet<Offset>,
    dir_name: bool,
    truncations: u64,
}

impl PartitionLog {
    /// Makes everything that was appended so far durable.
    pub fn flush(&self) -> Result<(), LogError> {
        Ok(self.flush_to(self.positions().log_end)?)
    }

    /// Asks for a flush in the background of what lies below `target`.
    pub(super) fn request_flush(&self, writer: &mut Writer, target: Offset) {
        let asked = writer.flush_target.is_some();
        writer.flush_target = Some(writer.flush_target.unwrap_or(target).max(target));
        if !asked {
            self.context.background.flush(self.this.clone());
        }
    }

    /// Does the flush that was asked for.
    pub(super) fn flush_pending(&self) -> Result<(), StorageError> {
        let target = lock(&self.writer).flush_target.take();
        target.map_or(Ok(()), |target| self.flush_to(target))
    }

    /// Asks for a flush if the oldest unflushed record is older than `flush.ms`.
    pub fn request_flush_if_due(&self, now: Now) {
        let flush_ms = self.config().flush_ms.0;
        let mut writer = lock(&self.writer);
        let due = |since: Millis| now.mono_ms.saturating_sub(since.0) >= flush_ms;
        if !writer.closed && writer.unflushed_since.is_some_and(due) {
            let target = self.positions().log_end;
            self.request_flush(&mut writer, target);
        }
    }

    /// Flushes before the answers go out if `flush.messages` are reached; if that fails, nothing is confirmed.
    pub(super) fn flush_if_due(&self, config: &LogConfig, outcomes: &mut Outcomes) {
        let positions = self.positions();
        if positions.log_end.0.saturating_sub(positions.recovery_point.0) < config.flush_messages {
            return;
        }
        if let Err(error) = self.flush_to(positions.log_end) {
            for outcome in outcomes.iter_mut().filter(|outcome| matches!(outcome, Some(Ok(_)))) {
                *outcome = Some(Err(AppendError::Storage(error.clone())));
            }
        }
    }

    /// Makes what lies below `target` durable, and moves the recovery point there.
    pub(crate) fn flush_to(&self, target: Offset) -> Result<(), StorageError> {
        let _one = lock(&self.flushing);
        self.check()?;
        let plan = {
            let mut writer = lock(&self.writer);
            if writer.closed || target <= self.positions().recovery_point {
                return Ok(());
            }
            self.plan_flush(&mut writer, target)
        };
        self.carry_out(&plan)
    }

    pub(super) fn plan_flush(&self, writer: &mut Writer, target: Offset) -> Plan {
        let recovery_point = self.positions().recovery_point;
        let all = read(&self.segments);
        // If all is flushed already, as when an idle log is closed, only small files may wait.
        let pending = target > recovery_point;
        // From the segment that holds the recovery point on.
        let first = all.partition_point(|segment| segment.base() <= recovery_point).saturating_sub(1);
        let segments =
            all.iter().skip(first).filter(|segment| pending && segment.base() < target).cloned().collect();
        let active = all.last().filter(|_| pending).cloned();
        drop(all);
        Plan {
            target,
            segments,
            active,
            epochs: writer.epochs.take_unsynced(),
            topic_id: writer.topic_id.take_unsynced(),
            snapshots: writer.snapshots.take_unsynced(),
            dir_name: pending && std::mem::take(&mut writer.dir_name_unsynced),
            truncations: writer.truncations,
        }
    }

    pub(super) fn carry_out(&self, plan: &Plan) -> Result<(), StorageError> {
        self.guard_io("flush", self.sync_small_files(plan))?;
        for segment in &plan.segments {
            match segment.flush() {
                // Retention removed it, and its files are gone already (KAFKA-15391).
                Err(error) if is_absent(&error) && !self.has_segment(segment) => {}
                result => self.guard("flush", result)?,
            }
        }
        if let Some(active) = plan.active.as_ref().filter(|active| self.has_segment(active)) {
            self.guard("flush", active.sync_log_name())?;
        }
        let mut writer = lock(&self.writer);
        if writer.truncations == plan.truncations {
            let mut positions = self.positions();
            let flushed = plan.target.min(positions.log_end);
            positions.recovery_point = positions.recovery_point.max(flushed);
            if positions.recovery_point == positions.log_end {
                writer.unflushed_since = None;
            }
            let (_, end) = self.published.view();
            self.publish(&writer, positions, end);
        }
        Ok(())
    }

    fn sync_small_files(&self, plan: &Plan) -> io::Result<()> {
        let disk = &**self.dir.files.disk();
        let dir = self.dir.path.get();
        let mut files = Vec::new();
        if plan.epochs {
            files.push(dir.join(LEADER_EPOCH_CHECKPOINT));
        }
        if plan.topic_id {
            files.push(topic_id::path(&self.dir));
        }
        files.extend(plan.snapshots.iter().map(|offset| snapshots::path(&self.dir, *offset)));
        for path in &files {
            match disk.open(path, OpenOptions::WRITE).and_then(|file| file.sync_all()) {
                // There is none, or it was removed with its segment meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => result?,
            }
        }
        if !files.is_empty() {
            disk.sync_dir(&dir)?;
        }
        match dir.parent() {
            Some(parent) if plan.dir_name => disk.sync_dir(parent),
            _ => Ok(()),
        }
    }

    fn has_segment(&self, segment: &Arc<Segment>) -> bool {
        read(&self.segments).iter().any(|other| Arc::ptr_eq(other, segment))
    }

    /// Closes the log: takes a producer snapshot at the log end, cuts files to their length, and makes all of
    /// it durable. Nothing can be appended afterwards; reading goes on. Closing twice is no error.
    pub fn close(&self) -> Result<(), LogError> {
        let _one = lock(&self.flushing);
        let _whole = lock(&self.replacing);
        self.check()?;
        let mut writer = lock(&self.writer);
        if std::mem::replace(&mut writer.closed, true) {
            return Ok(());
        }
        if let Some(active) = self.active() {
            self.guard("close", active.close())?;
        }
        let Positions { log_start, log_end, .. } = self.positions();
        let Writer { snapshots, producers, .. } = &mut *writer;
        let taken = take_at_end(&self.dir, snapshots, producers, log_start..log_end);
        self.guard_io("write a producer snapshot of", taken)?;
        let plan = self.plan_flush(&mut writer, self.positions().log_end);
        drop(writer);
        Ok(self.carry_out(&plan)?)
    }
}

pub(super) fn is_absent(error: &SegmentError) -> bool {
    matches!(error, SegmentError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
}
