//! Control batches: the markers that end transactions (KIP-98), written by coordinators only.
//!
//! A marker is one uncompressed record, CreateTime, without a sequence. A control batch without records is
//! what compaction left of a marker: the transaction is gone, nothing is to be done.

use super::record::Limits;
use super::{Batch, BatchBuilder, BatchError, Compression, NO_SEQUENCE};
use crate::types::Millis;

/// The version of key and value that is written; later ones are read as this one.
const VERSION: i16 = 0;
const ABORT: i16 = 0;
const COMMIT: i16 = 1;
/// A marker is never compressed, so its batch bounds it.
const LIMITS: Limits = Limits { max_decompressed_bytes: 64 << 10 };

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkerType {
    /// Its records are to be skipped by readers of committed data.
    Abort,
    /// Its records count.
    Commit,
}

/// The contents of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndTxnMarker {
    /// How the transaction ended.
    pub marker_type: MarkerType,
    /// The epoch of the transaction coordinator that wrote the marker.
    pub coordinator_epoch: i32,
}

impl EndTxnMarker {
    /// The batch of this marker for one producer, at offset 0.
    ///
    /// # Errors
    /// None in practice: a marker is small and not compressed.
    pub fn to_batch(
        self,
        producer_id: i64,
        producer_epoch: i16,
        timestamp: Millis,
    ) -> Result<Batch, BatchError> {
        let kind = match self.marker_type {
            MarkerType::Abort => ABORT,
            MarkerType::Commit => COMMIT,
        };
        let key = [VERSION.to_be_bytes(), kind.to_be_bytes()].concat();
        let value = [&VERSION.to_be_bytes()[..], &self.coordinator_epoch.to_be_bytes()].concat();
        let mut builder = BatchBuilder::new(Compression::None)
            .producer(producer_id, producer_epoch, NO_SEQUENCE)
            .transactional(true)
            .control(true);
        builder.append(timestamp, Some(&key), Some(&value));
        builder.build()
    }

    /// The marker in `batch`; none if it is no control batch, holds no record, or a control record of another
    /// kind.
    ///
    /// # Errors
    /// [`BatchError::Control`] if key or value are too short or of a negative version; any fault of a record.
    pub fn read(batch: &Batch) -> Result<Option<Self>, BatchError> {
        if !batch.header.is_control() {
            return Ok(None);
        }
        let Some(record) = batch.records(LIMITS).next().transpose()? else {
            return Ok(None);
        };
        let key = record.key.as_deref().and_then(|key| key.first_chunk::<4>());
        let [v0, v1, t0, t1] = *key.ok_or(BatchError::Control)?;
        if i16::from_be_bytes([v0, v1]) < 0 {
            return Err(BatchError::Control);
        }
        let marker_type = match i16::from_be_bytes([t0, t1]) {
            ABORT => MarkerType::Abort,
            COMMIT => MarkerType::Commit,
            _ => return Ok(None),
        };
        let value = record.value.as_deref().and_then(|value| value.first_chunk::<6>());
        let [v0, v1, coordinator_epoch @ ..] = *value.ok_or(BatchError::Control)?;
        if i16::from_be_bytes([v0, v1]) < 0 {
            return Err(BatchError::Control);
        }
        Ok(Some(Self { marker_type, coordinator_epoch: i32::from_be_bytes(coordinator_epoch) }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::unhex;
    use super::*;
    use crate::types::{LeaderEpoch, Offset};

    const COMMIT_MARKER: &str = "00000000000000080000004200000003020203945600300000000000000000000003ee0000000000\
        0003ee00000000000003e80000ffffffff000000012000000008000000010c00000000000500";
    const EMPTIED: &str = "0000000000000008000000310000000302f85b9bda003000000000ffffffffffffffff00000000000003ee\
        00000000000003e80000ffffffff00000000";

    const COMMITTED: EndTxnMarker = EndTxnMarker { marker_type: MarkerType::Commit, coordinator_epoch: 5 };

    fn control(key: &[u8], value: &[u8]) -> Batch {
        let mut builder = BatchBuilder::new(Compression::None).producer(1, 0, -1).control(true);
        builder.append(Millis(0), Some(key), Some(value));
        builder.build().unwrap()
    }

    #[test]
    fn a_marker_is_written_byte_for_byte_and_read_back() {
        let batch = COMMITTED.to_batch(1000, 0, Millis(1006)).unwrap();
        let mut header = batch.header;
        header.base_offset = Offset(8);
        header.partition_leader_epoch = LeaderEpoch(3);
        assert_eq!([&header.to_bytes()[..], batch.body()].concat(), unhex(COMMIT_MARKER));
        assert_eq!(EndTxnMarker::read(&batch), Ok(Some(COMMITTED)));

        let aborted = EndTxnMarker { marker_type: MarkerType::Abort, coordinator_epoch: i32::MAX };
        let batch = aborted.to_batch(1, 2, Millis(3)).unwrap();
        assert_eq!(EndTxnMarker::read(&batch), Ok(Some(aborted)));
    }

    #[test]
    fn an_emptied_control_batch_holds_no_marker() {
        let batch = Batch::parse(&unhex(EMPTIED)).unwrap();
        assert_eq!(EndTxnMarker::read(&batch), Ok(None));
    }

    #[test]
    fn later_versions_are_read_as_the_first_and_other_kinds_are_passed_over() {
        let later = control(&[0, 9, 0, 1, 77], &[0, 9, 0, 0, 0, 5, 77]);
        assert_eq!(EndTxnMarker::read(&later), Ok(Some(COMMITTED)));
        assert_eq!(EndTxnMarker::read(&control(&[0, 0, 0, 2], &[])), Ok(None));
    }

    #[test]
    fn short_or_negative_control_records_are_refused() {
        let value = [0, 0, 0, 0, 0, 5];
        for (key, value) in [
            (&[0, 0, 0][..], &value[..]),
            (&[0xff, 0xff, 0, 1], &value),
            (&[0, 0, 0, 1], &value[..5]),
            (&[0, 0, 0, 1], &[0x80, 0, 0, 0, 0, 5]),
        ] {
            assert_eq!(EndTxnMarker::read(&control(key, value)), Err(BatchError::Control));
        }
    }
}
