//! Directories and their logs through all their life: opened, loaded, used, failed, closed.

mod cleaning;
mod loss;
mod many;

use bytes::Bytes;
use kernel::producer::AppendOrigin;
use wire::batch::{BatchBuilder, Compression};
use wire::types::{LeaderEpoch, Offset, TopicId};

use super::*;
use crate::checkpoints::{Offsets, read_offsets, write_offsets};
use crate::disk::OpenOptions;
use crate::disk::crash::{CrashDisk, CrashMode, Fault, Operation};
use crate::log_config::LogConfig;
use crate::names;

const NOW: Now = Now { mono_ms: 1_000, wall_ms: 1_000_000 };

fn options(disk: &CrashDisk) -> LogDirsOptions {
    LogDirsOptions { disk: Arc::new(disk.clone()), ..LogDirsOptions::default() }
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn open(disk: &CrashDisk, dirs: &[&str]) -> LogDirs {
    LogDirs::open(&paths(dirs), options(disk)).unwrap()
}

fn config() -> Arc<LogConfig> {
    Arc::new(LogConfig { segment_bytes: 1000, segment_index_bytes: 1200, ..LogConfig::default() })
}

fn load(dirs: &LogDirs) -> LoadReport {
    dirs.load(2, &|_| config(), NOW).unwrap()
}

fn loaded(disk: &CrashDisk, dirs: &[&str]) -> LogDirs {
    let dirs = open(disk, dirs);
    load(&dirs);
    dirs
}

fn partition(number: i32) -> TopicPartition {
    TopicPartition::new("t", number)
}

fn create(dirs: &LogDirs, number: i32) -> Arc<PartitionLog> {
    dirs.get_or_create(&partition(number), TopicId([7; 16]), config(), true, NOW).unwrap()
}

fn put(log: &PartitionLog, size: usize) {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.append(Millis(1000), None, Some(&vec![1; size]));
    let records: Bytes = builder.build().unwrap().bytes;
    log.append_as_leader(records, AppendOrigin::Client, LeaderEpoch(0), NOW).unwrap();
    log.advance_high_watermark(log.positions().log_end);
}

fn shut_down(dirs: &LogDirs) {
    dirs.shut_down(2, BrokerEpoch(5));
}

fn names_in(disk: &CrashDisk, dir: &str) -> Vec<String> {
    disk.list_dir(Path::new(dir)).unwrap().into_iter().map(|entry| entry.name).collect()
}

fn touch(disk: &CrashDisk, path: &str) {
    disk.open(Path::new(path), OpenOptions::CREATE).unwrap();
}

fn offsets(disk: &CrashDisk, path: &str) -> Vec<(i32, i64)> {
    let offsets = read_offsets(disk, Path::new(path)).unwrap();
    offsets.into_iter().map(|(partition, offset)| (partition.partition, offset.0)).collect()
}

#[test]
fn directories_are_created_and_locked_until_the_shutdown() {
    let disk = CrashDisk::new();
    let dirs = open(&disk, &["/a", "/b/c"]);
    assert!(names_in(&disk, "/b/c").contains(&".lock".to_owned()));
    let second = LogDirs::open(&paths(&["/b/c"]), options(&disk));
    assert!(matches!(second, Err(LogDirsError::InUse(_))));
    load(&dirs);
    shut_down(&dirs);
    open(&disk, &["/a", "/b/c"]);
}

#[test]
fn no_directory_and_one_given_twice_are_refused() {
    let disk = CrashDisk::new();
    for given in [&[][..], &["/a", "/a"]] {
        assert!(matches!(LogDirs::open(&paths(given), options(&disk)), Err(LogDirsError::Configuration(_))));
    }
}

#[test]
fn directories_belong_to_one_broker_of_one_cluster() {
    let disk = CrashDisk::new();
    let dirs = open(&disk, &["/a"]);
    assert_eq!((dirs.cluster_id(), dirs.broker_id()), (None, None));
    dirs.claim("cluster", BrokerId(3), NOW).unwrap();
    drop(dirs);
    let dirs = open(&disk, &["/a", "/b"]);
    assert_eq!((dirs.cluster_id().as_deref(), dirs.broker_id()), (Some("cluster"), Some(BrokerId(3))));
    assert!(matches!(dirs.claim("cluster", BrokerId(4), NOW), Err(LogDirsError::Foreign { .. })));
    assert!(matches!(dirs.claim("other", BrokerId(3), NOW), Err(LogDirsError::Foreign { .. })));
    dirs.claim("cluster", BrokerId(3), NOW).unwrap();
    assert!(names_in(&disk, "/b").contains(&"meta.properties".to_owned()), "the new one is marked too");
    let before = disk.changes();
    dirs.claim("cluster", BrokerId(3), NOW).unwrap();
    assert_eq!(disk.changes(), before, "nothing is written twice");
}

#[test]
fn directories_that_disagree_are_refused() {
    let disk = CrashDisk::new();
    open(&disk, &["/a"]).claim("one", BrokerId(3), NOW).unwrap();
    open(&disk, &["/b"]).claim("two", BrokerId(3), NOW).unwrap();
    let error = LogDirs::open(&paths(&["/a", "/b"]), options(&disk)).unwrap_err();
    assert_eq!(error.to_string(), "log directory /b belongs to cluster two, not to cluster one");
}

#[test]
fn a_clean_stop_is_marked_and_the_mark_is_gone_before_anything_is_loaded() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    put(&create(&dirs, 0), 10);
    shut_down(&dirs);
    assert!(names_in(&disk, "/a").contains(&names::CLEAN_SHUTDOWN.to_owned()));
    assert_eq!(offsets(&disk, "/a/recovery-point-offset-checkpoint"), [(0, 1)]);
    assert_eq!(offsets(&disk, "/a/replication-offset-checkpoint"), [(0, 1)]);
    // A crash while the logs are being loaded.
    let dirs = open(&disk, &["/a"]);
    disk.fail(Fault {
        operation: Operation::List,
        path_contains: "/a/t-0".into(),
        skip: 0,
        times: 1,
        kind: io::ErrorKind::Other,
    });
    assert!(matches!(dirs.load(1, &|_| config(), NOW), Err(LogDirsError::AllOffline(_))));
    let disk = disk.crash(CrashMode::LoseUnsynced);
    assert!(!names_in(&disk, "/a").contains(&names::CLEAN_SHUTDOWN.to_owned()));
}

#[test]
fn a_directory_whose_logs_were_not_all_loaded_is_not_marked() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    put(&create(&dirs, 0), 10);
    let disk = disk.crash(CrashMode::ProcessKill);
    let dirs = open(&disk, &["/a"]);
    shut_down(&dirs);
    assert!(!names_in(&disk, "/a").contains(&names::CLEAN_SHUTDOWN.to_owned()));
    let dirs = loaded(&disk, &["/a"]);
    shut_down(&dirs);
    assert!(names_in(&disk, "/a").contains(&names::CLEAN_SHUTDOWN.to_owned()));
}

#[test]
fn a_log_that_cannot_be_closed_leaves_its_directory_unmarked() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a", "/b"]);
    for number in 0..4 {
        put(&create(&dirs, number), 10);
    }
    let path_contains = "/a/t-0".into();
    let kind = io::ErrorKind::Other;
    disk.fail(Fault { operation: Operation::Sync, path_contains, skip: 0, times: 1, kind });
    shut_down(&dirs);
    assert!(!names_in(&disk, "/a").contains(&names::CLEAN_SHUTDOWN.to_owned()));
    assert!(names_in(&disk, "/b").contains(&names::CLEAN_SHUTDOWN.to_owned()));
}

#[test]
fn all_logs_come_back_after_every_kind_of_stop() {
    for clean in [true, false] {
        for threads in [1, 3] {
            let disk = CrashDisk::new();
            let dirs = loaded(&disk, &["/a", "/b"]);
            for number in 0..20 {
                let log = create(&dirs, number);
                for _ in 0..number {
                    put(&log, 100);
                }
            }
            let disk = if clean {
                shut_down(&dirs);
                disk
            } else {
                dirs.checkpoint_high_watermarks();
                disk.crash(CrashMode::ProcessKill)
            };
            let dirs = open(&disk, &["/a", "/b"]);
            let report = dirs.load(threads, &|_| config(), NOW).unwrap();
            assert_eq!((report.loaded, report.failed.len()), (20, 0));
            for number in 0..20 {
                let positions = dirs.get(&partition(number)).unwrap().positions();
                let end = Offset(i64::from(number));
                assert_eq!((positions.log_end, positions.high_watermark), (end, end));
            }
        }
    }
}

/// apache/kafka#15993.
#[test]
fn checkpoints_that_cannot_be_read_are_done_without_but_for_the_high_watermarks() {
    for (file, stays_online) in [
        (names::RECOVERY_POINT_CHECKPOINT, true),
        (names::LOG_START_CHECKPOINT, true),
        (names::HIGH_WATERMARK_CHECKPOINT, false),
    ] {
        let disk = CrashDisk::new();
        let dirs = loaded(&disk, &["/a", "/b"]);
        put(&create(&dirs, 0), 10);
        shut_down(&dirs);
        let garbage = disk.open(&Path::new("/a").join(file), OpenOptions::REPLACE).unwrap();
        garbage.write_at(b"0\n7\nt 0 1\n", 0).unwrap();
        let dirs = open(&disk, &["/a", "/b"]);
        load(&dirs);
        assert_eq!(dirs.offline_count() == 0, stays_online, "{file}");
        assert_eq!(dirs.get(&partition(0)).is_some(), stays_online);
    }
}

#[test]
fn the_log_start_is_noted_only_where_it_is_above_the_first_segment() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    for number in 0..2 {
        let log = create(&dirs, number);
        put(&log, 10);
        put(&log, 10);
    }
    dirs.get(&partition(1)).unwrap().increment_log_start(Offset(1)).unwrap();
    dirs.checkpoint_log_starts();
    assert_eq!(offsets(&disk, "/a/log-start-offset-checkpoint"), [(1, 1)]);
    let disk = disk.crash(CrashMode::ProcessKill);
    let dirs = loaded(&disk, &["/a"]);
    assert_eq!(dirs.get(&partition(1)).unwrap().positions().log_start, Offset(1));
}

#[test]
fn a_checkpoint_that_would_not_change_is_not_written() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    let log = create(&dirs, 0);
    put(&log, 10);
    dirs.checkpoint_high_watermarks();
    let before = disk.changes();
    dirs.checkpoint_high_watermarks();
    assert_eq!(disk.changes(), before);
    put(&log, 10);
    dirs.checkpoint_high_watermarks();
    assert_eq!(offsets(&disk, "/a/replication-offset-checkpoint"), [(0, 2)]);
}

/// strimzi/strimzi-kafka-operator#1307.
#[test]
fn foreign_directories_are_left_alone_and_unknown_names_stop_the_start() {
    let disk = CrashDisk::new();
    drop(loaded(&disk, &["/a"]));
    for name in
        ["lost+found", ".snapshot", "remote-log-index-cache", "t-3.0123456789abcdef-stray", "t-4.ab-future"]
    {
        disk.create_dir_all(&Path::new("/a").join(name)).unwrap();
        touch(&disk, &format!("/a/{name}/content"));
    }
    touch(&disk, "/a/t-9");
    let dirs = loaded(&disk, &["/a"]);
    assert!(dirs.all().is_empty());
    assert!(dirs.background().is_empty());
    assert_eq!(names_in(&disk, "/a/lost+found"), ["content"]);
    drop(dirs);
    disk.create_dir_all(Path::new("/a/foo")).unwrap();
    let error = open(&disk, &["/a"]).load(1, &|_| config(), NOW).unwrap_err();
    assert!(
        error.to_string().starts_with("log directory /a: directory \"foo\" is not of the form"),
        "{error}"
    );
}

#[test]
fn a_partition_in_two_directories_stops_the_start() {
    let disk = CrashDisk::new();
    for dir in ["/a/t-0", "/b/t-0"] {
        disk.create_dir_all(Path::new(dir)).unwrap();
    }
    let error = open(&disk, &["/a", "/b"]).load(1, &|_| config(), NOW).unwrap_err();
    assert!(matches!(error, LogDirsError::Duplicate { .. }));
}

#[test]
fn a_new_log_goes_where_the_fewest_are() {
    let disk = CrashDisk::new();
    disk.create_dir_all(Path::new("/a/t-7")).unwrap();
    let dirs = loaded(&disk, &["/a", "/b"]);
    let dir_of = |log: &PartitionLog| log.health().dir().display().to_string();
    let placed: Vec<_> = (0..4).map(|number| dir_of(&create(&dirs, number))).collect();
    assert_eq!(placed, ["/b", "/a", "/b", "/a"]);
}

#[test]
fn a_log_is_created_once_and_takes_settings_and_topic_id() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    let log = create(&dirs, 0);
    let changed = Arc::new(LogConfig { retention_bytes: 5, ..LogConfig::default() });
    let again = dirs.get_or_create(&partition(0), TopicId([7; 16]), changed.clone(), true, NOW).unwrap();
    assert!(Arc::ptr_eq(&log, &again));
    assert_eq!(log.config(), changed);
    let other = dirs.get_or_create(&partition(0), TopicId([8; 16]), changed, true, NOW);
    assert!(matches!(
        other,
        Err(CreateError::Log(crate::partition_log::LogError::InconsistentTopicId { .. }))
    ));
}

#[test]
fn a_failed_directory_does_not_take_the_others_with_it() {
    let disk = CrashDisk::new();
    let offline = Arc::new(AtomicUsize::new(0));
    let seen = offline.clone();
    let on_offline = Arc::new(move |_: &StorageError| {
        seen.fetch_add(1, Ordering::Relaxed);
    });
    let options = LogDirsOptions { on_offline, ..options(&disk) };
    let dirs = LogDirs::open(&paths(&["/a", "/b"]), options).unwrap();
    load(&dirs);
    let (first, second) = (create(&dirs, 0), create(&dirs, 1));
    let kind = io::ErrorKind::Other;
    disk.fail(Fault { operation: Operation::Write, path_contains: "/a/".into(), skip: 0, times: 1, kind });
    let records: Bytes = {
        let mut builder = BatchBuilder::new(Compression::None);
        builder.append(Millis(1), None, Some(b"v"));
        builder.build().unwrap().bytes
    };
    assert!(first.append_as_leader(records, AppendOrigin::Client, LeaderEpoch(0), NOW).is_err());
    put(&second, 10);
    assert_eq!((dirs.offline_count(), offline.load(Ordering::Relaxed)), (1, 1));
    // A log that may lie there is not created elsewhere; a new one is.
    let create = |is_new| dirs.get_or_create(&partition(5), TopicId([7; 16]), config(), is_new, NOW);
    assert!(matches!(create(false), Err(CreateError::MayBeOffline(_))));
    assert_eq!(create(true).unwrap().health().dir().display().to_string(), "/b");
    let report = dirs.describe();
    assert_eq!(
        report.iter().map(|dir| (dir.is_online, dir.logs.len())).collect::<Vec<_>>(),
        [(false, 0), (true, 2)]
    );
    shut_down(&dirs);
    assert!(!names_in(&disk, "/a").contains(&names::CLEAN_SHUTDOWN.to_owned()));
    assert!(names_in(&disk, "/b").contains(&names::CLEAN_SHUTDOWN.to_owned()));
}

#[test]
fn a_log_that_cannot_be_created_in_one_directory_is_created_in_the_next() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a", "/b"]);
    let kind = io::ErrorKind::Other;
    disk.fail(Fault {
        operation: Operation::CreateDir,
        path_contains: "/a/".into(),
        skip: 0,
        times: 1,
        kind,
    });
    assert_eq!(create(&dirs, 0).health().dir().display().to_string(), "/b");
    assert_eq!(dirs.offline_count(), 1);
}

#[test]
fn a_start_without_any_directory_online_is_refused() {
    let disk = CrashDisk::new();
    let kind = io::ErrorKind::PermissionDenied;
    disk.fail(Fault { operation: Operation::CreateDir, path_contains: "/".into(), skip: 0, times: 9, kind });
    assert!(matches!(LogDirs::open(&paths(&["/a", "/b"]), options(&disk)), Err(LogDirsError::AllOffline(_))));
}

#[test]
fn an_unusable_log_is_reported_and_not_replaced_by_an_empty_one() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    put(&create(&dirs, 0), 10);
    put(&create(&dirs, 1), 10);
    shut_down(&dirs);
    let broken = disk.open(Path::new("/a/t-0/partition.metadata"), OpenOptions::REPLACE).unwrap();
    broken.write_at(b"version: 1", 0).unwrap();
    let dirs = open(&disk, &["/a"]);
    let report = load(&dirs);
    assert_eq!((report.loaded, report.failed.len()), (1, 1));
    let refused = dirs.get_or_create(&partition(0), TopicId([7; 16]), config(), true, NOW);
    assert!(matches!(refused, Err(CreateError::Load(LoadError::Unusable { .. }))));
    assert_eq!(dirs.offline_count(), 0);
}

#[test]
fn a_directory_with_an_unusable_log_is_marked_only_if_it_was_before() {
    for clean in [true, false] {
        let disk = CrashDisk::new();
        let dirs = loaded(&disk, &["/a"]);
        put(&create(&dirs, 0), 10);
        put(&create(&dirs, 1), 10);
        if clean {
            shut_down(&dirs);
        }
        drop(dirs);
        let log = disk.open(Path::new("/a/t-0/00000000000000000000.log"), OpenOptions::REPLACE).unwrap();
        // A message of format 1, which is not served.
        log.write_at(&[[0; 11], [30, 0x48, 0xf1, 0x18, 0xa5, 1, 0, 0, 0, 0, 0]].concat(), 0).unwrap();
        log.set_len(42).unwrap();
        let disk = if clean { disk } else { disk.crash(CrashMode::ProcessKill) };
        if clean {
            disk.remove_file(Path::new("/a/t-0/00000000000000000000.index")).unwrap();
        }
        let dirs = open(&disk, &["/a"]);
        assert_eq!(load(&dirs).failed.len(), 1);
        shut_down(&dirs);
        assert_eq!(names_in(&disk, "/a").contains(&names::CLEAN_SHUTDOWN.to_owned()), clean);
    }
}

#[test]
fn a_deleted_log_gets_another_name_at_once_and_goes_after_the_delay() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    let log = create(&dirs, 0);
    put(&log, 10);
    dirs.checkpoint_recovery_points();
    dirs.delete(&partition(0), NOW).unwrap();
    dirs.delete(&partition(0), NOW).unwrap();
    assert!(log.is_closed() && dirs.get(&partition(0)).is_none());
    assert!(offsets(&disk, "/a/recovery-point-offset-checkpoint").is_empty());
    let waiting =
        |disk: &CrashDisk| names_in(disk, "/a").into_iter().filter(|name| name.ends_with("-delete")).count();
    assert_eq!(waiting(&disk), 1);
    let again = create(&dirs, 0);
    assert_eq!(again.positions().log_end, Offset(0));
    let due = Now { mono_ms: NOW.mono_ms + 60_000, ..NOW };
    let early = Now { mono_ms: due.mono_ms - 1, ..NOW };
    assert!(dirs.background().next_job(early).is_none());
    dirs.background().next_job(due).unwrap().run();
    assert_eq!(waiting(&disk), 0);
    assert!(names_in(&disk, "/a").contains(&"t-0".to_owned()));
}

#[test]
fn a_deletion_that_a_stop_interrupted_is_finished_later() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    put(&create(&dirs, 0), 10);
    dirs.delete(&partition(0), NOW).unwrap();
    let disk = disk.crash(CrashMode::ProcessKill);
    let dirs = loaded(&disk, &["/a"]);
    assert!(dirs.all().is_empty());
    let due = Now { mono_ms: NOW.mono_ms + 60_000, ..NOW };
    dirs.background().next_job(due).unwrap().run();
    assert!(!names_in(&disk, "/a").iter().any(|name| name.ends_with("-delete")));
}

#[test]
fn the_recovery_point_is_noted_before_anything_is_appended_after_a_cut() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    let log = create(&dirs, 0);
    for _ in 0..4 {
        put(&log, 10);
    }
    log.flush().unwrap();
    dirs.checkpoint_recovery_points();
    assert_eq!(offsets(&disk, "/a/recovery-point-offset-checkpoint"), [(0, 4)]);
    assert_eq!(dirs.truncate_to(&partition(0), Offset(2), NOW), Ok(true));
    assert_eq!(offsets(&disk, "/a/recovery-point-offset-checkpoint"), [(0, 2)]);
    dirs.truncate_fully_and_start_at(&partition(0), Offset(1), NOW).unwrap();
    assert_eq!(offsets(&disk, "/a/recovery-point-offset-checkpoint"), [(0, 1)]);
}

#[test]
fn a_cut_below_the_high_watermark_is_no_loss_after_a_crash() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    let log = create(&dirs, 0);
    for _ in 0..4 {
        put(&log, 10);
    }
    log.advance_high_watermark(Offset(4));
    dirs.checkpoint_high_watermarks();
    assert_eq!(offsets(&disk, "/a/replication-offset-checkpoint"), [(0, 4)]);
    assert_eq!(dirs.truncate_to(&partition(0), Offset(2), NOW), Ok(true));
    assert_eq!(offsets(&disk, "/a/replication-offset-checkpoint"), [(0, 2)]);
    dirs.truncate_fully_and_start_at(&partition(0), Offset(1), NOW).unwrap();
    assert_eq!(offsets(&disk, "/a/replication-offset-checkpoint"), [(0, 1)]);
}

#[test]
fn after_a_crash_recovery_points_are_noted_anew_so_that_none_is_beyond_its_log() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    put(&create(&dirs, 0), 10);
    let beyond = Offsets::from([(partition(0), Offset(99)), (TopicPartition::new("gone", 1), Offset(5))]);
    write_offsets(&disk, Path::new("/a/recovery-point-offset-checkpoint"), &beyond).unwrap();
    let disk = disk.crash(CrashMode::ProcessKill);
    drop(loaded(&disk, &["/a"]));
    assert_eq!(offsets(&disk, "/a/recovery-point-offset-checkpoint"), [(0, 1)]);
}

#[test]
fn sizes_and_space_are_told() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a", "/b"]);
    for number in 0..3 {
        put(&create(&dirs, number), 50);
    }
    let report = dirs.describe();
    assert_eq!(report.iter().map(|dir| dir.logs.len()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(report[0].space, Some((1 << 40, 1 << 39)));
    let log = dirs.get(&partition(0)).unwrap();
    let expected = LogReport { partition: partition(0), size_bytes: log.size_bytes(), offset_lag: 0 };
    assert_eq!(report[0].logs[0], expected);
    assert!(log.size_bytes() > 50);
}

#[test]
fn retention_and_timed_flushes_reach_all_logs() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    let settings = LogConfig { retention_ms: Millis(10), flush_ms: Millis(100), ..(*config()).clone() };
    for number in 0..3 {
        let log = create(&dirs, number);
        log.update_config(Arc::new(settings.clone()));
        put(&log, 900);
        put(&log, 900);
    }
    dirs.flush_due(Now { mono_ms: NOW.mono_ms + 100, ..NOW });
    while let Some(job) = dirs.background().next_job(NOW) {
        job.run();
    }
    assert!(dirs.all().iter().all(|log| log.positions().recovery_point == Offset(2)));
    dirs.delete_old_segments(NOW);
    assert!(dirs.all().iter().all(|log| log.positions().log_start == Offset(2)));
}

#[test]
fn a_shutdown_of_idle_logs_syncs_no_log() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    for number in 0..50 {
        put(&create(&dirs, number), 10);
    }
    shut_down(&dirs);
    let dirs = loaded(&disk, &["/a"]);
    let before = disk.syncs();
    shut_down(&dirs);
    assert!(disk.syncs() - before < 10, "{}", disk.syncs() - before);
}
