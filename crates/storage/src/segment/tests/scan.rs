use wire::batch::BatchError;

use super::*;
use crate::disk::OpenOptions;

const V2: &str = "000000000000000700000049000000030\
                  2f78c163300000000000100000000000003e800000000000003edffffffffffffffffffffffffffff\
                  0000000214000000046b300476300018000a02046b31010202680278";
const COMMIT: &str = "00000000000000080000004200000003020203945600300000000000000000000003ee\
                      00000000000003ee00000000000003e80000ffffffff000000012000000008000000010c00000000000500";
const EMPTY: &str = "0000000000000008000000310000000302f85b9bda003000000000ffffffffffffffff\
                     00000000000003ee00000000000003e80000ffffffff00000000";
const V0: &str = "0000000000000000000000101fecd70a0000000000016b0000000176";
const V1: &str = "000000000000000000000018e4e321bc010000000000000003e8000000016b0000000176";

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn scan(bytes: &[u8], read_ahead: usize) -> BatchScan {
    let file = CrashDisk::new().open(Path::new("/f"), OpenOptions::CREATE).unwrap();
    file.write_at(bytes, 0).unwrap();
    let end = file.len().unwrap();
    BatchScan::new(file, 0, end, read_ahead)
}

#[test]
fn the_vectors_are_read_and_their_checksums_hold() {
    let bytes = [unhex(V2), unhex(COMMIT), unhex(EMPTY)].concat();
    for read_ahead in [1, 64, 100, 4096] {
        let mut scan = scan(&bytes, read_ahead);
        let mut found = Vec::new();
        while let Some(batch) = scan.next_batch().unwrap() {
            scan.verify_crc(&batch).unwrap();
            found.push(batch);
        }
        let positions: Vec<u64> = found.iter().map(|batch| batch.position).collect();
        assert_eq!(positions, [0, 85, 163]);
        assert_eq!(found[0].header.last_offset(), Offset(8));
        assert!(found[1].header.is_control() && found[2].header.records_count == 0);
        assert_eq!(scan.position(), 224);
    }
}

#[test]
fn a_batch_that_runs_past_the_end_ends_the_scan_silently_wherever_it_is_cut() {
    let bytes = [unhex(V2), unhex(COMMIT)].concat();
    for cut in 85..bytes.len() {
        let mut scan = scan(&bytes[..cut], 4096);
        assert!(scan.next_batch().unwrap().is_some());
        assert_eq!(scan.next_batch().unwrap(), None, "cut at {cut}");
        assert_eq!(scan.position(), 85);
    }
}

#[test]
fn a_size_below_that_of_any_format_is_corruption_if_enough_bytes_are_left_to_tell() {
    let zeros = |count| [unhex(V2), vec![0; count]].concat();
    for count in [1, 17] {
        let mut scan = scan(&zeros(count), 4096);
        scan.next_batch().unwrap();
        assert_eq!(scan.next_batch().unwrap(), None, "{count} bytes are the end");
    }
    let mut scan = scan(&zeros(18), 4096);
    scan.next_batch().unwrap();
    let result = scan.next_batch();
    let Err(ScanError::Corrupt { position: 85, error }) = result else { panic!("{result:?}") };
    assert_eq!(error, BatchError::LengthTooSmall { length: 0 });
}

#[test]
fn a_magic_above_two_is_read_as_two() {
    let mut bytes = unhex(V2);
    bytes[16] = 3;
    assert_eq!(scan(&bytes, 4096).next_batch().unwrap().unwrap().header.magic, 3);
    bytes[16] = 0xff;
    assert!(matches!(scan(&bytes, 4096).next_batch(), Err(ScanError::Corrupt { position: 0, .. })));
}

#[test]
fn a_message_set_of_an_old_format_is_told_apart_from_corruption() {
    for (text, format) in [(V0, 0), (V1, 1)] {
        let result = scan(&unhex(text), 4096).next_batch();
        assert!(matches!(result, Err(ScanError::OldFormat { position: 0, magic }) if magic == format));
    }
}

#[test]
fn a_changed_byte_under_the_checksum_is_noticed_and_one_outside_is_not() {
    let good = unhex(V2);
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        let mut scan = scan(&bytes, 64);
        match scan.next_batch() {
            Ok(Some(batch)) => assert_eq!(scan.verify_crc(&batch).is_ok(), at < 17, "byte {at}"),
            _ => assert!((8..17).contains(&at), "byte {at}"),
        }
    }
}

#[test]
fn a_file_that_was_cut_during_the_scan_is_an_error_and_no_loop() {
    let file = CrashDisk::new().open(Path::new("/f"), OpenOptions::CREATE).unwrap();
    file.write_at(&unhex(V2), 0).unwrap();
    let mut scan = BatchScan::new(file.clone(), 0, 85, 61);
    let batch = scan.next_batch().unwrap().unwrap();
    file.set_len(70).unwrap();
    assert!(matches!(scan.verify_crc(&batch), Err(ScanError::Io(_))));
    file.set_len(30).unwrap();
    let mut scan = BatchScan::new(file, 0, 85, 61);
    assert!(scan.next_batch().is_err());
}

#[test]
fn the_read_ahead_bounds_the_memory_of_a_scan() {
    let big = batch(100, 0, &vec![1; 500]);
    assert!(big.bytes.len() > 50_000);
    let mut scan = scan(&big.bytes, 4096);
    let found = scan.next_batch().unwrap().unwrap();
    scan.verify_crc(&found).unwrap();
    assert!(scan.buffered_capacity() <= 4096);
}
