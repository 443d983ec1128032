//! The file `partition.metadata` of a partition: the id of its topic (KIP-516).
//!
//! Two lines, `version: 0` and `topic_id: <22 characters>`; the second has no line end. It must be durable
//! before anything is appended to the log, so that records never come under the id of a later topic of the
//! same name.

use std::io;
use std::path::Path;

use wire::types::TopicId;

use crate::disk::Disk;
use crate::disk::atomic::{Durability, read_file, write_atomically};

const MAX_FILE_LEN: u64 = 4096;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PartitionMetadataError {
    /// The disk failed.
    #[error("cannot read partition.metadata: {0}")]
    Io(#[from] io::Error),
    /// The file is empty, as a lost power leaves one that was not synced. If the log has no records, it can
    /// be treated as absent.
    #[error("partition.metadata is empty")]
    Empty,
    /// The version is not 0.
    #[error("partition.metadata has version {found}, only 0 is known")]
    Version {
        /// The version in the file.
        found: i32,
    },
    /// The topic id is the zero id.
    #[error("partition.metadata has the zero topic id")]
    ZeroId,
    /// A line is not what it must be.
    #[error("line {line} of partition.metadata is malformed")]
    Malformed {
        /// The number of the line, from 1.
        line: usize,
    },
}

/// The content of the file.
pub fn format_topic_id(id: TopicId) -> String {
    format!("version: 0\ntopic_id: {id}")
}

/// Reads the content of the file.
pub fn parse_topic_id(bytes: &[u8]) -> Result<TopicId, PartitionMetadataError> {
    let malformed = |line| PartitionMetadataError::Malformed { line };
    let text = std::str::from_utf8(bytes).map_err(|_| malformed(1))?;
    if text.is_empty() {
        return Err(PartitionMetadataError::Empty);
    }
    let mut lines = text.lines();
    let version = lines.next().and_then(|line| value(line, "version")).ok_or(malformed(1))?;
    let version: i32 = version.parse().map_err(|_| malformed(1))?;
    if version != 0 {
        return Err(PartitionMetadataError::Version { found: version });
    }
    let id = lines.next().and_then(|line| value(line, "topic_id")).and_then(TopicId::parse);
    let id = id.ok_or(malformed(2))?;
    if id.is_zero() { Err(PartitionMetadataError::ZeroId) } else { Ok(id) }
}

/// The value of a line `<name>: <value>`; white space after the colon is needed.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(name)?.strip_prefix(':')?;
    let value = rest.trim_start();
    (value.len() < rest.len()).then_some(value)
}

/// Reads the file; `None` if there is none.
pub fn read_topic_id(disk: &dyn Disk, path: &Path) -> Result<Option<TopicId>, PartitionMetadataError> {
    match read_file(disk, path, MAX_FILE_LEN)? {
        Some(bytes) => parse_topic_id(&bytes).map(Some),
        None => Ok(None),
    }
}

/// Writes the file. With [`Durability::Deferred`] the caller syncs it before the first append.
pub fn write_topic_id(disk: &dyn Disk, path: &Path, id: TopicId, durability: Durability) -> io::Result<()> {
    write_atomically(disk, path, format_topic_id(id).as_bytes(), durability)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::crash::CrashDisk;

    #[test]
    fn the_file_is_that_of_a_running_broker_without_a_line_end_at_its_end() {
        let id = TopicId::parse("fvxGUODMT7WCjeH6w1K9Rg").unwrap();
        assert_eq!(format_topic_id(id), "version: 0\ntopic_id: fvxGUODMT7WCjeH6w1K9Rg");
        assert_eq!(format_topic_id(id).len(), 43);
        assert_eq!(parse_topic_id(format_topic_id(id).as_bytes()).unwrap(), id);
    }

    #[test]
    fn what_is_wrong_is_told() {
        type Check = fn(&PartitionMetadataError) -> bool;
        let cases: [(&str, Check); 8] = [
            ("", |e| matches!(e, PartitionMetadataError::Empty)),
            ("version: 1\ntopic_id: fvxGUODMT7WCjeH6w1K9Rg", |e| {
                matches!(e, PartitionMetadataError::Version { found: 1 })
            }),
            ("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", |e| matches!(e, PartitionMetadataError::ZeroId)),
            ("version:0\ntopic_id: x", |e| matches!(e, PartitionMetadataError::Malformed { line: 1 })),
            ("topic_id: x\nversion: 0", |e| matches!(e, PartitionMetadataError::Malformed { line: 1 })),
            ("version: 0", |e| matches!(e, PartitionMetadataError::Malformed { line: 2 })),
            ("version: 0\ntopic_id: short", |e| matches!(e, PartitionMetadataError::Malformed { line: 2 })),
            ("version: 0\ntopic_id: fvxGUODMT7WCjeH6w1K9R!", |e| {
                matches!(e, PartitionMetadataError::Malformed { line: 2 })
            }),
        ];
        for (text, check) in cases {
            let error = parse_topic_id(text.as_bytes()).unwrap_err();
            assert!(check(&error), "{text:?}: {error}");
        }
    }

    #[test]
    fn an_absent_file_is_none() {
        let disk = CrashDisk::new();
        let path = Path::new("/partition.metadata");
        assert!(read_topic_id(&disk, path).unwrap().is_none());
        write_topic_id(&disk, path, TopicId([3; 16]), Durability::Synced).unwrap();
        assert_eq!(read_topic_id(&disk, path).unwrap(), Some(TopicId([3; 16])));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse_topic_id(&bytes);
        }
    }
}
