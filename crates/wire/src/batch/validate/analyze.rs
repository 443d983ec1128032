//! The checks that need no lock: can the batches be split, are they whole, what do they span.

use bytes::Bytes;

use super::super::{Batch, BatchError, CompressionType, NO_TIMESTAMP, batches};
use super::ValidationError;
use crate::types::{LeaderEpoch, Millis, Offset};

/// Who hands records to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AppendOrigin {
    /// A producer, by a Produce request.
    Client,
    /// This broker's group or transaction coordinator, on a partition that it leads.
    Coordinator,
    /// The partition's leader, by the fetcher.
    Replication,
}

/// What [`analyze`] needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnalyzeRules {
    /// Who hands in the records.
    pub origin: AppendOrigin,
    /// `max.message.bytes`: the most bytes of one batch, as it arrived. Not applied to replication.
    pub max_message_bytes: usize,
}

/// What a run of whole batches spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// The first batch.
    pub first: Batch,
    /// The number of batches.
    pub batch_count: usize,
    /// The bytes of the whole batches; a partial one behind them is left out.
    pub valid_bytes: usize,
    /// The last offset of the last batch, as the batches say.
    pub last_offset: Offset,
    /// The leader epoch of the last batch.
    pub last_leader_epoch: LeaderEpoch,
    /// The largest timestamp that the batch headers tell.
    pub max_timestamp: Millis,
    /// The last offset of the first batch with that timestamp; -1 if no batch has a timestamp.
    pub shallow_offset_of_max_timestamp: Offset,
    /// The codec of the last batch that is compressed, or none.
    pub source_compression: CompressionType,
    /// Whether each batch's last offset is beyond that of the batch before.
    pub offsets_monotonic: bool,
}

impl Analysis {
    /// The base offset of the first batch.
    pub fn first_offset(&self) -> Offset {
        self.first.header.base_offset
    }

    /// The batch, as a leader takes them: one at a time.
    ///
    /// # Errors
    /// [`ValidationError::SeveralBatches`].
    pub fn only_batch(&self) -> Result<&Batch, ValidationError> {
        match self.batch_count {
            1 => Ok(&self.first),
            count => Err(ValidationError::SeveralBatches(count)),
        }
    }

    fn of(batch: Batch) -> Self {
        Self {
            batch_count: 0,
            valid_bytes: 0,
            last_offset: Offset(-1),
            last_leader_epoch: LeaderEpoch::UNKNOWN,
            max_timestamp: NO_TIMESTAMP,
            shallow_offset_of_max_timestamp: Offset::UNKNOWN,
            source_compression: CompressionType::None,
            offsets_monotonic: true,
            first: batch,
        }
    }

    fn add(&mut self, batch: &Batch) -> Result<(), BatchError> {
        let last_offset = batch.header.last_offset();
        self.offsets_monotonic &= self.batch_count == 0 || last_offset > self.last_offset;
        self.last_offset = last_offset;
        self.last_leader_epoch = batch.header.partition_leader_epoch;
        if batch.header.max_timestamp > self.max_timestamp {
            self.max_timestamp = batch.header.max_timestamp;
            self.shallow_offset_of_max_timestamp = last_offset;
        }
        let compression = batch.header.compression()?;
        if compression != CompressionType::None {
            self.source_compression = compression;
        }
        self.batch_count += 1;
        self.valid_bytes += batch.bytes.len();
        Ok(())
    }
}

/// Checks each batch of `records`: base offset (of a client's), size (unless replicated), checksum, codec. None
/// if there is no whole batch.
///
/// # Errors
/// The first fault, see [`ValidationError::rejection`].
pub fn analyze(records: Bytes, rules: &AnalyzeRules) -> Result<Option<Analysis>, ValidationError> {
    let mut analysis: Option<Analysis> = None;
    for batch in batches(records) {
        let batch = batch?;
        check_batch(&batch, rules)?;
        match &mut analysis {
            Some(analysis) => analysis.add(&batch)?,
            None => {
                let mut first = Analysis::of(batch.clone());
                first.add(&batch)?;
                analysis = Some(first);
            }
        }
    }
    Ok(analysis)
}

fn check_batch(batch: &Batch, rules: &AnalyzeRules) -> Result<(), ValidationError> {
    if rules.origin == AppendOrigin::Client && batch.header.base_offset != Offset(0) {
        return Err(ValidationError::BaseOffset(batch.header.base_offset.0));
    }
    let size = batch.bytes.len();
    if rules.origin != AppendOrigin::Replication && size > rules.max_message_bytes {
        return Err(ValidationError::TooLarge { size, limit: rules.max_message_bytes });
    }
    Ok(batch.verify_crc()?)
}
