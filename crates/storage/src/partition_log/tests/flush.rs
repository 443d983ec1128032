use super::*;

#[test]
fn everything_that_was_flushed_survives_a_lost_power() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.become_leader(LeaderEpoch(3)).unwrap();
    for _ in 0..5 {
        log.put(records(2, 150));
    }
    log.put(produced(9, 0, 0, 2));
    log.flush().unwrap();
    bench.checkpoint(&log);
    assert_eq!(log.positions().recovery_point, Offset(12));
    log.put(records(1, 5));
    let bench = bench.after(CrashMode::LoseUnsynced);
    let log = bench.open(false);
    assert_eq!(log.end(), 12);
    assert_eq!(epochs(&log), [(3, 0)]);
    assert_eq!(log.topic_id(), Some(TopicId([7; 16])));
    assert!(log.put(produced(9, 0, 0, 2)).duplicate);
}

#[test]
fn records_are_confirmed_after_a_flush_if_so_many_are_not_flushed() {
    let bench = Bench::with(LogConfig { flush_messages: 3, ..small_segments() });
    let log = bench.create();
    log.put(records(2, 5));
    assert_eq!(log.positions().recovery_point, Offset(0));
    log.put(records(1, 5));
    assert_eq!(log.positions().recovery_point, Offset(3));
    let log = bench.after(CrashMode::LoseUnsynced).open(false);
    assert_eq!(log.end(), 3);
}

#[test]
fn one_flush_serves_a_whole_group() {
    let bench = Bench::with(LogConfig { flush_messages: 1, ..small_segments() });
    let log = bench.create();
    log.put(records(1, 5));
    let before = bench.disk.syncs();
    let request = LeaderAppend { records: records(1, 5), origin: AppendOrigin::Client };
    let results = log.append_many_as_leader(vec![request; 4], LeaderEpoch(3), now());
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(log.positions().recovery_point, Offset(5));
    assert!(bench.disk.syncs() - before <= 4, "the log and its new index files, once");
}

/// apache/kafka#9676.
#[test]
fn a_failed_flush_confirms_nothing_and_is_not_repeated_as_if_the_data_were_safe() {
    let bench = Bench::with(LogConfig { flush_messages: 2, ..small_segments() });
    let log = bench.create();
    log.put(records(1, 5));
    bench.fail(Operation::Sync, ".log", 0);
    assert!(matches!(log.try_put(records(1, 5)), Err(AppendError::Storage(_))));
    assert!(matches!(log.flush(), Err(LogError::Storage(_))));
    assert_eq!(log.positions().recovery_point, Offset(0));
    assert!(!bench.health.is_online());
}

#[test]
fn records_older_than_flush_ms_are_flushed_in_the_background() {
    let bench = Bench::with(LogConfig { flush_ms: Millis(500), ..small_segments() });
    let log = bench.create();
    let at = |mono_ms| Now { mono_ms, wall_ms: 0 };
    log.request_flush_if_due(at(9_999_999));
    assert!(bench.background.is_empty(), "nothing was appended");
    log.put(records(1, 5));
    log.request_flush_if_due(at(1_499));
    assert!(bench.background.is_empty());
    log.request_flush_if_due(at(1_500));
    bench.run_jobs();
    assert_eq!(log.positions().recovery_point, Offset(1));
    log.request_flush_if_due(at(9_999));
    assert!(bench.background.is_empty(), "nothing waits any more");
}

#[test]
fn the_recovery_point_does_not_move_past_records_that_took_the_place_of_flushed_ones() {
    let bench = Bench::new();
    let log = bench.create();
    log.put(records(4, 5));
    let plan = {
        let mut writer = lock(&log.writer);
        log.plan_flush(&mut writer, Offset(4))
    };
    log.truncate_to(Offset(0), now(), EXPIRATION).unwrap();
    log.put(records(5, 5));
    log.carry_out(&plan).unwrap();
    assert_eq!(log.positions().recovery_point, Offset(0));
}

#[test]
fn an_idle_flush_syncs_nothing() {
    let bench = Bench::new();
    let log = bench.create();
    log.put(records(1, 5));
    log.flush().unwrap();
    let before = bench.disk.syncs();
    log.flush().unwrap();
    assert_eq!(bench.disk.syncs(), before);
}

#[test]
fn a_flush_passes_over_segments_that_retention_has_removed() {
    let mut bench = Bench::new();
    bench.config.file_delete_delay_ms = Millis(0);
    let log = bench.create();
    for _ in 0..4 {
        log.put(records(1, 600));
    }
    log.replicate();
    log.increment_log_start(Offset(3)).unwrap();
    let plan = {
        let mut writer = lock(&log.writer);
        log.plan_flush(&mut writer, Offset(4))
    };
    log.delete_old_segments(bench.now).unwrap();
    // The removal of the files, not the flush that the roll asked for.
    lock(&log.writer).flush_target = None;
    bench.run_jobs();
    log.carry_out(&plan).unwrap();
    assert!(bench.health.is_online());
    assert_eq!(log.positions().recovery_point, Offset(4));
}

#[test]
fn the_small_files_are_durable_after_a_flush() {
    let bench = Bench::new();
    let log = bench.create();
    log.become_leader(LeaderEpoch(3)).unwrap();
    log.put(produced(9, 0, 0, 1));
    log.put(records(1, 900));
    log.flush().unwrap();
    let after = bench.after(CrashMode::LoseUnsynced);
    let path = |name: &str| Path::new(DIR).join(name);
    let epochs = crate::epoch_checkpoint::read_epochs(&after.disk, &path("leader-epoch-checkpoint")).unwrap();
    assert_eq!(epochs.len(), 1);
    let id = crate::partition_metadata::read_topic_id(&after.disk, &path("partition.metadata")).unwrap();
    assert_eq!(id, Some(TopicId([7; 16])));
    let snapshot =
        crate::snapshot::read_snapshot(&after.disk, &path("00000000000000000001.snapshot")).unwrap();
    assert_eq!(snapshot.map(|producers| producers.len()), Some(1));
}
