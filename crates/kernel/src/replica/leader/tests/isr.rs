//! Who joins the ISR and who leaves it, and what an answer changes.

use super::*;

const HALF_LAG_MS: i64 = LAG_MS / 2;

/// Replica 2 has asked to join, with all ten records.
fn expanding() -> (Bench, IsrChange) {
    let mut bench = Bench::start(&[1, 2, 3], &[1], 10, 10);
    let change = submitted(&bench.fetch(2, 10)).unwrap();
    (bench, change)
}

/// Replica 2 has been silent for too long and is to leave.
fn shrinking() -> (Bench, IsrChange) {
    let mut bench = Bench::start(&[1, 2], &[1, 2], 0, 10);
    bench.fetch(2, 4);
    let change = submitted(&bench.wait(LAG_MS + 1)).unwrap();
    (bench, change)
}

#[test]
fn a_follower_that_has_the_committed_records_and_the_start_of_the_epoch_joins() {
    let (mut bench, change) = expanding();
    assert_eq!((change.leader_epoch, change.partition_epoch), (LeaderEpoch(5), 50));
    assert_eq!((&change.isr, change.joining), (&ids(&[1, 2]), Some((BrokerId(2), BrokerEpoch(-1)))));
    assert_eq!(bench.isr(), [1], "not before it is confirmed");
    bench.confirm(change);
    assert_eq!(bench.isr(), [1, 2]);
    assert_eq!(bench.leader.partition_epoch(), 51);
}

#[test]
fn a_follower_at_the_high_watermark_but_below_the_start_of_the_epoch_does_not_join() {
    // KAFKA-7128: the records between were committed by the leader before, and this follower lacks them.
    let mut bench = Bench::start(&[1, 2, 3], &[1, 3], 4, 10);
    assert_eq!(submitted(&bench.fetch(2, 4)), None);
    assert_eq!(submitted(&bench.fetch(2, 9)), None);
    assert!(submitted(&bench.fetch(2, 10)).is_some());
}

#[test]
fn a_follower_below_the_high_watermark_does_not_join() {
    let mut bench = Bench::start(&[1, 2], &[1], 0, 0);
    bench.append(10);
    assert_eq!(submitted(&bench.fetch(2, 9)), None);
    assert!(submitted(&bench.fetch(2, 10)).is_some());
}

#[test]
fn a_follower_whose_broker_is_not_alive_does_not_join() {
    // KAFKA-14140: it may be in its controlled shutdown, and still fetch.
    let mut bench = Bench::start(&[1, 2], &[1], 0, 10);
    bench.step(Event::LiveBrokers(live(&[1])));
    assert_eq!(submitted(&bench.fetch(2, 10)), None);
    bench.step(Event::LiveBrokers(live(&[1, 2])));
    assert!(submitted(&bench.fetch(2, 10)).is_some());
}

#[test]
fn a_fetch_of_an_earlier_life_of_the_broker_says_nothing_of_this_one() {
    // apache/kafka#14053: it was on its way while the broker lost its tail and came back.
    let mut bench = Bench::start(&[1, 2], &[1], 0, 10);
    bench.fetch_in(7, 2, 4);
    assert_eq!(bench.fetch_in(6, 2, 10), []);
    assert_eq!(bench.leader.remote(BrokerId(2)).unwrap().log_end(), Offset(4));
    let change = submitted(&bench.fetch_in(7, 2, 10)).unwrap();
    assert_eq!(change.joining, Some((BrokerId(2), BrokerEpoch(7))));
}

#[test]
fn whoever_asks_for_an_isr_again_names_the_life_in_which_the_replica_had_caught_up() {
    let mut bench = Bench::start(&[1, 2], &[1], 0, 10);
    let change = submitted(&bench.fetch_in(6, 2, 10)).unwrap();
    // The next life has less: the controller must not let it in by what the last one had.
    bench.fetch_in(7, 2, 3);
    let again = submitted(&bench.answer(change.clone(), IsrAnswer::Failed));
    assert_eq!(again, Some(change.clone()));
    bench.answer(change, IsrAnswer::NotAttempted);
    assert_eq!(submitted(&bench.fetch_in(7, 2, 5)), None);
}

#[test]
fn a_broker_that_tells_its_epoch_no_more_is_believed() {
    // It went back to a release whose fetches have no place for it.
    let mut bench = Bench::start(&[1, 2], &[1], 0, 10);
    bench.fetch_in(7, 2, 4);
    let change = submitted(&bench.fetch_in(-1, 2, 10)).unwrap();
    assert_eq!(change.joining, Some((BrokerId(2), BrokerEpoch(-1))));
}

#[test]
fn a_follower_that_stays_behind_leaves_after_the_lag_limit_and_not_before() {
    let mut bench = Bench::start(&[1, 2], &[1, 2], 0, 10);
    bench.fetch(2, 4);
    assert_eq!(submitted(&bench.wait(LAG_MS)), None);
    let change = submitted(&bench.wait(1)).unwrap();
    assert_eq!(change.isr, ids(&[1]));
}

#[test]
fn a_member_that_never_fetches_in_the_epoch_leaves_after_the_lag_limit() {
    let mut bench = Bench::start(&[1, 2], &[1, 2], 10, 10);
    assert_eq!(submitted(&bench.wait(LAG_MS)), None);
    assert_eq!(submitted(&bench.wait(1)).unwrap().isr, ids(&[1]));
}

#[test]
fn a_follower_that_has_everything_of_an_idle_partition_stays_however_seldom_it_fetches() {
    // KAFKA-7152
    let mut bench = Bench::start(&[1, 2], &[1, 2], 0, 10);
    bench.fetch(2, 10);
    assert_eq!(submitted(&bench.wait(10 * LAG_MS)), None);
    bench.append(1);
    assert_eq!(submitted(&bench.wait(0)).unwrap().isr, ids(&[1]), "now it has not had everything for long");
}

#[test]
fn a_follower_that_gets_each_time_what_there_was_before_stays_though_it_never_reaches_the_end() {
    let mut bench = Bench::start(&[1, 2], &[1, 2], 0, 10);
    bench.fetch(2, 0);
    for _ in 0..10 {
        let end_before = bench.log_end;
        bench.append(10);
        assert_eq!(submitted(&bench.wait(HALF_LAG_MS)), None);
        bench.fetch(2, end_before);
    }
    // Half of what there was is not enough.
    for _ in 0..3 {
        let end_before = bench.log_end;
        bench.append(10);
        bench.now_ms += HALF_LAG_MS;
        bench.fetch(2, end_before - 5);
    }
    assert_eq!(submitted(&bench.wait(0)).unwrap().isr, ids(&[1]));
}

#[test]
fn several_laggards_leave_together_and_the_leader_never_does() {
    let mut bench = Bench::start(&[1, 2, 3, 4], &[2, 1, 3, 4], 0, 10);
    bench.now_ms += LAG_MS;
    bench.fetch(3, 10);
    assert_eq!(submitted(&bench.wait(1)).unwrap().isr, ids(&[1, 3]));
}

#[test]
fn one_change_is_in_flight_at_a_time() {
    let (mut bench, change) = expanding();
    assert_eq!(submitted(&bench.fetch(3, 10)), None);
    assert_eq!(submitted(&bench.wait(2 * LAG_MS)), None);
    bench.confirm(change);
    assert_eq!(submitted(&bench.fetch(3, 10)).unwrap().isr, ids(&[1, 2, 3]));
}

#[test]
fn a_joining_replica_counts_for_the_high_watermark_before_it_is_confirmed() {
    let (mut bench, change) = expanding();
    bench.append(5);
    bench.now_ms += 2 * LAG_MS;
    bench.append(0);
    assert_eq!(bench.high_watermark(), 10, "it may be in the ISR already, without the answer");
    assert_eq!(bench.leader.maximal_isr_len(), 2);
    assert_eq!(advanced(&bench.answer(change, IsrAnswer::NotAttempted)), Some(15), "now it certainly is not");
}

#[test]
fn a_leaving_replica_counts_until_the_change_is_confirmed_and_the_high_watermark_moves_then() {
    // KAFKA-13091: nothing else comes that would move it.
    let (mut bench, change) = shrinking();
    bench.append(1);
    assert_eq!(bench.high_watermark(), 4);
    assert_eq!(bench.leader.maximal_isr_len(), 2);
    assert_eq!(advanced(&bench.confirm(change)), Some(11));
    assert_eq!(bench.isr(), [1]);
}

#[test]
fn a_change_that_was_not_attempted_leaves_the_isr_and_may_be_asked_for_again() {
    let (mut bench, change) = shrinking();
    assert_eq!(bench.answer(change.clone(), IsrAnswer::NotAttempted).len(), 1);
    assert_eq!(bench.isr(), [1, 2]);
    assert_eq!(submitted(&bench.wait(HALF_LAG_MS)), Some(change));
}

#[test]
fn a_change_that_came_too_late_waits_for_the_next_leadership() {
    let (mut bench, change) = shrinking();
    bench.answer(change.clone(), IsrAnswer::Superseded);
    assert!(bench.leader.is_isr_change_pending());
    assert_eq!(submitted(&bench.wait(LAG_MS)), None);
    assert_eq!(submitted(&bench.fetch(2, 10)), None);
    assert_eq!(bench.high_watermark(), 10, "the high watermark goes on by the maximal ISR");
    bench.lead_again(leadership(6, &[1, 2], &[1, 2]));
    assert!(!bench.leader.is_isr_change_pending());
    bench.append(1);
    assert!(submitted(&bench.wait(LAG_MS + 1)).is_some());
}

#[test]
fn a_failed_request_is_made_again_as_it_was() {
    // KAFKA-14010
    let (mut bench, change) = expanding();
    let again = bench.answer(change.clone(), IsrAnswer::Failed);
    assert_eq!(submitted(&again), Some(change.clone()));
    bench.confirm(change);
    assert_eq!(bench.isr(), [1, 2]);
}

#[test]
fn a_confirmation_of_what_had_been_done_before_ends_the_pending_change() {
    // KAFKA-12751: the first answer was lost, the controller answers the repetition with the state as it is.
    let (mut bench, change) = expanding();
    bench.answer(change.clone(), confirmed(5, change.partition_epoch, &change.isr));
    assert!(!bench.leader.is_isr_change_pending());
    assert_eq!((bench.isr(), bench.leader.partition_epoch()), (vec![1, 2], 50));
}

#[test]
fn the_confirmed_isr_is_the_one_that_the_controller_tells() {
    let (mut bench, change) = expanding();
    bench.answer(change, confirmed(5, 53, &ids(&[1])));
    assert_eq!((bench.isr(), bench.leader.partition_epoch()), (vec![1], 53));
}

#[test]
fn a_confirmation_with_an_older_partition_epoch_or_another_leader_epoch_is_not_believed() {
    for answer in [confirmed(5, 49, &ids(&[1, 2])), confirmed(4, 51, &ids(&[1, 2]))] {
        let (mut bench, change) = expanding();
        bench.answer(change, answer);
        assert!(bench.leader.is_isr_change_pending());
        assert_eq!((bench.isr(), bench.leader.partition_epoch()), (vec![1], 50));
    }
}

#[test]
fn an_answer_to_a_change_of_an_earlier_leadership_is_ignored() {
    // KAFKA-12686: the newest partition epoch wins, and the ISR can change afterwards.
    let (mut bench, change) = expanding();
    bench.lead_again(leadership(6, &[1, 2, 3], &[1, 3]));
    assert_eq!(bench.answer(change.clone(), confirmed(5, 51, &change.isr)), []);
    assert_eq!((bench.isr(), bench.leader.partition_epoch()), (vec![1, 3], 60));
    let next = submitted(&bench.fetch(2, 10)).unwrap();
    assert_eq!(bench.answer(change, IsrAnswer::NotAttempted), [], "nor does it end a later change");
    bench.confirm(next);
    assert_eq!(bench.isr(), [1, 3, 2]);
}

#[test]
fn an_isr_that_holds_no_replica_of_the_partition_is_put_right() {
    // KAFKA-9672: as a reassignment may leave it. Replica 9 is not waited for, and leaves.
    let mut bench = Bench::start(&[1, 2], &[9, 1, 2], 0, 10);
    bench.fetch(2, 10);
    assert_eq!(bench.high_watermark(), 10);
    assert_eq!(submitted(&bench.wait(1)).unwrap().isr, ids(&[1, 2]));
    let mut stranger = Bench::start(&[1, 2], &[9], 10, 10);
    assert_eq!(submitted(&stranger.fetch(2, 10)).unwrap().isr, ids(&[1, 2]));
}

#[test]
fn what_dashboards_show_follows_the_confirmed_isr() {
    let (bench, _) = Bench::start_with(&[1, 2, 3], &[1, 2], 0, 0, 2);
    assert!(bench.leader.is_under_replicated() && bench.leader.is_at_min_isr());
    assert!(!bench.leader.is_under_min_isr() && !bench.leader.is_reassigning());
    let (mut bench, _) = Bench::start_with(&[1, 2, 3], &[1], 0, 0, 2);
    assert!(bench.leader.is_under_min_isr() && !bench.leader.is_at_min_isr());
    assert!(bench.leader.lacks_replicas_after_append());
    bench.fetch(2, 0);
    assert!(!bench.leader.lacks_replicas_after_append() && bench.leader.is_under_min_isr());
    let adding = Leadership { adding: ids(&[3]), ..leadership(6, &[1, 2, 3], &[1, 2]) };
    bench.lead_again(adding);
    assert!(!bench.leader.is_under_replicated() && bench.leader.is_reassigning());
}
