use super::*;

#[test]
fn a_read_begins_at_the_batch_that_holds_the_offset() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let batches = fill(&segment);
    for (n, expected) in batches.iter().enumerate() {
        for delta in 0..2 {
            let offset = Offset(100 + 2 * n as i64 + delta);
            let read = segment.read(offset, expected.bytes.len(), u64::MAX, false).unwrap().unwrap();
            assert_eq!(read.range.to_vec().unwrap(), expected.bytes);
            assert!(!read.first_batch_incomplete);
        }
    }
    assert!(segment.read(Offset(120), 1000, u64::MAX, true).unwrap().is_none());
}

#[test]
fn an_offset_that_is_not_there_leads_to_the_next_batch() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    append(&segment, &[batch(110, 0, &[1])]).unwrap();
    append(&segment, &[batch(130, 0, &[2])]).unwrap();
    for (offset, base) in [(0, 110), (100, 110), (110, 110), (111, 130), (129, 130), (130, 130)] {
        assert_eq!(segment.find_batch(Offset(offset)).unwrap().unwrap().header.base_offset, Offset(base));
        let place = segment.locate(Offset(offset)).unwrap().unwrap();
        assert_eq!(place.position, if base == 110 { 0 } else { segment.size() / 2 });
    }
}

#[test]
fn limits_cut_anywhere_unless_one_whole_batch_is_wanted() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let size = fill(&segment)[0].bytes.len();
    let read = |max, position, one| segment.read(Offset(104), max, position, one).unwrap().unwrap();
    let small = read(10, u64::MAX, false);
    assert_eq!((small.range.len(), small.first_batch_incomplete), (10, true));
    let whole = read(10, u64::MAX, true);
    assert_eq!((whole.range.len(), whole.first_batch_incomplete), (size, false));
    assert_eq!(read(size + 10, u64::MAX, true).range.len(), size + 10);
    assert_eq!(read(1 << 30, u64::MAX, true).range.len(), 8 * size);
    assert_eq!(read(1 << 30, 4 * size as u64, true).range.len(), 2 * size, "up to the position");
    assert_eq!(read(1 << 30, size as u64, true).range.len(), 0, "the position lies before the batch");
    assert!(read(0, u64::MAX, false).range.is_empty());
}

#[test]
fn the_last_batches_are_found_without_a_read() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let batches = fill(&segment);
    disk.fail(crate::disk::crash::Fault {
        operation: crate::disk::crash::Operation::Read,
        path_contains: String::new(),
        skip: 0,
        times: usize::MAX,
        kind: io::ErrorKind::Other,
    });
    for batch in &batches {
        let place = segment.locate(batch.header.last_offset()).unwrap().unwrap();
        assert_eq!(place.size, batch.bytes.len());
    }
    assert!(segment.locate(Offset(120)).unwrap_err().is_io());
}

#[test]
fn a_recently_appended_batch_and_one_found_by_the_index_are_at_the_same_place() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    for n in 0..40 {
        append(&segment, &[batch(100 + 2 * n, 0, &[n, n])]).unwrap();
    }
    for offset in 100..180 {
        let found = segment.find_batch(Offset(offset)).unwrap().unwrap();
        let place = segment.locate(Offset(offset)).unwrap().unwrap();
        assert_eq!((place.position, place.size), (found.position, found.header.size_in_bytes()));
    }
}

#[test]
fn the_next_offset_follows_the_last_batch() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    assert_eq!(segment.next_offset().unwrap(), BASE);
    fill(&segment);
    assert_eq!(segment.next_offset().unwrap(), Offset(120));
    segment.close().unwrap();
    assert_eq!(open(&disk).next_offset().unwrap(), Offset(120));
}

#[test]
fn the_upper_bound_of_a_read_is_the_first_index_entry_at_or_beyond_its_end() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let size = fill(&segment)[0].bytes.len();
    // Entries are at batches 2, 4, 6 and 8.
    let bound = |position: usize, len| segment.upper_bound_of_read(position as u64, len).unwrap();
    assert_eq!(bound(0, size), Some(Offset(105)));
    assert_eq!(bound(0, 2 * size), Some(Offset(105)));
    assert_eq!(bound(0, 2 * size + 1), Some(Offset(109)));
    assert_eq!(bound(size, 7 * size), Some(Offset(117)));
    assert_eq!(bound(0, 8 * size + 1), None);
}

#[test]
fn a_scan_before_an_offset_reads_about_as_much_as_was_asked_for() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let size = fill(&segment)[0].bytes.len() as u64;
    let bases = |end, bytes| {
        let mut scan = segment.scan_before(Offset(end), bytes).unwrap();
        std::iter::from_fn(|| scan.next_batch().unwrap()).map(|batch| batch.header.base_offset.0).collect()
    };
    let between = |from: i64, to: i64| (from..to).step_by(2).collect::<Vec<_>>();
    // Entries are at batches 2, 4, 6 and 8.
    let last: Vec<i64> = bases(120, 4 * size);
    assert_eq!(last, between(112, 120));
    for (end, bytes, from) in
        [(120, u64::MAX, 100), (120, 3 * size, 116), (120, size, 116), (110, 2 * size, 108), (104, size, 100)]
    {
        assert_eq!(bases(end, bytes), between(from, end), "{bytes} bytes before {end}");
    }
}

#[test]
fn a_scan_from_an_offset_gives_the_batches_from_there_on() {
    let disk = CrashDisk::new();
    let segment = create(&disk);
    let batches = fill(&segment);
    let mut scan = segment.scan_from(Offset(115)).unwrap();
    let first = scan.next_batch().unwrap().unwrap();
    assert_eq!(first.header, batches[7].header);
    assert_eq!(segment.read_batch(&first).unwrap(), batches[7].bytes);
    assert!(segment.scan_from(Offset(120)).unwrap().next_batch().unwrap().is_none());
}
