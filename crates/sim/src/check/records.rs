//! Records: what was confirmed by all in-sync replicas, or read once, stays where it is, once and unchanged.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wire::batch::{Batch, Limits};
use wire::error_code::ErrorCode;

use crate::workload::Kind;
use crate::world::World;

/// A batch that a producer was told to be written by all.
#[derive(Clone, Debug)]
pub(crate) struct Confirmed {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    /// The offset of the first record, if it was told.
    pub(crate) offset: Option<i64>,
    pub(crate) records: Vec<String>,
}

/// A record that a reader was given.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) record: String,
}

/// The records of a batch as texts, and their offsets: the value, or `key=value`, or `key=` for a tombstone.
pub(crate) fn in_batch(batch: &Batch) -> Vec<(i64, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let records = batch.records(Limits::default()).map_while(Result::ok);
    let records = records.map(|record| {
        let value = text(&record.value.unwrap_or_default());
        (record.offset.0, record.key.map_or(value.clone(), |key| format!("{}={value}", text(&key))))
    });
    records.collect()
}

type Name = (String, i32);

/// See the module's text.
#[derive(Default)]
pub(crate) struct Records(Mutex<State>);

#[derive(Default)]
struct State {
    kinds: BTreeMap<String, Kind>,
    partitions: BTreeMap<Name, Known>,
    producer_ids: BTreeMap<(i64, i16), u64>,
}

/// What is known to be committed in a partition.
#[derive(Default)]
struct Known {
    at: BTreeMap<i64, String>,
    confirmed: BTreeMap<String, Option<i64>>,
}

impl Records {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A topic of this kind is to be.
    pub(crate) fn topic(&self, name: &str, kind: Kind) {
        self.lock().kinds.insert(name.to_owned(), kind);
    }

    /// A producer was told that a batch is written by all.
    pub(crate) fn confirmed(&self, world: &World, confirmed: Confirmed) {
        let Confirmed { topic, partition, offset, records } = confirmed;
        for (delta, record) in (0..).zip(records) {
            let at = offset.map(|first| first + delta);
            self.committed(world, (topic.clone(), partition), at, &record, "confirmed");
            let mut state = self.lock();
            let known = state.partitions.entry((topic.clone(), partition)).or_default();
            known.confirmed.insert(record, at);
        }
    }

    /// A reader was given a record.
    pub(crate) fn read(&self, world: &World, read: Read) {
        let Read { topic, partition, offset, record } = read;
        self.committed(world, (topic, partition), Some(offset), &record, "read");
    }

    fn committed(&self, world: &World, name: Name, offset: Option<i64>, record: &str, how: &str) {
        let contradiction = {
            let mut state = self.lock();
            let is_clean = state.kinds.get(&name.0).is_some_and(|kind| kind.is_clean());
            let (Some(offset), true) = (offset, is_clean) else { return };
            let known = state.partitions.entry(name.clone()).or_default();
            let before = known.at.entry(offset).or_insert_with(|| record.to_owned());
            (before != record).then(|| (offset, before.clone()))
        };
        if let Some((offset, before)) = contradiction {
            let (topic, partition) = name;
            let finding =
                format!("{topic}-{partition} at {offset}: {record} is {how}, but it was {before} before");
            world.findings.add(world, finding);
        }
    }

    /// A producer was refused for what only a loss explains.
    pub(crate) fn producer_refused(&self, world: &World, topic: &str, partition: i32, error: ErrorCode) {
        let is_clean = self.lock().kinds.get(topic).is_some_and(|kind| kind.is_clean());
        world.matters(format_args!("a producer of {topic}-{partition} is refused: {}", error.name()));
        if is_clean {
            let finding = format!("{topic}-{partition}: a producer is refused with {}", error.name());
            world.findings.add(world, finding);
        }
    }

    /// A producer was given an id; nobody else may ever have had it.
    pub(crate) fn producer_id(&self, world: &World, id: i64, epoch: i16) {
        let before = self.lock().producer_ids.insert((id, epoch), world.schedule.now_us());
        if before.is_some() {
            world.findings.add(world, format!("producer id {id} with epoch {epoch} is given twice"));
        }
    }

    /// A reader was told by the leader of the epoch it knows that its position is beyond the log.
    pub(crate) fn out_of_range(&self, world: &World, topic: &str, partition: i32, position: i64, epoch: i32) {
        let is_clean = self.lock().kinds.get(topic).is_some_and(|kind| kind.is_clean());
        world.matters(format_args!("{topic}-{partition}: {position} is out of range in epoch {epoch}"));
        if is_clean {
            let finding =
                format!("{topic}-{partition}: what was read below {position} is gone in epoch {epoch}");
            world.findings.add(world, finding);
        }
    }

    /// At rest, all of a partition was read from `start` on, below which records may have been deleted: what was confirmed
    /// must be in it, once.
    pub(crate) fn judge_whole(
        &self,
        world: &World,
        topic: &str,
        partition: i32,
        start: i64,
        whole: &[(i64, String)],
    ) {
        let missing = {
            let state = self.lock();
            if !state.kinds.get(topic).is_some_and(|kind| kind.is_clean()) {
                return;
            }
            let mut seen: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
            for (offset, record) in whole {
                seen.entry(record).or_default().push(*offset);
            }
            let Some(known) = state.partitions.get(&(topic.to_owned(), partition)) else { return };
            // Of a duplicate it is not told where it is.
            let is_deleted = |at: &Option<i64>| at.map_or(start > 0, |at| at < start);
            let kept = known.confirmed.iter().filter(|(_, at)| !is_deleted(at));
            let wrong = kept.map(|(record, _)| record).filter_map(|record| {
                match seen.get(record.as_str()).map(Vec::as_slice) {
                    Some([_]) => None,
                    Some(offsets) => Some(format!("{record} stands at {offsets:?}")),
                    None => Some(format!("{record} was confirmed and is gone")),
                }
            });
            wrong.take(5).collect::<Vec<_>>()
        };
        for wrong in missing {
            world.findings.add(world, format!("{topic}-{partition}: {wrong}"));
        }
    }
}
