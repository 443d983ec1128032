//! Bringing segments back after a crash: from the one that holds the recovery point on, each is checked batch
//! by batch and its indexes are built anew; at the first bad batch the log ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::epochs::EpochHistory;
use kernel::producer::ProducerStates;
use wire::types::Offset;

use super::producers::{TxnIndexing, apply_batch, state_before, take_at_base};
use super::{Failure, Loader};
use crate::names::SegmentFile;
use crate::segment::{Recovered, Segment, SegmentError};

/// What recovery came to.
pub(super) struct Recovery {
    /// The log end, if the last segment was recovered.
    pub(super) log_end: Option<Offset>,
    /// The state of the producers there.
    pub(super) producers: Option<ProducerStates>,
    /// Whether segments were dropped because one before them was cut.
    pub(super) dropped: bool,
}

impl Loader<'_> {
    /// Recovers what needs it: all segments from the recovery point on if the stop was not clean, and any
    /// segment that has lost its offset index or has a bad transaction index.
    pub(super) fn recover_segments(
        &mut self,
        segments: &mut Vec<Arc<Segment>>,
        epochs: &mut EpochHistory,
    ) -> Result<Recovery, Failure> {
        let mut recovery = Recovery { log_end: None, producers: None, dropped: false };
        let unclean_from = match self.args.clean {
            true => usize::MAX,
            false => {
                let point = self.args.recovery_point;
                segments.partition_point(|segment| segment.base() <= point).saturating_sub(1)
            }
        };
        let damaged = self.damaged(segments)?;
        for at in 0..segments.len() {
            let Some(segment) = segments.get(at).cloned() else { break };
            if at < unclean_from && !damaged.contains(&segment.base()) {
                recovery.producers = None;
                continue;
            }
            let before = match recovery.producers.take() {
                Some(states) => states,
                None => self.state_before(segments, segment.base())?,
            };
            let (recovered, states) = self.recover_segment(segments, &segment, before, epochs)?;
            recovery.log_end = Some(recovered.next_offset).filter(|_| at.saturating_add(1) == segments.len());
            recovery.producers = Some(states);
            if recovered.truncated_bytes > 0 {
                recovery.log_end = Some(recovered.next_offset);
                recovery.dropped = self.drop_after(segments, at)?;
                break;
            }
        }
        if recovery.log_end.is_none() {
            recovery.producers = None;
        }
        Ok(recovery)
    }

    /// The segments that must be recovered however the stop was.
    fn damaged(&self, segments: &[Arc<Segment>]) -> Result<BTreeSet<Offset>, Failure> {
        let listed = |base, file| self.files.iter().any(|name| name.offset == base && name.file == file);
        let mut damaged = BTreeSet::new();
        for segment in segments {
            let base = segment.base();
            let no_index = !segment.is_empty() && !listed(base, SegmentFile::OffsetIndex);
            let bad_txn_index = listed(base, SegmentFile::TxnIndex) && !check_txn_index(segment)?;
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
        epochs: &mut EpochHistory,
    ) -> Result<(Recovered, ProducerStates), Failure> {
        states.set_map_end(segment.base());
        if segment.base() > self.args.log_start {
            take_at_base(&self.dir, &mut self.snapshots, segments, &states)?;
        }
        let has_txn_index =
            self.files.iter().any(|name| name.offset == segment.base() && name.file == SegmentFile::TxnIndex);
        if segment.is_empty() && !has_txn_index {
            // Whatever stands in its index files is noticed when they are first used.
            return Ok((Recovered { truncated_bytes: 0, next_offset: segment.base() }, states));
        }
        let recovered = segment.recover(&mut |batch| {
            let epoch = batch.header.partition_leader_epoch;
            if epoch.0 >= 0 && epochs.latest().is_none_or(|latest| epoch > latest.epoch) {
                epochs.assign(epoch, batch.header.base_offset);
            }
            apply_batch(segment, &mut states, batch, TxnIndexing::Rebuild)
        })?;
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

    /// Removes the segments after number `at`; returns whether there were any.
    fn drop_after(&self, segments: &mut Vec<Arc<Segment>>, at: usize) -> Result<bool, Failure> {
        let dropped = segments.split_off(at.saturating_add(1).min(segments.len()));
        for segment in &dropped {
            tracing::warn!(
                partition = %self.args.partition, segment = %segment.base(),
                "segment follows one that was cut and is removed"
            );
            segment.delete_files()?;
        }
        Ok(!dropped.is_empty())
    }
}

fn check_txn_index(segment: &Segment) -> Result<bool, SegmentError> {
    match segment.check_txn_index() {
        Ok(()) => Ok(true),
        Err(error) if error.is_io() => Err(error),
        Err(_) => Ok(false),
    }
}
