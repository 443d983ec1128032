use wire::batch::HEADER_LEN;

use super::*;
use crate::disk::crash::CrashMode;
use crate::disk::{DiskFile, OpenOptions};

fn log_of(disk: &CrashDisk) -> Arc<dyn DiskFile> {
    disk.open(&path(SegmentFile::Log), OpenOptions::WRITE).unwrap()
}

#[test]
fn a_whole_segment_is_indexed_anew_with_the_start_of_each_batch() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let batches = fill(&segment);
    let segment = open(&disk.crash(CrashMode::ProcessKill));
    let mut seen = Vec::new();
    let recovered = segment
        .recover(&mut |batch| {
            seen.push(batch.header);
            assert!(batch.control.is_none());
            Ok(())
        })
        .unwrap();
    assert_eq!(recovered, Recovered { truncated_bytes: 0, next_offset: Offset(120) });
    assert_eq!(seen, batches.iter().map(|batch| batch.header).collect::<Vec<_>>());
    let size = batches[0].bytes.len() as u64;
    let entries: Vec<_> = (0..batches.len() as u64)
        .filter_map(|n| {
            let entry = segment.offset_index.lookup(Offset(101 + 2 * n as i64)).unwrap();
            (entry.offset == Offset(101 + 2 * n as i64)).then_some((n, entry.position))
        })
        .collect();
    // An entry when the batch starts more than 300 bytes beyond the last indexed one, or beyond the start.
    let step = 300 / size + 1;
    let expected: Vec<(u64, u64)> = (1..10).filter(|n| n % step == 0).map(|n| (n, n * size)).collect();
    assert_eq!(entries, expected);
    let last = segment.time_index.last().unwrap();
    assert_eq!((last.timestamp, last.offset), (Millis(1091), Offset(119)));
    assert_eq!(segment.max_timestamp().unwrap(), last);
}

#[test]
fn recovered_indexes_are_trimmed_and_pass_their_check() {
    let disk = CrashDisk::new();
    fill(&create(&disk));
    let disk = disk.crash(CrashMode::ProcessKill);
    let segment = open(&disk);
    recover(&segment);
    assert_eq!(
        file(&disk, SegmentFile::OffsetIndex).unwrap().len(),
        8 * segment.offset_index.count().unwrap()
    );
    let before = disk.changes();
    assert_eq!(open(&disk).next_offset().unwrap(), Offset(120));
    assert_eq!(disk.changes(), before, "nothing had to be built");
}

#[test]
fn a_torn_batch_at_the_end_is_cut_wherever_it_is_torn() {
    let size = batch(100, 0, &[1, 2]).bytes.len();
    for cut in 1..size {
        let disk = CrashDisk::new();
        let segment = create(&disk);
        fill(&segment);
        log_of(&disk).set_len((9 * size + cut) as u64).unwrap();
        let segment = open(&disk);
        let recovered = recover(&segment);
        assert_eq!(recovered, Recovered { truncated_bytes: cut as u64, next_offset: Offset(118) });
        assert_eq!(file(&disk, SegmentFile::Log).unwrap().len(), 9 * size);
        assert_eq!(segment.size(), 9 * size as u64);
    }
}

#[test]
fn the_log_is_cut_at_the_first_bad_batch_though_good_ones_follow() {
    let size = batch(100, 0, &[1, 2]).bytes.len();
    for at in [8, 16, 17, 25, HEADER_LEN, size - 1] {
        let disk = CrashDisk::new();
        fill(&create(&disk));
        let position = (4 * size + at) as u64;
        let mut byte = [0];
        log_of(&disk).read_exact_at(&mut byte, position).unwrap();
        log_of(&disk).write_at(&[byte[0] ^ 0xff], position).unwrap();
        let segment = open(&disk);
        let recovered = recover(&segment);
        assert_eq!(recovered.next_offset, Offset(108), "byte {at}");
        assert_eq!(recovered.truncated_bytes, 6 * size as u64);
        assert_eq!(segment.max_timestamp().unwrap().timestamp, Millis(1031));
        append(&segment, &[batch(108, 9, &[1])]).unwrap();
        assert_eq!(open(&disk).find_batch(Offset(108)).unwrap().unwrap().header.partition_leader_epoch.0, 9);
    }
}

#[test]
fn the_zero_tail_of_a_preallocated_file_goes() {
    let disk = CrashDisk::new();
    let config = SegmentConfig { preallocate_bytes: Some(100_000), ..CONFIG };
    let segment = Segment::create(&dir_on(&disk), BASE, config, NOW).unwrap();
    fill(&segment);
    let size = segment.size();
    let segment = Segment::open(&dir_on(&disk), BASE, None, config, NOW).unwrap();
    assert_eq!(segment.size(), 100_000);
    let recovered = recover(&segment);
    assert_eq!(recovered, Recovered { truncated_bytes: 100_000 - size, next_offset: Offset(120) });
}

#[test]
fn an_empty_segment_recovers_to_its_base() {
    let disk = CrashDisk::new();
    drop(create(&disk));
    assert_eq!(recover(&open(&disk)), Recovered { truncated_bytes: 0, next_offset: BASE });
    log_of(&disk).write_at(&[1, 2, 3], 0).unwrap();
    assert_eq!(recover(&open(&disk)), Recovered { truncated_bytes: 3, next_offset: BASE });
}

#[test]
fn an_offset_beyond_the_segments_range_is_an_error_and_nothing_is_cut() {
    let disk = CrashDisk::new();
    fill(&create(&disk));
    let far = batch(101 + i64::from(i32::MAX), 3, &[1]);
    let end = log_of(&disk).len().unwrap();
    log_of(&disk).write_at(&far.bytes, end).unwrap();
    let segment = open(&disk);
    let size = segment.size();
    let result = segment.recover(&mut |_| Ok(()));
    assert!(matches!(result, Err(SegmentError::OffsetOverflow { .. })));
    assert_eq!(file(&disk, SegmentFile::Log).unwrap().len() as u64, size);
}

#[test]
fn a_batch_that_overlaps_or_is_of_an_earlier_leader_ends_the_log() {
    for (base, epoch, follows) in
        [(120, 3, true), (125, 4, true), (120, -1, true), (119, 3, false), (120, 2, false)]
    {
        let disk = CrashDisk::new();
        fill(&create(&disk));
        let end = log_of(&disk).len().unwrap();
        log_of(&disk).write_at(&batch(base, epoch, &[1]).bytes, end).unwrap();
        let recovered = recover(&open(&disk));
        assert_eq!(recovered.truncated_bytes == 0, follows, "{base} {epoch}");
        assert_eq!(recovered.next_offset.0, if follows { base + 1 } else { 120 });
    }
}

#[test]
fn records_of_an_old_format_are_an_error_and_not_cut_away() {
    let disk = CrashDisk::new();
    drop(create(&disk));
    let message =
        [&[0; 11][..], &[16, 0x1f, 0xec, 0xd7, 0x0a], &[0; 5], &[1, b'k', 0, 0, 0, 1, b'v']].concat();
    log_of(&disk).write_at(&message, 0).unwrap();
    let result = open(&disk).recover(&mut |_| Ok(()));
    assert!(matches!(
        result,
        Err(SegmentError::Scan { error: ScanError::OldFormat { position: 0, magic: 0 }, .. })
    ));
    assert_eq!(file(&disk, SegmentFile::Log).unwrap(), message);
}

/// A batch may be torn between its length and its format, and zeros are the number of a format.
#[test]
fn a_torn_header_that_looks_like_an_old_format_is_cut() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let good = batch(100, 0, &[1]);
    append(&segment, &[good.clone(), batch(101, 0, &[1])]).unwrap();
    let torn = u64::try_from(good.bytes.len()).unwrap() + 13;
    log_of(&disk).write_at(&[0; 30], torn).unwrap();
    let recovered = open(&disk).recover(&mut |_| Ok(())).unwrap();
    assert_eq!(recovered.next_offset, Offset(101));
    assert_eq!(file(&disk, SegmentFile::Log).unwrap(), good.bytes);
}

#[test]
fn control_batches_are_shown_whole_and_the_transaction_index_is_written_anew() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    append(&segment, &[batch(100, 0, &[1])]).unwrap();
    let mut marker = BatchBuilder::new(Compression::None).control(true).transactional(true);
    marker.append(Millis(5), Some(&[0, 0, 0, 0]), Some(&[0, 0, 0, 0, 0, 5]));
    let marker = marker.base_offset(Offset(101)).producer(7, 0, -1).build().unwrap();
    append(&segment, std::slice::from_ref(&marker)).unwrap();
    segment.append_aborted(&aborted(999)).unwrap();
    let segment = open(&disk);
    let mut controls = Vec::new();
    segment
        .recover(&mut |batch| {
            if let Some(bytes) = &batch.control {
                controls.push((batch.position, bytes.clone()));
                segment.append_aborted(&aborted(batch.header.base_offset.0))?;
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(controls, [(segment.size() - 78, marker.bytes)]);
    assert_eq!(segment.txn_index().all().unwrap(), [aborted(101)]);
}

#[test]
fn an_error_of_the_visitor_ends_the_recovery() {
    let disk = CrashDisk::new();
    fill(&create(&disk));
    let segment = open(&disk);
    let error = segment.recover(&mut |_| Err(SegmentError::SyncFailed { base: BASE })).unwrap_err();
    assert!(matches!(error, SegmentError::SyncFailed { .. }));
    assert_eq!(segment.size(), file(&disk, SegmentFile::Log).unwrap().len() as u64);
}

#[test]
fn an_index_too_small_for_its_log_does_not_stop_the_recovery() {
    let disk = CrashDisk::new();
    fill(&create(&disk));
    let config = SegmentConfig { index_interval_bytes: 0, max_index_bytes: 24, preallocate_bytes: None };
    let segment = Segment::open(&dir_on(&disk), BASE, None, config, NOW).unwrap();
    assert_eq!(recover(&segment).next_offset, Offset(120));
    assert_eq!(segment.find_batch(Offset(119)).unwrap().unwrap().header.base_offset, Offset(118));
}
