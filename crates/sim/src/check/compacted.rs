//! The logs of a compacted partition on the disks: what two replicas still hold at the same offset is the same record, if
//! it is of the same leader epoch, or lies below the high watermarks of both.

use std::collections::BTreeMap;

use wire::types::{BrokerId, TopicPartition};

use super::records::in_batch;
use super::{replicas, rest};
use crate::world::World;

/// A record on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lying {
    epoch: i32,
    record: String,
}

/// Compares the replicas of a partition that are in `brokers`, as they lie now.
pub(super) fn judge(world: &World, partition: &TopicPartition, brokers: Vec<BrokerId>) {
    let logs = brokers.into_iter().map(|id| {
        let told = replicas::told(world, id, partition);
        let high_watermark = told.and_then(|told| replicas::high_watermark(&told)).unwrap_or(0);
        (id, high_watermark, lying(world, id, partition))
    });
    let logs: Vec<_> = logs.collect();
    for (at, (first, one, of_first)) in logs.iter().enumerate() {
        for (second, other, of_second) in logs.iter().skip(at + 1) {
            if let Some((offset, a, b)) = disagreement(of_first, of_second, *one.min(other)) {
                let finding =
                    format!("{partition} at {offset}: brokers {first} and {second} hold {a:?} and {b:?}");
                world.findings.add(world, finding);
            }
        }
    }
}

/// The first offset at which two replicas hold what they must not.
fn disagreement<'a>(
    one: &'a BTreeMap<i64, Lying>,
    other: &'a BTreeMap<i64, Lying>,
    committed: i64,
) -> Option<(i64, &'a Lying, &'a Lying)> {
    let both = one.iter().filter_map(|(offset, a)| Some((*offset, a, other.get(offset)?)));
    let mut judged = both.filter(|(offset, a, b)| *offset < committed || a.epoch == b.epoch);
    judged.find(|(_, a, b)| a != b)
}

fn lying(world: &World, id: BrokerId, partition: &TopicPartition) -> BTreeMap<i64, Lying> {
    let batches = replicas::batches_on(&world.node(id).disk(), partition);
    let records = batches.iter().flat_map(|batch| {
        let epoch = batch.header.partition_leader_epoch.0;
        in_batch(batch).into_iter().map(move |(offset, record)| (offset, Lying { epoch, record }))
    });
    records.collect()
}

/// What each replica of a partition holds, in order.
pub(crate) fn records(world: &World, topic: &str, partition: i32) -> Vec<(BrokerId, Vec<(i64, String)>)> {
    let name = TopicPartition::new(topic, partition);
    let replicas = rest::partitions(world).into_iter().find(|(it, _)| *it == name);
    let replicas = replicas.map_or(Vec::new(), |(_, replicas)| replicas);
    let records = |id: &BrokerId| {
        let lying = lying(world, *id, &name).into_iter();
        (*id, lying.map(|(offset, it)| (offset, it.record)).collect())
    };
    replicas.iter().map(records).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Records<'a> = [(i64, i32, &'a str)];

    fn differ(one: &Records<'_>, other: &Records<'_>, committed: i64) -> bool {
        let log = |records: &Records<'_>| -> BTreeMap<i64, Lying> {
            let lying = |(offset, epoch, record): &(i64, i32, &str)| {
                (*offset, Lying { epoch: *epoch, record: (*record).to_owned() })
            };
            records.iter().map(lying).collect()
        };
        disagreement(&log(one), &log(other), committed).is_some()
    }

    #[test]
    fn what_only_one_still_holds_is_no_disagreement() {
        assert!(!differ(&[(0, 1, "a"), (2, 1, "c")], &[(1, 1, "b"), (2, 1, "c")], 3));
    }

    #[test]
    fn records_of_one_epoch_are_the_same_and_those_that_are_committed() {
        assert!(differ(&[(0, 1, "a")], &[(0, 1, "b")], 0));
        assert!(differ(&[(0, 1, "a")], &[(0, 2, "b")], 1));
        assert!(differ(&[(0, 1, "a")], &[(0, 2, "a")], 1));
        assert!(!differ(&[(0, 1, "a")], &[(0, 2, "b")], 0));
    }
}
