//! Tests of the fetcher: each rule for itself, then whole stories between brokers.

mod adding;
mod fetching;
mod histories;
mod incremental;
mod memory;
mod out_of_range;
#[cfg(feature = "planted-faults")]
mod planted;
mod sessions;
mod stories;
mod truncating;
mod world;

use wire::error_code::ErrorCode;
use wire::types::{LeaderEpoch, Now, Offset, TopicId, TopicPartition};

use super::truncation::TruncationCause;
use super::*;
use crate::epochs::EpochEnd;
use crate::fetch::session::{FetchPartition, PartitionKey, TopicRef};
use memory::{MemoryLog, MemoryLogs};

const BACKOFF_MS: i64 = 1000;
const MAX_BYTES: i32 = 1_048_576;
const NEW: MetadataVersion = MetadataVersion::LATEST_PRODUCTION;
/// The last step in which a follower asks for the ends of epochs before it fetches.
const ASKING: MetadataVersion = MetadataVersion::IBP_2_7_IV0;
/// The last step before leader epochs.
const WITHOUT_EPOCHS: MetadataVersion = MetadataVersion::IBP_0_11_0_IV1;

/// Partition `index` of the topic of all tests.
fn tp(index: i32) -> TopicPartition {
    TopicPartition::new("t", index)
}

fn settings(protocol: MetadataVersion) -> Settings {
    let faults = Faults::default();
    Settings { backoff_ms: BACKOFF_MS, partition_max_bytes: MAX_BYTES, protocol, faults }
}

/// A fetcher, its logs and its time.
#[derive(Clone)]
struct Bench {
    fetcher: Fetcher,
    logs: MemoryLogs,
    mono_ms: i64,
}

impl Bench {
    fn new(protocol: MetadataVersion) -> Self {
        Self { fetcher: Fetcher::new(settings(protocol)), logs: MemoryLogs::default(), mono_ms: 0 }
    }

    /// A fetcher of partition 0, whose log is in these epochs, following in `leader_epoch`.
    fn following(
        protocol: MetadataVersion,
        epochs: &[(i32, i64)],
        log_end: i64,
        leader_epoch: i32,
    ) -> (Self, Vec<Command>) {
        let mut bench = Self::new(protocol);
        bench.logs.logs.insert(tp(0), MemoryLog::with_epochs(epochs, log_end));
        let commands = bench.add(0, leader_epoch, log_end);
        (bench, commands)
    }

    fn log(&mut self, index: i32) -> &mut MemoryLog {
        self.logs.logs.get_mut(&tp(index)).unwrap()
    }

    fn step(&mut self, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        let now = Now { mono_ms: self.mono_ms, wall_ms: 0 };
        self.fetcher.step(now, &self.logs, event, &mut out);
        self.fetcher.check();
        out
    }

    fn add(&mut self, index: i32, leader_epoch: i32, offset: i64) -> Vec<Command> {
        self.logs.logs.entry(tp(index)).or_insert_with(|| MemoryLog::empty_at(0));
        let (leader_epoch, offset) = (LeaderEpoch(leader_epoch), Offset(offset));
        self.step(Event::Add(vec![Addition { partition: tp(index), topic_id: None, leader_epoch, offset }]))
    }

    fn tick(&mut self, by_ms: i64) -> Vec<Command> {
        self.mono_ms += by_ms;
        self.step(Event::Tick)
    }

    /// Answers the fetch `id` with these partitions, in session 5.
    fn answer(&mut self, id: RequestId, partitions: Vec<PartitionReply>) -> Vec<Command> {
        self.step(Event::FetchReply(id, reply(5, partitions)))
    }

    /// Carries out the truncation among `commands`.
    fn truncate(&mut self, commands: &[Command]) -> Vec<Command> {
        let (work, offset, fully) = commands
            .iter()
            .find_map(|command| match command {
                Command::TruncateTo(work, offset, _) => Some((work.clone(), offset.0, false)),
                Command::TruncateFullyAndStartAt(work, offset, _) => Some((work.clone(), offset.0, true)),
                _ => None,
            })
            .unwrap();
        let log = self.logs.logs.get_mut(&work.partition).unwrap();
        if fully {
            *log = MemoryLog::empty_at(offset);
        } else {
            log.truncate_to(offset);
        }
        let log_end = Offset(log.log_end);
        let latest_epoch = self.logs.latest_epoch(&work.partition);
        self.step(Event::Truncated { work: work.id, partition: work.partition, log_end, latest_epoch })
    }

    /// Carries out the append of partition `index` among `commands`, with `count` records of `epoch`.
    fn append(&mut self, commands: &[Command], index: i32, epoch: i32, count: usize) -> Vec<Command> {
        let work = append_of(commands, index);
        let log = self.log(index);
        log.append_as_leader(epoch, &vec!["x"; count]);
        let log_end = Offset(log.log_end);
        let last_epoch = Some(LeaderEpoch(epoch));
        self.step(Event::Appended { work: work.id, partition: work.partition, log_end, last_epoch })
    }
}

/// The append of partition `index` among `commands`.
fn append_of(commands: &[Command], index: i32) -> LogWork {
    let find = |command: &Command| match command {
        Command::Append(work) if work.partition == tp(index) => Some(work.clone()),
        _ => None,
    };
    commands.iter().find_map(find).unwrap_or_else(|| panic!("no append of {index} in {commands:?}"))
}

/// The fetch among `commands`.
fn fetch_of(commands: &[Command]) -> FetchRequest {
    maybe_fetch_of(commands).unwrap_or_else(|| panic!("no fetch in {commands:?}"))
}

fn maybe_fetch_of(commands: &[Command]) -> Option<FetchRequest> {
    commands.iter().find_map(|command| match command {
        Command::SendFetch(fetch) => Some(fetch.clone()),
        _ => None,
    })
}

/// What a fetch asks: index, offset, leader epoch and last fetched epoch of each partition.
fn asked(fetch: &FetchRequest) -> Vec<(i32, i64, i32, i32)> {
    let ask = |(name, it): &(TopicPartition, Asked)| {
        let fetch = it.fetch;
        (name.partition, fetch.fetch_offset.0, fetch.current_leader_epoch.0, fetch.last_fetched_epoch.0)
    };
    fetch.partitions.iter().map(ask).collect()
}

/// The OffsetsForLeaderEpoch among `commands`: index, leader epoch and epoch asked for of each partition.
fn question_of(commands: &[Command]) -> (RequestId, Vec<(i32, i32, i32)>) {
    let find = |command: &Command| match command {
        Command::SendOffsetsForLeaderEpoch(id, questions) => {
            let ask = |it: &EpochQuestion| (it.partition.partition, it.current_leader_epoch.0, it.epoch.0);
            Some((*id, questions.iter().map(ask).collect()))
        }
        _ => None,
    };
    commands.iter().find_map(find).unwrap_or_else(|| panic!("no question in {commands:?}"))
}

/// The ListOffsets among `commands`: what it asks for, and index and leader epoch of each partition.
fn lookup_of(commands: &[Command]) -> (RequestId, Target, Vec<(i32, i32)>) {
    let find = |command: &Command| match command {
        Command::SendListOffsets(id, target, partitions) => {
            let partitions = partitions.iter().map(|(name, epoch)| (name.partition, epoch.0)).collect();
            Some((*id, *target, partitions))
        }
        _ => None,
    };
    commands.iter().find_map(find).unwrap_or_else(|| panic!("no lookup in {commands:?}"))
}

/// The truncations among `commands`: index and offset, and the cause.
fn truncations(commands: &[Command]) -> Vec<(i32, i64, TruncationCause)> {
    let find = |command: &Command| match command {
        Command::TruncateTo(work, offset, cause) | Command::TruncateFullyAndStartAt(work, offset, cause) => {
            Some((work.partition.partition, offset.0, *cause))
        }
        _ => None,
    };
    commands.iter().filter_map(find).collect()
}

fn key(index: i32) -> PartitionKey {
    PartitionKey { topic: TopicRef::Name("t".into()), partition: index }
}

/// An answer without records about partition `index`.
fn quiet(index: i32, high_watermark: i64) -> PartitionReply {
    PartitionReply {
        key: key(index),
        error: ErrorCode::None,
        high_watermark: Offset(high_watermark),
        log_start: Offset(0),
        diverging: None,
        records_bytes: 0,
    }
}

fn records(index: i32, high_watermark: i64) -> PartitionReply {
    PartitionReply { records_bytes: 100, ..quiet(index, high_watermark) }
}

fn failed(index: i32, error: ErrorCode) -> PartitionReply {
    PartitionReply { error, ..quiet(index, -1) }
}

fn diverging(index: i32, epoch: i32, end: i64) -> PartitionReply {
    PartitionReply { diverging: Some(end_of(epoch, end)), ..quiet(index, 1_000_000) }
}

fn end_of(epoch: i32, end: i64) -> EpochEnd {
    EpochEnd { epoch: LeaderEpoch(epoch), end: Offset(end) }
}

fn epoch_reply(index: i32, epoch: i32, end: i64) -> EpochReply {
    EpochReply { partition: tp(index), error: ErrorCode::None, end: end_of(epoch, end) }
}

fn reply(session_id: i32, partitions: Vec<PartitionReply>) -> FetchReply {
    FetchReply { error: ErrorCode::None, session_id, throttled: false, partitions }
}

fn refused(error: ErrorCode) -> FetchReply {
    FetchReply { error, ..reply(0, Vec::new()) }
}
