//! One producer as a log knows it: epoch, the last batches, the open transaction.

use wire::types::{Millis, Offset};

use super::{decrement_sequence, sequence::follows};

/// How many of a producer's last batches are kept to recognise repeated ones.
pub const RETAINED_BATCHES: usize = 5;

/// One of the last batches of a producer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BatchMetadata {
    /// The sequence of the last record.
    pub last_sequence: i32,
    /// The offset of the last record (inclusive).
    pub last_offset: Offset,
    /// Last offset minus first offset.
    pub offset_delta: i32,
    /// The largest timestamp of the batch, in milliseconds since the Unix epoch.
    pub timestamp: i64,
}

impl BatchMetadata {
    /// The sequence of the first record.
    pub fn first_sequence(&self) -> i32 {
        decrement_sequence(self.last_sequence, self.offset_delta)
    }

    /// The offset of the first record (inclusive).
    pub fn first_offset(&self) -> Offset {
        self.last_offset.plus(-i64::from(self.offset_delta))
    }
}

/// The state of one producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProducerEntry {
    /// The producer id.
    pub producer_id: i64,
    /// The latest epoch; -1 if none is known.
    pub producer_epoch: i16,
    /// The epoch of the coordinator that wrote the last marker; -1 if none did.
    pub coordinator_epoch: i32,
    /// The timestamp of the last batch or marker, in milliseconds since the Unix epoch; -1 if none.
    pub last_timestamp: i64,
    /// The first offset of the open transaction (inclusive).
    pub open_txn_first_offset: Option<Offset>,
    batches: [BatchMetadata; RETAINED_BATCHES],
    batch_count: u8,
}

impl ProducerEntry {
    /// A producer of which nothing is known.
    pub fn new(producer_id: i64) -> Self {
        Self {
            producer_id,
            producer_epoch: -1,
            coordinator_epoch: -1,
            last_timestamp: -1,
            open_txn_first_offset: None,
            batches: [BatchMetadata::default(); RETAINED_BATCHES],
            batch_count: 0,
        }
    }

    /// The remembered batches, oldest first.
    pub fn batches(&self) -> &[BatchMetadata] {
        self.batches.get(..usize::from(self.batch_count)).unwrap_or_default()
    }

    /// The last batch, if one of the current epoch is known.
    pub fn last_batch(&self) -> Option<&BatchMetadata> {
        self.batches().last()
    }

    /// The last sequence of the current epoch; -1 if none.
    pub fn last_sequence(&self) -> i32 {
        self.last_batch().map_or(-1, |batch| batch.last_sequence)
    }

    /// Remembers a batch as the last one of the current epoch; of six the oldest is forgotten.
    pub fn remember(&mut self, batch: BatchMetadata) {
        if usize::from(self.batch_count) == RETAINED_BATCHES {
            self.batches.rotate_left(1);
            self.batch_count -= 1;
        }
        if let Some(slot) = self.batches.get_mut(usize::from(self.batch_count)) {
            *slot = batch;
            self.batch_count += 1;
        }
    }

    /// Whether there is room for older batches than those that are remembered.
    pub(super) fn is_short(&self) -> bool {
        usize::from(self.batch_count) < RETAINED_BATCHES
    }

    /// Remembers the batch right before the oldest one of the same epoch, if there is room. Returns whether it was that.
    pub(super) fn recall(&mut self, epoch: i16, batch: BatchMetadata) -> bool {
        let Some(oldest) = self.batches().first() else { return false };
        let is_before = batch.last_offset < oldest.first_offset()
            && follows(batch.last_sequence, oldest.first_sequence());
        if !self.is_short() || epoch != self.producer_epoch || !is_before {
            return false;
        }
        self.batches.rotate_right(1);
        if let Some(slot) = self.batches.first_mut() {
            *slot = batch;
        }
        self.batch_count += 1;
        true
    }

    /// Takes over `epoch`; the batches of another epoch are forgotten.
    pub(super) fn set_epoch(&mut self, epoch: i16) {
        if self.producer_epoch != epoch {
            self.producer_epoch = epoch;
            self.batches = [BatchMetadata::default(); RETAINED_BATCHES];
            self.batch_count = 0;
        }
    }

    /// The remembered batch of the same epoch with exactly these sequences.
    pub(super) fn find_duplicate(&self, epoch: i16, first: i32, last: i32) -> Option<&BatchMetadata> {
        let mut batches = self.batches().iter();
        let found = batches.find(|batch| batch.first_sequence() == first && batch.last_sequence == last);
        found.filter(|_| self.producer_epoch == epoch)
    }

    /// Whether the producer was silent for `expiration` and has no open transaction.
    pub(super) fn is_expired(&self, now_wall_ms: i64, expiration: Millis) -> bool {
        self.open_txn_first_offset.is_none()
            && now_wall_ms.saturating_sub(self.last_timestamp) >= expiration.0
    }
}
