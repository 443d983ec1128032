//! What a reader of committed data does with the aborted transactions that a fetch names (KIP-98).
//!
//! The broker sends everything below the last stable offset and the transactions that were aborted there;
//! leaving their records out is the reader's part.

use std::collections::BTreeSet;

use super::control::{EndTxnMarker, MarkerType};
use super::{Batch, BatchError};
use crate::types::Offset;

/// The aborted transactions of one fetched partition, as reading proceeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbortedTransactions {
    /// First offset and producer, the earliest last.
    ahead: Vec<(Offset, i64)>,
    /// Producers whose transaction is open at this point and will be aborted.
    open: BTreeSet<i64>,
}

impl AbortedTransactions {
    /// Transactions given as producer id and first offset, in any order.
    pub fn new(transactions: impl IntoIterator<Item = (i64, Offset)>) -> Self {
        let mut ahead: Vec<_> = transactions.into_iter().map(|(producer, first)| (first, producer)).collect();
        ahead.sort_unstable_by(|a, b| b.cmp(a));
        Self { ahead, open: BTreeSet::new() }
    }

    /// Whether the records of the next batch are for the reader. Batches must be given in order of offset.
    /// Control batches never are.
    ///
    /// # Errors
    /// If a marker cannot be read.
    pub fn admits(&mut self, batch: &Batch) -> Result<bool, BatchError> {
        while let Some((_, producer)) = self.ahead.pop_if(|(first, _)| *first <= batch.header.last_offset()) {
            self.open.insert(producer);
        }
        if batch.header.is_control() {
            let marker = EndTxnMarker::read(batch)?;
            if marker.is_some_and(|marker| marker.marker_type == MarkerType::Abort) {
                self.open.remove(&batch.header.producer_id);
            }
            return Ok(false);
        }
        Ok(!(batch.header.is_transactional() && self.open.contains(&batch.header.producer_id)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, Compression};
    use super::*;
    use crate::types::Millis;

    fn data(producer: i64, offset: i64, transactional: bool) -> Batch {
        let mut builder = BatchBuilder::new(Compression::None)
            .producer(producer, 0, 0)
            .transactional(transactional)
            .base_offset(Offset(offset));
        builder.append(Millis(0), None, Some(b"x"));
        builder.build().unwrap()
    }

    fn marker(producer: i64, offset: i64, marker_type: MarkerType) -> Batch {
        let mut batch =
            EndTxnMarker { marker_type, coordinator_epoch: 0 }.to_batch(producer, 0, Millis(0)).unwrap();
        batch.header.base_offset = Offset(offset);
        batch
    }

    #[test]
    fn records_of_an_aborted_transaction_are_left_out_up_to_its_marker() {
        let mut aborted = AbortedTransactions::new([(7, Offset(5)), (7, Offset(1))]);
        let log = [
            (data(7, 0, true), true),
            (data(7, 1, true), false),
            (data(8, 2, true), true),
            (data(7, 3, false), true),
            (marker(7, 4, MarkerType::Abort), false),
            (data(7, 5, true), false),
            (marker(7, 6, MarkerType::Abort), false),
            (data(7, 7, true), true),
            (marker(7, 8, MarkerType::Commit), false),
        ];
        for (batch, expected) in &log {
            assert_eq!(aborted.admits(batch), Ok(*expected), "at {}", batch.header.base_offset);
        }
    }
}
