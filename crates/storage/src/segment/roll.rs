//! When a log must begin a new segment before it appends.

use wire::types::{Millis, Offset};

/// What is known of the active segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollState {
    /// The base offset.
    pub base: Offset,
    /// The size of the log file in bytes.
    pub size: u64,
    /// The largest timestamp of the first appended set; `None` in an empty segment, or if it has none.
    pub first_timestamp: Option<Millis>,
    /// When the segment was created or opened, in milliseconds since the Unix epoch.
    pub created: Millis,
    /// Taken off `segment.ms`, so that partitions do not all roll at once; fixed for the segment.
    pub jitter: Millis,
    /// Whether an index has no room left.
    pub index_full: bool,
}

/// What is about to be appended, and the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollParams {
    /// `segment.bytes`.
    pub max_segment_bytes: u64,
    /// `segment.ms`, or `max.compaction.lag.ms` if that is smaller and the topic compacted.
    pub max_segment_ms: Millis,
    /// The size of the set in bytes.
    pub incoming_bytes: u64,
    /// The largest timestamp of the set.
    pub incoming_max_timestamp: Millis,
    /// The last offset of the set.
    pub incoming_last_offset: Offset,
    /// The wall clock, in milliseconds since the Unix epoch.
    pub now: Millis,
}

/// Why a new segment begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollReason {
    /// The set does not fit into `segment.bytes`.
    Size,
    /// The segment has waited for `segment.ms`.
    Time,
    /// An index is full.
    IndexFull,
    /// The last offset is more than 2^31-1 above the base offset.
    OffsetRange,
}

impl RollReason {
    /// The reason in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Time => "time",
            Self::IndexFull => "index full",
            Self::OffsetRange => "offset range",
        }
    }
}

/// Whether, and why, a new segment must begin before the set is appended.
pub fn must_roll(state: &RollState, params: &RollParams) -> Option<RollReason> {
    if state.size > params.max_segment_bytes.saturating_sub(params.incoming_bytes) {
        // A set that is larger than a segment may be goes into an empty one, if the caller lets it.
        return Some(RollReason::Size);
    }
    let limit = params.max_segment_ms.0.saturating_sub(state.jitter.0);
    if state.size > 0 && waited(state, params) > limit {
        return Some(RollReason::Time);
    }
    if state.index_full {
        return Some(RollReason::IndexFull);
    }
    let relative = params.incoming_last_offset.0.checked_sub(state.base.0);
    if !relative.is_some_and(|relative| (0..=i64::from(i32::MAX)).contains(&relative)) {
        return Some(RollReason::OffsetRange);
    }
    None
}

/// Record time is compared with record time if there is any (KAFKA-4099), else clock with clock.
fn waited(state: &RollState, params: &RollParams) -> i64 {
    match state.first_timestamp {
        Some(first) if first.0 >= 0 => params.incoming_max_timestamp.0.saturating_sub(first.0),
        _ => params.now.0.saturating_sub(state.created.0),
    }
}

/// The base offset of a new segment for a set of format v2: the log end, so that records that a disk has lost between two
/// segments are noticed. (Kafka takes the first offset of a set that begins above the log end, as copies of compacted
/// logs do.) Only a set that cannot lie so far above the base begins its segment itself.
pub fn new_base(log_end: Offset, first_offset: Offset, last_offset: Offset) -> Offset {
    let relative = last_offset.0.checked_sub(log_end.0);
    if relative.is_some_and(|relative| relative <= i64::from(i32::MAX)) {
        log_end
    } else {
        log_end.max(first_offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> RollState {
        RollState {
            base: Offset(100),
            size: 500,
            first_timestamp: Some(Millis(10_000)),
            created: Millis(50_000),
            jitter: Millis(0),
            index_full: false,
        }
    }

    fn params() -> RollParams {
        RollParams {
            max_segment_bytes: 1000,
            max_segment_ms: Millis(1000),
            incoming_bytes: 500,
            incoming_max_timestamp: Millis(11_000),
            incoming_last_offset: Offset(110),
            now: Millis(99_000),
        }
    }

    #[test]
    fn a_set_that_just_fits_in_size_and_time_does_not_roll() {
        assert_eq!(must_roll(&state(), &params()), None);
    }

    #[test]
    fn a_segment_rolls_when_the_set_does_not_fit() {
        let larger = RollParams { incoming_bytes: 501, ..params() };
        assert_eq!(must_roll(&state(), &larger), Some(RollReason::Size));
    }

    #[test]
    fn a_segment_rolls_by_the_time_of_records_not_by_the_clock() {
        let later = RollParams { incoming_max_timestamp: Millis(11_001), ..params() };
        assert_eq!(must_roll(&state(), &later), Some(RollReason::Time));
        let old = RollParams { incoming_max_timestamp: Millis(5), now: Millis(i64::MAX), ..params() };
        assert_eq!(must_roll(&state(), &old), None);
    }

    #[test]
    fn without_record_time_the_clock_since_creation_decides() {
        for first_timestamp in [None, Some(Millis(-1))] {
            let state = RollState { first_timestamp, ..state() };
            assert_eq!(must_roll(&state, &RollParams { now: Millis(51_000), ..params() }), None);
            let late = RollParams { now: Millis(51_001), ..params() };
            assert_eq!(must_roll(&state, &late), Some(RollReason::Time));
        }
    }

    #[test]
    fn an_empty_segment_does_not_roll_by_time() {
        let empty = RollState { size: 0, first_timestamp: None, ..state() };
        assert_eq!(must_roll(&empty, &RollParams { now: Millis(i64::MAX), ..params() }), None);
    }

    #[test]
    fn jitter_makes_a_segment_roll_earlier() {
        let jittered = RollState { jitter: Millis(1), ..state() };
        assert_eq!(must_roll(&jittered, &params()), Some(RollReason::Time));
        let all = RollState { jitter: Millis(1000), ..state() };
        let same = RollParams { incoming_max_timestamp: Millis(10_000), ..params() };
        assert_eq!(must_roll(&all, &same), None);
    }

    #[test]
    fn a_full_index_rolls_even_an_empty_segment() {
        let full = RollState { size: 0, index_full: true, ..state() };
        assert_eq!(must_roll(&full, &params()), Some(RollReason::IndexFull));
    }

    #[test]
    fn offsets_must_stay_within_31_bits_of_the_base() {
        let last = |offset| RollParams { incoming_last_offset: Offset(offset), ..params() };
        assert_eq!(must_roll(&state(), &last(100 + i64::from(i32::MAX))), None);
        let beyond = last(101 + i64::from(i32::MAX));
        assert_eq!(must_roll(&state(), &beyond), Some(RollReason::OffsetRange));
        assert_eq!(must_roll(&state(), &last(99)), Some(RollReason::OffsetRange));
    }

    #[test]
    fn a_new_segment_begins_at_the_log_end_unless_the_set_lies_too_far_above() {
        let base = |first, last| new_base(Offset(50), Offset(first), Offset(last)).0;
        let far = 50 + i64::from(i32::MAX);
        assert_eq!((base(50, 60), base(70, 80), base(40, 60)), (50, 50, 50));
        assert_eq!((base(70, far), base(70, far + 1), base(40, far + 1)), (50, 70, 50));
        assert_eq!(new_base(Offset(-5), Offset(3), Offset(i64::MAX)), Offset(3));
    }
}
