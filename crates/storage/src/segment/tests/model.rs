//! Random operations on a segment against a plain list of batches.

use proptest::prelude::*;

use super::*;
use crate::disk::crash::CrashMode;

#[derive(Clone, Debug)]
enum Step {
    Append { records: Vec<i64>, gap: i64, batches: usize },
    Truncate { back: i64 },
    Close,
    Kill,
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let records = prop::collection::vec(-1i64..500, 1..4);
    prop_oneof![
        8 => (records, 0i64..3, 1usize..4)
            .prop_map(|(records, gap, batches)| Step::Append { records, gap, batches }),
        1 => (0i64..30).prop_map(|back| Step::Truncate { back }),
        1 => Just(Step::Close),
        1 => Just(Step::Kill),
        1 => Just(Step::Flush),
    ]
}

fn end(list: &[Batch]) -> i64 {
    list.last().map_or(100, |batch| batch.header.next_offset().0)
}

fn records(list: &[Batch]) -> impl Iterator<Item = (i64, i64)> {
    list.iter()
        .flat_map(|batch| batch.records(wire::batch::Limits::default()))
        .map(|record| record.map(|record| (record.timestamp.0, record.offset.0)).unwrap())
}

fn agrees(segment: &Segment, list: &[Batch]) -> Result<(), TestCaseError> {
    prop_assert_eq!(segment.next_offset().unwrap().0, end(list));
    prop_assert_eq!(segment.size(), list.iter().map(|batch| batch.bytes.len() as u64).sum::<u64>());
    for offset in 99..=end(list) {
        let expected = list.iter().find(|batch| batch.header.last_offset().0 >= offset);
        let found = segment.find_batch(Offset(offset)).unwrap();
        prop_assert_eq!(found.map(|f| f.header), expected.map(|e| e.header), "offset {}", offset);
        let read = segment.read(Offset(offset), 1, u64::MAX, true).unwrap();
        let bytes = read.map(|read| read.range.to_vec().unwrap());
        prop_assert_eq!(bytes, expected.map(|batch| batch.bytes.to_vec()));
    }
    let max = records(list).map(|(timestamp, _)| timestamp).max().filter(|max| *max >= 0);
    prop_assert_eq!(Some(segment.max_timestamp().unwrap().timestamp.0).filter(|max| *max >= 0), max);
    let first = max.and_then(|max| records(list).find(|(timestamp, _)| *timestamp == max));
    let found = segment.find_max_timestamp().unwrap();
    prop_assert_eq!(found.map(|found| (found.timestamp.0, found.offset.0)), first);
    for target in (0..510).step_by(17) {
        let start = 100 + target % 7;
        let expected = records(list).find(|(time, offset)| *time >= target && *offset >= start);
        let found = segment.find_by_timestamp(Millis(target), Offset(start)).unwrap();
        prop_assert_eq!(found.map(|found| (found.timestamp.0, found.offset.0)), expected);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_segment_agrees_with_a_plain_list_of_batches(steps in prop::collection::vec(step(), 1..40)) {
        let mut disk = CrashDisk::new();
        let config = SegmentConfig { max_index_bytes: 4096, ..CONFIG };
        let mut segment = Segment::create(&dir_on(&disk), BASE, config, NOW).unwrap();
        let mut list: Vec<Batch> = Vec::new();
        for step in steps {
            match step {
                Step::Append { records, gap, batches } => {
                    let mut set = Vec::new();
                    for n in 0..batches {
                        let base = set.last().map_or(end(&list) + gap, |b: &Batch| b.header.next_offset().0);
                        let shifted: Vec<i64> = records.iter().map(|time| time - n as i64).collect();
                        let times: Vec<i64> = shifted.into_iter().map(|time| time.max(-1)).collect();
                        set.push(batch(base, 0, &times));
                    }
                    append(&segment, &set).unwrap();
                    list.append(&mut set);
                }
                Step::Truncate { back } => {
                    let to = end(&list) - back;
                    segment.truncate_to(Offset(to), NOW).unwrap();
                    while list.last().is_some_and(|batch| batch.header.last_offset().0 >= to) {
                        list.pop();
                    }
                }
                Step::Close => {
                    segment.close().unwrap();
                    segment = Segment::open(&dir_on(&disk), BASE, None, config, NOW).unwrap();
                    segment.resize_indexes();
                }
                Step::Kill => {
                    disk = disk.crash(CrashMode::ProcessKill);
                    segment = Segment::open(&dir_on(&disk), BASE, None, config, NOW).unwrap();
                    prop_assert_eq!(recover(&segment).next_offset.0, end(&list));
                    segment.resize_indexes();
                }
                Step::Flush => segment.flush().unwrap(),
            }
        }
        agrees(&segment, &list)?;
    }
}
