//! How far the high watermark goes, and what holds it.

use super::*;

#[test]
fn a_leader_that_is_alone_in_the_isr_moves_the_high_watermark_with_each_append() {
    let (mut bench, begun) = Bench::start_with(&[1], &[1], 3, 7, 1);
    assert_eq!(advanced(&begun), Some(7));
    assert_eq!(advanced(&bench.append(2)), Some(9));
}

#[test]
fn the_high_watermark_is_the_least_log_end_of_the_isr() {
    let mut bench = Bench::start(&[1, 2, 3], &[1, 2, 3], 0, 10);
    assert_eq!(bench.high_watermark(), 0);
    bench.fetch(2, 10);
    assert_eq!(bench.high_watermark(), 0, "a follower that has told nothing holds it");
    assert_eq!(advanced(&bench.fetch(3, 4)), Some(4));
    assert_eq!(advanced(&bench.fetch(3, 8)), Some(8));
    bench.append(5);
    bench.fetch(3, 15);
    assert_eq!(bench.high_watermark(), 10);
}

#[test]
fn the_high_watermark_never_falls_when_a_follower_comes_back_with_less() {
    let mut bench = Bench::start(&[1, 2], &[1, 2], 0, 10);
    bench.fetch(2, 10);
    assert_eq!(bench.high_watermark(), 10);
    assert_eq!(bench.fetch(2, 3), []);
    assert_eq!(bench.high_watermark(), 10);
}

#[test]
fn a_replica_that_has_caught_up_lately_is_waited_for_though_it_is_not_in_the_isr_yet() {
    // While a change of the ISR is pending no other can be asked for, so replica 3 stays out although it has all.
    let mut bench = Bench::start(&[1, 2, 3], &[1], 10, 10);
    assert!(submitted(&bench.fetch(2, 10)).is_some());
    assert!(submitted(&bench.fetch(3, 10)).is_none());
    bench.append(5);
    assert_eq!(bench.high_watermark(), 10);
    bench.fetch(2, 15);
    assert_eq!(bench.high_watermark(), 10, "replica 3 is about to join");
    bench.fetch(3, 15);
    assert_eq!(bench.high_watermark(), 15);
}

#[test]
fn a_replica_outside_the_isr_is_not_waited_for_once_it_is_too_slow_or_its_broker_is_dead() {
    // KAFKA-14140: the last known end of a dead broker must not hold the high watermark back.
    let mut slow = Bench::start(&[1, 2, 3], &[1], 10, 10);
    slow.fetch(2, 10);
    slow.fetch(3, 10);
    slow.append(5);
    slow.fetch(2, 15);
    let mut dead = slow.clone();
    slow.now_ms += LAG_MS;
    slow.append(0);
    assert_eq!(slow.high_watermark(), 10, "still within its time");
    slow.now_ms += 1;
    assert_eq!(advanced(&slow.append(0)), Some(15));
    assert_eq!(advanced(&dead.step(Event::LiveBrokers(live(&[1, 2])))), Some(15));
}

#[test]
fn a_dead_member_of_the_isr_is_waited_for_until_it_has_left() {
    let mut bench = Bench::start(&[1, 2], &[1, 2], 0, 10);
    bench.fetch(2, 4);
    assert_eq!(bench.step(Event::LiveBrokers(live(&[1]))), []);
    assert_eq!(bench.high_watermark(), 4);
}

#[test]
fn the_high_watermark_stands_still_while_the_isr_is_smaller_than_min_insync_replicas() {
    // KAFKA-15583
    let (mut bench, begun) = Bench::start_with(&[1, 2, 3], &[1], 2, 2, 2);
    assert_eq!(advanced(&begun), None);
    bench.append(3);
    assert_eq!(bench.high_watermark(), 2, "acks=1 goes on, but nothing counts as replicated");
    let change = submitted(&bench.fetch(2, 5)).unwrap();
    assert_eq!(bench.high_watermark(), 2, "the ISR that counts is the confirmed one");
    assert_eq!(advanced(&bench.confirm(change)), Some(5));
}

#[test]
fn min_insync_replicas_counts_no_more_replicas_than_there_are() {
    let (mut bench, _) = Bench::start_with(&[1, 2], &[1, 2], 0, 4, 3);
    assert!(!bench.leader.is_under_min_isr() && bench.leader.is_at_min_isr());
    bench.fetch(2, 4);
    assert_eq!(bench.high_watermark(), 4);
}

#[test]
fn a_lower_min_insync_replicas_lets_the_high_watermark_go_on() {
    let (mut bench, _) = Bench::start_with(&[1, 2], &[1], 0, 4, 2);
    assert_eq!(bench.high_watermark(), 0);
    let settings = Settings { replica_lag_time_max: Millis(LAG_MS), min_insync_replicas: 1 };
    assert_eq!(advanced(&bench.step(Event::Settings(settings))), Some(4));
}

#[test]
fn an_impossible_fetch_beyond_the_log_end_changes_nothing() {
    let mut bench = Bench::start(&[1, 2], &[1, 2], 0, 10);
    let before = bench.leader.clone();
    assert_eq!(bench.fetch(2, 11), []);
    assert_eq!(bench.fetch(9, 10), [], "nor does one by a broker that is no replica");
    assert_eq!(bench.leader, before);
}

#[test]
fn the_low_watermark_is_the_least_log_start_of_the_live_replicas() {
    let mut bench = Bench::start(&[1, 2, 3], &[1, 2, 3], 0, 10);
    assert_eq!(bench.leader.low_watermark(Offset(6)), Offset::UNKNOWN);
    for (replica, log_start) in [(2, 5), (3, 2)] {
        bench.step(Event::FollowerFetched {
            replica: BrokerId(replica),
            broker_epoch: BrokerEpoch(-1),
            leader_epoch: LeaderEpoch(5),
            offset: Offset(10),
            log_start: Offset(log_start),
            leader_end: Offset(10),
        });
    }
    assert_eq!(bench.leader.low_watermark(Offset(6)), Offset(2));
    assert_eq!(bench.leader.low_watermark(Offset(1)), Offset(1));
    bench.step(Event::LiveBrokers(live(&[1, 2])));
    assert_eq!(bench.leader.low_watermark(Offset(6)), Offset(5), "a dead follower is not waited for");
}
