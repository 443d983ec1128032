//! Reading: from an offset to a range of a file, without copying and without the writer lock.
//!
//! The offsets and the end of the file that belong to them are read once, as one value; nothing beyond is given
//! whatever is appended meanwhile (KAFKA-9807, KAFKA-9835).

use std::sync::Arc;

use wire::batch::BatchError;
use wire::types::Offset;

use super::positions::LogEnd;
use super::{PartitionLog, Positions, ReadError};
use crate::dir_health::StorageError;
use crate::disk::FileRange;
use crate::segment::{ScanError, Segment, SegmentError};
use crate::sync::read;
use crate::txn_index::AbortedTxn;

/// How often a read begins anew because the log was cut or old segments went away under it.
pub(super) const MOST_ATTEMPTS: usize = 4;

/// How far a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBound {
    /// A follower: up to the log end.
    LogEnd,
    /// A consumer: up to the high watermark.
    HighWatermark,
    /// A consumer of committed records: up to the last stable offset, with the aborted transactions.
    LastStable,
}

/// What was read.
#[derive(Clone, Debug)]
pub struct LogRead {
    /// Whole batches from the one that holds the offset on; the last may be cut off. None if there is nothing
    /// to read below the bound.
    pub range: Option<FileRange>,
    /// Whether the range holds not even one whole batch, because of the limit.
    pub first_batch_incomplete: bool,
    /// The offsets of the log that the read went by.
    pub positions: Positions,
    /// With [`ReadBound::LastStable`]: transactions that were aborted and may have records in the range, and
    /// perhaps some that have none there.
    pub aborted: Vec<AbortedTxn>,
}

impl PartitionLog {
    /// Reads at most `max_bytes` from `from` on, below `bound`. With `min_one_batch` the first batch is given
    /// whole even if it is larger.
    ///
    /// # Errors
    /// [`ReadError::OffsetOutOfRange`] below the log start and above the log end; an offset between the bound
    /// and the log end reads as nothing.
    pub fn read(
        &self,
        from: Offset,
        max_bytes: usize,
        min_one_batch: bool,
        bound: ReadBound,
    ) -> Result<LogRead, ReadError> {
        self.check()?;
        let mut attempts = 1;
        loop {
            let (positions, end) = self.published.view();
            if from < positions.log_start || from > positions.log_end {
                let (log_start, log_end) = (positions.log_start, positions.log_end);
                return Err(ReadError::OffsetOutOfRange { offset: from, log_start, log_end });
            }
            let view = View { positions, end, bound };
            match self.read_in(&view, from, max_bytes, min_one_batch) {
                Ok(found) => return Ok(found),
                // A segment that is still part of the log, as it was when the read began, is really broken.
                Err((segment, error)) if attempts == MOST_ATTEMPTS || self.is_intact(&segment, end) => {
                    return Err(self.read_failed(error));
                }
                Err(_) => attempts += 1,
            }
        }
    }

    pub(super) fn read_in(
        &self,
        view: &View,
        from: Offset,
        max_bytes: usize,
        min_one_batch: bool,
    ) -> Result<LogRead, (Arc<Segment>, SegmentError)> {
        let nothing = LogRead {
            range: None,
            first_batch_incomplete: false,
            positions: view.positions,
            aborted: Vec::new(),
        };
        if from >= view.upper() {
            return Ok(nothing);
        }
        // Segments are found by offset, each with the one after it at the same moment: compaction may put one in the place
        // of several, and what stood after the old one would not be what follows it.
        let mut at = from;
        while let Some((segment, next)) = self.segment_with_next(at)
            && segment.base() < view.upper()
        {
            match self.read_segment(view, &segment, next.as_ref(), from, max_bytes, min_one_batch) {
                Ok(None) => {}
                Ok(Some(found)) => return Ok(found),
                Err(error) => return Err((segment, error)),
            }
            let Some(next) = next else { break };
            at = next.base();
        }
        Ok(nothing)
    }

    /// Reads in one segment; `None` if it holds nothing at or above `from`. `next` is the segment after it.
    fn read_segment(
        &self,
        view: &View,
        segment: &Arc<Segment>,
        next: Option<&Arc<Segment>>,
        from: Offset,
        max_bytes: usize,
        min_one_batch: bool,
    ) -> Result<Option<LogRead>, SegmentError> {
        let limit = position_limit(view, segment, next)?;
        let Some(found) = segment.read(from, max_bytes, limit, min_one_batch)? else { return Ok(None) };
        let some = !found.range.is_empty();
        let aborted = match view.bound {
            ReadBound::LastStable if some => self.aborted_in(view, segment, next, from, &found.range)?,
            _ => Vec::new(),
        };
        Ok(Some(LogRead {
            range: some.then_some(found.range),
            first_batch_incomplete: found.first_batch_incomplete,
            positions: view.positions,
            aborted,
        }))
    }

    /// Where the first batch begins that holds an offset at or above `offset`; `None` if there is no such batch: a log may
    /// end beyond its last one. Not for a log that is appended to at the same time.
    pub fn first_batch_from(&self, offset: Offset) -> Result<Option<Offset>, StorageError> {
        let mut at = offset;
        while let Some((segment, next)) = self.segment_with_next(at) {
            if let Some(batch) = self.guard("read", segment.find_batch(offset))? {
                return Ok(Some(batch.header.base_offset));
            }
            let Some(next) = next else { break };
            at = next.base();
        }
        Ok(None)
    }

    /// The segment that holds `offset`, the last one that begins at or below it, and the one after it.
    pub(super) fn segment_with_next(&self, offset: Offset) -> Option<(Arc<Segment>, Option<Arc<Segment>>)> {
        let all = read(&self.segments);
        let after = all.partition_point(|segment| segment.base() <= offset);
        let segment = all.get(after.saturating_sub(1))?.clone();
        Some((segment, all.get(after.max(1)).cloned()))
    }

    /// The aborted transactions for a reader of `range`.
    fn aborted_in(
        &self,
        view: &View,
        segment: &Arc<Segment>,
        next: Option<&Arc<Segment>>,
        from: Offset,
        range: &FileRange,
    ) -> Result<Vec<AbortedTxn>, SegmentError> {
        let upper = segment.upper_bound_of_read(range.position, range.len)?;
        let upper = upper.or(next.map(|next| next.base())).unwrap_or(view.positions.log_end);
        let mut aborted: Vec<AbortedTxn> = Vec::new();
        let mut current = Some((segment.clone(), next.cloned()));
        while let Some((segment, next)) = current {
            let found = segment.txn_index().aborted_in(from, upper);
            let found = found.map_err(|error| SegmentError::TxnIndex { base: segment.base(), error })?;
            // A segment that took the place of several may tell again what the first of them told.
            let told = aborted.last().map(|txn| txn.last_offset);
            aborted.extend(found.aborted.into_iter().filter(|txn| Some(txn.last_offset) > told));
            let next = next.filter(|_| !found.complete);
            current = next.and_then(|next| self.segment_with_next(next.base()));
        }
        Ok(aborted)
    }

    /// Whether a segment is still part of the log and the log was not cut since `end` was read.
    fn is_intact(&self, segment: &Arc<Segment>, end: LogEnd) -> bool {
        let (_, now) = self.published.view();
        let uncut = (now.base, now.position) >= (end.base, end.position);
        uncut && read(&self.segments).iter().any(|other| Arc::ptr_eq(other, segment))
    }

    /// What a reader is told: the disk's errors take the directory offline, a bad batch does not.
    pub(super) fn read_failed(&self, error: SegmentError) -> ReadError {
        match error {
            SegmentError::Scan { error: ScanError::Corrupt { error, .. }, .. } => ReadError::Corrupt(error),
            SegmentError::Scan { error: ScanError::OldFormat { magic, .. }, .. } => {
                ReadError::Corrupt(BatchError::OldFormat(magic))
            }
            error => ReadError::Storage(self.fail("read", error)),
        }
    }
}

/// The position in a segment beyond which this reader may not see.
fn position_limit(view: &View, segment: &Segment, next: Option<&Arc<Segment>>) -> Result<u64, SegmentError> {
    let upper = view.upper();
    // The next segment begins at or below the bound: all of this one may be seen.
    if next.is_some_and(|next| next.base() <= upper) {
        return Ok(segment.size());
    }
    let end = if segment.base() == view.end.base { view.end.position } else { segment.size() };
    if upper >= view.positions.log_end {
        return Ok(end);
    }
    Ok(segment.locate(upper)?.map_or(end, |batch| batch.position.min(end)))
}

/// One moment of the log, and how far this reader may see in it.
pub(super) struct View {
    pub(super) positions: Positions,
    pub(super) end: LogEnd,
    pub(super) bound: ReadBound,
}

impl View {
    /// The offset from which on nothing may be seen.
    fn upper(&self) -> Offset {
        match self.bound {
            ReadBound::LogEnd => self.positions.log_end,
            ReadBound::HighWatermark => self.positions.high_watermark,
            ReadBound::LastStable => self.positions.last_stable,
        }
    }
}
