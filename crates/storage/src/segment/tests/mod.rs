//! Segments on a disk that can forget, fail and be looked at.

mod append;
mod crash;
mod damage;
mod model;
mod read;
mod recover;
mod scan;
mod time;
mod truncate;

use std::path::Path;

use wire::batch::{Batch, BatchBuilder, Compression};
use wire::types::LeaderEpoch;

use super::*;
use crate::disk::Disk;
use crate::disk::atomic::read_file;
use crate::disk::crash::CrashDisk;
use crate::txn_index::AbortedTxn;

const BASE: Offset = Offset(100);
const NOW: Millis = Millis(5_000_000);

/// Small, so that a few batches make several index entries.
const CONFIG: SegmentConfig =
    SegmentConfig { index_interval_bytes: 300, max_index_bytes: 240, preallocate_bytes: None };

fn dir_on(disk: &CrashDisk) -> SegmentDir {
    let path = Path::new("/t-0");
    disk.create_dir_all(path).unwrap();
    SegmentDir { files: FileCache::new(Arc::new(disk.clone()), 8), path: DirPath::new(path) }
}

fn create(disk: &CrashDisk) -> Segment {
    let segment = Segment::create(&dir_on(disk), BASE, CONFIG, NOW).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    segment
}

fn open(disk: &CrashDisk) -> Segment {
    Segment::open(&dir_on(disk), BASE, None, CONFIG, NOW).unwrap()
}

/// A batch of one record for each timestamp, the value of each 100 bytes.
fn batch(base: i64, epoch: i32, timestamps: &[i64]) -> Batch {
    let mut builder = BatchBuilder::new(Compression::None);
    for timestamp in timestamps {
        builder.append(Millis(*timestamp), Some(b"key"), Some(&[7; 100]));
    }
    builder.base_offset(Offset(base)).leader_epoch(LeaderEpoch(epoch)).build().unwrap()
}

fn append(segment: &Segment, batches: &[Batch]) -> Result<u64, SegmentError> {
    let slices: Vec<IoSlice<'_>> = batches.iter().map(|batch| IoSlice::new(&batch.bytes)).collect();
    let max = batches.iter().rev().max_by_key(|batch| batch.header.max_timestamp).unwrap();
    segment.append(&AppendSet {
        first_offset: batches.first().unwrap().header.base_offset,
        last_offset: batches.last().unwrap().header.last_offset(),
        max_timestamp: max.header.max_timestamp,
        offset_of_max_timestamp: max.header.last_offset(),
        slices: &slices,
    })
}

/// Appends ten batches of two records from offset 100 on, timestamps 1000, 1001, 1010, 1011, …
fn fill(segment: &Segment) -> Vec<Batch> {
    let batches: Vec<Batch> =
        (0..10).map(|n| batch(100 + 2 * n, 3, &[1000 + 10 * n, 1001 + 10 * n])).collect();
    for batch in &batches {
        append(segment, std::slice::from_ref(batch)).unwrap();
    }
    batches
}

fn file(disk: &CrashDisk, kind: SegmentFile) -> Option<Vec<u8>> {
    read_file(disk, &path(kind), 1 << 20).unwrap()
}

fn path(kind: SegmentFile) -> std::path::PathBuf {
    Path::new("/t-0").join(SegmentFileName::new(BASE, kind).to_string())
}

fn all_batches(segment: &Segment) -> Vec<FileBatch> {
    let mut scan = segment.scan_at(0).unwrap();
    std::iter::from_fn(|| scan.next_batch().unwrap()).collect()
}

fn recover(segment: &Segment) -> Recovered {
    segment.recover(&mut |_| Ok(())).unwrap()
}

fn aborted(last: i64) -> AbortedTxn {
    AbortedTxn {
        producer_id: 1,
        first_offset: Offset(last - 1),
        last_offset: Offset(last),
        last_stable_offset: Offset(last + 1),
    }
}
