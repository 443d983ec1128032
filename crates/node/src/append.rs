//! Produced records on their way into a partition: queued in order of arrival, served by whoever finds the
//! queue idle.
//!
//! One thread at a time writes to a partition; those who come meanwhile leave their records in the queue and go
//! on, and the one who writes takes all that have gathered. So a busy partition is written in large pieces,
//! and an idle one without a change of thread.

pub(crate) mod lanes;
pub(crate) mod replicated;
mod serving;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use storage::partition_log::{AppendError, AppendInfo, LeaderAppend, Positions};
use wire::batch::validate::AppendOrigin;
use wire::error_code::ErrorCode;
use wire::types::LeaderEpoch;

pub(crate) use self::lanes::Lanes;
use self::serving::serve;
use crate::broker::Broker;
use crate::partition::{Effects, Leading, Partition, Queued};

/// Learns what became of an [`Append`].
pub(crate) trait AppendSink: Send + Sync {
    /// The records at `place` are written to `partition`, or refused.
    fn appended(
        self: Arc<Self>,
        broker: &Arc<Broker>,
        partition: &Arc<Partition>,
        place: usize,
        result: AppendResult,
    );
}

/// The outcome of one append.
#[derive(Debug)]
pub(crate) enum AppendResult {
    /// The records are in the log; if all in-sync replicas are wanted, they have them.
    Done(AppendInfo),
    /// The records are in the log of this leader, in this epoch, and the high watermark has not passed them.
    Unreplicated(AppendInfo, LeaderEpoch),
    /// The log refused them.
    Refused(AppendError),
    /// They did not get as far as the log.
    Failed(ErrorCode),
}

/// Records for one partition.
pub(crate) struct Append {
    pub(crate) records: Bytes,
    /// Whether all in-sync replicas are wanted (acks -1).
    pub(crate) acks_all: bool,
    pub(crate) source: Source,
    pub(crate) sink: Arc<dyn AppendSink>,
    pub(crate) place: usize,
}

/// Who hands in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A client, by a Produce request.
    Client,
    /// A coordinator of this broker, which has read the log in a leadership that has lasted since this epoch. In a later
    /// leadership others may have written in between: there its records are refused.
    Coordinator(LeaderEpoch),
}

impl Source {
    fn origin(self) -> AppendOrigin {
        match self {
            Self::Client => AppendOrigin::Client,
            Self::Coordinator(_) => AppendOrigin::Coordinator,
        }
    }
}

/// Hands in records; the result comes before this returns or later.
pub(crate) fn append(broker: &Arc<Broker>, partition: &Arc<Partition>, append: Append) {
    match partition.queue(append) {
        Queued::Served => {}
        Queued::Serve => serve_where_it_may_block(broker, partition),
        Queued::Full(append) => {
            let result = AppendResult::Failed(ErrorCode::RequestTimedOut);
            append.sink.appended(broker, partition, append.place, result);
        }
    }
}

/// Serves the queue here, or lets the lane of the log directory do it.
fn serve_where_it_may_block(broker: &Arc<Broker>, partition: &Arc<Partition>) {
    let Some(lanes) = broker.lanes() else { return serve(broker, partition) };
    let directory = partition.log().health();
    if let Some(_inline) = lanes.enter(directory) {
        return serve(broker, partition);
    }
    let (then, queued) = (broker.clone(), partition.clone());
    lanes.hand_over(directory, Box::new(move || serve(&then, &queued)));
}

/// One append and its result.
type Answer = (Waiting, AppendResult);

/// Where to send the result of an append whose records are on their way.
struct Waiting {
    sink: Arc<dyn AppendSink>,
    place: usize,
    acks_all: bool,
    source: Source,
    size_in_bytes: usize,
}

/// The produces that are written together.
#[derive(Default)]
struct Batch {
    requests: Vec<LeaderAppend>,
    // One for each request.
    waiting: Vec<Waiting>,
    // Those that were not written, and why.
    refused: Vec<(Waiting, ErrorCode)>,
    // Of what was written: the results, the leader's epoch, the log's offsets afterwards.
    results: Vec<Result<AppendInfo, AppendError>>,
    epoch: LeaderEpoch,
    positions: Positions,
}

impl Batch {
    fn of(queued: VecDeque<Append>) -> Self {
        let mut requests = Vec::with_capacity(queued.len());
        let mut waiting = Vec::with_capacity(queued.len());
        for append in queued {
            let size_in_bytes = append.records.len();
            requests.push(LeaderAppend { records: append.records, origin: append.source.origin() });
            let Append { acks_all, source, sink, place, .. } = append;
            waiting.push(Waiting { sink, place, acks_all, source, size_in_bytes });
        }
        Self { requests, waiting, epoch: LeaderEpoch::UNKNOWN, ..Self::default() }
    }

    /// Nothing is written.
    fn refuse(&mut self, error: ErrorCode) {
        self.requests.clear();
        self.refused.extend(self.waiting.drain(..).map(|it| (it, error)));
    }

    /// Takes out those whom `refusal` finds an error for.
    fn refuse_some(&mut self, refusal: impl Fn(&Waiting) -> Option<ErrorCode>) {
        let mut requests = Vec::with_capacity(self.requests.len());
        let mut waiting = Vec::with_capacity(self.waiting.len());
        for (request, it) in self.requests.drain(..).zip(self.waiting.drain(..)) {
            match refusal(&it) {
                Some(error) => self.refused.push((it, error)),
                None => {
                    requests.push(request);
                    waiting.push(it);
                }
            }
        }
        (self.requests, self.waiting) = (requests, waiting);
    }

    /// Writes in the leader's epoch, and moves the high watermark as far as it may go.
    fn write(&mut self, broker: &Broker, partition: &Partition, leading: &Leading) -> Effects {
        if self.waiting.iter().any(|it| it.source != Source::Client) {
            let led_since = leading.led_since();
            let is_late = |it: &Waiting| matches!(it.source, Source::Coordinator(epoch) if epoch < led_since);
            self.refuse_some(|it| is_late(it).then_some(ErrorCode::NotLeaderOrFollower));
        }
        if leading.is_under_min_isr() && self.waiting.iter().any(|it| it.acks_all) {
            self.refuse_some(|it| it.acks_all.then_some(ErrorCode::NotEnoughReplicas));
        }
        let (log, now) = (partition.log(), broker.now());
        self.epoch = leading.epoch();
        self.results = log.append_many_as_leader(std::mem::take(&mut self.requests), self.epoch, now);
        let effects = leading.appended(log, now);
        self.positions = log.positions();
        effects
    }

    /// What each is to be told.
    fn answers(self, broker: &Broker, partition: &Partition) -> VecDeque<Answer> {
        let refused = self.refused.into_iter();
        let mut answers: VecDeque<_> = refused.map(|(it, error)| (it, AppendResult::Failed(error))).collect();
        for (it, result) in self.waiting.into_iter().zip(self.results) {
            count(broker, partition, it.size_in_bytes, &result);
            let result = match result {
                Ok(info) if it.acks_all && info.last_offset >= self.positions.high_watermark => {
                    AppendResult::Unreplicated(info, self.epoch)
                }
                Ok(info) => AppendResult::Done(info),
                Err(error) => AppendResult::Refused(error),
            };
            answers.push_back((it, result));
        }
        answers
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
