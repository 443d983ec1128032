//! The committed offsets of a group, those being written, and those of open transactions.
//!
//! What counts is the order of the log: an entry carries the base offset of the batch that it is in, and one of an
//! earlier batch never takes the place of one of a later batch, whether plain or of a transaction (KAFKA-5247).

mod commit;
mod delete;
mod expire;

use std::collections::{BTreeMap, BTreeSet};

use wire::Str;
use wire::error_code::ErrorCode;
use wire::internal::OffsetCommitValue;
use wire::types::{LeaderEpoch, Millis, Offset, TopicPartition};

pub(super) use commit::CommitInFlight;

use super::ids::AppendId;
use super::{Group, State, errors};

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Committed {
    /// The base offset of the batch that it was written in.
    pub batch_offset: Offset,
    /// The offset to go on from.
    pub offset: Offset,
    /// The leader epoch of the record before it, or [`LeaderEpoch::UNKNOWN`].
    pub leader_epoch: LeaderEpoch,
    /// What the consumer says of it.
    pub metadata: Str,
    /// When it was committed, in milliseconds since the Unix epoch.
    pub commit_timestamp: Millis,
    /// When it expires, if the commit said so; else `offsets.retention.minutes` counts.
    pub expire_timestamp: Option<Millis>,
}

impl Committed {
    /// A stored offset, of the batch at `batch_offset`. The metadata is copied out of its batch.
    pub(super) fn from_value(value: &OffsetCommitValue, batch_offset: Offset) -> Self {
        Self {
            batch_offset,
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: super::member::owned(&value.metadata),
            commit_timestamp: value.commit_timestamp,
            expire_timestamp: value.expire_timestamp,
        }
    }

    fn to_value(&self) -> OffsetCommitValue {
        OffsetCommitValue {
            offset: self.offset,
            leader_epoch: self.leader_epoch,
            metadata: self.metadata.clone(),
            commit_timestamp: self.commit_timestamp,
            expire_timestamp: self.expire_timestamp,
        }
    }
}

/// An offset as OffsetFetch answers it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchedOffset {
    /// The offset; -1 if there is none.
    pub offset: Offset,
    /// The leader epoch, or [`LeaderEpoch::UNKNOWN`].
    pub leader_epoch: LeaderEpoch,
    /// What the consumer said of it.
    pub metadata: Str,
    /// The error, or none.
    pub error: ErrorCode,
}

impl FetchedOffset {
    /// No offset.
    #[must_use]
    pub const fn none(error: ErrorCode) -> Self {
        Self { offset: Offset::UNKNOWN, leader_epoch: LeaderEpoch::UNKNOWN, metadata: Str::EMPTY, error }
    }
}

/// What a transaction says of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Transactional {
    /// What is in the log.
    appended: Option<Committed>,
    /// The last append that is under way.
    in_flight: Option<AppendId>,
}

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Offsets {
    committed: BTreeMap<TopicPartition, Committed>,
    /// The last append of a commit that is under way: of a plain one, or of a transaction that has been committed since.
    pending: BTreeMap<TopicPartition, AppendId>,
    /// Open transactions, by producer id.
    transactional: BTreeMap<i64, BTreeMap<TopicPartition, Transactional>>,
    /// Partitions without a committed offset whose last commit was told as failed, and may be in the log for all that: it
    /// would be there after a load. What removes offsets buries these, too.
    uncertain: BTreeSet<TopicPartition>,
}

impl Offsets {
    /// The offsets of a partition that was loaded: committed ones, and those of open transactions.
    pub(super) fn loaded(
        committed: BTreeMap<TopicPartition, Committed>,
        open: BTreeMap<i64, BTreeMap<TopicPartition, Committed>>,
    ) -> Self {
        let transactional = open.into_iter().map(|(producer, offsets)| {
            let offsets = offsets.into_iter().map(|(partition, committed)| {
                (partition, Transactional { appended: Some(committed), in_flight: None })
            });
            (producer, offsets.collect())
        });
        Self { committed, transactional: transactional.collect(), ..Self::default() }
    }

    /// Whether nothing is committed, being committed, or part of an open transaction.
    pub(super) fn is_empty(&self) -> bool {
        self.committed.is_empty() && self.pending.is_empty() && self.transactional.is_empty()
    }

    fn put(&mut self, partition: TopicPartition, committed: Committed) {
        // From now on a tombstone is written for this one, which lies behind the other.
        self.uncertain.remove(&partition);
        let is_older = |it: &Committed| it.batch_offset > committed.batch_offset;
        if !self.committed.get(&partition).is_some_and(is_older) {
            self.committed.insert(partition, committed);
        }
    }

    /// A commit of the partition has failed with this error.
    fn failed(&mut self, partition: &TopicPartition, error: ErrorCode) {
        if errors::may_be_stored(error) && !self.committed.contains_key(partition) {
            self.uncertain.insert(partition.clone());
        }
    }

    /// Whether the last commit of the partition failed, and may be there after a load.
    #[cfg(test)]
    pub(super) fn is_uncertain(&self, partition: &TopicPartition) -> bool {
        self.uncertain.contains(partition)
    }

    fn is_unstable(&self, partition: &TopicPartition) -> bool {
        self.pending.contains_key(partition)
            || self.transactional.values().any(|offsets| offsets.contains_key(partition))
    }
}

/// What a group's offsets can be asked.
impl Group {
    /// The offset of a partition, as OffsetFetch answers it. With `require_stable` one that is being committed, or is
    /// part of an open transaction, is UNSTABLE_OFFSET_COMMIT (KIP-447).
    #[must_use]
    pub fn fetch_offset(&self, partition: &TopicPartition, require_stable: bool) -> FetchedOffset {
        if self.state == State::Dead {
            return FetchedOffset::none(ErrorCode::None);
        }
        if require_stable && self.offsets.is_unstable(partition) {
            return FetchedOffset::none(ErrorCode::UnstableOffsetCommit);
        }
        match self.offsets.committed.get(partition) {
            None => FetchedOffset::none(ErrorCode::None),
            Some(committed) => FetchedOffset {
                offset: committed.offset,
                leader_epoch: committed.leader_epoch,
                metadata: committed.metadata.clone(),
                error: ErrorCode::None,
            },
        }
    }

    /// All committed offsets, in order.
    pub fn committed(&self) -> impl ExactSizeIterator<Item = (&TopicPartition, &Committed)> {
        self.offsets.committed.iter()
    }

    /// The producers with open transactions in this group: their markers concern it.
    pub fn open_transactions(&self) -> impl Iterator<Item = i64> {
        self.offsets.transactional.keys().copied()
    }
}
