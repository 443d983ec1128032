//! Which replica a consumer is sent to.

use super::*;

/// The racks of brokers 1 to 4, as far as they are alive.
type Racks = &'static [(i32, &'static str)];

/// Broker 1 leads up to offset 10 in rack `a`; 2 and 3 are in rack `b`, 4 in rack `c`.
const RACKS: Racks = &[(1, "a"), (2, "b"), (3, "b"), (4, "c")];

fn preferred(bench: &Bench, racks: Racks, client_rack: &str, offset: i64) -> Option<i32> {
    let rack_of = |id: BrokerId| racks.iter().find(|(it, _)| *it == id.0).map(|(_, rack)| *rack);
    bench.leader.preferred_read_replica(Offset(offset), client_rack, rack_of).map(|id| id.0)
}

fn bench() -> Bench {
    Bench::start(&[1, 2, 3, 4], &[1, 2, 3, 4], 0, 10)
}

#[test]
fn a_consumer_is_sent_to_a_replica_in_its_rack_and_else_stays_with_the_leader() {
    let mut bench = bench();
    for replica in [2, 3, 4] {
        bench.fetch(replica, 10);
    }
    for (racks, client_rack, expected) in [
        (RACKS, "c", Some(4)),
        (RACKS, "a", None),
        (RACKS, "x", None),
        (RACKS, "", None),
        // A broker that is dead, or has no listener for the consumer, has no rack here.
        (&[(1, "a")], "c", None),
        (&[(1, ""), (2, "")], "", None),
        // The leader's own rack does not matter, unless it is the consumer's.
        (&[(4, "c")], "c", Some(4)),
        (&[(1, "c"), (4, "c")], "c", None),
    ] {
        assert_eq!(preferred(&bench, racks, client_rack, 5), expected, "{client_rack:?} of {racks:?}");
    }
}

#[test]
fn only_a_replica_that_has_the_offset_is_preferred() {
    let mut bench = bench();
    assert_eq!(preferred(&bench, RACKS, "c", 0), None, "it has told nothing of its log yet");
    bench.step(Event::FollowerFetched {
        replica: BrokerId(4),
        broker_epoch: BrokerEpoch(-1),
        leader_epoch: LeaderEpoch(5),
        offset: Offset(7),
        log_start: Offset(3),
        leader_end: Offset(10),
    });
    for (offset, expected) in [(-1, None), (2, None), (3, Some(4)), (7, Some(4)), (8, None), (99, None)] {
        assert_eq!(preferred(&bench, RACKS, "c", offset), expected, "offset {offset}");
    }
}

/// KAFKA-14372.
#[test]
fn a_replica_that_is_not_in_sync_is_not_preferred() {
    let mut bench = Bench::start(&[1, 2, 4], &[1, 2], 0, 10);
    let change = submitted(&bench.fetch(4, 10)).unwrap();
    assert_eq!(preferred(&bench, RACKS, "c", 5), None, "about to join is not in sync");
    bench.confirm(change);
    assert_eq!(preferred(&bench, RACKS, "c", 5), Some(4));
}

#[test]
fn of_several_in_the_rack_the_one_that_has_most_is_preferred_then_the_last_to_catch_up_then_the_highest_id() {
    let mut bench = bench();
    bench.fetch(2, 10);
    bench.fetch(3, 10);
    assert_eq!(preferred(&bench, RACKS, "b", 5), Some(3), "equals: the highest id");
    bench.now_ms += 1;
    bench.fetch(2, 10);
    assert_eq!(preferred(&bench, RACKS, "b", 5), Some(2), "it had everything last");
    bench.append(1);
    bench.fetch(3, 11);
    bench.now_ms += 1;
    assert_eq!(preferred(&bench, RACKS, "b", 5), Some(3), "it has more");
}
