use super::*;

/// A log with segments of one record each, stamped 1000, 2000, …; the clock is at 1,000,000.
fn log_of(bench: &Bench, count: i64) -> Arc<PartitionLog> {
    let log = bench.create();
    for at in 1..=count {
        log.put(records_at(at * 1000, 1, 850));
    }
    log.replicate();
    log
}

fn after(config: LogConfig, wall_ms: i64) -> (Vec<i64>, Arc<PartitionLog>) {
    let mut bench = Bench::with(config);
    let log = log_of(&bench, 4);
    bench.now.wall_ms = wall_ms;
    log.delete_old_segments(bench.now).unwrap();
    (segment_bases(&log), log)
}

fn keep_all() -> LogConfig {
    LogConfig { retention_ms: Millis(-1), ..small_segments() }
}

#[test]
fn segments_older_than_retention_ms_go() {
    let config = || LogConfig { retention_ms: Millis(5000), ..small_segments() };
    assert_eq!(after(config(), 6_000).0, [0, 1, 2, 3], "exactly as old is not older");
    let (bases, log) = after(config(), 7_001);
    assert_eq!(bases, [2, 3]);
    assert_eq!(log.positions().log_start, Offset(2));
    assert_eq!(offsets(&log.all()), [(2, 2), (3, 3)]);
}

#[test]
fn the_active_segment_goes_too_once_another_one_took_its_place() {
    let (bases, log) = after(LogConfig { retention_ms: Millis(5000), ..small_segments() }, 99_000);
    assert_eq!(bases, [4]);
    assert_eq!((log.positions().log_start, log.end()), (Offset(4), 4));
    assert_eq!(log.put(records(1, 5)).base_offset, Offset(4), "no offset is used again");
}

#[test]
fn an_empty_active_segment_stays() {
    let mut bench = Bench::with(LogConfig { retention_ms: Millis(0), ..small_segments() });
    let log = bench.create();
    bench.now.wall_ms += 1_000_000_000;
    assert_eq!(log.delete_old_segments(bench.now), Ok(0));
    assert_eq!(segment_bases(&log), [0]);
}

#[test]
fn segments_go_while_the_rest_still_has_retention_bytes() {
    let size = Bench::with(keep_all());
    let size = log_of(&size, 1).size_bytes() as i64;
    let bases = |bytes| after(LogConfig { retention_bytes: bytes, ..keep_all() }, 1_000_000).0;
    assert_eq!(bases(4 * size), [0, 1, 2, 3]);
    assert_eq!(bases(3 * size + 1), [0, 1, 2, 3]);
    assert_eq!(bases(3 * size), [1, 2, 3]);
    assert_eq!(bases(size), [3]);
    assert_eq!(bases(0), [4]);
    assert_eq!(bases(-1), [0, 1, 2, 3]);
}

#[test]
fn segments_below_the_log_start_go_whatever_the_policy() {
    let bench = Bench::with(LogConfig { cleanup_delete: false, cleanup_compact: true, ..keep_all() });
    let log = log_of(&bench, 4);
    log.increment_log_start(Offset(2)).unwrap();
    assert_eq!(log.delete_old_segments(bench.now), Ok(2));
    assert_eq!(segment_bases(&log), [2, 3]);
    log.increment_log_start(Offset(4)).unwrap();
    assert_eq!(log.delete_old_segments(bench.now), Ok(1));
    assert_eq!(segment_bases(&log), [3], "the active segment has no next one");
    assert_eq!(log.positions().log_start, Offset(4));
}

#[test]
fn without_the_policy_neither_size_nor_time_counts() {
    let config = LogConfig {
        cleanup_delete: false,
        cleanup_compact: true,
        retention_bytes: 0,
        retention_ms: Millis(0),
        ..small_segments()
    };
    assert_eq!(after(config, 1_000_000).0, [0, 1, 2, 3]);
}

#[test]
fn nothing_at_or_above_the_high_watermark_goes() {
    let mut bench =
        Bench::with(LogConfig { retention_ms: Millis(0), retention_bytes: 0, ..small_segments() });
    let log = bench.create();
    for at in 1..=4 {
        log.put(records_at(at, 1, 850));
    }
    log.advance_high_watermark(Offset(2));
    bench.now.wall_ms = 1_000_000;
    log.delete_old_segments(bench.now).unwrap();
    assert_eq!(segment_bases(&log), [2, 3]);
    assert!(log.positions().is_consistent());
}

/// apache/kafka#4473, redpanda-data/redpanda#9820.
#[test]
fn a_record_from_the_future_keeps_its_segment_and_all_behind_it() {
    let mut bench = Bench::with(LogConfig { retention_ms: Millis(1000), ..small_segments() });
    let log = bench.create();
    log.put(records_at(1000, 1, 850));
    log.put(records_at(1_000_000_000_000, 1, 850));
    log.put(records_at(1000, 1, 850));
    log.put(records_at(1000, 1, 850));
    log.replicate();
    bench.now.wall_ms = 1_000_000;
    log.delete_old_segments(bench.now).unwrap();
    assert_eq!(segment_bases(&log), [1, 2, 3]);
}

/// apache/kafka#4473.
#[test]
fn a_segment_without_times_is_as_old_as_its_file() {
    let mut bench = Bench::with(LogConfig { retention_ms: Millis(1000), ..small_segments() });
    bench.disk.set_now(50_000);
    let log = bench.create();
    log.put(records_at(-1, 1, 850));
    log.put(records_at(40_000, 1, 850));
    log.replicate();
    bench.now.wall_ms = 51_000;
    assert_eq!(log.delete_old_segments(bench.now), Ok(0));
    bench.now.wall_ms = 51_001;
    assert_eq!(log.delete_old_segments(bench.now), Ok(2));
}

#[test]
fn epochs_and_snapshots_of_removed_segments_go_and_producers_stay() {
    let bench = Bench::with(keep_all());
    let log = bench.create();
    log.become_leader(LeaderEpoch(1)).unwrap();
    log.put(produced(9, 0, 0, 1));
    for _ in 0..3 {
        log.put(records(1, 850));
    }
    log.replicate();
    log.increment_log_start(Offset(3)).unwrap();
    log.delete_old_segments(bench.now).unwrap();
    let snapshots: Vec<_> = bench.files().into_iter().filter(|name| name.ends_with(".snapshot")).collect();
    assert_eq!(snapshots, ["00000000000000000003.snapshot"]);
    assert_eq!(epochs(&log).last(), Some(&(3, 3)));
    assert!(log.put(produced(9, 0, 0, 1)).duplicate, "known until it expires (KAFKA-7190)");
}

#[test]
fn the_result_does_not_depend_on_how_often_it_runs() {
    let mut bench =
        Bench::with(LogConfig { retention_ms: Millis(5000), retention_bytes: 1900, ..small_segments() });
    let log = log_of(&bench, 6);
    log.increment_log_start(Offset(1)).unwrap();
    bench.now.wall_ms = 8_500;
    log.delete_old_segments(bench.now).unwrap();
    let once = segment_bases(&log);
    assert_eq!(log.delete_old_segments(bench.now), Ok(0));
    assert_eq!(segment_bases(&log), once);
    assert_eq!(once, [3, 4, 5]);
}

/// apache/kafka#8936.
#[test]
fn a_padded_time_index_makes_nothing_look_old() {
    let mut bench = Bench::with(LogConfig { retention_ms: Millis(5000), ..small_segments() });
    let log = log_of(&bench, 3);
    log.close().unwrap();
    bench.checkpoint(&log);
    for name in ["00000000000000000000.timeindex", "00000000000000000001.timeindex"] {
        let file = bench.disk.open(&Path::new(DIR).join(name), crate::disk::OpenOptions::WRITE).unwrap();
        file.set_len(1200).unwrap();
    }
    let log = bench.open(true);
    bench.now.wall_ms = 5_500;
    assert_eq!(log.delete_old_segments(bench.now), Ok(0));
    assert_eq!(offsets(&log.all()).len(), 3);
}
