//! Transactions as compaction meets them, batch by batch from the beginning of the log: whose data was aborted and goes
//! at once, and which marker may go because nothing of its transaction is left.
//!
//! A marker that was dropped too early would leave a transaction open for ever, or aborted records would count. So it
//! stays as long as a batch of its transaction was met in the same pass. The state lives for one pass over all segments
//! of a log, since transactions span them (KAFKA-8351).

use std::collections::{BTreeMap, BTreeSet};

use wire::batch::BatchHeader;
use wire::batch::control::MarkerType;
use wire::types::Offset;

use crate::txn_index::AbortedTxn;

/// The transactions of one pass; see the module's text. At most one is open for each producer, and those that are known
/// to be aborted are as many as the index of transactions tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transactions {
    /// Aborted ones whose first offset was not met yet, by first offset and producer.
    ahead: BTreeMap<(Offset, i64), AbortedTxn>,
    aborted: BTreeMap<i64, Aborted>,
    /// Producers with data of a transaction that was, or will be, committed.
    committed: BTreeSet<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Aborted {
    txn: AbortedTxn,
    /// Whether a batch of it was met.
    met: bool,
}

/// What becomes of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// A batch of its transaction was met. If it was aborted, the index of transactions must tell of it.
    Needed(Option<AbortedTxn>),
    /// Nothing of its transaction is left.
    Free,
}

impl Transactions {
    /// Tells of transactions that the index knows to be aborted. Those that are known already may be among them.
    pub(crate) fn know_aborted(&mut self, txns: impl IntoIterator<Item = AbortedTxn>) {
        for txn in txns {
            let is_open = self.aborted.get(&txn.producer_id).is_some_and(|open| open.txn == txn);
            if !is_open {
                self.ahead.insert((txn.first_offset, txn.producer_id), txn);
            }
        }
    }

    /// Meets a batch that is no control batch. Returns whether its records were aborted.
    pub(crate) fn on_data(&mut self, batch: &BatchHeader) -> bool {
        self.move_to(batch.last_offset());
        if !batch.is_transactional() {
            return false;
        }
        if let Some(open) = self.aborted.get_mut(&batch.producer_id) {
            open.met = true;
            return true;
        }
        self.committed.insert(batch.producer_id);
        false
    }

    /// Meets a control batch; `marker` is what it says, none if it is empty or of another kind.
    pub(crate) fn on_control(&mut self, batch: &BatchHeader, marker: Option<MarkerType>) -> Marker {
        self.move_to(batch.last_offset());
        let producer = batch.producer_id;
        match marker {
            Some(MarkerType::Abort) => match self.aborted.remove(&producer) {
                Some(open) if open.met => Marker::Needed(Some(open.txn)),
                _ => Marker::Free,
            },
            Some(MarkerType::Commit) if self.committed.remove(&producer) => Marker::Needed(None),
            Some(MarkerType::Commit) => Marker::Free,
            None if batch.records_count == 0 => Marker::Free,
            None => Marker::Needed(None),
        }
    }

    /// Opens the aborted transactions that begin at or below `offset`.
    fn move_to(&mut self, offset: Offset) {
        while let Some(first) = self.ahead.first_entry().filter(|entry| entry.key().0 <= offset) {
            let txn = first.remove();
            self.aborted.entry(txn.producer_id).or_insert(Aborted { txn, met: false });
        }
    }
}

#[cfg(test)]
#[path = "transactions/tests.rs"]
mod tests;
