//! The logs on the disks: two replicas that hold the same batch of the same epoch hold the same batches below it.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::Value;
use storage::disk::crash::CrashDisk;
use storage::disk::{Disk, OpenOptions};
use wire::batch::{Batch, batches};
use wire::types::{BrokerId, TopicPartition};

use super::{compacted, rest};
use crate::trace::Digest;
use crate::workload::Kind;
use crate::world::World;

/// A batch as it lies on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lying {
    pub(crate) base: i64,
    pub(crate) last: i64,
    pub(crate) epoch: i32,
    /// The digest of all of its bytes.
    pub(crate) digest: u64,
}

/// Compares the replicas of all partitions, as they lie now.
pub(crate) fn judge(world: &World) {
    for (partition, replicas) in rest::partitions(world) {
        // What a lost power left is no log until its broker has started on it.
        let whole = replicas.iter().copied().filter(|id| world.node(*id).lock().is_same_boot);
        if partition.topic.as_str() == Kind::Compacted.name() {
            compacted::judge(world, &partition, whole.collect());
            continue;
        }
        let logs: Vec<(BrokerId, Vec<Lying>)> =
            whole.map(|id| (id, read(&world.node(id).disk(), &partition))).collect();
        for (at, (first, of_first)) in logs.iter().enumerate() {
            for (second, of_second) in logs.iter().skip(at + 1) {
                if let Some((one, other)) = disagreement(of_first, of_second) {
                    let finding = format!(
                        "{partition}: brokers {first} and {second} agree later, but hold {one:?} and {other:?}"
                    );
                    world.findings.add(world, finding);
                }
            }
        }
        if partition.topic.as_str() != Kind::Unclean.name() {
            judge_committed(world, &partition, &logs);
        }
    }
}

/// What the high watermarks of two brokers have passed is the same on both.
fn judge_committed(world: &World, partition: &TopicPartition, logs: &[(BrokerId, Vec<Lying>)]) {
    let told =
        logs.iter().filter_map(|(id, log)| Some((id, log, high_watermark(&told(world, *id, partition)?)?)));
    let told: Vec<_> = told.collect();
    for (at, (first, of_first, one)) in told.iter().enumerate() {
        for (second, of_second, other) in told.iter().skip(at + 1) {
            let start =
                of_first.first().map_or(0, |it| it.base).max(of_second.first().map_or(0, |it| it.base));
            let committed = |log: &[Lying]| {
                let within = log.iter().filter(|it| it.base >= start && it.last < *one.min(other));
                within.copied().collect::<Vec<_>>()
            };
            let (ones, others) = (committed(of_first), committed(of_second));
            if let Some((a, b)) = ones.iter().zip(&others).find(|(a, b)| a != b) {
                let finding = format!(
                    "{partition}: brokers {first} and {second} have {a:?} and {b:?} below their high watermarks"
                );
                world.findings.add(world, finding);
            }
        }
    }
}

/// What a broker tells of a partition.
pub(super) fn told(world: &World, id: BrokerId, partition: &TopicPartition) -> Option<Value> {
    let told = world.node(id).broker()?.explain(partition.topic.as_str(), partition.partition)?;
    serde_json::from_str(&told).ok()
}

/// The high watermark in what a broker tells of a partition.
pub(super) fn high_watermark(told: &Value) -> Option<i64> {
    told.pointer("/log/highWatermark")?.as_i64()
}

/// At rest, with the last deletion confirmed, all replicas of a partition begin at `offset`.
pub(crate) fn judge_starts(world: &World, topic: &str, partition: i32, offset: i64) {
    let partition = TopicPartition::new(topic, partition);
    let replicas = rest::partitions(world).into_iter().find(|(name, _)| *name == partition);
    for id in replicas.map_or(Vec::new(), |(_, replicas)| replicas) {
        let told = told(world, id, &partition);
        let start = told.and_then(|told| told.pointer("/log/logStartOffset")?.as_i64());
        if start != Some(offset) {
            let finding =
                format!("{partition} begins at {start:?} in broker {id} at rest, and at {offset} in all");
            world.findings.add(world, finding);
        }
    }
}

/// Where the longest log of a partition ends (exclusive).
pub(crate) fn longest(world: &World, topic: &str, partition: i32) -> i64 {
    let partition = TopicPartition::new(topic, partition);
    world.nodes().iter().map(|node| end(&node.disk(), &partition)).max().unwrap_or(0)
}

/// Where a replica's log ends (exclusive).
pub(crate) fn end(disk: &CrashDisk, partition: &TopicPartition) -> i64 {
    last(disk, partition).map_or(0, |batch| batch.last + 1)
}

/// The batch that a replica's log ends with.
pub(crate) fn last(disk: &CrashDisk, partition: &TopicPartition) -> Option<Lying> {
    read(disk, partition).last().copied()
}

/// Two batches at the same place that differ although a later one is the same in both.
fn disagreement(one: &[Lying], other: &[Lying]) -> Option<(Lying, Lying)> {
    let start = one.first()?.base.max(other.first()?.base);
    let mut ones = one.iter().filter(|batch| batch.base >= start);
    let mut others = other.iter().filter(|batch| batch.base >= start);
    let mut differing = None;
    let (mut a, mut b) = (ones.next(), others.next());
    while let (Some(first), Some(second)) = (a, b) {
        if first.base == second.base {
            if differing.is_none() && first != second {
                differing = Some((*first, *second));
                if first.epoch == second.epoch && first.last == second.last {
                    // The same place in the same epoch, and not the same batch.
                    return differing;
                }
            } else if differing.is_some() && first == second {
                return differing;
            }
            (a, b) = (ones.next(), others.next());
        } else if first.base < second.base {
            differing = differing.or(Some((*first, *second)));
            a = ones.next();
        } else {
            differing = differing.or(Some((*first, *second)));
            b = others.next();
        }
    }
    None
}

/// The batches of a replica as they are compared; nothing if there is no such replica.
pub(crate) fn read(disk: &CrashDisk, partition: &TopicPartition) -> Vec<Lying> {
    let lying = |batch: &Batch| Lying {
        base: batch.header.base_offset.0,
        last: batch.header.last_offset().0,
        epoch: batch.header.partition_leader_epoch.0,
        digest: Digest::of(&batch.bytes),
    };
    batches_on(disk, partition).iter().map(lying).collect()
}

/// The batches of a replica, in order, up to the first that is not whole. Nothing if there is no such replica.
pub(super) fn batches_on(disk: &CrashDisk, partition: &TopicPartition) -> Vec<Batch> {
    let dir = PathBuf::from(format!("/data/{}-{}", partition.topic, partition.partition));
    let Ok(entries) = disk.list_dir(&dir) else { return Vec::new() };
    let mut whole: Vec<Batch> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.name.ends_with(".log")) {
        let Some(bytes) = bytes_of(disk, &dir.join(&entry.name)) else { return whole };
        for batch in batches(bytes) {
            let Ok(batch) = batch else { return whole };
            if batch.verify_crc().is_err() {
                return whole;
            }
            whole.push(batch);
        }
    }
    whole
}

fn bytes_of(disk: &CrashDisk, path: &Path) -> Option<Bytes> {
    let file = disk.open(path, OpenOptions::READ).ok()?;
    let mut bytes = vec![0; usize::try_from(file.len().ok()?).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(Bytes::from(bytes))
}
