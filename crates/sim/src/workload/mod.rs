//! What clients do: they create topics and delete them, write, read, and delete records, over the protocol alone.

mod admin;
mod client;
mod offsets;
mod producer;
mod reader;
mod topics;
mod trimmer;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::check::compacted;
use crate::check::latest::Latest;
use crate::check::offsets::Offsets;
use crate::check::records::Records;
use crate::check::replicas;
use crate::check::starts::Starts;
use crate::world::World;

pub(crate) use topics::{Kind, Stage, Topic};

use client::Client;
use producer::{Acks, Producer};
use reader::Reader;
use topics::Topics;
use trimmer::Trimmer;

/// The longest time between two short-lived topics, in microseconds.
const DOOMED_EVERY_US: u64 = 9_000_000;
/// How long a short-lived topic lives, in microseconds.
const DOOMED_LIVE_US: std::ops::RangeInclusive<u64> = 500_000..=6_000_000;

/// All clients of a run.
pub(crate) struct Workload {
    admin: Arc<Client>,
    topics: Topics,
    judges: Records,
    ends: Offsets,
    starts: Starts,
    latest: Latest,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    clients: u32,
    doomed: u32,
    is_stopped: bool,
    done: BTreeMap<&'static str, u64>,
    producers: Vec<Arc<Producer>>,
    readers: Vec<Arc<Reader>>,
    trimmers: Vec<Arc<Trimmer>>,
}

impl Workload {
    /// The clients begin.
    pub(crate) fn begin(world: &Arc<World>) -> Arc<Self> {
        let workload = Arc::new(Self {
            admin: Client::new(0),
            topics: Topics::default(),
            judges: Records::default(),
            ends: Offsets::default(),
            starts: Starts::default(),
            latest: Latest::default(),
            state: Mutex::default(),
        });
        for (name, kind, partitions) in admin::first_topics(world.plan.seed) {
            workload.want(world, name, kind, partitions);
        }
        let growing = workload.clone();
        let at_us = world.chances.clients.within(5_000_000..=25_000_000);
        world.schedule.at(at_us, "grow", move |world| growing.grow(world, Kind::Safe.name(), 3));
        workload.doom_later(world);
        workload
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something was done.
    fn did(&self, what: &'static str) {
        *self.lock().done.entry(what).or_default() += 1;
    }

    /// Whether nothing new is to be begun.
    fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// What was done how often.
    pub(crate) fn done(&self) -> BTreeMap<&'static str, u64> {
        self.lock().done.clone()
    }

    fn next_client(&self) -> u32 {
        let mut state = self.lock();
        state.clients += 1;
        state.clients
    }

    fn want(self: &Arc<Self>, world: &Arc<World>, name: &str, kind: Kind, partitions: i32) {
        self.judges.topic(name, kind);
        let topic = self.topics.want(name, kind, partitions);
        let workload = self.clone();
        admin::create(self, world, topic.clone(), move |world| {
            for partition in 0..topic.partitions {
                workload.use_partition(world, &topic, partition);
            }
        });
    }

    fn use_partition(self: &Arc<Self>, world: &Arc<World>, topic: &Topic, partition: i32) {
        let mut all = vec![Acks::All];
        if topic.kind == Kind::Safe && partition == 0 {
            all.push(Acks::Leader);
        }
        for acks in all {
            let number = self.next_client();
            let producer = Producer::begin(self, world, number, &topic.name, partition, acks);
            self.lock().producers.push(producer);
        }
        let number = self.next_client();
        let reader = Reader::begin(self, world, number, &topic.name, partition);
        self.lock().readers.push(reader.clone());
        if topic.kind == Kind::Trimmed {
            let trimmer = Trimmer::begin(self, world, self.next_client(), reader);
            self.lock().trimmers.push(trimmer);
        }
        if topic.kind.is_clean() {
            let client = Client::new(self.next_client());
            offsets::begin(self, world, client, topic.name.clone(), partition);
        }
    }

    fn grow(self: &Arc<Self>, world: &Arc<World>, name: &'static str, count: i32) {
        let workload = self.clone();
        let Some(topic) = self.topics.get(name).filter(|topic| topic.stage == Stage::There) else {
            return world.schedule.after(1_000_000, "grow", move |world| workload.grow(world, name, count));
        };
        admin::grow(self, world, name.to_owned(), count);
        // Its clients wait until they are told of it.
        for partition in topic.partitions..count {
            self.use_partition(world, &topic, partition);
        }
    }

    /// Topics that come and go.
    fn doom_later(self: &Arc<Self>, world: &Arc<World>) {
        let workload = self.clone();
        let after_us = world.chances.clients.within(1_000_000..=DOOMED_EVERY_US);
        world.schedule.after(after_us, "doomed", move |world| {
            let number = {
                let mut state = workload.lock();
                if state.is_stopped {
                    return;
                }
                state.doomed += 1;
                state.doomed
            };
            let name = format!("{}{number}", Kind::Doomed.name());
            workload.want(world, &name, Kind::Doomed, 1);
            let lives_us = world.chances.clients.within(DOOMED_LIVE_US);
            let then = workload.clone();
            world.schedule.after(lives_us, "delete", move |world| then.delete(world, name));
            workload.doom_later(world);
        });
    }

    fn delete(self: &Arc<Self>, world: &Arc<World>, name: String) {
        // What is there at the end is judged with the rest.
        if self.lock().is_stopped {
            return;
        }
        if self.topics.is_there(&name) {
            return admin::delete(self, world, name);
        }
        let workload = self.clone();
        world.schedule.after(500_000, "delete", move |world| workload.delete(world, name));
    }

    /// Nothing new is begun; what was begun is brought to an end.
    pub(crate) fn stop(&self) {
        let producers = {
            let mut state = self.lock();
            state.is_stopped = true;
            state.producers.clone()
        };
        for producer in producers {
            producer.stop();
        }
    }

    /// All is at rest: readers read on to the end, and what they read from the beginning is judged as a whole.
    pub(crate) fn judge_at_rest(self: &Arc<Self>, world: &Arc<World>) {
        replicas::judge(world);
        let (readers, trimmers) = {
            let state = self.lock();
            (state.readers.clone(), state.trimmers.clone())
        };
        for trimmer in trimmers {
            trimmer.judge_at_rest(self, world);
        }
        for reader in readers {
            let (topic, partition) = reader.target();
            if self.topics.is_there(topic) {
                let start = self.starts.may_begin_at(topic, partition);
                let whole = reader.read_whole(world, start, replicas::longest(world, topic, partition));
                if self.topics.is_of(topic, Kind::Compacted) {
                    self.latest.judge(world, (topic, partition), "its leader", &whole);
                    for (id, records) in compacted::records(world, topic, partition) {
                        self.latest.judge(world, (topic, partition), &format!("the disk of {id}"), &records);
                    }
                    self.did("compacted logs compared");
                } else {
                    self.judges.judge_whole(world, topic, partition, start, &whole);
                }
            }
        }
    }

    /// What keeps clients waiting, if anything does.
    pub(crate) fn waits_for(&self) -> Option<String> {
        let topics = self.topics.all();
        if let Some(topic) = topics.iter().find(|topic| topic.stage == Stage::Wanted) {
            return Some(format!("topic {} is not created", topic.name));
        }
        if let Some(topic) = topics.iter().find(|topic| topic.stage == Stage::Leaving) {
            return Some(format!("topic {} is not deleted", topic.name));
        }
        let state = self.lock();
        let waiting = state.producers.iter().filter(|it| self.topics.is_there(it.target().0));
        let mut waiting = waiting.filter(|it| !it.is_idle());
        waiting.next().map(|it| format!("a batch for {}-{} is not confirmed", it.target().0, it.target().1))
    }
}
