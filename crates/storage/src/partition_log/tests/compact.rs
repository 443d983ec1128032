//! Compaction of one log: what stays, what goes, and what changes the log meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use wire::batch::Limits;

use super::*;
use crate::cleaner::choice::cleanable;
use crate::cleaner::{self, CleanerSettings, Pace, PassReport};
use crate::partition_log::CompactionError;

pub(super) const SETTINGS: CleanerSettings =
    CleanerSettings { dedupe_buffer_bytes: 1 << 20, load_factor: 0.9, io_buffer_bytes: 256 };

/// Never holds anybody back.
pub(super) struct Free;

impl Pace for Free {
    fn spend(&self, _: u64) -> bool {
        true
    }
}

/// Does something when a pass asks for the time number `at`.
struct Meanwhile<F: Fn() + Sync> {
    asked: AtomicUsize,
    at: usize,
    what: F,
}

impl<F: Fn() + Sync> Pace for Meanwhile<F> {
    fn spend(&self, _: u64) -> bool {
        if self.asked.fetch_add(1, Ordering::Relaxed) == self.at {
            (self.what)();
        }
        true
    }
}

pub(super) fn compacted() -> LogConfig {
    LogConfig {
        cleanup_compact: true,
        cleanup_delete: false,
        min_cleanable_dirty_ratio: 0.0,
        delete_retention_ms: Millis(1_000),
        ..small_segments()
    }
}

/// A batch of these keys and values, stamped with `time`.
pub(super) fn keyed(time: i64, records: &[(&str, Option<&str>)]) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    for (key, value) in records {
        builder.append(Millis(time), Some(key.as_bytes()), value.map(str::as_bytes));
    }
    builder.build().unwrap().bytes
}

/// A batch of one record of a producer.
fn of_producer(id: i64, sequence: i32, key: &str, transactional: bool) -> Bytes {
    let mut builder =
        BatchBuilder::new(Compression::None).producer(id, 0, sequence).transactional(transactional);
    builder.append(Millis(1000), Some(key.as_bytes()), Some(b"value")).build().unwrap().bytes
}

pub(super) fn pass(
    log: &Arc<PartitionLog>,
    settings: &CleanerSettings,
    pace: &dyn Pace,
    now: Now,
) -> Result<PassReport, CompactionError> {
    let found = cleanable(&log.compaction_facts().unwrap(), Millis(now.wall_ms));
    cleaner::compact(log, &found, settings, pace, now)
}

fn clean(log: &Arc<PartitionLog>) -> PassReport {
    clean_at(log, now().wall_ms)
}

fn clean_at(log: &Arc<PartitionLog>, wall_ms: i64) -> PassReport {
    pass(log, &SETTINGS, &Free, Now { wall_ms, ..now() }).unwrap()
}

/// Fills up the active segment, so that what was written before may be compacted.
pub(super) fn roll(log: &Arc<PartitionLog>) {
    let before = log.segment_count();
    let filler = "f".repeat(400);
    while log.segment_count() == before {
        log.put(keyed(1000, &[("filler", Some(&filler))]));
    }
    log.replicate();
}

/// Offset, key and value of all records but the filler.
pub(super) fn contents(log: &Arc<PartitionLog>) -> Vec<(i64, String, Option<String>)> {
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let all = log.all();
    let data = all.iter().filter(|batch| !batch.header.is_control());
    let records = data.flat_map(|batch| batch.records(Limits::default())).map(Result::unwrap);
    let records = records.map(|record| (record.offset.0, text(record.key.unwrap()), record.value.map(text)));
    records.filter(|(_, key, _)| key != "filler").collect()
}

fn keys(log: &Arc<PartitionLog>) -> Vec<(i64, String)> {
    contents(log).into_iter().map(|(offset, key, _)| (offset, key)).collect()
}

fn some(offset: i64, key: &str) -> (i64, String) {
    (offset, key.into())
}

#[test]
fn of_each_key_the_latest_record_stays_at_its_offset() {
    let mut bench = Bench::with(compacted());
    let log = bench.create();
    log.put(keyed(1000, &[("a", Some("1")), ("b", Some("1")), ("c", Some("1"))]));
    log.put(keyed(1001, &[("a", Some("2"))]));
    roll(&log);
    log.put(keyed(1002, &[("b", Some("2"))]));
    let (end, before) = (log.end(), log.positions());
    let report = clean(&log);
    // What lies in the active segment takes no other's place yet.
    let left = [some(1, "b"), some(2, "c"), some(3, "a"), some(end - 1, "b")];
    assert_eq!(keys(&log), left);
    assert_eq!(log.positions(), Positions { recovery_point: log.positions().recovery_point, ..before });
    assert!(report.kept_bytes < report.read_bytes);
    assert_eq!(log.first_dirty_offset(), Some(report.clean_end));
    let log = bench.reopen_clean(log);
    assert_eq!((log.end(), keys(&log)), (end, left.into()));
    assert_eq!(
        log.read_from(0, 100, ReadBound::LogEnd)[0].header.base_offset,
        Offset(0),
        "the batch keeps its base"
    );
}

/// KAFKA-13194.
#[test]
fn values_that_are_not_replicated_take_no_others_place() {
    let log = Bench::with(compacted()).create();
    log.put(keyed(1000, &[("a", Some("old"))]));
    roll(&log);
    log.put(keyed(1000, &[("a", Some("new"))]));
    let filler = "f".repeat(400);
    for _ in 0..6 {
        log.put(keyed(1000, &[("filler", Some(&filler))]));
    }
    clean(&log);
    assert_eq!(contents(&log)[0].2.as_deref(), Some("old"));
    log.replicate();
    roll(&log);
    clean(&log);
    assert_eq!(contents(&log)[0].2.as_deref(), Some("new"));
}

/// KAFKA-8522, KIP-534.
#[test]
fn a_tombstone_removes_the_value_at_once_and_goes_when_its_time_has_come() {
    let log = Bench::with(compacted()).create();
    log.put(keyed(1000, &[("a", Some("1")), ("b", Some("1"))]));
    log.put(keyed(1000, &[("a", None)]));
    roll(&log);
    clean_at(&log, 10_000);
    assert_eq!(contents(&log), [(1, "b".into(), Some("1".into())), (2, "a".into(), None)]);
    // New dirty data does not begin the time anew.
    roll(&log);
    clean_at(&log, 10_999);
    assert_eq!(keys(&log), [some(1, "b"), some(2, "a")]);
    roll(&log);
    clean_at(&log, 11_000);
    assert_eq!(keys(&log), [some(1, "b")]);
}

/// KAFKA-8351.
#[test]
fn aborted_records_go_and_their_marker_stays_until_nothing_needs_it() {
    let log = Bench::with(compacted()).create();
    log.put(keyed(1000, &[("a", Some("right"))]));
    log.put(of_producer(7, 0, "a", true));
    roll(&log);
    log.put(of_producer(8, 0, "b", true));
    log.put_marker(marker(7, 0, true));
    log.put_marker(marker(8, 0, false));
    // Others write after them, so that these are no producers' last batches.
    log.put(of_producer(7, 1, "c", false));
    log.put(of_producer(8, 1, "d", false));
    roll(&log);
    clean_at(&log, 10_000);
    let markers =
        |log: &Arc<PartitionLog>| log.all().iter().filter(|batch| batch.header.is_control()).count();
    let found: Vec<String> = contents(&log).into_iter().map(|(_, key, _)| key).collect();
    assert_eq!(found, ["a", "b", "c", "d"]);
    assert_eq!(contents(&log)[0].2.as_deref(), Some("right"));
    assert_eq!(markers(&log), 2);
    // The data of the aborted one is gone: its marker gets a horizon, and goes. The committed one still has data.
    for (wall_ms, left) in [(20_000, 2), (20_999, 2), (21_000, 1)] {
        roll(&log);
        clean_at(&log, wall_ms);
        assert_eq!(markers(&log), left, "at {wall_ms}");
    }
}

/// KAFKA-8335.
#[test]
fn the_last_batch_of_a_producer_stays_empty_and_its_state_survives() {
    let mut bench = Bench::with(compacted());
    let log = bench.create();
    log.put(of_producer(7, 0, "a", false));
    log.put(of_producer(7, 1, "a", false));
    log.put(keyed(1000, &[("a", Some("later"))]));
    roll(&log);
    clean(&log);
    assert_eq!(keys(&log), [some(2, "a")]);
    let of_producers: Vec<_> =
        log.all().iter().filter(|b| b.header.has_producer_id()).map(|b| b.header).collect();
    assert_eq!(of_producers.len(), 1);
    assert_eq!((of_producers[0].base_sequence, of_producers[0].records_count), (1, 0));
    log.close().unwrap();
    bench.checkpoint(&log);
    drop(log);
    for name in bench.files().iter().filter(|name| name.ends_with(".snapshot")) {
        bench.disk.remove_file(&Path::new(DIR).join(name)).unwrap();
    }
    let log = bench.open(false);
    assert!(log.put(of_producer(7, 1, "a", false)).duplicate);
    assert!(!log.put(of_producer(7, 2, "a", false)).duplicate);
}

/// A marker that was dropped must not be missed by a snapshot that has its transaction open.
#[test]
fn no_transaction_stays_open_when_its_marker_is_compacted_away() {
    let mut bench = Bench::with(compacted());
    let log = bench.create();
    log.put(of_producer(7, 0, "a", true));
    roll(&log);
    log.put(keyed(1000, &[("a", Some("later"))]));
    log.put_marker(marker(7, 0, false));
    log.put(of_producer(7, 1, "b", false));
    roll(&log);
    for wall_ms in [10_000, 20_000, 30_000] {
        clean_at(&log, wall_ms);
        roll(&log);
    }
    assert!(log.all().iter().all(|batch| !batch.header.is_control()));
    bench.checkpoint(&log);
    // The newest snapshots are lost, and an older one must serve.
    log.close().unwrap();
    drop(log);
    let names = bench.files();
    let mut snapshots: Vec<_> = names.iter().filter(|name| name.ends_with(".snapshot")).collect();
    snapshots.sort();
    while let Some(newest) = snapshots.pop() {
        bench.disk.remove_file(&Path::new(DIR).join(newest)).unwrap();
        let log = bench.open(true);
        assert_eq!(log.positions().last_stable, log.positions().high_watermark, "without {newest}");
    }
}

#[test]
fn segments_become_one_with_whole_indexes_and_the_largest_timestamp() {
    let mut bench = Bench::with(LogConfig { segment_bytes: 1000, ..compacted() });
    let log = bench.create();
    for round in 0..40 {
        log.put(keyed(1000 + round, &[("a", Some("1")), (&format!("k{}", round % 4), Some("1"))]));
    }
    roll(&log);
    let before = segment_bases(&log);
    // The first pass makes them small, and the second one puts the small ones together.
    clean(&log);
    roll(&log);
    clean(&log);
    let after = segment_bases(&log);
    assert!(after.len() < before.len(), "{after:?} of {before:?}");
    assert_eq!(after[0], 0);
    for segment in log.segments() {
        assert!(segment.size() <= 1000);
        let max = segment.max_timestamp().unwrap().timestamp;
        let headers = log.all().into_iter().map(|batch| batch.header);
        let within = headers.filter(|header| {
            segment.find_batch(header.base_offset).unwrap().is_some_and(|b| b.header == *header)
        });
        assert_eq!(within.map(|header| header.max_timestamp).max(), Some(max));
    }
    let found = log.offset_for_timestamp(1036).unwrap().unwrap();
    assert_eq!((found.timestamp, found.offset), (1036, Offset(73)));
    // Nothing needs to be built anew at the next start, and nothing is left over.
    let log = bench.reopen_clean(log);
    assert_eq!(segment_bases(&log), after);
    bench.now.mono_ms += 100_000;
    bench.run_jobs();
    assert!(
        bench.files().iter().all(
            |name| crate::names::SegmentFileName::parse(name).is_none_or(|name| name.transient.is_none())
        )
    );
}

#[test]
fn what_a_reader_holds_stays_readable_and_the_next_read_finds_what_follows() {
    let mut bench = Bench::with(compacted());
    let log = bench.create();
    for _ in 0..10 {
        log.put(keyed(1000, &[("a", Some("1"))]));
    }
    roll(&log);
    let held = log.read(Offset(0), 10_000, true, ReadBound::LogEnd).unwrap().range.unwrap();
    let bytes = held.to_vec().unwrap();
    clean(&log);
    bench.now.mono_ms += 100_000;
    bench.run_jobs();
    assert_eq!(held.to_vec().unwrap(), bytes);
    assert_eq!(log.read_from(3, 100, ReadBound::LogEnd)[0].header.base_offset, Offset(9));
}

#[test]
fn a_log_of_which_nothing_goes_is_not_written_anew() {
    let log = Bench::with(LogConfig { segment_bytes: 500, ..compacted() }).create();
    for round in 0..20 {
        log.put(keyed(1000, &[(&format!("k{round}"), Some(&"v".repeat(200)))]));
    }
    roll(&log);
    clean(&log);
    let before = log.segments();
    roll(&log);
    clean(&log);
    let same = before.iter().zip(log.segments()).filter(|(one, other)| Arc::ptr_eq(one, other)).count();
    assert!(same >= before.len() - 2, "{same} of {}", before.len());
}

#[test]
fn a_map_that_is_full_covers_a_part_and_the_next_pass_goes_on() {
    let log = Bench::with(compacted()).create();
    for round in 0..30 {
        log.put(keyed(1000, &[(&format!("k{}", round % 10), Some("1")), (&format!("m{round}"), Some("1"))]));
    }
    roll(&log);
    let small = CleanerSettings { dedupe_buffer_bytes: 24 * 10, ..SETTINGS };
    let mut ends = Vec::new();
    let last = log.segments().last().unwrap().base();
    while log.first_dirty_offset() != Some(last) {
        let report = pass(&log, &small, &Free, now()).unwrap();
        assert!(report.buffer_utilization <= 0.9);
        ends.push(report.clean_end);
        assert!(ends.len() < 20, "{ends:?}");
    }
    assert!(ends.len() > 3 && ends.is_sorted(), "{ends:?}");
    let k = contents(&log).into_iter().filter(|(_, key, _)| key.starts_with('k'));
    assert_eq!(k.map(|(offset, ..)| offset).collect::<Vec<_>>(), (40..60).step_by(2).collect::<Vec<_>>());
}

/// KAFKA-6834.
#[test]
fn a_batch_larger_than_the_buffers_is_compacted_like_others() {
    let config = LogConfig { segment_bytes: 5_000, ..compacted() };
    let log = Bench::with(config).create();
    log.put(keyed(1000, &[("a", Some(&"x".repeat(3_000)))]));
    log.put(keyed(1000, &[("a", Some(&"y".repeat(2_000))), ("b", Some("1"))]));
    roll(&log);
    clean(&log);
    assert_eq!(keys(&log), [some(1, "a"), some(2, "b")]);
}

/// KAFKA-7278, KAFKA-6568: at every moment of a pass.
#[test]
fn a_pass_ends_without_a_trace_when_the_log_is_cut_or_its_policy_changes() {
    type Change = fn(&Arc<PartitionLog>);
    let changes: [(&str, Change); 5] = [
        ("cut", |log| assert!(log.truncate_to(log.positions().high_watermark, now(), EXPIRATION).unwrap())),
        ("cut deep", |log| assert!(log.truncate_to(Offset(25), now(), EXPIRATION).unwrap())),
        ("emptied", |log| log.truncate_fully_and_start_at(Offset(7), now()).unwrap()),
        ("policy", |log| log.update_config(Arc::new(LogConfig { cleanup_compact: false, ..compacted() }))),
        ("closed", |log| log.close().unwrap()),
    ];
    for (name, change) in changes {
        for at in 0.. {
            let mut bench = Bench::with(compacted());
            let log = bench.create();
            for round in 0..40 {
                log.put(keyed(1000, &[("a", Some(&format!("{round}"))), (&format!("k{round}"), Some("1"))]));
            }
            roll(&log);
            log.put(keyed(1000, &[("a", Some("not replicated"))]));
            let all: BTreeMap<i64, Batch> =
                log.all().into_iter().map(|b| (b.header.base_offset.0, b)).collect();
            let pace = Meanwhile { asked: AtomicUsize::new(0), at, what: || change(&log) };
            let ended = pass(&log, &SETTINGS, &pace, now());
            if pace.asked.into_inner() <= at {
                assert!(ended.is_ok() && at > 5, "{name} at {at}");
                break;
            }
            assert!(matches!(ended, Err(CompactionError::Aborted)), "{name} at {at}: {ended:?}");
            assert_eq!(log.first_dirty_offset(), None, "{name} at {at}");
            check_subset(&log, &all, &format!("{name} at {at}"));
            bench.checkpoint(&log);
            drop(log);
            let log = bench.open(false);
            check_subset(&log, &all, &format!("{name} at {at}, opened again"));
        }
    }
}

/// The records of the log are those of `all`, and those that should be there are.
fn check_subset(log: &Arc<PartitionLog>, all: &BTreeMap<i64, Batch>, what: &str) {
    let end = log.end();
    let mut latest: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    // Nobody cuts what is replicated; if it happens, what was compacted before is gone.
    let is_whole = !what.starts_with("cut deep") && !what.starts_with("emptied");
    for batch in all.values().filter(|batch| is_whole && batch.header.last_offset().0 < end) {
        for record in batch.records(Limits::default()).map(Result::unwrap) {
            latest.insert(record.key.unwrap().to_vec(), record.offset.0);
        }
    }
    for batch in log.all() {
        let known = &all[&batch.header.base_offset.0];
        let whole: Vec<_> = known.records(Limits::default()).map(Result::unwrap).collect();
        for record in batch.records(Limits::default()).map(Result::unwrap) {
            assert!(whole.contains(&record), "{what}: {record:?}");
            latest.retain(|_, offset| *offset != record.offset.0);
        }
    }
    latest.remove(&b"filler"[..]);
    assert!(latest.is_empty(), "{what}: {latest:?} are gone");
}

#[test]
fn a_damaged_batch_leaves_the_log_as_it_is() {
    let bench = Bench::with(compacted());
    let log = bench.create();
    for round in 0..30 {
        log.put(keyed(1000, &[("a", Some(&format!("{round}")))]));
    }
    roll(&log);
    let second = log.segments()[1].clone();
    let before = segment_bases(&log);
    second.log().handle().unwrap().write_at(b"x", 100).unwrap();
    let ended = pass(&log, &SETTINGS, &Free, now());
    assert!(matches!(ended, Err(CompactionError::Uncleanable(_))), "{ended:?}");
    assert_eq!(segment_bases(&log), before);
    assert!(bench.health.is_online());
    assert!(bench.files().iter().all(|name| !name.ends_with(".cleaned")));
}

#[test]
fn a_disk_that_fails_takes_its_directory_offline() {
    let bench = Bench::with(compacted());
    let log = bench.create();
    for round in 0..30 {
        log.put(keyed(1000, &[("a", Some(&format!("{round}")))]));
    }
    roll(&log);
    bench.fail(Operation::Write, ".cleaned", 0);
    assert!(matches!(pass(&log, &SETTINGS, &Free, now()), Err(CompactionError::Storage(_))));
    assert!(!bench.health.is_online());
}

/// KAFKA-7385, KAFKA-6854.
#[test]
fn a_log_of_which_nothing_is_left_keeps_its_end_and_goes_on() {
    let mut bench = Bench::with(compacted());
    let log = bench.create();
    log.put(of_producer(7, 0, "a", true));
    log.put_marker(marker(7, 0, true));
    for key in ["a", "b"] {
        log.put(keyed(1000, &[(key, None)]));
    }
    roll(&log);
    let mut end = log.end();
    for wall_ms in [10_000, 20_000, 30_000] {
        clean_at(&log, wall_ms);
        assert_eq!(log.end(), end);
        roll(&log);
        end = log.end();
    }
    assert_eq!(contents(&log), []);
    let log = bench.reopen_clean(log);
    assert_eq!(log.end(), end);
    assert_eq!(log.put(keyed(1000, &[("z", Some("1"))])).base_offset, Offset(end));
    assert_eq!(keys(&log), [some(end, "z")]);
}

/// KAFKA-7400.
#[test]
fn segments_below_the_log_start_go_and_the_rest_is_compacted() {
    let log = Bench::with(compacted()).create();
    for round in 0..30 {
        log.put(keyed(1000, &[("a", Some("1")), (&format!("k{round}"), Some("1"))]));
    }
    roll(&log);
    log.increment_log_start(Offset(31)).unwrap();
    log.delete_old_segments(now()).unwrap();
    clean(&log);
    assert_eq!(log.positions().log_start, Offset(31));
    let found = contents(&log);
    assert_eq!(found.iter().filter(|(_, key, _)| key == "a").count(), 1);
    assert_eq!(found.iter().filter(|(offset, key, _)| *offset >= 31 && key != "a").count(), 15);
}

/// KAFKA-5431.
#[test]
fn a_compacted_segment_is_not_preallocated() {
    let log = Bench::with(LogConfig { preallocate: true, ..compacted() }).create();
    for round in 0..30 {
        log.put(keyed(1000, &[("a", Some(&format!("{round}")))]));
    }
    roll(&log);
    clean(&log);
    let first = log.segments()[0].clone();
    assert_eq!(first.log().handle().unwrap().len().unwrap(), first.size());
}
