//! Producer snapshots, and the files that are text already: checkpoints, `partition.metadata`, `meta.properties`.

use std::fs;
use std::path::Path;

use kernel::producer::ProducerEntry;
use serde_json::{Value, json};
use storage::snapshot::decode_snapshot;

use super::report::Report;
use crate::error::VerbError;

/// The most bytes that a file of text may have to be printed.
const MAX_TEXT_BYTES: u64 = 64 << 20;

/// Prints a text file as it is.
pub(super) fn lines(path: &Path, report: &mut Report<'_>) -> Result<(), VerbError> {
    let length = fs::metadata(path).map_err(|error| report.failed(error))?.len();
    if length > MAX_TEXT_BYTES {
        return Ok(report.fault(&format!("{length} bytes are too many for a file of this kind"))?);
    }
    let bytes = fs::read(path).map_err(|error| report.failed(error))?;
    for line in String::from_utf8_lossy(&bytes).lines() {
        report.entry(|| line.to_owned(), || json!({ "type": "line", "line": line }))?;
    }
    Ok(())
}

/// Prints a producer snapshot.
pub(super) fn snapshot(path: &Path, report: &mut Report<'_>) -> Result<(), VerbError> {
    let bytes = fs::read(path).map_err(|error| report.failed(error))?;
    match decode_snapshot(&bytes) {
        Ok(entries) => {
            for entry in &entries {
                report.entry(|| producer_line(entry), || producer_json(entry))?;
            }
            Ok(())
        }
        Err(error) => Ok(report.fault(&error.to_string())?),
    }
}

fn producer_line(entry: &ProducerEntry) -> String {
    let open = entry.open_txn_first_offset;
    let open = open.map_or_else(|| "OptionalLong.empty".to_owned(), |at| format!("OptionalLong[{at}]"));
    let mut line = format!(
        "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {open} lastTimestamp: {} ",
        entry.producer_id, entry.producer_epoch, entry.coordinator_epoch, entry.last_timestamp
    );
    if let Some(batch) = entry.last_batch() {
        line.push_str(&format!(
            "firstSequence: {} lastSequence: {} lastOffset: {} offsetDelta: {} timestamp: {}",
            batch.first_sequence(),
            batch.last_sequence,
            batch.last_offset,
            batch.offset_delta,
            batch.timestamp
        ));
    }
    line
}

fn producer_json(entry: &ProducerEntry) -> Value {
    let batch = entry.last_batch().map(|batch| {
        json!({
            "firstSequence": batch.first_sequence(),
            "lastSequence": batch.last_sequence,
            "lastOffset": batch.last_offset.0,
            "offsetDelta": batch.offset_delta,
            "timestamp": batch.timestamp,
        })
    });
    json!({
        "type": "producer",
        "producerId": entry.producer_id,
        "producerEpoch": entry.producer_epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "currentTxnFirstOffset": entry.open_txn_first_offset.map(|offset| offset.0),
        "lastTimestamp": entry.last_timestamp,
        "lastBatch": batch,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use kernel::producer::BatchMetadata;
    use storage::snapshot::encode_snapshot;
    use wire::types::Offset;

    use super::super::tests::dumped;

    fn snapshot_bytes() -> Vec<u8> {
        let mut idle = super::ProducerEntry::new(7);
        idle.producer_epoch = 2;
        idle.open_txn_first_offset = Some(Offset(3));
        let mut busy = super::ProducerEntry::new(8);
        busy.last_timestamp = 55;
        busy.remember(BatchMetadata {
            last_sequence: 9,
            last_offset: Offset(109),
            offset_delta: 4,
            timestamp: 55,
        });
        encode_snapshot([idle, busy].iter())
    }

    #[test]
    fn a_snapshot_tells_each_producer_and_its_last_batch() {
        let files = [("00000000000000000110.snapshot", snapshot_bytes())];
        expect![[r#"
            Dumping 00000000000000000110.snapshot
            producerId: 7 producerEpoch: 2 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong[3] lastTimestamp: -1 
            producerId: 8 producerEpoch: -1 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 55 firstSequence: 5 lastSequence: 9 lastOffset: 109 offsetDelta: 4 timestamp: 55
        "#]]
        .assert_eq(&dumped(&files, 1, &[]).0);
        expect![[r#"
            {"type":"producer","producerId":7,"producerEpoch":2,"coordinatorEpoch":-1,"currentTxnFirstOffset":3,"lastTimestamp":-1,"lastBatch":null,"file":"00000000000000000110.snapshot"}
            {"type":"producer","producerId":8,"producerEpoch":-1,"coordinatorEpoch":-1,"currentTxnFirstOffset":null,"lastTimestamp":55,"lastBatch":{"firstSequence":5,"lastSequence":9,"lastOffset":109,"offsetDelta":4,"timestamp":55},"file":"00000000000000000110.snapshot"}
        "#]]
        .assert_eq(&dumped(&files, 1, &["--output", "json"]).0);
    }

    #[test]
    fn a_damaged_snapshot_is_a_fault() {
        let mut bytes = snapshot_bytes();
        *bytes.last_mut().unwrap() ^= 1;
        let (text, faults) = dumped(&[("00000000000000000001.snapshot", bytes)], 1, &[]);
        assert!(text.ends_with("FAULT in 00000000000000000001.snapshot: checksum mismatch\n"), "{text}");
        assert_eq!(faults, 1);
    }

    #[test]
    fn text_is_printed_as_it_is() {
        let files = [("leader-epoch-checkpoint", b"0\n1\n5 100\n".to_vec())];
        assert_eq!(dumped(&files, 1, &[]).0, "Dumping leader-epoch-checkpoint\n0\n1\n5 100\n");
        let files = [("partition.metadata", b"version: 0\ntopic_id: x".to_vec())];
        assert_eq!(dumped(&files, 1, &[]).0, "Dumping partition.metadata\nversion: 0\ntopic_id: x\n");
    }
}
