//! One pass over one log: the latest offsets of the dirty part, then every group of segments written anew without what
//! they make superfluous.
//!
//! A compacted segment ends with the offset that its sources ended with: if the last batch is gone, an empty one without
//! a producer holds its place. So segments never end before the next begins but where the log has gaps anyway, and the
//! range that a `.swap` file stands for after a crash covers all that it replaces.

use std::sync::Arc;

use wire::batch::control::{EndTxnMarker, MarkerType};
use wire::batch::{Batch, BatchError, Limits};
use wire::types::{Now, Offset};

use super::batch_reader::BatchReader;
use super::choice::Cleanable;
use super::grouping::{Room, Source, groups};
use super::offset_map::{ENTRY_BYTES, OffsetMap};
use super::transactions::Transactions;
use super::{CleanerSettings, Pace, PassReport};
use crate::partition_log::{CompactionError, CompactionView, PartitionLog};
use crate::segment::{Segment, SegmentError};
use crate::txn_index::AbortedTxn;
use group::Group;

mod group;

/// What is at hand while a pass runs.
struct Pass<'a> {
    log: &'a PartitionLog,
    view: CompactionView,
    settings: &'a CleanerSettings,
    pace: &'a dyn Pace,
    now: Now,
    /// Bytes since the pace was asked last.
    unpaced: u64,
    report: PassReport,
}

/// Compacts what `found` says of `log`, as far as the memory for offsets reaches.
///
/// # Errors
/// If the pass ends early; what was replaced until then stays so.
pub(crate) fn compact(
    log: &PartitionLog,
    found: &Cleanable,
    settings: &CleanerSettings,
    pace: &dyn Pace,
    now: Now,
) -> Result<PassReport, CompactionError> {
    let report = PassReport {
        partition: log.partition().clone(),
        first_dirty: found.first_dirty,
        clean_end: found.first_dirty,
        indexed_bytes: 0,
        read_bytes: 0,
        kept_bytes: 0,
        keyless_records: 0,
        buffer_utilization: 0.0,
    };
    let mut pass = Pass { log, view: log.begin_compaction()?, settings, pace, now, unpaced: 0, report };
    if found.first_uncleanable <= found.first_dirty {
        return Ok(pass.report);
    }
    let map = pass.find_latest(found)?;
    let end = map.latest().plus(1).max(found.first_dirty);
    pass.rewrite(&map, end)?;
    log.note_compacted(&pass.view, end);
    pass.report.clean_end = end;
    Ok(pass.report)
}

impl Pass<'_> {
    /// Why the pass ends that met this error.
    fn failed(&self, error: SegmentError) -> CompactionError {
        self.log.compaction_failed(&self.view, error)
    }

    /// Bytes were read or written. Fails if the pass is to end.
    fn spend(&mut self, bytes: usize) -> Result<(), CompactionError> {
        self.unpaced = self.unpaced.saturating_add(bytes as u64);
        if self.unpaced < self.settings.io_buffer_bytes as u64 {
            return Ok(());
        }
        let may_go_on = self.pace.spend(std::mem::take(&mut self.unpaced));
        if may_go_on && self.log.may_compact(&self.view) { Ok(()) } else { Err(CompactionError::Aborted) }
    }

    /// The segment number `at`, and where the next one begins.
    fn segment(&self, at: usize) -> Option<(Arc<Segment>, Offset)> {
        let segment = self.view.segments.get(at)?.clone();
        let next = self.view.segments.get(at.saturating_add(1))?.base();
        Some((segment, next))
    }

    /// The latest offsets of the keys in the dirty part, or in as much of it as there is memory for.
    fn find_latest(&mut self, found: &Cleanable) -> Result<OffsetMap, CompactionError> {
        let mut map = self.new_map(found);
        let mut txns = Transactions::default();
        let dirty = |segment: &Arc<Segment>| segment.base() <= found.first_dirty;
        let mut at = self.view.segments.partition_point(dirty).saturating_sub(1);
        while let Some((segment, next)) = self.segment(at)
            && segment.base() < found.first_uncleanable
        {
            txns.know_aborted(self.aborted_in(at)?);
            if !self.add_latest(&segment, found.first_dirty, &mut txns, &mut map)? {
                break;
            }
            // Past a gap at the end of the segment (KAFKA-8764).
            map.cover(next.plus(-1));
            at = at.saturating_add(1);
        }
        let most = self.settings.dedupe_buffer_bytes / ENTRY_BYTES;
        self.report.buffer_utilization = map.len() as f64 / most.max(1) as f64;
        Ok(map)
    }

    /// A map with room for each offset of the dirty part, but no more than there is memory for.
    fn new_map(&self, found: &Cleanable) -> OffsetMap {
        let most = self.settings.dedupe_buffer_bytes / ENTRY_BYTES;
        let offsets = found.first_uncleanable.0.saturating_sub(found.first_dirty.0).max(0);
        let wanted = offsets as f64 / self.settings.load_factor.clamp(0.1, 1.0) + 2.0;
        // A cast keeps what is too large at the largest number.
        let slots = usize::try_from(most.min(wanted as u64)).unwrap_or(usize::MAX);
        OffsetMap::new(slots, self.settings.load_factor)
    }

    /// Adds the keys of a segment from `first_dirty` on; false if the map is full.
    fn add_latest(
        &mut self,
        segment: &Segment,
        first_dirty: Offset,
        txns: &mut Transactions,
        map: &mut OffsetMap,
    ) -> Result<bool, CompactionError> {
        let start = if first_dirty <= segment.base() {
            Some(0)
        } else {
            let found = segment.find_batch(first_dirty).map_err(|error| self.failed(error))?;
            found.map(|batch| batch.position)
        };
        let Some(start) = start else { return Ok(true) };
        let mut reader = BatchReader::new(segment, start, self.settings.io_buffer_bytes)
            .map_err(|error| self.failed(error))?;
        while let Some(batch) = reader.next().map_err(|error| self.failed(error))? {
            self.spend(batch.bytes.len())?;
            self.report.indexed_bytes = self.report.indexed_bytes.saturating_add(batch.bytes.len() as u64);
            let header = &batch.header;
            if header.is_control() {
                let marker = marker_of(segment, &batch).map_err(|error| self.failed(error))?;
                txns.on_control(header, marker);
            } else if !txns.on_data(header) {
                let mut is_full = false;
                let visited = batch.visit_keys(Limits::default(), |record| {
                    if let (false, Some(key)) = (is_full || record.offset < first_dirty, record.key) {
                        is_full = !map.put(key, record.offset);
                    }
                });
                visited.map_err(|error| self.failed(unreadable(segment, &batch, error)))?;
                if is_full {
                    return Ok(false);
                }
            }
            map.cover(header.last_offset());
        }
        Ok(true)
    }

    /// The aborted transactions that may have something in segment number `at`.
    fn aborted_in(&self, at: usize) -> Result<Vec<AbortedTxn>, CompactionError> {
        let Some((segment, next)) = self.segment(at) else { return Ok(Vec::new()) };
        let mut aborted = Vec::new();
        for later in self.view.segments.iter().skip(at) {
            let found = later.txn_index().aborted_in(segment.base(), next);
            let found = found.map_err(|error| SegmentError::TxnIndex { base: later.base(), error });
            let found = found.map_err(|error| self.failed(error))?;
            aborted.extend(found.aborted);
            if found.complete {
                break;
            }
        }
        Ok(aborted)
    }

    /// Writes all segments below `end` anew.
    fn rewrite(&mut self, map: &OffsetMap, end: Offset) -> Result<(), CompactionError> {
        let config = self.log.config();
        let sources = self.sources(end)?;
        let room =
            Room { log: u64::from(config.segment_bytes), index: u64::from(config.segment_index_bytes) };
        let mut txns = Transactions::default();
        for numbers in groups(&sources, room) {
            let Some(first) = sources.get(numbers.start) else { break };
            let begun = self.log.begin_compacted(first.base, self.now);
            let begun = begun.map_err(|error| self.failed(error))?;
            let mut group = Group::new(begun, map, self.now, config.delete_retention_ms, self.settings);
            if let Err(error) = self.copy(numbers.clone(), &mut group, &mut txns) {
                // The first error counts; what is left is removed by the next pass, or the next start.
                drop(group.discard());
                return Err(error);
            }
            self.put_in_place(numbers, group)?;
        }
        Ok(())
    }

    fn sources(&self, end: Offset) -> Result<Vec<Source>, CompactionError> {
        let mut sources = Vec::new();
        while let Some((segment, next_base)) = self.segment(sources.len())
            && segment.base() < end
        {
            let (offset_index, time_index) = segment.index_sizes().map_err(|error| self.failed(error))?;
            let (base, size) = (segment.base(), segment.size());
            sources.push(Source { base, next_base, size, offset_index, time_index });
        }
        Ok(sources)
    }

    /// Copies what is kept of the segments with these numbers.
    fn copy(
        &mut self,
        numbers: std::ops::Range<usize>,
        group: &mut Group<'_>,
        txns: &mut Transactions,
    ) -> Result<(), CompactionError> {
        for at in numbers {
            let Some((segment, _)) = self.segment(at) else { break };
            txns.know_aborted(self.aborted_in(at)?);
            let mut reader = BatchReader::new(&segment, 0, self.settings.io_buffer_bytes)
                .map_err(|error| self.failed(error))?;
            while let Some(batch) = reader.next().map_err(|error| self.failed(error))? {
                let size = batch.bytes.len();
                self.report.read_bytes = self.report.read_bytes.saturating_add(size as u64);
                let added = group.add(&segment, batch, txns, &self.view.producers);
                let written = added.map_err(|error| self.failed(error))?;
                self.spend(size.saturating_add(written))?;
            }
        }
        Ok(())
    }

    fn put_in_place(
        &mut self,
        numbers: std::ops::Range<usize>,
        group: Group<'_>,
    ) -> Result<(), CompactionError> {
        let sources: Vec<Arc<Segment>> = self.view.segments.get(numbers).unwrap_or_default().to_vec();
        let modified = match sources.last() {
            Some(last) => last.modified().map_err(|error| self.failed(error))?,
            None => return Ok(()),
        };
        let done = group.finish(sources.len(), modified).map_err(|error| self.failed(error))?;
        self.report.kept_bytes = self.report.kept_bytes.saturating_add(done.kept_bytes);
        self.report.keyless_records = self.report.keyless_records.saturating_add(done.keyless_records);
        match done.segment {
            // It would be the same.
            None => Ok(()),
            Some(segment) => {
                self.log.replace_segments(&self.view, &sources, segment, done.markers_dropped, self.now)
            }
        }
    }
}

fn unreadable(segment: &Segment, batch: &Batch, error: BatchError) -> SegmentError {
    SegmentError::Batch { base: segment.base(), offset: batch.header.base_offset, error }
}

fn marker_of(segment: &Segment, batch: &Batch) -> Result<Option<MarkerType>, SegmentError> {
    let marker = EndTxnMarker::read(batch).map_err(|error| unreadable(segment, batch, error))?;
    Ok(marker.map(|marker| marker.marker_type))
}
