//! What is kept of a group of segments, on its way into the one that takes their place.

use wire::batch::{Batch, BatchError, BatchHeader, Limits, NewHorizon, Retained};
use wire::types::{Millis, Now, Offset};

use super::super::CleanerSettings;
use super::super::offset_map::OffsetMap;
use super::super::transactions::{Marker, Transactions};
use super::super::verdict::{BatchVerdict, LastOfProducers, Records, judge_batch, keeps_record};
use super::{marker_of, unreadable};
use crate::segment::{CompactedSegment, Segment, SegmentError};

/// A group that is being written.
pub(super) struct Group<'a> {
    base: Offset,
    segment: CompactedSegment,
    map: &'a OffsetMap,
    now: Millis,
    /// The delete horizon of what gets one now.
    horizon: Millis,
    buffer_bytes: usize,
    /// Batches that wait to be written, and their headers.
    bytes: Vec<u8>,
    headers: Vec<BatchHeader>,
    /// The last batch, if nothing of it is kept.
    dropped: Option<Batch>,
    changed: bool,
    markers_dropped: bool,
    kept_bytes: u64,
    keyless_records: u64,
}

/// What a group came to.
pub(super) struct Done {
    /// The new segment; none if it would be the same as its only source.
    pub(super) segment: Option<Segment>,
    /// Whether markers were dropped or emptied.
    pub(super) markers_dropped: bool,
    pub(super) kept_bytes: u64,
    pub(super) keyless_records: u64,
}

impl<'a> Group<'a> {
    /// An empty group, to be written into `segment`.
    pub(super) fn new(
        segment: CompactedSegment,
        map: &'a OffsetMap,
        now: Now,
        delete_retention: Millis,
        settings: &CleanerSettings,
    ) -> Self {
        Self {
            base: segment.base(),
            segment,
            map,
            now: Millis(now.wall_ms),
            horizon: Millis(now.wall_ms.saturating_add(delete_retention.0)),
            buffer_bytes: settings.io_buffer_bytes,
            bytes: Vec::new(),
            headers: Vec::new(),
            dropped: None,
            changed: false,
            markers_dropped: false,
            kept_bytes: 0,
            keyless_records: 0,
        }
    }

    /// Takes the next batch of `source`; returns how many bytes were written meanwhile.
    pub(super) fn add(
        &mut self,
        source: &Segment,
        batch: Batch,
        txns: &mut Transactions,
        producers: &LastOfProducers,
    ) -> Result<usize, SegmentError> {
        if self.dropped.take().is_some() {
            self.changed = true;
        }
        let discardable = self.is_discardable(source, &batch, txns)?;
        let verdict = judge_batch(&batch.header, discardable, producers, self.now);
        let retained = self.retain(&batch, verdict);
        match retained.map_err(|error| unreadable(source, &batch, error))? {
            Retained::Unchanged => self.keep(&batch),
            Retained::Changed(left) => {
                self.changed = true;
                self.keep(&left);
            }
            Retained::Nothing => {
                self.markers_dropped |= batch.header.is_control() && batch.header.records_count > 0;
                if verdict.keep_empty {
                    let left = batch.emptied().map_err(|error| unreadable(source, &batch, error))?;
                    self.changed |= left.bytes != batch.bytes;
                    self.keep(&left);
                } else {
                    self.dropped = Some(batch);
                }
            }
        }
        if self.bytes.len() < self.buffer_bytes { Ok(0) } else { self.write() }
    }

    /// Whether nothing needs the records of the batch: they were aborted, or it is a marker of a transaction that is gone.
    fn is_discardable(
        &self,
        source: &Segment,
        batch: &Batch,
        txns: &mut Transactions,
    ) -> Result<bool, SegmentError> {
        if !batch.header.is_control() {
            return Ok(txns.on_data(&batch.header));
        }
        Ok(match txns.on_control(&batch.header, marker_of(source, batch)?) {
            Marker::Free => true,
            Marker::Needed(None) => false,
            Marker::Needed(Some(aborted)) => {
                self.segment.append_aborted(&aborted)?;
                false
            }
        })
    }

    fn retain(&mut self, batch: &Batch, verdict: BatchVerdict) -> Result<Retained, BatchError> {
        let horizon = NewHorizon { at: self.horizon, always: verdict.starts_horizon };
        let limits = Limits::default();
        match verdict.records {
            Records::Drop => Ok(Retained::Nothing),
            Records::Keep => batch.retain(limits, horizon, |_| true),
            Records::Judge => {
                let (map, now, keyless) = (self.map, self.now, &mut self.keyless_records);
                batch.retain(limits, horizon, |record| {
                    let keeps = keeps_record(&batch.header, record, map, now);
                    *keyless = keyless.saturating_add(u64::from(!keeps && record.key.is_none()));
                    keeps
                })
            }
        }
    }

    fn keep(&mut self, batch: &Batch) {
        self.bytes.extend_from_slice(&batch.bytes);
        self.headers.push(batch.header);
    }

    fn write(&mut self) -> Result<usize, SegmentError> {
        let written = self.bytes.len();
        self.segment.append(&self.headers, &self.bytes)?;
        self.kept_bytes = self.kept_bytes.saturating_add(written as u64);
        self.bytes.clear();
        self.headers.clear();
        Ok(written)
    }

    /// Ends the segment that was made from `sources` segments, durable. `modified` is when the last of them was changed.
    pub(super) fn finish(mut self, sources: usize, modified: Millis) -> Result<Done, SegmentError> {
        if let Some(last) = self.dropped.take() {
            let (base, offset) = (self.base, last.header.base_offset);
            let place = last.placeholder();
            let place = place.map_err(|error| SegmentError::Batch { base, offset, error })?;
            self.changed |= place.bytes != last.bytes;
            self.keep(&place);
        }
        self.write()?;
        let Self { segment, changed, markers_dropped, kept_bytes, keyless_records, .. } = self;
        let segment = if changed || sources > 1 {
            Some(segment.finish(modified)?)
        } else {
            segment.discard()?;
            None
        };
        Ok(Done { segment, markers_dropped, kept_bytes, keyless_records })
    }

    /// Removes what was written.
    pub(super) fn discard(self) -> Result<(), SegmentError> {
        self.segment.discard()
    }
}
