//! The leader epochs of one partition log: which epoch began at which offset (KIP-101, KIP-279).
//!
//! Invariant: epochs and start offsets both rise strictly from entry to entry. The history only decides; the
//! caller keeps it on disk in `leader-epoch-checkpoint` whenever a method says that it changed.

use wire::types::{LeaderEpoch, Offset};

/// One leader epoch and the first offset that was, or would have been, written in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochEntry {
    /// The epoch, never negative.
    pub epoch: LeaderEpoch,
    /// The first offset of the epoch (inclusive), never negative.
    pub start: Offset,
}

/// Where an epoch ends, as OffsetsForLeaderEpoch answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpochEnd {
    /// The largest known epoch at or below the one asked for; -1 if undefined.
    pub epoch: LeaderEpoch,
    /// The first offset after `epoch` (exclusive end); -1 if undefined.
    pub end: Offset,
}

impl EpochEnd {
    /// No answer is possible: epoch -1, offset -1.
    pub const UNDEFINED: Self = Self { epoch: LeaderEpoch::UNKNOWN, end: Offset::UNKNOWN };
}

/// The ordered history of leader epochs of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EpochHistory {
    entries: Vec<EpochEntry>,
}

impl EpochHistory {
    /// A history without epochs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a history from entries read from a file, oldest first. Entries that would break the order remove
    /// those before them, exactly as if they had been assigned one by one; negative ones are left out.
    pub fn from_entries(entries: impl IntoIterator<Item = EpochEntry>) -> Self {
        let mut history = Self::new();
        for entry in entries {
            history.assign(entry.epoch, entry.start);
        }
        history
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// Whether no epoch is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The newest entry.
    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// The oldest entry.
    pub fn earliest(&self) -> Option<EpochEntry> {
        self.entries.first().copied()
    }

    /// The epoch that `offset` belongs to: the last one that starts at or below it.
    pub fn epoch_of(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self.entries.partition_point(|entry| entry.start <= offset);
        self.entries.get(after.checked_sub(1)?).map(|entry| entry.epoch)
    }

    /// Notes that `epoch` starts at `start`; returns whether the history changed. An epoch already latest with an
    /// equal or higher offset changes nothing. Entries of the same or a later epoch, and entries at or beyond
    /// `start`, give way, so that both columns keep rising. Negative values change nothing.
    pub fn assign(&mut self, epoch: LeaderEpoch, start: Offset) -> bool {
        if epoch.0 < 0 || start.0 < 0 {
            return false;
        }
        if self.latest().is_some_and(|latest| latest.epoch == epoch && start >= latest.start) {
            return false;
        }
        while self.latest().is_some_and(|latest| latest.epoch >= epoch || latest.start >= start) {
            self.entries.pop();
        }
        self.entries.push(EpochEntry { epoch, start });
        true
    }

    /// Makes the history agree with a batch of `epoch` that lies at `offset`; returns whether it changed. Batches are
    /// shown in the order of their offsets. An entry that claims the offset for a later epoch speaks of records
    /// that a crash took back, and goes with all after it. A negative epoch changes nothing.
    pub fn observe(&mut self, epoch: LeaderEpoch, offset: Offset) -> bool {
        if epoch.0 < 0 || self.epoch_of(offset) == Some(epoch) {
            return false;
        }
        let contradicts = |entry: &EpochEntry| entry.epoch > epoch && entry.start <= offset;
        if let Some(at) = self.entries.iter().position(contradicts) {
            self.entries.truncate(at);
        }
        self.epoch_of(offset) == Some(epoch) || self.assign(epoch, offset)
    }

    /// Forgets every entry that starts at or beyond `offset`; returns whether the history changed.
    pub fn truncate_from_end(&mut self, offset: Offset) -> bool {
        let kept = self.entries.partition_point(|entry| entry.start < offset);
        let changed = offset.0 >= 0 && kept < self.entries.len();
        if changed {
            self.entries.truncate(kept);
        }
        changed
    }

    /// Forgets what lies below `offset`: the epoch that `offset` belongs to stays and now starts there. Returns
    /// whether the history changed.
    pub fn truncate_from_start(&mut self, offset: Offset) -> bool {
        let below = self.entries.partition_point(|entry| entry.start <= offset);
        let Some(covering) = below.checked_sub(1) else { return false };
        let before = self.entries.first().copied();
        self.entries.drain(..covering);
        if let Some(first) = self.entries.first_mut() {
            first.start = offset;
        }
        self.entries.first().copied() != before
    }

    /// Forgets everything; returns whether there was anything.
    pub fn clear(&mut self) -> bool {
        let changed = !self.entries.is_empty();
        self.entries.clear();
        changed
    }

    /// Where `epoch` ends in a log that ends at `log_end` (exclusive).
    pub fn end_offset_for(&self, epoch: LeaderEpoch, log_end: Offset) -> EpochEnd {
        if epoch == LeaderEpoch::UNKNOWN {
            return EpochEnd::UNDEFINED;
        }
        if self.latest().is_some_and(|latest| latest.epoch == epoch) {
            return EpochEnd { epoch, end: log_end };
        }
        let higher = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let Some(next) = self.entries.get(higher) else { return EpochEnd::UNDEFINED };
        let floor = higher.checked_sub(1).and_then(|at| self.entries.get(at));
        EpochEnd { epoch: floor.map_or(epoch, |entry| entry.epoch), end: next.start }
    }
}

#[cfg(test)]
mod tests;
