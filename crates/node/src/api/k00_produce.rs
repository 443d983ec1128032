//! Produce (key 0): appends batches to partitions (KIP-98, KIP-467, KIP-951).
//!
//! Each partition succeeds or fails on its own. With acks 0 nothing is answered, but an error closes the
//! connection, so that the producer asks for new metadata. A request goes in two stages: its records are appended in
//! the order of arrival, and then, with acks -1, it waits for the high watermark to pass them ([`wait`]).

mod wait;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use kernel::topic_name;
use storage::partition_log::AppendError;
use wire::Str;
use wire::batch::validate::check_request;
use wire::error_code::ErrorCode;
use wire::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse,
};
use wire::messages::{ProduceRequest, ProduceResponse};
use wire::types::{LeaderEpoch, Offset};

use super::errors;
use super::{Answer, node_endpoints};
use crate::append::{self, Append, AppendResult, AppendSink, append};
use crate::broker::Broker;
use crate::call::Outcome;
use crate::partition::Partition;

/// The only client that may write to internal topics: Kafka's own administrative one.
const ADMIN_CLIENT_ID: &str = "__admin_client";
/// The first version that tells who leads (KIP-951).
const FIRST_VERSION_WITH_LEADERS: i16 = 10;
/// The producer wants its records in the logs of all in-sync replicas.
const ACKS_ALL: i16 = -1;

/// Handles a Produce request.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: ProduceRequest) {
    let version = answer.call().version();
    let may_write_internal = answer.call().client_id() == ADMIN_CLIENT_ID;
    let count = request.topic_data.iter().map(|topic| topic.partition_data.len()).sum();
    let mut work = Vec::with_capacity(count);
    let mut topics = Vec::with_capacity(request.topic_data.len());
    for topic in request.topic_data {
        topics.push((topic.name.clone(), topic.partition_data.len()));
        let refused = if !matches!(request.acks, -1..=1) {
            Some(ErrorCode::InvalidRequiredAcks)
        } else if topic_name::is_internal(&topic.name) && !may_write_internal {
            Some(ErrorCode::InvalidTopicException)
        } else {
            None
        };
        for partition in topic.partition_data {
            work.push(Work {
                topic: topic.name.clone(),
                index: partition.index,
                records: partition.records,
                refused,
            });
        }
    }
    let mut results = Vec::new();
    results.resize_with(count, PartitionProduceResponse::default);
    let produce = Arc::new(Produce {
        acks: request.acks,
        names_leaders: version >= FIRST_VERSION_WITH_LEADERS,
        timeout_ms: i64::from(request.timeout_ms.max(0)),
        missing: AtomicUsize::new(count.max(1)),
        state: Mutex::new(State { topics, results, unreplicated: Vec::new(), answer: Some(answer) }),
    });
    if count == 0 {
        return produce.one_done(broker);
    }
    for (place, work) in work.into_iter().enumerate() {
        begin(broker, &produce, place, work, version);
    }
}

struct Work {
    topic: Str,
    index: i32,
    records: Option<Bytes>,
    refused: Option<ErrorCode>,
}

fn begin(broker: &Arc<Broker>, produce: &Arc<Produce>, place: usize, work: Work, version: i16) {
    produce.set(place, |response| response.index = work.index);
    let metrics = broker.metrics();
    metrics.all_topics.total_produce_requests.inc();
    let partition = broker.partition(&work.topic, work.index);
    // That there is no such partition comes before everything that is wrong with the request.
    if let Some(error) = work.refused
        && !matches!(partition, Err(ErrorCode::UnknownTopicOrPartition))
    {
        return produce.settled(broker, place, AppendResult::Failed(error));
    }
    let partition = match partition {
        Ok(partition) => partition,
        Err(error) => {
            if error == ErrorCode::NotLeaderOrFollower {
                produce.name_leader(broker, place, &work.topic);
            }
            return produce.settled(broker, place, AppendResult::Failed(error));
        }
    };
    if let Err(error) = check_request(work.records.as_ref(), version) {
        return produce.settled(broker, place, AppendResult::Refused(AppendError::Invalid(error)));
    }
    let records = work.records.unwrap_or_default();
    if is_transactional(&records) {
        // Nobody here could ever end the transaction, and readers of committed data would wait for it.
        return produce.settled(broker, place, AppendResult::Failed(ErrorCode::InvalidTxnState));
    }
    produce.set(place, |response| response.log_start_offset = partition.log().positions().log_start.0);
    let acks_all = produce.acks == ACKS_ALL;
    let source = append::Source::Client;
    append(broker, &partition, Append { records, acks_all, source, sink: produce.clone(), place });
}

/// Whether a batch of format 2 belongs to a transaction: bit 4 of its attributes, whose low byte is the 23rd.
fn is_transactional(records: &[u8]) -> bool {
    records.get(16) == Some(&2) && records.get(22).is_some_and(|attributes| attributes & 0x10 != 0)
}

/// A request some of whose partitions are still being written, or replicated.
struct Produce {
    acks: i16,
    names_leaders: bool,
    timeout_ms: i64,
    missing: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    // Names, each with the number of its partitions; results stand in the same order.
    topics: Vec<(Str, usize)>,
    results: Vec<PartitionProduceResponse>,
    unreplicated: Vec<Unreplicated>,
    answer: Option<Answer>,
}

/// Records that are in the leader's log, and not yet in those of all in-sync replicas.
struct Unreplicated {
    place: usize,
    partition: Arc<Partition>,
    epoch: LeaderEpoch,
    /// The offset after the last record.
    end: Offset,
}

impl AppendSink for Produce {
    fn appended(
        self: Arc<Self>,
        broker: &Arc<Broker>,
        partition: &Arc<Partition>,
        place: usize,
        result: AppendResult,
    ) {
        if let AppendResult::Unreplicated(info, epoch) = result {
            let (partition, end) = (partition.clone(), info.last_offset.plus(1));
            self.lock().unreplicated.push(Unreplicated { place, partition, epoch, end });
        }
        if matches!(result, AppendResult::Failed(ErrorCode::NotLeaderOrFollower)) {
            self.name_leader(broker, place, partition.name().topic.as_str());
        }
        self.settled(broker, place, result);
    }
}

impl Produce {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, place: usize, change: impl FnOnce(&mut PartitionProduceResponse)) {
        if let Some(response) = self.lock().results.get_mut(place) {
            change(response);
        }
    }

    fn name_leader(&self, broker: &Broker, place: usize, topic: &str) {
        if self.names_leaders {
            self.set(place, |response| name_leader(broker, topic, response));
        }
    }

    /// One partition is done with, as far as its own log goes.
    fn settled(self: &Arc<Self>, broker: &Arc<Broker>, place: usize, result: AppendResult) {
        self.set(place, |response| fill(response, result));
        self.one_done(broker);
    }

    fn one_done(self: &Arc<Self>, broker: &Arc<Broker>) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let mut state = self.lock();
        if state.unreplicated.is_empty() {
            let done = state.take();
            drop(state);
            if let Some(done) = done {
                self.finish(broker, done);
            }
        } else {
            drop(state);
            wait::wait(broker, self.clone());
        }
    }

    fn finish(&self, broker: &Broker, done: Done) {
        let Done { topics, results, answer } = done;
        if self.acks == 0 {
            let failed = results.iter().find(|result| result.error_code != ErrorCode::None.code());
            return answer.end(failed.map_or(Outcome::NoResponse, |result| {
                let error = ErrorCode::from_code(result.error_code).map_or("an error", ErrorCode::name);
                Outcome::Close(format!("a produce with acks 0 failed with {error}"))
            }));
        }
        let mut response = ProduceResponse::default();
        if self.names_leaders && results.iter().any(|result| result.current_leader.leader_id >= 0) {
            response.node_endpoints = node_endpoints(broker, &answer.call().connection.listener);
        }
        let mut results = results.into_iter();
        for (name, count) in topics {
            let partition_responses = results.by_ref().take(count).collect();
            response.responses.push(TopicProduceResponse { name, partition_responses });
        }
        answer.send(&response);
    }
}

/// All that is needed for the answer.
struct Done {
    topics: Vec<(Str, usize)>,
    results: Vec<PartitionProduceResponse>,
    answer: Answer,
}

impl State {
    /// Takes the answer out; there is one only once.
    fn take(&mut self) -> Option<Done> {
        let answer = self.answer.take()?;
        let (topics, results) = (std::mem::take(&mut self.topics), std::mem::take(&mut self.results));
        Some(Done { topics, results, answer })
    }
}

/// Tells a producer that went to the wrong broker who leads (KIP-951).
fn name_leader(broker: &Broker, topic: &str, response: &mut PartitionProduceResponse) {
    if let Some((leader, epoch)) = broker.known_leader(topic, response.index) {
        response.current_leader = LeaderIdAndEpoch { leader_id: leader.0, leader_epoch: epoch.0 };
    }
}

fn fill(response: &mut PartitionProduceResponse, result: AppendResult) {
    match result {
        AppendResult::Done(info) | AppendResult::Unreplicated(info, _) => {
            response.base_offset = info.base_offset.0;
            response.log_append_time_ms = info.log_append_time.0;
            response.log_start_offset = info.log_start.0;
        }
        AppendResult::Failed(error) => {
            response.error_code = error.code();
            response.base_offset = -1;
        }
        AppendResult::Refused(error) => {
            let code = errors::of_append(&error);
            response.error_code = code.code();
            response.base_offset = -1;
            // Where the log begins is told with those errors that the batch itself is at fault for.
            if matches!(
                code,
                ErrorCode::CorruptMessage
                    | ErrorCode::MessageTooLarge
                    | ErrorCode::RecordListTooLarge
                    | ErrorCode::NotLeaderOrFollower
                    | ErrorCode::KafkaStorageError
            ) {
                response.log_start_offset = -1;
            }
            if let AppendError::Invalid(invalid) = &error {
                let record_errors = invalid.record_errors().iter().map(|it| BatchIndexAndErrorMessage {
                    batch_index: it.batch_index,
                    batch_index_error_message: Some(Str::from(it.fault.to_string())),
                });
                response.record_errors = record_errors.collect();
                response.error_message = Some(Str::from(error.to_string()));
            }
            tracing::debug!(partition = response.index, code = code.name(), %error, "a batch was refused");
        }
    }
}
