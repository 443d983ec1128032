//! Where the replicas of a new partition go when nobody says so (KIP-36).
//!
//! The first replica walks round the brokers from a start; the others follow at a distance that grows by one
//! each time the first replica has gone once round, so that a broker's load is spread over all others when it
//! dies. The two starting points are drawn outside and passed in: the same input gives the same assignment.

mod rack_aware;

use std::collections::BTreeMap;

use wire::types::BrokerId;

/// Why no assignment is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignmentError {
    /// Zero or a negative number of partitions was asked for.
    Partitions,
    /// Zero or a negative number of replicas was asked for.
    ReplicationFactor,
    /// More replicas than live brokers were asked for.
    TooFewBrokers {
        /// How many brokers are alive.
        live: usize,
    },
}

/// How many partitions and replicas, and where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// How many partitions are new.
    pub partitions: i32,
    /// How many replicas each has.
    pub replication_factor: i32,
    /// The index of the first new partition.
    pub first_partition: i32,
    /// Where the first replicas begin to walk; any number, drawn at random for a new topic.
    pub start: usize,
    /// How far the second replicas stand from the first; any number, drawn at random for a new topic.
    pub shift: usize,
}

impl Numbers {
    /// Whether `live` brokers suffice.
    fn check(self, live: usize) -> Result<(), AssignmentError> {
        if self.partitions <= 0 {
            return Err(AssignmentError::Partitions);
        }
        if self.replication_factor <= 0 {
            return Err(AssignmentError::ReplicationFactor);
        }
        if self.replicas() > live { Err(AssignmentError::TooFewBrokers { live }) } else { Ok(()) }
    }

    fn replicas(self) -> usize {
        usize::try_from(self.replication_factor).unwrap_or(usize::MAX)
    }

    /// For each partition the place of its first replica among `live` brokers, and the shift of the others.
    fn walk(self, live: usize) -> impl Iterator<Item = (usize, usize)> {
        let live = live.max(1);
        let (start, mut shift) = (self.start % live, self.shift % live);
        let first_partition = usize::try_from(self.first_partition).unwrap_or(0);
        let partitions = usize::try_from(self.partitions).unwrap_or(0);
        (first_partition..).take(partitions).map(move |partition| {
            if partition > 0 && partition % live == 0 {
                shift += 1;
            }
            ((partition + start) % live, shift)
        })
    }
}

/// The place of the replica number `n` behind the first, which stands at `first`.
fn distance(first: usize, shift: usize, n: usize, live: usize) -> usize {
    if live > 1 { (first + 1 + shift.wrapping_add(n) % (live - 1)) % live } else { first }
}

/// Assigns new partitions to `brokers`, of which each names its rack if it has one. Racks count only if all brokers have
/// one.
///
/// # Errors
/// When the numbers cannot be met.
pub fn assign(
    brokers: &BTreeMap<BrokerId, Option<&str>>,
    numbers: Numbers,
) -> Result<Vec<Vec<BrokerId>>, AssignmentError> {
    let racks: BTreeMap<_, _> = brokers.iter().filter_map(|(id, rack)| Some((*id, (*rack)?))).collect();
    if !racks.is_empty() && racks.len() == brokers.len() {
        return rack_aware::assign(&racks, numbers);
    }
    numbers.check(brokers.len())?;
    let ids: Vec<_> = brokers.keys().copied().collect();
    let assigned = numbers.walk(ids.len()).map(|(first, shift)| {
        let others = (0..numbers.replicas() - 1).map(|n| distance(first, shift, n, ids.len()));
        std::iter::once(first).chain(others).filter_map(|at| ids.get(at).copied()).collect()
    });
    Ok(assigned.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assign(
        brokers: i32,
        partitions: i32,
        replication_factor: i32,
        first_partition: i32,
        start: usize,
        shift: usize,
    ) -> Result<Vec<Vec<BrokerId>>, AssignmentError> {
        let numbers = Numbers { partitions, replication_factor, first_partition, start, shift };
        super::assign(&(0..brokers).map(|id| (BrokerId(id), None)).collect(), numbers)
    }

    fn ids(assigned: &[Vec<BrokerId>]) -> Vec<Vec<i32>> {
        assigned.iter().map(|replicas| replicas.iter().map(|b| b.0).collect()).collect()
    }

    #[test]
    fn the_first_replica_walks_round_and_the_followers_shift_after_each_round() {
        let assigned = assign(5, 10, 3, 0, 0, 0).unwrap();
        assert_eq!(
            ids(&assigned),
            [
                [0, 1, 2],
                [1, 2, 3],
                [2, 3, 4],
                [3, 4, 0],
                [4, 0, 1],
                [0, 2, 3],
                [1, 3, 4],
                [2, 4, 0],
                [3, 0, 1],
                [4, 1, 2],
            ]
        );
    }

    #[test]
    fn one_broker_takes_every_partition() {
        assert_eq!(ids(&assign(1, 3, 1, 0, 7, 9).unwrap()), [[0], [0], [0]]);
    }

    #[test]
    fn replicas_of_one_partition_are_on_different_brokers_for_any_start() {
        for start in 0..7 {
            for shift in 0..7 {
                for replicas in assign(4, 9, 4, 3, start, shift).unwrap() {
                    let mut distinct = replicas.clone();
                    distinct.sort_unstable();
                    distinct.dedup();
                    assert_eq!(distinct.len(), 4, "{replicas:?}");
                }
            }
        }
    }

    #[test]
    fn racks_count_only_if_every_broker_has_one() {
        let numbers =
            Numbers { partitions: 2, replication_factor: 2, first_partition: 0, start: 0, shift: 0 };
        let mut brokers: BTreeMap<_, _> =
            [(BrokerId(0), Some("a")), (BrokerId(1), Some("a")), (BrokerId(2), Some("b"))].into();
        assert_eq!(ids(&super::assign(&brokers, numbers).unwrap()), [[0, 2], [2, 1]]);
        brokers.insert(BrokerId(2), None);
        assert_eq!(ids(&super::assign(&brokers, numbers).unwrap()), [[0, 1], [1, 2]]);
    }

    #[test]
    fn impossible_numbers_are_refused() {
        assert_eq!(assign(1, 0, 1, 0, 0, 0), Err(AssignmentError::Partitions));
        assert_eq!(assign(1, 1, 0, 0, 0, 0), Err(AssignmentError::ReplicationFactor));
        assert_eq!(assign(2, 1, 3, 0, 0, 0), Err(AssignmentError::TooFewBrokers { live: 2 }));
    }
}
