//! What a partition log remembers of the producers that write to it: sequences for idempotence, epochs for
//! fencing, open transactions for the last stable offset (KIP-98, KIP-360, KIP-890).
//!
//! An append is judged on a copy ([`PendingUpdates`]) and applied only after its bytes are written (KAFKA-6683).
//! Invariants: `map_end` is the offset up to which the state is true; the first offset of every open transaction
//! lies below it; a transaction is never both open and completed.

mod entry;
mod pending;
mod sequence;

use std::collections::BTreeMap;

use wire::types::{Millis, Offset};

pub use entry::{BatchMetadata, ProducerEntry, RETAINED_BATCHES};
pub use pending::{PendingUpdates, Verdict};
pub use sequence::decrement_sequence;
pub use wire::batch::validate::AppendOrigin;

/// The end of a transaction, as its marker says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndMarker {
    /// Whether the transaction was aborted; otherwise it was committed.
    pub aborted: bool,
    /// The epoch of the transaction coordinator that wrote the marker.
    pub coordinator_epoch: i32,
    /// The timestamp of the marker's record, in milliseconds since the Unix epoch.
    pub timestamp: i64,
}

/// What a batch is for its producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchContent {
    /// Records; `transactional` if they belong to a transaction.
    Data {
        /// The transactional bit of the batch.
        transactional: bool,
    },
    /// A marker that ends a transaction.
    Marker(EndMarker),
    /// A control batch without a known marker (emptied by compaction, or of a later kind): it changes nothing.
    OtherControl,
}

/// A batch of a producer with an id, as the rules need it; its offsets are assigned already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProducerBatch {
    /// The producer id, never negative.
    pub producer_id: i64,
    /// The producer epoch.
    pub producer_epoch: i16,
    /// The sequence of the first record; -1 if none.
    pub base_sequence: i32,
    /// The sequence of the last record; -1 if none.
    pub last_sequence: i32,
    /// The offset of the first record (inclusive).
    pub base_offset: Offset,
    /// The offset of the last record (inclusive).
    pub last_offset: Offset,
    /// The largest timestamp of the batch, in milliseconds since the Unix epoch.
    pub max_timestamp: i64,
    /// Data or marker.
    pub content: BatchContent,
}

impl ProducerBatch {
    /// What is remembered of it.
    fn metadata(&self) -> BatchMetadata {
        BatchMetadata {
            last_sequence: self.last_sequence,
            last_offset: self.last_offset,
            offset_delta: i32::try_from(self.last_offset.0 - self.base_offset.0).unwrap_or(i32::MAX),
            timestamp: self.max_timestamp,
        }
    }
}

/// Why a batch is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// INVALID_PRODUCER_EPOCH: a newer epoch of the producer is known.
    InvalidProducerEpoch {
        /// The epoch of the batch.
        given: i16,
        /// The epoch that is known.
        known: i16,
    },
    /// OUT_OF_ORDER_SEQUENCE_NUMBER: the first sequence does not follow the last one.
    OutOfOrderSequence {
        /// The first sequence of the batch.
        given: i32,
        /// The last sequence that is known; -1 if none.
        last: i32,
    },
    /// INVALID_TXN_STATE: records outside a transaction while one of the producer is open.
    InvalidTxnState,
    /// TRANSACTION_COORDINATOR_FENCED: the marker comes from an older coordinator.
    TransactionCoordinatorFenced {
        /// The coordinator epoch of the marker.
        given: i32,
        /// The coordinator epoch that is known.
        known: i32,
    },
}

/// A transaction that a marker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompletedTxn {
    /// The producer.
    pub producer_id: i64,
    /// The first data offset of the transaction (inclusive).
    pub first_offset: Offset,
    /// The offset of the marker (inclusive).
    pub last_offset: Offset,
    /// Whether it was aborted.
    pub aborted: bool,
}

/// The state of all producers of one log up to [`map_end`](Self::map_end).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProducerStates {
    producers: BTreeMap<i64, ProducerEntry>,
    /// First offset of each open transaction, with its producer.
    ongoing: BTreeMap<Offset, i64>,
    /// First offset of each completed transaction whose marker is at or above the high watermark, with the marker.
    unreplicated: BTreeMap<Offset, Offset>,
    map_end: Offset,
    /// Of the batches before it no more is known than what a snapshot keeps: the last of each producer.
    seen_from: Offset,
}

impl ProducerStates {
    /// A state without producers that is true up to `map_end` (exclusive).
    pub fn new(map_end: Offset) -> Self {
        Self { map_end, seen_from: map_end, ..Self::default() }
    }

    /// The state that a snapshot at `map_end` holds. Entries that have already expired are left out.
    pub fn from_snapshot(
        entries: impl IntoIterator<Item = ProducerEntry>,
        map_end: Offset,
        now_wall_ms: i64,
        expiration: Millis,
    ) -> Self {
        let mut states = Self::new(map_end);
        for entry in entries {
            if entry.is_expired(now_wall_ms, expiration) {
                continue;
            }
            if let Some(first) = entry.open_txn_first_offset {
                states.ongoing.insert(first, entry.producer_id);
            }
            states.producers.insert(entry.producer_id, entry);
        }
        states
    }

    /// The entries of a snapshot of this state, by rising producer id.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &ProducerEntry> {
        self.producers.values()
    }

    /// What is known of one producer.
    pub fn get(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.producers.get(&producer_id)
    }

    /// How many producers are known.
    pub fn len(&self) -> usize {
        self.producers.len()
    }

    /// Whether no producer is known.
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    /// The offset up to which the state is true (exclusive).
    pub fn map_end(&self) -> Offset {
        self.map_end
    }

    /// Notes that the log up to `end` (exclusive) is reflected.
    pub fn set_map_end(&mut self, end: Offset) {
        self.map_end = end;
    }

    /// The offset from which on (inclusive) all batches were seen. Of those before only the last of each producer is
    /// known, since a snapshot keeps no more, until they were [recalled](Self::recall).
    pub fn seen_from(&self) -> Offset {
        self.seen_from
    }

    /// Whether a batch of a client, which is neither the next one of its producer nor a repetition of one that is
    /// remembered, may repeat one that was written before [`seen_from`](Self::seen_from).
    pub fn may_have_forgotten(&self, batch: &ProducerBatch) -> bool {
        let Some(entry) = self.producers.get(&batch.producer_id) else { return false };
        let (first, last) = (batch.base_sequence, batch.last_sequence);
        entry.producer_epoch == batch.producer_epoch
            && entry.is_short()
            && entry.batches().first().is_some_and(|oldest| oldest.first_offset() > Offset(0))
            && !sequence::follows(entry.last_sequence(), first)
            && entry.find_duplicate(batch.producer_epoch, first, last).is_none()
    }

    /// Takes over batches from before [`seen_from`](Self::seen_from), newest first, as far as they are the ones right
    /// before those that are remembered. Nothing is left to be recalled from `from` (inclusive) on afterwards.
    pub fn recall(&mut self, newest_first: impl IntoIterator<Item = ProducerBatch>, from: Offset) {
        for batch in newest_first {
            let Some(entry) = self.producers.get_mut(&batch.producer_id) else { continue };
            if matches!(batch.content, BatchContent::Data { .. }) {
                entry.recall(batch.producer_epoch, batch.metadata());
            }
        }
        self.seen_from = self.seen_from.min(from);
    }

    /// Takes over what [`PendingUpdates::judge`] accepted, in the order of acceptance. Returns the transactions
    /// that ended; each still counts as open until [`complete`](Self::complete) is called for it, so that a
    /// failed write of the transaction index holds the last stable offset back (KAFKA-7866).
    pub fn apply(&mut self, pending: PendingUpdates) -> Vec<CompletedTxn> {
        let (entries, started, completed) = pending.into_parts();
        for entry in entries {
            self.producers.insert(entry.producer_id, entry);
        }
        self.ongoing.extend(started);
        completed
    }

    /// The last stable offset right after `completed`: the first offset of the earliest other open transaction,
    /// or the offset after the marker. It goes into the transaction index.
    pub fn last_stable_offset_after(&self, completed: &CompletedTxn) -> Offset {
        let after_marker = completed.last_offset.plus(1);
        let others = self.ongoing.iter().find(|(_, producer)| **producer != completed.producer_id);
        others.map_or(after_marker, |(first, _)| (*first).min(after_marker))
    }

    /// Closes a transaction; it stays unstable until the high watermark has passed its marker.
    pub fn complete(&mut self, completed: &CompletedTxn) {
        self.ongoing.remove(&completed.first_offset);
        self.unreplicated.insert(completed.first_offset, completed.last_offset);
    }

    /// Forgets completed transactions whose marker lies below `high_watermark`.
    pub fn on_high_watermark(&mut self, high_watermark: Offset) {
        self.unreplicated.retain(|_, marker| *marker >= high_watermark);
    }

    /// The log now starts at `log_start`; producers stay (KAFKA-7190), completed transactions below it go.
    pub fn on_log_start(&mut self, log_start: Offset) {
        self.on_high_watermark(log_start);
        self.map_end = self.map_end.max(log_start);
    }

    /// The first offset that is not stable: of the earliest transaction that is open, or whose end is not
    /// replicated yet.
    pub fn first_unstable_offset(&self) -> Option<Offset> {
        let ongoing = self.ongoing.first_key_value().map(|(first, _)| *first);
        let unreplicated = self.unreplicated.first_key_value().map(|(first, _)| *first);
        match (ongoing, unreplicated) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Drops the producers that wrote nothing for `expiration` and have no open transaction; returns how many.
    pub fn expire(&mut self, now_wall_ms: i64, expiration: Millis) -> usize {
        let before = self.producers.len();
        self.producers.retain(|_, entry| !entry.is_expired(now_wall_ms, expiration));
        before - self.producers.len()
    }
}

#[cfg(test)]
mod tests;
