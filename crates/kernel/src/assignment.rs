//! Where the replicas of a new partition go when nobody says so (KIP-36, without racks).
//!
//! The first replica walks round the brokers from a start; the others follow at a distance that grows by one
//! each time the first replica has gone once round, so that a broker's load is spread over all others when it
//! dies. The two starting points are drawn outside and passed in: the same input gives the same assignment.

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

/// Assigns `partitions` new partitions, the first of which has the index `first_partition`.
///
/// `brokers` must be sorted; `start` and `shift` are any two numbers, drawn at random for a new topic.
///
/// # Errors
/// When the numbers cannot be met.
pub fn assign(
    brokers: &[BrokerId],
    partitions: i32,
    replication_factor: i32,
    first_partition: i32,
    start: usize,
    shift: usize,
) -> Result<Vec<Vec<BrokerId>>, AssignmentError> {
    if partitions <= 0 {
        return Err(AssignmentError::Partitions);
    }
    if replication_factor <= 0 {
        return Err(AssignmentError::ReplicationFactor);
    }
    let (replicas, live) = (usize::try_from(replication_factor).unwrap_or(usize::MAX), brokers.len());
    if replicas > live {
        return Err(AssignmentError::TooFewBrokers { live });
    }
    let mut shift = shift % live;
    let first_partition = usize::try_from(first_partition).unwrap_or(0);
    let assigned = (first_partition..).take(usize::try_from(partitions).unwrap_or(0)).map(|partition| {
        if partition > 0 && partition % live == 0 {
            shift += 1;
        }
        let first = (partition + start) % live;
        let followers = (0..replicas - 1).map(|n| {
            let distance = if live > 1 { 1 + (shift + n) % (live - 1) } else { 0 };
            (first + distance) % live
        });
        std::iter::once(first).chain(followers).filter_map(|at| brokers.get(at).copied()).collect()
    });
    Ok(assigned.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brokers(n: i32) -> Vec<BrokerId> {
        (0..n).map(BrokerId).collect()
    }

    fn ids(assigned: &[Vec<BrokerId>]) -> Vec<Vec<i32>> {
        assigned.iter().map(|replicas| replicas.iter().map(|b| b.0).collect()).collect()
    }

    #[test]
    fn the_first_replica_walks_round_and_the_followers_shift_after_each_round() {
        let assigned = assign(&brokers(5), 10, 3, 0, 0, 0).unwrap();
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
        assert_eq!(ids(&assign(&brokers(1), 3, 1, 0, 7, 9).unwrap()), [[0], [0], [0]]);
    }

    #[test]
    fn replicas_of_one_partition_are_on_different_brokers_for_any_start() {
        for start in 0..7 {
            for shift in 0..7 {
                for replicas in assign(&brokers(4), 9, 4, 3, start, shift).unwrap() {
                    let mut distinct = replicas.clone();
                    distinct.sort_unstable();
                    distinct.dedup();
                    assert_eq!(distinct.len(), 4, "{replicas:?}");
                }
            }
        }
    }

    #[test]
    fn impossible_numbers_are_refused() {
        assert_eq!(assign(&brokers(1), 0, 1, 0, 0, 0), Err(AssignmentError::Partitions));
        assert_eq!(assign(&brokers(1), 1, 0, 0, 0, 0), Err(AssignmentError::ReplicationFactor));
        assert_eq!(assign(&brokers(2), 1, 3, 0, 0, 0), Err(AssignmentError::TooFewBrokers { live: 2 }));
    }
}
