use super::*;

#[test]
fn truncation_removes_whole_batches_from_the_one_that_holds_the_offset() {
    for (to, batches_left) in
        [(100, 0), (101, 0), (102, 1), (103, 1), (111, 5), (119, 9), (120, 10), (500, 10)]
    {
        let disk = CrashDisk::new();
        let segment = create(&disk);
        let batches = fill(&segment);
        let size = batches[0].bytes.len() as u64;
        let removed = segment.truncate_to(Offset(to), Millis(9)).unwrap();
        assert_eq!(removed, (10 - batches_left) * size, "to {to}");
        assert_eq!(segment.size(), batches_left * size);
        assert_eq!(file(&disk, SegmentFile::Log).unwrap().len() as u64, segment.size());
        assert_eq!(segment.next_offset().unwrap().0, 100 + 2 * batches_left as i64);
        assert!(segment.locate(Offset(119)).unwrap().is_none() || batches_left == 10);
    }
}

#[test]
fn the_indexes_are_cut_with_the_log_and_have_room_again() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    fill(&segment);
    for marker in [103, 107, 113] {
        segment.append_aborted(&aborted(marker)).unwrap();
    }
    segment.on_become_inactive().unwrap();
    segment.truncate_to(Offset(107), NOW).unwrap();
    assert!(segment.offset_index.last().unwrap().unwrap().offset < Offset(107));
    assert!(segment.time_index.last().unwrap().offset < Offset(107));
    assert_eq!(segment.txn_index().all().unwrap(), [aborted(103)]);
    assert!(!segment.indexes_full().unwrap());
    append(&segment, &[batch(106, 4, &[5])]).unwrap();
    assert_eq!(
        segment.find_batch(Offset(106)).unwrap().unwrap().header.partition_leader_epoch,
        LeaderEpoch(4)
    );
}

#[test]
fn the_largest_timestamp_is_found_again_between_index_entries() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    fill(&segment);
    // Index entries are at batches 2, 4, 6 and 8: the one at 115 is not in the time index.
    segment.truncate_to(Offset(116), NOW).unwrap();
    let max = segment.max_timestamp().unwrap();
    assert_eq!((max.timestamp, max.offset), (Millis(1071), Offset(115)));
    segment.truncate_to(Offset(102), NOW).unwrap();
    let max = segment.max_timestamp().unwrap();
    assert_eq!((max.timestamp, max.offset), (Millis(1001), Offset(101)), "before the first entry");
}

#[test]
fn a_segment_cut_to_nothing_is_like_new() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    fill(&segment);
    segment.truncate_to(BASE, Millis(777)).unwrap();
    let state = segment.roll_state(Millis(0)).unwrap();
    assert_eq!((state.size, state.first_timestamp, state.created), (0, None, Millis(777)));
    assert_eq!(segment.max_timestamp().unwrap().timestamp, Millis(-1));
    assert_eq!(fill(&segment).len(), 10);
    assert_eq!(all_batches(&segment).len(), 10);
}

#[test]
fn the_interval_to_the_next_index_entry_begins_anew() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    fill(&segment);
    segment.truncate_to(Offset(108), NOW).unwrap();
    let before = segment.offset_index.count().unwrap();
    append(&segment, &[batch(108, 0, &[1])]).unwrap();
    assert_eq!(segment.offset_index.count().unwrap(), before);
}

#[test]
fn an_opened_segment_can_be_cut_at_once() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    fill(&segment);
    segment.close().unwrap();
    let segment = open(&disk);
    segment.truncate_to(Offset(109), NOW).unwrap();
    assert_eq!(segment.next_offset().unwrap(), Offset(108));
    assert_eq!(segment.max_timestamp().unwrap().timestamp, Millis(1031));
}

#[test]
fn a_range_read_before_a_cut_is_short_and_not_wrong() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let batches = fill(&segment);
    let range = segment.read(Offset(100), 1 << 20, u64::MAX, true).unwrap().unwrap().range;
    segment.truncate_to(Offset(104), NOW).unwrap();
    assert_eq!(range.to_vec().unwrap(), [&batches[0].bytes[..], &batches[1].bytes[..]].concat());
}
