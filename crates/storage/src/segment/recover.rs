//! Bringing a segment back after a crash: every batch is checked, the log is cut at the first bad one, and
//! the indexes are built anew. Streams, so that a batch larger than memory is no danger.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use wire::batch::BatchHeader;
use wire::types::Offset;

use super::scan::{BatchScan, FileBatch, ScanError};
use super::verify::IndexBuilder;
use super::{FirstTimestamp, Segment, SegmentError};
use crate::sync::lock;

/// Control batches up to this size are handed to the visitor; a marker has 78 bytes.
const MAX_CONTROL_BYTES: usize = 64 << 10;

/// A good batch, met while a segment is recovered or read again.
#[derive(Clone, Debug)]
pub struct RecoveredBatch {
    /// Where it starts in the log file, in bytes.
    pub position: u64,
    /// Its fixed fields.
    pub header: BatchHeader,
    /// The whole batch if it is a control batch of a sensible size.
    pub control: Option<Bytes>,
}

/// What the recovery of a segment came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Bytes that were cut from the end of the log; if there are any, later segments must go.
    pub truncated_bytes: u64,
    /// The offset after the last good record; the base offset if there is none.
    pub next_offset: Offset,
}

/// Whether a batch can come after `last` in a log: its offsets lie beyond, and its leader is no earlier one. When
/// the power fails after a log was cut and written anew, a good batch of before the cut can lie after a new one.
pub(crate) fn may_follow(batch: &BatchHeader, last: &BatchHeader) -> bool {
    let (epoch, last_epoch) = (batch.partition_leader_epoch, last.partition_leader_epoch);
    batch.base_offset > last.last_offset() && (epoch.0 < 0 || epoch >= last_epoch)
}

impl Segment {
    /// Checks all batches, cuts the log at the first bad one or one that cannot follow, and builds the three
    /// indexes anew; `visit` sees each good batch in order and may append to the transaction index. Not durable
    /// until it is flushed.
    ///
    /// Fails with [`SegmentError::OffsetOverflow`] if an offset does not fit the segment, which must be split
    /// then ([`Segment::split`]), and on a batch of an old format; nothing is cut then.
    pub fn recover(
        &self,
        visit: &mut dyn FnMut(&RecoveredBatch) -> Result<(), SegmentError>,
    ) -> Result<Recovered, SegmentError> {
        let (recovered, builder) = self.check_batches(visit)?;
        builder.finish(self)?;
        Ok(recovered)
    }

    /// As [`Segment::recover`], for the segment that will be appended to: its indexes are left open for what comes.
    /// Nothing is written if the log is whole and so small that no entry is due.
    pub fn recover_active(
        &self,
        visit: &mut dyn FnMut(&RecoveredBatch) -> Result<(), SegmentError>,
    ) -> Result<Recovered, SegmentError> {
        self.check_batches(visit).map(|(recovered, _)| recovered)
    }

    fn check_batches(
        &self,
        visit: &mut dyn FnMut(&RecoveredBatch) -> Result<(), SegmentError>,
    ) -> Result<(Recovered, IndexBuilder), SegmentError> {
        let mut builder = IndexBuilder::start(self)?;
        self.txn_index.reset().map_err(|error| self.txn(error))?;
        self.recent.clear();
        let mut next_offset = self.base();
        let mut valid = 0;
        let mut last: Option<BatchHeader> = None;
        let mut scan = self.scan_at(0)?;
        while let Some(batch) = self.next_checked(&mut scan)? {
            if last.is_some_and(|last| !may_follow(&batch.header, &last)) {
                tracing::warn!(
                    segment = %self.log().path().display(), position = batch.position,
                    "batch is of an earlier life of the log; the log is cut before it"
                );
                break;
            }
            let last_offset = batch.header.last_offset();
            if !self.covers(last_offset) {
                return Err(SegmentError::OffsetOverflow { base: self.base(), offset: last_offset });
            }
            builder.add(self, &batch)?;
            visit(&self.with_control(&batch)?)?;
            next_offset = batch.header.next_offset();
            valid = batch.end();
            last = Some(batch.header);
        }
        let truncated_bytes = self.cut(valid)?;
        {
            let mut state = lock(&self.state);
            state.max_timestamp = Some(builder.max_timestamp);
            state.first_timestamp = FirstTimestamp::Unread;
            state.bytes_since_index_entry = 0;
        }
        self.indexes_checked.store(true, Ordering::Release);
        Ok((Recovered { truncated_bytes, next_offset }, builder))
    }

    /// The next batch if it is whole and its checksum right; `None` where the good part ends.
    pub(super) fn next_checked(&self, scan: &mut BatchScan) -> Result<Option<FileBatch>, SegmentError> {
        let checked = match scan.next_batch() {
            Ok(Some(batch)) => scan.verify_crc(&batch).map(|()| Some(batch)),
            // A torn header may look like one of an old format.
            Err(ScanError::OldFormat { position, magic }) => Err(scan.old_or_corrupt(position, magic)),
            other => other,
        };
        match checked {
            Err(ScanError::Corrupt { position, error }) => {
                tracing::warn!(
                    segment = %self.log().path().display(), position, %error,
                    "bad batch; the log is cut before it"
                );
                Ok(None)
            }
            other => other.map_err(|error| self.scan_error(error)),
        }
    }

    /// A batch as [`Segment::recover`] shows it, for reading a log again without recovery.
    pub fn with_control(&self, batch: &FileBatch) -> Result<RecoveredBatch, SegmentError> {
        let wanted = batch.header.is_control() && batch.header.size_in_bytes() <= MAX_CONTROL_BYTES;
        let control = if wanted { Some(self.read_batch(batch)?) } else { None };
        Ok(RecoveredBatch { position: batch.position, header: batch.header, control })
    }

    fn cut(&self, valid: u64) -> Result<u64, SegmentError> {
        let cut = self.size().saturating_sub(valid);
        if cut > 0 {
            self.size.store(valid, Ordering::Release);
            let file = self.log().handle().map_err(|error| self.io(error))?;
            file.set_len(valid).map_err(|error| self.io(error))?;
            // Before other records take its place (L6).
            file.sync_data().map_err(|error| self.io(error))?;
        }
        Ok(cut)
    }
}
