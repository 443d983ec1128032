//! A reader of one partition: from its beginning, in order, from whoever leads.

use std::sync::{Arc, Mutex, PoisonError};

use wire::Str;
use wire::batch::batches;
use wire::error_code::ErrorCode;
use wire::messages::fetch_request::{FetchPartition, FetchTopic};
use wire::messages::fetch_response::PartitionData;
use wire::messages::{FetchRequest, FetchResponse};

use super::Workload;
use super::client::Client;
use crate::check::records::{self, Read};
use crate::check::starts::{Led, Told};
use crate::world::World;

/// The pause after a try that has failed, in microseconds.
const BACK_OFF_US: u64 = 80_000;
/// The pause between two reads, in microseconds.
const PAUSE_US: u64 = 20_000;
/// The version of Fetch: the newest that names topics.
const FETCH_VERSION: i16 = 12;
/// How often the reading of everything is tried before it is given up.
const MAX_TRIES: u32 = 40;
/// How long a fetch waits for records, in milliseconds.
const MAX_WAIT_MS: i32 = 400;

/// See the module's text.
pub(crate) struct Reader {
    client: Arc<Client>,
    topic: String,
    partition: i32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    position: i64,
}

impl Reader {
    pub(super) fn begin(
        workload: &Arc<Workload>,
        world: &Arc<World>,
        number: u32,
        topic: &str,
        partition: i32,
    ) -> Arc<Self> {
        let reader = Arc::new(Self {
            client: Client::new(number),
            topic: topic.to_owned(),
            partition,
            state: Mutex::default(),
        });
        reader.pause(workload, world, 2_000);
        reader
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it reads.
    pub(super) fn target(&self) -> (&str, i32) {
        (&self.topic, self.partition)
    }

    /// Below which offset it has read.
    pub(super) fn position(&self) -> i64 {
        self.lock().position
    }

    /// Reads everything from `start` to `end` (exclusive); lets the world go on meanwhile. The high watermark of a
    /// leader that was elected just now may still lie below.
    pub(super) fn read_whole(
        self: &Arc<Self>,
        world: &Arc<World>,
        start: i64,
        end: i64,
    ) -> Vec<(i64, String)> {
        let mut whole = Vec::new();
        let (mut tries, mut position) = (0, start);
        while tries < MAX_TRIES {
            tries += 1;
            let Some(data) = self.fetch_now(world, position) else { continue };
            let read = self.records_of(world, &data, position);
            if read.next > position {
                tries = 0;
            }
            position = read.next;
            whole.extend(read.records);
            if position >= end {
                return whole;
            }
        }
        let (topic, partition) = self.target();
        world.findings.add(world, format!("{topic}-{partition} cannot be read to its end at rest"));
        whole
    }

    fn fetch_now(self: &Arc<Self>, world: &Arc<World>, position: i64) -> Option<PartitionData> {
        let fetched: Arc<Mutex<Option<Option<PartitionData>>>> = Arc::default();
        let (reader, slot) = (self.clone(), fetched.clone());
        self.client.refresh(world, Some(&self.topic), move |world| {
            let keep = move |data| *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(data);
            match reader.client.leader(&reader.topic, reader.partition) {
                Some((leader, epoch)) => {
                    let request = reader.request(position, epoch);
                    reader.client.call(world, leader, FETCH_VERSION, &request, move |_, answer| {
                        keep(data_of(answer).filter(|data| data.error_code == 0));
                    });
                }
                None => keep(None),
            }
        });
        let is_open = || fetched.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        world.run_while(is_open);
        fetched.lock().unwrap_or_else(PoisonError::into_inner).take().flatten()
    }

    fn pause(self: &Arc<Self>, workload: &Arc<Workload>, world: &Arc<World>, us: u64) {
        let (reader, workload) = (self.clone(), workload.clone());
        world.schedule.after(us, "reader", move |world| reader.go_on(&workload, world));
    }

    fn look_and_try_again(self: &Arc<Self>, workload: &Arc<Workload>, world: &Arc<World>) {
        let (reader, workload) = (self.clone(), workload.clone());
        self.client
            .refresh(world, Some(&self.topic), move |world| reader.pause(&workload, world, BACK_OFF_US));
    }

    fn go_on(self: &Arc<Self>, workload: &Arc<Workload>, world: &Arc<World>) {
        if !workload.topics.is_there(&self.topic) {
            return;
        }
        let Some((leader, epoch)) = self.client.leader(&self.topic, self.partition) else {
            return self.look_and_try_again(workload, world);
        };
        let position = self.position();
        let request = self.request(position, epoch);
        let asked_us = world.schedule.now_us();
        let led = Led { epoch, life: world.node(leader).lives() };
        let (reader, workload) = (self.clone(), workload.clone());
        self.client.call(world, leader, FETCH_VERSION, &request, move |world, answer| {
            // Whose answer it is cannot be told when the broker has another life by now.
            match data_of(answer).filter(|_| world.node(leader).lives() == led.life) {
                Some(data) => {
                    let told = Told { led, start: data.log_start_offset, position, asked_us };
                    reader.answered(&workload, world, told, data);
                }
                None => reader.look_and_try_again(&workload, world),
            }
        });
    }

    fn request(&self, position: i64, epoch: i32) -> FetchRequest {
        let partition = FetchPartition {
            partition: self.partition,
            current_leader_epoch: epoch,
            fetch_offset: position,
            partition_max_bytes: 16_384,
            ..FetchPartition::default()
        };
        FetchRequest {
            max_wait_ms: MAX_WAIT_MS,
            min_bytes: 1,
            topics: vec![FetchTopic {
                topic: Str::from(self.topic.as_str()),
                partitions: vec![partition],
                ..FetchTopic::default()
            }],
            ..FetchRequest::default()
        }
    }

    fn answered(
        self: &Arc<Self>,
        workload: &Arc<Workload>,
        world: &Arc<World>,
        told: Told,
        data: PartitionData,
    ) {
        let Told { led: Led { epoch, .. }, position, .. } = told;
        match ErrorCode::from_code(data.error_code) {
            Some(ErrorCode::None) => workload.starts.told(world, &self.topic, self.partition, told),
            Some(ErrorCode::OffsetOutOfRange)
                if position < workload.starts.may_begin_at(&self.topic, self.partition) =>
            {
                // A deletion went beyond it while it looked for the leader, or while the leader was another.
                self.lock().position = workload.starts.may_begin_at(&self.topic, self.partition);
                return self.look_and_try_again(workload, world);
            }
            Some(ErrorCode::OffsetOutOfRange) => {
                workload.judges.out_of_range(world, &self.topic, self.partition, position, epoch);
                // Only an unclean election can do this: what is read now is another log.
                self.lock().position = 0;
                return self.look_and_try_again(workload, world);
            }
            _ => return self.look_and_try_again(workload, world),
        }
        let read = self.records_of(world, &data, position);
        for (offset, record) in read.records {
            let (topic, partition) = (self.topic.clone(), self.partition);
            workload.judges.read(world, Read { topic, partition, offset, record });
            workload.did("records read");
        }
        self.lock().position = read.next;
        self.pause(workload, world, PAUSE_US);
    }

    /// The records of an answer from `position` on.
    fn records_of(&self, world: &World, data: &PartitionData, position: i64) -> Given {
        let mut given = Given { records: Vec::new(), next: position };
        for batch in batches(data.records.clone().unwrap_or_default()) {
            let batch = match batch.and_then(|batch| batch.verify_crc().map(|()| batch)) {
                Ok(batch) => batch,
                Err(error) => {
                    let place = format!("{}-{}", self.topic, self.partition);
                    world
                        .findings
                        .add(world, format!("{place} sends a damaged batch after {position}: {error}"));
                    break;
                }
            };
            given.next = given.next.max(batch.header.last_offset().0 + 1);
            let read = records::in_batch(&batch);
            given.records.extend(read.into_iter().filter(|(offset, _)| *offset >= position));
        }
        given
    }
}

/// What a reader is given.
struct Given {
    /// The records and their offsets.
    records: Vec<(i64, String)>,
    /// From where it is to read on.
    next: i64,
}

/// What an answer says of the partition that was asked about.
fn data_of(answer: Result<FetchResponse, String>) -> Option<PartitionData> {
    let mut response = answer.ok().filter(|response| response.error_code == 0)?;
    response.responses.pop()?.partitions.pop()
}
