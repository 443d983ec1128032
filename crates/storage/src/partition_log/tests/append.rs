use super::*;

fn many(log: &PartitionLog, requests: Vec<Bytes>) -> Vec<Result<AppendInfo, AppendError>> {
    let requests = requests.into_iter().map(|records| LeaderAppend { records, origin: AppendOrigin::Client });
    log.append_many_as_leader(requests.collect(), LeaderEpoch(3), now())
}

fn bases(results: &[Result<AppendInfo, AppendError>]) -> Vec<i64> {
    results.iter().map(|result| result.as_ref().map_or(-9, |info| info.base_offset.0)).collect()
}

#[test]
fn offset_and_epoch_are_stamped_and_the_rest_of_the_batch_stays_as_it_came() {
    let log = Bench::new().create();
    let sent = records(3, 10);
    assert_eq!(log.put(sent.clone()).base_offset, Offset(0));
    let info = log.put(sent.clone());
    assert_eq!((info.base_offset, info.last_offset), (Offset(3), Offset(5)));
    let stored = &log.all()[1];
    assert_eq!(stored.header.partition_leader_epoch, LeaderEpoch(3));
    assert_eq!(stored.header.base_offset, Offset(3));
    assert_eq!(stored.bytes[17..], sent[17..], "everything from the checksum on");
}

#[test]
fn no_records_append_nothing() {
    let log = Bench::new().create();
    let info = log.put(Bytes::new());
    assert_eq!(
        (info.base_offset, info.last_offset, info.log_append_time),
        (Offset(-1), Offset(-1), Millis(-1))
    );
    assert_eq!(log.end(), 0);
}

#[test]
fn a_partial_batch_counts_as_none() {
    let log = Bench::new().create();
    let cut = records(3, 10).slice(..50);
    assert_eq!(log.put(cut).base_offset, Offset(-1));
}

#[test]
fn two_batches_at_once_are_refused() {
    let log = Bench::new().create();
    let two = [records(1, 5), records(1, 5)].concat();
    assert!(matches!(log.try_put(two.into()), Err(AppendError::Invalid(_))));
    assert_eq!(log.end(), 0);
}

#[test]
fn a_batch_larger_than_max_message_bytes_is_refused() {
    let size = records(1, 50).len() as i32;
    let log = Bench::with(LogConfig { max_message_bytes: size, ..small_segments() }).create();
    log.put(records(1, 50));
    let refused = log.try_put(records(1, 51)).unwrap_err();
    let AppendError::Invalid(refused) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.rejection(), wire::batch::validate::Rejection::MessageTooLarge);
    assert_eq!(log.end(), 1);
}

#[test]
fn a_batch_larger_than_a_segment_is_refused() {
    let log = Bench::new().create();
    let refused = log.try_put(records(1, 1000)).unwrap_err();
    assert!(matches!(refused, AppendError::RecordListTooLarge { limit: 1000, .. }));
    assert_eq!(log.end(), 0);
    assert_eq!(log.segment_count(), 1);
}

#[test]
fn the_time_of_the_append_is_told_if_the_topic_asks_for_it() {
    let config =
        LogConfig { message_timestamp_type: wire::batch::TimestampType::LogAppendTime, ..small_segments() };
    let log = Bench::with(config).create();
    assert_eq!(log.put(records(2, 5)).log_append_time, Millis(1_000_000));
    assert_eq!(log.all()[0].header.max_timestamp, Millis(1_000_000));
    assert_eq!(Bench::new().create().put(records(2, 5)).log_append_time, Millis(-1));
}

#[test]
fn a_repeated_batch_is_answered_with_its_first_offsets_and_timestamp() {
    let log = Bench::new().create();
    log.put(records(4, 5));
    log.put(produced(9, 0, 0, 3));
    let again = log.put(produced(9, 0, 0, 3));
    assert!(again.duplicate);
    assert_eq!((again.base_offset, again.last_offset), (Offset(4), Offset(6)));
    assert_eq!(again.log_append_time, Millis(5002));
    assert_eq!(log.end(), 7);
}

#[test]
fn a_batch_that_is_refused_for_its_producer_leaves_no_trace_but_may_roll() {
    let log = Bench::new().create();
    log.put(produced(9, 0, 0, 1));
    log.put(records(1, 850));
    let refused = log.try_put(produced(9, 0, 5, 1)).unwrap_err();
    assert!(matches!(refused, AppendError::Producer { producer_id: 9, .. }));
    assert_eq!(segment_bases(&log), [0, 2], "the check for a roll comes first");
    assert_eq!(log.end(), 2);
    assert_eq!(log.put(produced(9, 0, 1, 1)).base_offset, Offset(2), "the sequence did not move");
}

#[test]
fn requests_that_wait_together_are_written_with_one_write() {
    let bench = Bench::new();
    let log = bench.create();
    log.become_leader(LeaderEpoch(3)).unwrap();
    let before = bench.disk.changes();
    let results = many(&log, vec![records(2, 5), records(1, 5), records(3, 5)]);
    assert_eq!(bases(&results), [0, 2, 3]);
    // The third set is the first with more than the index interval before it: two index files, one entry each.
    let index_changes = bench.files().iter().filter(|name| name.ends_with("index")).count() as u64 * 3;
    // The leader's epoch comes into its file, which is made, with the first record.
    let epoch_changes = 2;
    assert!(bench.disk.changes() - before <= 1 + epoch_changes + index_changes);
    assert_eq!(offsets(&log.all()), [(0, 1), (2, 2), (3, 5)]);
}

#[test]
fn each_request_of_a_group_is_judged_for_itself_and_sees_those_before_it() {
    let log = Bench::new().create();
    let results = many(
        &log,
        vec![
            produced(9, 0, 0, 2),
            produced(9, 0, 7, 1),
            Bytes::new(),
            produced(9, 0, 0, 2),
            records(1, 1000),
            produced(9, 0, 2, 1),
        ],
    );
    assert_eq!(bases(&results), [0, -9, -1, 0, -9, 2]);
    assert!(matches!(results[1], Err(AppendError::Producer { .. })));
    assert!(results[3].as_ref().unwrap().duplicate);
    assert!(matches!(results[4], Err(AppendError::RecordListTooLarge { .. })));
    assert_eq!(offsets(&log.all()), [(0, 1), (2, 2)]);
}

#[test]
fn a_group_that_does_not_fit_into_one_segment_is_written_into_several() {
    let log = Bench::new().create();
    let results = many(&log, (0..7).map(|_| records(1, 300)).collect());
    assert_eq!(bases(&results), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(segment_bases(&log), [0, 2, 4, 6]);
    assert_eq!(log.all().len(), 7);
}

#[test]
fn a_group_never_fills_an_index_beyond_its_room() {
    let config = LogConfig { segment_index_bytes: 40, segment_bytes: 1 << 20, ..small_segments() };
    let log = Bench::with(config).create();
    let results = many(&log, (0..20).map(|_| records(1, 150)).collect());
    assert!(results.iter().all(Result::is_ok));
    assert!(log.segment_count() > 1);
    assert_eq!(log.all().len(), 20);
}

#[test]
fn a_failed_write_fails_the_whole_group_and_takes_the_directory_offline() {
    let bench = Bench::new();
    let log = bench.create();
    log.put(produced(9, 0, 0, 1));
    bench.fail(Operation::Write, ".log", 0);
    let results = many(&log, vec![produced(9, 0, 1, 1), records(1, 5), produced(9, 0, 1, 1)]);
    assert!(results.iter().all(|result| matches!(result, Err(AppendError::Storage(_)))));
    assert!(!bench.health.is_online());
    assert_eq!(log.end(), 1);
    // The disk would work again, but no offset is given out twice (KAFKA-10778).
    assert!(matches!(log.try_put(records(1, 5)), Err(AppendError::Storage(_))));
    assert!(matches!(log.read(Offset(0), 100, true, ReadBound::LogEnd), Err(ReadError::Storage(_))));
}

/// apache/kafka#9676.
#[test]
fn after_a_failed_write_and_a_restart_no_offset_is_lost_or_used_twice() {
    let bench = Bench::new();
    let log = bench.create();
    log.put(records(2, 5));
    bench.fail(Operation::Write, ".log", 0);
    log.try_put(records(2, 5)).unwrap_err();
    let bench = bench.after(CrashMode::ProcessKill);
    let log = bench.open(false);
    assert_eq!(offsets(&log.all()), [(0, 1)], "the half-written batch is gone");
    assert_eq!(log.put(records(1, 5)).base_offset, Offset(2));
}

/// apache/kafka#6570.
#[test]
fn if_an_abort_cannot_be_noted_the_log_end_moves_and_the_last_stable_offset_does_not() {
    let bench = Bench::new();
    let log = bench.create();
    log.put(transactional(9, 0, 0, 2));
    bench.fail(Operation::Open, ".txnindex", 1);
    let result = log.append_as_leader(marker(9, 0, true), AppendOrigin::Coordinator, LeaderEpoch(3), now());
    assert!(matches!(result, Err(AppendError::Storage(_))));
    assert_eq!(log.end(), 3);
    log.replicate();
    assert_eq!(log.positions().last_stable, Offset(0));
}

#[test]
fn a_closed_log_takes_nothing() {
    let log = Bench::new().create();
    log.put(records(1, 5));
    log.close().unwrap();
    assert_eq!(log.try_put(records(1, 5)), Err(AppendError::Closed));
    assert_eq!(log.all().len(), 1, "reading goes on");
}

#[test]
fn appending_and_rolling_sync_nothing_but_names_that_no_flush_has_synced() {
    let bench = Bench::new();
    let log = bench.create();
    let before = bench.disk.syncs();
    log.put(records(1, 400));
    log.put(records(1, 400));
    assert_eq!((log.segment_count(), bench.disk.syncs()), (1, before));
    log.put(records(1, 400));
    assert_eq!((log.segment_count(), bench.disk.syncs()), (2, before + 1), "the name of the first segment");
    for count in 3..6 {
        bench.run_jobs();
        let before = bench.disk.syncs();
        log.put(records(1, 400));
        log.put(records(1, 400));
        assert_eq!((log.segment_count(), bench.disk.syncs()), (count, before), "a flush came before");
    }
}

#[test]
fn the_epoch_of_a_leader_is_entered_before_anything_is_appended_in_it() {
    let log = Bench::new().create();
    assert_eq!(log.become_leader(LeaderEpoch(3)), Ok(Offset(0)));
    log.put(records(2, 5));
    assert_eq!(log.become_leader(LeaderEpoch(5)), Ok(Offset(2)));
    assert_eq!(epochs(&log), [(3, 0), (5, 2)]);
    assert_eq!(log.end_offset_for_epoch(LeaderEpoch(3)), (LeaderEpoch(3), Offset(2)));
    assert_eq!(log.end_offset_for_epoch(LeaderEpoch(4)), (LeaderEpoch(3), Offset(2)));
    assert_eq!(log.end_offset_for_epoch(LeaderEpoch(6)), (LeaderEpoch(-1), Offset(-1)));
    assert_eq!(log.latest_epoch(), LeaderEpoch(5));
}

#[test]
fn the_last_offset_there_is_is_refused_and_not_passed() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.truncate_fully_and_start_at(Offset(i64::MAX - 2), now()).unwrap();
    assert_eq!(log.put(records(2, 5)).base_offset, Offset(i64::MAX - 2));
    assert_eq!(log.try_put(records(1, 5)), Err(AppendError::NoOffsetsLeft));
    let log = bench.reopen_clean(log);
    assert_eq!(log.end(), i64::MAX);
}
