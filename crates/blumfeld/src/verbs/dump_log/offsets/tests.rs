//! Records of `__consumer_offsets`, printed by Kafka's own tool and by ours.

use wire::batch::{BatchBuilder, Compression};
use wire::types::Millis;

use super::super::tests::dumped;

const LOG: &str = "00000000000000000000.log";
const TIME: Millis = Millis(1_700_000_000_000);

fn unhex(text: &str) -> Option<Vec<u8>> {
    match text {
        "-" => None,
        "=" => Some(Vec::new()),
        _ => Some(
            (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect(),
        ),
    }
}

/// A log of the records, each key and value in hexadecimal.
fn log<'a>(records: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Compression::None);
    for (key, value) in records {
        builder.append(TIME, unhex(key).as_deref(), unhex(value).as_deref());
    }
    builder.build().unwrap().bytes.to_vec()
}

#[test]
fn records_are_printed_as_kafkas_own_tool_prints_them() {
    let rows = include_str!("kafka.txt").lines().skip(1).map(|line| {
        let (key, rest) = line.split_once(' ').unwrap();
        let (value, expected) = rest.split_once(' ').unwrap();
        ((key, value), expected)
    });
    let (records, expected): (Vec<_>, Vec<_>) = rows.unzip();
    let arguments = ["--offsets-decoder", "--skip-record-metadata"];
    let (text, faults) = dumped(&[(LOG, log(records))], 1, &arguments);
    let printed: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(printed.len(), expected.len());
    for (printed, expected) in printed.iter().zip(expected) {
        assert_eq!(*printed, expected);
    }
    assert_eq!(faults, 0);
}

#[test]
fn a_record_that_cannot_be_read_is_told_and_is_no_fault() {
    let bytes = log([
        ("0001000167", "0003"),
        ("000100016700017400000003", "0009000000000000002a"),
        ("0002000167", "000300"),
        ("-", "00"),
    ]);
    let (text, faults) = dumped(&[(LOG, bytes)], 1, &["--offsets-decoder", "--skip-record-metadata"]);
    let printed: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
    for (line, beginning) in printed.iter().zip([
        "| key: Error at offset 0, skipping. Could not read record with version 1 from key's buffer due to: ",
        "| key: Error at offset 1, skipping. Could not read record with version 9 from value's buffer due to: ",
        "| key: Error at offset 2, skipping. Could not read record with version 3 from value's buffer due to: ",
        "| key: Error at offset 3, skipping. The record has no key.",
    ]) {
        assert!(line.starts_with(beginning) && !line.contains("payload"), "{line}");
    }
    assert_eq!((printed.len(), faults), (4, 0));
}

#[test]
fn programs_get_keys_and_values_as_objects() {
    let bytes = log([
        ("0002000167", "-"),
        ("000100016700017400000003", "0002000000000000002a00016d0000018bcfe56800"),
    ]);
    let (text, _) = dumped(&[(LOG, bytes)], 1, &["--offsets-decoder", "--output", "json"]);
    let records: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let group = serde_json::json!({ "type": "2", "data": { "group": "g" } });
    assert_eq!((&records[1]["key"], &records[1]["payload"]), (&group, &serde_json::Value::Null));
    assert_eq!(records[2]["key"]["data"]["topic"], "t");
    assert_eq!(records[2]["payload"]["data"]["offset"], 42);
}

#[test]
fn with_their_metadata_records_are_told_at_its_end() {
    let bytes = log([("0002000167", "-")]);
    let (text, _) = dumped(&[(LOG, bytes)], 1, &["--offsets-decoder"]);
    let line = "| offset: 0 CreateTime: 1700000000000 keySize: 5 valueSize: -1 sequence: -1 headerKeys: [] key: \
        {\"type\":\"2\",\"data\":{\"group\":\"g\"}} payload: <DELETE>";
    assert_eq!(text.lines().last(), Some(line));
}
