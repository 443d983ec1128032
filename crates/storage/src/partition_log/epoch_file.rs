//! The leader epochs of a log and their file.
//!
//! The file follows every change at once, also that of a leader that has not written yet (KAFKA-7415), but is not synced:
//! a flush syncs it before the recovery point moves. So a lost power may take back only epochs that no flushed record
//! was written in, and records above the recovery point bring theirs back when they are read again.
//!
//! A broker that becomes leader of thousands of partitions writes as many files. So an epoch that begins at the log end is
//! written over the file in its place, which makes no name; every other change replaces the file.

use std::io;
use std::sync::{Arc, RwLock};

use kernel::epochs::{EpochEntry, EpochHistory};

use crate::disk::OpenOptions;
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
    /// Whether there is no file.
    absent: bool,
    unsynced: bool,
}

impl EpochFile {
    /// Epochs of a log whose file says `on_disk`.
    pub(super) fn loaded(history: EpochHistory, on_disk: Option<EpochHistory>) -> Self {
        let history = Arc::new(RwLock::new(history));
        Self { history, on_disk, absent: false, unsynced: false }
    }

    /// No epochs, of a log that was just created.
    pub(super) fn new() -> Self {
        Self { absent: true, ..Self::loaded(EpochHistory::new(), None) }
    }

    /// The epochs, to be read by others; only this changes them.
    pub(super) fn shared(&self) -> SharedEpochs {
        self.history.clone()
    }

    /// Makes a change; if it says that it changed something, the file follows.
    pub(super) fn change(
        &mut self,
        dir: &SegmentDir,
        change: impl FnOnce(&mut EpochHistory) -> bool,
    ) -> io::Result<bool> {
        let changed = change(&mut write(&self.history));
        if changed {
            self.write(dir)?;
        }
        Ok(changed)
    }

    /// Writes the file, unless it says the same.
    pub(super) fn write(&mut self, dir: &SegmentDir) -> io::Result<()> {
        let history = read(&self.history).clone();
        if self.on_disk.as_ref() == Some(&history) {
            return Ok(());
        }
        let path = dir.path.get().join(LEADER_EPOCH_CHECKPOINT);
        let before = self.on_disk.take();
        self.unsynced = true;
        let disk = &**dir.files.disk();
        let entries = history.entries();
        if std::mem::take(&mut self.absent) {
            write_new(disk, &path, &format_epochs(entries))?;
        } else if before.is_some_and(|before| fits_in_place(before.entries(), entries)) {
            disk.open(&path, OpenOptions::WRITE)?.write_at(&format_epochs(entries), 0)?;
        } else {
            write_epochs(disk, &path, entries, Durability::Deferred)?;
        }
        self.on_disk = Some(history);
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

/// Whether `new` may be written over a file that says `old`, in one write: what stands for records keeps its bytes, and
/// whatever of the write a lost power keeps is known by its shape, or differs only in an epoch that begins at the log end.
fn fits_in_place(old: &[EpochEntry], new: &[EpochEntry]) -> bool {
    let Some((last, before)) = new.split_last() else { return false };
    let digits = |number: &dyn std::fmt::Display| number.to_string().len();
    if old.is_empty() {
        // There may be no file.
        return false;
    }
    if before == old {
        // One line more. The count tells whether it is there, and must not push the other lines away.
        return digits(&old.len()) == digits(&new.len());
    }
    // An epoch in which nothing was written gives way to another one.
    old.split_last().is_some_and(|(empty, kept)| {
        kept == before && empty.start == last.start && digits(&empty.epoch) == digits(&last.epoch)
    })
}

#[cfg(test)]
mod tests {
    use wire::types::{LeaderEpoch, Offset};

    use super::*;

    fn fits(old: &[(i32, i64)], new: &[(i32, i64)]) -> bool {
        let entries = |of: &[(i32, i64)]| -> Vec<_> {
            of.iter().map(|it| EpochEntry { epoch: LeaderEpoch(it.0), start: Offset(it.1) }).collect()
        };
        fits_in_place(&entries(old), &entries(new))
    }

    #[test]
    fn an_epoch_at_the_log_end_is_written_in_place() {
        assert!(fits(&[(0, 0)], &[(0, 0), (1, 5)]));
        assert!(fits(&[(0, 0), (1, 5)], &[(0, 0), (2, 5)]), "nothing was written in epoch 1");
        assert!(fits(&[(3, 7)], &[(4, 7)]));
    }

    #[test]
    fn what_would_move_other_lines_or_touch_epochs_of_records_is_not() {
        let nine: Vec<_> = (0..9).map(|at| (at, i64::from(at))).collect();
        let ten: Vec<_> = (0..10).map(|at| (at, i64::from(at))).collect();
        assert!(!fits(&nine, &ten), "the count gets another digit");
        assert!(!fits(&[(0, 0), (9, 5)], &[(0, 0), (10, 5)]), "the epoch gets another digit");
        assert!(!fits(&[(0, 0), (1, 5)], &[(0, 0), (2, 4)]));
        assert!(!fits(&[(0, 0), (1, 5)], &[(0, 3), (1, 5)]));
        assert!(!fits(&[(0, 0), (1, 5)], &[(0, 0)]));
        assert!(!fits(&[(0, 0)], &[]));
        assert!(!fits(&[], &[(0, 0)]), "there may be no file");
        assert!(!fits(&[(0, 0)], &[(0, 0), (1, 5), (2, 6)]));
    }
}
