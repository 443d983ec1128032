//! A producer of one partition: one batch at a time, the same one again until it is confirmed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use wire::Str;
use wire::batch::{BatchBuilder, Compression};
use wire::error_code::ErrorCode;
use wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use wire::messages::{InitProducerIdRequest, ProduceRequest};
use wire::types::Millis;

use super::Workload;
use super::client::Client;
use super::topics::Kind;
use crate::check::records::Confirmed;
use crate::world::{BROKERS, World};

/// The pause after a try that has failed, in microseconds.
const BACK_OFF_US: u64 = 60_000;
/// How long the leader may wait for the other replicas, in milliseconds.
const PATIENCE_MS: i32 = 1_500;
/// The most records of a batch.
const MAX_RECORDS: u64 = 4;
/// How many keys a producer writes, where records have keys.
const KEYS: usize = 12;
/// How many of a thousand records with a key say that the key is gone.
const TOMBSTONES: u64 = 150;

/// What a producer wants before it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acks {
    /// All in-sync replicas; each record once (idempotence).
    All,
    /// The leader alone; a record may come twice.
    Leader,
}

/// See the module's text.
pub(crate) struct Producer {
    client: Arc<Client>,
    number: u32,
    topic: String,
    partition: i32,
    acks: Acks,
    has_keys: bool,
    state: Mutex<State>,
}

struct State {
    /// Id and epoch, once they are given.
    identity: Option<(i64, i16)>,
    next_sequence: i32,
    next_record: u64,
    /// The batch that is not confirmed yet.
    batch: Option<Batch>,
    is_stopped: bool,
}

#[derive(Clone)]
struct Batch {
    records: Vec<String>,
    sequence: i32,
}

impl Producer {
    pub(super) fn begin(
        workload: &Arc<Workload>,
        world: &Arc<World>,
        number: u32,
        topic: &str,
        partition: i32,
        acks: Acks,
    ) -> Arc<Self> {
        let state =
            State { identity: None, next_sequence: 0, next_record: 0, batch: None, is_stopped: false };
        let producer = Arc::new(Self {
            client: Client::new(number),
            number,
            topic: topic.to_owned(),
            partition,
            acks,
            has_keys: workload.topics.is_of(topic, Kind::Compacted),
            state: Mutex::new(state),
        });
        producer.pause(workload, world, 1_000);
        producer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No batch is begun any more.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
    }

    /// Whether nothing waits for a confirmation.
    pub(super) fn is_idle(&self) -> bool {
        self.lock().batch.is_none()
    }

    /// What it writes to.
    pub(super) fn target(&self) -> (&str, i32) {
        (&self.topic, self.partition)
    }

    fn pause(self: &Arc<Self>, workload: &Arc<Workload>, world: &Arc<World>, us: u64) {
        let (producer, workload) = (self.clone(), workload.clone());
        world.schedule.after(us, "producer", move |world| producer.go_on(&workload, world));
    }

    fn go_on(self: &Arc<Self>, workload: &Arc<Workload>, world: &Arc<World>) {
        if !workload.topics.is_there(&self.topic) {
            self.lock().batch = None;
            return;
        }
        if self.acks == Acks::All && self.lock().identity.is_none() {
            return self.ask_for_identity(workload, world);
        }
        let batch = {
            let mut state = self.lock();
            if state.is_stopped && state.batch.is_none() {
                return;
            }
            if state.batch.is_none() {
                let count = world.chances.clients.within(1..=MAX_RECORDS);
                let first = state.next_record;
                let records = (first..first + count).map(|record| self.record(world, record));
                state.batch = Some(Batch { records: records.collect(), sequence: state.next_sequence });
                state.next_record += count;
            }
            state.batch.clone().expect("a batch")
        };
        let Some((leader, _)) = self.client.leader(&self.topic, self.partition) else {
            return self.look_and_try_again(workload, world);
        };
        let request = self.request(world, &batch);
        let (producer, workload) = (self.clone(), workload.clone());
        self.client.call(world, leader, 9, &request, move |world, answer| {
            let outcome = answer.map(|response| {
                let partition = response.responses.first().and_then(|it| it.partition_responses.first());
                partition.map_or((-1, -1), |it| (it.error_code, it.base_offset))
            });
            producer.answered(&workload, world, batch, outcome);
        });
    }

    /// The text of a record by its number. Where records have keys, nobody else writes those of this producer.
    fn record(&self, world: &World, record: u64) -> String {
        let number = self.number;
        if !self.has_keys {
            return format!("{number}-{record}");
        }
        let key = world.chances.clients.below(KEYS);
        if world.chances.clients.per_mille(TOMBSTONES) {
            format!("{number}k{key}=")
        } else {
            format!("{number}k{key}={number}-{record}")
        }
    }

    fn request(&self, world: &World, batch: &Batch) -> ProduceRequest {
        let mut builder = BatchBuilder::new(Compression::None);
        if let Some((id, epoch)) = self.lock().identity {
            builder = builder.producer(id, epoch, batch.sequence);
        }
        let now = Millis(world.now().wall_ms);
        for record in &batch.records {
            match record.split_once('=') {
                None => builder.append(now, None, Some(record.as_bytes())),
                Some((key, "")) => builder.append(now, Some(key.as_bytes()), None),
                Some((key, value)) => builder.append(now, Some(key.as_bytes()), Some(value.as_bytes())),
            };
        }
        let records: Bytes = builder.build().expect("a batch").bytes;
        let data = PartitionProduceData { index: self.partition, records: Some(records) };
        ProduceRequest {
            acks: if self.acks == Acks::All { -1 } else { 1 },
            timeout_ms: PATIENCE_MS,
            topic_data: vec![TopicProduceData {
                name: Str::from(self.topic.as_str()),
                partition_data: vec![data],
            }],
            ..ProduceRequest::default()
        }
    }

    fn answered(
        self: &Arc<Self>,
        workload: &Arc<Workload>,
        world: &Arc<World>,
        batch: Batch,
        outcome: Result<(i16, i64), String>,
    ) {
        let (code, base_offset) = match outcome {
            Ok(outcome) => outcome,
            Err(_) => return self.look_and_try_again(workload, world),
        };
        match ErrorCode::from_code(code) {
            Some(ErrorCode::None | ErrorCode::DuplicateSequenceNumber) => {
                let offset = Some(base_offset).filter(|it| *it >= 0 && code == 0);
                workload.did(if self.acks == Acks::All {
                    "batches confirmed by all"
                } else {
                    "batches written"
                });
                world.note(format_args!(
                    "{}-{}: {:?} at {offset:?}",
                    self.topic, self.partition, batch.records
                ));
                if self.acks == Acks::All {
                    let confirmed = Confirmed {
                        topic: self.topic.clone(),
                        partition: self.partition,
                        offset,
                        records: batch.records.clone(),
                    };
                    workload.latest.confirmed(&confirmed);
                    workload.judges.confirmed(world, confirmed);
                }
                {
                    let mut state = self.lock();
                    state.batch = None;
                    state.next_sequence += i32::try_from(batch.records.len()).unwrap_or(0);
                }
                let pause_us = world.chances.clients.within(5_000..=150_000);
                self.pause(workload, world, pause_us);
            }
            Some(
                error @ (ErrorCode::OutOfOrderSequenceNumber
                | ErrorCode::UnknownProducerId
                | ErrorCode::InvalidProducerEpoch
                | ErrorCode::InvalidRecord
                | ErrorCode::CorruptMessage),
            ) => {
                workload.judges.producer_refused(world, &self.topic, self.partition, error);
                // It begins anew under another id, and does not know whether the batch is there.
                {
                    let mut state = self.lock();
                    state.identity = None;
                    state.next_sequence = 0;
                    state.batch = None;
                }
                self.pause(workload, world, BACK_OFF_US);
            }
            _ => self.look_and_try_again(workload, world),
        }
    }

    fn look_and_try_again(self: &Arc<Self>, workload: &Arc<Workload>, world: &Arc<World>) {
        let (producer, workload) = (self.clone(), workload.clone());
        self.client
            .refresh(world, Some(&self.topic), move |world| producer.pause(&workload, world, BACK_OFF_US));
    }

    fn ask_for_identity(self: &Arc<Self>, workload: &Arc<Workload>, world: &Arc<World>) {
        let request = InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: 60_000,
            ..InitProducerIdRequest::default()
        };
        let to = *world.chances.clients.pick(&BROKERS).unwrap_or(&BROKERS[0]);
        let (producer, workload) = (self.clone(), workload.clone());
        self.client.call(world, to, 4, &request, move |world, answer| {
            if let Ok(response) = answer
                && response.error_code == ErrorCode::None.code()
            {
                producer.lock().identity = Some((response.producer_id, response.producer_epoch));
                workload.judges.producer_id(world, response.producer_id, response.producer_epoch);
                return producer.go_on(&workload, world);
            }
            producer.pause(&workload, world, BACK_OFF_US);
        });
    }
}
