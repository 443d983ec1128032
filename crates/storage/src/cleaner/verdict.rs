//! What becomes of a batch and of each record in it (KIP-58, KIP-534): pure rules.
//!
//! A record stays if no later one of its key is in the map; a tombstone only until the delete horizon of its batch. The
//! last batch of an active producer is never dropped whole, since it carries the producer's last sequence; nor is the
//! marker that alone carries its epoch. Such a batch is told by its offset (KAFKA-8335), not by sequences.

use std::collections::BTreeMap;

use wire::batch::{BatchHeader, KeyedRecord};
use wire::types::{Millis, Offset};

use super::offset_map::OffsetMap;

/// The last data offset and the epoch of each active producer. The offset is none if its epoch has no data.
pub(crate) type LastOfProducers = BTreeMap<i64, (Option<Offset>, i16)>;

/// What becomes of the records of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Records {
    /// All go.
    Drop,
    /// All stay.
    Keep,
    /// Each is judged by its key.
    Judge,
}

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchVerdict {
    pub(crate) records: Records,
    /// Whether the batch stays when it has lost all records.
    pub(crate) keep_empty: bool,
    /// Whether the batch gets a delete horizon though it has no tombstone: it is a marker that nothing needs any more.
    pub(crate) starts_horizon: bool,
}

/// Judges a batch. `discardable`: its data was aborted, or it is a marker that is not needed.
pub(crate) fn judge_batch(
    batch: &BatchHeader,
    discardable: bool,
    producers: &LastOfProducers,
    now: Millis,
) -> BatchVerdict {
    let records = match (batch.is_control(), discardable) {
        // Control records have keys, and are never judged by them (KAFKA-14055).
        (true, true) if is_due(batch, now) => Records::Drop,
        (true, _) => Records::Keep,
        (false, true) => Records::Drop,
        (false, false) => Records::Judge,
    };
    BatchVerdict {
        records,
        keep_empty: is_last_of_producer(batch, producers),
        starts_horizon: batch.is_control() && discardable,
    }
}

/// Judges a record of a batch whose records are judged by their keys.
pub(crate) fn keeps_record(
    batch: &BatchHeader,
    record: &KeyedRecord<'_>,
    map: &OffsetMap,
    now: Millis,
) -> bool {
    if record.offset > map.latest() {
        return true;
    }
    let Some(key) = record.key else { return false };
    let is_latest = map.get(key).is_none_or(|latest| record.offset >= latest);
    is_latest && !(record.is_tombstone && is_due(batch, now))
}

/// Whether the delete horizon of the batch has come.
fn is_due(batch: &BatchHeader, now: Millis) -> bool {
    batch.delete_horizon().is_some_and(|horizon| now >= horizon)
}

fn is_last_of_producer(batch: &BatchHeader, producers: &LastOfProducers) -> bool {
    if !batch.has_producer_id() {
        return false;
    }
    producers.get(&batch.producer_id).is_some_and(|(last_data, epoch)| match last_data {
        Some(offset) => batch.last_offset() == *offset,
        None => batch.is_control() && batch.producer_epoch == *epoch,
    })
}

#[cfg(test)]
#[path = "verdict/tests.rs"]
mod tests;
