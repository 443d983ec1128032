//! What a leader keeps of an earlier leadership, and what it must forget.

use super::*;

/// Broker 1 led in epoch 5 with followers at 7 and 10.
fn led() -> Bench {
    let mut bench = Bench::start(&[1, 2, 3], &[1, 2, 3], 0, 10);
    bench.fetch(2, 7);
    bench.fetch(3, 10);
    assert_eq!(bench.high_watermark(), 7);
    bench
}

#[test]
fn the_epoch_begins_at_the_log_end() {
    let mut bench = led();
    bench.append(3);
    bench.lead_again(leadership(6, &[1, 2, 3], &[1, 2, 3]));
    assert_eq!(bench.leader.epoch_start(), Offset(13));
    assert_eq!(bench.leader.leader_epoch(), LeaderEpoch(6));
}

#[test]
fn a_leader_of_the_epoch_just_before_keeps_what_its_followers_have_told() {
    let mut bench = led();
    let again = bench.lead_again(leadership(6, &[1, 2, 3], &[1, 3]));
    assert_eq!(bench.leader.remote(BrokerId(2)).unwrap().log_end(), Offset(7));
    assert_eq!(advanced(&again), Some(10), "replica 2 has left the ISR, and is not in its time of grace");
}

#[test]
fn a_leader_that_missed_an_epoch_forgets_what_its_followers_have_told() {
    // R3: in epoch 6 somebody else led, and the followers may have cut what they had.
    let mut bench = led();
    bench.lead_again(leadership(7, &[1, 2, 3], &[1, 3]));
    assert_eq!(bench.leader.remote(BrokerId(3)).unwrap().log_end(), Offset::UNKNOWN);
    bench.append(1);
    assert_eq!(bench.high_watermark(), 7);
    assert_eq!(advanced(&bench.fetch(3, 9)), Some(9));
}

#[test]
fn a_fetch_that_was_read_in_an_earlier_leadership_says_nothing_of_this_one() {
    // R3: it was on its way while somebody else led.
    let mut bench = led();
    bench.lead_again(leadership(7, &[1, 2, 3], &[1, 3]));
    let late = Event::FollowerFetched {
        replica: BrokerId(3),
        broker_epoch: BrokerEpoch(-1),
        leader_epoch: LeaderEpoch(5),
        offset: Offset(10),
        log_start: Offset(0),
        leader_end: Offset(10),
    };
    assert_eq!(bench.step(late), []);
    assert_eq!(bench.leader.remote(BrokerId(3)).unwrap().log_end(), Offset::UNKNOWN);
}

#[test]
fn members_of_the_isr_get_a_time_of_grace_and_others_none() {
    let mut bench = led();
    bench.now_ms += 10 * LAG_MS;
    bench.lead_again(leadership(6, &[1, 2, 3], &[1, 2]));
    assert_eq!(submitted(&bench.wait(LAG_MS)), None);
    assert_eq!(submitted(&bench.wait(1)).unwrap().isr, ids(&[1]));
}

#[test]
fn the_high_watermark_stays_where_the_log_had_it() {
    let (bench, begun) = Bench::start_with(&[1, 2], &[1, 2], 4, 10, 1);
    assert_eq!((advanced(&begun), bench.high_watermark()), (None, 4));
}

#[test]
fn replicas_that_a_reassignment_adds_are_followed_and_those_it_removes_are_forgotten() {
    // KAFKA-10301: at no moment is a replica of both lists missing, so the high watermark cannot jump.
    let mut bench = led();
    let again = bench.lead_again(leadership(6, &[1, 2, 4], &[1, 2]));
    assert_eq!((advanced(&again), bench.high_watermark()), (None, 7));
    assert!(bench.leader.remote(BrokerId(3)).is_none());
    assert_eq!(bench.leader.remote(BrokerId(4)).unwrap().log_end(), Offset::UNKNOWN);
    assert_eq!(bench.fetch(3, 10), [], "it is no replica any more");
}

#[test]
fn leading_without_a_pause_is_told_apart_from_leading_anew() {
    let mut bench = led();
    bench.lead_again(leadership(6, &[1, 2, 3], &[1, 2, 3]));
    bench.lead_again(leadership(9, &[1, 2, 3], &[1, 2, 3]));
    assert_eq!(bench.leader.led_since(), LeaderEpoch(5));
    assert_eq!(Bench::start(&[1], &[1], 0, 0).leader.led_since(), LeaderEpoch(5));
}
