//! The file `leader-epoch-checkpoint` of a partition: which leader epoch began at which offset (KIP-101), in
//! `<epoch> <start offset>` lines.
//!
//! A new epoch must be in the file before the first record is appended in it, and durable before the recovery point
//! moves beyond that record. Stale entries after a crash are harmless: loading a log removes those beyond its end.

use std::io;
use std::path::Path;

use kernel::epochs::EpochEntry;
use wire::types::{LeaderEpoch, Offset};

pub use crate::checkpoint_text::CheckpointError;
use crate::checkpoint_text::{format, parse, read, write};
use crate::disk::Disk;
use crate::disk::atomic::Durability;

/// Reads the entries, oldest first; none if there is no file. The order is not checked.
pub fn read_epochs(disk: &dyn Disk, path: &Path) -> Result<Vec<EpochEntry>, CheckpointError> {
    read(disk, path, parse_line)
}

/// Reads the content of the file, as [`read_epochs`] does.
pub(crate) fn parse_epochs(bytes: &[u8]) -> Result<Vec<EpochEntry>, CheckpointError> {
    parse(bytes, parse_line)
}

/// Replaces the file. With [`Durability::Deferred`] the caller syncs it before it moves the recovery point.
pub fn write_epochs(
    disk: &dyn Disk,
    path: &Path,
    entries: &[EpochEntry],
    durability: Durability,
) -> io::Result<()> {
    write(disk, path, &format_lines(entries), durability)
}

/// The content of the file.
pub(crate) fn format_epochs(entries: &[EpochEntry]) -> Vec<u8> {
    format_lines(entries).into_bytes()
}

fn format_lines(entries: &[EpochEntry]) -> String {
    format(entries.iter().map(|entry| std::format!("{} {}", entry.epoch, entry.start)))
}

fn parse_line(line: &str) -> Option<EpochEntry> {
    let mut parts = line.split_ascii_whitespace();
    let (epoch, start) = (parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    Some(EpochEntry { epoch: LeaderEpoch(epoch.parse().ok()?), start: Offset(start.parse().ok()?) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::atomic::{read_file, write_atomically};
    use crate::disk::crash::{CrashDisk, CrashMode};

    const PATH: &str = "/leader-epoch-checkpoint";

    fn entry(epoch: i32, start: i64) -> EpochEntry {
        EpochEntry { epoch: LeaderEpoch(epoch), start: Offset(start) }
    }

    #[test]
    fn the_file_is_written_as_a_running_broker_writes_it() {
        let disk = CrashDisk::new();
        write_epochs(&disk, Path::new(PATH), &[entry(1, 0)], Durability::Synced).unwrap();
        assert_eq!(read_file(&disk, Path::new(PATH), 100).unwrap().unwrap(), b"0\n1\n1 0\n");
        let after = disk.crash(CrashMode::LoseUnsynced);
        assert_eq!(read_epochs(&after, Path::new(PATH)).unwrap(), [entry(1, 0)]);
    }

    #[test]
    fn an_empty_or_absent_file_has_no_epochs_and_a_bad_line_is_an_error() {
        let disk = CrashDisk::new();
        assert!(read_epochs(&disk, Path::new(PATH)).unwrap().is_empty());
        for (text, good) in [("", true), ("0\n0\n", true), ("0\n1\n1\n", false), ("0\n1\n1 2 3\n", false)] {
            write_atomically(&disk, Path::new(PATH), text.as_bytes(), Durability::Deferred).unwrap();
            assert_eq!(read_epochs(&disk, Path::new(PATH)).is_ok(), good, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn epochs_read_back(entries in prop::collection::vec((any::<i32>(), any::<i64>()), 0..30)) {
            let entries: Vec<EpochEntry> = entries.into_iter().map(|(e, o)| entry(e, o)).collect();
            let disk = CrashDisk::new();
            write_epochs(&disk, Path::new(PATH), &entries, Durability::Deferred).unwrap();
            prop_assert_eq!(read_epochs(&disk, Path::new(PATH)).unwrap(), entries);
        }
    }
}
