//! A client that deletes what its partition's reader has read, again and again, but for the last few records.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use wire::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

use super::Workload;
use super::client::Client;
use super::reader::Reader;
use crate::check::replicas;
use crate::check::starts::Led;
use crate::world::World;

/// The pause between two deletions, in microseconds.
const PAUSE_US: RangeInclusive<u64> = 500_000..=4_000_000;
/// How many of the records that were read are left; the log may be made to begin inside of a batch.
const LEFT: RangeInclusive<u64> = 1..=12;
/// How long the leader may wait for the other replicas, in milliseconds.
const PATIENCE_MS: i32 = 1_500;
/// The version of DeleteRecords.
const VERSION: i16 = 2;
/// How often the last deletion is tried before it is given up.
const MAX_TRIES: u32 = 40;

/// See the module's text.
pub(super) struct Trimmer {
    client: Arc<Client>,
    reader: Arc<Reader>,
}

impl Trimmer {
    /// Begins to delete what `reader` has read.
    pub(super) fn begin(
        workload: &Arc<Workload>,
        world: &Arc<World>,
        number: u32,
        reader: Arc<Reader>,
    ) -> Arc<Self> {
        let trimmer = Arc::new(Self { client: Client::new(number), reader });
        trimmer.pause(workload, world);
        trimmer
    }

    fn pause(self: &Arc<Self>, workload: &Arc<Workload>, world: &Arc<World>) {
        let pause_us = world.chances.clients.within(PAUSE_US);
        let (trimmer, workload) = (self.clone(), workload.clone());
        world.schedule.after(pause_us, "trim", move |world| trimmer.go_on(&workload, world));
    }

    fn go_on(self: &Arc<Self>, workload: &Arc<Workload>, world: &Arc<World>) {
        let (topic, _) = self.reader.target();
        if workload.is_stopped() || !workload.topics.is_there(topic) {
            return;
        }
        let (trimmer, then) = (self.clone(), workload.clone());
        self.delete(workload, world, self.end(world), move |world, _| trimmer.pause(&then, world));
    }

    /// Below which offset is to be deleted.
    fn end(&self, world: &World) -> i64 {
        let left = i64::try_from(world.chances.clients.within(LEFT)).unwrap_or(i64::MAX);
        self.reader.position().saturating_sub(left)
    }

    /// Deletes below `offset`, if there is anything, and tells `then` whether that was confirmed.
    fn delete(
        self: &Arc<Self>,
        workload: &Arc<Workload>,
        world: &Arc<World>,
        offset: i64,
        then: impl FnOnce(&Arc<World>, bool) + Send + 'static,
    ) {
        let (topic, partition) = self.reader.target();
        let Some((leader, epoch)) = self.client.leader(topic, partition).filter(|_| offset > 0) else {
            return self.client.refresh(world, Some(topic), move |world| then(world, false));
        };
        // From now on they may be gone, whatever comes of it.
        workload.starts.wanted(topic, partition, offset);
        let topics = vec![DeleteRecordsTopic {
            name: Str::from(topic),
            partitions: vec![DeleteRecordsPartition { partition_index: partition, offset }],
        }];
        let request = DeleteRecordsRequest { topics, timeout_ms: PATIENCE_MS };
        let (trimmer, workload) = (self.clone(), workload.clone());
        let life = world.node(leader).lives();
        self.client.call(world, leader, VERSION, &request, move |world, answer| {
            let (topic, partition) = trimmer.reader.target();
            // Whose answer it is cannot be told when the broker has another life by now.
            let told = confirmed(answer).filter(|_| world.node(leader).lives() == life);
            let Some(low_watermark) = told else {
                return trimmer.client.refresh(world, Some(topic), move |world| then(world, false));
            };
            workload.did("deletions of records confirmed");
            workload.starts.deleted(world, (topic, partition), Led { epoch, life }, offset, low_watermark);
            then(world, true);
        });
    }

    /// All is at rest: a last deletion goes through, and all replicas begin where it says; lets the world go on meanwhile.
    pub(super) fn judge_at_rest(self: &Arc<Self>, workload: &Arc<Workload>, world: &Arc<World>) {
        let (topic, partition) = self.reader.target();
        let offset = self.end(world).max(workload.starts.may_begin_at(topic, partition));
        if offset <= 0 || !workload.topics.is_there(topic) {
            return;
        }
        for _ in 0..MAX_TRIES {
            if self.delete_now(workload, world, offset) {
                workload.did("starts of logs compared");
                return replicas::judge_starts(world, topic, partition, offset);
            }
        }
        world.findings.add(
            world,
            format!("the records of {topic}-{partition} below {offset} cannot be deleted at rest"),
        );
    }

    fn delete_now(self: &Arc<Self>, workload: &Arc<Workload>, world: &Arc<World>, offset: i64) -> bool {
        let outcome: Arc<Mutex<Option<bool>>> = Arc::default();
        let slot = outcome.clone();
        let get = |outcome: &Mutex<Option<bool>>| *outcome.lock().unwrap_or_else(PoisonError::into_inner);
        self.delete(workload, world, offset, move |_, is_done| {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(is_done);
        });
        world.run_while(|| get(&outcome).is_none());
        get(&outcome).unwrap_or(false)
    }
}

/// The low watermark, if the deletion was confirmed.
fn confirmed(answer: Result<DeleteRecordsResponse, String>) -> Option<i64> {
    let response = answer.ok()?;
    let result = response.topics.first()?.partitions.first()?;
    (result.error_code == ErrorCode::None.code()).then_some(result.low_watermark)
}
