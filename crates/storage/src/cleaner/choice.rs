//! Which log is compacted next, and which part of it: pure decisions from what is known of the logs.
//!
//! A log has a clean part below its first dirty offset, a part that may be compacted, and from the first uncleanable
//! offset on a part that must be left alone: what is not decided or not replicated yet, the active segment, and what is
//! younger than `min.compaction.lag.ms` (KIP-58). A log is due when enough of it is dirty, or when something in it has
//! waited for `max.compaction.lag.ms` (KIP-354). Whole segments are clean, dirty or uncleanable.

use wire::types::{Millis, Offset};

/// What the choice needs to know of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentFacts {
    /// The base offset.
    pub(crate) base: Offset,
    /// The size of its log in bytes.
    pub(crate) size: u64,
    /// The largest timestamp, or else the time of the last change; looked at only if there is a least lag.
    pub(crate) largest_timestamp: Millis,
    /// The largest timestamp of the first batch, -1 if there is none; looked at only if there is a longest lag.
    pub(crate) first_timestamp: Millis,
}

/// What the choice needs to know of a log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogFacts {
    /// The first dirty offset by the checkpoint, if there is one.
    pub(crate) checkpoint: Option<Offset>,
    pub(crate) log_start: Offset,
    pub(crate) log_end: Offset,
    /// Nothing at or beyond it is decided and replicated (KAFKA-13194).
    pub(crate) last_stable: Offset,
    /// By rising base offset; the last one is active.
    pub(crate) segments: Vec<SegmentFacts>,
    /// `min.compaction.lag.ms`.
    pub(crate) min_lag: Millis,
    /// `max.compaction.lag.ms`.
    pub(crate) max_lag: Millis,
    /// `min.cleanable.dirty.ratio`.
    pub(crate) min_ratio: f64,
}

/// What of a log may be compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cleanable {
    /// Everything below is compacted (exclusive).
    pub(crate) first_dirty: Offset,
    /// Where what must be left alone begins: the base of a segment, or the first dirty offset if that is higher.
    pub(crate) first_uncleanable: Offset,
    /// The bytes below the first dirty offset.
    pub(crate) clean_bytes: u64,
    /// The bytes between the two offsets.
    pub(crate) cleanable_bytes: u64,
    /// For how long something has waited beyond `max.compaction.lag.ms`, in milliseconds.
    pub(crate) overdue_ms: i64,
}

impl Cleanable {
    /// The dirty part of what can be clean, from 0 to 1.
    pub(crate) fn ratio(&self) -> f64 {
        let total = self.clean_bytes.saturating_add(self.cleanable_bytes);
        if total == 0 { 0.0 } else { self.cleanable_bytes as f64 / total as f64 }
    }

    /// Whether the log is to be compacted now.
    pub(crate) fn is_due(&self, min_ratio: f64) -> bool {
        (self.overdue_ms > 0 && self.cleanable_bytes > 0) || self.ratio() > min_ratio
    }
}

/// The first dirty offset: that of the checkpoint, unless it lies outside of the log.
pub(crate) fn first_dirty(checkpoint: Option<Offset>, log_start: Offset, log_end: Offset) -> Offset {
    checkpoint.filter(|offset| (log_start..=log_end).contains(offset)).unwrap_or(log_start)
}

/// What of the log may be compacted at `now` (the wall clock).
pub(crate) fn cleanable(log: &LogFacts, now: Millis) -> Cleanable {
    let first_dirty = first_dirty(log.checkpoint, log.log_start, log.log_end);
    let (active, inactive) = match log.segments.split_last() {
        Some((active, inactive)) => (active.base, inactive),
        None => (log.log_end, &[][..]),
    };
    let dirty = segments_from(inactive, active, first_dirty);
    let young = |segment: &&SegmentFacts| segment.largest_timestamp.0 > now.0.saturating_sub(log.min_lag.0);
    let young = dirty.iter().find(young).filter(|_| log.min_lag.0 > 0).map(|segment| segment.base);
    let limit = log.last_stable.min(active).min(young.unwrap_or(active)).max(first_dirty);
    let first_uncleanable =
        segments_from(inactive, active, limit).first().map_or(active, |segment| segment.base);
    let clean = log.segments.iter().filter(|segment| segment.base < first_dirty);
    let to_clean = dirty.iter().filter(|segment| segment.base < first_uncleanable);
    let oldest = dirty.iter().map(|segment| segment.first_timestamp.0).filter(|time| *time > 0).min();
    let limit_ms = now.0.saturating_sub(log.max_lag.0.max(0));
    Cleanable {
        first_dirty,
        first_uncleanable: first_uncleanable.max(first_dirty),
        clean_bytes: clean.map(|segment| segment.size).sum(),
        cleanable_bytes: to_clean.map(|segment| segment.size).sum(),
        overdue_ms: oldest.map_or(0, |oldest| limit_ms.saturating_sub(oldest)).max(0),
    }
}

/// The segments from the one that holds `offset` on; none if that is the active one, which begins at `active`
/// (KAFKA-9826).
fn segments_from(inactive: &[SegmentFacts], active: Offset, offset: Offset) -> &[SegmentFacts] {
    if offset >= active {
        return &[];
    }
    let after = inactive.partition_point(|segment| segment.base <= offset);
    inactive.get(after.saturating_sub(1)..).unwrap_or_default()
}

#[cfg(test)]
#[path = "choice/tests.rs"]
mod tests;
