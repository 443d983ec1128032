//! The sparse indexes, `.index` and `.timeindex`: their entries, their order, and whether the log agrees.
//!
//! The file of an active segment has room at its end that is still zero; reading stops there. An entry names the
//! last offset of the appended set that starts at its position, and a set may hold several batches.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use storage::disk::{Disk, DiskFile, OpenOptions, RealDisk};
use storage::offset_index::OFFSET_INDEX_ENTRY_BYTES;
use storage::segment::{BatchScan, ScanError};
use storage::time_index::TIME_INDEX_ENTRY_BYTES;

use super::report::Report;
use super::{DumpLogOptions, base_offset};
use crate::error::VerbError;

/// Bytes of a log that are read at a time: for one entry, and for all.
const READ_AHEAD_ONE: usize = 4 << 10;
const READ_AHEAD_ALL: usize = 64 << 10;

/// The sparse indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Offset to position.
    Offset,
    /// Time to offset.
    Time,
}

/// One entry: what it leads from, and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    from: i64,
    to: i64,
}

impl Kind {
    fn entry_bytes(self) -> usize {
        match self {
            Self::Offset => OFFSET_INDEX_ENTRY_BYTES,
            Self::Time => TIME_INDEX_ENTRY_BYTES,
        }
    }

    fn read(self, bytes: &[u8], base: i64) -> Option<Entry> {
        let relative = |number: i32| base.saturating_add(i64::from(number));
        match self {
            Self::Offset => {
                let (offset, rest) = bytes.split_first_chunk()?;
                let position = i32::from_be_bytes(*rest.first_chunk()?);
                Some(Entry { from: relative(i32::from_be_bytes(*offset)), to: i64::from(position) })
            }
            Self::Time => {
                let (time, rest) = bytes.split_first_chunk()?;
                let offset = i32::from_be_bytes(*rest.first_chunk()?);
                Some(Entry { from: i64::from_be_bytes(*time), to: relative(offset) })
            }
        }
    }

    fn line(self, entry: Entry) -> String {
        match self {
            Self::Offset => format!("offset: {} position: {}", entry.from, entry.to),
            Self::Time => format!("timestamp: {} offset: {}", entry.from, entry.to),
        }
    }

    fn json(self, entry: Entry) -> Value {
        match self {
            Self::Offset => json!({ "type": "offset", "offset": entry.from, "position": entry.to }),
            Self::Time => json!({ "type": "timestamp", "timestamp": entry.from, "offset": entry.to }),
        }
    }

    /// Whether `next` may follow `entry`.
    fn follows(self, entry: Entry, next: Entry) -> bool {
        match self {
            Self::Offset => next.from > entry.from && next.to > entry.to,
            Self::Time => next.from > entry.from && next.to >= entry.to,
        }
    }
}

/// Prints an index, or only checks it.
pub(super) fn dump(
    path: &Path,
    kind: Kind,
    options: &DumpLogOptions,
    report: &mut Report<'_>,
) -> Result<(), VerbError> {
    let bytes = fs::read(path).map_err(|error| report.failed(error))?;
    if kind == Kind::Offset && bytes.is_empty() {
        // Of a time index Kafka's tool does not say so.
        return Ok(report.empty()?);
    }
    let base = base_offset(path);
    let entries = entries(&bytes, kind, base);
    let only_check = options.index_sanity_check || options.verify_index_only;
    if !only_check {
        for entry in &entries {
            report.entry(|| kind.line(*entry), || kind.json(*entry))?;
        }
    }
    check_itself(&bytes, &entries, kind, base, report)?;
    if !options.index_sanity_check
        && let Some(log) = open_log(path, report)?
    {
        let agreed = match kind {
            Kind::Offset => check_positions(&log, &entries, options.max_message_size, report),
            Kind::Time => check_times(&log, &entries, report),
        };
        agreed?;
    }
    if options.index_sanity_check {
        report.passed()?;
    }
    Ok(())
}

/// The entries before the room for more.
fn entries(bytes: &[u8], kind: Kind, base: i64) -> Vec<Entry> {
    let parsed = bytes.chunks_exact(kind.entry_bytes()).map_while(|entry| kind.read(entry, base));
    let mut entries: Vec<Entry> = Vec::new();
    for entry in parsed {
        let is_room = match kind {
            Kind::Offset => entry.from == base && entry.to == 0,
            Kind::Time => entry.from <= 0 && entry.to == base,
        };
        if is_room {
            break;
        }
        entries.push(entry);
    }
    entries
}

fn check_itself(
    bytes: &[u8],
    entries: &[Entry],
    kind: Kind,
    base: i64,
    report: &mut Report<'_>,
) -> Result<(), VerbError> {
    let rest = bytes.len() % kind.entry_bytes();
    if rest != 0 {
        report.fault(&format!("{rest} bytes at the end are no entry"))?;
    }
    for (entry, next) in entries.iter().zip(entries.iter().skip(1)) {
        if !kind.follows(*entry, *next) {
            report.fault(&format!("\"{}\" comes after \"{}\"", kind.line(*next), kind.line(*entry)))?;
        }
    }
    let before = entries.iter().find(|entry| match kind {
        Kind::Offset => entry.from < base,
        Kind::Time => entry.to < base,
    });
    if let Some(entry) = before {
        report.fault(&format!("\"{}\" lies before the segment", kind.line(*entry)))?;
    }
    Ok(())
}

/// The log beside an index; `None`, and a note, if it is not there.
fn open_log(path: &Path, report: &mut Report<'_>) -> Result<Option<Arc<dyn DiskFile>>, VerbError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let log = path.with_file_name(name.replacen(".timeindex", ".log", 1).replacen(".index", ".log", 1));
    match RealDisk.open(&log, OpenOptions::READ) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            report.note(&format!("There is no {} to compare with.", log.display()))?;
            Ok(None)
        }
        Err(error) => Err(VerbError::file(&log, error)),
    }
}

/// Each entry must lead to the start of a batch, and its offset must end that batch or one behind it.
fn check_positions(
    log: &Arc<dyn DiskFile>,
    entries: &[Entry],
    max_distance: u64,
    report: &mut Report<'_>,
) -> Result<(), VerbError> {
    let length = log.len().map_err(|error| report.failed(error))?;
    for entry in entries {
        let position = u64::try_from(entry.to).unwrap_or(u64::MAX);
        let end = length.min(position.saturating_add(max_distance));
        let mut scan = BatchScan::new(log.clone(), position, end, READ_AHEAD_ONE);
        let mut first = None;
        let found = loop {
            match scan.next_batch() {
                Ok(Some(batch)) => {
                    let last = batch.header.last_offset().0;
                    let first = *first.get_or_insert(batch.header.base_offset.0);
                    if last >= entry.from {
                        break last == entry.from && first <= entry.from;
                    }
                }
                Err(ScanError::Io(error)) => return Err(report.failed(error)),
                Err(ScanError::OldFormat { .. }) => break true,
                Ok(None) | Err(ScanError::Corrupt { .. }) => break false,
            }
        };
        if !found {
            let line = Kind::Offset.line(*entry);
            report.fault(&format!("the log does not agree with \"{line}\""))?;
        }
    }
    Ok(())
}

/// The batch that holds an entry's offset must have the entry's time as its largest.
fn check_times(log: &Arc<dyn DiskFile>, entries: &[Entry], report: &mut Report<'_>) -> Result<(), VerbError> {
    let length = log.len().map_err(|error| report.failed(error))?;
    let mut scan = BatchScan::new(log.clone(), 0, length, READ_AHEAD_ALL);
    let mut waiting = entries.iter().peekable();
    while waiting.peek().is_some() {
        let batch = match scan.next_batch() {
            Ok(Some(batch)) => batch,
            Err(ScanError::Io(error)) => return Err(report.failed(error)),
            Err(ScanError::OldFormat { .. }) => return Ok(()),
            Ok(None) | Err(ScanError::Corrupt { .. }) => break,
        };
        while let Some(entry) = waiting.next_if(|entry| entry.to <= batch.header.last_offset().0) {
            if batch.header.max_timestamp.0 != entry.from || entry.to < batch.header.base_offset.0 {
                let line = Kind::Time.line(*entry);
                let found = batch.header.max_timestamp;
                report.fault(&format!("the log does not agree with \"{line}\": it has {found} there"))?;
            }
        }
    }
    for entry in waiting {
        let line = Kind::Time.line(*entry);
        report.fault(&format!("\"{line}\" lies behind the last whole batch of the log"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{batch, dumped};

    const INDEX: &str = "00000000000000000050.index";
    const TIMES: &str = "00000000000000000050.timeindex";
    const LOG: &str = "00000000000000000050.log";

    fn offsets(entries: &[(i32, i32)]) -> Vec<u8> {
        let entry = |(offset, position): &(i32, i32)| [offset.to_be_bytes(), position.to_be_bytes()].concat();
        entries.iter().flat_map(entry).collect()
    }

    fn times(entries: &[(i64, i32)]) -> Vec<u8> {
        let entry = |(time, offset): &(i64, i32)| [&time.to_be_bytes()[..], &offset.to_be_bytes()].concat();
        entries.iter().flat_map(entry).collect()
    }

    /// Three batches of two records at 50, 52 and 54, and the position of the second.
    fn log() -> (Vec<u8>, i32) {
        let batches = [batch(50, 100), batch(52, 200), batch(54, 150)];
        (batches.concat(), i32::try_from(batches[0].len()).unwrap())
    }

    #[test]
    fn entries_end_where_the_room_for_more_begins() {
        let (log, second) = log();
        let files = [
            (INDEX, offsets(&[(3, second), (0, 0), (0, 0)])),
            (TIMES, times(&[(100, 1), (200, 3), (0, 0)])),
            (LOG, log),
        ];
        let (text, faults) = dumped(&files, 2, &[]);
        let expected = format!(
            "Dumping {INDEX}\noffset: 53 position: {second}\n\
             Dumping {TIMES}\ntimestamp: 100 offset: 51\ntimestamp: 200 offset: 53\n"
        );
        assert_eq!((text, faults), (expected, 0));
    }

    #[test]
    fn an_entry_may_name_the_end_of_a_set_of_several_batches() {
        let (log, second) = log();
        let files = [(INDEX, offsets(&[(5, second)])), (LOG, log)];
        let (text, faults) = dumped(&files, 1, &["--verify-index-only"]);
        assert_eq!((text, faults), (format!("Dumping {INDEX}\n"), 0));
    }

    #[test]
    fn entries_that_the_log_does_not_bear_out_are_faults() {
        let (log, second) = log();
        for wrong in [(2, second), (3, second + 1), (3, 0x0100_0000), (9, second)] {
            let files = [(INDEX, offsets(&[wrong])), (LOG, log.clone())];
            assert_eq!(dumped(&files, 1, &["--verify-index-only"]).1, 1, "{wrong:?}");
        }
        for wrong in [(101, 1), (100, 2), (200, 9)] {
            let files = [(TIMES, times(&[wrong])), (LOG, log.clone())];
            assert_eq!(dumped(&files, 1, &["--verify-index-only"]).1, 1, "{wrong:?}");
        }
    }

    #[test]
    fn a_sanity_check_looks_at_the_index_alone() {
        let check = |name, bytes| dumped(&[(name, bytes)], 1, &["--index-sanity-check"]).1;
        assert_eq!(check(INDEX, offsets(&[(3, 70), (4, 100)])), 0);
        let (text, _) = dumped(&[(TIMES, Vec::new())], 1, &["--index-sanity-check"]);
        assert_eq!(text, format!("Dumping {TIMES}\n{TIMES} passed sanity check.\n"));
        assert_eq!(check(INDEX, offsets(&[(3, 70), (3, 100)])), 1);
        assert_eq!(check(INDEX, offsets(&[(3, 70), (4, 70)])), 1);
        assert_eq!(check(INDEX, offsets(&[(-3, 70)])), 1);
        assert_eq!(check(INDEX, [offsets(&[(3, 70)]), vec![1, 2]].concat()), 1);
        assert_eq!(check(TIMES, times(&[(100, 3), (101, 3)])), 0);
        assert_eq!(check(TIMES, times(&[(100, 3), (100, 4)])), 1);
    }

    #[test]
    fn of_an_empty_offset_index_only_that_is_told() {
        for mode in [&[][..], &["--index-sanity-check"], &["--verify-index-only"]] {
            let (text, faults) = dumped(&[(INDEX, Vec::new())], 1, mode);
            assert_eq!((text, faults), (format!("Dumping {INDEX}\n{INDEX} is empty.\n"), 0), "{mode:?}");
        }
    }

    #[test]
    fn an_index_without_its_log_is_printed_with_a_note() {
        let (text, faults) = dumped(&[(INDEX, offsets(&[(3, 70)]))], 1, &[]);
        assert!(text.contains("offset: 53 position: 70\n") && text.contains("There is no "), "{text}");
        assert_eq!(faults, 0);
    }
}
