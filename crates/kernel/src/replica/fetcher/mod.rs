//! One replica fetcher: it copies partitions from one leader, whatever happened to the logs before (KIP-101, KIP-279,
//! KIP-595). It truncates by leader epochs, fetches, backs off, and gives a partition up when it must.
//!
//! Invariants: at most one request is under way, and none is sent while a log is being worked on; a truncation goes by
//! leader epochs wherever both sides know some, by the high watermark only where one side knows none; nothing is
//! taken from an answer for another leader epoch or offset than the present one.

mod answers;
mod assignment;
mod data;
mod event;
mod partition;
mod requests;
mod session;
#[cfg(test)]
mod tests;
pub mod truncation;
mod works;

use std::collections::BTreeMap;

use wire::types::{LeaderEpoch, Now, TopicPartition};

pub use assignment::fetcher_of;
pub use event::*;

use self::partition::{Lookup, Partition, Partitions, State};
use self::session::Session;
use super::log_view::LogView;
use crate::metadata_version::MetadataVersion;
use crate::planted::{Fault, Faults};

/// What a fetcher goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The pause after an error, in milliseconds (`replica.fetch.backoff.ms`).
    pub backoff_ms: i64,
    /// The most bytes asked for of one partition (`replica.fetch.max.bytes`).
    pub partition_max_bytes: i32,
    /// What the brokers of the cluster speak (`inter.broker.protocol.version`).
    pub protocol: MetadataVersion,
    /// Faults planted by a test build; none otherwise.
    pub faults: Faults,
}

impl Settings {
    /// Whether ends of epochs can be asked for before anything is fetched (KIP-101).
    fn may_ask_epochs(&self) -> bool {
        self.protocol.offset_for_leader_epoch_supported() && !self.truncates_by_high_watermark()
    }

    /// Whether the leader tells in its answers to fetches where the logs part (KIP-595).
    fn is_told_by_fetch(&self) -> bool {
        self.protocol.truncation_on_fetch_supported() && !self.truncates_by_high_watermark()
    }

    fn truncates_by_high_watermark(&self) -> bool {
        self.faults.has(Fault::TruncationByHighWatermark)
    }
}

/// The state of one fetcher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fetcher {
    settings: Settings,
    partitions: Partitions,
    session: Session,
    under_way: Option<(RequestId, Question)>,
    /// When all partitions are looked at again, and not only those that something has happened to.
    look_at_all_ms: i64,
    next_request: u64,
    next_work: u64,
}

/// What the request under way asks, as far as the session does not know it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Question {
    Fetch,
    /// The epoch asked for, and the leader epoch in which it was.
    Epochs(BTreeMap<TopicPartition, (LeaderEpoch, LeaderEpoch)>),
    /// The leader epoch in which it was asked.
    Offsets(Target, BTreeMap<TopicPartition, LeaderEpoch>),
}

impl Fetcher {
    /// A fetcher without partitions.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            partitions: Partitions::default(),
            session: Session::default(),
            under_way: None,
            look_at_all_ms: i64::MIN,
            next_request: 0,
            next_work: 0,
        }
    }

    /// Takes in an event, and pushes what is to be done.
    pub fn step(&mut self, now: Now, logs: &dyn LogView, event: Event, out: &mut Vec<Command>) {
        let mut step = Step { fetcher: self, mono_ms: now.mono_ms, logs, out };
        step.take_in(event);
        step.go_on();
    }

    /// When to be woken with [`Event::Tick`], on the monotonic clock.
    pub fn deadline(&self) -> Option<i64> {
        if self.under_way.is_some() || self.partitions.any_work() {
            return None;
        }
        self.partitions.iter().filter_map(|(_, partition)| partition.delayed_until_ms).min()
    }

    /// The number of partitions.
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Whether there are no partitions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each partition with how many records it is behind the leader's high watermark, `None` before the first answer.
    pub fn lags(&self) -> impl Iterator<Item = (&TopicPartition, Option<i64>)> {
        self.partitions.iter().map(|(name, partition)| (name, partition.lag))
    }

    /// Panics if an invariant of the state does not hold.
    pub fn check(&self) {
        self.partitions.check();
        let idle = self.under_way.is_none() || !self.partitions.any_work();
        assert!(idle, "no request is under way while a log is being worked on");
    }
}

/// One step: the state and what it works with.
struct Step<'a> {
    fetcher: &'a mut Fetcher,
    mono_ms: i64,
    logs: &'a dyn LogView,
    out: &'a mut Vec<Command>,
}

impl Step<'_> {
    fn take_in(&mut self, event: Event) {
        match event {
            Event::Add(additions) => additions.into_iter().for_each(|it| self.add(it)),
            Event::Remove(names) => {
                for name in names {
                    self.fetcher.partitions.remove(&name);
                }
            }
            Event::TopicIds(ids) => {
                for (name, id) in ids {
                    if let Some(partition) = self.fetcher.partitions.get_mut(&name) {
                        partition.topic_id = id;
                    }
                }
            }
            Event::FetchReply(id, reply) => self.fetch_replied(id, reply),
            Event::EpochReply(id, replies) => self.epochs_replied(id, replies),
            Event::ListOffsetsReply(id, replies) => self.offsets_replied(id, replies),
            Event::RequestFailed(id) => self.request_failed(id),
            Event::Truncated { work, partition, log_end, latest_epoch } => {
                self.truncated(work, &partition, log_end, latest_epoch);
            }
            Event::Appended { work, partition, log_end, last_epoch } => {
                self.appended(work, &partition, log_end, last_epoch);
            }
            Event::AppendFailed { work, partition, failure } => self.append_failed(work, &partition, failure),
            Event::LogFailed(name, leader_epoch) => self.log_failed(&name, leader_epoch),
            Event::Fenced(name, leader_epoch) => self.fenced(&name, leader_epoch),
            Event::Tick => {}
        }
    }

    fn add(&mut self, addition: Addition) {
        let Addition { partition: name, topic_id, leader_epoch, offset } = addition;
        if self.fetcher.partitions.get(&name).is_some_and(|it| it.leader_epoch == leader_epoch) {
            return;
        }
        // Where the logs part, the leader tells in its answer; that takes an epoch to ask about.
        let by_fetch = offset.0 >= 0 && self.fetcher.settings.is_told_by_fetch();
        let last_fetched_epoch = self.logs.latest_epoch(&name).filter(|_| by_fetch);
        let state = match last_fetched_epoch {
            _ if offset.0 < 0 => State::OutOfRange(Lookup::Latest),
            Some(_) => State::Fetching,
            None => State::Truncating,
        };
        let offset = if offset.0 >= 0 && self.fetcher.settings.truncates_by_high_watermark() {
            self.logs.offsets(&name).map_or(offset, |it| it.high_watermark)
        } else {
            offset
        };
        let mut partition = Partition::new(topic_id, leader_epoch, offset, state);
        partition.last_fetched_epoch = last_fetched_epoch;
        self.fetcher.partitions.insert(name, partition);
    }

    /// The pause after an error; one that lasts is not made longer.
    fn delay(&mut self, name: &TopicPartition) {
        let until_ms = self.until_ms();
        if let Some(partition) = self.fetcher.partitions.get_mut(name) {
            partition.delay(self.mono_ms, until_ms);
            self.fetcher.partitions.move_to_end(name);
            self.fetcher.look_at_all_ms = self.fetcher.look_at_all_ms.min(until_ms);
        }
    }

    fn delay_all(&mut self) {
        let until_ms = self.until_ms();
        for partition in self.fetcher.partitions.values_mut() {
            partition.delay(self.mono_ms, until_ms);
        }
        self.fetcher.look_at_all_ms = self.mono_ms;
    }

    fn until_ms(&self) -> i64 {
        self.mono_ms.saturating_add(self.fetcher.settings.backoff_ms)
    }

    fn fail(&mut self, name: &TopicPartition, failure: Failure) {
        if self.fetcher.partitions.remove(name).is_some() {
            self.out.push(Command::MarkFailed(name.clone(), failure));
        }
    }

    /// Whether the partition is here, in this leader epoch.
    fn is_in(&self, name: &TopicPartition, leader_epoch: LeaderEpoch) -> bool {
        self.fetcher.partitions.get(name).is_some_and(|it| it.leader_epoch == leader_epoch)
    }

    fn note(&mut self, note: Note) {
        self.out.push(Command::Note(note));
    }
}
