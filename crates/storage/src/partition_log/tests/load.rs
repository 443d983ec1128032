use super::*;
use crate::disk::OpenOptions;
use crate::disk::atomic::{Durability, write_atomically};

/// A log of several segments on a disk whose process was killed, nothing flushed.
fn killed(count: usize) -> Bench {
    let mut bench = Bench::new();
    let log = bench.create();
    log.become_leader(LeaderEpoch(3)).unwrap();
    for _ in 0..count {
        log.put(records(2, 200));
    }
    log.replicate();
    bench.high_watermark = log.positions().high_watermark;
    bench.after(CrashMode::ProcessKill)
}

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn log_file(base: i64) -> String {
    format!("{base:020}.log")
}

fn append_bytes(bench: &Bench, name: &str, bytes: &[u8]) {
    let file = bench.disk.open(&path(name), OpenOptions::WRITE).unwrap();
    file.write_at(bytes, file.len().unwrap()).unwrap();
}

#[test]
fn a_killed_process_loses_nothing_and_recovery_does_not_move_the_recovery_point() {
    let bench = killed(7);
    let log = bench.open(false);
    assert_eq!(log.end(), 14);
    assert_eq!(offsets(&log.all()).len(), 7);
    assert_eq!(epochs(&log), [(3, 0)]);
    assert_eq!(log.positions().recovery_point, Offset(0));
    assert_eq!(log.positions().high_watermark, Offset(14));
    log.put(records(1, 5));
}

#[test]
fn a_clean_start_trusts_the_log_and_its_recovery_point_is_the_end() {
    let mut bench = Bench::new();
    let log = bench.create();
    for _ in 0..7 {
        log.put(records(2, 200));
    }
    log.replicate();
    let log = bench.reopen_clean(log);
    let end = Offset(14);
    let expected = Positions {
        last_stable: end,
        high_watermark: end,
        log_end: end,
        recovery_point: end,
        ..Positions::default()
    };
    assert_eq!(log.positions(), expected);
    assert_eq!(offsets(&log.all()).len(), 7);
}

#[test]
fn an_epoch_in_which_nothing_was_written_is_not_missed() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.become_leader(LeaderEpoch(3)).unwrap();
    log.put(records(2, 5));
    log.become_leader(LeaderEpoch(4)).unwrap();
    let log = bench.reopen_clean(log);
    assert_eq!(epochs(&log), [(3, 0)], "it would begin at the log end");
    log.become_leader(LeaderEpoch(6)).unwrap();
    log.append_as_leader(records(1, 5), AppendOrigin::Client, LeaderEpoch(6), now()).unwrap();
    assert_eq!(epochs(&bench.after(CrashMode::ProcessKill).open(false)), [(3, 0), (6, 2)]);
}

#[test]
fn the_active_segment_goes_on_after_a_recovery_as_if_it_had_never_stopped() {
    let mut bench = Bench::with(LogConfig { segment_bytes: 100_000, ..small_segments() });
    let log = bench.create();
    for n in 0..7 {
        log.put(records_at(1000 * (n + 1), 2, 90));
    }
    bench = bench.after(CrashMode::ProcessKill);
    let log = bench.open(false);
    for n in 7..9 {
        log.put(records_at(1000 * (n + 1), 2, 90));
    }
    let found = log.offset_for_timestamp(7500).unwrap().unwrap();
    assert_eq!((found.offset.0, found.timestamp), (14, 8000));
    let log = bench.reopen_clean(log);
    let index = bench.disk.metadata(&path("00000000000000000000.index")).unwrap().len;
    let times = bench.disk.metadata(&path("00000000000000000000.timeindex")).unwrap().len;
    assert!(index > 0 && index < 100 && times > 0 && times < 200, "cut to their entries: {index}, {times}");
    assert_eq!(log.all().len(), 9);
}

#[test]
fn a_torn_batch_at_the_end_is_cut_and_its_offsets_are_given_out_again() {
    for cut in [1, 10, 60, 100] {
        let bench = killed(3);
        let last = log_file(segment_bases_on(&bench).last().copied().unwrap());
        let file = bench.disk.open(&path(&last), OpenOptions::WRITE).unwrap();
        file.set_len(file.len().unwrap() - cut).unwrap();
        let log = bench.open(false);
        assert_eq!(log.end(), 4);
        assert_eq!(log.positions().high_watermark, Offset(4));
        assert_eq!(log.put(records(1, 5)).base_offset, Offset(4));
        assert_eq!(offsets(&log.all()), [(0, 1), (2, 3), (4, 4)]);
    }
}

fn segment_bases_on(bench: &Bench) -> Vec<i64> {
    let logs = bench.files().into_iter().filter(|name| name.ends_with(".log"));
    logs.map(|name| name.trim_end_matches(".log").parse().unwrap()).collect()
}

#[test]
fn garbage_and_zeros_after_the_last_batch_are_cut() {
    for tail in [vec![0; 700], vec![0xff; 300], b"garbage".to_vec(), records(1, 5)[..30].to_vec()] {
        let bench = killed(1);
        append_bytes(&bench, &log_file(0), &tail);
        let log = bench.open(false);
        assert_eq!(log.end(), 2);
        log.put(records(1, 5));
        assert_eq!(offsets(&log.all()), [(0, 1), (2, 2)]);
    }
}

#[test]
fn a_bad_batch_in_the_middle_ends_the_log_and_all_later_segments_go() {
    let bench = killed(9);
    let bases = segment_bases_on(&bench);
    assert!(bases.len() > 3);
    let file = bench.disk.open(&path(&log_file(bases[1])), OpenOptions::WRITE).unwrap();
    file.write_at(&[0x55], 100).unwrap();
    let log = bench.open(false);
    assert_eq!(segment_bases(&log), bases[..2]);
    assert_eq!(log.end(), bases[1]);
    assert_eq!(segment_bases_on(&bench), bases[..2]);
    assert_eq!(epochs(&log), [(3, 0)]);
    log.put(records(2, 200));
    let log = bench.after(CrashMode::ProcessKill).open(false);
    assert_eq!(log.end(), bases[1] + 2);
}

#[test]
fn a_preallocated_tail_of_zeros_is_cut() {
    let bench = Bench::with(LogConfig { preallocate: true, ..small_segments() });
    let log = bench.create();
    log.put(records(2, 50));
    drop(log);
    let bench = bench.after(CrashMode::ProcessKill);
    assert_eq!(bench.disk.metadata(&path(&log_file(0))).unwrap().len, 1000);
    let log = bench.open(false);
    assert_eq!(log.end(), 2);
    assert_eq!(log.size_bytes(), records(2, 50).len() as u64);
}

/// bitnami/bitnami-docker-kafka#34, apache/kafka#8936.
#[test]
fn missing_and_damaged_index_files_are_built_again() {
    type Damage = fn(&Bench, &Path);
    let damages: [(&str, Damage); 5] = [
        ("removed", |bench, path| bench.disk.remove_file(path).unwrap()),
        ("cut", |bench, path| bench.disk.open(path, OpenOptions::WRITE).unwrap().set_len(3).unwrap()),
        ("padded", |bench, path| bench.disk.open(path, OpenOptions::WRITE).unwrap().set_len(9600).unwrap()),
        ("empty", |bench, path| bench.disk.open(path, OpenOptions::WRITE).unwrap().set_len(0).unwrap()),
        ("zeroed", |bench, path| {
            let file = bench.disk.open(path, OpenOptions::WRITE).unwrap();
            file.write_at(&vec![0; file.len().unwrap() as usize], 0).unwrap();
        }),
    ];
    for (damage, apply) in damages {
        for extension in [".index", ".timeindex"] {
            for clean in [true, false] {
                let mut bench = Bench::new();
                let log = bench.create();
                for at in 0..12 {
                    log.put(records_at(1000 * at, 2, 70));
                }
                log.close().unwrap();
                bench.checkpoint(&log);
                for name in bench.files().into_iter().filter(|name| name.ends_with(extension)) {
                    apply(&bench, &path(&name));
                }
                if !clean {
                    bench.recovery_point = Offset(0);
                }
                let log = bench.open(clean);
                let context = format!("{extension} {damage}, clean {clean}");
                assert_eq!(log.end(), 24, "{context}");
                for at in 0..24 {
                    let found = offsets(&log.read_from(at, 1, ReadBound::LogEnd))[0];
                    assert_eq!(found, (at - at % 2, at - at % 2 + 1), "{context}");
                }
                for at in 0..12 {
                    let found = log.offset_for_timestamp(1000 * at).unwrap().unwrap();
                    assert_eq!(found.offset, Offset(2 * at), "{context}");
                }
            }
        }
    }
}

/// bitnami/bitnami-docker-kafka#33.
#[test]
fn indexes_of_two_segments_that_were_exchanged_are_built_again() {
    let mut bench = Bench::new();
    let log = bench.create();
    for _ in 0..12 {
        log.put(records(2, 70));
    }
    log.close().unwrap();
    bench.checkpoint(&log);
    let bases = segment_bases(&log);
    for extension in ["index", "timeindex"] {
        let name = |base: i64| path(&format!("{base:020}.{extension}"));
        bench.disk.rename(&name(bases[0]), &path("x")).unwrap();
        bench.disk.rename(&name(bases[1]), &name(bases[0])).unwrap();
        bench.disk.rename(&path("x"), &name(bases[1])).unwrap();
    }
    let log = bench.open(true);
    for at in 0..24 {
        assert_eq!(offsets(&log.read_from(at, 1, ReadBound::LogEnd))[0].0, at - at % 2);
    }
}

#[test]
fn an_index_without_a_log_is_removed_and_foreign_files_stay() {
    let bench = killed(1);
    for name in ["00000000000000000077.index", "00000000000000000077.timeindex", "notes.txt", "x.log"] {
        bench.disk.open(&path(name), OpenOptions::CREATE).unwrap();
    }
    bench.open(false);
    let files = bench.files();
    assert!(!files.iter().any(|name| name.contains("77")));
    assert!(files.contains(&"notes.txt".to_owned()) && files.contains(&"x.log".to_owned()));
}

#[test]
fn snapshots_that_belong_to_no_segment_go_but_the_last_one_of_a_clean_stop() {
    let mut bench = Bench::new();
    let log = bench.create();
    for _ in 0..4 {
        log.put(records(1, 600));
    }
    log.close().unwrap();
    bench.checkpoint(&log);
    for offset in [0, 77] {
        let name = path(&format!("{offset:020}.snapshot"));
        write_atomically(&bench.disk, &name, b"x", Durability::Deferred).unwrap();
    }
    bench
        .disk
        .rename(&path("00000000000000000004.snapshot"), &path("00000000000000000050.snapshot"))
        .unwrap();
    bench.open(true);
    let snapshots: Vec<_> = bench.files().into_iter().filter(|name| name.ends_with(".snapshot")).collect();
    assert!(!snapshots.contains(&"00000000000000000050.snapshot".to_owned()), "{snapshots:?}");
    assert!(snapshots.contains(&"00000000000000000004.snapshot".to_owned()), "{snapshots:?}");
}

#[test]
fn a_log_that_ends_below_its_start_begins_anew_at_its_start() {
    let mut bench = killed(4);
    bench.log_start = Offset(50);
    bench.high_watermark = Offset(60);
    bench.recovery_point = Offset(55);
    let log = bench.open(false);
    let at = Offset(50);
    let expected = Positions {
        log_start: at,
        last_stable: at,
        high_watermark: at,
        log_end: at,
        recovery_point: Offset(50),
    };
    assert_eq!(Positions { recovery_point: at, ..log.positions() }, expected);
    assert!(log.positions().recovery_point <= at);
    assert_eq!(segment_bases(&log), [50]);
    assert!(epochs(&log).is_empty());
    assert_eq!(log.put(records(1, 5)).base_offset, at);
}

#[test]
fn a_directory_without_segments_begins_at_its_log_start() {
    let mut bench = Bench::new();
    bench.disk.create_dir_all(Path::new(DIR)).unwrap();
    bench.log_start = Offset(9);
    let log = bench.open(false);
    assert_eq!((log.end(), segment_bases(&log)), (9, vec![9]));
}

#[test]
fn checkpointed_offsets_outside_of_the_log_are_brought_into_it() {
    for (checkpoint, expected) in [(0, 3), (5, 5), (99, 8)] {
        let mut bench = Bench::new();
        let log = bench.create();
        log.put(records(8, 5));
        log.replicate();
        log.increment_log_start(Offset(3)).unwrap();
        log.close().unwrap();
        bench.checkpoint(&log);
        bench.high_watermark = Offset(checkpoint);
        bench.recovery_point = Offset(99);
        let positions = bench.open(false).positions();
        assert_eq!((positions.high_watermark, positions.recovery_point), (Offset(expected), Offset(8)));
        assert_eq!(positions.log_start, Offset(3));
    }
}

#[test]
fn without_a_checkpoint_the_log_starts_at_its_first_segment() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.truncate_fully_and_start_at(Offset(40), now()).unwrap();
    log.put(records(2, 5));
    log.close().unwrap();
    bench.recovery_point = Offset(0);
    let positions = bench.open(false).positions();
    assert_eq!(
        (positions.log_start, positions.high_watermark, positions.log_end),
        (Offset(40), Offset(40), Offset(42))
    );
}

/// With the log start of an earlier checkpoint, records are there again whose epochs had gone with them.
#[test]
fn epochs_below_a_log_start_that_was_forgotten_are_found_again() {
    for clean in [false, true] {
        let bench = Bench::new();
        let log = bench.create();
        for epoch in [1, 2, 4] {
            log.become_leader(LeaderEpoch(epoch)).unwrap();
            log.append_as_leader(records(2, 5), AppendOrigin::Client, LeaderEpoch(epoch), now()).unwrap();
        }
        log.become_leader(LeaderEpoch(7)).unwrap();
        log.replicate();
        log.increment_log_start(Offset(5)).unwrap();
        assert_eq!(epochs(&log), [(4, 5), (7, 6)]);
        log.close().unwrap();
        let again = [(1, 0), (2, 2), (4, 4)];
        assert_eq!(epochs(&bench.open(clean)), again);
        assert_eq!(epochs(&bench.open(clean)), again, "and kept");
    }
}

#[test]
fn epochs_beyond_the_end_and_below_the_start_are_cut() {
    let mut bench = Bench::new();
    let log = bench.create();
    for epoch in 1..5 {
        log.become_leader(LeaderEpoch(epoch)).unwrap();
        log.append_as_leader(records(2, 5), AppendOrigin::Client, LeaderEpoch(epoch), now()).unwrap();
    }
    log.become_leader(LeaderEpoch(9)).unwrap();
    log.replicate();
    assert_eq!(epochs(&log), [(1, 0), (2, 2), (3, 4), (4, 6), (9, 8)]);
    log.close().unwrap();
    bench.checkpoint(&log);
    bench.log_start = Offset(3);
    assert_eq!(epochs(&bench.open(true)), [(2, 3), (3, 4), (4, 6)]);
}

/// apache/kafka#15993.
#[test]
fn lost_torn_and_malformed_epochs_are_found_again_in_the_batches() {
    let whole = b"0\n2\n0 0\n1 12\n";
    // The last but one was torn where the epoch of a later leader stood: its epochs fall.
    let falling = b"0\n2\n5 0\n1 12\n";
    for content in [&b""[..], b"0\n1\n0 0\n", b"0\n2\n0 0\n1 1", b"0\n2\n0 0\n", b"junk", falling, &whole[..]]
    {
        for recovery_point in [0, 14] {
            let mut bench = Bench::new();
            let log = bench.create();
            for at in 0..7 {
                let epoch = LeaderEpoch(i32::from(at == 6));
                log.append_as_leader(records(2, 250), AppendOrigin::Client, epoch, now()).unwrap();
            }
            log.flush().unwrap();
            log.close().unwrap();
            bench.recovery_point = Offset(recovery_point);
            let name = path(crate::names::LEADER_EPOCH_CHECKPOINT);
            write_atomically(&bench.disk, &name, content, Durability::Deferred).unwrap();
            let log = bench.open(false);
            assert_eq!(epochs(&log), [(0, 0), (1, 12)], "{:?}", String::from_utf8_lossy(content));
            let log = bench.after(CrashMode::ProcessKill).open(false);
            assert_eq!(epochs(&log), [(0, 0), (1, 12)], "the file was written again");
        }
    }
}

#[test]
fn a_removed_epoch_file_of_epoch_zero_comes_back() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.append_as_leader(records(2, 5), AppendOrigin::Client, LeaderEpoch(0), now()).unwrap();
    let bench_after = bench.after(CrashMode::ProcessKill);
    bench_after.disk.remove_file(&path(crate::names::LEADER_EPOCH_CHECKPOINT)).unwrap();
    assert_eq!(epochs(&bench_after.open(false)), [(0, 0)]);
    bench.recovery_point = Offset(0);
}

#[test]
fn a_complete_replacement_by_compaction_is_finished_and_an_unfinished_one_taken_back() {
    for unfinished in [false, true] {
        let mut bench = Bench::new();
        let log = bench.create();
        for _ in 0..6 {
            log.put(records(1, 300));
        }
        assert_eq!(segment_bases(&log), [0, 2, 4]);
        log.close().unwrap();
        bench.checkpoint(&log);
        // The first two segments were compacted into one with the record at 1 only.
        let kept = log.all()[1].bytes.clone();
        let state = if unfinished { "cleaned" } else { "swap" };
        let name = path(&format!("00000000000000000000.log.{state}"));
        write_atomically(&bench.disk, &name, &kept, Durability::Synced).unwrap();
        // The end of what it stands for is the end of the second segment.
        let second = log.all()[3].bytes.clone();
        append_bytes(&bench, &format!("00000000000000000000.log.{state}"), &second);
        let log = bench.open(false);
        let expected = if unfinished {
            vec![(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]
        } else {
            vec![(1, 1), (3, 3), (4, 4), (5, 5)]
        };
        assert_eq!(offsets(&log.all()), expected);
        assert!(!bench.files().iter().any(|name| name.ends_with(".swap") || name.ends_with(".cleaned")));
    }
}

#[test]
fn a_lost_topic_id_is_unknown_after_a_crash_and_an_error_after_a_clean_stop() {
    for content in [&b""[..], b"version: 0\ntopic_id: short"] {
        let mut bench = Bench::new();
        let log = bench.create();
        log.put(records(1, 5));
        log.close().unwrap();
        bench.checkpoint(&log);
        let name = path(crate::names::PARTITION_METADATA);
        write_atomically(&bench.disk, &name, content, Durability::Deferred).unwrap();
        assert!(matches!(bench.try_open(true), Err(LoadError::Unusable { .. })));
        let log = bench.open(false);
        assert_eq!(log.topic_id(), None);
        log.set_topic_id(TopicId([7; 16])).unwrap();
        let log = bench.reopen_clean(log);
        assert_eq!(log.topic_id(), Some(TopicId([7; 16])));
    }
}

#[test]
fn another_topic_id_is_refused() {
    let log = Bench::new().create();
    let (known, given) = (TopicId([7; 16]), TopicId([8; 16]));
    assert_eq!(log.set_topic_id(given), Err(LogError::InconsistentTopicId { known, given }));
    assert_eq!(log.set_topic_id(known), Ok(()));
    assert_eq!(log.set_topic_id(TopicId::ZERO), Ok(()));
}

#[test]
fn an_error_of_the_disk_takes_the_directory_offline() {
    let bench = killed(3);
    bench.fail(Operation::Read, ".log", 0);
    assert!(matches!(bench.try_open(false), Err(LoadError::Storage(_))));
    assert!(!bench.health.is_online());
}

#[test]
fn a_log_of_an_old_format_is_unusable_and_the_directory_stays_online() {
    let bench = killed(0);
    let v1 = [
        0u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x18, 0xe4, 0xe3, 0x21, 0xbc, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0xe8, 0,
        0, 0, 1, b'k', 0, 0, 0, 1, b'v',
    ];
    append_bytes(&bench, &log_file(0), &v1);
    let before = bench.disk.metadata(&path(&log_file(0))).unwrap().len;
    assert!(matches!(bench.try_open(false), Err(LoadError::Unusable { .. })));
    assert!(bench.health.is_online());
    assert_eq!(bench.disk.metadata(&path(&log_file(0))).unwrap().len, before, "nothing is cut");
}

#[test]
fn a_closed_log_has_whole_index_files_even_if_it_was_never_used() {
    let bench = Bench::new();
    let log = bench.create();
    log.close().unwrap();
    log.close().unwrap();
    let files = bench.files();
    for name in ["00000000000000000000.index", "00000000000000000000.timeindex"] {
        assert!(files.contains(&name.to_owned()), "{files:?}");
        assert_eq!(bench.disk.metadata(&path(name)).unwrap().len, 0);
    }
}

#[test]
fn a_snapshot_beyond_the_end_of_a_log_that_was_cut_goes() {
    let mut bench = Bench::new();
    let log = bench.create();
    log.put(records(2, 5));
    log.put(records(2, 5));
    log.close().unwrap();
    bench.checkpoint(&log);
    let end = path("00000000000000000004.snapshot");
    assert!(bench.disk.exists(&end).unwrap());
    let file = bench.disk.open(&path(&log_file(0)), OpenOptions::WRITE).unwrap();
    file.set_len(file.len().unwrap() - 1).unwrap();
    assert_eq!(bench.open(false).end(), 2);
    assert!(!bench.disk.exists(&end).unwrap());
}
