use proptest::prelude::*;

use super::*;

fn find(log: &PartitionLog, timestamp: i64) -> Option<(i64, i64)> {
    log.offset_for_timestamp(timestamp).unwrap().map(|found| (found.timestamp, found.offset.0))
}

/// One batch whose records have these timestamps.
fn stamped(timestamps: &[i64], compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    for timestamp in timestamps {
        builder.append(Millis(*timestamp), None, Some(&[7; 40]));
    }
    builder.build().unwrap().bytes
}

#[test]
fn nothing_is_found_in_an_empty_log_or_after_the_last_record() {
    let log = Bench::new().create();
    assert_eq!(find(&log, 0), None);
    assert_eq!(log.offset_of_max_timestamp().unwrap(), None);
    log.put(stamped(&[5, 6], Compression::None));
    assert_eq!(find(&log, 7), None);
}

#[test]
fn the_first_record_at_or_after_the_time_is_found_with_its_epoch() {
    let log = Bench::new().create();
    log.put(stamped(&[10, 20], Compression::None));
    log.put(stamped(&[15, 30], Compression::None));
    assert_eq!(find(&log, 11), Some((20, 1)));
    assert_eq!(find(&log, 21), Some((30, 3)));
    let found = log.offset_for_timestamp(0).unwrap().unwrap();
    assert_eq!(found, TimestampedOffset { timestamp: 10, offset: Offset(0), leader_epoch: LeaderEpoch(3) });
}

#[test]
fn records_below_the_log_start_are_not_found() {
    let log = Bench::new().create();
    log.put(stamped(&[10, 20, 30], Compression::None));
    log.replicate();
    log.increment_log_start(Offset(1)).unwrap();
    assert_eq!(find(&log, 5), Some((20, 1)));
}

#[test]
fn the_largest_timestamp_is_told_with_the_first_record_that_has_it() {
    for compression in [Compression::None, Compression::Snappy, Compression::Zstd { level: 3 }] {
        let mut bench = Bench::new();
        let log = bench.create();
        log.put(stamped(&[100, 300, 200, 300], compression));
        log.put(stamped(&[50, 300], compression));
        let largest = |log: &PartitionLog| {
            log.offset_of_max_timestamp().unwrap().map(|found| (found.timestamp, found.offset.0))
        };
        assert_eq!(largest(&log), Some((300, 1)));
        let log = bench.reopen_clean(log);
        assert_eq!(largest(&log), Some((300, 1)));
        let log = bench.after(CrashMode::ProcessKill).open(false);
        assert_eq!(largest(&log), Some((300, 1)));
    }
}

#[test]
fn records_without_a_time_have_no_largest_one() {
    let log = Bench::new().create();
    log.put(stamped(&[-1, -1], Compression::None));
    assert_eq!(log.offset_of_max_timestamp().unwrap(), None);
    assert_eq!(find(&log, 0), None);
}

#[test]
fn the_first_version_of_the_request_is_told_segments_by_the_time_of_their_files() {
    let bench = Bench::new();
    let log = bench.create();
    for at in 0..3 {
        bench.disk.set_now(1000 * (at + 1));
        log.put(records(1, 850));
    }
    let at = |wall_ms| Now { mono_ms: 0, wall_ms };
    let before = |timestamp, max| {
        let found = log.offsets_before(timestamp, max, at(9000)).unwrap();
        found.into_iter().map(|offset| offset.0).collect::<Vec<_>>()
    };
    assert_eq!(before(-1, 10), [3, 2, 1, 0]);
    assert_eq!(before(-1, 2), [3, 2]);
    assert_eq!(before(-2, 10), [0]);
    assert_eq!(before(8999, 10), [2, 1, 0]);
    assert_eq!(before(9000, 10), [3, 2, 1, 0]);
    assert_eq!(before(500, 10), []);
    assert_eq!(before(-1, 0), []);
}

#[test]
fn the_end_of_an_empty_log_is_told_once() {
    let log = Bench::new().create();
    assert_eq!(log.offsets_before(-1, 10, now()).unwrap(), [Offset(0)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn every_time_is_looked_up_as_by_reading_all_records(
        batches in prop::collection::vec(prop::collection::vec(-1..60i64, 1..5), 1..25),
        log_start in 0..20i64,
    ) {
        let mut bench = Bench::new();
        let log = bench.create();
        let mut all = Vec::new();
        for timestamps in &batches {
            log.put(stamped(timestamps, Compression::None));
            all.extend(timestamps.iter().copied());
        }
        log.replicate();
        log.increment_log_start(Offset(log_start.min(log.end()))).unwrap();
        let log_start = log.positions().log_start.0;
        let expected = |target: i64| {
            let records = all.iter().copied().zip(0..);
            records.into_iter().find(|(at, offset)| *at >= target && *offset >= log_start)
        };
        for target in 0..61 {
            prop_assert_eq!(find(&log, target), expected(target));
        }
        let log = bench.reopen_clean(log);
        for target in 0..61 {
            prop_assert_eq!(find(&log, target), expected(target));
        }
        let mut bench = bench.after(CrashMode::ProcessKill);
        bench.recovery_point = Offset(0);
        let log = bench.open(false);
        for target in 0..61 {
            prop_assert_eq!(find(&log, target), expected(target));
        }
    }
}
