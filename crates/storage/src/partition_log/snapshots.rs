//! The producer snapshots of a log: which files there are, and which wait for a sync.
//!
//! Files are written without a sync; a flush syncs them before the recovery point moves past them
//! (KAFKA-9892, KAFKA-15046). A torn one is known by its checksum.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use kernel::producer::{ProducerEntry, ProducerStates};
use wire::types::Offset;

use crate::disk::atomic::Durability;
use crate::names::{SegmentFile, SegmentFileName};
use crate::segment::SegmentDir;
use crate::snapshot::{SnapshotError, read_snapshot, write_snapshot};

/// The snapshots of one log; see the module's text.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    known: BTreeSet<Offset>,
    unsynced: BTreeSet<Offset>,
}

pub(super) fn path(dir: &SegmentDir, offset: Offset) -> PathBuf {
    dir.path.get().join(SegmentFileName::new(offset, SegmentFile::Snapshot).to_string())
}

impl Snapshots {
    /// The files that a listing of the directory shows.
    pub(super) fn listed(offsets: impl IntoIterator<Item = Offset>) -> Self {
        Self { known: offsets.into_iter().collect(), unsynced: BTreeSet::new() }
    }

    /// The offsets of all snapshots, rising.
    pub(super) fn offsets(&self) -> &BTreeSet<Offset> {
        &self.known
    }

    /// Writes a snapshot of `states` at the offset up to which they are true, unless there is one.
    pub(super) fn take(&mut self, dir: &SegmentDir, states: &ProducerStates) -> io::Result<()> {
        let offset = states.map_end();
        if self.known.contains(&offset) {
            return Ok(());
        }
        write_snapshot(&**dir.files.disk(), &path(dir, offset), states.entries(), Durability::Deferred)?;
        self.known.insert(offset);
        self.unsynced.insert(offset);
        Ok(())
    }

    /// The newest snapshot at or below `end` that can be read, with its offset. Bad files are removed.
    pub(super) fn newest(
        &mut self,
        dir: &SegmentDir,
        end: Offset,
    ) -> io::Result<Option<(Offset, Vec<ProducerEntry>)>> {
        while let Some(offset) = self.known.range(..=end).next_back().copied() {
            let path = path(dir, offset);
            match read_snapshot(&**dir.files.disk(), &path) {
                Ok(Some(entries)) => return Ok(Some((offset, entries))),
                Ok(None) => {}
                Err(SnapshotError::Io(error)) => return Err(error),
                Err(error) => {
                    tracing::warn!(
                        path = %path.display(), %error,
                        "producer snapshot cannot be used and is removed; an older one or the log serves"
                    );
                }
            }
            self.remove(dir, offset)?;
        }
        Ok(None)
    }

    /// Removes one snapshot; succeeds if there is none.
    pub(super) fn remove(&mut self, dir: &SegmentDir, offset: Offset) -> io::Result<()> {
        self.unsynced.remove(&offset);
        if !self.known.remove(&offset) {
            return Ok(());
        }
        match dir.files.disk().remove_file(&path(dir, offset)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes the snapshots whose offsets `goes` names.
    pub(super) fn remove_where(&mut self, dir: &SegmentDir, goes: impl Fn(Offset) -> bool) -> io::Result<()> {
        let gone: Vec<Offset> = self.known.iter().copied().filter(|offset| goes(*offset)).collect();
        gone.into_iter().try_for_each(|offset| self.remove(dir, offset))
    }

    /// The offsets that wait for a sync; the caller syncs the files next.
    pub(super) fn take_unsynced(&mut self) -> BTreeSet<Offset> {
        std::mem::take(&mut self.unsynced)
    }
}
