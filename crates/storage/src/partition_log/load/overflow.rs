//! Segments whose offsets reach further than 2^31-1 beyond their base (KAFKA-6264): how they are noticed, and
//! what is done about them.
//!
//! Recovery meets them when it reads the batches. Of a segment that is not read, the base of the next one bounds
//! the offsets, and only where that leaves room for too large ones is the end of the segment looked up.

use wire::types::{Millis, Offset};

use super::{Failure, Loader, end_of};
use crate::segment::{Segment, SegmentError};

impl Loader<'_> {
    /// If `failure` is that a segment has too large offsets, splits it. Returns whether loading can begin anew.
    pub(super) fn split_overflowed(&self, failure: &Failure) -> Result<bool, Failure> {
        let Failure::Segment(SegmentError::OffsetOverflow { base, offset }) = failure else {
            return Ok(false);
        };
        if offset < base {
            // No split brings an offset into a segment that lies after it.
            return Ok(false);
        }
        let now = Millis(self.args.now.wall_ms);
        let parts = Segment::open(&self.dir, *base, None, self.config, now)?.split()?;
        if parts > 0 {
            tracing::warn!(
                partition = %self.args.partition, segment = %base, %offset, parts,
                "segment has offsets of more than 31 bits above its base and was split"
            );
        }
        Ok(parts > 0)
    }
}

/// Fails if a segment that is followed by one at `next_base` has offsets that do not fit it.
pub(super) fn check_range(segment: &Segment, next_base: Option<Offset>) -> Result<(), SegmentError> {
    match next_base {
        Some(next) if !segment.covers(next.plus(-1)) && !segment.is_empty() => end_of(segment).map(drop),
        _ => Ok(()),
    }
}
