//! SyncGroup, Heartbeat and LeaveGroup in every state, and the time to sync.

use super::*;

/// a and b have joined and not synced.
fn completing() -> Bench {
    let mut bench = Bench::new();
    bench.join(joining("a"));
    let b = bench.join(joining("b"));
    while bench.is_parked(b) {
        bench.wait(1_000);
    }
    assert_eq!(bench.group.state, State::CompletingRebalance);
    bench
}

#[test]
fn a_follower_may_sync_first_and_all_get_their_part_once_it_is_stored() {
    let mut bench = completing();
    let b = bench.sync("b", 1, &[]);
    assert!(bench.is_parked(b));
    bench.holds_appends = true;
    let a = bench.sync("a", 1, &[("a", "x"), ("stranger", "z")]);
    assert!(bench.is_parked(a) && bench.is_parked(b));
    bench.end_append(ErrorCode::None);
    assert_eq!(bench.synced(a), (0, "x".to_owned()));
    assert_eq!(bench.synced(b), (0, String::new()));
    assert_eq!(bench.group.state, State::Stable);
    let again = bench.sync("a", 1, &[]);
    assert_eq!(bench.synced(again), (0, "x".to_owned()));
}

#[test]
fn the_record_of_an_assignment_is_kafkas_byte_for_byte() {
    let mut bench = Bench::with(Settings { initial_rebalance_delay_ms: 0, ..settings() });
    let join = JoinRequest { session_timeout_ms: 45_000, rebalance_timeout_ms: 300_000, ..joining("c-1") };
    bench.join(join);
    let request = bench.request();
    let assignment = Bytes::from_static(b"\0\0\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0\xff\xff\xff\xff");
    let assignments = [(Str::from("c-1"), assignment)].into();
    bench.step(Event::Sync(request, SyncRequest { assignments, ..sync_of("c-1", 1) }));
    let (key, value) = &bench.log[0].1.records[0];
    assert_eq!(hex(key), "0002000167");
    assert_eq!(
        hex(value.as_ref().unwrap()),
        "00030008636f6e73756d657200000001000572616e67650003632d310000018bcfe56800000000010003632d31ffff000163000a2f\
         3132372e302e302e31000493e00000afc80000000d000000000001000174ffffffff0000001500000000000100017400000001000000\
         00ffffffff"
            .replace(' ', "")
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_failed_store_is_told_to_all_and_a_rebalance_follows() {
    let mut bench = completing();
    bench.holds_appends = true;
    let (b, a) = (bench.sync("b", 1, &[]), bench.sync("a", 1, &[("b", "y")]));
    bench.end_append(ErrorCode::RequestTimedOut);
    assert_eq!((bench.synced(a), bench.synced(b)), ((27, String::new()), (27, String::new())));
    assert_eq!(bench.group.state, State::PreparingRebalance);
    assert_eq!(bench.heartbeat("a", None, 1), 27);
}

#[test]
fn a_store_that_ends_after_the_group_has_moved_on_changes_nothing() {
    let mut bench = completing();
    bench.holds_appends = true;
    let a = bench.sync("a", 1, &[("a", "x")]);
    bench.join(joining("c"));
    assert_eq!(bench.synced(a).0, 27);
    bench.end_append(ErrorCode::None);
    assert_eq!(bench.group.state, State::PreparingRebalance);
}

#[test]
fn a_leader_that_syncs_again_during_the_store_is_answered_twice_and_stored_once() {
    let mut bench = completing();
    bench.holds_appends = true;
    let first = bench.sync("a", 1, &[("a", "x")]);
    let second = bench.sync("a", 1, &[("a", "other")]);
    assert_eq!(bench.held.len(), 1);
    let third = bench.sync("a", 1, &[]);
    assert_eq!(bench.synced(first).0, 27, "no more than two wait");
    bench.end_append(ErrorCode::None);
    assert_eq!((bench.synced(second), bench.synced(third)), ((0, "x".to_owned()), (0, "x".to_owned())));
}

#[test]
fn protocol_type_and_name_must_be_the_groups_after_the_generation_is_right() {
    let mut bench = completing();
    let mut code = |generation, kind: &str, name: &str| {
        let sync = SyncRequest {
            protocol_type: Some(Str::from(kind)),
            protocol_name: Some(Str::from(name)),
            ..sync_of("b", generation)
        };
        let request = bench.request();
        bench.step(Event::Sync(request, sync));
        bench.answers.get(&request).map(|_| bench.synced(request).0)
    };
    assert_eq!(code(9, "connect", "range"), Some(22));
    assert_eq!(code(1, "connect", "range"), Some(23));
    assert_eq!(code(1, "consumer", "sticky"), Some(23));
    assert_eq!(code(1, "consumer", "range"), None);
}

#[test]
fn each_state_answers_sync_heartbeat_and_leave_as_in_the_table() {
    let row = |bench: &Bench, id: &str, generation| {
        let (mut sync, mut beat, mut leave) = (bench.clone(), bench.clone(), bench.clone());
        let request = sync.sync(id, generation, &[]);
        let synced = sync.answers.get(&request).map(|_| sync.synced(request).0);
        (synced, beat.heartbeat(id, None, generation), leave.leave(id, None))
    };
    let empty = Bench::new();
    assert_eq!(row(&empty, "x", 0), (Some(25), 25, 25));

    let completing = completing();
    assert_eq!(row(&completing, "b", 1), (None, 0, 0));
    assert_eq!(row(&completing, "b", 2), (Some(22), 22, 0));
    assert_eq!(row(&completing, "x", 1), (Some(25), 25, 25));

    let mut stable = Bench::new();
    stable.stable(&["a", "b"]);
    assert_eq!(row(&stable, "b", 1), (Some(0), 0, 0));
    assert_eq!(row(&stable, "b", 0), (Some(22), 22, 0));

    let mut preparing = stable.clone();
    preparing.join(rejoining("a"));
    assert_eq!(row(&preparing, "b", 1), (Some(27), 27, 0));

    let mut dead = stable;
    dead.step(Event::Unload);
    assert!(dead.is_forgotten);
    assert_eq!(row(&dead, "b", 1), (Some(15), 15, 15));
}

// KAFKA-12890
#[test]
fn a_member_that_never_syncs_is_removed_after_the_rebalance_timeout_though_it_heartbeats() {
    for leader_syncs in [true, false] {
        let mut bench = completing();
        if leader_syncs {
            bench.sync("a", 1, &[]);
        }
        for _ in 0..11 {
            bench.wait(5_000);
            assert_eq!((bench.heartbeat("a", None, 1), bench.heartbeat("b", None, 1)), (0, 0));
        }
        bench.wait(5_000);
        assert_eq!(bench.heartbeat("b", None, 1), 25);
        let expected = if leader_syncs { State::PreparingRebalance } else { State::Empty };
        assert_eq!(bench.group.state, expected);
    }
}

#[test]
fn a_rebalance_answers_whoever_waits_for_an_assignment() {
    let mut bench = completing();
    let b = bench.sync("b", 1, &[]);
    bench.leave("a", None);
    assert_eq!(bench.synced(b).0, 27);
}

#[test]
fn a_member_that_leaves_while_its_join_or_sync_waits_is_answered() {
    let mut bench = completing();
    let b = bench.sync("b", 1, &[]);
    bench.leave("b", None);
    assert_eq!(bench.synced(b).0, 25);
    let mut bench = Bench::new();
    bench.stable(&["a", "b"]);
    let b = bench.join(JoinRequest { protocols: vec![protocol("range", b"new")], ..rejoining("b") });
    bench.leave("b", None);
    assert_eq!((bench.joined(b).error.code(), bench.joined(b).member_id.as_str()), (25, ""));
}

#[test]
fn unloading_answers_everybody_that_the_coordinator_is_another() {
    let mut bench = completing();
    bench.holds_appends = true;
    let sync = bench.sync("a", 1, &[]);
    bench.step(Event::Unload);
    assert_eq!(bench.synced(sync).0, 16);

    let mut bench = Bench::new();
    bench.stable(&["a", "b"]);
    bench.holds_appends = true;
    let commit = bench.commit(commit_of("a", 1, &[("t", 0, 7)]));
    let join = bench.join(rejoining("a"));
    bench.step(Event::Unload);
    assert_eq!((bench.joined(join).error.code(), bench.codes(commit)), (16, vec![16]));
    assert!(bench.is_forgotten && bench.open.is_empty());
    assert_eq!(bench.group.deadline(), None);
}

#[test]
fn a_member_that_waits_for_its_assignment_longer_than_its_session_stays() {
    let mut bench = completing();
    let b = bench.sync("b", 1, &[]);
    for _ in 0..6 {
        bench.wait(5_000);
        assert_eq!(bench.heartbeat("a", None, 1), 0);
    }
    assert!(bench.is_parked(b));
    bench.sync("a", 1, &[("b", "y")]);
    assert_eq!(bench.synced(b), (0, "y".to_owned()));
    bench.wait(i64::from(SESSION_MS) - 1);
    assert_eq!(bench.heartbeat("b", None, 1), 0, "a whole session since the answer");
}

#[test]
fn several_that_leave_are_answered_each_in_the_order_of_the_request() {
    let mut bench = completing();
    let request = bench.request();
    let leaving = |id| LeavingMember { member_id: Str::from(id), instance_id: None };
    bench.step(Event::Leave(request, vec![leaving("stranger"), leaving("b"), leaving("a"), leaving("b")]));
    let codes = [ErrorCode::UnknownMemberId, ErrorCode::None, ErrorCode::None, ErrorCode::UnknownMemberId];
    assert_eq!(bench.answers[&request], Answer::Leave(Ok(codes.to_vec())));
    assert_eq!(bench.group.state, State::Empty);
}

#[test]
fn a_group_whose_becoming_empty_cannot_be_stored_is_empty_all_the_same_and_says_so() {
    let mut bench = Bench::new();
    bench.stable(&["a"]);
    bench.holds_appends = true;
    bench.leave("a", None);
    let told = bench.end_append(ErrorCode::NotEnoughReplicas);
    assert!(matches!(told[..], [Command::Note(Note::AppendFailed { .. })]), "{told:?}");
    assert_eq!((bench.group.state, bench.group.generation), (State::Empty, 2));
}
