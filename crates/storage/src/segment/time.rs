//! Timestamps: the largest of a segment, the first of its log, and from a time to a record.

use wire::batch::{Batch, Limits};
use wire::types::{LeaderEpoch, Millis, Offset};

use super::scan::{FileBatch, LOOKUP_BYTES, SCAN_BYTES, ScanError};
use super::{FirstTimestamp, Segment, SegmentError};
use crate::sync::lock;
use crate::time_index::TimestampOffset;

/// A record found by its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPosition {
    /// The record's timestamp, in milliseconds since the Unix epoch.
    pub timestamp: Millis,
    /// The record's offset.
    pub offset: Offset,
    /// The leader epoch of its batch; -1 if unknown.
    pub leader_epoch: LeaderEpoch,
}

impl Segment {
    /// The largest timestamp (-1 if there is none) and the last offset of its batch, as one value
    /// (KAFKA-12981). For an opened segment it is what its time index says last.
    pub fn max_timestamp(&self) -> Result<TimestampOffset, SegmentError> {
        if let Some(known) = lock(&self.state).max_timestamp {
            return Ok(known);
        }
        self.check_indexes()?;
        let last = self.time_index.last().map_err(|error| self.index(error))?;
        Ok(*lock(&self.state).max_timestamp.get_or_insert(last))
    }

    /// What retention by time goes by: the largest timestamp, or else when the log file was last changed.
    pub fn largest_timestamp(&self) -> Result<Millis, SegmentError> {
        let max = self.max_timestamp()?.timestamp;
        if max.0 >= 0 {
            return Ok(max);
        }
        self.modified()
    }

    /// The largest timestamp of the first appended set; `None` in an empty segment.
    pub(crate) fn first_timestamp(&self) -> Result<Option<Millis>, SegmentError> {
        if let FirstTimestamp::Known(known) = lock(&self.state).first_timestamp {
            return Ok(known);
        }
        let mut scan = self.scan(0, LOOKUP_BYTES)?;
        let first = scan.next_batch().map_err(|error| self.scan_error(error))?;
        let first = first.map(|batch| batch.header.max_timestamp);
        lock(&self.state).first_timestamp = FirstTimestamp::Known(first);
        Ok(first)
    }

    /// The first record at or above `start` whose timestamp is at or after `timestamp`.
    pub fn find_by_timestamp(
        &self,
        timestamp: Millis,
        start: Offset,
    ) -> Result<Option<RecordPosition>, SegmentError> {
        self.check_indexes()?;
        let before = self.time_index.lookup(timestamp).map_err(|error| self.index(error))?;
        let mut scan = self.scan_near(before.offset.max(start), LOOKUP_BYTES)?;
        while let Some(batch) = scan.next_batch().map_err(|error| self.scan_error(error))? {
            if batch.header.max_timestamp < timestamp || batch.header.last_offset() < start {
                continue;
            }
            if let Some(found) =
                self.find_in_batch(&batch, |at, offset| at >= timestamp && offset >= start)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The first record that has the largest timestamp of the segment (KAFKA-16310); `None` if no record
    /// has a timestamp.
    pub fn find_max_timestamp(&self) -> Result<Option<RecordPosition>, SegmentError> {
        let max = self.max_timestamp()?;
        if max.timestamp.0 < 0 {
            return Ok(None);
        }
        let mut scan = self.scan_near(max.offset, LOOKUP_BYTES)?;
        while let Some(batch) = scan.next_batch().map_err(|error| self.scan_error(error))? {
            if batch.header.max_timestamp == max.timestamp {
                return self.find_in_batch(&batch, |at, _| at == max.timestamp);
            }
        }
        Ok(None)
    }

    fn find_in_batch(
        &self,
        batch: &FileBatch,
        wanted: impl Fn(Millis, Offset) -> bool,
    ) -> Result<Option<RecordPosition>, SegmentError> {
        let corrupt = |error| self.scan_error(ScanError::Corrupt { position: batch.position, error });
        let read = Batch::parse(&self.read_batch(batch)?).map_err(corrupt)?;
        for record in read.records(Limits::default()) {
            let record = record.map_err(corrupt)?;
            if wanted(record.timestamp, record.offset) {
                return Ok(Some(RecordPosition {
                    timestamp: record.timestamp,
                    offset: record.offset,
                    leader_epoch: batch.header.partition_leader_epoch,
                }));
            }
        }
        Ok(None)
    }

    /// Finds the largest timestamp again after the log was cut: the last index entry, or a batch after it.
    pub(super) fn reload_max_timestamp(&self) -> Result<(), SegmentError> {
        let mut max = self.time_index.last().map_err(|error| self.index(error))?;
        let mut scan = self.scan_near(max.offset, SCAN_BYTES)?;
        while let Some(batch) = scan.next_batch().map_err(|error| self.scan_error(error))? {
            if batch.header.max_timestamp > max.timestamp {
                let timestamp = batch.header.max_timestamp;
                max = TimestampOffset { timestamp, offset: batch.header.last_offset() };
            }
        }
        lock(&self.state).max_timestamp = Some(max);
        Ok(())
    }
}
