//! From times to offsets, for ListOffsets.

use std::sync::Arc;

use wire::types::{LeaderEpoch, Millis, Now, Offset};

use super::read::MOST_ATTEMPTS;
use super::{PartitionLog, ReadError};
use crate::segment::{RecordPosition, Segment, SegmentError};

/// `timestamp` of the old ListOffsets that asks for the log end.
const LATEST: i64 = -1;
/// `timestamp` of the old ListOffsets that asks for the log start.
const EARLIEST: i64 = -2;

/// A record found by its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampedOffset {
    /// The record's timestamp, in milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// Its offset.
    pub offset: Offset,
    /// The leader epoch of its batch; -1 if unknown.
    pub leader_epoch: LeaderEpoch,
}

impl From<RecordPosition> for TimestampedOffset {
    fn from(found: RecordPosition) -> Self {
        Self { timestamp: found.timestamp.0, offset: found.offset, leader_epoch: found.leader_epoch }
    }
}

impl PartitionLog {
    /// The first record, from the log start on, whose timestamp is at or after `timestamp` (in milliseconds since
    /// the Unix epoch), high watermark or not.
    pub fn offset_for_timestamp(&self, timestamp: i64) -> Result<Option<TimestampedOffset>, ReadError> {
        self.check()?;
        let log_start = self.positions().log_start;
        self.ask_segments(|segments| {
            for segment in segments {
                if segment.max_timestamp()?.timestamp.0 < timestamp {
                    continue;
                }
                if let Some(found) = segment.find_by_timestamp(Millis(timestamp), log_start)? {
                    return Ok(Some(found.into()));
                }
            }
            Ok(None)
        })
    }

    /// The first record that has the largest timestamp of the log (KIP-734, KAFKA-16310); none if no record has
    /// a timestamp.
    pub fn offset_of_max_timestamp(&self) -> Result<Option<TimestampedOffset>, ReadError> {
        self.check()?;
        self.ask_segments(|segments| {
            let mut latest = None;
            for segment in segments {
                let max = segment.max_timestamp()?.timestamp;
                if latest.as_ref().is_none_or(|(known, _)| max > *known) {
                    latest = Some((max, segment));
                }
            }
            let Some((_, segment)) = latest else { return Ok(None) };
            Ok(segment.find_max_timestamp()?.map(TimestampedOffset::from))
        })
    }

    /// Asks all segments of one moment; again if some of them went away meanwhile.
    fn ask_segments<T>(
        &self,
        ask: impl Fn(&[Arc<Segment>]) -> Result<T, SegmentError>,
    ) -> Result<T, ReadError> {
        let mut attempts = 1;
        loop {
            let segments = self.segments();
            match ask(&segments) {
                Ok(found) => return Ok(found),
                Err(_) if attempts < MOST_ATTEMPTS && !self.has_segments(&segments) => attempts += 1,
                Err(error) => return Err(self.read_failed(error)),
            }
        }
    }

    /// At most `max` offsets at which segments begin that were last changed at or before `timestamp`, latest
    /// first; the log end counts as one more that changes `now`. This is what the first version of ListOffsets
    /// tells: -1 asks for the log end, -2 for the log start.
    pub fn offsets_before(&self, timestamp: i64, max: usize, now: Now) -> Result<Vec<Offset>, ReadError> {
        self.check()?;
        let positions = self.positions();
        let places = self.ask_segments(|segments| {
            let mut places = Vec::with_capacity(segments.len().saturating_add(1));
            for segment in segments {
                places.push((segment.base().max(positions.log_start), segment.modified()?.0));
            }
            if segments.last().is_some_and(|segment| !segment.is_empty()) {
                places.push((positions.log_end, now.wall_ms));
            }
            Ok(places)
        })?;
        let count = match timestamp {
            LATEST => places.len(),
            EARLIEST => 1,
            _ => places.iter().rposition(|(_, modified)| *modified <= timestamp).map_or(0, |at| at + 1),
        };
        let mut offsets: Vec<Offset> =
            places.iter().take(count).rev().map(|(offset, _)| *offset).take(max).collect();
        offsets.sort_unstable_by(|a, b| b.cmp(a));
        Ok(offsets)
    }
}
