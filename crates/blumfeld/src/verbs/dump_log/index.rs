//! The sparse indexes and the index of aborted transactions. An index of the active segment has room at its end
//! that is still zero; printing stops there.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::json;
use wire::batch::BatchHeader;

use super::DumpLogOptions;
use crate::error::VerbError;
use crate::output::{StreamFormat, write_json};

/// The sparse indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Offset to position.
    Offset,
    /// Time to offset.
    Time,
}

/// One entry: what it leads from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    from: i64,
    to: i64,
}

/// Prints an index, or only checks it; returns the number of faults.
pub(super) fn dump(
    out: &mut dyn Write,
    path: &Path,
    kind: Kind,
    options: &DumpLogOptions,
) -> Result<usize, VerbError> {
    let bytes = fs::read(path).map_err(|error| VerbError::file(path, error))?;
    let base = base_offset(path);
    let entries = entries(&bytes, kind, base);
    let mut faults = order_faults(&entries, kind);
    if kind == Kind::Offset {
        faults.extend(position_faults(path, &entries)?);
    }
    if options.index_sanity_check || options.verify_index_only {
        if faults.is_empty() {
            writeln!(out, "{} passed sanity check.", path.display())?;
        }
    } else {
        for entry in &entries {
            match (options.format.output, kind) {
                (StreamFormat::Kafka, Kind::Offset) => {
                    writeln!(out, "offset: {} position: {}", entry.from, entry.to)?
                }
                (StreamFormat::Kafka, Kind::Time) => {
                    writeln!(out, "timestamp: {} offset: {}", entry.from, entry.to)?
                }
                (StreamFormat::Json, Kind::Offset) => {
                    write_json(out, &json!({ "offset": entry.from, "position": entry.to }))?;
                }
                (StreamFormat::Json, Kind::Time) => {
                    write_json(out, &json!({ "timestamp": entry.from, "offset": entry.to }))?;
                }
            }
        }
    }
    for fault in &faults {
        writeln!(out, "{}: {fault}", path.display())?;
    }
    Ok(faults.len())
}

/// Prints the aborted transactions.
pub(super) fn dump_txn(
    out: &mut dyn Write,
    path: &Path,
    options: &DumpLogOptions,
) -> Result<usize, VerbError> {
    let bytes = fs::read(path).map_err(|error| VerbError::file(path, error))?;
    for entry in bytes.chunks_exact(storage::txn_index::TXN_INDEX_ENTRY_BYTES) {
        let field = |at: usize| int(entry.get(at..at + 8));
        let version = entry.get(..2).and_then(|b| b.try_into().ok()).map_or(0, i16::from_be_bytes);
        let (producer, first, last, stable) = (field(2), field(10), field(18), field(26));
        match options.format.output {
            StreamFormat::Kafka => writeln!(
                out,
                "version: {version} producerId: {producer} firstOffset: {first} lastOffset: {last} \
                 lastStableOffset: {stable}"
            )?,
            StreamFormat::Json => write_json(
                out,
                &json!({ "version": version, "producerId": producer, "firstOffset": first,
                         "lastOffset": last, "lastStableOffset": stable }),
            )?,
        }
    }
    Ok(0)
}

/// The base offset in a file's name; 0 for a name without one.
pub(super) fn base_offset(path: &Path) -> i64 {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    stem.parse().unwrap_or(0)
}

fn int(bytes: Option<&[u8]>) -> i64 {
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, i64::from_be_bytes)
}

fn short(bytes: Option<&[u8]>) -> i64 {
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, |b| i64::from(i32::from_be_bytes(b)))
}

fn entries(bytes: &[u8], kind: Kind, base: i64) -> Vec<Entry> {
    let size = if kind == Kind::Offset { 8 } else { 12 };
    let parsed = bytes.chunks_exact(size).map(|entry| match kind {
        Kind::Offset => {
            Entry { from: base.saturating_add(short(entry.get(..4))), to: short(entry.get(4..8)) }
        }
        Kind::Time => Entry { from: int(entry.get(..8)), to: base.saturating_add(short(entry.get(8..12))) },
    });
    let is_room = |entry: &Entry| match kind {
        Kind::Offset => entry.from == base && entry.to == 0,
        Kind::Time => entry.from == 0,
    };
    parsed.take_while(|entry| !is_room(entry)).collect()
}

fn order_faults(entries: &[Entry], kind: Kind) -> Vec<String> {
    let pairs = entries.iter().zip(entries.iter().skip(1));
    let out_of_order = pairs.filter(|(one, next)| match kind {
        Kind::Offset => next.from <= one.from || next.to <= one.to,
        Kind::Time => next.from <= one.from || next.to < one.to,
    });
    out_of_order.map(|(one, next)| format!("entry {next:?} does not follow {one:?}")).collect()
}

/// Entries of an offset index that do not lead to a batch that holds their offset.
fn position_faults(path: &Path, entries: &[Entry]) -> Result<Vec<String>, VerbError> {
    use std::os::unix::fs::FileExt;
    let log = path.with_extension("log");
    let Ok(file) = fs::File::open(&log) else { return Ok(Vec::new()) };
    let mut faults = Vec::new();
    for entry in entries {
        let mut header = [0; wire::batch::HEADER_LEN];
        let position = u64::try_from(entry.to).unwrap_or(u64::MAX);
        let found =
            file.read_exact_at(&mut header, position).ok().and_then(|()| BatchHeader::parse(&header).ok());
        let holds =
            found.is_some_and(|it| it.base_offset.0 <= entry.from && entry.from <= it.last_offset().0);
        if !holds {
            faults.push(format!("offset {} is not in the batch at position {}", entry.from, entry.to));
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_where_the_room_for_more_begins() {
        let bytes = [0, 0, 0, 5, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(entries(&bytes, Kind::Offset, 50), [Entry { from: 55, to: 4096 }]);
        let mut time = 1_700_000_000_000_i64.to_be_bytes().to_vec();
        time.extend_from_slice(&[0, 0, 0, 5]);
        time.extend_from_slice(&[0; 12]);
        assert_eq!(entries(&time, Kind::Time, 50), [Entry { from: 1_700_000_000_000, to: 55 }]);
    }

    #[test]
    fn entries_out_of_order_are_faults() {
        let entry = |from, to| Entry { from, to };
        assert!(order_faults(&[entry(1, 1), entry(2, 2)], Kind::Offset).is_empty());
        assert_eq!(order_faults(&[entry(1, 1), entry(1, 2)], Kind::Offset).len(), 1);
        assert!(order_faults(&[entry(1, 1), entry(2, 1)], Kind::Time).is_empty());
    }
}
