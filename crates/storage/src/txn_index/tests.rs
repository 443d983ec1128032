//! The index of aborted transactions against its rules, and against a plain list.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::disk::atomic::read_file;
use crate::disk::crash::CrashDisk;
use crate::disk::handles::{DirPath, FileCache};
use crate::disk::{Disk, OpenOptions};

const NAME: &str = "00000000000000000000.txnindex";
const PATH: &str = "/00000000000000000000.txnindex";

fn open_at(disk: &CrashDisk, base: i64) -> TxnIndex {
    let files = FileCache::new(Arc::new(disk.clone()), 4);
    TxnIndex::new(files.file(&DirPath::new("/"), NAME.into()), Offset(base))
}

fn open(disk: &CrashDisk) -> TxnIndex {
    open_at(disk, 0)
}

fn txn(producer_id: i64, first: i64, last: i64, stable: i64) -> AbortedTxn {
    AbortedTxn {
        producer_id,
        first_offset: Offset(first),
        last_offset: Offset(last),
        last_stable_offset: Offset(stable),
    }
}

#[test]
fn the_entry_of_the_vector_is_written_in_34_bytes() {
    let disk = CrashDisk::new();
    open(&disk).append(&txn(1000, 3, 8, 9)).unwrap();
    let bytes = read_file(&disk, Path::new(PATH), 100).unwrap().unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "000000000000000003e8000000000000000300000000000000080000000000000009");
    assert_eq!(open(&disk).all().unwrap(), [txn(1000, 3, 8, 9)]);
}

#[test]
fn the_file_comes_with_the_first_abort_and_its_name_is_new_once() {
    let disk = CrashDisk::new();
    let index = open(&disk);
    assert!(index.all().unwrap().is_empty());
    index.truncate_to(Offset(0)).unwrap();
    index.reset().unwrap();
    assert!(!index.flush().unwrap());
    assert!(!disk.exists(Path::new(PATH)).unwrap());
    index.append(&txn(1, 0, 5, 6)).unwrap();
    assert!(index.flush().unwrap());
    index.append(&txn(1, 6, 9, 10)).unwrap();
    assert!(!index.flush().unwrap());
    assert!(!open(&disk).flush().unwrap(), "nothing was changed");
}

#[test]
fn markers_must_rise() {
    let disk = CrashDisk::new();
    open(&disk).append(&txn(1, 0, 5, 6)).unwrap();
    let index = open(&disk);
    for last in [5, 4] {
        let result = index.append(&txn(2, 0, last, 6));
        assert!(matches!(result, Err(TxnIndexError::OutOfOrder { last: Offset(5), .. })));
    }
    index.append(&txn(2, 0, 6, 7)).unwrap();
    assert_eq!(index.count().unwrap(), 2);
}

#[test]
fn a_partial_entry_at_the_end_is_ignored_and_overwritten() {
    let disk = CrashDisk::new();
    open(&disk).append(&txn(1, 0, 5, 6)).unwrap();
    disk.open(Path::new(PATH), OpenOptions::WRITE).unwrap().write_at(&[0xff; 20], 34).unwrap();
    let index = open(&disk);
    assert_eq!(index.all().unwrap(), [txn(1, 0, 5, 6)]);
    index.check().unwrap();
    index.append(&txn(2, 6, 9, 10)).unwrap();
    assert_eq!(open(&disk).all().unwrap(), [txn(1, 0, 5, 6), txn(2, 6, 9, 10)]);
}

#[test]
fn a_version_above_zero_is_an_error() {
    let disk = CrashDisk::new();
    open(&disk).append(&txn(1, 0, 5, 6)).unwrap();
    disk.open(Path::new(PATH), OpenOptions::WRITE).unwrap().write_at(&[0, 1], 0).unwrap();
    assert!(matches!(open(&disk).check(), Err(TxnIndexError::Version { version: 1, .. })));
    assert!(open(&disk).aborted_in(Offset(0), Offset(9)).is_err());
}

#[test]
fn a_marker_below_the_segment_fails_the_check() {
    let disk = CrashDisk::new();
    open(&disk).append(&txn(1, 0, 5, 6)).unwrap();
    open_at(&disk, 5).check().unwrap();
    let result = open_at(&disk, 6).check();
    assert!(matches!(result, Err(TxnIndexError::BeforeSegment { offset: Offset(5), .. })));
}

#[test]
fn a_query_ends_at_the_first_entry_after_which_nothing_in_the_range_is_open() {
    let disk = CrashDisk::new();
    let index = open(&disk);
    // The first abort leaves a transaction open that began at 2; the second one is that.
    for entry in [txn(1, 0, 5, 2), txn(2, 2, 8, 9), txn(3, 20, 25, 26)] {
        index.append(&entry).unwrap();
    }
    let found = index.aborted_in(Offset(0), Offset(4)).unwrap();
    assert_eq!(found, AbortedInRange { aborted: vec![txn(1, 0, 5, 2), txn(2, 2, 8, 9)], complete: true });
    let found = index.aborted_in(Offset(6), Offset(10)).unwrap();
    assert_eq!(found, AbortedInRange { aborted: vec![txn(2, 2, 8, 9)], complete: true });
    let found = index.aborted_in(Offset(6), Offset(30)).unwrap();
    assert_eq!((found.aborted.len(), found.complete), (2, false), "a later segment may know more");
    let found = index.aborted_in(Offset(26), Offset(30)).unwrap();
    assert_eq!(found, AbortedInRange::default());
}

#[test]
fn truncation_cuts_at_the_first_marker_at_or_above_the_offset() {
    let disk = CrashDisk::new();
    let index = open(&disk);
    for n in 1..=5 {
        index.append(&txn(n, n * 10 - 5, n * 10, n * 10 + 1)).unwrap();
    }
    index.truncate_to(Offset(51)).unwrap();
    assert_eq!(index.count().unwrap(), 5);
    index.truncate_to(Offset(30)).unwrap();
    assert_eq!(disk.metadata(Path::new(PATH)).unwrap().len, 68);
    index.append(&txn(9, 21, 22, 23)).unwrap();
    assert_eq!(open(&disk).count().unwrap(), 3);
    index.reset().unwrap();
    assert!(open(&disk).all().unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_query_agrees_with_a_plain_list(
        steps in prop::collection::vec((1i64..9, 0i64..30, 0i64..30), 0..600),
        from in 0i64..4000,
        length in 0i64..500,
        cut in 0i64..4000,
    ) {
        let disk = CrashDisk::new();
        let index = open(&disk);
        let mut list = Vec::new();
        let mut last = 0;
        for (step, length, open) in steps {
            last += step;
            let entry = txn(step, (last - length).max(0), last, (last + 1 - open).max(0));
            index.append(&entry).unwrap();
            list.push(entry);
        }
        let to = Offset(from + length);
        for cut in [i64::MAX, cut] {
            index.truncate_to(Offset(cut)).unwrap();
            list.retain(|entry| entry.last_offset.0 < cut);
            let mut expected = AbortedInRange::default();
            for entry in list.iter().filter(|entry| entry.last_offset.0 >= from) {
                if entry.first_offset < to {
                    expected.aborted.push(*entry);
                }
                if entry.last_stable_offset >= to {
                    expected.complete = true;
                    break;
                }
            }
            prop_assert_eq!(index.aborted_in(Offset(from), to).unwrap(), expected);
            prop_assert_eq!(open(&disk).all().unwrap(), list.clone());
        }
    }
}
