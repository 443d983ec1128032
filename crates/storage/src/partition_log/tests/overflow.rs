//! Segments whose offsets reach further than 31 bits beyond their base (KAFKA-6264): what is served after the
//! load is what the file held, wherever a crash met the split, and whoever began it.

use super::*;
use crate::disk::OpenOptions;
use crate::disk::atomic::read_file;
use crate::names::{SegmentFile, SegmentFileName, Transient};
use crate::offset_index::OFFSET_INDEX_ENTRY_BYTES;

/// Where the batches of the overflowing segment go beyond the range of the ones before.
const SECOND: i64 = 3_000_000_000;
const THIRD: i64 = 6_000_000_000;
const FOURTH: i64 = THIRD + (1 << 31);
/// The base offset of the segment after it.
const NEXT: i64 = FOURTH + 50;

fn name(base: i64, file: SegmentFile, transient: Option<Transient>) -> String {
    SegmentFileName { offset: Offset(base), file, transient }.to_string()
}

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

/// What a leader of `epoch` writes at `base`.
fn at(base: i64, epoch: i32, bytes: &[u8]) -> Bytes {
    let mut batch = Batch::parse(&Bytes::copy_from_slice(bytes)).unwrap();
    batch.header.base_offset = Offset(base);
    batch.header.partition_leader_epoch = LeaderEpoch(epoch);
    [&batch.header.to_bytes()[..], batch.body()].concat().into()
}

/// A batch from which compaction has left the last record, 2^31-1 offsets after its base.
fn widest(base: i64, epoch: i32) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.skip_to(i32::MAX).append(Millis(9000), Some(b"k"), Some(b"last"));
    at(base, epoch, &builder.build().unwrap().bytes)
}

/// The batches of the overflowing segment: an idempotent producer, and a transaction that is aborted beyond the
/// range in which it began.
fn overflowing() -> Vec<Bytes> {
    vec![
        at(0, 0, &records(2, 90)),
        at(2, 0, &produced(9, 0, 0, 2)),
        at(4, 1, &transactional(8, 0, 0, 2)),
        at(6, 1, &records(3, 90)),
        at(SECOND, 1, &produced(9, 0, 2, 1)),
        at(SECOND + 1, 1, &marker(8, 0, true)),
        at(SECOND + 2, 2, &records(1, 200)),
        at(SECOND + 3, 2, &records(1, 200)),
        widest(THIRD, 2),
        at(FOURTH, 4, &records(2, 90)),
        at(FOURTH + 2, 4, &records(2, 90)),
    ]
}

/// A log on disk, all durable: one segment that overflows and a good one after it.
struct Story {
    bench: Bench,
    batches: Vec<Bytes>,
}

impl Story {
    fn new() -> Self {
        let bench = Bench { high_watermark: Offset(NEXT + 1), ..Bench::with(compacted()) };
        bench.disk.create_dir_all(Path::new(DIR)).unwrap();
        for dir in ["/", "/logs"] {
            bench.disk.sync_dir(Path::new(dir)).unwrap();
        }
        let story = Self { bench, batches: overflowing() };
        story.put_file(&name(0, SegmentFile::Log, None), &story.batches.concat());
        // Whatever an old broker wrote into its indexes.
        story.put_file(&name(0, SegmentFile::OffsetIndex, None), &[0, 0, 0, 7, 0, 0, 0, 9]);
        story.put_file(&name(0, SegmentFile::TimeIndex, None), &[]);
        let next = at(NEXT, 5, &records(1, 90));
        story.put_file(&name(NEXT, SegmentFile::Log, None), &next);
        story.bench.disk.set_modified(&path(&name(0, SegmentFile::Log, None)), 77_000).unwrap();
        story.sync_names();
        Self { batches: [story.batches.clone(), vec![next]].concat(), ..story }
    }

    fn put_file(&self, name: &str, bytes: &[u8]) {
        let file = self.bench.disk.open(&path(name), OpenOptions::REPLACE).unwrap();
        file.write_at(bytes, 0).unwrap();
        file.sync_all().unwrap();
    }

    fn sync_names(&self) {
        self.bench.disk.sync_dir(Path::new(DIR)).unwrap();
    }

    fn fork(&self) -> Self {
        let high_watermark = self.bench.high_watermark;
        let bench = Bench::on(self.bench.disk.fork(), self.bench.config.clone());
        let bench = Bench { high_watermark, ..bench };
        Self { bench, batches: self.batches.clone() }
    }

    fn after(&self, mode: CrashMode) -> Self {
        // The logs of a start that did not come to its end may still be as another broker left them.
        let bench = Bench { boot: Boot::Unknown, ..self.bench.after(mode) };
        Self { bench, batches: self.batches.clone() }
    }

    /// Loads the log; every batch must be there, found by its segment's indexes.
    fn check(&self, clean: bool) {
        let log = self.bench.open(clean);
        let found: Vec<Bytes> = log.all().into_iter().map(|batch| batch.bytes).collect();
        assert_eq!(found, self.batches);
        assert_eq!(segment_bases(&log), [0, SECOND, THIRD, FOURTH, NEXT]);
        assert_eq!(epochs(&log), [(0, 0), (1, 4), (2, SECOND + 2), (4, FOURTH), (5, NEXT)]);
        let logs: Vec<u8> = log.segments().iter().flat_map(|segment| bytes_of(self, segment)).collect();
        assert_eq!(logs, self.batches.concat());
        log.segments().iter().for_each(|segment| self.check_indexes(segment));
        let writer = lock(&log.writer);
        assert_eq!(writer.producers.get(9).map(|entry| entry.last_sequence()), Some(2));
        assert_eq!(writer.producers.first_unstable_offset(), None);
        assert!(
            self.bench.files().iter().all(|name| !name.ends_with(".swap") && !name.ends_with(".cleaned"))
        );
    }

    fn check_indexes(&self, segment: &Segment) {
        let mut scan = segment.scan_at(0).unwrap();
        let mut batches = Vec::new();
        while let Some(batch) = scan.next_batch().unwrap() {
            assert!(segment.covers(batch.header.last_offset()));
            let place = segment.locate(batch.header.last_offset()).unwrap().unwrap();
            assert_eq!(place.position, batch.position);
            batches.push((batch.header.last_offset().0, batch.position));
        }
        let base = segment.base().0;
        let index = read_file(&self.bench.disk, &path(&name(base, SegmentFile::OffsetIndex, None)), 9999);
        let index = index.unwrap();
        assert!(index.is_some() || base == NEXT, "only the active segment may do without");
        for entry in index.unwrap_or_default().chunks_exact(OFFSET_INDEX_ENTRY_BYTES) {
            let number = |at: usize| i32::from_be_bytes(entry[at..at + 4].try_into().unwrap());
            let named = (base + i64::from(number(0)), number(4) as u64);
            assert!(batches.contains(&named), "{named:?} is no batch of {batches:?}");
        }
        let aborted = segment.txn_index().all().unwrap();
        let aborted: Vec<_> = aborted.iter().map(|txn| (txn.first_offset.0, txn.last_offset.0)).collect();
        let expected = if base == SECOND { vec![(4, SECOND + 1)] } else { Vec::new() };
        assert_eq!(aborted, expected, "segment {base}");
    }
}

fn bytes_of(story: &Story, segment: &Segment) -> Vec<u8> {
    let log = path(&name(segment.base().0, SegmentFile::Log, None));
    read_file(&story.bench.disk, &log, 1 << 20).unwrap().unwrap()
}

/// Only a compacted log has gaps that wide.
fn compacted() -> LogConfig {
    LogConfig { cleanup_compact: true, ..small_segments() }
}

#[test]
fn a_segment_with_offsets_beyond_31_bits_above_its_base_is_split_and_serves_the_same_batches() {
    for clean in [true, false] {
        let story = Story::new();
        story.check(clean);
        story.check(true);
    }
}

#[test]
fn a_segment_below_the_recovery_point_is_split_too() {
    let mut story = Story::new();
    story.bench.recovery_point = Offset(NEXT);
    story.check(false);
}

#[test]
fn the_last_segment_of_a_log_that_was_closed_in_order_is_split_too() {
    let mut story = Story::new();
    story.bench.disk.remove_file(&path(&name(NEXT, SegmentFile::Log, None))).unwrap();
    story.batches.pop();
    let log = story.bench.open(true);
    assert_eq!(segment_bases(&log), [0, SECOND, THIRD, FOURTH]);
    assert_eq!(log.all().len(), story.batches.len());
    let next = log.put(records(1, 5)).base_offset;
    assert_eq!(next, Offset(FOURTH + 4));
}

/// The parts lie below the recovery point, so that no later start reads them again.
#[test]
fn the_parts_and_their_indexes_are_durable_when_the_log_is_open() {
    for seed in 0..60 {
        let mut story = Story::new();
        story.bench.recovery_point = Offset(NEXT);
        story.check(true);
        story.after(CrashMode::PowerLoss { seed }).check(false);
    }
}

/// Retention by the age of the file goes on as before.
#[test]
fn the_parts_keep_the_time_of_the_last_change() {
    let story = Story::new();
    story.check(true);
    for base in [0, SECOND, THIRD, FOURTH] {
        let log = path(&name(base, SegmentFile::Log, None));
        assert_eq!(story.bench.disk.metadata(&log).unwrap().modified_ms, 77_000, "{base}");
    }
}

/// Compaction has removed everything near the base.
#[test]
fn a_segment_whose_first_batch_lies_out_of_range_keeps_its_base_as_an_empty_segment() {
    let story = Story::new();
    story.put_file(&name(0, SegmentFile::Log, None), &at(SECOND, 5, &records(1, 5)));
    let log = story.bench.open(false);
    assert_eq!(segment_bases(&log), [0, SECOND, NEXT]);
    assert_eq!(log.positions().log_start, Offset(0));
    assert_eq!(offsets(&log.all()), [(SECOND, SECOND), (NEXT, NEXT)]);
    assert_eq!(log.positions().log_end, Offset(NEXT + 1));
}

#[test]
fn what_follows_the_last_good_batch_is_cut_not_taken_for_an_offset() {
    let story = Story::new();
    let mut garbage = at(FOURTH + (1 << 40), 4, &records(1, 5)).to_vec();
    *garbage.last_mut().unwrap() ^= 1;
    story.put_file(&name(0, SegmentFile::Log, None), &[overflowing().concat(), garbage].concat());
    let log = story.bench.open(false);
    assert_eq!(segment_bases(&log), [0, SECOND, THIRD, FOURTH]);
    assert_eq!(log.positions().log_end, Offset(FOURTH + 4));
}

#[test]
fn a_segment_that_no_split_helps_is_unusable_and_stays_as_it_is() {
    // The batch lies below the base of its segment: the file was exchanged or renamed.
    let story = Story::new();
    let exchanged = name(NEXT, SegmentFile::Log, None);
    story.put_file(&exchanged, &at(NEXT - 1, 5, &records(1, 5)));
    let before = story.bench.files();
    story.bench.disk.remove_file(&path(&name(0, SegmentFile::Log, None))).unwrap();
    assert!(matches!(story.bench.try_open(false), Err(LoadError::Unusable { .. })));
    assert!(story.bench.health.is_online());
    assert!(before.contains(&exchanged) && story.bench.files().contains(&exchanged));
}

fn changes_of_a_load(story: &Story) -> u64 {
    let story = story.fork();
    let before = story.bench.disk.changes();
    story.bench.open(false);
    story.bench.disk.changes() - before
}

/// Lets the disk die at every operation of a load of `story`, and again during the next load, each way.
fn crash_at_every_operation(story: &Story) {
    let changes = changes_of_a_load(story);
    for at in 0..=changes {
        let seeds = (0..3).map(|seed| CrashMode::PowerLoss { seed: at * 31 + seed });
        let modes = seeds.chain([CrashMode::ProcessKill, CrashMode::LoseUnsynced]);
        for (number, mode) in modes.enumerate() {
            let once = story.fork();
            once.bench.disk.crash_at(at);
            let _ = once.bench.try_open(false);
            let twice = once.after(mode);
            twice.fork().check(false);
            twice.bench.disk.crash_at((at * 7 + number as u64 * 13) % changes);
            let _ = twice.bench.try_open(false);
            twice.after(mode).check(false);
        }
    }
}

#[test]
fn a_crash_at_any_operation_of_a_split_loses_nothing() {
    let story = Story::new();
    assert!(changes_of_a_load(&story) > 40, "the split is among them");
    crash_at_every_operation(&story);
}

type Files = Vec<(SegmentFile, Vec<u8>)>;

/// The files of the parts as another broker writes them, with indexes, in the order of its renames.
fn parts_of_another_broker() -> Vec<(i64, Files)> {
    let story = Story::new();
    story.check(false);
    let kinds = [SegmentFile::Log, SegmentFile::OffsetIndex, SegmentFile::TimeIndex];
    let file = |base: i64, kind| read_file(&story.bench.disk, &path(&name(base, kind, None)), 1 << 20);
    let files = |base| kinds.map(|kind| (kind, file(base, kind).unwrap().unwrap())).to_vec();
    [FOURTH, THIRD, SECOND, 0].map(|base| (base, files(base))).to_vec()
}

/// A split that another broker did not end: `cleaned` parts are not renamed yet, the others are `.swap`, of
/// which `final_parts` have their final names; `old` is what became of the old segment.
fn left_by_another_broker(cleaned: usize, final_parts: usize, old: Option<Option<Transient>>) -> Story {
    let story = Story::new();
    for kind in [SegmentFile::Log, SegmentFile::OffsetIndex, SegmentFile::TimeIndex] {
        match old {
            Some(transient) => {
                let [from, to] = [None, transient].map(|state| path(&name(0, kind, state)));
                story.bench.disk.rename(&from, &to).unwrap();
            }
            None => story.bench.disk.remove_file(&path(&name(0, kind, None))).unwrap(),
        }
    }
    let parts = parts_of_another_broker();
    for (number, (base, files)) in parts.iter().enumerate() {
        let state = if number >= parts.len() - cleaned {
            Some(Transient::Cleaned)
        } else if number >= parts.len() - final_parts {
            None
        } else {
            Some(Transient::Swap)
        };
        for (kind, bytes) in files {
            story.put_file(&name(*base, *kind, state), bytes);
        }
    }
    story.sync_names();
    story
}

#[test]
fn a_split_that_another_broker_did_not_end_is_taken_back_or_ended() {
    // Renaming to `.swap`, from the last part on: the old segment still counts.
    for cleaned in 1..=4 {
        left_by_another_broker(cleaned, 0, Some(None)).check(false);
    }
    // All are `.swap`: the old segment is there, waits for its removal, or is gone.
    for old in [Some(None), Some(Some(Transient::Deleted)), None] {
        left_by_another_broker(0, 0, old).check(false);
    }
    // Renaming to the final names, from the first part on.
    for final_parts in 1..=4 {
        left_by_another_broker(0, final_parts, None).check(false);
    }
}

#[test]
fn a_crash_while_another_brokers_split_is_ended_loses_nothing() {
    for story in [
        left_by_another_broker(2, 0, Some(None)),
        left_by_another_broker(0, 0, Some(None)),
        left_by_another_broker(0, 0, None),
        left_by_another_broker(0, 2, Some(Some(Transient::Deleted))),
    ] {
        crash_at_every_operation(&story);
    }
}
