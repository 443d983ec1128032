//! The time index against its rules, and against a plain list.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::disk::atomic::read_file;
use crate::disk::crash::{CrashDisk, CrashMode};
use crate::disk::handles::{DirPath, FileCache};
use crate::disk::{Disk, OpenOptions};

const PATH: &str = "/00000000000000000050.timeindex";

fn open(disk: &CrashDisk, max_bytes: u64) -> TimeIndex {
    let files = FileCache::new(Arc::new(disk.clone()), 4);
    let file = files.file(&DirPath::new("/"), "00000000000000000050.timeindex".into());
    TimeIndex::new(file, Offset(50), max_bytes)
}

fn at(timestamp: i64, offset: i64) -> TimestampOffset {
    TimestampOffset { timestamp: Millis(timestamp), offset: Offset(offset) }
}

#[test]
fn the_entry_of_the_vector_is_written_in_twelve_bytes() {
    let disk = CrashDisk::new();
    let index = open(&disk, 24);
    index.maybe_append(at(1_700_000_000_000, 55), LastSlot::Keep).unwrap();
    index.trim().unwrap();
    let bytes = read_file(&disk, Path::new(PATH), 100).unwrap().unwrap();
    assert_eq!(bytes, [0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0, 0, 0, 0, 5]);
    assert_eq!(open(&disk, 24).last().unwrap(), at(1_700_000_000_000, 55));
}

#[test]
fn a_new_file_is_as_long_as_a_running_broker_makes_it() {
    let disk = CrashDisk::new();
    open(&disk, 10 << 20).maybe_append(at(1, 55), LastSlot::Keep).unwrap();
    assert_eq!(disk.metadata(Path::new(PATH)).unwrap().len, 10_485_756);
}

#[test]
fn an_empty_index_says_no_timestamp_at_the_base_offset() {
    let index = open(&CrashDisk::new(), 120);
    assert_eq!(index.last().unwrap(), at(-1, 50));
    assert_eq!(index.lookup(Millis(i64::MAX)).unwrap(), at(-1, 50));
}

#[test]
fn an_entry_without_a_larger_timestamp_is_left_out() {
    let index = open(&CrashDisk::new(), 120);
    index.maybe_append(at(-1, 51), LastSlot::Keep).unwrap();
    assert_eq!(index.count().unwrap(), 0);
    index.maybe_append(at(10, 55), LastSlot::Keep).unwrap();
    index.maybe_append(at(10, 60), LastSlot::Keep).unwrap();
    assert_eq!((index.count().unwrap(), index.last().unwrap()), (1, at(10, 55)));
    index.maybe_append(at(11, 55), LastSlot::Keep).unwrap();
    assert_eq!(index.count().unwrap(), 2, "the same offset is allowed");
}

#[test]
fn falling_offsets_and_timestamps_are_errors() {
    let index = open(&CrashDisk::new(), 120);
    index.maybe_append(at(10, 55), LastSlot::Keep).unwrap();
    for wrong in [at(11, 54), at(9, 56), at(-1, 56)] {
        let result = index.maybe_append(wrong, LastSlot::Keep);
        assert!(matches!(result, Err(IndexError::OutOfOrder { .. })), "{wrong:?}");
    }
    let result = index.maybe_append(at(12, 49), LastSlot::Keep);
    assert!(matches!(result, Err(IndexError::OffsetOverflow { .. })));
}

#[test]
fn the_last_slot_is_kept_for_the_closing_entry() {
    let index = open(&CrashDisk::new(), 36);
    index.maybe_append(at(1, 51), LastSlot::Keep).unwrap();
    assert_eq!(index.free_entries().unwrap(), 1);
    index.maybe_append(at(2, 52), LastSlot::Keep).unwrap();
    assert!(index.is_full().unwrap());
    assert!(matches!(index.maybe_append(at(3, 53), LastSlot::Keep), Err(IndexError::Full)));
    index.maybe_append(at(3, 53), LastSlot::Use).unwrap();
    assert!(matches!(index.maybe_append(at(4, 54), LastSlot::Use), Err(IndexError::Full)));
}

#[test]
fn truncation_drops_the_entries_whose_offset_is_at_or_above() {
    let index = open(&CrashDisk::new(), 120);
    for (timestamp, offset) in [(10, 55), (20, 60), (30, 60), (40, 70)] {
        index.maybe_append(at(timestamp, offset), LastSlot::Keep).unwrap();
    }
    index.truncate_to(Offset(71)).unwrap();
    assert_eq!(index.count().unwrap(), 4);
    index.truncate_to(Offset(60)).unwrap();
    assert_eq!((index.count().unwrap(), index.last().unwrap()), (1, at(10, 55)));
}

#[test]
fn a_padded_cut_or_absent_file_is_not_plausible() {
    let disk = CrashDisk::new();
    let index = open(&disk, 120);
    index.maybe_append(at(10, 55), LastSlot::Keep).unwrap();
    assert!(index.is_plausible().unwrap());
    assert!(!open(&disk.fork(), 120).is_plausible().unwrap(), "padded with zeros");
    index.trim().unwrap();
    assert!(open(&disk, 120).is_plausible().unwrap());
    disk.open(Path::new(PATH), OpenOptions::WRITE).unwrap().set_len(3).unwrap();
    assert!(!open(&disk, 120).is_plausible().unwrap());
    assert!(!open(&CrashDisk::new(), 120).is_plausible().unwrap());
}

#[test]
fn flushed_entries_survive() {
    let disk = CrashDisk::new();
    let index = open(&disk, 120);
    index.maybe_append(at(10, 55), LastSlot::Keep).unwrap();
    index.trim().unwrap();
    index.flush().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    assert_eq!(open(&disk.crash(CrashMode::LoseUnsynced), 120).lookup(Millis(15)).unwrap(), at(10, 55));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_index_agrees_with_a_plain_list(
        rises in prop::collection::vec((1i64..50, 0i64..4), 0..3000),
        cut in 0i64..9000,
        targets in prop::collection::vec(0i64..80_000, 0..200),
    ) {
        let disk = CrashDisk::new();
        let index = open(&disk, 1 << 20);
        let mut list: Vec<TimestampOffset> = Vec::new();
        let (mut timestamp, mut offset) = (0, 50);
        for (more, further) in rises {
            (timestamp, offset) = (timestamp + more, offset + further);
            index.maybe_append(at(timestamp, offset), LastSlot::Keep).unwrap();
            list.push(at(timestamp, offset));
        }
        for round in 0..2 {
            for target in &targets {
                let expected = list.iter().rev().find(|entry| entry.timestamp.0 <= *target);
                let expected = expected.copied().unwrap_or(at(-1, 50));
                prop_assert_eq!(index.lookup(Millis(*target)).unwrap(), expected, "round {}", round);
            }
            index.truncate_to(Offset(cut)).unwrap();
            list.retain(|entry| entry.offset.0 < cut);
            prop_assert_eq!(index.last().unwrap(), list.last().copied().unwrap_or(at(-1, 50)));
        }
    }
}
