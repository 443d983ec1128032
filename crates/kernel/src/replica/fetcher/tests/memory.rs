//! Logs in memory: batches by offset, each with its leader epoch and the names of its records.

use std::collections::BTreeMap;
use std::fmt;

use super::*;
use crate::epochs::{EpochEnd, EpochEntry, EpochHistory};
use crate::replica::log_view::LogOffsets;

/// A batch; two that are equal are the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct MemoryBatch {
    pub(super) base: i64,
    pub(super) epoch: i32,
    pub(super) records: Vec<String>,
}

impl MemoryBatch {
    pub(super) fn last(&self) -> i64 {
        self.base + self.records.len() as i64 - 1
    }
}

impl fmt::Display for MemoryBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.records.as_slice() {
            [one] => write!(f, "{one}@{}", self.base),
            many => write!(f, "[{}]@{}", many.join(" "), self.base),
        }
    }
}

/// One log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct MemoryLog {
    pub(super) batches: Vec<MemoryBatch>,
    pub(super) epochs: EpochHistory,
    pub(super) log_start: i64,
    pub(super) high_watermark: i64,
    pub(super) log_end: i64,
}

impl MemoryLog {
    pub(super) fn empty_at(offset: i64) -> Self {
        let epochs = EpochHistory::new();
        Self { batches: Vec::new(), epochs, log_start: offset, high_watermark: offset, log_end: offset }
    }

    /// A log from offset 0 up to `log_end`, with one record for each offset, in these epochs.
    pub(super) fn with_epochs(epochs: &[(i32, i64)], log_end: i64) -> Self {
        let mut log = Self::empty_at(0);
        for (at, (epoch, start)) in epochs.iter().enumerate() {
            let end = epochs.get(at + 1).map_or(log_end, |next| next.1);
            if at == 0 && *start > 0 {
                log = Self::empty_at(*start);
            }
            log.begin_epoch(*epoch);
            for offset in log.log_end..end {
                log.append_as_leader(*epoch, &[&format!("{epoch}.{offset}")]);
            }
        }
        log
    }

    pub(super) fn begin_epoch(&mut self, epoch: i32) {
        self.epochs.assign(LeaderEpoch(epoch), Offset(self.log_end));
    }

    pub(super) fn append_as_leader(&mut self, epoch: i32, records: &[&str]) {
        let records = records.iter().map(|it| (*it).to_owned()).collect();
        let batch = MemoryBatch { base: self.log_end, epoch, records };
        self.append(vec![batch]);
    }

    /// Appends what a leader sent, but no batch of an epoch above `most_epoch` nor what follows it.
    pub(super) fn append_as_follower(
        &mut self,
        mut batches: Vec<MemoryBatch>,
        most_epoch: i32,
    ) -> Result<(), AppendFailure> {
        let kept = batches.iter().take_while(|it| it.epoch <= most_epoch).count();
        batches.truncate(kept);
        let (Some(first), Some(last)) = (batches.first(), batches.last()) else { return Ok(()) };
        if first.base < self.log_end {
            let (first, last) = (Offset(first.base), Offset(last.last()));
            return Err(AppendFailure::UnexpectedOffset { first, last });
        }
        self.append(batches);
        Ok(())
    }

    fn append(&mut self, batches: Vec<MemoryBatch>) {
        for batch in batches {
            self.epochs.assign(LeaderEpoch(batch.epoch), Offset(batch.base));
            self.log_end = batch.last() + 1;
            self.batches.push(batch);
        }
    }

    pub(super) fn truncate_to(&mut self, offset: i64) {
        let offset = offset.min(self.log_end);
        self.batches.retain(|batch| batch.last() < offset);
        self.epochs.truncate_from_end(Offset(offset));
        self.log_end = offset;
        self.log_start = self.log_start.min(offset);
        self.high_watermark = self.high_watermark.min(offset);
    }

    pub(super) fn set_high_watermark(&mut self, offset: i64) {
        self.high_watermark = offset.min(self.log_end).max(self.log_start);
    }

    pub(super) fn set_log_start(&mut self, offset: i64) {
        assert!(offset <= self.high_watermark, "log start {offset}, high watermark {}", self.high_watermark);
        self.log_start = self.log_start.max(offset);
        self.batches.retain(|batch| batch.last() >= self.log_start);
        self.epochs.truncate_from_start(Offset(self.log_start));
    }

    pub(super) fn end_offset_for(&self, epoch: LeaderEpoch) -> EpochEnd {
        self.epochs.end_offset_for(epoch, Offset(self.log_end))
    }

    /// At most `most` batches from the one that holds `offset` on, below `end`.
    pub(super) fn read(&self, offset: i64, end: i64, most: usize) -> Vec<MemoryBatch> {
        let from = self.batches.iter().filter(|batch| batch.last() >= offset && batch.base < end);
        from.take(most).cloned().collect()
    }

    pub(super) fn check(&self) {
        assert!(self.log_start <= self.high_watermark && self.high_watermark <= self.log_end, "{self}");
        let rising = self.batches.windows(2).all(|pair| pair[0].last() < pair[1].base);
        assert!(rising, "offsets go backwards: {self}");
        let within = self.epochs.entries().iter().all(|entry| entry.start.0 <= self.log_end);
        assert!(within, "an epoch starts beyond the log end: {self}");
        for batch in &self.batches {
            let known = self.epochs.epoch_of(Offset(batch.last()));
            assert_eq!(known, Some(LeaderEpoch(batch.epoch)), "{batch} in {self}");
        }
    }
}

impl fmt::Display for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for batch in &self.batches {
            write!(f, "{batch} ")?;
        }
        write!(f, "| epochs")?;
        for EpochEntry { epoch, start } in self.epochs.entries() {
            write!(f, " ({epoch},{start})")?;
        }
        write!(
            f,
            " | log start {}, high watermark {}, log end {}",
            self.log_start, self.high_watermark, self.log_end
        )
    }
}

/// The logs of one broker.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryLogs {
    pub(super) logs: BTreeMap<TopicPartition, MemoryLog>,
}

impl LogView for MemoryLogs {
    fn offsets(&self, partition: &TopicPartition) -> Option<LogOffsets> {
        self.logs.get(partition).map(|log| LogOffsets {
            first_segment: Offset(log.batches.first().map_or(log.log_end, |batch| batch.base)),
            log_start: Offset(log.log_start),
            high_watermark: Offset(log.high_watermark),
            log_end: Offset(log.log_end),
        })
    }

    fn latest_epoch(&self, partition: &TopicPartition) -> Option<LeaderEpoch> {
        self.logs.get(partition)?.epochs.latest().map(|entry| entry.epoch)
    }

    fn end_offset_for(&self, partition: &TopicPartition, epoch: LeaderEpoch) -> EpochEnd {
        self.logs.get(partition).map_or(EpochEnd::UNDEFINED, |log| log.end_offset_for(epoch))
    }
}
