//! Which of several logs is compacted, what is kept of it, and what becomes of one that cannot be.

use super::*;
use crate::cleaner::{CleanOutcome, CleanerSettings, Pace};

const SETTINGS: CleanerSettings =
    CleanerSettings { dedupe_buffer_bytes: 1 << 16, load_factor: 0.9, io_buffer_bytes: 1 << 12 };

struct Free;

impl Pace for Free {
    fn spend(&self, _: u64) -> bool {
        true
    }
}

fn compacted() -> Arc<LogConfig> {
    let config = LogConfig { cleanup_compact: true, cleanup_delete: false, ..(*config()).clone() };
    Arc::new(LogConfig { min_cleanable_dirty_ratio: 0.5, ..config })
}

fn write(dirs: &LogDirs, number: i32, segments: usize) -> Arc<PartitionLog> {
    let log = dirs.get_or_create(&partition(number), TopicId([7; 16]), compacted(), true, NOW).unwrap();
    let target = log.segment_count() + segments;
    while log.segment_count() < target {
        let mut builder = BatchBuilder::new(Compression::None);
        builder.append(Millis(1000), Some(b"key"), Some(&[1; 200]));
        let records: Bytes = builder.build().unwrap().bytes;
        log.append_as_leader(records, AppendOrigin::Client, LeaderEpoch(0), NOW).unwrap();
    }
    log.advance_high_watermark(log.positions().log_end);
    log
}

fn clean(dirs: &LogDirs, mono_ms: i64) -> CleanOutcome {
    dirs.clean_filthiest(&SETTINGS, &Free, Now { mono_ms, ..NOW })
}

fn cleaned(outcome: CleanOutcome) -> i32 {
    match outcome {
        CleanOutcome::Cleaned(report) => report.partition.partition,
        other => panic!("{other:?}"),
    }
}

fn reload(disk: &CrashDisk, dirs: &[&str]) -> LogDirs {
    let dirs = open(disk, dirs);
    dirs.load(2, &|_| compacted(), NOW).unwrap();
    dirs
}

#[test]
fn the_filthiest_log_comes_first_and_none_that_is_clean_enough() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    for number in 0..3 {
        write(&dirs, number, 4);
    }
    // One that is not compacted.
    let other = create(&dirs, 9);
    (0..20).for_each(|_| put(&other, 500));
    for _ in 0..3 {
        cleaned(clean(&dirs, 1_000));
    }
    assert_eq!(clean(&dirs, 2_000), CleanOutcome::Idle);
    write(&dirs, 1, 2);
    write(&dirs, 2, 6);
    assert_eq!(cleaned(clean(&dirs, 3_000)), 2);
    assert!(dirs.cleaning_report(Now { mono_ms: 3_500, ..NOW }).dirtiest_ratio > 0.5);
    assert_eq!(dirs.cleaning_report(Now { mono_ms: 3_500, ..NOW }).since_last_look_ms, 500);
    assert_eq!(cleaned(clean(&dirs, 4_000)), 1);
    assert_eq!(clean(&dirs, 4_000), CleanOutcome::Idle);
}

#[test]
fn what_is_clean_is_known_to_the_next_start_and_forgotten_with_its_log() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    let log = write(&dirs, 0, 4);
    write(&dirs, 1, 4);
    for _ in 0..2 {
        cleaned(clean(&dirs, 1_000));
    }
    let first_dirty = log.first_dirty_offset().unwrap();
    let known = offsets(&disk, "/a/cleaner-offset-checkpoint");
    assert_eq!(known, [(0, first_dirty.0), (1, first_dirty.0)]);
    dirs.delete(&partition(1), NOW).unwrap();
    assert_eq!(offsets(&disk, "/a/cleaner-offset-checkpoint"), [(0, first_dirty.0)]);
    drop(dirs);
    let after = disk.crash(CrashMode::LoseUnsynced);
    let dirs = reload(&after, &["/a"]);
    let log = dirs.get(&partition(0)).unwrap();
    assert_eq!(log.first_dirty_offset(), Some(first_dirty));
    assert_eq!(clean(&dirs, 1_000), CleanOutcome::Idle);
    // What is cut is dirty again when it is written again; the file knows it before anything is.
    dirs.truncate_to(&partition(0), Offset(1), NOW).unwrap();
    assert_eq!(offsets(&after, "/a/cleaner-offset-checkpoint"), [(0, 0)]);
}

/// Looks at the recovery points of the checkpoint while a pass works.
struct Looking<'a> {
    disk: &'a CrashDisk,
    seen: Mutex<Vec<(i32, i64)>>,
}

impl Pace for Looking<'_> {
    fn spend(&self, _: u64) -> bool {
        *lock(&self.seen) = offsets(self.disk, "/a/recovery-point-offset-checkpoint");
        true
    }
}

/// Compaction leaves gaps between segments, and a cut may end a log in one. After a lost power only those count as losses that
/// need not have been flushed.
#[test]
fn nothing_is_compacted_nor_cut_but_behind_the_recovery_point_of_the_checkpoint() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    let log = write(&dirs, 0, 4);
    let looking = Looking { disk: &disk, seen: Mutex::default() };
    cleaned(dirs.clean_filthiest(&SETTINGS, &looking, NOW));
    let end = log.first_dirty_offset().unwrap();
    assert_eq!(*lock(&looking.seen), [(0, end.0)]);
    write(&dirs, 0, 2);
    assert_eq!(log.positions().recovery_point, end);
    let cut = log.positions().log_end.plus(-1);
    dirs.truncate_to(&partition(0), cut, NOW).unwrap();
    assert_eq!(offsets(&disk, "/a/recovery-point-offset-checkpoint"), [(0, cut.0)]);
}

#[test]
fn a_checkpoint_that_cannot_be_read_costs_only_work() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    write(&dirs, 0, 4);
    cleaned(clean(&dirs, 1_000));
    shut_down(&dirs);
    drop(dirs);
    let file = disk.open(Path::new("/a/cleaner-offset-checkpoint"), OpenOptions::REPLACE).unwrap();
    file.write_at(b"0\n7\nt 0 x\n", 0).unwrap();
    let dirs = reload(&disk, &["/a"]);
    assert_eq!(dirs.get(&partition(0)).unwrap().first_dirty_offset(), None);
    cleaned(clean(&dirs, 1_000));
}

/// KAFKA-19895: the log is tried again, and counts as uncleanable until then.
#[test]
fn a_log_that_cannot_be_compacted_holds_up_no_other_and_is_tried_again() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    let log = write(&dirs, 0, 6);
    write(&dirs, 1, 4);
    let path = Path::new("/a/t-0").join(format!("{:020}.log", log.first_segment_base().0));
    let file = disk.open(&path, OpenOptions::WRITE).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 100).unwrap();
    file.write_at(&[!byte[0]], 100).unwrap();
    let outcomes = [clean(&dirs, 1_000), clean(&dirs, 1_000)];
    assert!(outcomes.contains(&CleanOutcome::Failed(partition(0))), "{outcomes:?}");
    assert!(outcomes.iter().any(|outcome| matches!(outcome, CleanOutcome::Cleaned(_))), "{outcomes:?}");
    assert!(dirs.healths()[0].is_online());
    let told = dirs.cleaning_report(NOW).uncleanable;
    assert_eq!((told[0].1, told[0].2 > 0), (1, true));
    assert_eq!(clean(&dirs, 2_000), CleanOutcome::Idle);
    file.write_at(&byte, 100).unwrap();
    assert_eq!(clean(&dirs, 3_600_999), CleanOutcome::Idle);
    assert_eq!(cleaned(clean(&dirs, 3_601_000)), 0);
    assert_eq!(dirs.cleaning_report(NOW).uncleanable[0].1, 0);
}

#[test]
fn retention_leaves_a_log_alone_while_it_is_compacted() {
    struct Retention<'a>(&'a LogDirs);
    impl Pace for Retention<'_> {
        fn spend(&self, _: u64) -> bool {
            let late = Now { wall_ms: i64::MAX, ..NOW };
            self.0.delete_old_segments_where(late, |config| config.cleanup_compact);
            true
        }
    }
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    let log = write(&dirs, 0, 4);
    log.update_config(Arc::new(LogConfig { cleanup_delete: true, ..(*compacted()).clone() }));
    let settings = CleanerSettings { io_buffer_bytes: 200, ..SETTINGS };
    cleaned(dirs.clean_filthiest(&settings, &Retention(&dirs), NOW));
    assert!(log.segment_count() > 1);
    dirs.delete_old_segments_where(Now { wall_ms: i64::MAX, ..NOW }, |config| config.cleanup_compact);
    assert_eq!((log.segment_count(), log.size_bytes()), (1, 0));
}
