//! Bringing segments back after a crash: from the one that holds the recovery point on, each is checked batch
//! by batch and its indexes are built anew; at the first bad batch the log ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::epochs::EpochHistory;
use kernel::producer::ProducerStates;
use wire::batch::BatchHeader;
use wire::types::Offset;

use super::overflow::check_range;
use super::producers::{TxnIndexing, apply_batch, state_before, take_at_base};
use super::{Failure, Loader};
use crate::boot::Boot;
use crate::names::SegmentFile;
use crate::segment::{Recovered, RecoveredBatch, ScanError, Segment, SegmentError, may_follow};

/// What recovery came to.
pub(super) struct Recovery {
    /// The log end, if the last segment was recovered.
    pub(super) log_end: Option<Offset>,
    /// The state of the producers there.
    pub(super) producers: Option<ProducerStates>,
    /// Whether segments were dropped because one before them was cut.
    pub(super) dropped: bool,
    /// Whether there are gaps between segments that need not have been flushed, and that are no loss. With another boot they
    /// would seem to be one.
    pub(super) has_gaps: bool,
}

impl Loader<'_> {
    /// Recovers what needs it: all segments from the recovery point on if the stop was not clean, and any
    /// segment that has lost its offset index or has a bad transaction index.
    pub(super) fn recover_segments(
        &mut self,
        segments: &mut Vec<Arc<Segment>>,
        epochs: &mut EpochHistory,
    ) -> Result<Recovery, Failure> {
        let mut recovery = Recovery { log_end: None, producers: None, dropped: false, has_gaps: false };
        let unclean_from = match self.args.clean {
            true => usize::MAX,
            false => {
                let point = self.args.recovery_point;
                segments.partition_point(|segment| segment.base() <= point).saturating_sub(1)
            }
        };
        let damaged = self.damaged(segments)?;
        let mut last = None;
        for at in 0..segments.len() {
            let Some(segment) = segments.get(at).cloned() else { break };
            let untouched = at < unclean_from;
            if untouched && !damaged.contains(&segment.base()) {
                let next = segments.get(at.saturating_add(1));
                check_range(&segment, next.map(|next| next.base()))?;
                (recovery.producers, recovery.log_end, last) = (None, None, None);
                continue;
            }
            if let Some(last) = &last
                && !begins_after(&segment, last)?
            {
                recovery.dropped = self.drop_from(segments, at)?;
                break;
            }
            let is_unflushed = !untouched && segment.base() > self.args.recovery_point;
            if is_unflushed && recovery.log_end.is_some_and(|end| segment.base() > end) {
                if self.may_lack_records(segment.base()) {
                    recovery.dropped = self.drop_from(segments, at)?;
                    break;
                }
                recovery.has_gaps = true;
            }
            let before = match recovery.producers.take() {
                Some(states) => states,
                None => self.state_before(segments, segment.base())?,
            };
            // Only the tail of the log tells all epochs from some offset on; before it the file knows better.
            let told = if untouched { None } else { Some(&mut *epochs) };
            let (recovered, states) = self.recover_segment(segments, &segment, before, told, &mut last)?;
            if untouched {
                // No later start reads it again, so what was built anew must be durable.
                segment.flush()?;
            }
            recovery.log_end = Some(recovered.next_offset);
            recovery.producers = Some(states);
            if recovered.truncated_bytes > 0 {
                recovery.dropped = self.drop_from(segments, at.saturating_add(1))?;
                break;
            }
        }
        Ok(recovery)
    }

    /// Whether a gap between segments, the later of which begins at `base` and need not have been flushed, must be taken for
    /// records that the disk has lost. A disk loses nothing while the machine is up. Compaction leaves gaps, though none
    /// above the recovery point of the checkpoint if it was this broker's; who else was here before it may have left some,
    /// there and in copies of what was compacted.
    fn may_lack_records(&self, base: Offset) -> bool {
        let is_compacted = self.args.first_dirty.is_some_and(|first_dirty| base <= first_dirty);
        !is_compacted
            && match self.args.boot {
                Boot::Same => false,
                Boot::Another => true,
                Boot::Unknown => !self.args.config.cleanup_compact,
            }
    }

    /// The segments that must be recovered however the stop was.
    fn damaged(&self, segments: &[Arc<Segment>]) -> Result<BTreeSet<Offset>, Failure> {
        let mut damaged = BTreeSet::new();
        for segment in segments {
            let base = segment.base();
            let no_index = !segment.is_empty() && !self.has_file(base, SegmentFile::OffsetIndex);
            let bad_txn_index = self.has_file(base, SegmentFile::TxnIndex) && !check_txn_index(segment)?;
            if no_index || bad_txn_index {
                if self.args.clean {
                    tracing::warn!(
                        partition = %self.args.partition, segment = %base, no_index, bad_txn_index,
                        "segment has no offset index or a bad transaction index and is recovered"
                    );
                }
                damaged.insert(base);
            }
        }
        Ok(damaged)
    }

    fn state_before(&mut self, segments: &[Arc<Segment>], base: Offset) -> Result<ProducerStates, Failure> {
        let log_start = segments.first().map_or(base, |first| first.base()).max(self.args.log_start);
        let (now, expiration) = (self.args.now, self.args.producer_expiration);
        let offsets = log_start..base;
        Ok(state_before(&self.dir, &mut self.snapshots, segments, offsets, now, expiration)?)
    }

    fn recover_segment(
        &mut self,
        segments: &[Arc<Segment>],
        segment: &Segment,
        mut states: ProducerStates,
        mut epochs: Option<&mut EpochHistory>,
        last: &mut Option<BatchHeader>,
    ) -> Result<(Recovered, ProducerStates), Failure> {
        states.set_map_end(segment.base());
        if segment.base() > self.args.log_start {
            take_at_base(&self.dir, &mut self.snapshots, segments, &states)?;
        }
        let has_txn_index = self.has_file(segment.base(), SegmentFile::TxnIndex);
        if segment.is_empty() && !has_txn_index {
            // Whatever stands in its index files is noticed when they are first used.
            return Ok((Recovered { truncated_bytes: 0, next_offset: segment.base() }, states));
        }
        let mut visit = |batch: &RecoveredBatch| {
            *last = Some(batch.header);
            if let Some(epochs) = &mut epochs {
                epochs.observe(batch.header.partition_leader_epoch, batch.header.base_offset);
            }
            apply_batch(segment, &mut states, batch, TxnIndexing::Rebuild)
        };
        let is_active = segments.last().is_some_and(|active| active.base() == segment.base());
        let recovered =
            if is_active { segment.recover_active(&mut visit)? } else { segment.recover(&mut visit)? };
        if recovered.truncated_bytes > 0 {
            tracing::warn!(
                partition = %self.args.partition, segment = %segment.base(),
                bytes = recovered.truncated_bytes, log_end = %recovered.next_offset,
                "the log was cut at a batch that is not whole"
            );
        }
        states.set_map_end(recovered.next_offset);
        Ok((recovered, states))
    }

    /// Removes the segments from number `at` on; returns whether there were any.
    fn drop_from(&self, segments: &mut Vec<Arc<Segment>>, at: usize) -> Result<bool, Failure> {
        let dropped = segments.split_off(at.min(segments.len()));
        for segment in &dropped {
            tracing::warn!(
                partition = %self.args.partition, segment = %segment.base(),
                "segment follows one that was cut, or is of an earlier life of the log, and is removed"
            );
            segment.delete_files()?;
        }
        if !dropped.is_empty() {
            // Before others of these names are made (L6).
            self.dir.files.disk().sync_dir(&self.dir.path.get())?;
        }
        Ok(!dropped.is_empty())
    }
}

/// Whether a segment can come after the batch `last`.
fn begins_after(segment: &Segment, last: &BatchHeader) -> Result<bool, SegmentError> {
    if segment.base() <= last.last_offset() {
        return Ok(false);
    }
    match segment.scan_at(0)?.next_batch() {
        Ok(Some(first)) => Ok(may_follow(&first.header, last)),
        // Nothing, or nothing good: its own recovery sees to that.
        Ok(None) | Err(ScanError::Corrupt { .. } | ScanError::OldFormat { .. }) => Ok(true),
        Err(error) => Err(SegmentError::Scan { base: segment.base(), error }),
    }
}

fn check_txn_index(segment: &Segment) -> Result<bool, SegmentError> {
    match segment.check_txn_index() {
        Ok(()) => Ok(true),
        Err(error) if error.is_io() => Err(error),
        Err(_) => Ok(false),
    }
}
