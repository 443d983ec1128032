//! Files of a data directory, whatever a disk or an operator made of them.

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use storage::disk::crash::CrashDisk;
use storage::disk::handles::{CachedFile, DirPath, FileCache};
use storage::disk::{Disk, OpenOptions};
use storage::meta_properties::MetaProperties;
use storage::offset_index::OffsetIndex;
use storage::partition_metadata::parse_topic_id;
use storage::snapshot::{decode_snapshot, encode_snapshot};
use storage::time_index::TimeIndex;
use storage::txn_index::TxnIndex;
use storage::{checkpoints as offsets, epoch_checkpoint};
use wire::types::{Millis, Offset};

const FILE: &str = "file";

fn disk_with(content: &[u8]) -> Option<CrashDisk> {
    let disk = CrashDisk::new();
    let options = OpenOptions { write: true, create: true, ..OpenOptions::default() };
    let file = disk.open(&Path::new("/").join(FILE), options).ok()?;
    file.write_vectored_at(&[IoSlice::new(content)], 0).ok()?;
    Some(disk)
}

/// Offset checkpoints, epoch checkpoints, `meta.properties`, `partition.metadata`.
pub fn checkpoints(input: &[u8]) {
    let Some(disk) = disk_with(input) else { return };
    let path = Path::new("/").join(FILE);
    if let Ok(read) = offsets::read_offsets(&disk, &path) {
        let copy = Path::new("/").join("copy");
        let again = offsets::write_offsets(&disk, &copy, &read)
            .ok()
            .and_then(|()| offsets::read_offsets(&disk, &copy).ok());
        assert!(again.as_ref() == Some(&read), "a checkpoint is not read back as written");
    }
    let _any_epochs = epoch_checkpoint::read_epochs(&disk, &path);
    let _any_properties = MetaProperties::parse(input);
    let _any_topic_id = parse_topic_id(input);
}

/// The three kinds of index: opening, checking, looking up and cutting.
pub fn indexes(input: &[u8]) {
    let Some((choice, content)) = input.split_first() else { return };
    let Some(disk) = disk_with(content) else { return };
    let files = FileCache::new(Arc::new(disk), 4);
    let file = || -> CachedFile { files.file(&DirPath::new("/"), FILE.to_owned()) };
    let room = content.len() as u64;
    let base = Offset(50);
    let target = base.plus(i64::from(*choice) * 7);

    let offset_index = OffsetIndex::new(file(), base, room);
    let plausible = offset_index.is_plausible(1 << 40).unwrap_or(false);
    let found = offset_index.lookup(target);
    if plausible {
        assert!(found.is_ok_and(|found| found.offset <= target), "a look-up beyond its target");
    }
    let _any_position = offset_index.first_at_or_beyond(u64::from(*choice));
    if offset_index.truncate_to(target).is_ok() && plausible {
        let last = offset_index.last().ok().flatten();
        assert!(last.is_none_or(|last| last.offset < target), "a cut left too much");
    }

    let time_index = TimeIndex::new(file(), base, room);
    let _any_sense = time_index.is_plausible();
    let _any_time = time_index.lookup(Millis(i64::from(*choice) << 32));
    let _any_last = time_index.last();
    let _any_cut = time_index.truncate_to(target);

    let txn_index = TxnIndex::new(file(), base);
    let _any_check = txn_index.check();
    let _any_aborted = txn_index.aborted_in(base, target);
    let _any_list = txn_index.all();
    let _any_cut = txn_index.truncate_to(target);
}

/// Producer snapshots.
pub fn snapshots(input: &[u8]) {
    let Ok(entries) = decode_snapshot(input) else { return };
    let again = decode_snapshot(&encode_snapshot(entries.iter()));
    assert!(again.is_ok_and(|again| again == entries), "a snapshot is not read back as written");
}
