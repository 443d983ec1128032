use super::*;

fn truncate(log: &PartitionLog, offset: i64) -> bool {
    log.truncate_to(Offset(offset), now(), EXPIRATION).unwrap()
}

#[test]
fn a_log_is_cut_at_the_start_of_the_batch_that_holds_the_offset() {
    let log = Bench::new().create();
    for _ in 0..3 {
        log.put(records(4, 5));
    }
    assert!(truncate(&log, 6));
    assert_eq!(log.end(), 6, "the end is what was asked for");
    assert_eq!(offsets(&log.all()), [(0, 3)]);
    assert_eq!(log.put(records(1, 5)).base_offset, Offset(6));
    assert_eq!(offsets(&log.read_from(4, 1, ReadBound::LogEnd)), [(6, 6)]);
}

#[test]
fn the_first_batch_that_a_cut_would_take_is_found_if_there_is_one() {
    let log = Bench::new().create();
    for _ in 0..3 {
        log.put(records(2, 300));
    }
    assert_eq!(segment_bases(&log), [0, 2, 4]);
    let first = |offset| log.first_batch_from(Offset(offset)).unwrap().map(|base| base.0);
    assert_eq!([0, 1, 2, 3, 4, 5].map(first), [0, 0, 2, 2, 4, 4].map(Some));
    assert_eq!((first(6), first(99)), (None, None));
    truncate(&log, 5);
    assert_eq!((log.end(), first(3), first(4)), (5, Some(2), None), "the log ends beyond its last batch");
}

#[test]
fn segments_above_the_cut_go_and_their_files_later() {
    let bench = Bench::new();
    let log = bench.create();
    for _ in 0..5 {
        log.put(records(1, 600));
    }
    assert!(truncate(&log, 2));
    assert_eq!(segment_bases(&log), [0, 1, 2]);
    assert_eq!(log.end(), 2);
    assert!(bench.files().contains(&"00000000000000000004.log.deleted".to_owned()));
    let later = Now { mono_ms: bench.now.mono_ms + 60_000, ..bench.now };
    while let Some(job) = bench.background.next_job(later) {
        job.run();
    }
    assert!(!bench.files().iter().any(|name| name.ends_with(".deleted")));
    assert_eq!(log.put(records(1, 600)).base_offset, Offset(2));
    assert_eq!(offsets(&log.all()), [(0, 0), (1, 1), (2, 2)]);
}

#[test]
fn a_cut_at_the_log_end_takes_only_an_epoch_that_wrote_nothing() {
    let log = Bench::new().create();
    log.become_leader(LeaderEpoch(3)).unwrap();
    log.put(records(4, 5));
    log.become_leader(LeaderEpoch(4)).unwrap();
    assert_eq!(epochs(&log), [(3, 0), (4, 4)]);
    assert!(!truncate(&log, 4));
    assert_eq!((log.end(), epochs(&log)), (4, vec![(3, 0)]));
    assert!(!truncate(&log, 99));
    assert_eq!(log.end(), 4);
}

#[test]
fn every_offset_is_lowered_to_the_cut_and_none_is_raised() {
    let log = Bench::new().create();
    for _ in 0..4 {
        log.put(records(5, 5));
    }
    log.advance_high_watermark(Offset(15));
    log.increment_log_start(Offset(7)).unwrap();
    log.flush().unwrap();
    truncate(&log, 12);
    let expected = |log_start, high_watermark, log_end, recovery_point| Positions {
        log_start: Offset(log_start),
        last_stable: Offset(high_watermark),
        high_watermark: Offset(high_watermark),
        log_end: Offset(log_end),
        recovery_point: Offset(recovery_point),
    };
    assert_eq!(log.positions(), expected(7, 12, 12, 12));
    log.put(records(3, 5));
    truncate(&log, 14);
    assert_eq!(log.positions(), expected(7, 12, 14, 12));
    truncate(&log, 5);
    assert_eq!(log.positions(), expected(5, 5, 5, 5));
}

#[test]
fn a_cut_below_the_first_segment_starts_the_log_anew_there() {
    let log = Bench::new().create();
    log.truncate_fully_and_start_at(Offset(100), now()).unwrap();
    log.put(records(4, 5));
    assert!(truncate(&log, 40));
    let at = Offset(40);
    let expected =
        Positions { log_start: at, last_stable: at, high_watermark: at, log_end: at, ..Positions::default() };
    assert_eq!(log.positions(), expected);
    assert_eq!(log.put(records(1, 5)).base_offset, at);
}

#[test]
fn a_full_cut_starts_and_ends_the_log_at_any_offset() {
    for start in [0, 2, 77] {
        let bench = Bench::new();
        let log = bench.create();
        log.become_leader(LeaderEpoch(3)).unwrap();
        log.put(produced(9, 0, 0, 1));
        for _ in 0..3 {
            log.put(records(1, 850));
        }
        log.replicate();
        log.truncate_fully_and_start_at(Offset(start), now()).unwrap();
        let positions = log.positions();
        assert_eq!(
            (positions.log_start.0, positions.high_watermark.0, positions.log_end.0),
            (start, start, start)
        );
        assert_eq!(segment_bases(&log), [start]);
        assert!(epochs(&log).is_empty());
        assert_eq!(log.producer_count(), 0);
        assert!(!bench.files().iter().any(|name| name.ends_with(".snapshot")));
        assert_eq!(log.put(produced(9, 0, 7, 2)).base_offset, Offset(start));
        assert_eq!(offsets(&log.all()), [(start, start + 1)]);
    }
}

#[test]
fn negative_offsets_are_refused() {
    let log = Bench::new().create();
    let negative = LogError::NegativeOffset(Offset(-1));
    assert_eq!(log.truncate_to(Offset(-1), now(), EXPIRATION), Err(negative.clone()));
    assert_eq!(log.truncate_fully_and_start_at(Offset(-1), now()), Err(negative));
}

#[test]
fn a_segment_that_became_empty_takes_appends_and_does_not_roll_onto_itself() {
    let log = Bench::new().create();
    for _ in 0..4 {
        log.put(records(1, 300));
    }
    truncate(&log, 2);
    assert_eq!(segment_bases(&log), [0, 2]);
    for _ in 0..4 {
        log.put(records(1, 300));
    }
    assert_eq!(segment_bases(&log), [0, 2, 4]);
    assert_eq!(log.all().len(), 6);
}

#[test]
fn a_cut_below_an_open_transaction_forgets_it() {
    let log = Bench::new().create();
    log.put(records(2, 5));
    log.put(transactional(9, 0, 0, 2));
    log.put(records(2, 5));
    log.replicate();
    assert_eq!(log.positions().last_stable, Offset(2));
    truncate(&log, 2);
    assert_eq!(log.positions().last_stable, Offset(2));
    log.put(records(2, 5));
    log.replicate();
    assert_eq!(log.positions().last_stable, Offset(4));
}

#[test]
fn a_cut_between_data_and_marker_opens_the_transaction_again() {
    let log = Bench::new().create();
    log.put(transactional(9, 0, 0, 2));
    log.put_marker(marker(9, 0, true));
    log.replicate();
    assert_eq!(log.positions().last_stable, Offset(3));
    truncate(&log, 2);
    assert_eq!(log.positions().last_stable, Offset(0));
    log.put_marker(marker(9, 0, false));
    log.replicate();
    assert_eq!(log.positions().last_stable, Offset(3));
    assert!(log.read(Offset(0), 9, true, ReadBound::LastStable).unwrap().aborted.is_empty());
}

#[test]
fn sequences_go_on_from_what_is_left() {
    let log = Bench::new().create();
    for at in 0..8 {
        log.put(produced(9, 0, at * 2, 2));
        log.put(records(1, 250));
    }
    let cut = log.all()[8].header.base_offset;
    truncate(&log, cut.0);
    assert_eq!(log.put(produced(9, 0, 8, 1)).base_offset, cut);
}

#[test]
fn a_snapshot_of_the_same_name_taken_after_a_cut_stays() {
    let mut bench = Bench::new();
    bench.config.file_delete_delay_ms = Millis(10);
    let log = bench.create();
    log.put(records(1, 850));
    log.put(records(1, 850));
    truncate(&log, 0);
    log.put(produced(9, 0, 0, 1));
    log.put(records(1, 900));
    assert_eq!(segment_bases(&log), [0, 1]);
    bench.now.mono_ms += 100;
    bench.run_jobs();
    assert!(bench.files().contains(&"00000000000000000001.snapshot".to_owned()));
    let log = bench.reopen_clean(log);
    assert!(log.put(produced(9, 0, 0, 1)).duplicate);
}

#[test]
fn the_log_start_is_raised_up_to_the_high_watermark_and_never_lowered() {
    let log = Bench::new().create();
    log.become_leader(LeaderEpoch(3)).unwrap();
    for _ in 0..3 {
        log.put(records(4, 5));
    }
    log.advance_high_watermark(Offset(10));
    assert_eq!(log.increment_log_start(Offset(5)), Ok(true));
    assert_eq!(log.increment_log_start(Offset(5)), Ok(false));
    assert_eq!(log.increment_log_start(Offset(3)), Ok(false));
    let above = LogError::AboveHighWatermark { given: Offset(11), high_watermark: Offset(10) };
    assert_eq!(log.increment_log_start(Offset(11)), Err(above));
    assert_eq!(log.positions().log_start, Offset(5));
    assert_eq!(epochs(&log), [(3, 5)]);
    assert_eq!(log.earliest_epoch(), LeaderEpoch(3));
    assert_eq!(log.increment_log_start(Offset(10)), Ok(true));
}

#[test]
fn an_open_transaction_below_the_log_start_holds_it_as_last_stable_offset() {
    let log = Bench::new().create();
    log.put(transactional(9, 0, 0, 2));
    log.put(records(4, 5));
    log.replicate();
    log.increment_log_start(Offset(4)).unwrap();
    assert_eq!(log.positions().last_stable, Offset(4));
    assert!(log.positions().is_consistent());
}

#[test]
fn the_earliest_epoch_is_unknown_if_the_epochs_begin_above_the_log_start() {
    let log = Bench::new().create();
    log.put(records(2, 5));
    lock(&log.writer).epochs.change(&log.dir, kernel::epochs::EpochHistory::clear).unwrap();
    log.become_leader(LeaderEpoch(8)).unwrap();
    assert_eq!(log.earliest_epoch(), LeaderEpoch(-1));
}

#[test]
fn a_closed_or_failed_log_is_not_cut() {
    let bench = Bench::new();
    let log = bench.create();
    log.put(records(2, 5));
    log.close().unwrap();
    assert_eq!(log.truncate_to(Offset(1), now(), EXPIRATION), Err(LogError::Closed));
    assert_eq!(log.increment_log_start(Offset(0)), Err(LogError::Closed));
    bench.health.fail("test", &std::io::Error::other("x"));
    assert!(matches!(log.truncate_fully_and_start_at(Offset(1), now()), Err(LogError::Storage(_))));
}

/// The batches that a log holds after the power was lost, as (base offset, epoch); `None` without a log.
fn after_power_loss(bench: &Bench, seed: u64) -> Option<Vec<(i64, i32)>> {
    let bench = Bench::on(bench.disk.fork(), bench.config.clone()).after(CrashMode::PowerLoss { seed });
    if !bench.disk.exists(Path::new(DIR)).unwrap() {
        return None;
    }
    let log = bench.open(false);
    let of = |batch: &Batch| (batch.header.base_offset.0, batch.header.partition_leader_epoch.0);
    Some(log.all().iter().map(of).collect())
}

/// New records of the same size lie where those were that were cut (L6).
#[test]
fn what_was_cut_does_not_come_back_below_what_was_written_after_it() {
    for size in [20, 600] {
        let bench = Bench::new();
        let log = bench.create();
        for epoch in [0, 1] {
            log.become_leader(LeaderEpoch(epoch)).unwrap();
            for _ in 0..5 {
                let appended =
                    log.append_as_leader(records(1, size), AppendOrigin::Client, LeaderEpoch(epoch), now());
                appended.unwrap();
            }
            if epoch == 0 {
                truncate(&log, 1);
            }
        }
        for seed in 0..300 {
            let left = after_power_loss(&bench, seed).unwrap_or_default();
            let is_new = left.iter().any(|(_, epoch)| *epoch == 1);
            let stale = left.iter().find(|(base, epoch)| *base > 0 && *epoch == 0);
            assert!(!is_new || stale.is_none(), "seed {seed}, size {size}: {left:?}");
        }
    }
}

/// The disk may keep a later segment and lose an earlier one, or what was in it.
#[test]
fn after_a_lost_power_a_log_begins_where_it_began_and_has_no_gaps() {
    let bench = Bench::new();
    let log = bench.create();
    for _ in 0..9 {
        log.put(records(1, 400));
    }
    for seed in 0..300 {
        let left = after_power_loss(&bench, seed).unwrap_or_default();
        let bases: Vec<i64> = left.iter().map(|(base, _)| *base).collect();
        assert_eq!(bases, (0..).take(bases.len()).collect::<Vec<i64>>(), "seed {seed}");
    }
}
