//! A `.txnindex`: the aborted transactions of a segment, sorted by their markers.

use std::fs;
use std::path::Path;

use serde_json::json;
use storage::txn_index::TXN_INDEX_ENTRY_BYTES;

use super::base_offset;
use super::report::Report;
use crate::error::VerbError;

/// The only version of an entry.
const VERSION: i16 = 0;

/// An entry as it lies in the file.
struct Entry {
    version: i16,
    producer_id: i64,
    first_offset: i64,
    last_offset: i64,
    last_stable_offset: i64,
}

impl Entry {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first_chunk()?;
        let mut numbers = rest.as_chunks().0.iter().map(|number| i64::from_be_bytes(*number));
        Some(Self {
            version: i16::from_be_bytes(*version),
            producer_id: numbers.next()?,
            first_offset: numbers.next()?,
            last_offset: numbers.next()?,
            last_stable_offset: numbers.next()?,
        })
    }

    fn line(&self) -> String {
        format!(
            "version: {} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}",
            self.version, self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset
        )
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "type": "abortedTransaction",
            "version": self.version,
            "producerId": self.producer_id,
            "firstOffset": self.first_offset,
            "lastOffset": self.last_offset,
            "lastStableOffset": self.last_stable_offset,
        })
    }
}

/// Prints and checks the index.
pub(super) fn dump(path: &Path, report: &mut Report<'_>) -> Result<(), VerbError> {
    let bytes = fs::read(path).map_err(|error| report.failed(error))?;
    let entries = bytes.chunks_exact(TXN_INDEX_ENTRY_BYTES);
    let rest = entries.remainder().len();
    let mut last_marker = base_offset(path).saturating_sub(1);
    for entry in entries.filter_map(Entry::read) {
        report.entry(|| entry.line(), || entry.json())?;
        if entry.version != VERSION {
            report.fault(&format!("version {} is not known", entry.version))?;
        }
        if entry.last_offset <= last_marker || entry.first_offset > entry.last_offset {
            report.fault(&format!("the marker at offset {} is out of place", entry.last_offset))?;
        }
        last_marker = entry.last_offset;
    }
    if rest > 0 {
        report.fault(&format!("{rest} bytes at the end are no entry"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::tests::dumped;

    fn entry(version: i16, numbers: [i64; 4]) -> Vec<u8> {
        let mut bytes = version.to_be_bytes().to_vec();
        bytes.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        bytes
    }

    #[test]
    fn entries_are_printed_and_checked() {
        let bytes = [entry(0, [7, 0, 10, 5]), entry(0, [8, 3, 9, 9]), entry(1, [9, 11, 12, 12]), vec![1]];
        let (text, faults) = dumped(&[("00000000000000000000.txnindex", bytes.concat())], 1, &[]);
        expect![[r#"
            Dumping 00000000000000000000.txnindex
            version: 0 producerId: 7 firstOffset: 0 lastOffset: 10 lastStableOffset: 5
            version: 0 producerId: 8 firstOffset: 3 lastOffset: 9 lastStableOffset: 9
            FAULT in 00000000000000000000.txnindex: the marker at offset 9 is out of place
            version: 1 producerId: 9 firstOffset: 11 lastOffset: 12 lastStableOffset: 12
            FAULT in 00000000000000000000.txnindex: version 1 is not known
            FAULT in 00000000000000000000.txnindex: 1 bytes at the end are no entry
        "#]]
        .assert_eq(&text);
        assert_eq!(faults, 3);
    }
}
