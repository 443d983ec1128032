//! The offset checkpoints of the log directories: recovery points, log starts, high watermarks,
//! first dirty offsets.
//!
//! A file that would not change is not written, so that an idle broker does not touch its disks.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use wire::types::Offset;

use super::{LogDir, LogDirs};
use crate::checkpoints::{Offsets, write_offsets};
use crate::dir_health::StorageError;
use crate::names;
use crate::partition_log::PartitionLog;
use crate::sync::lock;

/// The offset checkpoint files that the logs of a directory fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checkpoint {
    RecoveryPoint,
    LogStart,
    HighWatermark,
    Cleaner,
}

impl Checkpoint {
    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::RecoveryPoint => names::RECOVERY_POINT_CHECKPOINT,
            Self::LogStart => names::LOG_START_CHECKPOINT,
            Self::HighWatermark => names::HIGH_WATERMARK_CHECKPOINT,
            Self::Cleaner => names::CLEANER_CHECKPOINT,
        }
    }

    /// What the file says of one log.
    fn offset_of(self, log: &PartitionLog) -> Option<Offset> {
        let positions = log.positions();
        match self {
            Self::RecoveryPoint => Some(positions.recovery_point),
            Self::HighWatermark => Some(positions.high_watermark),
            Self::Cleaner => log.first_dirty_offset(),
            Self::LogStart => {
                let first = log.first_segment_base();
                Some(positions.log_start).filter(|start| *start > first)
            }
        }
    }
}

/// The fingerprint of what a file holds, `None` if that is unknown; held locked while the file is written.
#[derive(Debug, Default)]
pub(super) struct Written {
    recovery_point: Mutex<Option<u64>>,
    log_start: Mutex<Option<u64>>,
    high_watermark: Mutex<Option<u64>>,
    cleaner: Mutex<Option<u64>>,
}

impl Written {
    fn of(&self, checkpoint: Checkpoint) -> &Mutex<Option<u64>> {
        match checkpoint {
            Checkpoint::RecoveryPoint => &self.recovery_point,
            Checkpoint::LogStart => &self.log_start,
            Checkpoint::HighWatermark => &self.high_watermark,
            Checkpoint::Cleaner => &self.cleaner,
        }
    }
}

impl LogDirs {
    /// Writes the recovery points of all logs; due every `log.flush.offset.checkpoint.interval.ms`.
    pub fn checkpoint_recovery_points(&self) {
        self.checkpoint_all(Checkpoint::RecoveryPoint);
    }

    /// Writes the log start offsets; due every `log.flush.start.offset.checkpoint.interval.ms`.
    pub fn checkpoint_log_starts(&self) {
        self.checkpoint_all(Checkpoint::LogStart);
    }

    /// Writes the high watermarks; due every `replica.high.watermark.checkpoint.interval.ms`.
    pub fn checkpoint_high_watermarks(&self) {
        self.checkpoint_all(Checkpoint::HighWatermark);
    }

    fn checkpoint_all(&self, checkpoint: Checkpoint) {
        for dir in self.online_dirs() {
            // The error is kept by the health of the directory, which has logged it.
            drop(self.checkpoint(&dir, checkpoint));
        }
    }

    /// Writes one file of one directory. The offsets are read under the lock of the file, so that an older
    /// state never replaces a newer one.
    pub(super) fn checkpoint(&self, dir: &LogDir, checkpoint: Checkpoint) -> Result<(), StorageError> {
        dir.health.check()?;
        let mut written = lock(dir.written.of(checkpoint));
        let mut offsets = Offsets::new();
        for log in self.logs_of(dir) {
            if let Some(offset) = checkpoint.offset_of(&log) {
                offsets.insert(log.partition().clone(), offset);
            }
        }
        let mut hasher = DefaultHasher::new();
        offsets.hash(&mut hasher);
        let fingerprint = hasher.finish();
        if *written == Some(fingerprint) {
            return Ok(());
        }
        *written = None;
        let path = dir.path().join(checkpoint.file_name());
        let result = write_offsets(&*self.disk, &path, &offsets);
        dir.health.guard(&format!("write {}", checkpoint.file_name()), result)?;
        *written = Some(fingerprint);
        Ok(())
    }
}
