use super::*;

fn sequence_after_load(log: &Arc<PartitionLog>, next: i32) {
    assert!(matches!(log.try_put(produced(9, 0, next + 1, 1)), Err(AppendError::Producer { .. })));
    log.put(produced(9, 0, next, 1));
}

#[test]
fn producers_are_known_after_a_clean_stop() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.put(produced(9, 0, 0, 2));
    log.put(produced(9, 0, 2, 2));
    let log = bench.reopen_clean(log);
    assert!(log.put(produced(9, 0, 2, 2)).duplicate, "the last batch is known");
    sequence_after_load(&log, 4);
}

/// A snapshot keeps the last batch only; the answers to all five that a producer may have under way can be lost.
#[test]
fn the_last_five_batches_are_recognised_after_a_clean_stop() {
    let mut bench = Bench::new();
    let log = bench.create();
    for at in 0..7 {
        log.put(produced(9, 0, at * 2, 2));
        // Over several segments, and with others between them.
        log.put(records(1, 400));
        log.put(produced(4, 0, at, 1));
    }
    assert!(log.segment_count() > 2);
    let log = bench.reopen_clean(log);
    assert!(log.put(produced(4, 0, 6, 1)).duplicate);
    for at in 2..7 {
        let again = log.put(produced(9, 0, at * 2, 2));
        assert!(again.duplicate, "batch {at}");
        assert_eq!(again.base_offset, Offset(i64::from(at) * 4));
    }
    assert!(
        matches!(log.try_put(produced(9, 0, 2, 2)), Err(AppendError::Producer { .. })),
        "of six the oldest is forgotten"
    );
    assert!(log.put(produced(4, 0, 3, 1)).duplicate, "those of all producers are known again");
    sequence_after_load(&log, 14);
}

#[test]
fn batches_of_an_older_epoch_are_not_recalled() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.put(produced(9, 0, 0, 2));
    log.put(produced(9, 1, 0, 2));
    log.put(produced(9, 1, 2, 2));
    let log = bench.reopen_clean(log);
    assert!(log.put(produced(9, 1, 0, 2)).duplicate);
    assert!(matches!(log.try_put(produced(9, 0, 0, 2)), Err(AppendError::Producer { .. })));
}

#[test]
fn producers_are_known_after_a_crash() {
    let bench = Bench::new();
    let log = bench.create();
    for at in 0..6 {
        log.put(produced(9, 0, at * 2, 2));
        log.put(records(1, 400));
    }
    assert!(log.segment_count() > 2);
    let log = bench.after(CrashMode::ProcessKill).open(false);
    assert!(log.put(produced(9, 0, 10, 2)).duplicate);
    sequence_after_load(&log, 12);
}

#[test]
fn producers_are_found_again_without_any_snapshot_if_the_log_was_not_closed() {
    let mut bench = Bench::new();
    let log = bench.create();
    for at in 0..6 {
        log.put(produced(9, 0, at, 1));
        log.put(records(1, 600));
    }
    log.flush().unwrap();
    bench.checkpoint(&log);
    let bench = bench.after(CrashMode::ProcessKill);
    for name in bench.files().into_iter().filter(|name| name.ends_with(".snapshot")) {
        bench.disk.remove_file(&Path::new(DIR).join(name)).unwrap();
    }
    sequence_after_load(&bench.open(false), 6);
}

/// apache/kafka#9621.
#[test]
fn a_damaged_snapshot_is_removed_and_an_older_one_serves() {
    for cut in [0, 1, 20] {
        let mut bench = Bench::new();
        let log = bench.create();
        for at in 0..4 {
            log.put(produced(9, 0, at, 1));
            log.put(records(1, 600));
        }
        log.close().unwrap();
        bench.checkpoint(&log);
        let newest = bench.files().into_iter().rfind(|name| name.ends_with(".snapshot")).unwrap();
        let path = Path::new(DIR).join(&newest);
        bench.disk.open(&path, crate::disk::OpenOptions::WRITE).unwrap().set_len(cut).unwrap();
        let log = bench.open(true);
        sequence_after_load(&log, 4);
    }
}

#[test]
fn a_log_of_a_broker_without_producers_is_not_read_after_a_clean_stop() {
    let mut bench = Bench::new();
    let log = bench.create();
    for _ in 0..4 {
        log.put(records(1, 600));
    }
    log.close().unwrap();
    bench.checkpoint(&log);
    for name in bench.files().into_iter().filter(|name| name.ends_with(".snapshot")) {
        bench.disk.remove_file(&Path::new(DIR).join(name)).unwrap();
    }
    let log = bench.open(true);
    assert_eq!(log.producer_count(), 0);
    let snapshots: Vec<_> = bench.files().into_iter().filter(|name| name.ends_with(".snapshot")).collect();
    assert_eq!(
        snapshots,
        ["00000000000000000002.snapshot", "00000000000000000003.snapshot", "00000000000000000004.snapshot"]
    );
}

#[test]
fn producers_that_expired_before_a_restart_are_forgotten() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.put(produced(9, 0, 0, 1));
    bench.now.wall_ms = 5_000 + EXPIRATION.0;
    let log = bench.reopen_clean(log);
    assert_eq!(log.producer_count(), 0);
    log.put(produced(9, 0, 77, 1));
}

#[test]
fn silent_producers_are_forgotten_and_may_go_on_with_any_sequence() {
    let log = Bench::new().create();
    log.put(produced(9, 0, 0, 5));
    let at = |wall_ms| Now { mono_ms: 0, wall_ms };
    assert_eq!(log.expire_producers(at(5_004 + 99), Millis(100)), 0);
    assert_eq!(log.expire_producers(at(5_004 + 100), Millis(100)), 1);
    log.put(produced(9, 0, 5, 1));
}

#[test]
fn an_open_transaction_is_open_after_every_kind_of_restart() {
    for clean in [true, false] {
        let mut bench = Bench::new();
        let log = bench.create();
        log.put(records(2, 5));
        log.put(transactional(9, 0, 0, 2));
        log.replicate();
        let log = if clean {
            bench.reopen_clean(log)
        } else {
            bench.checkpoint(&log);
            bench.after(CrashMode::ProcessKill).open(false)
        };
        assert_eq!(log.positions().last_stable, Offset(2));
        log.put_marker(marker(9, 0, true));
        log.replicate();
        assert_eq!(log.positions().last_stable, Offset(5));
    }
}

/// apache/kafka#8936.
#[test]
fn the_index_of_aborted_transactions_is_built_again_by_recovery() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.put(transactional(9, 0, 0, 2));
    log.put(transactional(8, 0, 0, 2));
    log.put_marker(marker(9, 0, true));
    log.put_marker(marker(8, 0, false));
    log.replicate();
    bench.checkpoint(&log);
    let before = log.segments()[0].txn_index().all().unwrap();
    assert_eq!(before.len(), 1);
    let bench = bench.after(CrashMode::ProcessKill);
    bench.disk.remove_file(&Path::new(DIR).join("00000000000000000000.txnindex")).unwrap();
    let log = bench.open(false);
    assert_eq!(log.segments()[0].txn_index().all().unwrap(), before);
    assert_eq!(before[0].last_stable_offset, Offset(2), "the other transaction was open then");
}

#[test]
fn a_marker_without_data_leaves_no_trace_in_the_index() {
    let bench = Bench::new();
    let log = bench.create();
    log.put_marker(marker(9, 0, true));
    assert!(!bench.files().iter().any(|name| name.ends_with(".txnindex")));
}

#[test]
fn a_producer_of_which_only_a_marker_is_known_survives_a_restart() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.put_marker(marker(9, 4, true));
    let log = bench.reopen_clean(log);
    let entry = *lock(&log.writer).producers.get(9).unwrap();
    assert_eq!((entry.producer_epoch, entry.last_sequence(), entry.last_timestamp), (4, -1, 6000));
}
