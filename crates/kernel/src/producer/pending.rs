//! Updates of producers that were judged but not yet written. Several appends that are written together share
//! one set, so that each sees what those before it changed.

use wire::types::Offset;

use super::{
    AppendOrigin, BatchContent, BatchMetadata, CompletedTxn, EndMarker, ProducerBatch, ProducerEntry,
    ProducerStates, Rejection, sequence::follows,
};

/// What the rules say about a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Append it.
    Accepted,
    /// The producer repeats this batch: answer with its offsets and timestamp, append nothing.
    Duplicate(BatchMetadata),
    /// Append nothing.
    Rejected(Rejection),
}

/// The updates of batches that will be written next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PendingUpdates {
    entries: Vec<ProducerEntry>,
    started: Vec<(Offset, i64)>,
    completed: Vec<CompletedTxn>,
}

impl PendingUpdates {
    /// A set without updates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Judges `batch` against `states` and everything accepted before it, and notes its effects if it is accepted.
    pub fn judge(&mut self, states: &ProducerStates, batch: &ProducerBatch, origin: AppendOrigin) -> Verdict {
        let known = self.known(states, batch.producer_id);
        if let (AppendOrigin::Client, Some(known)) = (origin, known) {
            let duplicate =
                known.find_duplicate(batch.producer_epoch, batch.base_sequence, batch.last_sequence);
            if let Some(duplicate) = duplicate {
                return Verdict::Duplicate(*duplicate);
            }
        }
        let mut entry = known.copied().unwrap_or_else(|| ProducerEntry::new(batch.producer_id));
        let outcome = match batch.content {
            BatchContent::Data { transactional } => self.judge_data(&mut entry, batch, transactional, origin),
            BatchContent::Marker(marker) => self.judge_marker(&mut entry, batch, &marker, origin),
            BatchContent::OtherControl => return Verdict::Accepted,
        };
        if let Err(rejection) = outcome {
            return Verdict::Rejected(rejection);
        }
        match self.entries.iter_mut().rfind(|known| known.producer_id == entry.producer_id) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
        Verdict::Accepted
    }

    fn known<'a>(&'a self, states: &'a ProducerStates, producer_id: i64) -> Option<&'a ProducerEntry> {
        let pending = self.entries.iter().rfind(|entry| entry.producer_id == producer_id);
        pending.or_else(|| states.get(producer_id))
    }

    fn judge_data(
        &mut self,
        entry: &mut ProducerEntry,
        batch: &ProducerBatch,
        transactional: bool,
        origin: AppendOrigin,
    ) -> Result<(), Rejection> {
        check_epoch(entry, batch.producer_epoch, origin)?;
        if origin == AppendOrigin::Client {
            check_sequence(entry, batch)?;
        }
        match entry.open_txn_first_offset {
            Some(_) if !transactional && origin != AppendOrigin::Replication => {
                return Err(Rejection::InvalidTxnState);
            }
            None if transactional => {
                entry.open_txn_first_offset = Some(batch.base_offset);
                self.started.push((batch.base_offset, batch.producer_id));
            }
            _ => {}
        }
        entry.set_epoch(batch.producer_epoch);
        entry.remember(batch.metadata());
        entry.last_timestamp = batch.max_timestamp;
        Ok(())
    }

    fn judge_marker(
        &mut self,
        entry: &mut ProducerEntry,
        batch: &ProducerBatch,
        marker: &EndMarker,
        origin: AppendOrigin,
    ) -> Result<(), Rejection> {
        check_epoch(entry, batch.producer_epoch, origin)?;
        if marker.coordinator_epoch < entry.coordinator_epoch && origin != AppendOrigin::Replication {
            return Err(Rejection::TransactionCoordinatorFenced {
                given: marker.coordinator_epoch,
                known: entry.coordinator_epoch,
            });
        }
        if let Some(first_offset) = entry.open_txn_first_offset.take() {
            self.completed.push(CompletedTxn {
                producer_id: batch.producer_id,
                first_offset,
                last_offset: batch.base_offset,
                aborted: marker.aborted,
            });
        }
        entry.set_epoch(batch.producer_epoch);
        entry.coordinator_epoch = marker.coordinator_epoch;
        entry.last_timestamp = marker.timestamp;
        Ok(())
    }

    pub(super) fn into_parts(self) -> (Vec<ProducerEntry>, Vec<(Offset, i64)>, Vec<CompletedTxn>) {
        (self.entries, self.started, self.completed)
    }
}

fn check_epoch(entry: &ProducerEntry, given: i16, origin: AppendOrigin) -> Result<(), Rejection> {
    let known = entry.producer_epoch;
    if given < known && origin != AppendOrigin::Replication {
        return Err(Rejection::InvalidProducerEpoch { given, known });
    }
    Ok(())
}

fn check_sequence(entry: &ProducerEntry, batch: &ProducerBatch) -> Result<(), Rejection> {
    let given = batch.base_sequence;
    let in_order = if entry.producer_epoch == -1 {
        true
    } else if batch.producer_epoch != entry.producer_epoch {
        given == 0
    } else {
        follows(entry.last_sequence(), given)
    };
    if in_order { Ok(()) } else { Err(Rejection::OutOfOrderSequence { given, last: entry.last_sequence() }) }
}
