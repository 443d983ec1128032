//! What a start and a new log cost: files opened, written and synced. Thousands of logs are started at a time.

use super::*;

/// A new log: a directory, an empty log file, the topic id. The names of its other files come with their content.
#[test]
fn a_new_log_makes_three_names() {
    let bench = Bench::new();
    let before = bench.disk.changes();
    let log = bench.create();
    log.become_leader(LeaderEpoch(0)).unwrap();
    // Three names, and the topic id written.
    assert_eq!((bench.disk.changes() - before, bench.disk.syncs()), (4, 1), "the bench syncs once");
    assert_eq!(bench.files(), ["00000000000000000000.log", "partition.metadata"]);
}

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

#[test]
fn a_clean_start_of_an_empty_log_opens_no_file_of_a_segment() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.become_leader(LeaderEpoch(0)).unwrap();
    log.close().unwrap();
    bench.checkpoint(&log);
    let before = (bench.disk.opens(), bench.disk.changes());
    let log = bench.open(true);
    // The topic id, and the epochs twice.
    assert!(bench.disk.opens() - before.0 <= 3, "{}", bench.disk.opens() - before.0);
    assert_eq!(bench.disk.changes(), before.1, "nothing is written");
    assert_eq!(log.end(), 0);
}

#[test]
fn a_leaders_epoch_is_in_the_file_before_its_first_record_and_not_earlier() {
    let bench = Bench::new();
    let log = bench.create();
    let file = || bench.disk.metadata(&path(crate::names::LEADER_EPOCH_CHECKPOINT)).map(|found| found.len);
    log.become_leader(LeaderEpoch(3)).unwrap();
    assert_eq!(log.latest_epoch(), LeaderEpoch(3));
    assert!(file().is_err(), "a broker that leads thousands of idle partitions writes nothing");
    // The append fails, but what it needs is there.
    bench.fail(Operation::Write, ".log", 0);
    log.try_put(records(1, 5)).unwrap_err();
    assert_eq!(file().unwrap(), 8);
}

#[test]
fn recovery_of_an_empty_log_writes_nothing_and_syncs_nothing() {
    let bench = Bench::new();
    let log = bench.create();
    log.become_leader(LeaderEpoch(0)).unwrap();
    let bench = bench.after(CrashMode::ProcessKill);
    let log = bench.open(false);
    assert!(epochs(&log).is_empty(), "an epoch that starts at the end is cut");
    log.become_leader(LeaderEpoch(0)).unwrap();
    assert_eq!(epochs(&log), [(0, 0)]);
    assert_eq!((log.end(), bench.disk.changes(), bench.disk.syncs()), (0, 0, 0));
}

#[test]
fn recovery_of_a_small_log_that_is_whole_writes_nothing() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.become_leader(LeaderEpoch(3)).unwrap();
    log.put(records(2, 200));
    bench = bench.after(CrashMode::ProcessKill);
    let before = bench.files();
    let log = bench.open(false);
    assert_eq!((log.end(), bench.disk.changes(), bench.disk.syncs()), (2, 0, 0));
    assert_eq!(bench.files(), before, "no index, no snapshot");
    log.put(records(2, 200));
    log.put(records(2, 200));
    let bench = bench.after(CrashMode::ProcessKill);
    assert_eq!(offsets(&bench.open(false).all()), [(0, 1), (2, 3), (4, 5)]);
}

#[test]
fn after_a_clean_start_segments_are_opened_when_they_are_read() {
    let mut bench = Bench::new();
    let log = bench.create();
    for _ in 0..30 {
        log.put(records(2, 300));
    }
    assert!(log.segment_count() > 20);
    log.close().unwrap();
    bench.checkpoint(&log);
    let before = bench.disk.opens();
    let log = bench.open(true);
    assert!(bench.disk.opens() - before < 10, "only files of the last segment and the small ones");
    assert_eq!(log.all().len(), 30);
}

#[test]
fn only_segments_from_the_recovery_point_on_are_read_after_a_crash() {
    let mut bench = Bench::new();
    let log = bench.create();
    for _ in 0..30 {
        log.put(records(2, 300));
    }
    bench.run_jobs();
    bench.checkpoint(&log);
    assert_eq!(bench.recovery_point.0, *segment_bases(&log).last().unwrap());
    let bench = bench.after(CrashMode::ProcessKill);
    let log = bench.open(false);
    assert!(bench.disk.opens() < 15);
    assert_eq!(log.end(), 60);
    assert_eq!(log.all().len(), 30);
}
