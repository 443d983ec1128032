use super::*;

#[test]
fn a_segment_is_rolled_before_it_would_grow_beyond_its_size() {
    let size = records(1, 300).len();
    let log = Bench::with(LogConfig { segment_bytes: 2 * size as u32, ..small_segments() }).create();
    for _ in 0..5 {
        log.put(records(1, 300));
    }
    assert_eq!(segment_bases(&log), [0, 2, 4]);
}

#[test]
fn the_new_segment_begins_at_the_first_offset_of_the_batch() {
    let log = Bench::new().create();
    log.put(records(3, 100));
    log.put(records(9, 70));
    assert_eq!(segment_bases(&log), [0, 3]);
}

#[test]
fn time_between_records_rolls_and_the_clock_does_only_if_records_have_no_time() {
    let config = LogConfig { segment_ms: Millis(1000), ..small_segments() };
    let log = Bench::with(config.clone()).create();
    log.put(records_at(5_000, 1, 5));
    log.put(records_at(6_000, 1, 5));
    log.put(records_at(1_000, 1, 5));
    assert_eq!(log.segment_count(), 1, "not beyond the first batch by more than the limit, or before it");
    log.put(records_at(6_001, 1, 5));
    assert_eq!(segment_bases(&log), [0, 3]);

    let log = Bench::with(config).create();
    let untimed = |wall_ms: i64| {
        let now = Now { mono_ms: 0, wall_ms };
        log.append_as_leader(records_at(-1, 1, 5), AppendOrigin::Client, LeaderEpoch(0), now).unwrap();
    };
    untimed(1_000_500);
    untimed(1_001_000);
    assert_eq!(log.segment_count(), 1);
    untimed(1_001_001);
    assert_eq!(segment_bases(&log), [0, 2]);
}

#[test]
fn a_full_index_rolls() {
    let config = LogConfig { segment_index_bytes: 24, segment_bytes: 1 << 20, ..small_segments() };
    let log = Bench::with(config).create();
    for _ in 0..12 {
        log.put(records(1, 150));
    }
    assert!(log.segment_count() > 3);
    assert_eq!(offsets(&log.all()).len(), 12);
}

#[test]
fn an_empty_segment_whose_index_has_no_room_is_replaced_at_the_same_base() {
    let config = LogConfig { segment_index_bytes: 12, ..small_segments() };
    let log = Bench::with(config).create();
    log.put(records(1, 5));
    assert_eq!(segment_bases(&log), [0]);
    log.put(records(1, 5));
    assert_eq!(segment_bases(&log), [0, 1]);
    assert_eq!(offsets(&log.all()), [(0, 0), (1, 1)]);
}

#[test]
fn a_roll_trims_the_old_indexes_and_takes_a_snapshot() {
    let bench = Bench::new();
    let log = bench.create();
    log.put(produced(9, 0, 0, 2));
    for _ in 0..3 {
        log.put(records(1, 300));
    }
    let len = |name: &str| bench.disk.metadata(&Path::new(DIR).join(name)).unwrap().len;
    assert_eq!(segment_bases(&log), [0, 4]);
    assert_eq!(len("00000000000000000000.index"), 8);
    assert_eq!(len("00000000000000000000.timeindex") % 12, 0);
    let path = Path::new(DIR).join("00000000000000000004.snapshot");
    let snapshot = crate::snapshot::read_snapshot(&bench.disk, &path).unwrap().unwrap();
    assert_eq!((snapshot.len(), snapshot[0].producer_id, snapshot[0].last_sequence()), (1, 9, 1));
}

#[test]
fn the_snapshot_of_a_roll_holds_nothing_of_the_batch_that_rolled() {
    let bench = Bench::new();
    let log = bench.create();
    log.put(produced(9, 0, 0, 1));
    log.put(records(1, 850));
    log.put(produced(9, 0, 1, 4));
    assert_eq!(segment_bases(&log), [0, 2]);
    let path = Path::new(DIR).join("00000000000000000002.snapshot");
    let snapshot = crate::snapshot::read_snapshot(&bench.disk, &path).unwrap().unwrap();
    assert_eq!(snapshot[0].last_sequence(), 0);
}

#[test]
fn what_a_roll_closed_is_flushed_in_the_background() {
    let bench = Bench::new();
    let log = bench.create();
    for _ in 0..6 {
        log.put(records(1, 400));
    }
    assert_eq!(log.positions().recovery_point, Offset(0));
    assert_eq!(bench.background.len(), 1, "one job, however many rolls");
    assert!(bench.background.next_due().is_some_and(|due| due.0 <= bench.now.mono_ms));
    bench.run_jobs();
    assert_eq!(log.positions().recovery_point, Offset(4), "the base of the active segment");
    assert!(bench.background.is_empty());
    let bench = bench.after(CrashMode::LoseUnsynced);
    let log = bench.open(false);
    assert_eq!(log.end(), 4);
}

#[test]
fn a_stale_file_with_the_name_of_the_new_segment_is_removed() {
    let bench = Bench::new();
    let log = bench.create();
    log.put(records(1, 850));
    for name in ["00000000000000000001.log", "00000000000000000001.index", "00000000000000000001.txnindex"] {
        let file = bench.disk.open(&Path::new(DIR).join(name), crate::disk::OpenOptions::CREATE).unwrap();
        file.write_at(&[1; 500], 0).unwrap();
    }
    log.put(records(1, 850));
    assert_eq!(offsets(&log.all()), [(0, 0), (1, 1)]);
    assert!(!bench.files().contains(&"00000000000000000001.txnindex".to_owned()));
}

#[test]
fn a_preallocated_segment_is_cut_to_its_records_when_it_is_rolled_or_closed() {
    let bench = Bench::with(LogConfig { preallocate: true, ..small_segments() });
    let log = bench.create();
    let len = |name: &str| bench.disk.metadata(&Path::new(DIR).join(name)).unwrap().len;
    assert_eq!(len("00000000000000000000.log"), 1000);
    log.put(records(1, 500));
    log.put(records(1, 500));
    assert_eq!(len("00000000000000000000.log"), records(1, 500).len() as u64);
    assert_eq!(len("00000000000000000001.log"), 1000);
    log.close().unwrap();
    assert_eq!(len("00000000000000000001.log"), records(1, 500).len() as u64);
}

#[test]
fn the_jitter_of_a_segment_is_below_both_limits() {
    let config = LogConfig { segment_ms: Millis(50), segment_jitter_ms: Millis(80), ..LogConfig::default() };
    for _ in 0..200 {
        assert!((0..50).contains(&new_jitter(&config).0));
    }
    assert_eq!(new_jitter(&LogConfig::default()), Millis(0));
}

#[test]
fn an_index_without_room_for_a_single_entry_stops_nobody() {
    let bench = Bench::with(LogConfig { segment_index_bytes: 4, ..small_segments() });
    let log = bench.create();
    for _ in 0..3 {
        log.put(records(1, 5));
    }
    assert_eq!(offsets(&log.all()), [(0, 0), (1, 1), (2, 2)]);
}
