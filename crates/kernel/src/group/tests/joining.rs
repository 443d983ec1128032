//! JoinGroup, and the timers of the join phase.

use super::*;

fn code(bench: &Bench, request: RequestId) -> i16 {
    bench.joined(request).error.code()
}

#[test]
fn a_session_timeout_outside_the_bounds_is_refused_first() {
    let mut bench = Bench::new();
    for (session_timeout_ms, expected) in [(5_999, 26), (1_800_001, 26), (-1, 26)] {
        let request = bench.join(JoinRequest { session_timeout_ms, ..rejoining("x") });
        assert_eq!(code(&bench, request), expected);
        assert_eq!(bench.joined(request).member_id, "x");
    }
    for session_timeout_ms in [6_000, 1_800_000] {
        let request = bench.join(JoinRequest { session_timeout_ms, ..rejoining("x") });
        assert_ne!(code(&bench, request), 26);
    }
}

// KAFKA-6005
#[test]
fn a_first_member_without_protocol_type_or_protocols_is_inconsistent() {
    let typeless = JoinRequest { protocol_type: Str::EMPTY, ..joining("a") };
    for join in [typeless, JoinRequest { protocols: Vec::new(), ..joining("a") }] {
        let mut bench = Bench::new();
        let request = bench.join(join);
        assert_eq!((code(&bench, request), bench.joined(request).member_id.as_str()), (23, ""));
        assert_eq!(
            (bench.group.state, bench.is_forgotten),
            (State::Empty, false),
            "it stays until offsets expire"
        );
    }
}

#[test]
fn a_member_that_shares_no_protocol_with_all_is_inconsistent() {
    let mut bench = Bench::new();
    bench.stable(&["a"]);
    let request = bench.join(JoinRequest { protocol_type: Str::from("connect"), ..joining("b") });
    assert_eq!(code(&bench, request), 23);
    let request = bench.join(JoinRequest { protocols: vec![protocol("sticky", b"")], ..joining("b") });
    assert_eq!(code(&bench, request), 23);
    assert_eq!(bench.group.state, State::Stable);
}

// KAFKA-7824
#[test]
fn a_new_member_that_can_is_told_its_id_first_and_is_no_member_until_it_comes_back() {
    let mut bench = Bench::new();
    let request = bench.join(JoinRequest { requires_known_member_id: true, ..joining("a") });
    assert_eq!((code(&bench, request), bench.joined(request).member_id.as_str()), (79, "a"));
    assert_eq!((bench.group.state, bench.group.len()), (State::Empty, 0));
    let request = bench.join(rejoining("a"));
    bench.wait(3_000);
    assert_eq!((code(&bench, request), bench.joined(request).generation), (0, 1));
}

#[test]
fn an_id_that_was_given_out_and_not_used_is_forgotten_after_its_session() {
    let mut bench = Bench::new();
    bench.join(JoinRequest { requires_known_member_id: true, ..joining("a") });
    bench.wait(i64::from(SESSION_MS) - 1);
    assert_eq!(bench.group.given_out_ids(), 1);
    bench.wait(1);
    assert_eq!(bench.group.given_out_ids(), 0);
    let request = bench.join(rejoining("a"));
    assert_eq!(code(&bench, request), 25);
}

// KAFKA-19163
#[test]
fn a_group_that_nothing_has_come_of_ends_when_offsets_expire_next_and_nobody_is_about_to_join() {
    let mut bench = Bench::new();
    for id in ["a", "b"] {
        bench.join(JoinRequest { requires_known_member_id: true, ..joining(id) });
    }
    assert_eq!(bench.leave("a", None), 0);
    bench.step(Event::ExpireOffsets);
    assert!(!bench.is_forgotten && !bench.group.holds_nothing(), "b may come back");
    assert_eq!(bench.leave("b", None), 0);
    assert_eq!((bench.group.state, bench.is_forgotten), (State::Empty, false));
    assert!(bench.group.holds_nothing());
    bench.step(Event::ExpireOffsets);
    assert!(bench.is_forgotten && bench.log.is_empty(), "it has never been stored");
}

#[test]
fn an_offset_keeps_a_group_that_nothing_else_has_come_of() {
    let mut bench = Bench::new();
    bench.holds_appends = true;
    bench.commit(commit_of("", -1, &[("t", 0, 5)]));
    for _ in 0..2 {
        // First the offset is being committed, then it is.
        assert!(!bench.group.holds_nothing());
        bench.step(Event::ExpireOffsets);
        assert!(!bench.is_forgotten);
        if !bench.held.is_empty() {
            bench.end_append(ErrorCode::None);
        }
    }
}

#[test]
fn a_commit_that_fails_leaves_a_group_that_holds_nothing() {
    let mut bench = Bench::new();
    bench.holds_appends = true;
    bench.commit(commit_of("", -1, &[("t", 0, 5)]));
    bench.end_append(ErrorCode::NotEnoughReplicas);
    assert!(bench.group.holds_nothing() && !bench.is_forgotten);
}

// KAFKA-7909
#[test]
fn a_rebalance_waits_for_ids_that_were_given_out_until_they_leave_or_time_out() {
    for leaves in [true, false] {
        let mut bench = Bench::new();
        bench.stable(&["a"]);
        bench.join(JoinRequest { requires_known_member_id: true, ..joining("b") });
        let request = bench.join(rejoining("a"));
        assert!(bench.is_parked(request));
        if leaves {
            assert_eq!(bench.leave("b", None), 0);
        } else {
            bench.wait(i64::from(SESSION_MS) - 1);
            assert!(bench.is_parked(request));
            bench.wait(1);
        }
        assert_eq!((code(&bench, request), bench.joined(request).generation), (0, 2));
    }
}

#[test]
fn the_first_join_phase_is_extended_once_for_each_wait_in_which_a_member_came() {
    let mut bench = Bench::new();
    let a = bench.join(joining("a"));
    bench.wait(1_000);
    let b = bench.join(joining("b"));
    bench.wait(4_999);
    assert!(bench.is_parked(a) && bench.is_parked(b));
    bench.wait(1);
    assert_eq!((bench.joined(a).generation, bench.joined(a).members.len()), (1, 2));
    assert_eq!((bench.joined(b).leader.as_str(), bench.joined(b).members.len()), ("a", 0));
}

#[test]
fn the_extensions_end_with_the_rebalance_timeout() {
    let mut bench = Bench::new();
    let short = |id| JoinRequest { rebalance_timeout_ms: 5_000, ..joining(id) };
    let a = bench.join(short("a"));
    bench.wait(1_000);
    bench.join(short("b"));
    bench.wait(3_000);
    bench.join(short("c"));
    bench.wait(999);
    assert!(bench.is_parked(a));
    bench.wait(1);
    assert_eq!(bench.joined(a).members.len(), 3);
}

#[test]
fn without_a_delay_the_first_member_is_answered_at_once() {
    let mut bench = Bench::with(Settings { initial_rebalance_delay_ms: 0, ..settings() });
    let a = bench.join(joining("a"));
    assert_eq!(bench.joined(a).generation, 1);
}

#[test]
fn a_follower_that_joins_again_unchanged_gets_the_current_generation() {
    let mut bench = Bench::new();
    bench.stable(&["a", "b"]);
    let b = bench.join(rejoining("b"));
    assert_eq!((code(&bench, b), bench.joined(b).generation, bench.joined(b).members.len()), (0, 1, 0));
    assert_eq!(bench.heartbeat("a", None, 1), 0);
}

#[test]
fn a_leader_that_joins_again_or_a_follower_with_other_metadata_makes_a_rebalance() {
    let mut bench = Bench::new();
    bench.stable(&["a", "b"]);
    let a = bench.join(rejoining("a"));
    assert!(bench.is_parked(a));
    assert_eq!(bench.heartbeat("b", None, 1), 27);
    let b = bench.join(rejoining("b"));
    assert_eq!((bench.joined(a).generation, bench.joined(b).generation), (2, 2));
    let old = bench.sync("b", 1, &[]);
    assert_eq!(bench.synced(old).0, 22);
    bench.assign(&["a", "b"], 2);
    let b = bench.join(JoinRequest { protocols: vec![protocol("range", b"new")], ..rejoining("b") });
    assert!(bench.is_parked(b));
    assert_eq!(bench.group.state, State::PreparingRebalance);
}

#[test]
fn joining_again_unchanged_between_join_and_sync_gives_the_generation_and_the_leader_its_members() {
    let mut bench = Bench::new();
    bench.join(joining("a"));
    bench.join(joining("b"));
    bench.wait(10_000);
    let (a, b) = (bench.join(rejoining("a")), bench.join(rejoining("b")));
    assert_eq!((bench.joined(a).members.len(), bench.joined(b).members.len()), (2, 0));
    let changed = bench.join(JoinRequest { protocols: vec![protocol("range", b"new")], ..rejoining("b") });
    assert!(bench.is_parked(changed));
}

#[test]
fn an_unknown_member_is_told_so_in_every_state() {
    let mut bench = Bench::new();
    // Its offset keeps the group, although nobody is in it.
    bench.commit_one("", None, -1, 5);
    let x = bench.join(rejoining("x"));
    assert_eq!(code(&bench, x), 25);
    bench.stable(&["a"]);
    let x = bench.join(rejoining("x"));
    assert_eq!(code(&bench, x), 25);
}

#[test]
fn a_join_that_is_sent_again_takes_the_place_of_the_one_that_waits() {
    let mut bench = Bench::new();
    bench.stable(&["a", "b"]);
    let first = bench.join(rejoining("a"));
    let second = bench.join(rejoining("a"));
    assert_eq!(code(&bench, first), 27);
    bench.join(rejoining("b"));
    assert_eq!(code(&bench, second), 0);
}

// KAFKA-7610, KAFKA-9232, KAFKA-9752
#[test]
fn a_new_member_whose_client_hung_up_is_gone_after_five_minutes() {
    let mut bench = Bench::new();
    let slow =
        |id| JoinRequest { rebalance_timeout_ms: 1_000_000, session_timeout_ms: 1_000_000, ..joining(id) };
    bench.join(slow("a"));
    bench.wait(3_000);
    bench.assign(&["a"], 1);
    let ghost = bench.join(joining("ghost"));
    bench.wait(299_999);
    assert!(bench.is_parked(ghost));
    bench.wait(1);
    assert_eq!((code(&bench, ghost), bench.joined(ghost).member_id.as_str()), (25, ""));
    assert_eq!(bench.group.len(), 1);
}

#[test]
fn a_member_whose_join_waits_longer_than_its_session_stays() {
    let mut bench = Bench::new();
    bench.stable(&["a", "b"]);
    let b = bench.join(JoinRequest { protocols: vec![protocol("range", b"new")], ..rejoining("b") });
    for _ in 0..9 {
        bench.wait(5_000);
        assert_eq!(bench.heartbeat("a", None, 1), 27);
    }
    assert!(bench.is_parked(b));
    assert_eq!(bench.group.len(), 2);
}

// KAFKA-7196
#[test]
fn a_member_that_does_not_join_in_time_is_removed_with_its_timer() {
    let mut bench = Bench::new();
    bench.stable(&["a", "b"]);
    let a = bench.join(rejoining("a"));
    while bench.is_parked(a) {
        bench.wait(5_000);
        if bench.is_parked(a) {
            bench.heartbeat("b", None, 1);
        }
    }
    assert_eq!((bench.joined(a).generation, bench.joined(a).members.len()), (2, 1));
    assert!(!bench.group.timers.is_set(&Timer::Session(Str::from("b"))));
}

#[test]
fn the_protocol_with_the_most_votes_among_those_all_know_is_chosen() {
    let mut bench = Bench::new();
    let with = |id, names: &[&str]| JoinRequest {
        protocols: names.iter().map(|name| protocol(name, name.as_bytes())).collect(),
        ..joining(id)
    };
    let a = bench.join(with("a", &["only-a", "range", "sticky"]));
    bench.join(with("b", &["sticky", "range"]));
    bench.join(with("c", &["sticky", "range"]));
    bench.wait(10_000);
    assert_eq!(bench.joined(a).protocol_name.as_deref(), Some("sticky"));
    assert_eq!(bench.joined(a).members[2].metadata, Bytes::from_static(b"sticky"));
}

fn of_two() -> Bench {
    Bench::with(Settings { max_size: 2, ..settings() })
}

// KAFKA-7641, KAFKA-9844, KAFKA-9885
#[test]
fn a_full_stable_group_refuses_newcomers_without_an_id() {
    let mut bench = of_two();
    bench.stable(&["a", "b"]);
    let c = bench.join(JoinRequest { requires_known_member_id: true, ..joining("c") });
    assert_eq!((code(&bench, c), bench.joined(c).member_id.as_str()), (81, ""));
    let b = bench.join(rejoining("b"));
    assert_eq!(code(&bench, b), 0);
}

#[test]
fn a_join_phase_takes_no_more_than_the_limit_and_those_who_wait_may_ask_again() {
    let mut bench = of_two();
    bench.join(joining("a"));
    let b = bench.join(joining("b"));
    let c = bench.join(joining("c"));
    assert_eq!(code(&bench, c), 81);
    let again = bench.join(rejoining("b"));
    assert_eq!(code(&bench, b), 27);
    bench.wait(10_000);
    assert_eq!(code(&bench, again), 0);
}

#[test]
fn of_more_ids_given_out_than_there_is_room_the_last_to_come_back_are_refused() {
    let mut bench = of_two();
    for id in ["a", "b", "c"] {
        bench.join(JoinRequest { requires_known_member_id: true, ..joining(id) });
    }
    bench.join(rejoining("a"));
    bench.join(rejoining("b"));
    let c = bench.join(rejoining("c"));
    assert_eq!(code(&bench, c), 81);
}

#[test]
fn a_session_that_expires_removes_the_member_and_the_others_join_again() {
    let mut bench = Bench::new();
    bench.stable(&["a", "b"]);
    bench.wait(5_000);
    assert_eq!(bench.heartbeat("a", None, 1), 0);
    bench.wait(5_000);
    assert_eq!(bench.heartbeat("a", None, 1), 27);
    assert_eq!(bench.group.len(), 1);
    assert_eq!(bench.heartbeat("b", None, 1), 25);
}

#[test]
fn a_group_whose_last_member_leaves_is_empty_in_the_next_generation_and_stored_so() {
    let mut bench = Bench::new();
    bench.stable(&["a"]);
    assert_eq!(bench.leave("a", None), 0);
    assert_eq!((bench.group.state, bench.group.generation), (State::Empty, 2));
    let stored = bench.reloaded();
    assert_eq!((stored[0].state, stored[0].generation), (State::Empty, 2));
    assert_eq!(stored[0].protocol_type.as_deref(), Some(CONSUMER));
}

#[test]
fn a_group_that_was_empty_and_is_joined_again_waits_the_delay_once() {
    let mut bench = Bench::new();
    bench.stable(&["a"]);
    bench.leave("a", None);
    let b = bench.join(joining("b"));
    bench.wait(2_000);
    bench.join(joining("c"));
    bench.wait(1_000);
    assert_eq!((bench.joined(b).generation, bench.joined(b).members.len()), (3, 2));
}

#[test]
fn joining_again_unchanged_is_no_sign_of_life_and_changes_no_timeout() {
    let mut bench = Bench::new();
    bench.stable(&["a", "b"]);
    bench.wait(5_000);
    bench.heartbeat("a", None, 1);
    let b = bench.join(JoinRequest { session_timeout_ms: 60_000, ..rejoining("b") });
    assert_eq!(code(&bench, b), 0);
    bench.wait(5_000);
    assert_eq!(bench.heartbeat("b", None, 1), 25);
}

#[test]
fn an_id_that_was_given_out_does_not_come_back_as_an_instance() {
    let mut bench = Bench::new();
    bench.join(JoinRequest { requires_known_member_id: true, ..joining("a") });
    let a = bench.join(JoinRequest { member_id: Str::from("a"), ..instance("i", "unused") });
    assert_eq!((code(&bench, a), bench.group.len()), (25, 0));
}
