use super::*;

/// An epoch that leaves no batch out.
const NEWEST: LeaderEpoch = LeaderEpoch(i32::MAX);

/// A batch as a leader has stamped it.
fn stamped(base: i64, epoch: i32, count: usize) -> Bytes {
    let batch = Batch::parse(&records(count, 20)).unwrap();
    let mut header = batch.header;
    header.base_offset = Offset(base);
    header.partition_leader_epoch = LeaderEpoch(epoch);
    [&header.to_bytes()[..], batch.body()].concat().into()
}

#[test]
fn the_bytes_of_a_leader_are_stored_as_they_are() {
    let log = Bench::new().create();
    let sent: Bytes = [stamped(0, 1, 3), stamped(3, 1, 2), stamped(5, 4, 1)].concat().into();
    let info = log.append_as_follower(sent.clone(), NEWEST, now()).unwrap();
    assert_eq!((info.base_offset, info.last_offset), (Offset(0), Offset(5)));
    let read = log.read(Offset(0), 10_000, true, ReadBound::LogEnd).unwrap();
    assert_eq!(read.range.unwrap().to_vec().unwrap(), sent);
    assert_eq!(epochs(&log), [(1, 0), (4, 5)]);
}

#[test]
fn a_cut_batch_at_the_end_is_left_out() {
    let log = Bench::new().create();
    let whole = [stamped(0, 1, 3), stamped(3, 1, 2)].concat();
    log.append_as_follower(whole[..whole.len() - 1].to_vec().into(), NEWEST, now()).unwrap();
    assert_eq!(log.end(), 3);
    assert_eq!(offsets(&log.all()), [(0, 2)]);
}

#[test]
fn offsets_may_leave_gaps_but_must_rise() {
    let log = Bench::new().create();
    log.append_as_follower([stamped(0, 1, 3), stamped(10, 1, 2)].concat().into(), NEWEST, now()).unwrap();
    assert_eq!(log.end(), 12);
    assert_eq!(offsets(&log.read_from(5, 1, ReadBound::LogEnd)), [(10, 11)]);
    let back = [stamped(20, 1, 3), stamped(12, 1, 2)].concat();
    assert_eq!(log.append_as_follower(back.into(), NEWEST, now()), Err(AppendError::OffsetsOutOfOrder));
    assert_eq!(log.end(), 12);
}

/// A log of the segments 0 and 10, with nothing from 3 to 9, after the power was lost.
fn with_a_gap() -> Bench {
    let bench = Bench::with(LogConfig { segment_bytes: 200, ..small_segments() });
    let log = bench.create();
    log.append_as_follower(stamped(0, 1, 3), NEWEST, now()).unwrap();
    log.append_as_follower(stamped(10, 1, 2), NEWEST, now()).unwrap();
    assert_eq!(segment_bases(&log), [0, 3], "a segment begins where the one before it ends");
    drop(log);
    for name in bench.files().iter().filter(|name| name.starts_with("00000000000000000003.")) {
        let renamed = name.replace("03.", "10.");
        bench.disk.rename(&Path::new(DIR).join(name), &Path::new(DIR).join(renamed)).unwrap();
    }
    Bench { boot: Boot::Another, ..bench.after(CrashMode::ProcessKill) }
}

fn end_after_recovery(bench: &Bench) -> i64 {
    // Recovery changes files; the next one is to find them as they were.
    bench.after_as(bench.boot).open(false).end()
}

#[test]
fn a_gap_between_segments_ends_the_log_where_the_power_was_lost_and_not_where_only_the_process_died() {
    let bench = with_a_gap();
    assert_eq!(end_after_recovery(&bench), 3);
    assert_eq!(end_after_recovery(&Bench { boot: Boot::Unknown, ..bench.after_as(Boot::Unknown) }), 3);
    let same = bench.after_as(Boot::Same);
    let log = same.open(false);
    assert_eq!((log.end(), offsets(&log.read_from(3, 1, ReadBound::LogEnd))), (12, vec![(10, 11)]));
    assert_eq!(log.positions().recovery_point, Offset(12), "a lost power must not make it a loss later");
}

#[test]
fn a_gap_that_compaction_has_left_stays() {
    let compacted = |boot| {
        let mut bench = with_a_gap().after_as(boot);
        bench.config.cleanup_compact = true;
        bench
    };
    assert_eq!(end_after_recovery(&compacted(Boot::Another)), 3, "nothing says that it was compacted");
    assert_eq!(end_after_recovery(&compacted(Boot::Unknown)), 12, "another broker may have");
    let bench = compacted(Boot::Another);
    for (first_dirty, expected) in [(9, 3), (10, 12)] {
        assert_eq!(
            end_after_recovery(&Bench {
                first_dirty: Some(Offset(first_dirty)),
                ..bench.after_as(Boot::Another)
            }),
            expected
        );
    }
    for (recovery_point, expected) in [(9, 3), (10, 12)] {
        assert_eq!(
            end_after_recovery(&Bench {
                recovery_point: Offset(recovery_point),
                ..bench.after_as(Boot::Another)
            }),
            expected
        );
    }
}

/// Segments that have lost their indexes are read again after a clean stop, too.
#[test]
fn a_gap_in_what_was_flushed_is_no_loss() {
    let bench = with_a_gap();
    let indexes = bench.files().into_iter().filter(|name| name.ends_with(".index"));
    indexes.for_each(|name| bench.disk.remove_file(&Path::new(DIR).join(name)).unwrap());
    assert_eq!(bench.open(true).end(), 12);
}

#[test]
fn records_below_the_log_end_are_unexpected() {
    let log = Bench::new().create();
    log.append_as_follower(stamped(0, 1, 3), NEWEST, now()).unwrap();
    let error = log.append_as_follower(stamped(2, 1, 3), NEWEST, now()).unwrap_err();
    let expected = AppendError::UnexpectedOffset { first: Offset(2), last: Offset(4), log_end: Offset(3) };
    assert_eq!(error, expected);
}

/// KAFKA-18723.
#[test]
fn a_batch_of_a_later_leader_epoch_is_left_out_with_all_that_follows_it() {
    let log = Bench::new().create();
    let sent: Bytes = [stamped(0, 1, 3), stamped(3, 3, 2), stamped(5, 2, 1)].concat().into();
    let info = log.append_as_follower(sent.clone(), LeaderEpoch(2), now()).unwrap();
    assert_eq!((info.last_offset, log.end()), (Offset(2), 3));
    assert_eq!(epochs(&log), [(1, 0)]);
    let info = log.append_as_follower(stamped(3, 3, 2), LeaderEpoch(2), now()).unwrap();
    assert_eq!((info.base_offset, log.end()), (Offset::UNKNOWN, 3));
    // In that epoch it is taken.
    log.append_as_follower(stamped(3, 3, 2), LeaderEpoch(3), now()).unwrap();
    assert_eq!(log.end(), 5);
}

#[test]
fn a_damaged_batch_is_not_stored() {
    let log = Bench::new().create();
    let mut damaged = stamped(0, 1, 3).to_vec();
    damaged[70] ^= 1;
    assert!(matches!(log.append_as_follower(damaged.into(), NEWEST, now()), Err(AppendError::Invalid(_))));
    assert_eq!(log.end(), 0);
}

/// apache/kafka#2210, apache/kafka#4660.
#[test]
fn batches_more_than_31_bits_of_offsets_apart_get_segments_of_their_own() {
    let mut bench = Bench::new();
    let log = bench.create();
    let places = [0, 3_000_000_000, 6_000_000_000, 6_000_000_001];
    for base in places {
        log.append_as_follower(stamped(base, 1, 1), NEWEST, now()).unwrap();
    }
    assert_eq!(segment_bases(&log), [0, 3_000_000_000, 6_000_000_000]);
    for base in [3_000_000_000_i64, 6_000_000_000] {
        assert!(bench.files().contains(&format!("{base:020}.snapshot")));
    }
    let log = bench.reopen_clean(log);
    for base in places {
        assert_eq!(offsets(&log.read_from(base, 1, ReadBound::LogEnd)), [(base, base)]);
    }
    assert_eq!(log.offset_of_max_timestamp().unwrap().map(|found| found.offset), Some(Offset(0)));
}

#[test]
fn a_gap_in_the_sequence_of_a_producer_is_no_reason_to_refuse() {
    let log = Bench::new().create();
    let mut batch = Batch::parse(&produced(9, 2, 50, 1)).unwrap();
    for (at, sequence) in [50, 77].into_iter().enumerate() {
        batch.header.base_offset = Offset(at as i64);
        batch.header.base_sequence = sequence;
        batch.header.crc = batch.header.compute_crc(batch.body());
        let bytes = [&batch.header.to_bytes()[..], batch.body()].concat();
        log.append_as_follower(bytes.into(), NEWEST, now()).unwrap();
    }
    assert_eq!(lock(&log.writer).producers.get(9).unwrap().last_sequence(), 77);
}
