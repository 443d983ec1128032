//! Produced records on their way into a partition: queued in order of arrival, served by whoever finds the
//! queue idle.
//!
//! One thread at a time writes to a partition; those who come meanwhile leave their records in the queue and go
//! on, and the one who writes takes all that have gathered. So a busy partition is written in large pieces,
//! and an idle one without a change of thread.

use std::sync::Arc;

use bytes::Bytes;
use storage::partition_log::{AppendError, AppendInfo, LeaderAppend};
use wire::batch::validate::AppendOrigin;
use wire::error_code::ErrorCode;
use wire::types::LeaderEpoch;

use crate::broker::Broker;
use crate::partition::{Partition, Queued};

/// Learns what became of an [`Append`].
pub(crate) trait AppendSink: Send + Sync {
    /// The records at `place` are written, or refused.
    fn appended(self: Arc<Self>, broker: &Arc<Broker>, place: usize, result: AppendResult);
}

/// The outcome of one append.
#[derive(Debug)]
pub(crate) enum AppendResult {
    /// The records are in the log.
    Done(AppendInfo),
    /// The log refused them.
    Refused(AppendError),
    /// They did not get as far as the log.
    Failed(ErrorCode),
}

/// Records for one partition.
pub(crate) struct Append {
    pub(crate) records: Bytes,
    pub(crate) sink: Arc<dyn AppendSink>,
    pub(crate) place: usize,
}

/// Hands in records; the result comes before this returns or later.
pub(crate) fn append(broker: &Arc<Broker>, partition: &Arc<Partition>, append: Append) {
    match partition.queue(append) {
        Queued::Served => {}
        Queued::Serve => serve(broker, partition),
        Queued::Full(append) => {
            let result = AppendResult::Failed(ErrorCode::RequestTimedOut);
            append.sink.appended(broker, append.place, result);
        }
    }
}

/// Where to send the result of an append whose records are on their way.
struct Waiting {
    sink: Arc<dyn AppendSink>,
    place: usize,
    size_in_bytes: usize,
}

fn serve(broker: &Arc<Broker>, partition: &Arc<Partition>) {
    loop {
        let queued = partition.take_queued();
        if queued.is_empty() {
            return;
        }
        let mut requests = Vec::with_capacity(queued.len());
        let mut waiting = Vec::with_capacity(queued.len());
        for append in queued {
            waiting.push(Waiting {
                sink: append.sink,
                place: append.place,
                size_in_bytes: append.records.len(),
            });
            requests.push(LeaderAppend { records: append.records, origin: AppendOrigin::Client });
        }
        let epoch = match partition.check_leader(LeaderEpoch::UNKNOWN) {
            Ok(epoch) => epoch,
            Err(error) => {
                for it in waiting {
                    it.sink.appended(broker, it.place, AppendResult::Failed(error));
                }
                continue;
            }
        };
        let log = partition.log();
        let results = log.append_many_as_leader(requests, epoch, broker.now());
        // This broker is the only in-sync replica: what it has written is replicated.
        let log_end = log.positions().log_end;
        log.advance_high_watermark(log_end);
        for (it, result) in waiting.into_iter().zip(results) {
            count(broker, partition, it.size_in_bytes, &result);
            let result = result.map_or_else(AppendResult::Refused, AppendResult::Done);
            it.sink.appended(broker, it.place, result);
        }
        partition.high_watermark_moved(broker, log_end);
    }
}

fn count(broker: &Broker, partition: &Partition, size: usize, result: &Result<AppendInfo, AppendError>) {
    for meters in [partition.meters(), &broker.metrics().all_topics] {
        match result {
            Ok(info) if info.duplicate => {}
            Ok(info) => {
                let records = info.last_offset.0.saturating_sub(info.base_offset.0).saturating_add(1);
                meters.messages_in.add(u64::try_from(records).unwrap_or(0));
                meters.bytes_in.add(u64::try_from(size).unwrap_or(u64::MAX));
            }
            Err(error) => {
                meters.failed_produce_requests.inc();
                count_refusal(meters, size, error);
            }
        }
    }
}

fn count_refusal(meters: &crate::metrics::TopicMeters, size: usize, error: &AppendError) {
    use wire::batch::validate::{Rejection, ValidationError};
    let AppendError::Invalid(invalid) = error else { return };
    match invalid.rejection() {
        Rejection::CorruptMessage => meters.invalid_message_crc_records.inc(),
        Rejection::MessageTooLarge => meters.bytes_rejected.add(u64::try_from(size).unwrap_or(u64::MAX)),
        Rejection::InvalidRecord if matches!(invalid, ValidationError::Records(_)) => {
            meters.no_key_compacted_topic_records.inc();
        }
        Rejection::InvalidRecord => meters.invalid_offset_or_sequence_records.inc(),
        _ => {}
    }
}
