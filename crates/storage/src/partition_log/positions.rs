//! The four offsets of a log as one value that is swapped whole, so that no reader ever sees the high watermark
//! of one moment with the log start of another (KAFKA-7104, KAFKA-9807).
//!
//! Invariant: log start ≤ last stable ≤ high watermark ≤ log end, and recovery point ≤ log end.

use std::sync::Mutex;

use wire::types::Offset;

use crate::sync::lock;

/// The offsets of a log at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Positions {
    /// The first offset that may be read (inclusive).
    pub log_start: Offset,
    /// The end of what is decided: consumers that read committed data stop here (exclusive).
    pub last_stable: Offset,
    /// The end of what is replicated (exclusive).
    pub high_watermark: Offset,
    /// The end of the log: the next offset to be written.
    pub log_end: Offset,
    /// The end of what was flushed (exclusive).
    pub recovery_point: Offset,
}

impl Positions {
    /// Derives the last stable offset: the first unstable one if it lies below the high watermark.
    pub(super) fn with_first_unstable(mut self, first_unstable: Option<Offset>) -> Self {
        let unstable = first_unstable.map_or(self.high_watermark, |offset| offset.max(self.log_start));
        self.last_stable = unstable.min(self.high_watermark);
        self
    }

    /// Whether the order of the offsets holds.
    pub fn is_consistent(&self) -> bool {
        self.log_start <= self.last_stable
            && self.last_stable <= self.high_watermark
            && self.high_watermark <= self.log_end
            && self.recovery_point <= self.log_end
    }
}

/// Where the last batch below the log end ends, so that a reader never takes what was appended after its
/// positions were read (KAFKA-9835).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogEnd {
    /// The base offset of the active segment.
    pub(super) base: Offset,
    /// The end of the last batch in its log file, in bytes.
    pub(super) position: u64,
}

/// The [`Positions`] and the end that belongs to them, replaced by one writer and read by any thread.
#[derive(Debug)]
pub(super) struct Published(Mutex<(Positions, LogEnd)>);

impl Published {
    pub(super) fn new(positions: Positions, end: LogEnd) -> Self {
        debug_assert!(positions.is_consistent(), "{positions:?}");
        Self(Mutex::new((positions, end)))
    }

    pub(super) fn get(&self) -> Positions {
        self.view().0
    }

    pub(super) fn view(&self) -> (Positions, LogEnd) {
        *lock(&self.0)
    }

    /// Replaces the value. Only the holder of the log's writer lock calls this.
    pub(super) fn set(&self, positions: Positions, end: LogEnd) {
        debug_assert!(positions.is_consistent(), "{positions:?}");
        *lock(&self.0) = (positions, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(log_start: i64, high_watermark: i64, log_end: i64) -> Positions {
        Positions {
            log_start: Offset(log_start),
            last_stable: Offset(log_start),
            high_watermark: Offset(high_watermark),
            log_end: Offset(log_end),
            recovery_point: Offset(0),
        }
    }

    #[test]
    fn the_last_stable_offset_is_the_first_unstable_one_within_log_start_and_high_watermark() {
        let at = |unstable: Option<i64>| {
            positions(10, 20, 30).with_first_unstable(unstable.map(Offset)).last_stable
        };
        assert_eq!(at(None), Offset(20));
        assert_eq!(at(Some(15)), Offset(15));
        assert_eq!(at(Some(20)), Offset(20));
        assert_eq!(at(Some(25)), Offset(20));
        assert_eq!(at(Some(5)), Offset(10));
    }

    #[test]
    fn each_order_is_checked() {
        assert!(positions(10, 20, 30).is_consistent());
        assert!(!positions(10, 31, 30).is_consistent());
        assert!(!positions(21, 20, 30).is_consistent());
        let beyond = Positions { recovery_point: Offset(31), ..positions(10, 20, 30) };
        assert!(!beyond.is_consistent());
    }
}
