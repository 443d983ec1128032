//! Appending: the checks that need no lock, then under the writer lock offsets, epochs, rolling, producers, and
//! one write for all requests that wait.
//!
//! The order of checks is Kafka's: a batch that is refused for its producer may still have rolled the segment.

use bytes::Bytes;
use wire::batch::validate::{
    AnalyzeRules, AppendOrigin, Validated, ValidationError, analyze, validate_produce,
};
use wire::batch::{Batch, BatchError, BatchHeader};
use wire::types::{LeaderEpoch, Millis, Now, Offset};

use super::group::{Group, Item};
use super::{AppendError, PartitionLog, Writer};
use crate::log_config::LogConfig;
use crate::sync::lock;

/// Records for a partition that this broker leads, from one request.
#[derive(Clone, Debug)]
pub struct LeaderAppend {
    /// One batch, as it arrived.
    pub records: Bytes,
    /// Who hands it in: a client or a coordinator.
    pub origin: AppendOrigin,
}

/// What became of appended records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendInfo {
    /// The offset of the first record (inclusive); -1 if there was none.
    pub base_offset: Offset,
    /// The offset of the last record (inclusive); -1 if there was none.
    pub last_offset: Offset,
    /// The time that the broker gave to the records, or the timestamp of the batch that was repeated; -1 if the
    /// producer's timestamps stand.
    pub log_append_time: Millis,
    /// The log start at the end of the append.
    pub log_start: Offset,
    /// Whether the producer repeated a batch, so that nothing was appended.
    pub duplicate: bool,
}

impl AppendInfo {
    pub(super) fn nothing(log_start: Offset) -> Self {
        Self {
            base_offset: Offset::UNKNOWN,
            last_offset: Offset::UNKNOWN,
            log_append_time: Millis(-1),
            log_start,
            duplicate: false,
        }
    }
}

/// The result for each request of a group, filled in one by one.
pub(super) type Outcomes = Vec<Option<Result<AppendInfo, AppendError>>>;

impl PartitionLog {
    /// Appends the records of one request, see [`append_many_as_leader`](Self::append_many_as_leader).
    pub fn append_as_leader(
        &self,
        records: Bytes,
        origin: AppendOrigin,
        leader_epoch: LeaderEpoch,
        now: Now,
    ) -> Result<AppendInfo, AppendError> {
        let request = LeaderAppend { records, origin };
        let mut results = self.append_many_as_leader(vec![request], leader_epoch, now);
        results.pop().unwrap_or(Err(AppendError::Closed))
    }

    /// Appends the records of several requests in their order, with one write as far as they fit into one
    /// segment. Each is judged for itself, and sees what those before it changed. There are as many results as
    /// requests. Records that were appended are visible when this returns, up to the caller's high watermark.
    pub fn append_many_as_leader(
        &self,
        requests: Vec<LeaderAppend>,
        leader_epoch: LeaderEpoch,
        now: Now,
    ) -> Vec<Result<AppendInfo, AppendError>> {
        let mut outcomes: Outcomes = vec![None; requests.len()];
        let config = self.config();
        let mut items = Vec::with_capacity(requests.len());
        for (slot, (request, outcome)) in requests.into_iter().zip(&mut outcomes).enumerate() {
            match prepare(request, &config, now) {
                Ok(Some((batch, origin, marker))) => items.push(Item::new(slot, batch, origin, marker)),
                Ok(None) => *outcome = Some(Ok(AppendInfo::nothing(self.positions().log_start))),
                Err(error) => *outcome = Some(Err(error)),
            }
        }
        if !items.is_empty() {
            self.append_items(items, leader_epoch, &config, now, &mut outcomes);
        }
        // Every item fills its slot; a slot that stays empty would be a defect of the group.
        outcomes.into_iter().map(|outcome| outcome.unwrap_or(Err(AppendError::Closed))).collect()
    }

    fn append_items(
        &self,
        items: Vec<Item>,
        leader_epoch: LeaderEpoch,
        config: &LogConfig,
        now: Now,
        outcomes: &mut Outcomes,
    ) {
        let mut writer = lock(&self.writer);
        let mut group = Group::new(self.positions().log_end);
        for mut item in items {
            let slot = item.slot;
            item.batch.stamp(group.next_offset(), leader_epoch);
            if let Err(error) = self.admit(&mut writer, &mut group, item, config, now, outcomes)
                && let Some(outcome) = outcomes.get_mut(slot)
            {
                *outcome = Some(Err(error));
            }
        }
        self.write_group(&mut writer, &mut group, now, outcomes);
        drop(writer);
        self.flush_if_due(config, outcomes);
    }

    /// Puts a stamped batch into the group, or fills its slot with the reason why not. The group is written
    /// first if a new segment must begin.
    fn admit(
        &self,
        writer: &mut Writer,
        group: &mut Group,
        item: Item,
        config: &LogConfig,
        now: Now,
        outcomes: &mut Outcomes,
    ) -> Result<(), AppendError> {
        self.check()?;
        if writer.closed {
            return Err(AppendError::Closed);
        }
        let size = item.batch.size_in_bytes();
        let header = item.batch.header;
        if i64::from(header.last_offset_delta) >= i64::MAX - header.base_offset.0 {
            return Err(AppendError::NoOffsetsLeft);
        }
        self.assign_epoch_of(writer, &header)?;
        if size as u64 > u64::from(config.segment_bytes) {
            return Err(AppendError::RecordListTooLarge { size, limit: config.segment_bytes });
        }
        if let Some(reason) = self.roll_reason(writer, group, &header, size, config, now)? {
            self.write_group(writer, group, now, outcomes);
            self.check()?;
            self.roll_to(writer, (header.base_offset, header.last_offset()), reason, config, now)?;
        }
        if let Some(batch) = item.producer_batch() {
            self.recall_if_forgotten(writer, &batch, item.origin)?;
        }
        group.push(writer, item, outcomes, self.positions().log_start);
        Ok(())
    }

    /// Enters the batch's epoch; already there unless the batch is a leader's, copied to this follower.
    pub(super) fn assign_epoch_of(
        &self,
        writer: &mut Writer,
        header: &BatchHeader,
    ) -> Result<(), AppendError> {
        let (epoch, start) = (header.partition_leader_epoch, header.base_offset);
        let changed = writer.epochs.change(&self.dir, |history| history.assign(epoch, start));
        self.guard_io("write the leader epochs of", changed)?;
        Ok(())
    }
}

type Prepared = (Validated, AppendOrigin, Option<wire::batch::control::EndTxnMarker>);

/// The checks that need no lock. `None` if there is no whole batch.
fn prepare(request: LeaderAppend, config: &LogConfig, now: Now) -> Result<Option<Prepared>, AppendError> {
    let LeaderAppend { records, origin } = request;
    let rules = AnalyzeRules { origin, max_message_bytes: config.max_message_bytes() };
    let Some(analysis) = analyze(records, &rules)? else { return Ok(None) };
    let batch = analysis.only_batch()?;
    let validated = validate_produce(batch, &config.produce_rules(origin), Millis(now.wall_ms))?;
    let marker = read_marker(batch).map_err(AppendError::Control)?;
    Ok(Some((validated, origin, marker)))
}

/// The marker of a control batch.
pub(super) fn read_marker(batch: &Batch) -> Result<Option<wire::batch::control::EndTxnMarker>, BatchError> {
    if batch.header.is_control() { wire::batch::control::EndTxnMarker::read(batch) } else { Ok(None) }
}

impl From<BatchError> for AppendError {
    fn from(error: BatchError) -> Self {
        Self::Invalid(ValidationError::from(error))
    }
}
