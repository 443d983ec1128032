//! The logs that a fetcher copies into: what its machine sees of them, and what it does to them. All of it happens in
//! the role of a follower of the epoch that the machine goes by, or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::epochs::EpochEnd;
use kernel::replica::fetcher::truncation::TruncationCause;
use kernel::replica::fetcher::{AppendFailure, Command, Event, LogWork};
use kernel::replica::log_view::{LogOffsets, LogView};
use storage::partition_log::{AppendError, LogError, PartitionLog};
use wire::types::{LeaderEpoch, Offset, TopicPartition};

use super::answers::Records;
use super::replica_fetcher::ReplicaFetcher;
use crate::broker::Broker;
use crate::partition::{Partition, Truncated};

/// The logs of a fetcher's partitions.
pub(super) struct Logs<'a>(pub(super) &'a BTreeMap<TopicPartition, Arc<Partition>>);

impl LogView for Logs<'_> {
    fn offsets(&self, partition: &TopicPartition) -> Option<LogOffsets> {
        let log = self.0.get(partition)?.log();
        let positions = log.positions();
        log.health().is_online().then_some(LogOffsets {
            first_segment: log.first_segment_base(),
            log_start: positions.log_start,
            high_watermark: positions.high_watermark,
            log_end: positions.log_end,
        })
    }

    fn latest_epoch(&self, partition: &TopicPartition) -> Option<LeaderEpoch> {
        self.0.get(partition).and_then(|it| latest_epoch(it.log()))
    }

    fn end_offset_for(&self, partition: &TopicPartition, epoch: LeaderEpoch) -> EpochEnd {
        let found = self.0.get(partition).map(|it| it.log().end_offset_for_epoch(epoch));
        found.map_or(EpochEnd::UNDEFINED, |(epoch, end)| EpochEnd { epoch, end })
    }
}

/// The latest leader epoch of a log, if it knows one.
pub(super) fn latest_epoch(log: &PartitionLog) -> Option<LeaderEpoch> {
    Some(log.latest_epoch()).filter(|epoch| *epoch != LeaderEpoch::UNKNOWN)
}

/// Does what a command wants done to a log; returns what has come of it.
pub(super) fn obey(
    broker: &Arc<Broker>,
    fetcher: &ReplicaFetcher,
    command: Command,
    records: &Records,
) -> Option<Event> {
    match command {
        Command::TruncateTo(work, offset, cause) => {
            Some(truncate(broker, fetcher, work, offset, cause, |name| {
                broker.log_dirs().truncate_to(name, offset, broker.now()).map(drop)
            }))
        }
        Command::TruncateFullyAndStartAt(work, offset, cause) => {
            Some(truncate(broker, fetcher, work, offset, cause, |name| {
                broker.log_dirs().truncate_fully_and_start_at(name, offset, broker.now())
            }))
        }
        Command::Append(work) => Some(append(broker, fetcher, work, records)),
        Command::SetHighWatermark(name, epoch, offset) => {
            set_high_watermark(broker, fetcher, name, epoch, offset)
        }
        Command::SetLogStart(name, epoch, offset) => set_log_start(fetcher, name, epoch, offset),
        // The others concern no log.
        _ => None,
    }
}

fn truncate(
    broker: &Broker,
    fetcher: &ReplicaFetcher,
    work: LogWork,
    offset: Offset,
    cause: TruncationCause,
    cut: impl FnOnce(&TopicPartition) -> Result<(), LogError>,
) -> Event {
    let LogWork { id, partition: name, leader_epoch } = work;
    let Some(partition) = fetcher.partition(&name) else { return Event::Fenced(name, leader_epoch) };
    let done = partition.while_following(leader_epoch, |log| {
        let before = log.positions();
        let is_told = offset < before.high_watermark;
        let first_batch = if is_told { log.first_batch_from(offset)? } else { None };
        cut(&name)?;
        Ok::<_, LogError>((before, first_batch, log.positions().log_end, latest_epoch(log)))
    });
    match done {
        None => Event::Fenced(name, leader_epoch),
        Some(Err(error)) => {
            tracing::error!(partition = %name, %error, "the log cannot be truncated");
            Event::LogFailed(name, leader_epoch)
        }
        Some(Ok((before, first_batch, log_end, latest_epoch))) => {
            let (from, high_watermark) = (before.log_end, before.high_watermark);
            let truncated = Truncated { from, to: log_end, high_watermark, first_batch, cause };
            partition.note_truncation(broker, fetcher.key().leader, truncated);
            Event::Truncated { work: id, partition: name, log_end, latest_epoch }
        }
    }
}

fn append(broker: &Broker, fetcher: &ReplicaFetcher, work: LogWork, records: &Records) -> Event {
    let LogWork { id: work, partition: name, leader_epoch } = work;
    let Some(partition) = fetcher.partition(&name) else { return Event::Fenced(name, leader_epoch) };
    let bytes = records.of(&name, partition.topic_id());
    let size = bytes.len();
    let done = partition.while_following(leader_epoch, |log| {
        let appended = log.append_as_follower(bytes, leader_epoch, broker.now());
        appended.map(|_| (log.positions().log_end, latest_epoch(log)))
    });
    match done {
        None => Event::Fenced(name, leader_epoch),
        Some(Ok((log_end, last_epoch))) => {
            fetcher.records_taken(broker, size);
            Event::Appended { work, partition: name, log_end, last_epoch }
        }
        Some(Err(error)) => {
            let failure = failure_of(&error);
            match failure {
                AppendFailure::Corrupt => {
                    tracing::warn!(partition = %name, %error, "damaged records were fetched")
                }
                // The machine decides what it means.
                AppendFailure::UnexpectedOffset { .. } => tracing::debug!(partition = %name, %error),
                AppendFailure::Storage => {
                    tracing::error!(partition = %name, %error, "fetched records cannot be appended");
                }
            }
            Event::AppendFailed { work, partition: name, failure }
        }
    }
}

fn failure_of(error: &AppendError) -> AppendFailure {
    match error {
        AppendError::Invalid(_) | AppendError::Control(_) => AppendFailure::Corrupt,
        AppendError::UnexpectedOffset { first, last, .. } => {
            AppendFailure::UnexpectedOffset { first: *first, last: *last }
        }
        AppendError::RecordListTooLarge { .. }
        | AppendError::Producer { .. }
        | AppendError::OffsetsOutOfOrder
        | AppendError::NoOffsetsLeft
        | AppendError::Closed
        | AppendError::Storage(_) => AppendFailure::Storage,
    }
}

fn set_high_watermark(
    broker: &Arc<Broker>,
    fetcher: &ReplicaFetcher,
    name: TopicPartition,
    epoch: LeaderEpoch,
    offset: Offset,
) -> Option<Event> {
    let partition = fetcher.partition(&name)?;
    let set = partition.while_following(epoch, |log| log.set_high_watermark(offset).high_watermark);
    match set {
        None => Some(Event::Fenced(name, epoch)),
        Some(high_watermark) => {
            // Consumers that read from here may go on (KAFKA-14334).
            partition.high_watermark_moved(broker, high_watermark);
            None
        }
    }
}

fn set_log_start(
    fetcher: &ReplicaFetcher,
    name: TopicPartition,
    epoch: LeaderEpoch,
    offset: Offset,
) -> Option<Event> {
    let partition = fetcher.partition(&name)?;
    match partition.while_following(epoch, |log| log.increment_log_start(offset)) {
        None => Some(Event::Fenced(name, epoch)),
        Some(Ok(_)) => None,
        Some(Err(error)) => {
            tracing::error!(partition = %name, %error, "the leader's log start cannot be followed");
            Some(Event::LogFailed(name, epoch))
        }
    }
}
