//! Appending what a leader sent to its follower: the bytes as they are, with the leader's offsets and epochs.

use std::io::IoSlice;

use bytes::Bytes;
use kernel::producer::PendingUpdates;
use wire::batch::validate::{Analysis, AnalyzeRules, AppendOrigin, analyze};
use wire::batch::{Batch, batches};
use wire::types::{LeaderEpoch, Millis, Now, Offset};

use super::append::read_marker;
use super::state::producer_batch;
use super::{AppendError, AppendInfo, PartitionLog, Writer};
use crate::log_config::LogConfig;
use crate::segment::{AppendSet, RollParams, must_roll};
use crate::sync::lock;

impl PartitionLog {
    /// Appends whole batches; a cut one at the end is left out, and so is a batch of a later leader epoch than `epoch`,
    /// the one in which they were fetched, with all that follows it: the leader may have been replaced and cut its log
    /// while it answered (KAFKA-18723).
    ///
    /// # Errors
    /// [`AppendError::OffsetsOutOfOrder`] if the batches' offsets do not rise, [`AppendError::UnexpectedOffset`]
    /// if they begin below the log end; nothing is appended then.
    pub fn append_as_follower(
        &self,
        records: Bytes,
        epoch: LeaderEpoch,
        now: Now,
    ) -> Result<AppendInfo, AppendError> {
        let records = up_to_epoch(records, epoch);
        let rules = AnalyzeRules { origin: AppendOrigin::Replication, max_message_bytes: usize::MAX };
        let Some(analysis) = analyze(records.clone(), &rules)? else {
            return Ok(AppendInfo::nothing(self.positions().log_start));
        };
        let records = records.slice(..analysis.valid_bytes);
        let batches: Vec<Batch> = batches(records.clone()).collect::<Result<_, _>>()?;
        let config = self.config();
        let mut writer = lock(&self.writer);
        self.check()?;
        if writer.closed {
            return Err(AppendError::Closed);
        }
        let log_end = self.positions().log_end;
        let (first, last) = (analysis.first_offset(), analysis.last_offset);
        if !analysis.offsets_monotonic {
            return Err(AppendError::OffsetsOutOfOrder);
        }
        if first < log_end {
            return Err(AppendError::UnexpectedOffset { first, last, log_end });
        }
        if last.0 == i64::MAX {
            return Err(AppendError::NoOffsetsLeft);
        }
        for batch in batches.iter().filter(|batch| batch.header.partition_leader_epoch.0 >= 0) {
            self.assign_epoch_of(&mut writer, &batch.header)?;
        }
        if records.len() as u64 > u64::from(config.segment_bytes) {
            return Err(AppendError::RecordListTooLarge { size: records.len(), limit: config.segment_bytes });
        }
        self.roll_for(&mut writer, &analysis, &config, now)?;
        let updates = updates_of(&writer, &batches)?;
        self.write_set(&mut writer, &records, &analysis, now)?;
        self.records_written(&mut writer, updates, last.plus(1))?;
        let log_start = self.positions().log_start;
        drop(writer);
        let info = AppendInfo {
            base_offset: first,
            last_offset: last,
            log_append_time: Millis(-1),
            log_start,
            duplicate: false,
        };
        let mut outcome = vec![Some(Ok(info))];
        self.flush_if_due(&config, &mut outcome);
        outcome.pop().flatten().unwrap_or(Err(AppendError::Closed))
    }

    fn roll_for(
        &self,
        writer: &mut Writer,
        analysis: &Analysis,
        config: &LogConfig,
        now: Now,
    ) -> Result<(), AppendError> {
        self.ready_active(writer)?;
        let Some(active) = self.active() else { return Ok(()) };
        let params = RollParams {
            max_segment_bytes: u64::from(config.segment_bytes),
            max_segment_ms: config.roll_after(),
            incoming_bytes: analysis.valid_bytes as u64,
            incoming_max_timestamp: analysis.max_timestamp,
            incoming_last_offset: analysis.last_offset,
            now: Millis(now.wall_ms),
        };
        let state = self.guard("roll", active.roll_state(writer.jitter))?;
        if let Some(reason) = must_roll(&state, &params) {
            let batches = (analysis.first_offset(), analysis.last_offset);
            self.roll_to(writer, batches, reason, config, now)?;
        }
        Ok(())
    }

    fn write_set(
        &self,
        writer: &mut Writer,
        records: &Bytes,
        analysis: &Analysis,
        now: Now,
    ) -> Result<(), AppendError> {
        let Some(active) = self.active() else { return Ok(()) };
        let shallow = analysis.shallow_offset_of_max_timestamp;
        let set = AppendSet {
            first_offset: analysis.first_offset(),
            last_offset: analysis.last_offset,
            max_timestamp: analysis.max_timestamp,
            offset_of_max_timestamp: if shallow == Offset::UNKNOWN { analysis.last_offset } else { shallow },
            slices: &[IoSlice::new(records)],
        };
        self.guard("append to", active.append(&set).map(|_| ()))?;
        writer.unflushed_since.get_or_insert(Millis(now.mono_ms));
        Ok(())
    }
}

/// The batches before the first one of a later leader epoch.
fn up_to_epoch(records: Bytes, epoch: LeaderEpoch) -> Bytes {
    let mut kept = 0;
    for batch in batches(records.clone()) {
        match batch {
            Ok(batch) if batch.header.partition_leader_epoch > epoch => {
                tracing::info!(
                    base_offset = %batch.header.base_offset, its = %batch.header.partition_leader_epoch, ours = %epoch,
                    "a batch of a later leader epoch is left out"
                );
                return records.slice(..kept);
            }
            Ok(batch) => kept += batch.bytes.len(),
            // What is wrong with it is found when it is checked.
            Err(_) => break,
        }
    }
    records
}

/// The effects of the batches on their producers, by the rules of replication: none is refused.
fn updates_of(writer: &Writer, batches: &[Batch]) -> Result<PendingUpdates, AppendError> {
    let mut updates = PendingUpdates::new();
    for batch in batches {
        let marker = read_marker(batch).map_err(AppendError::Control)?;
        if let Some(batch) = producer_batch(&batch.header, marker) {
            updates.judge(&writer.producers, &batch, AppendOrigin::Replication);
        }
    }
    Ok(updates)
}
