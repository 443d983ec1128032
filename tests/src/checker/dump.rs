//! The batches of a partition's segment files, as far as a comparison needs them. The layout is written down here
//! once more, apart from the broker's own code on purpose.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Bytes before the fields that the size counts.
const FRAME: usize = 12;
/// Bytes of a batch without records.
const HEADER: usize = 61;
const CRC_FROM: usize = 21;

/// A batch of format v2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The epoch of the leader that appended it.
    pub leader_epoch: i32,
    /// Who produced it; -1 without idempotence.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The sequence number of its first record.
    pub base_sequence: i32,
    /// The checksum that it carries.
    pub crc: u32,
    /// The checksum of all its bytes, the whole header included.
    pub digest: u32,
}

impl Batch {
    /// Reads the batch with which `bytes` begin, and how long it is; none when they end before it does.
    ///
    /// # Errors
    /// When these bytes are no batch, or its checksum is wrong.
    fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>> {
        let Some(frame) = bytes.get(..FRAME) else { return Ok(None) };
        let size = usize::try_from(i32::from_be_bytes(field(frame, 8)?)).context("a negative size")?;
        // Bytes that were reserved and never written.
        if size == 0 {
            return Ok(None);
        }
        let Some(batch) = bytes.get(..FRAME + size) else { return Ok(None) };
        ensure!(batch.len() >= HEADER, "a batch of {} bytes", batch.len());
        ensure!(batch.get(16) == Some(&2), "format {:?}", batch.get(16));
        let base_offset = i64::from_be_bytes(field(batch, 0)?);
        let crc = u32::from_be_bytes(field(batch, 17)?);
        let actual = crc32c::crc32c(batch.get(CRC_FROM..).unwrap_or_default());
        ensure!(crc == actual, "checksum {actual:08x} of a batch that says {crc:08x}");
        let read = Self {
            base_offset,
            last_offset: base_offset + i64::from(i32::from_be_bytes(field(batch, 23)?)),
            leader_epoch: i32::from_be_bytes(field(batch, 12)?),
            producer_id: i64::from_be_bytes(field(batch, 43)?),
            producer_epoch: i16::from_be_bytes(field(batch, 51)?),
            base_sequence: i32::from_be_bytes(field(batch, 53)?),
            crc,
            digest: crc32c::crc32c(batch),
        };
        Ok(Some((read, batch.len())))
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().context("a short batch")
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            base_offset,
            last_offset,
            leader_epoch,
            producer_id,
            producer_epoch,
            base_sequence,
            crc,
            ..
        } = self;
        write!(
            f,
            "batch {base_offset}..={last_offset} epoch {leader_epoch} producer {producer_id}/{producer_epoch} \
             sequence {base_sequence} crc {crc:08x}"
        )
    }
}

/// The log of one replica.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dump {
    /// Its batches in the order of the files.
    pub batches: Vec<Batch>,
}

impl Dump {
    /// Offset of the first record, if there is any.
    #[must_use]
    pub fn start(&self) -> Option<i64> {
        self.batches.first().map(|batch| batch.base_offset)
    }

    /// The offset after the last record, 0 for an empty log.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.batches.last().map_or(0, |batch| batch.last_offset + 1)
    }

    /// Adds the batches of one segment file; a batch that is cut off at the end is left out.
    ///
    /// # Errors
    /// When the bytes are no batches.
    pub fn add_segment(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        let position = |rest: &[u8]| bytes.len() - rest.len();
        while let Some((batch, length)) =
            Batch::read(rest).with_context(|| format!("at position {}", position(rest)))?
        {
            rest = rest.get(length..).unwrap_or_default();
            self.batches.push(batch);
        }
        Ok(())
    }
}

/// Reads the segment files in the folder of a partition. Its broker should be stopped or idle.
///
/// # Errors
/// When a file cannot be read, or holds something else than batches.
pub fn dump_directory(folder: &Path) -> Result<Dump> {
    let mut segments = Vec::new();
    for file in folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            segments.push(path);
        }
    }
    // Names are offsets with leading zeros.
    segments.sort();
    let mut dump = Dump::default();
    for path in segments {
        let named = || path.display().to_string();
        dump.add_segment(&std::fs::read(&path).with_context(named)?).with_context(named)?;
    }
    Ok(dump)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Draft;

    #[test]
    fn segments_are_read_in_order_and_a_torn_tail_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let first = Draft::of_values(1, &[b"a", b"b"]).from_producer(9, 1, 0);
        let second = Draft { base_offset: 2, leader_epoch: 4, ..Draft::of_values(1, &[b"c"]) };
        std::fs::write(folder.path().join("00000000000000000000.log"), first.build()).unwrap();
        let torn = [second.build(), second.build().slice(..65)].concat();
        std::fs::write(folder.path().join("00000000000000000002.log"), torn).unwrap();
        std::fs::write(folder.path().join("00000000000000000002.index"), [0; 8]).unwrap();
        let dump = dump_directory(folder.path()).unwrap();
        assert_eq!((dump.batches.len(), dump.start(), dump.end()), (2, Some(0), 3));
        assert_eq!((dump.batches[0].producer_id, dump.batches[0].last_offset), (9, 1));
        assert_eq!(dump.batches[1].leader_epoch, 4);
    }

    #[test]
    fn reserved_bytes_end_a_segment_and_damage_is_told_with_its_place() {
        let batch = Draft::of_values(1, &[b"a"]).build();
        let mut dump = Dump::default();
        dump.add_segment(&[&batch[..], &[0; 100]].concat()).unwrap();
        assert_eq!(dump.batches.len(), 1);
        let mut damaged = batch.to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        let error = dump.add_segment(&[&batch[..], &damaged].concat()).unwrap_err();
        assert!(format!("{error:#}").starts_with(&format!("at position {}: checksum", batch.len())));
    }
}
