//! Static members (KIP-345, KIP-814).

use super::*;

/// Instances i1 (leader, id L1) and i2 (id M1) in a Stable group.
fn stable() -> Bench {
    let mut bench = Bench::new();
    bench.join(instance("i1", "L1"));
    let m = bench.join(instance("i2", "M1"));
    while bench.is_parked(m) {
        bench.wait(1_000);
    }
    bench.assign(&["L1", "M1"], 1);
    bench
}

fn of_version_9(join: JoinRequest) -> JoinRequest {
    JoinRequest { supports_skipping_assignment: true, ..join }
}

#[test]
fn a_restarted_leader_keeps_its_place_without_a_rebalance_and_is_told_not_to_assign() {
    let mut bench = stable();
    let l2 = bench.join(of_version_9(instance("i1", "L2")));
    let joined = bench.joined(l2);
    assert_eq!((joined.error.code(), joined.generation, joined.leader.as_str()), (0, 1, "L2"));
    assert_eq!((joined.members.len(), joined.skip_assignment), (2, true));
    let sync = bench.sync("L2", 1, &[]);
    assert_eq!(bench.synced(sync), (0, "to L1".to_owned()));
    assert_eq!(bench.heartbeat("M1", Some("i2"), 1), 0);
}

#[test]
fn a_restarted_leader_of_an_old_version_is_told_the_old_leader_and_no_members() {
    let mut bench = stable();
    let l2 = bench.join(instance("i1", "L2"));
    let joined = bench.joined(l2);
    assert_eq!((joined.leader.as_str(), joined.members.len(), joined.skip_assignment), ("L1", 0, false));
    assert_eq!(bench.group.leader.as_deref(), Some("L2"));
}

#[test]
fn a_restarted_follower_is_told_the_leader_and_nothing_to_skip() {
    let mut bench = stable();
    let m2 = bench.join(of_version_9(instance("i2", "M2")));
    let joined = bench.joined(m2);
    assert_eq!((joined.leader.as_str(), joined.members.len(), joined.skip_assignment), ("L1", 0, false));
}

// KAFKA-8225
#[test]
fn the_older_process_of_an_instance_is_fenced_everywhere() {
    let mut bench = stable();
    bench.join(instance("i1", "L2"));
    assert_eq!(bench.heartbeat("L1", Some("i1"), 1), 82);
    assert_eq!(bench.heartbeat("L1", None, 1), 25);
    assert_eq!(bench.leave("L1", Some("i1")), 82);
    assert_eq!(bench.commit_one("L1", Some("i1"), 1, 5), 82);
    let sync = bench.request();
    let as_i1 = SyncRequest { instance_id: Some(Str::from("i1")), ..sync_of("L1", 1) };
    bench.step(Event::Sync(sync, as_i1));
    assert_eq!(bench.synced(sync).0, 82);
    let join = bench.join(JoinRequest { member_id: Str::from("L1"), ..instance("i1", "unused") });
    assert_eq!(bench.joined(join).error.code(), 82);
}

// KAFKA-10284, KAFKA-14009
#[test]
fn the_new_id_and_its_timeouts_are_stored_before_they_are_answered() {
    let mut bench = stable();
    bench.holds_appends = true;
    let join =
        JoinRequest { session_timeout_ms: 20_000, rebalance_timeout_ms: 70_000, ..instance("i1", "L2") };
    let l2 = bench.join(join);
    assert!(bench.is_parked(l2));
    bench.end_append(ErrorCode::None);
    assert_eq!(bench.joined(l2).error.code(), 0);
    let reloaded = &bench.reloaded()[0];
    let member = &reloaded.members[&Str::from("L2")];
    assert_eq!((member.session_timeout_ms, member.rebalance_timeout_ms), (20_000, 70_000));
    assert_eq!(member.assignment, Bytes::from_static(b"to L1"));
    assert_eq!(reloaded.leader.as_deref(), Some("L2"));
}

// KAFKA-18263
#[test]
fn a_replacement_that_cannot_be_stored_is_taken_back_wholly() {
    let mut bench = stable();
    let before = bench.group.clone();
    bench.holds_appends = true;
    let other = vec![protocol("range", b"other")];
    let l2 = bench.join(JoinRequest { session_timeout_ms: 20_000, protocols: other, ..instance("i1", "L2") });
    bench.end_append(ErrorCode::NotEnoughReplicas);
    assert_eq!((bench.joined(l2).error.code(), bench.joined(l2).member_id.as_str()), (15, ""));
    assert_eq!(bench.group.members, before.members);
    assert_eq!(bench.group.static_members, before.static_members);
    assert_eq!(bench.group.supported_protocols, before.supported_protocols);
    assert_eq!(bench.group.leader, before.leader);
    assert_eq!(bench.heartbeat("L1", Some("i1"), 1), 0);
}

#[test]
fn a_replacement_that_is_replaced_before_it_is_stored_is_fenced() {
    let mut bench = stable();
    bench.holds_appends = true;
    let l2 = bench.join(instance("i1", "L2"));
    let l3 = bench.join(instance("i1", "L3"));
    assert_eq!((bench.joined(l2).error.code(), bench.joined(l2).member_id.as_str()), (82, "L2"));
    bench.end_append(ErrorCode::NotEnoughReplicas);
    bench.end_append(ErrorCode::None);
    assert_eq!(bench.joined(l3).member_id, "L3");
    assert!(bench.group.members.contains_key("L3"));
}

#[test]
fn a_replacement_that_changes_the_protocol_makes_a_rebalance() {
    let mut bench = Bench::new();
    let both = || vec![protocol("range", b""), protocol("sticky", b"")];
    bench.join(JoinRequest { protocols: both(), ..instance("i1", "L1") });
    bench.wait(3_000);
    bench.assign(&["L1"], 1);
    let other = vec![protocol("sticky", b""), protocol("range", b"")];
    let l2 = bench.join(JoinRequest { protocols: other, ..instance("i1", "L2") });
    assert!(bench.is_parked(l2) || bench.joined(l2).generation == 2);
    assert_eq!(bench.joined(l2).protocol_name.as_deref(), Some("sticky"));
}

// KAFKA-8500
#[test]
fn a_replacement_in_the_join_phase_fences_the_join_that_waits() {
    let mut bench = stable();
    let m1 = bench.join(JoinRequest {
        member_id: Str::from("M1"),
        protocols: vec![protocol("range", b"new")],
        ..instance("i2", "unused")
    });
    let m2 = bench.join(instance("i2", "M2"));
    assert_eq!((bench.joined(m1).error.code(), bench.joined(m1).member_id.as_str()), (82, "M1"));
    assert!(bench.is_parked(m2));
    assert_eq!(bench.group.len(), 2);
}

// KAFKA-9801
#[test]
fn a_replacement_between_join_and_sync_makes_a_rebalance() {
    let mut bench = Bench::new();
    bench.join(instance("i1", "L1"));
    let m = bench.join(instance("i2", "M1"));
    while bench.is_parked(m) {
        bench.wait(1_000);
    }
    let sync = bench.request();
    let as_i2 = SyncRequest { instance_id: Some(Str::from("i2")), ..sync_of("M1", 1) };
    bench.step(Event::Sync(sync, as_i2));
    let m2 = bench.join(instance("i2", "M2"));
    assert_eq!(bench.synced(sync).0, 82);
    assert_eq!(bench.heartbeat("L1", Some("i1"), 1), 27);
    let leader = bench.sync("L1", 1, &[]);
    assert_eq!(bench.synced(leader).0, 27);
    bench.join(JoinRequest { member_id: Str::from("L1"), ..instance("i1", "unused") });
    assert_eq!(bench.joined(m2).generation, 2);
    bench.assign(&["L1", "M2"], 2);
}

// KAFKA-8220
#[test]
fn a_static_member_that_misses_a_rebalance_stays_but_does_not_lead() {
    let mut bench = stable();
    let m1 = bench.join(JoinRequest {
        member_id: Str::from("M1"),
        protocols: vec![protocol("range", b"new")],
        session_timeout_ms: 100_000,
        ..instance("i2", "unused")
    });
    while bench.is_parked(m1) {
        bench.wait(5_000);
        if bench.is_parked(m1) {
            assert_eq!(bench.heartbeat("L1", Some("i1"), 1), 27);
        }
    }
    let joined = bench.joined(m1);
    assert_eq!((joined.generation, joined.leader.as_str(), joined.members.len()), (2, "M1", 2));
}

#[test]
fn a_join_phase_that_no_static_member_comes_to_is_extended_until_their_sessions_end() {
    let mut bench = stable();
    bench.join(joining("d"));
    bench.leave("d", None);
    assert_eq!(bench.group.state, State::PreparingRebalance);
    bench.wait(2 * i64::from(REBALANCE_MS));
    assert_eq!((bench.group.state, bench.group.len()), (State::Empty, 0));
}

#[test]
fn an_administrator_removes_an_instance_by_its_name_only() {
    let mut bench = stable();
    assert_eq!(bench.leave("", Some("i9")), 25);
    assert_eq!(bench.leave("", Some("i2")), 0);
    assert_eq!(bench.heartbeat("M1", Some("i2"), 1), 25);
}

#[test]
fn an_instance_id_that_is_not_known_is_an_unknown_member() {
    let mut bench = stable();
    assert_eq!(bench.heartbeat("L1", Some("i9"), 1), 25);
}

#[test]
fn another_subscription_of_a_restarted_member_makes_no_rebalance() {
    let mut bench = stable();
    let m2 = bench.join(JoinRequest {
        protocols: vec![protocol("range", &subscription(&["u"]))],
        ..instance("i2", "M2")
    });
    assert_eq!((bench.joined(m2).error.code(), bench.joined(m2).generation), (0, 1));
    assert_eq!(bench.heartbeat("L1", Some("i1"), 1), 0);
    let stored = &bench.reloaded()[0].members[&Str::from("M2")];
    assert_eq!(stored.metadata("range"), Bytes::from(subscription(&["u"])));
}

#[test]
fn a_replacement_that_fails_while_a_later_record_tells_of_it_makes_a_rebalance() {
    let mut bench = stable();
    bench.holds_appends = true;
    let l2 = bench.join(instance("i1", "L2"));
    let m2 = bench.join(instance("i2", "M2"));
    bench.end_append(ErrorCode::NotEnoughReplicas);
    bench.end_append(ErrorCode::None);
    assert_eq!((bench.joined(l2).error.code(), bench.joined(m2).error.code()), (15, 0));
    assert!(bench.reloaded()[0].members.contains_key("L2"), "what the log says is not what is live");
    assert_eq!(bench.heartbeat("M2", Some("i2"), 1), 27);
    assert_eq!(bench.heartbeat("L1", Some("i1"), 1), 27);
}

#[test]
fn a_fresh_id_that_is_taken_is_refused_and_changes_nothing() {
    let mut bench = stable();
    let before = bench.group.clone();
    for taken in ["L1", "M1"] {
        let request = bench.join(instance("i1", taken));
        assert_eq!((bench.joined(request).error.code(), bench.joined(request).member_id.as_str()), (25, ""));
    }
    assert_eq!(bench.group, before);
}
