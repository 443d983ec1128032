//! Producer snapshots (`<offset>.snapshot`): the state of all producers of a log up to (exclusive) the offset
//! in the name, so that a start need not read the whole log (KIP-98).
//!
//! A version, a checksum (CRC-32C of what follows it), a count, and 46 bytes for each producer. Only the last
//! batch of a producer is kept; `partition_log/recall.rs` finds those before it in the log when a producer repeats one.

use std::io;
use std::path::Path;

use kernel::producer::{BatchMetadata, ProducerEntry};
use wire::types::Offset;

use crate::disk::Disk;
use crate::disk::atomic::{Durability, read_file, write_atomically};

const VERSION: i16 = 1;
const ENTRY_BYTES: usize = 46;
/// Longer files are refused: 20 million producers.
const MAX_FILE_LEN: u64 = 1 << 30;

/// Why a snapshot cannot be used. Except for the first, the file should be removed and an older one tried.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The disk failed.
    #[error("cannot read the producer snapshot: {0}")]
    Io(#[from] io::Error),
    /// The version is not 1.
    #[error("version {found} is not known, only 1 is")]
    Version {
        /// The version in the file.
        found: i16,
    },
    /// The checksum does not match.
    #[error("checksum mismatch")]
    Checksum,
    /// The length does not fit the count of producers.
    #[error("the length does not fit the count of producers")]
    Length,
}

impl SnapshotError {
    /// Whether the file itself is bad, rather than the disk.
    pub fn is_corrupt(&self) -> bool {
        !matches!(self, Self::Io(_))
    }
}

/// The content of a snapshot file.
pub fn encode_snapshot<'a>(producers: impl ExactSizeIterator<Item = &'a ProducerEntry>) -> Vec<u8> {
    let mut body = Vec::with_capacity(producers.len().saturating_mul(ENTRY_BYTES).saturating_add(4));
    // More producers than an i32 counts would take 90 GB of memory before they came here.
    body.extend_from_slice(&i32::try_from(producers.len()).unwrap_or(i32::MAX).to_be_bytes());
    for producer in producers {
        encode_entry(producer, &mut body);
    }
    let mut bytes = Vec::with_capacity(body.len().saturating_add(6));
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&body).to_be_bytes());
    bytes.append(&mut body);
    bytes
}

fn encode_entry(producer: &ProducerEntry, out: &mut Vec<u8>) {
    let none = BatchMetadata { last_sequence: -1, last_offset: Offset(-1), offset_delta: 0, timestamp: -1 };
    let last = producer.last_batch().copied().unwrap_or(none);
    out.extend_from_slice(&producer.producer_id.to_be_bytes());
    out.extend_from_slice(&producer.producer_epoch.to_be_bytes());
    out.extend_from_slice(&last.last_sequence.to_be_bytes());
    out.extend_from_slice(&last.last_offset.0.to_be_bytes());
    out.extend_from_slice(&last.offset_delta.to_be_bytes());
    out.extend_from_slice(&producer.last_timestamp.to_be_bytes());
    out.extend_from_slice(&producer.coordinator_epoch.to_be_bytes());
    out.extend_from_slice(&producer.open_txn_first_offset.map_or(-1, |offset| offset.0).to_be_bytes());
}

/// Reads the content of a snapshot file.
pub fn decode_snapshot(bytes: &[u8]) -> Result<Vec<ProducerEntry>, SnapshotError> {
    let mut rest = bytes;
    let version = i16::from_be_bytes(take(&mut rest).ok_or(SnapshotError::Length)?);
    if version != VERSION {
        return Err(SnapshotError::Version { found: version });
    }
    let checksum = u32::from_be_bytes(take(&mut rest).ok_or(SnapshotError::Length)?);
    if checksum != crc32c::crc32c(rest) {
        return Err(SnapshotError::Checksum);
    }
    let count = i32::from_be_bytes(take(&mut rest).ok_or(SnapshotError::Length)?);
    let entries = rest.chunks_exact(ENTRY_BYTES);
    if !entries.remainder().is_empty() || usize::try_from(count) != Ok(entries.len()) {
        return Err(SnapshotError::Length);
    }
    entries.map(|entry| decode_entry(entry).ok_or(SnapshotError::Length)).collect()
}

fn decode_entry(mut bytes: &[u8]) -> Option<ProducerEntry> {
    let bytes = &mut bytes;
    let mut entry = ProducerEntry::new(i64::from_be_bytes(take(bytes)?));
    entry.producer_epoch = i16::from_be_bytes(take(bytes)?);
    let last_sequence = i32::from_be_bytes(take(bytes)?);
    let last_offset = Offset(i64::from_be_bytes(take(bytes)?));
    let offset_delta = i32::from_be_bytes(take(bytes)?);
    entry.last_timestamp = i64::from_be_bytes(take(bytes)?);
    entry.coordinator_epoch = i32::from_be_bytes(take(bytes)?);
    let open = i64::from_be_bytes(take(bytes)?);
    entry.open_txn_first_offset = (open >= 0).then_some(Offset(open));
    // Offset -1: only a marker of this producer was seen (KAFKA-9144).
    if last_offset.0 >= 0 {
        let timestamp = entry.last_timestamp;
        entry.remember(BatchMetadata { last_sequence, last_offset, offset_delta, timestamp });
    }
    Some(entry)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = bytes.split_first_chunk()?;
    *bytes = tail;
    Some(*head)
}

/// Reads a snapshot file; `None` if there is none.
pub fn read_snapshot(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<ProducerEntry>>, SnapshotError> {
    match read_file(disk, path, MAX_FILE_LEN) {
        Ok(Some(bytes)) => decode_snapshot(&bytes).map(Some),
        Ok(None) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(SnapshotError::Length),
        Err(error) => Err(error.into()),
    }
}

/// Writes a snapshot file. [`Durability::Deferred`] keeps a roll from waiting for the disk (KAFKA-15046); the
/// recovery point must not pass the snapshot's offset before the file was synced (KAFKA-9892).
pub fn write_snapshot<'a>(
    disk: &dyn Disk,
    path: &Path,
    producers: impl ExactSizeIterator<Item = &'a ProducerEntry>,
    durability: Durability,
) -> io::Result<()> {
    write_atomically(disk, path, &encode_snapshot(producers), durability)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::crash::{CrashDisk, CrashMode};

    /// Version, checksum and count.
    const HEADER_BYTES: usize = 10;

    /// One producer: id 1000, epoch 0, last sequence 4, last offset 12, delta 2, timestamp 1005.
    const VECTOR: &str = "0001bdc7d2ca0000000100000000000003e8000000000004000000000000000c00000002\
                          00000000000003edffffffffffffffffffffffff";

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    fn vector_entry() -> ProducerEntry {
        let mut entry = ProducerEntry::new(1000);
        entry.producer_epoch = 0;
        entry.last_timestamp = 1005;
        let last =
            BatchMetadata { last_sequence: 4, last_offset: Offset(12), offset_delta: 2, timestamp: 1005 };
        entry.remember(last);
        entry
    }

    #[test]
    fn the_vector_of_one_producer_is_written_and_read() {
        assert_eq!(encode_snapshot([vector_entry()].iter()), unhex(VECTOR));
        assert_eq!(decode_snapshot(&unhex(VECTOR)).unwrap(), [vector_entry()]);
    }

    #[test]
    fn only_the_last_batch_of_a_producer_is_kept() {
        let mut entry = vector_entry();
        let next =
            BatchMetadata { last_sequence: 9, last_offset: Offset(17), offset_delta: 4, timestamp: 2000 };
        entry.last_timestamp = 2000;
        entry.remember(next);
        let read = decode_snapshot(&encode_snapshot([entry].iter())).unwrap();
        assert_eq!(read[0].batches(), [next]);
    }

    #[test]
    fn a_producer_with_only_a_marker_reads_back_without_a_batch() {
        let mut entry = ProducerEntry::new(7);
        entry.producer_epoch = 3;
        entry.coordinator_epoch = 5;
        entry.last_timestamp = 1006;
        let read = decode_snapshot(&encode_snapshot([entry].iter())).unwrap();
        assert_eq!(read, [entry]);
        assert!(read[0].batches().is_empty());
    }

    #[test]
    fn a_snapshot_without_producers_has_ten_bytes() {
        let bytes = encode_snapshot([].iter());
        assert_eq!(bytes.len(), HEADER_BYTES);
        assert!(decode_snapshot(&bytes).unwrap().is_empty());
    }

    #[test]
    fn another_version_a_wrong_checksum_and_a_wrong_length_are_told_apart() {
        let good = unhex(VECTOR);
        let mut version = good.clone();
        version[1] = 2;
        assert!(matches!(decode_snapshot(&version), Err(SnapshotError::Version { found: 2 })));
        for at in 2..good.len() {
            let mut flipped = good.clone();
            flipped[at] ^= 1;
            assert!(matches!(decode_snapshot(&flipped), Err(SnapshotError::Checksum)), "byte {at}");
        }
        for length in 0..HEADER_BYTES {
            assert!(decode_snapshot(&good[..length]).unwrap_err().is_corrupt());
        }
        // A right checksum over a wrong count.
        for count in [0i32, 2, -1, i32::MAX] {
            let mut body = good[6..].to_vec();
            body[..4].copy_from_slice(&count.to_be_bytes());
            let bytes = [&[0, 1], &crc32c::crc32c(&body).to_be_bytes()[..], &body[..]].concat();
            assert!(matches!(decode_snapshot(&bytes), Err(SnapshotError::Length)), "count {count}");
        }
    }

    #[test]
    fn a_torn_snapshot_after_a_lost_power_is_noticed() {
        for seed in 0..100 {
            let disk = CrashDisk::new();
            let path = Path::new("/00000000000000000013.snapshot");
            write_snapshot(&disk, path, [vector_entry()].iter(), Durability::Deferred).unwrap();
            match read_snapshot(&disk.crash(CrashMode::PowerLoss { seed }), path) {
                Ok(found) => assert!(found.is_none_or(|entries| entries == [vector_entry()])),
                Err(error) => assert!(error.is_corrupt()),
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_snapshot(&bytes);
            // The same with a right version and checksum, so that the entries are looked at.
            let sealed = [&[0, 1], &crc32c::crc32c(&bytes).to_be_bytes()[..], &bytes[..]].concat();
            let _ = decode_snapshot(&sealed);
        }

        #[test]
        fn producers_read_back(
            producers in prop::collection::vec(
                (any::<i64>(), any::<i16>(), any::<i32>(), 0..i64::MAX, any::<i32>(), any::<i64>(),
                 any::<i32>(), prop::option::of(0..i64::MAX)),
                0..20,
            ),
        ) {
            let entries: Vec<ProducerEntry> = producers
                .into_iter()
                .map(|(id, epoch, last_sequence, offset, offset_delta, timestamp, coordinator, open)| {
                    let mut entry = ProducerEntry::new(id);
                    entry.producer_epoch = epoch;
                    entry.coordinator_epoch = coordinator;
                    entry.last_timestamp = timestamp;
                    entry.open_txn_first_offset = open.map(Offset);
                    let last_offset = Offset(offset);
                    entry.remember(BatchMetadata { last_sequence, last_offset, offset_delta, timestamp });
                    entry
                })
                .collect();
            prop_assert_eq!(decode_snapshot(&encode_snapshot(entries.iter())).unwrap(), entries);
        }
    }
}
