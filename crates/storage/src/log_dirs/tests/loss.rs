//! Loss that a start finds: logs that end below their high watermarks.

use super::*;
use crate::partition_log::{Loss, LossCause};

/// What `report` tells of loss: number, high watermark, log end, cause.
fn lost(report: &LoadReport) -> Vec<(i32, i64, i64, LossCause)> {
    let tell = |(partition, loss): &(TopicPartition, Loss)| {
        (partition.partition, loss.high_watermark.0, loss.log_end.0, loss.cause)
    };
    report.lost.iter().map(tell).collect()
}

fn gone(report: &LoadReport) -> Vec<(i32, i64)> {
    report.gone.iter().map(|(partition, offset)| (partition.partition, offset.0)).collect()
}

/// Two logs with records up to their high watermarks, which are noted, and of which only the first is flushed.
fn two_logs() -> (CrashDisk, LogDirs) {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    for number in [0, 1] {
        let log = create(&dirs, number);
        log.flush().unwrap();
        (0..3).for_each(|_| put(&log, 10));
    }
    dirs.get(&partition(0)).unwrap().flush().unwrap();
    dirs.checkpoint_high_watermarks();
    (disk, dirs)
}

#[test]
fn a_log_whose_tail_went_with_the_power_is_told() {
    let (disk, _dirs) = two_logs();
    let disk = disk.crash(CrashMode::LoseUnsynced);
    let dirs = open(&disk, &["/a"]);
    let report = load(&dirs);
    assert_eq!(lost(&report), [(1, 3, 0, LossCause::NotClosed)]);
    assert_eq!(gone(&report), []);
    let loss = dirs.get(&partition(1)).unwrap().loss().unwrap();
    assert_eq!(loss.records(), 3);
    assert_eq!(
        loss.to_string(),
        "came back ending at 0, below its high watermark 3: it had not been closed, and what was not synced is \
         gone or damaged"
    );
    assert_eq!(dirs.get(&partition(0)).unwrap().loss(), None);
}

#[test]
fn a_killed_process_and_a_clean_stop_lose_nothing() {
    let (disk, _dirs) = two_logs();
    let disk = disk.crash(CrashMode::ProcessKill);
    let dirs = open(&disk, &["/a"]);
    assert_eq!(lost(&load(&dirs)), []);
    shut_down(&dirs);
    let report = load(&open(&disk, &["/a"]));
    assert_eq!((lost(&report), gone(&report)), (vec![], vec![]));
}

#[test]
fn a_log_that_was_cut_behind_the_brokers_back_is_told_after_a_clean_stop_too() {
    let (disk, dirs) = two_logs();
    shut_down(&dirs);
    drop(dirs);
    disk.open(Path::new("/a/t-0/00000000000000000000.log"), OpenOptions::REPLACE).unwrap();
    let report = load(&open(&disk, &["/a"]));
    assert_eq!(lost(&report), [(0, 3, 0, LossCause::Changed)]);
}

#[test]
fn a_log_whose_directory_was_removed_is_told_and_so_is_the_one_that_replaces_it() {
    let (disk, dirs) = two_logs();
    shut_down(&dirs);
    drop(dirs);
    disk.remove_dir_all(Path::new("/a/t-1")).unwrap();
    let dirs = open(&disk, &["/a"]);
    let report = load(&dirs);
    assert_eq!((lost(&report), gone(&report)), (vec![], vec![(1, 3)]));
    let loss = create(&dirs, 1).loss().unwrap();
    assert_eq!((loss.high_watermark.0, loss.log_end.0, loss.cause), (3, 0, LossCause::Gone));
    assert_eq!(create(&dirs, 2).loss(), None);
}

#[test]
fn a_deleted_replica_is_not_missed_whatever_happens_next() {
    let (disk, dirs) = two_logs();
    dirs.delete(&partition(1), NOW).unwrap();
    create(&dirs, 1);
    let disk = disk.crash(CrashMode::ProcessKill);
    let report = load(&open(&disk, &["/a"]));
    assert_eq!((lost(&report), gone(&report)), (vec![], vec![]));
    // While its removal waits.
    let (disk, dirs) = two_logs();
    let name = names::dir_of_kind(&partition(1), names::DirKind::Delete, 7);
    drop(dirs);
    disk.rename(Path::new("/a/t-1"), &Path::new("/a").join(name)).unwrap();
    let disk = disk.crash(CrashMode::ProcessKill);
    assert_eq!(gone(&load(&open(&disk, &["/a"]))), []);
}
