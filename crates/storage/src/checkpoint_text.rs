//! The text format that all checkpoint files share: a version line `0`, a count, one entry a line.
//!
//! An empty file and one that ends after its version hold no entries. Everything else that is not exactly
//! the format is an error; memory is bounded by the size of the file, whatever count it declares.

use std::fmt::Write;
use std::io;
use std::path::Path;

use crate::disk::Disk;
use crate::disk::atomic::{self, Durability};

/// Longer files are refused; 100,000 partitions with the longest names take a quarter of it.
const MAX_FILE_LEN: u64 = 128 << 20;

/// Why a checkpoint file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The disk failed.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    /// The first line is a number other than 0.
    #[error("version {found} is not known, only 0 is")]
    Version {
        /// The version in the file.
        found: i32,
    },
    /// A line is not what it must be.
    #[error("line {line} is malformed")]
    Malformed {
        /// The number of the line, from 1.
        line: usize,
    },
    /// The file has fewer or more entries than its second line says.
    #[error("{declared} entries are declared, {found} are there")]
    Count {
        /// The number in the second line.
        declared: i64,
        /// The number of lines that follow.
        found: usize,
    },
}

/// Reads the entries of the file at `path`; none if there is no such file.
pub(crate) fn read<T>(
    disk: &dyn Disk,
    path: &Path,
    entry: impl FnMut(&str) -> Option<T>,
) -> Result<Vec<T>, CheckpointError> {
    match atomic::read_file(disk, path, MAX_FILE_LEN)? {
        Some(bytes) => parse(&bytes, entry),
        None => Ok(Vec::new()),
    }
}

/// Reads the entries of a file's content.
pub(crate) fn parse<T>(
    bytes: &[u8],
    mut entry: impl FnMut(&str) -> Option<T>,
) -> Result<Vec<T>, CheckpointError> {
    let malformed = |line| CheckpointError::Malformed { line };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        malformed(1 + good.iter().filter(|byte| **byte == b'\n').count())
    })?;
    let mut lines = text.lines();
    let Some(version) = lines.next() else { return Ok(Vec::new()) };
    let version: i32 = version.parse().map_err(|_| malformed(1))?;
    if version != 0 {
        return Err(CheckpointError::Version { found: version });
    }
    let Some(declared) = lines.next() else { return Ok(Vec::new()) };
    let declared: i64 = declared.parse().map_err(|_| malformed(2))?;
    let mut entries = Vec::new();
    for (at, line) in lines.enumerate() {
        entries.push(entry(line).ok_or(malformed(at.saturating_add(3)))?);
    }
    if i64::try_from(entries.len()) == Ok(declared) {
        Ok(entries)
    } else {
        Err(CheckpointError::Count { declared, found: entries.len() })
    }
}

/// The content of a file with these lines.
pub(crate) fn format(lines: impl ExactSizeIterator<Item = impl std::fmt::Display>) -> String {
    let mut text = format!("0\n{}\n", lines.len());
    for line in lines {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Replaces the file at `path`.
pub(crate) fn write(disk: &dyn Disk, path: &Path, text: &str, durability: Durability) -> io::Result<()> {
    atomic::write_atomically(disk, path, text.as_bytes(), durability)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(text: &str) -> Result<Vec<i64>, CheckpointError> {
        parse(text.as_bytes(), |line| line.parse().ok())
    }

    #[test]
    fn an_empty_file_and_one_with_only_a_version_have_no_entries() {
        for text in ["", "0", "0\n"] {
            assert!(numbers(text).unwrap().is_empty());
        }
    }

    #[test]
    fn the_last_line_may_lack_its_end_and_ends_of_two_bytes_are_read_too() {
        assert_eq!(numbers("0\n2\n5\n6").unwrap(), [5, 6]);
        assert_eq!(numbers("0\r\n1\r\n5\r\n").unwrap(), [5]);
    }

    #[test]
    fn another_version_is_an_error() {
        assert!(matches!(numbers("1\n0\n"), Err(CheckpointError::Version { found: 1 })));
    }

    #[test]
    fn a_malformed_line_is_an_error_with_its_number() {
        for (text, number) in [("x\n", 1), ("\n", 1), ("0\nx\n", 2), ("0\n1\nx\n", 3), ("0\n2\n1\n\n", 4)] {
            match numbers(text) {
                Err(CheckpointError::Malformed { line }) => assert_eq!(line, number, "{text:?}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
        assert!(matches!(parse(b"0\n1\n\xff", |_| Some(())), Err(CheckpointError::Malformed { line: 3 })));
    }

    #[test]
    fn a_count_that_does_not_match_is_an_error_however_large_it_is() {
        for text in ["0\n1\n", "0\n1\n5\n6\n", "0\n-1\n", "0\n9223372036854775807\n5\n"] {
            assert!(matches!(numbers(text), Err(CheckpointError::Count { .. })), "{text:?}");
        }
    }

    #[test]
    fn no_entries_are_written_as_version_and_zero() {
        assert_eq!(format(Vec::<i64>::new().iter()), "0\n0\n");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, |line| line.parse::<i64>().ok());
        }

        #[test]
        fn entries_read_back(entries in prop::collection::vec(any::<i64>(), 0..50)) {
            prop_assert_eq!(numbers(&format(entries.iter())).unwrap(), entries);
        }
    }
}
