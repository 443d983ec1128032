//! The state of a log's producers, found again from the newest snapshot and the batches after it.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use kernel::producer::{AppendOrigin, PendingUpdates, ProducerStates};
use wire::batch::Batch;
use wire::batch::control::EndTxnMarker;
use wire::types::{Millis, Now, Offset};

use super::super::snapshots::Snapshots;
use super::super::state::{apply_updates, producer_batch};
use crate::segment::{RecoveredBatch, ScanError, Segment, SegmentDir, SegmentError};

/// What becomes of the index of aborted transactions while batches are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TxnIndexing {
    /// It is right already.
    Keep,
    /// It was emptied, and is filled again.
    Rebuild,
}

/// Finds the state at the end of `offsets` (from the log start, inclusive, to the log end, exclusive) again, and
/// takes the snapshots that the next start will look for.
pub(in super::super) fn rebuild(
    dir: &SegmentDir,
    snapshots: &mut Snapshots,
    segments: &[Arc<Segment>],
    offsets: Range<Offset>,
    now: Now,
    expiration: Millis,
) -> Result<ProducerStates, SegmentError> {
    let mut states = state_at(dir, snapshots, segments, offsets.clone(), now, expiration)?;
    for segment in segments_with(segments, states.map_end()..offsets.end) {
        if segment.base() > states.map_end() {
            states.set_map_end(segment.base());
            take_at_base(dir, snapshots, segments, &states).map_err(|error| io_of(segment, error))?;
        }
        replay(segment, &mut states, offsets.end)?;
    }
    take_at_end(dir, snapshots, &mut states, offsets.clone())
        .map_err(|error| SegmentError::Io { base: offsets.end, error })?;
    Ok(states)
}

/// The newest state before the end of `offsets` that a snapshot gives, or an empty one at their start.
fn state_at(
    dir: &SegmentDir,
    snapshots: &mut Snapshots,
    segments: &[Arc<Segment>],
    offsets: Range<Offset>,
    now: Now,
    expiration: Millis,
) -> Result<ProducerStates, SegmentError> {
    let base = segments.first().map_or(offsets.start, |segment| segment.base());
    let newest = snapshots.newest(dir, offsets.end).map_err(|error| SegmentError::Io { base, error })?;
    Ok(match newest {
        Some((at, entries)) => ProducerStates::from_snapshot(entries, at, now.wall_ms, expiration),
        None => ProducerStates::new(offsets.start.min(offsets.end)),
    })
}

/// The state right before the segment at `end`, for its recovery. Takes no snapshots.
pub(super) fn state_before(
    dir: &SegmentDir,
    snapshots: &mut Snapshots,
    segments: &[Arc<Segment>],
    offsets: Range<Offset>,
    now: Now,
    expiration: Millis,
) -> Result<ProducerStates, SegmentError> {
    let mut states = state_at(dir, snapshots, segments, offsets.clone(), now, expiration)?;
    for segment in segments_with(segments, states.map_end()..offsets.end) {
        replay(segment, &mut states, offsets.end)?;
    }
    states.set_map_end(offsets.end);
    Ok(states)
}

/// Takes a snapshot at the base of one of the last two segments.
pub(super) fn take_at_base(
    dir: &SegmentDir,
    snapshots: &mut Snapshots,
    segments: &[Arc<Segment>],
    states: &ProducerStates,
) -> io::Result<()> {
    let last_two = segments.iter().rev().take(2);
    if last_two.into_iter().any(|segment| segment.base() == states.map_end()) {
        snapshots.take(dir, states)?;
    }
    Ok(())
}

/// Takes a snapshot at the log end, unless there is nothing that it could tell.
pub(in super::super) fn take_at_end(
    dir: &SegmentDir,
    snapshots: &mut Snapshots,
    states: &mut ProducerStates,
    offsets: Range<Offset>,
) -> io::Result<()> {
    states.set_map_end(offsets.end);
    if offsets.end > offsets.start || !states.is_empty() {
        snapshots.take(dir, states)?;
    }
    Ok(())
}

/// The segments that may hold offsets of the range.
fn segments_with(segments: &[Arc<Segment>], offsets: Range<Offset>) -> impl Iterator<Item = &Arc<Segment>> {
    let first = segments.partition_point(|segment| segment.base() <= offsets.start).saturating_sub(1);
    segments.iter().skip(first).take_while(move |segment| segment.base() < offsets.end)
}

/// Reads the headers of a segment from the state's end on, up to `end`.
fn replay(segment: &Segment, states: &mut ProducerStates, end: Offset) -> Result<(), SegmentError> {
    let from = states.map_end();
    let mut scan = if from <= segment.base() { segment.scan_at(0)? } else { segment.scan_from(from)? };
    loop {
        let next = scan.next_batch().map_err(|error| SegmentError::Scan { base: segment.base(), error })?;
        let Some(batch) = next.filter(|batch| batch.header.base_offset < end) else { return Ok(()) };
        if batch.header.last_offset() >= from && batch.header.has_producer_id() {
            apply_batch(segment, states, &segment.with_control(&batch)?, TxnIndexing::Keep)?;
        }
        states.set_map_end(batch.header.next_offset().min(end));
    }
}

/// Applies one batch of the log by the rules of replication: nothing that was written is refused.
pub(super) fn apply_batch(
    segment: &Segment,
    states: &mut ProducerStates,
    batch: &RecoveredBatch,
    indexing: TxnIndexing,
) -> Result<(), SegmentError> {
    let Some(producer) = producer_batch(&batch.header, marker_of(segment, batch)?) else { return Ok(()) };
    let mut updates = PendingUpdates::new();
    updates.judge(states, &producer, AppendOrigin::Replication);
    match indexing {
        TxnIndexing::Rebuild => apply_updates(states, updates, segment),
        TxnIndexing::Keep => {
            for completed in states.apply(updates) {
                states.complete(&completed);
            }
            Ok(())
        }
    }
}

fn marker_of(segment: &Segment, batch: &RecoveredBatch) -> Result<Option<EndTxnMarker>, SegmentError> {
    let Some(bytes) = &batch.control else { return Ok(None) };
    Batch::parse(bytes).and_then(|batch| EndTxnMarker::read(&batch)).map_err(|error| {
        let error = ScanError::Corrupt { position: batch.position, error };
        SegmentError::Scan { base: segment.base(), error }
    })
}

fn io_of(segment: &Segment, error: io::Error) -> SegmentError {
    SegmentError::Io { base: segment.base(), error }
}
