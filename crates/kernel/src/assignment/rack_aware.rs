//! Replicas of one partition on different racks (KIP-36).
//!
//! Brokers are lined up so that neighbours stand in different racks. A candidate is passed over if its rack has a replica
//! of the partition while another rack has none, so a partition loses as few replicas as possible with one rack.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wire::types::BrokerId;

use super::{AssignmentError, Numbers, distance};

/// Assigns as [`assign`](super::assign) does, `racks` naming the rack of each broker.
pub(super) fn assign(
    racks: &BTreeMap<BrokerId, &str>,
    numbers: Numbers,
) -> Result<Vec<Vec<BrokerId>>, AssignmentError> {
    let line = alternate(racks);
    let rack_count = racks.values().collect::<BTreeSet<_>>().len();
    numbers.check(line.len())?;
    let assigned = numbers.walk(line.len()).map(|(first, shift)| {
        let mut chosen = Chosen { racks, rack_count, replicas: Vec::new(), in_racks: BTreeSet::new() };
        chosen.replicas.reserve(numbers.replicas());
        let mut candidates = std::iter::once(first)
            .chain((0..).map(|n| distance(first, shift.wrapping_mul(rack_count), n, line.len())))
            .filter_map(|at| line.get(at).copied());
        while chosen.replicas.len() < numbers.replicas() {
            let Some(candidate) = candidates.next() else { break };
            chosen.consider(candidate);
        }
        chosen.replicas
    });
    Ok(assigned.collect())
}

/// The replicas of one partition so far.
struct Chosen<'a> {
    racks: &'a BTreeMap<BrokerId, &'a str>,
    rack_count: usize,
    replicas: Vec<BrokerId>,
    in_racks: BTreeSet<&'a str>,
}

impl Chosen<'_> {
    fn consider(&mut self, candidate: BrokerId) {
        let Some(rack) = self.racks.get(&candidate) else { return };
        let is_rack_free = !self.in_racks.contains(rack) || self.in_racks.len() == self.rack_count;
        if is_rack_free && !self.replicas.contains(&candidate) {
            self.replicas.push(candidate);
            self.in_racks.insert(rack);
        }
    }
}

/// The brokers in a line: of each rack in turn its next broker, racks by name, brokers by id.
fn alternate(racks: &BTreeMap<BrokerId, &str>) -> Vec<BrokerId> {
    let mut by_rack: BTreeMap<&str, VecDeque<BrokerId>> = BTreeMap::new();
    for (id, rack) in racks {
        by_rack.entry(rack).or_default().push_back(*id);
    }
    let mut line = Vec::with_capacity(racks.len());
    while line.len() < racks.len() {
        line.extend(by_rack.values_mut().filter_map(VecDeque::pop_front));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn racks(of: &[(i32, &'static str)]) -> BTreeMap<BrokerId, &'static str> {
        of.iter().map(|(id, rack)| (BrokerId(*id), *rack)).collect()
    }

    fn six() -> BTreeMap<BrokerId, &'static str> {
        racks(&[(0, "r1"), (1, "r3"), (2, "r3"), (3, "r2"), (4, "r2"), (5, "r1")])
    }

    fn ids(replicas: &[BrokerId]) -> Vec<i32> {
        replicas.iter().map(|id| id.0).collect()
    }

    #[test]
    fn neighbours_in_the_line_stand_in_different_racks() {
        assert_eq!(ids(&alternate(&six())), [0, 3, 1, 5, 4, 2]);
    }

    #[test]
    fn the_reference_example_comes_out() {
        let numbers =
            Numbers { partitions: 7, replication_factor: 3, first_partition: 0, start: 0, shift: 0 };
        let assigned = assign(&six(), numbers).unwrap();
        let expected = [[0, 3, 1], [3, 1, 5], [1, 5, 4], [5, 4, 2], [4, 2, 0], [2, 0, 3], [0, 4, 2]];
        assert_eq!(assigned.iter().map(|it| ids(it)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_rack_has_a_replica_as_soon_as_there_are_enough_replicas() {
        let uneven = racks(&[(1, "a"), (2, "a"), (3, "a"), (4, "b"), (5, "c")]);
        for start in 0..5 {
            for shift in 0..5 {
                let numbers =
                    Numbers { partitions: 15, replication_factor: 3, first_partition: 2, start, shift };
                for replicas in assign(&uneven, numbers).unwrap() {
                    let held: BTreeSet<_> = replicas.iter().map(|id| uneven[id]).collect();
                    assert_eq!(held.len(), 3, "{replicas:?}");
                }
            }
        }
    }

    #[test]
    fn more_replicas_than_racks_share_racks_but_no_broker() {
        let numbers =
            Numbers { partitions: 6, replication_factor: 5, first_partition: 0, start: 1, shift: 2 };
        for replicas in assign(&six(), numbers).unwrap() {
            assert_eq!(replicas.iter().collect::<BTreeSet<_>>().len(), 5, "{replicas:?}");
        }
    }
}
