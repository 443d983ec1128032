//! Rules of the choice, one by one.

use super::*;

const NOW: Millis = Millis(1_000_000);

/// Segments of 100 bytes at these bases; the last one is active.
fn log(bases: &[i64], log_end: i64) -> LogFacts {
    let segment = |base: &i64| SegmentFacts {
        base: Offset(*base),
        size: 100,
        largest_timestamp: Millis(500_000 + base),
        first_timestamp: Millis(400_000 + base),
    };
    LogFacts {
        checkpoint: None,
        log_start: Offset(bases[0]),
        log_end: Offset(log_end),
        last_stable: Offset(log_end),
        segments: bases.iter().map(segment).collect(),
        min_lag: Millis(0),
        max_lag: Millis(i64::MAX),
        min_ratio: 0.5,
    }
}

fn range(log: &LogFacts) -> (i64, i64) {
    let found = cleanable(log, NOW);
    (found.first_dirty.0, found.first_uncleanable.0)
}

#[test]
fn all_but_the_active_segment_may_be_compacted() {
    let log = log(&[0, 100, 200], 250);
    assert_eq!(range(&log), (0, 200));
    let found = cleanable(&log, NOW);
    assert_eq!((found.clean_bytes, found.cleanable_bytes), (0, 200));
    assert_eq!(found.ratio(), 1.0);
}

#[test]
fn a_log_of_one_segment_has_nothing_to_compact() {
    let found = cleanable(&log(&[0], 50), NOW);
    assert_eq!((found.cleanable_bytes, found.ratio()), (0, 0.0));
    assert!(!found.is_due(0.0));
}

#[test]
fn what_the_checkpoint_calls_clean_is_clean() {
    let log = LogFacts { checkpoint: Some(Offset(200)), ..log(&[0, 100, 200, 300], 350) };
    assert_eq!(range(&log), (200, 300));
    let found = cleanable(&log, NOW);
    assert_eq!((found.clean_bytes, found.cleanable_bytes), (200, 100));
}

#[test]
fn a_first_dirty_offset_outside_of_the_log_counts_as_the_log_start() {
    for checkpoint in [49, 251, i64::MAX] {
        assert_eq!(first_dirty(Some(Offset(checkpoint)), Offset(50), Offset(250)), Offset(50));
    }
    for checkpoint in [50, 250] {
        assert_eq!(first_dirty(Some(Offset(checkpoint)), Offset(50), Offset(250)), Offset(checkpoint));
    }
    assert_eq!(first_dirty(None, Offset(50), Offset(250)), Offset(50));
}

/// KAFKA-13194.
#[test]
fn nothing_at_or_beyond_the_last_stable_offset_is_compacted_and_segments_stay_whole() {
    let at = |last_stable| LogFacts { last_stable: Offset(last_stable), ..log(&[0, 100, 200], 250) };
    assert_eq!(range(&at(250)), (0, 200));
    assert_eq!(range(&at(200)), (0, 200));
    assert_eq!(range(&at(199)), (0, 100));
    assert_eq!(range(&at(100)), (0, 100));
    assert_eq!(range(&at(99)), (0, 0));
    assert_eq!(cleanable(&at(99), NOW).cleanable_bytes, 0);
}

#[test]
fn from_the_first_segment_on_that_is_too_young_all_is_left_alone() {
    let lag = |min_lag| LogFacts { min_lag: Millis(min_lag), ..log(&[0, 100, 200, 300], 350) };
    assert_eq!(range(&lag(499_800)), (0, 300));
    assert_eq!(range(&lag(499_801)), (0, 200));
    assert_eq!(range(&lag(499_901)), (0, 100));
    assert_eq!(range(&lag(500_001)), (0, 0));
    // A timestamp from the future holds back what follows it.
    let mut future = lag(1);
    future.segments[1].largest_timestamp = Millis(2_000_000);
    assert_eq!(range(&future), (0, 100));
}

/// KAFKA-9826, KAFKA-9133.
#[test]
fn a_first_dirty_offset_in_the_active_segment_leaves_nothing_to_do() {
    let within = LogFacts { checkpoint: Some(Offset(230)), ..log(&[0, 100, 200], 250) };
    assert_eq!(range(&within), (230, 230));
    assert_eq!(cleanable(&within, NOW).cleanable_bytes, 0);
    let start = LogFacts { log_start: Offset(240), ..log(&[0, 100, 200], 250) };
    assert_eq!(range(&start), (240, 240));
}

#[test]
fn a_log_is_due_when_more_than_the_least_ratio_is_dirty() {
    let half = LogFacts { checkpoint: Some(Offset(100)), ..log(&[0, 100, 200], 250) };
    let found = cleanable(&half, NOW);
    assert_eq!(found.ratio(), 0.5);
    assert!(found.is_due(0.49) && !found.is_due(0.5));
}

#[test]
fn what_has_waited_for_the_longest_lag_makes_a_log_due_whatever_its_ratio() {
    let mostly_clean = LogFacts { checkpoint: Some(Offset(300)), ..log(&[0, 100, 200, 300, 400], 450) };
    let lag = |max_lag| cleanable(&LogFacts { max_lag: Millis(max_lag), ..mostly_clean.clone() }, NOW);
    assert_eq!(lag(i64::MAX).overdue_ms, 0);
    assert_eq!(lag(599_700).overdue_ms, 0);
    assert_eq!(lag(599_699).overdue_ms, 1);
    assert!(lag(599_699).is_due(0.9) && !lag(599_700).is_due(0.9));
    // Nothing can be compacted: not due, however old.
    let unstable = LogFacts { last_stable: Offset(300), max_lag: Millis(1), ..mostly_clean };
    assert!(!cleanable(&unstable, NOW).is_due(0.0));
}

#[test]
fn batches_without_a_timestamp_are_never_overdue() {
    let mut facts = LogFacts { max_lag: Millis(1), ..log(&[0, 100], 150) };
    facts.segments[0].first_timestamp = Millis(-1);
    assert_eq!(cleanable(&facts, NOW).overdue_ms, 0);
}
