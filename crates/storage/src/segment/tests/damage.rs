//! Index files that were lost, cut, padded or exchanged while the log is whole.

use super::*;
use crate::disk::{DiskFile, OpenOptions};

fn index(disk: &CrashDisk, kind: SegmentFile) -> Arc<dyn DiskFile> {
    disk.open(&path(kind), OpenOptions::WRITE).unwrap()
}

/// Damages the files of a closed segment, opens it, and expects that nothing can be noticed.
fn survives(damage: impl Fn(&CrashDisk)) -> CrashDisk {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let batches = fill(&segment);
    segment.close().unwrap();
    damage(&disk);
    let segment = open(&disk);
    assert_eq!(segment.max_timestamp().unwrap().timestamp, Millis(1091));
    assert_eq!(segment.largest_timestamp().unwrap(), Millis(1091));
    assert_eq!(segment.next_offset().unwrap(), Offset(120));
    for batch in &batches {
        assert_eq!(segment.find_batch(batch.header.last_offset()).unwrap().unwrap().header, batch.header);
        let found = segment.find_by_timestamp(batch.header.max_timestamp, BASE).unwrap().unwrap();
        assert_eq!(found.offset, batch.header.last_offset());
    }
    segment.resize_indexes();
    append(&segment, &[batch(120, 5, &[2000])]).unwrap();
    assert_eq!(segment.find_batch(Offset(120)).unwrap().unwrap().header.base_offset, Offset(120));
    disk
}

#[test]
fn whole_indexes_are_used_as_they_are() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    fill(&segment);
    segment.close().unwrap();
    let changes = disk.changes();
    let segment = open(&disk);
    segment.find_batch(Offset(110)).unwrap();
    segment.find_by_timestamp(Millis(1050), BASE).unwrap();
    assert_eq!(disk.changes(), changes);
}

#[test]
fn a_lost_index_is_built_anew() {
    for kind in [SegmentFile::OffsetIndex, SegmentFile::TimeIndex] {
        let disk = survives(|disk| disk.remove_file(&path(kind)).unwrap());
        assert!(disk.exists(&path(kind)).unwrap());
    }
}

#[test]
fn an_emptied_or_cut_index_is_built_anew() {
    for kind in [SegmentFile::OffsetIndex, SegmentFile::TimeIndex] {
        for len in [0, 3] {
            survives(|disk| index(disk, kind).set_len(len).unwrap());
        }
    }
}

#[test]
fn an_index_padded_with_zeros_is_built_anew() {
    for kind in [SegmentFile::OffsetIndex, SegmentFile::TimeIndex] {
        for len in [240, 10_485_756, 10_485_760] {
            survives(|disk| index(disk, kind).set_len(len).unwrap());
        }
    }
}

#[test]
fn an_index_full_of_anything_else_is_built_anew() {
    for kind in [SegmentFile::OffsetIndex, SegmentFile::TimeIndex] {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            survives(|disk| {
                let len = index(disk, kind).len().unwrap();
                index(disk, kind).write_at(&vec![byte; len as usize], 0).unwrap();
            });
        }
    }
}

#[test]
fn the_indexes_of_another_segment_are_built_anew() {
    // The same number of batches, each with a longer record and other times.
    let other = CrashDisk::new();
    let segment = create(&other);
    for n in 0..10 {
        append(&segment, &[batch(100 + 3 * n, 3, &[5 + n, 6 + n, 7 + n])]).unwrap();
    }
    segment.close().unwrap();
    for kind in [SegmentFile::OffsetIndex, SegmentFile::TimeIndex] {
        let bytes = file(&other, kind).unwrap();
        survives(|disk| {
            index(disk, kind).set_len(bytes.len() as u64).unwrap();
            index(disk, kind).write_at(&bytes, 0).unwrap();
        });
    }
}

#[test]
fn a_last_time_entry_that_says_old_does_not_stand() {
    for timestamp in [0i64, 1, 1090, 1092, i64::MAX, -1] {
        survives(|disk| {
            let len = index(disk, SegmentFile::TimeIndex).len().unwrap();
            index(disk, SegmentFile::TimeIndex).write_at(&timestamp.to_be_bytes(), len - 12).unwrap();
        });
    }
}

#[test]
fn a_wrong_entry_in_the_middle_does_not_hide_a_batch() {
    survives(|disk| {
        let index = index(disk, SegmentFile::OffsetIndex);
        assert!(index.len().unwrap() >= 24);
        // Into the middle of a batch, and beyond the offset it names.
        index.write_at(&777u32.to_be_bytes(), 4).unwrap();
    });
    survives(|disk| {
        let mut position = [0; 4];
        index(disk, SegmentFile::OffsetIndex).read_exact_at(&mut position, 20).unwrap();
        index(disk, SegmentFile::OffsetIndex).write_at(&position, 4).unwrap();
    });
}

#[test]
fn an_unreadable_index_is_an_error_of_the_disk_and_not_built_anew() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    fill(&segment);
    segment.close().unwrap();
    let before = file(&disk, SegmentFile::OffsetIndex).unwrap();
    let segment = open(&disk);
    disk.fail(crate::disk::crash::Fault {
        operation: crate::disk::crash::Operation::Read,
        path_contains: ".index".into(),
        skip: 0,
        times: 1,
        kind: io::ErrorKind::Other,
    });
    assert!(segment.find_batch(Offset(110)).unwrap_err().is_io());
    assert_eq!(file(&disk, SegmentFile::OffsetIndex).unwrap(), before);
    assert!(segment.find_batch(Offset(110)).unwrap().is_some());
}

#[test]
fn a_damaged_transaction_index_is_told() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    segment.append_aborted(&aborted(103)).unwrap();
    open(&disk).check_txn_index().unwrap();
    index(&disk, SegmentFile::TxnIndex).write_at(&[0; 34], 0).unwrap();
    assert!(!open(&disk).check_txn_index().unwrap_err().is_io());
}
