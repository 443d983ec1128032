//! Batches of several requests that are written together.
//!
//! A batch enters the group with its offset, after its producer was judged against the log and the batches
//! before it in the group. Nothing else of the log changes until the one write has succeeded; if it fails, every
//! request of the group fails.

use std::io::IoSlice;

use kernel::producer::{AppendOrigin, BatchMetadata, PendingUpdates, ProducerBatch, Verdict};
use wire::batch::control::EndTxnMarker;
use wire::batch::validate::Validated;
use wire::batch::{BatchHeader, HEADER_LEN};
use wire::types::{Millis, Now, Offset};

use super::append::{AppendInfo, Outcomes};
use super::state::producer_batch;
use super::{AppendError, PartitionLog, Writer};
use crate::dir_health::StorageError;
use crate::log_config::LogConfig;
use crate::segment::{AppendSet, RollParams, RollReason, Segment, must_roll};

/// A batch of one request, checked.
pub(super) struct Item {
    /// Which request it is.
    pub(super) slot: usize,
    pub(super) batch: Validated,
    pub(super) origin: AppendOrigin,
    marker: Option<EndTxnMarker>,
}

impl Item {
    pub(super) fn new(
        slot: usize,
        batch: Validated,
        origin: AppendOrigin,
        marker: Option<EndTxnMarker>,
    ) -> Self {
        Self { slot, batch, origin, marker }
    }

    /// The batch as the rules of producers see it; none if it names no producer.
    pub(super) fn producer_batch(&self) -> Option<ProducerBatch> {
        producer_batch(&self.batch.header, self.marker)
    }
}

/// The batches that wait for one write.
pub(super) struct Group {
    next_offset: Offset,
    items: Vec<Item>,
    bytes: u64,
    updates: PendingUpdates,
    /// Requests that repeat a batch, which may itself wait in this group.
    repeated: Vec<(usize, AppendInfo)>,
}

impl Group {
    /// An empty group of a log that ends at `log_end`.
    pub(super) fn new(log_end: Offset) -> Self {
        Self {
            next_offset: log_end,
            items: Vec::new(),
            bytes: 0,
            updates: PendingUpdates::new(),
            repeated: Vec::new(),
        }
    }

    /// The offset of the next batch.
    pub(super) fn next_offset(&self) -> Offset {
        self.next_offset
    }

    /// Takes a batch in, or fills its slot if the producer's state does not allow it.
    pub(super) fn push(&mut self, writer: &Writer, item: Item, outcomes: &mut Outcomes, log_start: Offset) {
        if let Some(batch) = item.producer_batch() {
            match self.updates.judge(&writer.producers, &batch, item.origin) {
                Verdict::Accepted => {}
                Verdict::Duplicate(known) => {
                    self.repeated.push((item.slot, repeated(&known, log_start)));
                    return;
                }
                Verdict::Rejected(rejection) => {
                    let error = AppendError::Producer { producer_id: batch.producer_id, rejection };
                    fill(outcomes, item.slot, Err(error));
                    return;
                }
            }
        }
        self.next_offset = item.batch.last_offset().plus(1);
        self.bytes = self.bytes.saturating_add(item.batch.size_in_bytes() as u64);
        self.items.push(item);
    }

    /// One write for all items.
    fn write(&self, segment: &Segment) -> Result<(), crate::segment::SegmentError> {
        let headers: Vec<[u8; HEADER_LEN]> =
            self.items.iter().map(|item| item.batch.header_bytes()).collect();
        let mut slices = Vec::with_capacity(headers.len().saturating_mul(2));
        for (header, item) in headers.iter().zip(&self.items) {
            slices.push(IoSlice::new(header));
            slices.push(IoSlice::new(&item.batch.body));
        }
        let sets = self.items.iter().zip(slices.chunks(2));
        let sets: Vec<AppendSet<'_>> =
            sets.map(|(item, slices)| set_of(&item.batch.header, slices)).collect();
        segment.append_group(&slices, &sets)
    }
}

fn set_of<'a>(header: &BatchHeader, slices: &'a [IoSlice<'a>]) -> AppendSet<'a> {
    AppendSet {
        first_offset: header.base_offset,
        last_offset: header.last_offset(),
        max_timestamp: header.max_timestamp,
        offset_of_max_timestamp: header.last_offset(),
        slices,
    }
}

fn repeated(known: &BatchMetadata, log_start: Offset) -> AppendInfo {
    AppendInfo {
        base_offset: known.first_offset(),
        last_offset: known.last_offset,
        log_append_time: Millis(known.timestamp),
        log_start,
        duplicate: true,
    }
}

fn fill(outcomes: &mut Outcomes, slot: usize, outcome: Result<AppendInfo, AppendError>) {
    if let Some(place) = outcomes.get_mut(slot) {
        *place = Some(outcome);
    }
}

impl PartitionLog {
    /// Why a new segment must begin before a batch of `size` bytes joins the group, if it must.
    pub(super) fn roll_reason(
        &self,
        writer: &mut Writer,
        group: &Group,
        header: &BatchHeader,
        size: usize,
        config: &LogConfig,
        now: Now,
    ) -> Result<Option<RollReason>, StorageError> {
        self.ready_active(writer)?;
        let Some(active) = self.active() else { return Ok(None) };
        let mut state = self.guard("roll", active.roll_state(writer.jitter))?;
        if let Some(first) = group.items.first() {
            if state.size == 0 {
                state.first_timestamp = Some(first.batch.max_timestamp());
            }
            state.size = state.size.saturating_add(group.bytes);
            state.index_full |= self.guard("roll", active.free_index_entries())? <= group.items.len();
        }
        let params = RollParams {
            max_segment_bytes: u64::from(config.segment_bytes),
            max_segment_ms: config.roll_after(),
            incoming_bytes: size as u64,
            incoming_max_timestamp: header.max_timestamp,
            incoming_last_offset: header.last_offset(),
            now: Millis(now.wall_ms),
        };
        Ok(must_roll(&state, &params))
    }

    /// Writes the group and fills the slots of its requests; it is empty afterwards.
    pub(super) fn write_group(
        &self,
        writer: &mut Writer,
        group: &mut Group,
        now: Now,
        outcomes: &mut Outcomes,
    ) {
        let written = std::mem::replace(group, Group::new(group.next_offset));
        let result =
            if written.items.is_empty() { self.check() } else { self.write_items(writer, &written, now) };
        let applied = match result {
            Ok(()) if !written.items.is_empty() => {
                self.records_written(writer, written.updates, written.next_offset)
            }
            other => other,
        };
        let log_start = self.positions().log_start;
        for item in &written.items {
            let info = AppendInfo {
                base_offset: item.batch.header.base_offset,
                last_offset: item.batch.last_offset(),
                log_append_time: item.batch.log_append_time.unwrap_or(Millis(-1)),
                log_start,
                duplicate: false,
            };
            fill(outcomes, item.slot, applied.clone().map(|()| info).map_err(AppendError::from));
        }
        for (slot, info) in written.repeated {
            fill(outcomes, slot, applied.clone().map(|()| info).map_err(AppendError::from));
        }
    }

    fn write_items(&self, writer: &mut Writer, group: &Group, now: Now) -> Result<(), StorageError> {
        self.check()?;
        let Some(active) = self.active() else { return Ok(()) };
        self.guard("append to", group.write(&active))?;
        writer.unflushed_since.get_or_insert(Millis(now.mono_ms));
        Ok(())
    }
}
