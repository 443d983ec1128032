//! A run of batches in memory: a request's records, a fetched part of a log, a segment's bytes.
//!
//! A partial batch at the end is no error: fetches cut where they must, and a torn tail looks the same.
//! Every other fault is reported once and ends the run.

use bytes::Bytes;

use super::compress;
use super::input::SliceInput;
use super::record::{self, Limits, RecordShape, Records};
use super::{BatchError, BatchHeader, BatchPrefix, CompressionType, HEADER_LEN, PREFIX_LEN};

/// The newest record format.
const NEWEST_MAGIC: i8 = 2;

/// One batch: its fixed fields, and all its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The fixed fields, as they are in `bytes`.
    pub header: BatchHeader,
    /// The whole batch; as long as the header says.
    pub bytes: Bytes,
}

impl Batch {
    /// The batch at the beginning of `bytes`; what follows it is ignored.
    ///
    /// # Errors
    /// As [`BatchHeader::parse`]; [`BatchError::Truncated`] also if the batch is longer than `bytes`.
    pub fn parse(bytes: &Bytes) -> Result<Self, BatchError> {
        let header = BatchHeader::parse(bytes)?;
        if header.size_in_bytes() > bytes.len() {
            return Err(BatchError::Truncated { available: bytes.len() });
        }
        Ok(Self { header, bytes: bytes.slice(..header.size_in_bytes()) })
    }

    /// Compares the checksum.
    ///
    /// # Errors
    /// [`BatchError::CrcMismatch`].
    pub fn verify_crc(&self) -> Result<(), BatchError> {
        let computed = self.header.compute_crc(self.body());
        if computed == self.header.crc {
            Ok(())
        } else {
            Err(BatchError::CrcMismatch { stored: self.header.crc, computed })
        }
    }

    /// The bytes after the header: the records, compressed if the batch is.
    pub fn body(&self) -> &[u8] {
        self.bytes.get(HEADER_LEN..).unwrap_or_default()
    }

    /// The bytes after the header, sharing the batch's memory.
    pub fn body_bytes(&self) -> Bytes {
        self.bytes.slice(HEADER_LEN.min(self.bytes.len())..)
    }

    /// The records, as a consumer reads them; none if the header counts none, whatever follows it. Control batches are read like others; the checksum is not looked
    /// at.
    pub fn records(&self, limits: Limits) -> Records {
        Records::new(self, limits)
    }

    /// Calls `visit` with the index and shape of each record, as [`records`](Self::records) reads them. Nothing is copied or kept: compressed records
    /// are decompressed piece by piece. Positions of a shape count from the first (decompressed) record.
    ///
    /// # Errors
    /// Any fault of a record or of the compressed stream; `visit` may have been called by then.
    pub fn visit_records(
        &self,
        limits: Limits,
        visit: impl FnMut(usize, &RecordShape),
    ) -> Result<(), BatchError> {
        let count = self.header.records_count;
        if count == 0 {
            return Ok(());
        }
        match self.header.compression()? {
            CompressionType::None => record::walk(&mut SliceInput::new(self.body()), count, visit),
            codec => {
                compress::with_stream(codec, self.body(), limits, |input| record::walk(input, count, visit))
            }
        }
    }

    /// The records without compression, sharing the batch's memory if they are stored so.
    ///
    /// # Errors
    /// [`BatchError::UnknownCompression`], [`BatchError::Compressed`] or [`BatchError::ExpandsTooFar`].
    pub fn decompressed(&self, limits: Limits) -> Result<Bytes, BatchError> {
        match self.header.compression()? {
            CompressionType::None => Ok(self.body_bytes()),
            codec => compress::decompress(codec, self.body(), limits).map(Bytes::from),
        }
    }
}

/// The batches of `bytes`, one after the other.
pub fn batches(bytes: Bytes) -> Batches {
    Batches { bytes, position: 0, failed: false }
}

/// An iterator over batches, see [`batches`]. It ends at a partial batch, and after an error.
#[derive(Clone, Debug)]
pub struct Batches {
    bytes: Bytes,
    position: usize,
    failed: bool,
}

impl Batches {
    /// Where the next batch begins: the number of bytes in whole batches read so far.
    pub fn position(&self) -> usize {
        self.position
    }

    fn read_next(&mut self) -> Result<Option<Batch>, BatchError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        if rest.len() < PREFIX_LEN {
            return Ok(None);
        }
        let prefix = BatchPrefix::parse(rest)?;
        if !(0..=NEWEST_MAGIC).contains(&prefix.magic) {
            return Err(BatchError::UnknownMagic(prefix.magic));
        }
        if prefix.size_in_bytes() > rest.len() {
            return Ok(None);
        }
        if prefix.magic < NEWEST_MAGIC {
            return Err(BatchError::OldFormat(prefix.magic));
        }
        let header = BatchHeader::parse(rest)?;
        let end = self.position + prefix.size_in_bytes();
        let batch = Batch { header, bytes: self.bytes.slice(self.position..end) };
        self.position = end;
        Ok(Some(batch))
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.read_next().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}
