use super::*;
use crate::disk::crash::{Fault, Operation};

fn found(segment: &Segment, timestamp: i64, start: i64) -> Option<(i64, i64, i32)> {
    let found = segment.find_by_timestamp(Millis(timestamp), Offset(start)).unwrap();
    found.map(|record| (record.timestamp.0, record.offset.0, record.leader_epoch.0))
}

#[test]
fn a_time_leads_to_the_first_record_at_or_after_it() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    fill(&segment);
    assert_eq!(found(&segment, 0, 0), Some((1000, 100, 3)));
    for n in 0..10 {
        assert_eq!(found(&segment, 1000 + 10 * n, 0), Some((1000 + 10 * n, 100 + 2 * n, 3)));
        assert_eq!(found(&segment, 1001 + 10 * n, 0), Some((1001 + 10 * n, 101 + 2 * n, 3)));
    }
    assert_eq!(found(&segment, 1005, 0), Some((1010, 102, 3)));
    assert_eq!(found(&segment, 1092, 0), None);
}

#[test]
fn records_below_the_start_are_passed_over() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    fill(&segment);
    assert_eq!(found(&segment, 0, 105), Some((1021, 105, 3)));
    assert_eq!(found(&segment, 1090, 119), Some((1091, 119, 3)));
    assert_eq!(found(&segment, 0, 120), None);
}

#[test]
fn timestamps_out_of_order_are_found_by_offset_order() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    for (base, times) in [(100, [50, 10]), (102, [20, 70]), (104, [60, 30]), (106, [90, 5])] {
        append(&segment, &[batch(base, 0, &times)]).unwrap();
    }
    for (target, expected) in [(55, (70, 103)), (51, (70, 103)), (71, (90, 106)), (5, (50, 100))] {
        assert_eq!(found(&segment, target, 0), Some((expected.0, expected.1, 0)), "{target}");
    }
    assert_eq!(found(&segment, 60, 104), Some((60, 104, 0)));
}

#[test]
fn the_largest_timestamp_is_that_of_its_first_record() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    assert_eq!(segment.find_max_timestamp().unwrap(), None);
    append(&segment, &[batch(100, 1, &[100, 300, 200, 300])]).unwrap();
    append(&segment, &[batch(104, 2, &[250, 300])]).unwrap();
    let max = segment.max_timestamp().unwrap();
    assert_eq!((max.timestamp, max.offset), (Millis(300), Offset(103)), "last offset of the first batch");
    for segment in [&segment, &{
        segment.close().unwrap();
        open(&disk)
    }] {
        let found = segment.find_max_timestamp().unwrap().unwrap();
        assert_eq!(
            (found.timestamp, found.offset, found.leader_epoch),
            (Millis(300), Offset(101), LeaderEpoch(1))
        );
    }
}

#[test]
fn time_of_append_leads_to_the_first_record_of_the_batch() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let mut builder = BatchBuilder::new(Compression::Gzip { level: 1 }).log_append_time(Millis(777));
    for timestamp in [5, 900, 3] {
        builder.append(Millis(timestamp), None, Some(b"v"));
    }
    append(&segment, &[builder.base_offset(Offset(100)).build().unwrap()]).unwrap();
    assert_eq!(segment.find_max_timestamp().unwrap().unwrap().offset, Offset(100));
    assert_eq!(found(&segment, 700, 0), Some((777, 100, -1)));
    assert_eq!(found(&segment, 800, 0), None);
}

#[test]
fn retention_goes_by_record_time_or_else_by_the_time_of_the_file() {
    let disk = CrashDisk::new();
    disk.set_now(123_456);
    let segment = create(&disk);
    assert_eq!(segment.largest_timestamp().unwrap(), Millis(123_456));
    append(&segment, &[batch(100, 0, &[-1])]).unwrap();
    assert_eq!(segment.largest_timestamp().unwrap(), Millis(123_456));
    append(&segment, &[batch(101, 0, &[7])]).unwrap();
    assert_eq!(segment.largest_timestamp().unwrap(), Millis(7));
}

#[test]
fn the_largest_timestamp_of_an_opened_segment_is_read_once() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    fill(&segment);
    segment.close().unwrap();
    let segment = open(&disk);
    assert_eq!(segment.max_timestamp().unwrap().timestamp, Millis(1091));
    let kind = io::ErrorKind::Other;
    disk.fail(Fault { operation: Operation::Read, path_contains: String::new(), skip: 0, times: 1, kind });
    assert_eq!(segment.max_timestamp().unwrap().offset, Offset(119));
}
