//! An idempotent producer of one partition that never gives up on a batch.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{ProduceResponse, ResponseHeader};
use kafka_protocol::protocol::Decodable;

use super::leader::Tries;
use super::{Leader, Load, PATIENCE, Progress};
use crate::batch::{Draft, now_ms};
use crate::calls::{self, produce_request};
use crate::checker::{Attempt, History, Outcome, Partition, RecordId, digest, payload};
use crate::raw::{Answer, Connection, frame};
use crate::wait;

const VERSION: i16 = 9;
/// Batches under way.
const IN_FLIGHT: usize = 5;
/// Records of a batch, at most.
const BATCH: u64 = 4;

/// The batch is in the log already; its offset is not told.
const DUPLICATE_SEQUENCE_NUMBER: i16 = 46;
/// Errors after which a producer asks for the leader and sends all again: LEADER_NOT_AVAILABLE,
/// UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, NETWORK_EXCEPTION, NOT_ENOUGH_REPLICAS,
/// NOT_ENOUGH_REPLICAS_AFTER_APPEND, KAFKA_STORAGE_ERROR, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
const RETRIABLE: [i16; 10] = [3, 5, 6, 7, 13, 19, 20, 56, 74, 75];

/// A batch that was sent and not acknowledged yet.
struct Pending {
    request: Bytes,
    /// Where it is among the attempts.
    attempt: usize,
}

struct Writer<'a> {
    load: &'a Load,
    partition: &'a Partition,
    producer: u32,
    id: (i64, i16),
    progress: &'a Progress,
    attempts: Vec<Attempt>,
    pending: VecDeque<Pending>,
    next: u64,
}

/// Writes until told to stop and all is acknowledged.
pub(super) fn write(
    load: &Load,
    partition: &Partition,
    producer: u32,
    progress: &Progress,
) -> Result<History> {
    let id = wait::until("a producer id", PATIENCE, || {
        Ok(load.addresses.iter().find_map(|address| producer_id(address, load.answer_limit)))
    })?;
    let (attempts, pending) = (Vec::new(), VecDeque::new());
    let mut writer = Writer { load, partition, producer, id, progress, attempts, pending, next: 0 };
    writer.run().with_context(|| format!("producer {producer} of {partition}"))?;
    let mut history = History::default();
    history.partition(partition).attempts = writer.attempts;
    Ok(history)
}

/// A producer id of the broker at `address`, if it has one at once.
fn producer_id(address: &str, answer_limit: Duration) -> Option<(i64, i16)> {
    let mut connection = Connection::open(address).ok()?;
    connection.set_answer_limit(answer_limit).ok()?;
    calls::ask_producer_id(&mut connection).ok().flatten()
}

/// How the work on one connection ended.
enum End {
    Finished,
    Broken(String),
}

impl Writer<'_> {
    fn run(&mut self) -> Result<()> {
        let mut leader = Leader::of(self.load, self.partition);
        let mut tries = Tries::new();
        loop {
            let connection = leader.connect(self.progress)?;
            let before = self.pending.front().map(|pending| pending.attempt);
            match self.work(connection)? {
                End::Finished => return Ok(()),
                End::Broken(why) => {
                    if self.pending.front().map(|pending| pending.attempt) != before {
                        tries.succeeded();
                    }
                    tries.failed(&why)?;
                }
            }
        }
    }

    /// Works on one connection until it breaks, or all is done. What is under way goes first, in order.
    fn work(&mut self, mut connection: Connection) -> Result<End> {
        for pending in &self.pending {
            if let Err(error) = connection.send(&pending.request) {
                return Ok(End::Broken(error.to_string()));
            }
        }
        loop {
            let stopping = self.progress.is_stopping();
            while !stopping && self.pending.len() < IN_FLIGHT {
                let request = self.next_batch()?;
                if let Err(error) = connection.send(&request) {
                    return Ok(End::Broken(error.to_string()));
                }
            }
            let Some(first) = self.pending.front() else { return Ok(End::Finished) };
            let attempt = first.attempt;
            let answer = match connection.receive() {
                Ok(Answer::Frame(answer)) => partition_answer(answer, i32::try_from(attempt)?)?,
                Ok(other) => return Ok(End::Broken(format!("{other:?} instead of an answer"))),
                Err(error) => return Ok(End::Broken(format!("{error:#}"))),
            };
            match answer.error_code {
                0 => self.acknowledged(Some(answer.base_offset).filter(|offset| *offset >= 0)),
                DUPLICATE_SEQUENCE_NUMBER => self.acknowledged(None),
                code if RETRIABLE.contains(&code) => return Ok(End::Broken(format!("error {code}"))),
                code => bail!("error {code} for batch {attempt}: {answer:?}"),
            }
            wait::pause(self.load.pause);
        }
    }

    fn acknowledged(&mut self, base_offset: Option<i64>) {
        let Some(pending) = self.pending.pop_front() else { return };
        if let Some(attempt) = self.attempts.get_mut(pending.attempt) {
            attempt.outcome = Outcome::Acknowledged(base_offset);
        }
        self.progress.acknowledge();
    }

    fn next_batch(&mut self) -> Result<Bytes> {
        let attempt = self.attempts.len();
        let first = RecordId { producer: self.producer, number: self.next };
        let count = 1 + u64::try_from(attempt)? % BATCH;
        let values: Vec<Bytes> = (self.next..self.next + count)
            .map(|number| payload(RecordId { number, ..first }, self.load.record_bytes))
            .collect();
        let records: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
        let sequence = i32::try_from(self.next)?;
        let batch =
            Draft::of_values(now_ms(), &records).from_producer(self.id.0, self.id.1, sequence).build();
        let produce = produce_request(&self.partition.topic, self.partition.index, batch, -1);
        // The correlation id tells which batch is answered.
        let request = frame(VERSION, i32::try_from(attempt)?, &produce)?;
        let digests = values.iter().map(|value| digest(value)).collect();
        self.attempts.push(Attempt { first, digests, outcome: Outcome::Unknown });
        self.pending.push_back(Pending { request: request.clone(), attempt });
        self.next += count;
        Ok(request)
    }
}

fn partition_answer(mut answer: Bytes, expected: i32) -> Result<PartitionProduceResponse> {
    let header = ResponseHeader::decode(&mut answer, 1)?;
    ensure!(header.correlation_id == expected, "answer {} where {expected} belongs", header.correlation_id);
    let response = ProduceResponse::decode(&mut answer, VERSION)?;
    let topic = response.responses.into_iter().next().context("no topic in the answer")?;
    topic.partition_responses.into_iter().next().context("no partition in the answer")
}
