//! The offset checkpoints of a log directory: recovery points, log start offsets, high watermarks and first
//! dirty offsets, one offset for each partition, in `<topic> <partition> <offset>` lines.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use wire::types::{Offset, TopicPartition};

pub use crate::checkpoint_text::CheckpointError;
use crate::checkpoint_text::{format, read, write};
use crate::disk::atomic::Durability;
use crate::disk::{Disk, OpenOptions};

/// One offset for each partition.
pub type Offsets = BTreeMap<TopicPartition, Offset>;

/// Reads a checkpoint file; a file that does not exist holds nothing. Of two lines for one partition the
/// last counts.
pub fn read_offsets(disk: &dyn Disk, path: &Path) -> Result<Offsets, CheckpointError> {
    Ok(read(disk, path, parse_line)?.into_iter().collect())
}

/// Reads a checkpoint that start-up can do without (recovery points, log start offsets): what cannot be read
/// holds nothing, and a warning says so.
pub fn read_offsets_or_none(disk: &dyn Disk, path: &Path) -> Offsets {
    match read_offsets(disk, path) {
        Ok(offsets) => offsets,
        Err(error) => {
            tracing::warn!(
                path = %path.display(), %error,
                "checkpoint cannot be read; going on without it (logs are checked from their beginning)"
            );
            Offsets::new()
        }
    }
}

/// Replaces a checkpoint file; it is durable when this returns.
pub fn write_offsets(disk: &dyn Disk, path: &Path, offsets: &Offsets) -> io::Result<()> {
    let lines = offsets.iter().map(|(tp, offset)| Line { tp, offset: *offset });
    write(disk, path, &format(lines), Durability::Synced)
}

/// Creates the file empty if there is none, as a broker does when it opens a directory.
pub fn create_if_absent(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    disk.open(path, OpenOptions::CREATE).map(|_| ())
}

struct Line<'a> {
    tp: &'a TopicPartition,
    offset: Offset,
}

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.tp.topic, self.tp.partition, self.offset)
    }
}

fn parse_line(line: &str) -> Option<(TopicPartition, Offset)> {
    let mut parts = line.split_ascii_whitespace();
    let (topic, partition, offset) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    Some((TopicPartition::new(topic, partition.parse().ok()?), Offset(offset.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::atomic::{read_file, write_atomically};
    use crate::disk::crash::{CrashDisk, CrashMode, Fault, Operation};

    const PATH: &str = "/replication-offset-checkpoint";

    fn disk_with(text: &str) -> CrashDisk {
        let disk = CrashDisk::new();
        write_atomically(&disk, Path::new(PATH), text.as_bytes(), Durability::Synced).unwrap();
        disk
    }

    #[test]
    fn the_file_of_a_running_broker_is_read() {
        let disk =
            disk_with("0\n4\nplain 1 0\nwith.config 2 0\nplain 2 7\nwith.config 0 9223372036854775807\n");
        let offsets = read_offsets(&disk, Path::new(PATH)).unwrap();
        assert_eq!(offsets.len(), 4);
        assert_eq!(offsets[&TopicPartition::new("plain", 2)], Offset(7));
        assert_eq!(offsets[&TopicPartition::new("with.config", 0)], Offset(i64::MAX));
    }

    #[test]
    fn the_file_is_written_as_the_format_says() {
        let disk = CrashDisk::new();
        let offsets = [
            (TopicPartition::new("topicA", 1), Offset(99)),
            (TopicPartition::new("topicA", 0), Offset(1234)),
        ];
        write_offsets(&disk, Path::new(PATH), &offsets.into()).unwrap();
        let bytes = read_file(&disk, Path::new(PATH), 1000).unwrap().unwrap();
        assert_eq!(bytes, b"0\n2\ntopicA 0 1234\ntopicA 1 99\n");
    }

    #[test]
    fn fields_are_separated_by_any_white_space_and_must_be_three() {
        let good = read_offsets(&disk_with("0\n1\na\t0   5\n"), Path::new(PATH)).unwrap();
        assert_eq!(good[&TopicPartition::new("a", 0)], Offset(5));
        for line in ["a 0", "a 0 5 6", "a x 5", "a 0 x", "a 3000000000 5", "a 0 99999999999999999999"] {
            let disk = disk_with(&format!("0\n1\n{line}\n"));
            let result = read_offsets(&disk, Path::new(PATH));
            assert!(matches!(result, Err(CheckpointError::Malformed { line: 3 })), "{line}");
        }
    }

    #[test]
    fn a_start_does_without_a_checkpoint_that_cannot_be_read() {
        assert!(read_offsets_or_none(&disk_with("0\n3\na 0 1\n"), Path::new(PATH)).is_empty());
        let disk = disk_with("0\n1\na 0 1\n");
        let kind = io::ErrorKind::Other;
        disk.fail(Fault { operation: Operation::Read, path_contains: PATH.into(), skip: 0, times: 1, kind });
        assert!(read_offsets_or_none(&disk, Path::new(PATH)).is_empty());
        assert_eq!(read_offsets_or_none(&disk, Path::new(PATH)).len(), 1);
    }

    #[test]
    fn an_absent_file_holds_nothing_and_is_created_empty() {
        let disk = CrashDisk::new();
        assert!(read_offsets(&disk, Path::new(PATH)).unwrap().is_empty());
        create_if_absent(&disk, Path::new(PATH)).unwrap();
        assert_eq!(read_file(&disk, Path::new(PATH), 9).unwrap(), Some(Vec::new()));
        let disk = disk_with("0\n1\na 0 1\n");
        create_if_absent(&disk, Path::new(PATH)).unwrap();
        assert_eq!(read_offsets(&disk, Path::new(PATH)).unwrap().len(), 1);
    }

    #[test]
    fn a_half_written_temporary_file_is_ignored_and_overwritten() {
        let disk = disk_with("0\n1\na 0 1\n");
        let temporary = format!("{PATH}.tmp");
        disk.open(Path::new(&temporary), OpenOptions::CREATE)
            .unwrap()
            .write_at(b"0\n9\na 0 99999999 and garbage longer than the new content", 0)
            .unwrap();
        assert_eq!(read_offsets(&disk, Path::new(PATH)).unwrap().len(), 1);
        let offsets = Offsets::from([(TopicPartition::new("b", 0), Offset(2))]);
        write_offsets(&disk, Path::new(PATH), &offsets).unwrap();
        assert_eq!(read_offsets(&disk, Path::new(PATH)).unwrap(), offsets);
        assert!(!disk.exists(Path::new(&temporary)).unwrap());
        let after = disk.crash(CrashMode::LoseUnsynced);
        assert_eq!(read_offsets(&after, Path::new(PATH)).unwrap(), offsets);
    }

    proptest! {
        #[test]
        fn offsets_read_back(
            entries in prop::collection::btree_map(("[a-zA-Z0-9._-]{1,20}", 0..1000i32), any::<i64>(), 0..30),
        ) {
            let offsets: Offsets = entries
                .into_iter()
                .map(|((topic, partition), offset)| {
                    (TopicPartition::new(topic.as_str(), partition), Offset(offset))
                })
                .collect();
            let disk = CrashDisk::new();
            write_offsets(&disk, Path::new(PATH), &offsets).unwrap();
            prop_assert_eq!(read_offsets(&disk, Path::new(PATH)).unwrap(), offsets);
        }
    }
}
