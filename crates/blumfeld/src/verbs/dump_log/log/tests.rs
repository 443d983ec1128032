//! Logs of known batches, sound and damaged.

use expect_test::expect;
use wire::batch::control::{EndTxnMarker, MarkerType};
use wire::types::Millis;

use super::super::tests::{batch, dumped};

const LOG: &str = "00000000000000000007.log";

fn log(bytes: &[u8], arguments: &[&str]) -> (String, usize) {
    dumped(&[(LOG, bytes.to_vec())], 1, arguments)
}

#[test]
fn batches_are_told_in_kafkas_lines() {
    let (text, faults) = log(&[batch(7, 1000), batch(9, 1001)].concat(), &[]);
    expect![[r#"
        Dumping 00000000000000000007.log
        Log starting offset: 7
        baseOffset: 7 lastOffset: 8 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 3 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1000 size: 86 magic: 2 compresscodec: none crc: 659946658 isvalid: true
        baseOffset: 9 lastOffset: 10 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 3 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 86 CreateTime: 1001 size: 86 magic: 2 compresscodec: none crc: 3815386167 isvalid: true
    "#]]
    .assert_eq(&text);
    assert_eq!(faults, 0);
}

/// The lines of records.
fn records(bytes: &[u8], arguments: &[&str]) -> String {
    let (text, faults) = log(bytes, arguments);
    assert_eq!(faults, 0);
    let lines = text.lines().filter(|line| !line.starts_with("baseOffset"));
    lines.skip(2).map(|line| format!("{line}\n")).collect()
}

#[test]
fn records_are_told_with_or_without_their_contents() {
    let bytes = batch(7, 1000);
    expect![[r#"
        | offset: 7 CreateTime: 1000 keySize: 2 valueSize: 2 sequence: -1 headerKeys: [a,b]
        | offset: 8 CreateTime: 995 keySize: -1 valueSize: -1 sequence: -1 headerKeys: []
    "#]]
    .assert_eq(&records(&bytes, &["--deep-iteration"]));
    expect![[r#"
        | offset: 7 CreateTime: 1000 keySize: 2 valueSize: 2 sequence: -1 headerKeys: [a,b] key: k0 payload: v0
        | offset: 8 CreateTime: 995 keySize: -1 valueSize: -1 sequence: -1 headerKeys: []
    "#]]
    .assert_eq(&records(&bytes, &["--print-data-log"]));
    assert_eq!(records(&bytes, &["--print-data-log", "--skip-record-metadata"]), "| key: k0 payload: v0\n\n");
}

#[test]
fn a_marker_tells_how_its_transaction_ended() {
    let marker = EndTxnMarker { marker_type: MarkerType::Abort, coordinator_epoch: 4 };
    let batch = marker.to_batch(11, 2, Millis(99)).unwrap();
    let mut header = batch.header;
    header.base_offset = wire::types::Offset(7);
    let bytes = [&header.to_bytes()[..], batch.body()].concat();
    expect![[r#"
        | offset: 7 CreateTime: 99 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] endTxnMarker: ABORT coordinatorEpoch: 4
    "#]]
    .assert_eq(&records(&bytes, &["--print-data-log"]));
}

#[test]
fn programs_get_objects() {
    let (text, _) = log(&batch(7, 1000), &["--output", "json", "--print-data-log"]);
    expect![[r#"
        {"type":"batch","baseOffset":7,"lastOffset":8,"count":2,"baseSequence":-1,"lastSequence":-1,"producerId":-1,"producerEpoch":-1,"partitionLeaderEpoch":3,"isTransactional":false,"isControl":false,"deleteHorizonMs":null,"position":0,"timestampType":"CreateTime","maxTimestamp":1000,"size":86,"magic":2,"compression":"none","crc":659946658,"isValid":true,"file":"00000000000000000007.log"}
        {"type":"record","offset":7,"timestampType":"CreateTime","timestamp":1000,"keySize":2,"valueSize":2,"sequence":-1,"headerKeys":["a","b"],"key":"k0","payload":"v0","file":"00000000000000000007.log"}
        {"type":"record","offset":8,"timestampType":"CreateTime","timestamp":995,"keySize":null,"valueSize":null,"sequence":-1,"headerKeys":[],"key":null,"payload":null,"file":"00000000000000000007.log"}
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_wrong_checksum_is_a_fault_and_what_follows_is_still_told() {
    let mut bytes = [batch(7, 1000), batch(9, 1001)].concat();
    let last_of_first = bytes.len() / 2 - 1;
    bytes[last_of_first] ^= 1;
    let (text, faults) = log(&bytes, &["--deep-iteration"]);
    assert!(text.contains("isvalid: false") && text.contains("isvalid: true"), "{text}");
    assert!(
        text.contains("FAULT in 00000000000000000007.log: the checksum of the batch at position 0 is wrong")
    );
    assert_eq!(faults, 1);
}

#[test]
fn a_batch_that_is_cut_off_is_told_and_is_no_fault() {
    let whole = batch(7, 1000);
    let bytes = [&whole[..], &whole[..70]].concat();
    let (text, faults) = log(&bytes, &[]);
    assert!(text.ends_with("Found 70 invalid bytes at the end of 00000000000000000007.log\n"), "{text}");
    assert_eq!(faults, 0);
    let (text, _) = log(&bytes, &["--max-bytes", "90"]);
    assert!(!text.contains("invalid bytes"), "{text}");
}

#[test]
fn zeros_at_the_end_are_room_and_an_impossible_batch_is_a_fault() {
    let room = [batch(7, 1000), vec![0; 500]].concat();
    let (text, faults) = log(&room, &[]);
    assert!(text.ends_with("Found 500 invalid bytes at the end of 00000000000000000007.log\n"), "{text}");
    assert_eq!(faults, 0);
    let mut impossible = batch(9, 1001);
    impossible[8..12].copy_from_slice(&1_i32.to_be_bytes());
    let (text, faults) = log(&[batch(7, 1000), impossible].concat(), &[]);
    assert!(text.contains("FAULT in 00000000000000000007.log: corrupt batch at position 86"), "{text}");
    assert_eq!(faults, 1);
}

#[test]
fn an_offset_that_comes_twice_is_a_fault() {
    let (text, faults) = log(&[batch(7, 1000), batch(8, 1001)].concat(), &[]);
    assert!(text.contains("offset 8 comes after it was passed"), "{text}");
    assert_eq!(faults, 1);
    assert_eq!(log(&batch(5, 1000), &[]).1, 1);
    assert_eq!(log(&[batch(7, 1000), batch(20, 1001)].concat(), &[]).1, 0);
}

#[test]
fn an_empty_log_is_sound() {
    assert_eq!(log(&[], &[]), ("Dumping 00000000000000000007.log\nLog starting offset: 7\n".to_owned(), 0));
}
