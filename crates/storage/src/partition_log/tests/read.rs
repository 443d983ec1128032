use super::*;
use crate::partition_log::read::View;

#[test]
fn every_offset_is_read_from_the_start_of_its_batch() {
    let log = Bench::new().create();
    for count in [1, 4, 2, 7, 3, 5, 1, 1, 9] {
        log.put(records(count, 60));
    }
    assert!(log.segment_count() > 2);
    for at in 0..log.end() {
        let found = log.read_from(at, 1, ReadBound::LogEnd);
        let (first, last) = offsets(&found)[0];
        assert!(first <= at && at <= last, "{at} in {first}..={last}");
        assert_eq!(found.len(), 1);
    }
}

#[test]
fn a_read_stops_at_its_limit_but_gives_one_batch_if_asked() {
    let log = Bench::new().create();
    let size = records(1, 50).len();
    for _ in 0..3 {
        log.put(records(1, 50));
    }
    let len = |max, min_one| {
        let read = log.read(Offset(0), max, min_one, ReadBound::LogEnd).unwrap();
        (read.range.map_or(0, |range| range.len), read.first_batch_incomplete)
    };
    assert_eq!(len(size * 2, true), (size * 2, false));
    assert_eq!(len(size * 2 + 5, true), (size * 2 + 5, false), "the last batch may be cut");
    assert_eq!(len(5, true), (size, false));
    assert_eq!(len(5, false), (5, true));
    assert_eq!(len(0, false), (0, true));
    assert_eq!(len(1 << 20, false), (size * 3, false));
}

#[test]
fn offsets_outside_of_the_log_are_out_of_range() {
    let log = Bench::new().create();
    log.put(records(5, 5));
    log.replicate();
    log.increment_log_start(Offset(2)).unwrap();
    for offset in [-1, 0, 1, 6] {
        let error = log.read(Offset(offset), 100, true, ReadBound::LogEnd).unwrap_err();
        let expected =
            ReadError::OffsetOutOfRange { offset: Offset(offset), log_start: Offset(2), log_end: Offset(5) };
        assert_eq!(error, expected);
    }
    assert!(log.read(Offset(5), 100, true, ReadBound::LogEnd).unwrap().range.is_none());
    assert_eq!(offsets(&log.read_from(2, 100, ReadBound::LogEnd)), [(0, 4)]);
}

#[test]
fn nothing_is_read_at_or_above_the_high_watermark() {
    let log = Bench::new().create();
    log.put(records(2, 5));
    log.put(records(2, 5));
    assert!(log.read_from(0, 1000, ReadBound::HighWatermark).is_empty());
    log.advance_high_watermark(Offset(2));
    assert_eq!(offsets(&log.read_from(0, 1000, ReadBound::HighWatermark)), [(0, 1)]);
    assert!(log.read_from(2, 1000, ReadBound::HighWatermark).is_empty());
    assert!(log.read_from(3, 1000, ReadBound::HighWatermark).is_empty(), "between the bound and the end");
    assert_eq!(offsets(&log.read_from(0, 1000, ReadBound::LogEnd)), [(0, 1), (2, 3)]);
}

#[test]
fn a_roll_at_the_high_watermark_opens_nothing_above_it() {
    let log = Bench::new().create();
    log.put(records(1, 850));
    log.replicate();
    log.put(records(1, 300));
    assert_eq!(segment_bases(&log), [0, 1]);
    assert_eq!(offsets(&log.read_from(0, 5000, ReadBound::HighWatermark)), [(0, 0)]);
    assert!(log.read_from(1, 5000, ReadBound::HighWatermark).is_empty());
}

#[test]
fn a_high_watermark_far_behind_is_found_in_an_old_segment() {
    let log = Bench::new().create();
    for _ in 0..40 {
        log.put(records(1, 150));
    }
    for high_watermark in 1..=40 {
        log.advance_high_watermark(Offset(high_watermark));
        let mut seen = Vec::new();
        let mut at = 0;
        while let Some(last) = log.read_from(at, 2000, ReadBound::HighWatermark).last() {
            at = last.header.next_offset().0;
            seen.push(at);
        }
        assert_eq!(at, high_watermark, "{seen:?}");
    }
}

#[test]
fn the_high_watermark_moves_forward_only_and_never_beyond_the_log_end() {
    let log = Bench::new().create();
    log.put(records(4, 5));
    assert!(log.advance_high_watermark(Offset(3)));
    assert!(!log.advance_high_watermark(Offset(3)));
    assert!(!log.advance_high_watermark(Offset(1)));
    assert!(log.advance_high_watermark(Offset(99)));
    assert_eq!(log.positions().high_watermark, Offset(4));
}

#[test]
fn a_follower_takes_any_high_watermark_within_its_log() {
    let log = Bench::new().create();
    log.put(records(4, 5));
    assert_eq!(log.set_high_watermark(Offset(99)).high_watermark, Offset(4));
    assert_eq!(log.set_high_watermark(Offset(2)).high_watermark, Offset(2));
    assert_eq!(log.set_high_watermark(Offset(-1)).high_watermark, Offset(0));
}

#[test]
fn readers_of_committed_records_stop_at_the_first_open_transaction() {
    let log = Bench::new().create();
    log.put(records(2, 5));
    log.put(transactional(9, 0, 0, 2));
    log.put(records(1, 5));
    log.replicate();
    assert_eq!(log.positions().last_stable, Offset(2));
    assert_eq!(offsets(&log.read_from(0, 1000, ReadBound::LastStable)), [(0, 1)]);
    assert!(log.read_from(2, 1000, ReadBound::LastStable).is_empty());
    log.put_marker(marker(9, 0, false));
    assert_eq!(log.positions().last_stable, Offset(2), "the marker is not replicated yet");
    log.replicate();
    assert_eq!(log.positions().last_stable, Offset(6));
    assert_eq!(offsets(&log.read_from(0, 1000, ReadBound::LastStable)).len(), 4);
}

#[test]
fn readers_of_committed_records_are_told_which_transactions_were_aborted() {
    let log = Bench::new().create();
    for _ in 0..3 {
        log.put(records(1, 300));
    }
    log.put(transactional(9, 0, 0, 2));
    log.put(records(1, 300));
    log.put_marker(marker(9, 0, true));
    log.put(transactional(8, 0, 0, 1));
    log.put_marker(marker(8, 0, false));
    log.replicate();
    assert!(log.segment_count() > 1);
    let aborted = |from: i64, bound| {
        let read = log.read(Offset(from), 10, true, bound).unwrap();
        read.aborted
            .iter()
            .map(|txn| (txn.producer_id, txn.first_offset.0, txn.last_offset.0))
            .collect::<Vec<_>>()
    };
    assert_eq!(aborted(3, ReadBound::LastStable), [(9, 3, 6)]);
    assert_eq!(aborted(3, ReadBound::HighWatermark), []);
    assert_eq!(aborted(7, ReadBound::LastStable), []);
}

#[test]
fn a_range_stays_readable_when_its_segment_is_removed() {
    let mut bench = Bench::new();
    bench.config.file_delete_delay_ms = Millis(0);
    let log = bench.create();
    for _ in 0..4 {
        log.put(records(1, 600));
    }
    log.replicate();
    let read = log.read(Offset(0), 10_000, true, ReadBound::LogEnd).unwrap();
    log.increment_log_start(Offset(3)).unwrap();
    log.delete_old_segments(bench.now).unwrap();
    bench.run_jobs();
    assert_eq!(read.range.unwrap().to_vec().unwrap().len(), records(1, 600).len());
    let error = log.read(Offset(0), 10_000, true, ReadBound::LogEnd).unwrap_err();
    assert!(matches!(error, ReadError::OffsetOutOfRange { .. }));
    assert!(bench.health.is_online());
}

#[test]
fn an_error_of_the_disk_while_reading_takes_the_directory_offline() {
    let mut bench = Bench::new();
    let log = bench.create();
    for _ in 0..5 {
        log.put(records(1, 20));
    }
    let log = bench.reopen_clean(log);
    bench.fail(Operation::Read, ".log", 0);
    assert!(matches!(log.read(Offset(1), 100, true, ReadBound::LogEnd), Err(ReadError::Storage(_))));
    assert!(!bench.health.is_online());
}

#[test]
fn log_start_and_high_watermark_of_a_read_are_of_one_moment() {
    let log = Bench::new().create();
    for _ in 0..50 {
        log.put(records(1, 5));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 1..50 {
                log.advance_high_watermark(Offset(at));
                log.increment_log_start(Offset(at)).unwrap();
            }
        });
        loop {
            let positions = log.positions();
            assert!(positions.is_consistent(), "{positions:?}");
            if let Ok(read) = log.read(positions.log_start, 100, true, ReadBound::HighWatermark) {
                assert!(read.positions.is_consistent());
            }
            if positions.log_start == Offset(49) {
                break;
            }
        }
    });
}

#[test]
fn readers_beside_a_writer_see_whole_batches_in_order_and_nothing_above_the_bound() {
    let log = Bench::new().create();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..300 {
                log.put(records(1 + at % 3, 100));
                log.replicate();
            }
        });
        let mut at = 0;
        while log.end() < 300 || at < log.end() {
            let read = log.read(Offset(at), 1500, true, ReadBound::HighWatermark).unwrap();
            let Some(range) = read.range else { continue };
            for batch in batches(range.to_vec().unwrap().into()) {
                let batch = batch.unwrap();
                batch.verify_crc().unwrap();
                assert_eq!(batch.header.base_offset.0, at);
                assert!(batch.header.next_offset() <= read.positions.high_watermark);
                at = batch.header.next_offset().0;
            }
            if log.end() >= 600 && at == log.end() {
                break;
            }
        }
    });
}

#[test]
fn what_is_appended_after_the_positions_were_read_is_not_given() {
    let log = Bench::new().create();
    log.put(records(2, 5));
    log.replicate();
    for bound in [ReadBound::LogEnd, ReadBound::HighWatermark, ReadBound::LastStable] {
        let (positions, end) = log.published.view();
        let view = View { positions, end, bound };
        log.put(records(1, 5));
        let read = log.read_in(&view, Offset(0), 10_000, true).unwrap();
        let seen: Vec<Batch> =
            batches(read.range.unwrap().to_vec().unwrap().into()).collect::<Result<_, _>>().unwrap();
        assert_eq!(seen.last().unwrap().header.next_offset(), positions.log_end);
        log.replicate();
    }
}
