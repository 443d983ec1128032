//! Removing old segments: below the log start, beyond the size, beyond the age.

use std::sync::Arc;

use wire::types::{Now, Offset};

use super::{LogError, PartitionLog, Writer};
use crate::dir_health::StorageError;
use crate::log_config::LogConfig;
use crate::segment::{RollReason, Segment};
use crate::sync::{lock, read, write};

/// Why a segment is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionReason {
    /// All of its records are below the log start.
    LogStart,
    /// The log is larger than `retention.bytes`.
    Size,
    /// Its newest record is older than `retention.ms`.
    Time,
}

impl PartitionLog {
    /// Removes the segments that no rule keeps; returns how many. In this order: those below the log start,
    /// whatever the policy (KAFKA-12177); with the policy `delete` those beyond `retention.bytes`, then those
    /// older than `retention.ms`. Each rule goes from the oldest segment on and stops at the first one that it
    /// keeps. A segment with offsets at or above the high watermark stays.
    pub fn delete_old_segments(&self, now: Now) -> Result<usize, LogError> {
        let _whole = lock(&self.replacing);
        let mut writer = self.writer_to_cut()?;
        let config = self.config();
        let mut deleted = self.delete_where(&mut writer, RetentionReason::LogStart, &config, now)?;
        if config.cleanup_delete {
            deleted += self.delete_where(&mut writer, RetentionReason::Size, &config, now)?;
            deleted += self.delete_where(&mut writer, RetentionReason::Time, &config, now)?;
        }
        Ok(deleted)
    }

    fn delete_where(
        &self,
        writer: &mut Writer,
        reason: RetentionReason,
        config: &LogConfig,
        now: Now,
    ) -> Result<usize, StorageError> {
        let segments = read(&self.segments).clone();
        let count = self.count_deletable(&segments, reason, config, now)?;
        if count == 0 {
            return Ok(0);
        }
        let positions = self.positions();
        if count == segments.len() {
            // The active segment goes too, so another one takes its place first.
            self.ready_active(writer)?;
            self.roll_to(writer, (positions.log_end, positions.log_end), RollReason::Time, config, now)?;
        }
        let log_start = read(&self.segments).get(count).map_or(positions.log_end, |segment| segment.base());
        // Readers are told before the files go.
        if log_start > positions.log_start {
            self.raise_log_start(writer, self.positions(), log_start)?;
        }
        let removed: Vec<_> = write(&self.segments).drain(..count).collect();
        tracing::info!(partition = %self.partition, count, ?reason, %log_start, "old segments are removed");
        self.remove_segments(writer, removed, now)?;
        Ok(count)
    }

    /// How many of the oldest segments the rule lets go.
    fn count_deletable(
        &self,
        segments: &[Arc<Segment>],
        reason: RetentionReason,
        config: &LogConfig,
        now: Now,
    ) -> Result<usize, StorageError> {
        let positions = self.positions();
        let total: u64 = segments.iter().map(|segment| segment.size()).sum();
        let mut excess = match u64::try_from(config.retention_bytes) {
            Ok(limit) => total.checked_sub(limit),
            Err(_) => None,
        };
        let mut count = 0;
        for (at, segment) in segments.iter().enumerate() {
            let next: Option<Offset> = segments.get(at.saturating_add(1)).map(|next| next.base());
            let end = next.unwrap_or(positions.log_end);
            let replicated = positions.high_watermark >= end && !(next.is_none() && segment.is_empty());
            let goes = match reason {
                RetentionReason::LogStart => next.is_some_and(|next| next <= positions.log_start),
                RetentionReason::Size => {
                    let left = excess.and_then(|excess| excess.checked_sub(segment.size()));
                    excess = left;
                    left.is_some()
                }
                RetentionReason::Time if config.retention_ms.0 < 0 => false,
                RetentionReason::Time => {
                    let largest = self.guard("read the age of", segment.largest_timestamp())?;
                    now.wall_ms.saturating_sub(largest.0) > config.retention_ms.0
                }
            };
            if !(replicated && goes) {
                break;
            }
            count += 1;
        }
        Ok(count)
    }
}
