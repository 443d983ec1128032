//! The leader epochs of a log and their file.
//!
//! The file is replaced when the epochs change, but not synced: a flush syncs it before the recovery point moves.
//! So a lost power may take back only epochs that no flushed record was written in, and records above the recovery
//! point bring theirs back when they are read again.
//!
//! The epoch of a new leader is not in the file before the first record of it is appended: a load would take it for
//! nothing, since it would begin at the log end. So a broker that becomes leader of thousands of partitions writes
//! nothing.

use std::io;
use std::sync::{Arc, RwLock};

use kernel::epochs::EpochHistory;
use wire::types::{LeaderEpoch, Offset};

use crate::disk::atomic::{Durability, write_new};
use crate::epoch_checkpoint::{format_epochs, write_epochs};
use crate::names::LEADER_EPOCH_CHECKPOINT;
use crate::segment::SegmentDir;
use crate::sync::{read, write};

/// The epochs as everybody may read them, whatever the writer of the log is doing.
pub(super) type SharedEpochs = Arc<RwLock<EpochHistory>>;

/// The epochs, and what their file says.
///
/// The file may hold more than is true: loading cuts epochs beyond the log end and leaves the file as it is, since
/// the next load cuts them again. So an idle log is not written to when a broker starts.
#[derive(Debug)]
pub(super) struct EpochFile {
    history: SharedEpochs,
    /// `None`: not what it should be, or unknown.
    on_disk: Option<EpochHistory>,
    /// Whether the file lacks an epoch that no record was appended in yet.
    behind: bool,
    /// Whether there is no file.
    absent: bool,
    unsynced: bool,
}

impl EpochFile {
    /// Epochs of a log whose file says `on_disk`.
    pub(super) fn loaded(history: EpochHistory, on_disk: Option<EpochHistory>) -> Self {
        let history = Arc::new(RwLock::new(history));
        Self { history, on_disk, behind: false, absent: false, unsynced: false }
    }

    /// No epochs, of a log that was just created.
    pub(super) fn new() -> Self {
        Self { absent: true, ..Self::loaded(EpochHistory::new(), None) }
    }

    /// The epochs, to be read by others; only this changes them.
    pub(super) fn shared(&self) -> SharedEpochs {
        self.history.clone()
    }

    /// Enters the epoch of a new leader at the log end. The file follows with the next change, at the latest before
    /// the first record is appended, see [`change`](Self::change).
    pub(super) fn enter(&mut self, epoch: LeaderEpoch, log_end: Offset) {
        self.behind |= write(&self.history).assign(epoch, log_end);
    }

    /// Makes a change; if it says that it changed something, or something waits, the file follows.
    pub(super) fn change(
        &mut self,
        dir: &SegmentDir,
        change: impl FnOnce(&mut EpochHistory) -> bool,
    ) -> io::Result<bool> {
        let changed = change(&mut write(&self.history));
        if changed || self.behind {
            self.write(dir)?;
        }
        Ok(changed)
    }

    /// Replaces the file, unless it says the same.
    pub(super) fn write(&mut self, dir: &SegmentDir) -> io::Result<()> {
        let history = read(&self.history).clone();
        if self.on_disk.as_ref() == Some(&history) {
            self.behind = false;
            return Ok(());
        }
        let path = dir.path.get().join(LEADER_EPOCH_CHECKPOINT);
        self.on_disk = None;
        self.unsynced = true;
        let disk = &**dir.files.disk();
        if std::mem::take(&mut self.absent) {
            write_new(disk, &path, &format_epochs(history.entries()))?;
        } else {
            write_epochs(disk, &path, history.entries(), Durability::Deferred)?;
        }
        self.on_disk = Some(history);
        self.behind = false;
        Ok(())
    }

    /// Notes that the file must be synced by the next flush: another process may have written it.
    pub(super) fn mark_unsynced(&mut self) {
        self.unsynced = true;
    }

    /// Whether the file waits for a sync; the caller does it next.
    pub(super) fn take_unsynced(&mut self) -> bool {
        std::mem::take(&mut self.unsynced)
    }
}
