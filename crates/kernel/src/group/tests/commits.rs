//! OffsetCommit, TxnOffsetCommit, and what OffsetFetch sees of them.

use super::*;

#[test]
fn who_may_commit_when_is_as_in_the_matrix() {
    let mut bench = Bench::new();
    assert_eq!(bench.commit_one("x", None, -1, 1), 0, "Empty, no generation");
    assert_eq!(bench.group.overview().protocol_type, "");
    assert_eq!(bench.commit_one("x", None, 3, 1), 25, "Empty, a generation");
    bench.stable(&["a", "b"]);
    assert_eq!(bench.commit_one("", None, -1, 1), 25);
    assert_eq!(bench.commit_one("a", None, 1, 1), 0);
    assert_eq!(bench.commit_one("a", None, 0, 1), 22);
    assert_eq!(bench.commit_one("x", None, 1, 1), 25);
    assert_eq!(bench.commit_one("a", Some("i"), 1, 1), 25);
    bench.join(rejoining("a"));
    assert_eq!(bench.commit_one("b", None, 1, 1), 0, "PreparingRebalance");
    bench.join(rejoining("b"));
    assert_eq!(bench.commit_one("b", None, 2, 1), 27, "CompletingRebalance");
    let transactional = bench.commit(of_transaction(1, &[("t", 0, 1)]));
    assert_eq!(bench.codes(transactional), [0], "a transaction may, in any state");
    bench.step(Event::Unload);
    assert_eq!(bench.commit_one("b", None, 2, 1), 15, "Dead");
}

// KAFKA-14201
#[test]
fn an_instance_id_in_a_commit_without_generation_is_looked_at_only_if_there_are_members() {
    let mut bench = Bench::new();
    assert_eq!(bench.commit_one("", Some("i1"), -1, 1), 0);
    bench.join(instance("i1", "L1"));
    bench.wait(3_000);
    bench.assign(&["L1"], 1);
    assert_eq!(bench.commit_one("", Some("i1"), -1, 1), 82);
    assert_eq!(bench.commit_one("", Some("i2"), -1, 1), 25);
}

#[test]
fn a_request_for_an_absent_group_makes_it_or_is_refused() {
    use absent::{WhenAbsent, without_group};
    let request = RequestId(1);
    let when = |event| without_group(&settings(), &event);
    let commit = |id, generation| when(Event::Commit(request, commit_of(id, generation, &[("t", 0, 1)])));
    assert_eq!(commit("", -1), WhenAbsent::Create);
    let refused = Answer::Commit([(tp("t", 0), ErrorCode::IllegalGeneration)].into());
    assert_eq!(commit("m", 3), WhenAbsent::Answer(request, refused));
    assert_eq!(when(Event::Commit(request, of_transaction(1, &[("t", 0, 1)]))), WhenAbsent::Create);
    assert_eq!(when(Event::Join(request, joining("a"))), WhenAbsent::Create);
    let code = |join| match when(Event::Join(request, join)) {
        WhenAbsent::Answer(_, Answer::Join(joined)) => (joined.error.code(), joined.member_id.to_string()),
        other => panic!("{other:?}"),
    };
    assert_eq!(code(rejoining("x")), (25, "x".to_owned()));
    assert_eq!(code(JoinRequest { session_timeout_ms: 1, ..joining("a") }), (26, String::new()));
    let unknown = ErrorCode::UnknownMemberId;
    let answered = |event| match when(event) {
        WhenAbsent::Answer(_, answer) => answer,
        other => panic!("{other:?}"),
    };
    assert_eq!(answered(Event::Sync(request, sync_of("a", 1))), Answer::Sync(SyncAnswer::error(unknown)));
    let leaving = LeavingMember { member_id: Str::from("a"), instance_id: None };
    assert_eq!(answered(Event::Leave(request, vec![leaving])), Answer::Leave(Ok(vec![unknown])));
    let absent = ErrorCode::GroupIdNotFound;
    assert_eq!(answered(Event::Delete(request)), Answer::Delete(absent));
    assert_eq!(answered(Event::DeleteOffsets(request, BTreeSet::new())), Answer::DeleteOffsets(Err(absent)));
    assert_eq!(when(Event::ExpireOffsets), WhenAbsent::Ignore);
}

// KAFKA-16371
#[test]
fn metadata_that_is_too_long_is_refused_for_its_partition_and_leaves_nothing_pending() {
    let mut bench = Bench::new();
    let texts = ["x".repeat(4_096), "x".repeat(4_097), "€".repeat(4_096), "😀".repeat(2_049)];
    let offsets = texts.iter().zip(0..).map(|(text, partition)| (tp("t", partition), committing(1, text)));
    let request = bench.commit(CommitRequest { offsets: offsets.collect(), ..commit_of("", -1, &[]) });
    assert_eq!(bench.codes(request), [0, 12, 0, 12]);
    assert!((0..4).all(|partition| !bench.is_unstable("t", partition)));
    let batches = bench.log.len();
    let offsets = [(tp("t", 0), committing(1, &texts[1]))].into();
    let request = bench.commit(CommitRequest { offsets, ..commit_of("", -1, &[]) });
    assert_eq!((bench.codes(request), bench.log.len()), (vec![12], batches), "nothing is appended");
}

#[test]
fn a_commit_counts_only_once_it_is_in_the_log() {
    let mut bench = Bench::new();
    bench.commit_one("", None, -1, 5);
    bench.holds_appends = true;
    let request = bench.commit(commit_of("", -1, &[("t", 0, 6)]));
    assert_eq!((bench.offset("t", 0), bench.is_unstable("t", 0)), (5, true));
    bench.end_append(ErrorCode::NotEnoughReplicas);
    assert_eq!((bench.codes(request), bench.offset("t", 0), bench.is_unstable("t", 0)), (vec![15], 5, false));
    let request = bench.commit(commit_of("", -1, &[("t", 0, 7)]));
    bench.end_append(ErrorCode::None);
    assert_eq!((bench.codes(request), bench.offset("t", 0)), (vec![0], 7));
}

#[test]
fn of_two_commits_in_flight_the_later_in_the_log_counts() {
    let mut bench = Bench::new();
    bench.holds_appends = true;
    bench.commit(commit_of("", -1, &[("t", 0, 1)]));
    bench.commit(commit_of("", -1, &[("t", 0, 2)]));
    let (first, second) = (bench.held[0].0, bench.held[1].0);
    bench.step(Event::Appended { append: second, outcome: Ok(Offset(11)) });
    assert_eq!((bench.offset("t", 0), bench.is_unstable("t", 0)), (2, false));
    bench.step(Event::Appended { append: first, outcome: Ok(Offset(10)) });
    assert_eq!(bench.offset("t", 0), 2);
}

#[test]
fn an_offset_is_unstable_until_the_last_commit_of_it_has_ended() {
    let mut bench = Bench::new();
    bench.holds_appends = true;
    bench.commit(commit_of("", -1, &[("t", 0, 1)]));
    bench.commit(commit_of("", -1, &[("t", 0, 2)]));
    bench.end_append(ErrorCode::None);
    assert_eq!((bench.offset("t", 0), bench.is_unstable("t", 0)), (1, true));
    bench.end_append(ErrorCode::None);
    assert_eq!((bench.offset("t", 0), bench.is_unstable("t", 0)), (2, false));
    assert_eq!(bench.group.committed().len(), 1);
}

#[test]
fn a_commit_is_a_sign_of_life_of_its_member() {
    let mut bench = Bench::new();
    bench.stable(&["a"]);
    for _ in 0..4 {
        bench.wait(6_000);
        assert_eq!(bench.commit_one("a", None, 1, 1), 0);
    }
}

// KIP-98
#[test]
fn offsets_of_a_transaction_count_from_its_commit_and_never_after_its_abort() {
    for committed in [true, false] {
        let mut bench = Bench::new();
        bench.commit_one("", None, -1, 1);
        let request = bench.commit(of_transaction(7, &[("t", 0, 10), ("t", 1, 20)]));
        assert_eq!(bench.codes(request), [0, 0]);
        assert_eq!((bench.offset("t", 0), bench.is_unstable("t", 0)), (1, true));
        assert_eq!(bench.group.open_transactions().collect::<Vec<_>>(), [7]);
        bench.end_transaction(7, committed);
        let expected = if committed { (10, 20) } else { (1, -1) };
        assert_eq!((bench.offset("t", 0), bench.offset("t", 1)), expected);
        assert!(!bench.is_unstable("t", 0));
    }
}

// KAFKA-5247
#[test]
fn a_plain_commit_after_that_of_a_transaction_is_not_taken_back_by_its_marker() {
    let mut bench = Bench::new();
    bench.commit(of_transaction(7, &[("t", 0, 10)]));
    bench.commit_one("", None, -1, 5);
    bench.end_transaction(7, true);
    assert_eq!(bench.offset("t", 0), 5);
}

// KAFKA-7296
#[test]
fn a_failed_commit_of_a_transaction_leaves_only_what_was_in_the_log_before() {
    let mut bench = Bench::new();
    bench.commit(of_transaction(7, &[("t", 0, 10)]));
    bench.holds_appends = true;
    bench.commit(of_transaction(7, &[("t", 0, 11), ("t", 1, 11)]));
    bench.end_append(ErrorCode::RequestTimedOut);
    assert_eq!((bench.is_unstable("t", 0), bench.is_unstable("t", 1)), (true, false));
    bench.end_transaction(7, true);
    assert_eq!((bench.offset("t", 0), bench.offset("t", 1)), (10, -1));
}

#[test]
fn a_marker_that_overtakes_the_end_of_an_append_decides_it() {
    for (committed, expected) in [(true, 10), (false, -1)] {
        let mut bench = Bench::new();
        bench.holds_appends = true;
        let request = bench.commit(of_transaction(7, &[("t", 0, 10)]));
        bench.end_transaction(7, committed);
        assert_eq!(bench.is_unstable("t", 0), committed, "the offset before it does not count any more");
        bench.end_append(ErrorCode::None);
        assert_eq!((bench.codes(request), bench.offset("t", 0)), (vec![0], expected));
        assert!(!bench.is_unstable("t", 0));
    }
}

#[test]
fn a_commit_with_a_retention_is_written_with_its_expiry() {
    let mut bench = Bench::new();
    let offset = OffsetToCommit { expire_timestamp: Some(Millis(EPOCH_MS + 5)), ..committing(1, "") };
    bench.commit(CommitRequest { offsets: [(tp("t", 0), offset)].into(), ..commit_of("", -1, &[]) });
    assert_eq!(bench.log[0].1.records[0].1.as_ref().unwrap()[..2], [0, 1]);
    bench.commit_one("", None, -1, 1);
    assert_eq!(bench.log[1].1.records[0].1.as_ref().unwrap()[..2], [0, 3]);
}

#[test]
fn a_negative_offset_is_stored_like_any_other() {
    let mut bench = Bench::new();
    assert_eq!(bench.commit_one("", None, -1, -5), 0);
    assert_eq!(
        (bench.offset("t", 0), bench.reloaded()[0].offsets.clone()),
        (-5, bench.group.offsets.clone())
    );
}
