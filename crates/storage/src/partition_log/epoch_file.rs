//! The leader epochs of a log and their file.
//!
//! The file is replaced at once when the epochs change, but not synced: a flush syncs it before the recovery
//! point moves. So a lost power may take back only epochs that no flushed record was written in, and records
//! above the recovery point bring theirs back when they are read again.

use std::io;

use kernel::epochs::EpochHistory;

use crate::disk::atomic::{Durability, sync_written};
use crate::epoch_checkpoint::write_epochs;
use crate::names::LEADER_EPOCH_CHECKPOINT;
use crate::segment::SegmentDir;

/// Epochs that are on disk as they are here.
#[derive(Debug)]
pub(super) struct EpochFile {
    history: EpochHistory,
    unsynced: bool,
}

impl EpochFile {
    /// Epochs as the file has them.
    pub(super) fn loaded(history: EpochHistory) -> Self {
        Self { history, unsynced: false }
    }

    pub(super) fn history(&self) -> &EpochHistory {
        &self.history
    }

    /// Makes a change; if it says that it changed something, the file is replaced.
    pub(super) fn change(
        &mut self,
        dir: &SegmentDir,
        change: impl FnOnce(&mut EpochHistory) -> bool,
    ) -> io::Result<bool> {
        let changed = change(&mut self.history);
        if changed {
            self.write(dir)?;
        }
        Ok(changed)
    }

    /// Replaces the file.
    pub(super) fn write(&mut self, dir: &SegmentDir) -> io::Result<()> {
        let path = dir.path.get().join(LEADER_EPOCH_CHECKPOINT);
        self.unsynced = true;
        write_epochs(&**dir.files.disk(), &path, self.history.entries(), Durability::Deferred)
    }

    /// Notes that the file must be synced by the next flush, if it must.
    pub(super) fn mark_unsynced(&mut self, unsynced: bool) {
        self.unsynced = unsynced;
    }

    /// Whether the file waits for a sync; the caller does it next, with [`sync`].
    pub(super) fn take_unsynced(&mut self) -> bool {
        std::mem::take(&mut self.unsynced)
    }
}

/// Makes the file durable.
pub(super) fn sync(dir: &SegmentDir) -> io::Result<()> {
    sync_written(&**dir.files.disk(), &dir.path.get().join(LEADER_EPOCH_CHECKPOINT))
}
