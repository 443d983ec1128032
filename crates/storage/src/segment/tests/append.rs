use super::*;
use crate::disk::OpenOptions;
use crate::disk::crash::{Fault, Operation};

#[test]
fn a_new_segment_has_a_log_file_only_and_indexes_come_with_their_first_entry() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    assert_eq!(disk.list_dir(Path::new("/t-0")).unwrap().len(), 1);
    let one = batch(100, 0, &[1, 2]);
    append(&segment, std::slice::from_ref(&one)).unwrap();
    assert_eq!(file(&disk, SegmentFile::Log).unwrap(), one.bytes);
    assert_eq!(disk.list_dir(Path::new("/t-0")).unwrap().len(), 1);
    assert!(!segment.has_offset_index().unwrap());
    for n in 1..4 {
        append(&segment, &[batch(100 + 2 * n, 0, &[1, 2])]).unwrap();
    }
    assert_eq!(disk.metadata(&path(SegmentFile::OffsetIndex)).unwrap().len, 240);
    assert_eq!(disk.metadata(&path(SegmentFile::TimeIndex)).unwrap().len, 240);
    assert!(segment.has_offset_index().unwrap());
}

#[test]
fn an_index_entry_is_due_when_more_than_the_interval_was_written_since_the_last() {
    let disk = CrashDisk::new();
    let size = batch(100, 0, &[1]).header.size_in_bytes() as u64;
    let config = SegmentConfig { index_interval_bytes: size, ..CONFIG };
    let segment = Segment::create(&dir_on(&disk), BASE, config, NOW).unwrap();
    let entries = |segment: &Segment| segment.offset_index.count().unwrap();
    // The first set never gets an entry; exactly the interval is not enough.
    append(&segment, &[batch(100, 0, &[1])]).unwrap();
    append(&segment, &[batch(101, 0, &[2])]).unwrap();
    assert_eq!(entries(&segment), 0);
    append(&segment, &[batch(102, 0, &[3])]).unwrap();
    assert_eq!(entries(&segment), 1);
    let entry = segment.offset_index.last().unwrap().unwrap();
    assert_eq!((entry.offset, entry.position), (Offset(102), 2 * size), "last offset and start of the set");
    // The set that got the entry counts towards the next one.
    append(&segment, &[batch(103, 0, &[4])]).unwrap();
    assert_eq!(entries(&segment), 1);
    append(&segment, &[batch(104, 0, &[5])]).unwrap();
    assert_eq!(entries(&segment), 2);
    assert_eq!(segment.time_index.last().unwrap().timestamp, Millis(5));
}

#[test]
fn a_set_of_several_batches_gets_one_entry() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    append(&segment, &[batch(100, 0, &[1, 2, 3])]).unwrap();
    let set = [batch(103, 0, &[9]), batch(104, 0, &[4]), batch(105, 0, &[5])];
    let position = append(&segment, &set).unwrap();
    append(&segment, &[batch(106, 0, &[6])]).unwrap();
    assert_eq!(segment.offset_index.count().unwrap(), 2);
    let entry = segment.offset_index.lookup(Offset(105)).unwrap();
    assert_eq!((entry.offset, entry.position), (Offset(105), position));
    let max = segment.max_timestamp().unwrap();
    assert_eq!((max.timestamp, max.offset), (Millis(9), Offset(103)));
    assert_eq!(all_batches(&segment).len(), 5);
}

#[test]
fn an_offset_out_of_range_and_a_log_too_large_are_refused_before_anything_is_written() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    for base in [98, 101 + i64::from(i32::MAX)] {
        let result = append(&segment, &[batch(base, 0, &[1])]);
        assert!(matches!(result, Err(SegmentError::OffsetOverflow { .. })), "{base}");
    }
    segment.size.store(MAX_SEGMENT_BYTES - 10, Ordering::Release);
    let result = append(&segment, &[batch(100, 0, &[1])]);
    assert!(matches!(result, Err(SegmentError::TooLarge { .. })));
    assert_eq!(file(&disk, SegmentFile::Log).unwrap(), []);
}

#[test]
fn a_log_file_larger_than_31_bits_cannot_be_opened() {
    let disk = CrashDisk::new();
    drop(create(&disk));
    let log = disk.open(&path(SegmentFile::Log), OpenOptions::WRITE).unwrap();
    log.set_len(MAX_SEGMENT_BYTES).unwrap();
    open(&disk);
    log.set_len(MAX_SEGMENT_BYTES + 1).unwrap();
    let result = Segment::open(&dir_on(&disk), BASE, None, CONFIG, NOW);
    assert!(matches!(result, Err(SegmentError::TooLarge { .. })));
}

#[test]
fn a_failed_append_shows_nothing_to_readers() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    append(&segment, &[batch(100, 0, &[1])]).unwrap();
    let size = segment.size();
    let kind = io::ErrorKind::StorageFull;
    disk.fail(Fault { operation: Operation::Write, path_contains: ".log".into(), skip: 0, times: 1, kind });
    let error = append(&segment, &[batch(101, 0, &[2])]).unwrap_err();
    assert!(error.is_io());
    assert_eq!(segment.size(), size);
    assert!(file(&disk, SegmentFile::Log).unwrap().len() as u64 > size, "half of it is in the file");
    assert_eq!(segment.locate(Offset(101)).unwrap(), None);
    assert_eq!(all_batches(&segment).len(), 1);
}

#[test]
fn a_segment_that_becomes_inactive_closes_its_time_index_and_trims_all_files() {
    let disk = CrashDisk::new();
    let config = SegmentConfig { preallocate_bytes: Some(10_000), ..CONFIG };
    let segment = Segment::create(&dir_on(&disk), BASE, config, NOW).unwrap();
    assert_eq!(file(&disk, SegmentFile::Log).unwrap().len(), 10_000, "preallocated");
    assert!(segment.is_empty());
    fill(&segment);
    segment.on_become_inactive().unwrap();
    assert_eq!(file(&disk, SegmentFile::Log).unwrap().len() as u64, segment.size());
    let offsets = segment.offset_index.count().unwrap();
    let times = segment.time_index.count().unwrap();
    assert_eq!(file(&disk, SegmentFile::OffsetIndex).unwrap().len(), offsets * 8);
    assert_eq!(file(&disk, SegmentFile::TimeIndex).unwrap().len(), times * 12);
    let last = segment.time_index.last().unwrap();
    assert_eq!((last.timestamp, last.offset), (Millis(1091), Offset(119)));
}

#[test]
fn closing_an_unused_segment_creates_its_index_files() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    segment.close().unwrap();
    assert_eq!(file(&disk, SegmentFile::OffsetIndex).unwrap(), []);
    assert_eq!(file(&disk, SegmentFile::TimeIndex).unwrap(), []);
    assert_eq!(file(&disk, SegmentFile::TxnIndex), None);
    drop(segment);
    let segment = open(&disk);
    assert!(segment.indexes_full().unwrap(), "no room until the log is known to be active");
    segment.resize_indexes();
    assert!(!segment.indexes_full().unwrap());
    assert_eq!(fill(&segment).len(), 10);
    assert_eq!(disk.metadata(&path(SegmentFile::OffsetIndex)).unwrap().len, 240);
}

#[test]
fn an_index_is_full_one_entry_earlier_for_times() {
    let disk = CrashDisk::new();
    let config = SegmentConfig { index_interval_bytes: 0, max_index_bytes: 48, preallocate_bytes: None };
    let segment = Segment::create(&dir_on(&disk), BASE, config, NOW).unwrap();
    // Six offsets fit, and three times besides the closing one.
    for n in 0..4 {
        assert_eq!(segment.roll_state(Millis(0)).unwrap().index_full, n > 3);
        append(&segment, &[batch(100 + n, 0, &[n])]).unwrap();
    }
    assert!(segment.indexes_full().unwrap());
    assert_eq!(segment.free_index_entries().unwrap(), 0);
}

#[test]
fn what_decides_on_rolling_is_known_of_new_and_opened_segments() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let state = segment.roll_state(Millis(7)).unwrap();
    assert_eq!((state.size, state.first_timestamp, state.created), (0, None, NOW));
    assert_eq!(state.jitter, Millis(7));
    append(&segment, &[batch(100, 0, &[50, 40])]).unwrap();
    append(&segment, &[batch(102, 0, &[90])]).unwrap();
    assert_eq!(segment.roll_state(Millis(0)).unwrap().first_timestamp, Some(Millis(50)));
    segment.close().unwrap();
    let state = open(&disk).roll_state(Millis(0)).unwrap();
    assert_eq!((state.base, state.size, state.first_timestamp), (BASE, segment.size(), Some(Millis(50))));
}

#[test]
fn files_are_renamed_and_removed_together() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let batches = fill(&segment);
    segment.append_aborted(&aborted(103)).unwrap();
    let range = segment.read(Offset(100), 1 << 20, u64::MAX, true).unwrap().unwrap().range;
    segment.rename_files(Some(Transient::Deleted)).unwrap();
    let names: Vec<String> =
        disk.list_dir(Path::new("/t-0")).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), 4);
    assert!(names.iter().all(|name| name.ends_with(".deleted")), "{names:?}");
    segment.delete_files().unwrap();
    segment.delete_files().unwrap();
    assert!(disk.list_dir(Path::new("/t-0")).unwrap().is_empty());
    let bytes: Vec<u8> = batches.iter().flat_map(|batch| batch.bytes.to_vec()).collect();
    assert_eq!(range.to_vec().unwrap(), bytes, "a response in flight is still sent");
}

#[test]
fn a_segment_with_a_suffix_loses_it_and_later_files_have_the_plain_name() {
    let disk = CrashDisk::new();
    let swapped =
        SegmentFileName { transient: Some(Transient::Swap), ..SegmentFileName::new(BASE, SegmentFile::Log) };
    let dir = dir_on(&disk);
    disk.open(&Path::new("/t-0").join(swapped.to_string()), OpenOptions::CREATE).unwrap();
    let segment = Segment::open(&dir, BASE, Some(Transient::Swap), CONFIG, NOW).unwrap();
    segment.rename_files(None).unwrap();
    segment.resize_indexes();
    fill(&segment);
    segment.append_aborted(&aborted(103)).unwrap();
    for kind in [SegmentFile::Log, SegmentFile::OffsetIndex, SegmentFile::TimeIndex, SegmentFile::TxnIndex] {
        assert!(disk.exists(&path(kind)).unwrap(), "{kind:?}");
    }
    assert_eq!(disk.list_dir(Path::new("/t-0")).unwrap().len(), 4);
}
