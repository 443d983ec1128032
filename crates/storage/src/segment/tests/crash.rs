//! What is durable after a flush stays; what is not may go, but never leaves a segment that lies.

use super::*;
use crate::disk::crash::{CrashMode, Fault, Operation};

#[test]
fn flushed_batches_and_aborts_survive_every_power_loss() {
    for seed in 0..60 {
        let disk = CrashDisk::new();
        let segment = create(&disk);
        let batches = fill(&segment);
        segment.append_aborted(&aborted(103)).unwrap();
        segment.flush().unwrap();
        append(&segment, &[batch(120, 3, &[2000])]).unwrap();
        segment.append_aborted(&aborted(105)).unwrap();
        let after = disk.crash(CrashMode::PowerLoss { seed });
        let segment = open(&after);
        assert_eq!(segment.txn_index().all().unwrap().first(), Some(&aborted(103)));
        let recovered = recover(&segment);
        assert!(matches!(recovered.next_offset.0, 120 | 121), "seed {seed}");
        let found = all_batches(&segment);
        for (found, expected) in found.iter().zip(&batches) {
            assert_eq!(found.header, expected.header);
            assert_eq!(segment.read_batch(found).unwrap(), expected.bytes);
        }
    }
}

#[test]
fn a_crash_at_any_operation_of_a_segments_life_can_be_recovered_from() {
    let life = |disk: &CrashDisk| -> Result<Offset, SegmentError> {
        let segment = Segment::create(&dir_on(disk), BASE, CONFIG, NOW)?;
        for n in 0..6 {
            append(&segment, &[batch(100 + n, 3, &[n])])?;
        }
        segment.append_aborted(&aborted(102))?;
        segment.flush()?;
        segment.truncate_to(Offset(104), NOW)?;
        append(&segment, &[batch(104, 4, &[9])])?;
        segment.close()?;
        segment.flush()?;
        Ok(Offset(105))
    };
    for seed in 0..8 {
        for at in 0.. {
            let disk = CrashDisk::new();
            disk.create_dir_all(Path::new("/t-0")).unwrap();
            disk.sync_dir(Path::new("/")).unwrap();
            disk.crash_at(at);
            let end = life(&disk);
            for mode in [CrashMode::ProcessKill, CrashMode::LoseUnsynced, CrashMode::PowerLoss { seed }] {
                let after = disk.fork().crash(mode);
                if !after.exists(&path(SegmentFile::Log)).unwrap() {
                    assert!(end.is_err(), "the log is there after a flush");
                    continue;
                }
                let segment = open(&after);
                let recovered = recover(&segment);
                let found = all_batches(&segment);
                let offsets: Vec<i64> = found.iter().map(|batch| batch.header.base_offset.0).collect();
                let expected: Vec<i64> = (100..recovered.next_offset.0).collect();
                assert_eq!(offsets, expected, "no gap, nothing twice");
                assert!(segment.find_batch(recovered.next_offset).unwrap().is_none());
                if let Ok(end) = end {
                    assert_eq!(recovered.next_offset, end);
                    assert_eq!(found.last().unwrap().header.partition_leader_epoch, LeaderEpoch(4));
                    assert_eq!(recovered.truncated_bytes, 0);
                }
            }
            if end.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn after_a_failed_sync_no_later_one_succeeds() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    append(&segment, &[batch(100, 0, &[1])]).unwrap();
    let kind = io::ErrorKind::Other;
    disk.fail(Fault { operation: Operation::Sync, path_contains: ".log".into(), skip: 0, times: 1, kind });
    assert!(segment.flush().unwrap_err().is_io());
    assert!(matches!(segment.flush(), Err(SegmentError::SyncFailed { .. })));
    append(&segment, &[batch(101, 0, &[2])]).unwrap();
    assert!(segment.flush().unwrap_err().is_io());
}

#[test]
fn a_flush_syncs_what_changed_and_the_directory_only_for_new_names() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    append(&segment, &[batch(100, 0, &[1])]).unwrap();
    let syncs = |segment: &Segment| {
        let before = disk.syncs();
        segment.flush().unwrap();
        disk.syncs() - before
    };
    assert_eq!(syncs(&segment), 2, "log and directory");
    assert_eq!(syncs(&segment), 0);
    append(&segment, &[batch(101, 0, &[2])]).unwrap();
    assert_eq!(syncs(&segment), 1, "log");
    segment.append_aborted(&aborted(101)).unwrap();
    assert_eq!(syncs(&segment), 2, "transaction index and directory");
    fill_from(&segment, 102);
    assert_eq!(syncs(&segment), 4, "log, both indexes, directory");
}

fn fill_from(segment: &Segment, base: i64) {
    for n in 0..5 {
        append(segment, &[batch(base + n, 0, &[100 + n])]).unwrap();
    }
}

#[test]
fn an_opened_segment_is_synced_by_its_first_flush_because_its_writer_may_have_died() {
    let disk = CrashDisk::new();
    fill(&create(&disk));
    let disk = disk.crash(CrashMode::ProcessKill);
    let segment = open(&disk);
    recover(&segment);
    segment.flush().unwrap();
    assert_eq!(recover(&open(&disk.crash(CrashMode::LoseUnsynced))).next_offset, Offset(120));
}
