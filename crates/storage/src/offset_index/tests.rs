//! The offset index against its rules, and against a plain list.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::disk::Disk;
use crate::disk::atomic::read_file;
use crate::disk::crash::{CrashDisk, CrashMode, Fault, Operation};
use crate::disk::handles::{DirPath, FileCache};

const PATH: &str = "/00000000000000000050.index";
const BASE: Offset = Offset(50);

fn open(disk: &CrashDisk, max_bytes: u64) -> OffsetIndex {
    let files = FileCache::new(Arc::new(disk.clone()), 4);
    OffsetIndex::new(files.file(&DirPath::new("/"), "00000000000000000050.index".into()), BASE, max_bytes)
}

fn content(disk: &CrashDisk) -> Vec<u8> {
    read_file(disk, Path::new(PATH), 1 << 30).unwrap().unwrap()
}

fn entry(offset: i64, position: u64) -> OffsetPosition {
    OffsetPosition { offset: Offset(offset), position }
}

#[test]
fn the_entry_of_the_vector_is_written_in_eight_bytes() {
    let disk = CrashDisk::new();
    open(&disk, 8).append(Offset(55), 4096).unwrap();
    assert_eq!(content(&disk), [0, 0, 0, 5, 0, 0, 0x10, 0]);
    assert_eq!(open(&disk, 8).last().unwrap(), Some(entry(55, 4096)));
}

#[test]
fn nothing_exists_until_the_first_entry_which_makes_the_file_as_long_as_configured() {
    let disk = CrashDisk::new();
    let index = open(&disk, 10 << 20);
    assert_eq!(index.lookup(Offset(70)).unwrap(), entry(50, 0));
    assert_eq!((index.count().unwrap(), index.is_full().unwrap()), (0, false));
    assert!(!disk.exists(Path::new(PATH)).unwrap());
    index.append(Offset(55), 1).unwrap();
    assert_eq!(disk.metadata(Path::new(PATH)).unwrap().len, 10_485_760);
}

#[test]
fn the_room_is_a_multiple_of_eight_and_the_index_is_full_when_it_is_used_up() {
    let disk = CrashDisk::new();
    let index = open(&disk, 31);
    for n in 1..=3 {
        assert!(!index.is_full().unwrap());
        assert_eq!(index.free_entries().unwrap(), 4 - n);
        index.append(Offset(50 + n as i64), n as u64 * 10).unwrap();
    }
    assert!(index.is_full().unwrap());
    assert!(matches!(index.append(Offset(60), 40), Err(IndexError::Full)));
    assert_eq!(content(&disk).len(), 24);
}

#[test]
fn an_entry_must_come_after_the_last_one() {
    let disk = CrashDisk::new();
    let index = open(&disk, 80);
    index.append(Offset(55), 10).unwrap();
    for offset in [55, 54, 50] {
        assert!(matches!(index.append(Offset(offset), 20), Err(IndexError::OutOfOrder { .. })));
    }
    index.append(Offset(56), 20).unwrap();
}

#[test]
fn an_offset_must_be_within_31_bits_of_the_base() {
    let disk = CrashDisk::new();
    let index = open(&disk, 80);
    for offset in [49, 51 + i64::from(i32::MAX), i64::MIN, i64::MAX] {
        assert!(matches!(index.append(Offset(offset), 0), Err(IndexError::OffsetOverflow { .. })));
    }
    index.append(Offset(50 + i64::from(i32::MAX)), u64::from(i32::MAX.cast_unsigned())).unwrap();
    assert!(matches!(index.append(Offset(60), 1 << 31), Err(IndexError::OffsetOverflow { .. })));
    assert_eq!(index.lookup(Offset(i64::MAX)).unwrap(), entry(50 + (1 << 31) - 1, (1 << 31) - 1));
}

#[test]
fn a_trimmed_file_has_only_its_entries_and_no_room_until_it_is_given_some() {
    let disk = CrashDisk::new();
    let index = open(&disk, 80);
    index.append(Offset(55), 10).unwrap();
    index.trim().unwrap();
    assert_eq!(content(&disk).len(), 8);
    assert!(index.is_full().unwrap());
    let again = open(&disk, 80);
    assert!(again.is_full().unwrap(), "an existing file has the room of its length");
    again.resize(80);
    assert!(!again.is_full().unwrap());
    again.append(Offset(56), 20).unwrap();
    assert_eq!(content(&disk).len(), 80);
    assert_eq!(again.count().unwrap(), 2);
}

#[test]
fn trimming_an_index_that_was_never_used_creates_an_empty_file() {
    let disk = CrashDisk::new();
    open(&disk, 80).trim().unwrap();
    assert_eq!(content(&disk), []);
    let index = open(&disk, 80);
    index.resize(80);
    index.append(Offset(55), 10).unwrap();
    assert_eq!(index.lookup(Offset(55)).unwrap(), entry(55, 10));
}

#[test]
fn resizing_below_the_entries_keeps_them() {
    let disk = CrashDisk::new();
    let index = open(&disk, 80);
    for n in 1..=5 {
        index.append(Offset(50 + n), n as u64).unwrap();
    }
    index.resize(16);
    assert!(index.is_full().unwrap());
    assert_eq!(index.last().unwrap(), Some(entry(55, 5)));
}

#[test]
fn truncation_drops_the_entries_at_and_above_the_offset() {
    let disk = CrashDisk::new();
    let index = open(&disk, 80);
    for n in [55, 60, 65] {
        index.append(Offset(n), n as u64).unwrap();
    }
    index.truncate_to(Offset(66)).unwrap();
    assert_eq!(index.count().unwrap(), 3);
    index.truncate_to(Offset(60)).unwrap();
    assert_eq!(index.last().unwrap(), Some(entry(55, 55)));
    index.append(Offset(58), 7).unwrap();
    assert_eq!(index.lookup(Offset(100)).unwrap(), entry(58, 7));
    index.truncate_to(Offset(0)).unwrap();
    assert_eq!((index.count().unwrap(), index.last().unwrap()), (0, None));
}

#[test]
fn an_index_that_was_not_trimmed_counts_its_zeros_and_is_not_plausible() {
    let disk = CrashDisk::new();
    let index = open(&disk, 80);
    index.append(Offset(55), 10).unwrap();
    index.append(Offset(56), 20).unwrap();
    assert!(index.is_plausible(21).unwrap());
    let again = open(&disk.crash(CrashMode::ProcessKill), 80);
    assert_eq!(again.count().unwrap(), 10);
    assert!(!again.is_plausible(21).unwrap());
}

#[test]
fn a_file_of_a_broken_length_or_one_that_leads_out_of_the_log_is_not_plausible() {
    let disk = CrashDisk::new();
    let index = open(&disk, 80);
    index.append(Offset(55), 10).unwrap();
    index.trim().unwrap();
    assert!(open(&disk, 80).is_plausible(11).unwrap());
    assert!(!open(&disk, 80).is_plausible(10).unwrap());
    disk.open(Path::new(PATH), crate::disk::OpenOptions::WRITE).unwrap().set_len(11).unwrap();
    assert!(!open(&disk, 80).is_plausible(11).unwrap());
    assert!(!open(&CrashDisk::new(), 80).is_plausible(11).unwrap(), "no file");
}

#[test]
fn resetting_drops_everything() {
    let disk = CrashDisk::new();
    disk.open(Path::new(PATH), crate::disk::OpenOptions::CREATE).unwrap().write_at(&[9; 33], 0).unwrap();
    let index = open(&disk, 80);
    index.reset(80).unwrap();
    assert_eq!((index.count().unwrap(), index.lookup(Offset(1 << 40)).unwrap()), (0, entry(50, 0)));
    assert_eq!(content(&disk), []);
    index.append(Offset(51), 1).unwrap();
    assert_eq!(open(&disk, 80).count().unwrap(), 10);
}

#[test]
fn a_failed_write_is_an_error_and_leaves_the_entries_as_they_were() {
    let disk = CrashDisk::new();
    let index = open(&disk, 80);
    index.append(Offset(55), 10).unwrap();
    let kind = std::io::ErrorKind::StorageFull;
    let operation = Operation::Write;
    disk.fail(Fault { operation, path_contains: String::new(), skip: 0, times: 1, kind });
    let result = index.append(Offset(56), 20);
    assert!(matches!(result, Err(IndexError::Io { error, .. }) if error.kind() == kind));
    assert_eq!(index.last().unwrap(), Some(entry(55, 10)));
    index.append(Offset(57), 30).unwrap();
    assert_eq!(index.lookup(Offset(56)).unwrap(), entry(55, 10));
}

#[test]
fn only_a_changed_index_is_synced() {
    let disk = CrashDisk::new();
    let index = open(&disk, 80);
    index.flush().unwrap();
    assert_eq!(disk.syncs(), 0);
    index.append(Offset(55), 10).unwrap();
    index.trim().unwrap();
    index.flush().unwrap();
    index.flush().unwrap();
    assert_eq!(disk.syncs(), 1);
    disk.sync_dir(Path::new("/")).unwrap();
    let after = disk.crash(CrashMode::LoseUnsynced);
    assert_eq!(open(&after, 80).lookup(Offset(55)).unwrap(), entry(55, 10));
}

/// What a look-up must find, by going through all entries.
fn naive_lookup(entries: &[OffsetPosition], target: Offset) -> OffsetPosition {
    entries.iter().rev().find(|entry| entry.offset <= target).copied().unwrap_or(entry(50, 0))
}

#[derive(Clone, Debug)]
enum Step {
    Append { count: usize, stride: i64 },
    Truncate { back: i64 },
    Reopen,
    Lookup { at: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1usize..900, 1i64..5).prop_map(|(count, stride)| Step::Append { count, stride }),
        1 => (0i64..3000).prop_map(|back| Step::Truncate { back }),
        1 => Just(Step::Reopen),
        4 => (0i64..20_000).prop_map(|at| Step::Lookup { at }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_index_agrees_with_a_plain_list(steps in prop::collection::vec(step(), 1..25)) {
        let disk = CrashDisk::new();
        let mut index = open(&disk, 1 << 20);
        let mut list: Vec<OffsetPosition> = Vec::new();
        for step in steps {
            let last = list.last().copied().unwrap_or(entry(50, 0));
            match step {
                Step::Append { count, stride } => {
                    for n in 1..=count as i64 {
                        let new = entry(last.offset.0 + n * stride, last.position + n as u64 * 7);
                        index.append(new.offset, new.position).unwrap();
                        list.push(new);
                    }
                }
                Step::Truncate { back } => {
                    let to = Offset(last.offset.0 - back);
                    index.truncate_to(to).unwrap();
                    list.retain(|entry| entry.offset < to);
                }
                Step::Reopen => {
                    index.trim().unwrap();
                    index = open(&disk, 1 << 20);
                    index.resize(1 << 20);
                }
                Step::Lookup { at } => {
                    prop_assert_eq!(index.lookup(Offset(at)).unwrap(), naive_lookup(&list, Offset(at)));
                    let beyond = list.iter().find(|entry| entry.position >= at as u64).copied();
                    prop_assert_eq!(index.first_at_or_beyond(at as u64).unwrap(), beyond);
                }
            }
            prop_assert_eq!(index.count().unwrap(), list.len());
            prop_assert_eq!(index.last().unwrap(), list.last().copied());
        }
        for entry in list.iter().step_by(53) {
            for near in [-1, 0, 1] {
                let target = entry.offset.plus(near);
                prop_assert_eq!(index.lookup(target).unwrap(), naive_lookup(&list, target));
            }
        }
    }
}
