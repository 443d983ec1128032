//! What a start and a new log cost: files opened, written and synced. Thousands of logs are started at a time.

use super::*;
use crate::epoch_checkpoint::read_epochs;
use crate::names::LEADER_EPOCH_CHECKPOINT;

/// A new log: a directory, an empty log file, the topic id, the epoch. The names of its other files come with their
/// content.
#[test]
fn a_new_log_makes_four_names() {
    let bench = Bench::new();
    let before = bench.disk.changes();
    let log = bench.create();
    log.become_leader(LeaderEpoch(0)).unwrap();
    // Four names, and the topic id and the epoch written.
    assert_eq!((bench.disk.changes() - before, bench.disk.syncs()), (6, 1), "the bench syncs once");
    let files = ["00000000000000000000.log", "leader-epoch-checkpoint", "partition.metadata"];
    assert_eq!(bench.files(), files);
}

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn epochs_on_disk(bench: &Bench) -> Vec<(i32, i64)> {
    let entries = read_epochs(&bench.disk, &path(LEADER_EPOCH_CHECKPOINT)).unwrap();
    entries.iter().map(|it| (it.epoch.0, it.start.0)).collect()
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

/// KAFKA-7415. A broker that becomes leader of thousands of idle partitions writes each file once and makes no names.
#[test]
fn a_leaders_epoch_is_in_the_file_at_once_with_one_write_and_no_sync() {
    let bench = Bench::new();
    let log = bench.create();
    log.become_leader(LeaderEpoch(3)).unwrap();
    assert_eq!(epochs_on_disk(&bench), [(3, 0)]);
    log.put(records(2, 5));
    for epoch in [4, 5, 7] {
        let before = (bench.disk.changes(), bench.disk.syncs());
        log.become_leader(LeaderEpoch(epoch)).unwrap();
        assert_eq!((bench.disk.changes(), bench.disk.syncs()), (before.0 + 1, before.1), "epoch {epoch}");
        assert_eq!(epochs_on_disk(&bench), [(3, 0), (epoch, 2)]);
    }
    let before = bench.disk.changes();
    log.become_leader(LeaderEpoch(7)).unwrap();
    assert_eq!(bench.disk.changes(), before, "the same decision again");
}

/// The entry of an epoch in which nothing was written may be lost with the power, or be torn; the others are found again.
#[test]
fn an_epoch_that_was_torn_leaves_those_of_the_records() {
    let bench = Bench::new();
    let log = bench.create();
    for epoch in [LeaderEpoch(0), LeaderEpoch(3), LeaderEpoch(6)] {
        log.become_leader(epoch).unwrap();
        log.append_as_leader(records(2, 5), AppendOrigin::Client, epoch, now()).unwrap();
    }
    log.flush().unwrap();
    let torn = (0..200).filter(|seed| {
        let mut bench = Bench::on(bench.disk.fork(), small_segments());
        bench.checkpoint(&log);
        let log = bench.open(false);
        log.become_leader(LeaderEpoch(9)).unwrap();
        log.become_leader(LeaderEpoch(10)).unwrap();
        log.become_leader(LeaderEpoch(11)).unwrap();
        let after = bench.after(CrashMode::PowerLoss { seed: *seed });
        let known = read_epochs(&after.disk, &path(LEADER_EPOCH_CHECKPOINT));
        let log = after.open(false);
        assert_eq!(epochs(&log), [(0, 0), (3, 2), (6, 4)], "seed {seed}");
        known.is_err()
    });
    assert!(torn.count() > 0, "some are torn");
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

/// KAFKA-9393: there may be thousands of files.
#[test]
fn deleting_records_lists_no_directory() {
    let bench = Bench::new();
    let log = bench.create();
    for _ in 0..10 {
        log.put(records(2, 300));
    }
    log.replicate();
    bench.fail(Operation::List, "", 0);
    assert_eq!(log.increment_log_start(Offset(7)), Ok(true));
    assert!(log.delete_old_segments(bench.now).is_ok());
    assert_eq!(log.positions().log_start, Offset(7));
    assert!(bench.disk.list_dir(Path::new(DIR)).is_err(), "the error still lies in wait");
}
