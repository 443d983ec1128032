//! What compaction asks of a log: what can be compacted, a view that a pass works on, and putting a compacted segment in
//! the place of those it was made from.
//!
//! A pass works on segments that nobody appends to, beside everything else that happens. What changes them meanwhile (a
//! truncation, a deletion, retention, another policy) waits for no pass: the pass notices and ends without having
//! changed anything. Only for the few renames of a replacement does a truncation wait.
//!
//! Steps of a replacement, each durable before the next: the new segment is whole as `.cleaned`; it becomes `.swap`, and
//! from here on it counts; the old ones become `.deleted`; it gets its name. Whatever a crash leaves of them,
//! `load/leftovers.rs` goes back before the second step or ahead to the last.

use std::sync::Arc;

use wire::types::{Millis, Now, Offset};

use super::{PartitionLog, segment_config};
use crate::cleaner::choice::{LogFacts, SegmentFacts};
use crate::cleaner::verdict::LastOfProducers;
use crate::dir_health::StorageError;
use crate::log_config::LogConfig;
use crate::names::Transient;
use crate::segment::{CompactedSegment, Segment, SegmentError};
use crate::sync::{lock, read, write};

/// How long a log is left alone that could not be compacted, in milliseconds.
const RETRY_AFTER_MS: i64 = 3_600_000;

/// What is known of the compaction of a log.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    /// Everything below is compacted.
    first_dirty: Option<Offset>,
    in_progress: bool,
    /// When the last pass failed because of what is in the log, on the monotonic clock.
    failed_ms: Option<i64>,
}

/// Why a pass over a log ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompactionError {
    /// The log changed under it, or the broker stops.
    #[error("the log has changed meanwhile")]
    Aborted,
    /// The log directory is offline.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// What is in the log cannot be compacted.
    #[error(transparent)]
    Uncleanable(SegmentError),
}

/// The log as a pass sees it.
#[derive(Debug)]
pub(crate) struct CompactionView {
    /// By rising base offset; the last one is active, or was.
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) producers: LastOfProducers,
    truncations: u64,
}

impl PartitionLog {
    /// The first dirty offset, if one is known: everything below is compacted.
    pub fn first_dirty_offset(&self) -> Option<Offset> {
        lock(&self.compaction).first_dirty
    }

    /// Takes over the first dirty offset of the checkpoint.
    pub(crate) fn restore_first_dirty(&self, offset: Offset) {
        lock(&self.compaction).first_dirty = Some(offset);
    }

    /// The log was cut, and what is appended from `offset` on will be dirty.
    pub(super) fn lower_first_dirty(&self, offset: Offset) {
        let mut compaction = lock(&self.compaction);
        compaction.first_dirty = compaction.first_dirty.map(|known| known.min(offset));
    }

    /// Takes the log for a pass; false if it is taken, or could not be compacted not long ago.
    pub(crate) fn take_for_compaction(&self, now: Now) -> bool {
        let mut compaction = lock(&self.compaction);
        let rests = compaction.failed_ms.is_some_and(|at| now.mono_ms.saturating_sub(at) < RETRY_AFTER_MS);
        !rests && !std::mem::replace(&mut compaction.in_progress, true)
    }

    /// Ends what [`take_for_compaction`](Self::take_for_compaction) began.
    pub(crate) fn release_from_compaction(&self) {
        lock(&self.compaction).in_progress = false;
    }

    /// Whether a pass works on the log.
    pub fn is_being_compacted(&self) -> bool {
        lock(&self.compaction).in_progress
    }

    /// Whether the last pass failed because of what is in the log.
    pub fn is_uncleanable(&self) -> bool {
        lock(&self.compaction).failed_ms.is_some()
    }

    pub(crate) fn mark_uncleanable(&self, now: Now) {
        lock(&self.compaction).failed_ms = Some(now.mono_ms);
    }

    /// What the choice of the next log needs to know.
    pub(crate) fn compaction_facts(&self) -> Result<LogFacts, CompactionError> {
        self.check()?;
        let (config, positions, all) = (self.config(), self.positions(), self.segments());
        let segments: Result<Vec<_>, _> = all.iter().map(|segment| segment_facts(segment, &config)).collect();
        let segments = match segments {
            // Removed meanwhile.
            Err(_) if !self.has_segments(&all) => return Err(CompactionError::Aborted),
            Err(error) if !error.is_io() => return Err(CompactionError::Uncleanable(error)),
            other => self.guard("look at the segments of", other)?,
        };
        Ok(LogFacts {
            checkpoint: self.first_dirty_offset(),
            log_start: positions.log_start,
            log_end: positions.log_end,
            last_stable: positions.last_stable,
            segments,
            min_lag: config.min_compaction_lag_ms,
            max_lag: config.max_compaction_lag_ms,
            min_ratio: config.min_cleanable_dirty_ratio,
        })
    }

    /// The log for a pass. What may be compacted is flushed before, so that no recovery after a crash finds a part of it
    /// missing and takes the gap for a loss.
    pub(crate) fn begin_compaction(&self) -> Result<CompactionView, CompactionError> {
        if let Some(active) = self.active() {
            self.flush_to(active.base())?;
        }
        let writer = lock(&self.writer);
        if writer.closed {
            return Err(CompactionError::Aborted);
        }
        let of_producer = |entry: &kernel::producer::ProducerEntry| {
            (entry.producer_id, (entry.last_batch().map(|batch| batch.last_offset), entry.producer_epoch))
        };
        Ok(CompactionView {
            segments: read(&self.segments).clone(),
            producers: writer.producers.entries().map(of_producer).collect(),
            truncations: writer.truncations,
        })
    }

    /// Whether a pass that began with `view` may go on.
    pub(crate) fn may_compact(&self, view: &CompactionView) -> bool {
        if self.check().is_err() || !self.config().cleanup_compact {
            return false;
        }
        let writer = lock(&self.writer);
        !writer.closed && writer.truncations == view.truncations
    }

    /// Why a pass ends that met `error`: if the log has changed under it, because of that.
    pub(crate) fn compaction_failed(&self, view: &CompactionView, error: SegmentError) -> CompactionError {
        if !self.may_compact(view) {
            return CompactionError::Aborted;
        }
        if error.is_io() {
            return CompactionError::Storage(self.fail("compact", error));
        }
        CompactionError::Uncleanable(error)
    }

    /// Begins the segment that is to take the place of those from `base` on.
    pub(crate) fn begin_compacted(&self, base: Offset, now: Now) -> Result<CompactedSegment, SegmentError> {
        CompactedSegment::create(&self.dir, base, segment_config(&self.config()), Millis(now.wall_ms))
    }

    /// Puts `compacted` in the place of `sources`, neighbours from `view`. With `markers_dropped` the producer snapshots
    /// up to it go first: one that has a transaction open whose marker is gone would leave it open for ever.
    pub(crate) fn replace_segments(
        &self,
        view: &CompactionView,
        sources: &[Arc<Segment>],
        compacted: Segment,
        markers_dropped: bool,
        now: Now,
    ) -> Result<(), CompactionError> {
        let _one = lock(&self.replacing);
        if !self.may_compact(view) || !self.has_segments(sources) {
            self.guard("compact", compacted.delete_files())?;
            return Err(CompactionError::Aborted);
        }
        if markers_dropped {
            self.remove_snapshots(|at| at <= compacted.base())?;
            self.sync_names()?;
        }
        self.guard("compact", compacted.rename_files(Some(Transient::Swap)))?;
        self.sync_names()?;
        let compacted = Arc::new(compacted);
        {
            let mut segments = write(&self.segments);
            let first = segments.partition_point(|segment| segment.base() < compacted.base());
            let end = first.saturating_add(sources.len()).min(segments.len());
            segments.splice(first..end, [compacted.clone()]);
        }
        for source in sources {
            self.guard("compact", source.rename_files(Some(Transient::Deleted)))?;
        }
        self.sync_names()?;
        self.guard("compact", compacted.rename_files(None))?;
        self.sync_names()?;
        // Those of segments that are no more; the first one's is the new segment's.
        self.remove_snapshots(|at| sources.iter().skip(1).any(|source| source.base() == at))?;
        self.schedule_removal(sources.to_vec(), now);
        Ok(())
    }

    /// Notes that everything below `first_dirty` is compacted, if the log was not cut since.
    pub(crate) fn note_compacted(&self, view: &CompactionView, first_dirty: Offset) {
        let writer = lock(&self.writer);
        let mut compaction = lock(&self.compaction);
        if writer.truncations == view.truncations {
            compaction.first_dirty = Some(first_dirty);
        }
        compaction.failed_ms = None;
    }

    /// Whether these neighbours are part of the log.
    pub(super) fn has_segments(&self, sources: &[Arc<Segment>]) -> bool {
        let Some(base) = sources.first().map(|first| first.base()) else { return false };
        let segments = read(&self.segments);
        let first = segments.partition_point(|segment| segment.base() < base);
        let there = segments.get(first..first.saturating_add(sources.len()));
        there.is_some_and(|there| there.iter().zip(sources).all(|(one, other)| Arc::ptr_eq(one, other)))
    }

    fn remove_snapshots(&self, goes: impl Fn(Offset) -> bool) -> Result<(), StorageError> {
        let removed = lock(&self.writer).snapshots.remove_where(&self.dir, goes);
        self.guard_io("remove producer snapshots of", removed)
    }
}

/// Timestamps are read only if a rule asks for them.
fn segment_facts(segment: &Segment, config: &LogConfig) -> Result<SegmentFacts, SegmentError> {
    let by_age = config.min_compaction_lag_ms.0 > 0;
    let by_delay = config.max_compaction_lag_ms.0 < i64::MAX;
    let none = Millis(-1);
    Ok(SegmentFacts {
        base: segment.base(),
        size: segment.size(),
        largest_timestamp: if by_age { segment.largest_timestamp()? } else { none },
        first_timestamp: if by_delay { segment.first_timestamp()?.unwrap_or(none) } else { none },
    })
}
