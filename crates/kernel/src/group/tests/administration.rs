//! DeleteGroups, OffsetDelete, ListGroups, DescribeGroups, deleted partitions, expiry.

use std::sync::Arc;

use super::*;

const RETENTION_MS: i64 = 60_000;

fn bench() -> Bench {
    Bench::with(Settings { offsets_retention: Millis(RETENTION_MS), ..settings() })
}

fn delete(bench: &mut Bench) -> i16 {
    let request = bench.request();
    bench.step(Event::Delete(request));
    match &bench.answers[&request] {
        Answer::Delete(error) => error.code(),
        other => panic!("{other:?}"),
    }
}

fn delete_offsets(bench: &mut Bench, partitions: &[(&str, i32)]) -> Result<Vec<i16>, i16> {
    let request = bench.request();
    let partitions = partitions.iter().map(|(topic, partition)| tp(topic, *partition)).collect();
    bench.step(Event::DeleteOffsets(request, partitions));
    match &bench.answers[&request] {
        Answer::DeleteOffsets(Ok(codes)) => Ok(codes.values().map(|it| it.code()).collect()),
        Answer::DeleteOffsets(Err(code)) => Err(code.code()),
        other => panic!("{other:?}"),
    }
}

fn tombstones(bench: &Bench) -> usize {
    bench.log.iter().flat_map(|(_, batch)| &batch.records).filter(|(_, value)| value.is_none()).count()
}

#[test]
fn only_a_group_without_members_is_deleted_and_stays_so_after_a_load() {
    let mut bench = bench();
    bench.stable(&["a"]);
    bench.commit_one("a", None, 1, 5);
    assert_eq!(delete(&mut bench), 68);
    bench.leave("a", None);
    assert_eq!(delete(&mut bench), 0);
    assert!(bench.is_forgotten);
    assert_eq!((delete(&mut bench), tombstones(&bench)), (69, 2));
    assert_eq!(bench.reloaded(), []);
}

#[test]
fn a_group_that_never_had_a_generation_leaves_no_tombstone_of_its_own() {
    let mut bench = bench();
    bench.commit_one("", None, -1, 5);
    assert_eq!((delete(&mut bench), tombstones(&bench)), (0, 1));
}

#[test]
fn deleting_takes_offsets_of_open_transactions_and_commits_under_way_along() {
    let mut bench = bench();
    bench.commit(of_transaction(7, &[("t", 0, 10)]));
    bench.holds_appends = true;
    let request = bench.commit(commit_of("", -1, &[("t", 0, 6)]));
    assert_eq!(delete(&mut bench), 0);
    assert_eq!(bench.codes(request), [15]);
    bench.step(Event::TransactionEnded { producer_id: 7, committed: true });
    assert_eq!(bench.offset("t", 0), -1);
}

#[test]
fn offsets_of_subscribed_topics_are_kept_and_others_deleted() {
    let mut bench = bench();
    bench.commit_one("", None, -1, 5);
    bench.commit(commit_of("", -1, &[("u", 0, 6)]));
    bench.stable(&["a"]);
    assert_eq!(delete_offsets(&mut bench, &[("t", 0), ("u", 0), ("u", 9)]), Ok(vec![86, 0, 0]));
    assert_eq!((bench.offset("t", 0), bench.offset("u", 0)), (5, -1));
}

#[test]
fn a_subscription_that_cannot_be_read_or_is_not_known_yet_counts_as_one_to_everything() {
    let mut bench = bench();
    bench.commit_one("", None, -1, 5);
    bench.join(joining("a"));
    assert_eq!(delete_offsets(&mut bench, &[("u", 0)]), Ok(vec![86]), "no generation yet");
    let mut bench = self::bench();
    bench.join(JoinRequest { protocols: vec![protocol("range", b"?")], ..joining("a") });
    bench.wait(3_000);
    bench.assign(&["a"], 1);
    assert_eq!(delete_offsets(&mut bench, &[("u", 0)]), Ok(vec![86]));
}

#[test]
fn offsets_of_a_live_group_of_another_type_are_not_deleted() {
    let mut bench = bench();
    bench.join(JoinRequest { protocol_type: Str::from("connect"), ..joining("a") });
    bench.wait(3_000);
    bench.assign(&["a"], 1);
    assert_eq!(delete_offsets(&mut bench, &[("u", 0)]), Err(68));
    bench.step(Event::Unload);
    assert_eq!(delete_offsets(&mut bench, &[("u", 0)]), Err(69));
}

/// A commit of t-0 for nobody in particular that is in the log, and was told as failed.
fn commit_and_fail(bench: &mut Bench, offset: i64) {
    bench.holds_appends = true;
    let request = bench.commit(commit_of("", -1, &[("t", 0, offset)]));
    bench.end_append(ErrorCode::RequestTimedOut);
    bench.holds_appends = false;
    assert_eq!((bench.codes(request), bench.offset("t", 0)), (vec![7], -1));
}

#[test]
fn a_failed_commit_that_is_in_the_log_does_not_come_back_after_a_deletion() {
    let gone: [fn(&mut Bench); 4] = [
        |bench| assert_eq!(delete(bench), 0),
        |bench| assert_eq!(delete_offsets(bench, &[("t", 0)]), Ok(vec![0])),
        |bench| drop(bench.step(Event::PartitionsDeleted(Arc::new([tp("t", 0)].into())))),
        // Nothing is left of the group but that.
        |bench| drop(bench.step(Event::ExpireOffsets)),
    ];
    for (delete, what) in gone.into_iter().zip(["group", "offset", "topic", "expiry"]) {
        let mut bench = bench();
        commit_and_fail(&mut bench, 5);
        assert_eq!(bench.reloaded().len(), 1, "a load finds it");
        delete(&mut bench);
        assert!(bench.is_forgotten, "{what}");
        assert_eq!(bench.reloaded(), [], "{what}");
    }
}

#[test]
fn a_failed_commit_is_buried_once_and_not_after_a_later_one_has_taken_its_place() {
    let mut bench = bench();
    commit_and_fail(&mut bench, 5);
    bench.commit_one("", None, -1, 6);
    assert!(!bench.group.offsets.is_uncertain(&tp("t", 0)));
    bench.commit(commit_of("", -1, &[("u", 0, 1)]));
    assert_eq!(delete_offsets(&mut bench, &[("t", 0)]), Ok(vec![0]));
    assert_eq!(delete_offsets(&mut bench, &[("t", 0)]), Ok(vec![0]));
    assert_eq!(tombstones(&bench), 1);
}

#[test]
fn an_empty_group_whose_last_offset_is_deleted_ends() {
    let mut bench = bench();
    bench.commit(commit_of("", -1, &[("t", 0, 6), ("t", 1, 6)]));
    assert_eq!(delete_offsets(&mut bench, &[("t", 0)]), Ok(vec![0]));
    assert!(!bench.is_forgotten);
    assert_eq!(delete_offsets(&mut bench, &[("t", 1)]), Ok(vec![0]));
    assert!(bench.is_forgotten);
}

#[test]
fn what_was_committed_for_deleted_partitions_goes_in_every_state() {
    let mut bench = bench();
    bench.stable(&["a"]);
    bench.commit_one("a", None, 1, 5);
    bench.commit(of_transaction(7, &[("t", 0, 10)]));
    bench.holds_appends = true;
    let request = bench.commit(commit_of("a", 1, &[("t", 0, 6), ("u", 0, 6)]));
    bench.step(Event::PartitionsDeleted(Arc::new([tp("t", 0), tp("x", 0)].into())));
    bench.end_append(ErrorCode::None);
    assert_eq!(bench.codes(request), [3, 0]);
    assert_eq!((bench.offset("t", 0), bench.is_unstable("t", 0), bench.offset("u", 0)), (-1, false, 6));
    assert_eq!(tombstones(&bench), 1);
}

#[test]
fn a_group_that_holds_nothing_ends_when_anything_is_deleted() {
    for (offset, ends) in [(None, true), (Some(5), false)] {
        let mut bench = bench();
        if let Some(offset) = offset {
            bench.commit_one("", None, -1, offset);
        }
        bench.step(Event::PartitionsDeleted(Arc::new([tp("x", 0)].into())));
        assert_eq!((bench.is_forgotten, tombstones(&bench)), (ends, 0));
    }
}

#[test]
fn an_offset_that_is_deleted_while_it_is_committed_does_not_come_back_with_a_load() {
    for deletes_group in [true, false] {
        let mut bench = bench();
        bench.holds_appends = true;
        let request = bench.commit(commit_of("", -1, &[("t", 0, 6)]));
        if deletes_group {
            delete(&mut bench);
        } else {
            assert_eq!(delete_offsets(&mut bench, &[("t", 0)]), Ok(vec![0]));
        }
        bench.end_append(ErrorCode::None);
        assert!(!bench.is_parked(request));
        assert_eq!(bench.reloaded(), []);
    }
}

#[test]
fn an_offset_whose_marker_overtook_its_append_keeps_its_group_and_gets_a_tombstone_when_it_is_deleted() {
    let mut bench = bench();
    bench.holds_appends = true;
    bench.commit(of_transaction(7, &[("t", 0, 10), ("u", 0, 10)]));
    bench.end_transaction(7, true);
    expire(&mut bench);
    assert!(!bench.is_forgotten);
    assert_eq!(delete_offsets(&mut bench, &[("t", 0)]), Ok(vec![0]));
    bench.end_append(ErrorCode::None);
    assert_eq!((bench.offset("t", 0), bench.offset("u", 0)), (-1, 10));
    assert_eq!(bench.reloaded()[0].offsets, bench.group.offsets);
}

#[test]
fn tombstones_are_split_into_batches_of_bounded_size() {
    let mut bench = bench();
    let topic = "t".repeat(249);
    let offsets: Vec<_> = (0..2_000).map(|partition| (topic.as_str(), partition, 1)).collect();
    bench.commit(commit_of("", -1, &offsets));
    delete(&mut bench);
    let batches: Vec<_> = bench.log.iter().skip(1).map(|(_, batch)| batch).collect();
    assert!(batches.len() > 1);
    let bytes = |batch: &Batch| batch.records.iter().map(|(key, _)| key.len()).sum::<usize>();
    assert!(batches.iter().all(|batch| bytes(batch) <= records::MAX_TOMBSTONE_BATCH_BYTES));
    assert_eq!(tombstones(&bench), 2_000);
}

fn expire(bench: &mut Bench) {
    bench.step(Event::ExpireOffsets);
}

#[test]
fn offsets_without_a_group_expire_after_their_commit_and_end_with_it() {
    let mut bench = bench();
    bench.commit_one("", None, -1, 5);
    bench.wait(RETENTION_MS - 1);
    expire(&mut bench);
    assert_eq!(bench.offset("t", 0), 5);
    bench.wait(1);
    expire(&mut bench);
    assert!(bench.is_forgotten);
}

// KIP-211
#[test]
fn offsets_of_an_empty_group_expire_after_it_became_empty() {
    let mut bench = bench();
    bench.stable(&["a"]);
    bench.commit_one("a", None, 1, 5);
    for _ in 0..20 {
        bench.wait(5_000);
        bench.heartbeat("a", None, 1);
    }
    bench.leave("a", None);
    bench.wait(RETENTION_MS - 1);
    expire(&mut bench);
    assert_eq!(bench.offset("t", 0), 5);
    bench.wait(1);
    expire(&mut bench);
    assert!(bench.is_forgotten);
    assert_eq!(tombstones(&bench), 2);
}

#[test]
fn a_stable_group_loses_only_offsets_of_topics_that_nobody_subscribes_to() {
    let mut bench = bench();
    bench.stable(&["a"]);
    bench.commit(commit_of("a", 1, &[("t", 0, 5), ("u", 0, 6)]));
    for _ in 0..20 {
        bench.wait(5_000);
        bench.heartbeat("a", None, 1);
    }
    expire(&mut bench);
    assert_eq!((bench.offset("t", 0), bench.offset("u", 0)), (5, -1));
}

// KAFKA-13636
#[test]
fn nothing_expires_in_a_rebalance_or_in_a_group_of_another_type() {
    let mut bench = bench();
    bench.commit_one("", None, -1, 5);
    bench.wait(RETENTION_MS);
    bench.join(joining("a"));
    expire(&mut bench);
    assert_eq!(bench.offset("t", 0), 5);
    bench.wait(3_000);
    expire(&mut bench);
    assert_eq!(bench.offset("t", 0), 5);

    let mut bench = self::bench();
    bench.join(JoinRequest { protocol_type: Str::from("connect"), ..joining("a") });
    bench.wait(3_000);
    bench.assign(&["a"], 1);
    bench.commit_one("a", None, 1, 5);
    bench.now_ms += RETENTION_MS;
    bench.group.expire_offsets(bench.now(), &mut Vec::new());
    assert_eq!(bench.offset("t", 0), 5);
}

#[test]
fn an_explicit_expiry_counts_instead_of_the_retention() {
    let mut bench = bench();
    let offset = OffsetToCommit { expire_timestamp: Some(Millis(EPOCH_MS + 5)), ..committing(1, "") };
    bench.commit(CommitRequest { offsets: [(tp("t", 0), offset)].into(), ..commit_of("", -1, &[]) });
    bench.wait(4);
    expire(&mut bench);
    assert_eq!(bench.offset("t", 0), 1);
    bench.wait(1);
    expire(&mut bench);
    assert_eq!(bench.offset("t", 0), -1);
}

// KAFKA-19163
#[test]
fn a_group_with_commits_under_way_open_transactions_or_ids_given_out_is_kept() {
    let mut bench = bench();
    bench.commit(of_transaction(7, &[("t", 0, 10)]));
    bench.wait(2 * RETENTION_MS);
    expire(&mut bench);
    assert!(!bench.is_forgotten);

    let mut bench = self::bench();
    bench.join(JoinRequest { requires_known_member_id: true, ..joining("a") });
    expire(&mut bench);
    assert!(!bench.is_forgotten);

    let mut bench = self::bench();
    bench.commit_one("", None, -1, 5);
    bench.wait(2 * RETENTION_MS);
    bench.holds_appends = true;
    bench.commit(commit_of("", -1, &[("t", 0, 6)]));
    expire(&mut bench);
    assert!(!bench.is_forgotten);
    assert_eq!(bench.offset("t", 0), 5);
}

#[test]
fn a_description_shows_metadata_and_assignments_of_a_stable_group_only() {
    let mut bench = bench();
    bench.stable(&["a"]);
    let described = bench.group.describe();
    assert_eq!((described.state.name(), described.protocol.as_str()), ("Stable", "range"));
    assert_eq!(described.members[0].assignment, Bytes::from_static(b"to a"));
    assert_eq!(described.members[0].metadata, Bytes::from(subscription(&["t"])));
    bench.join(joining("b"));
    let described = bench.group.describe();
    assert_eq!((described.state.name(), described.protocol.as_str()), ("PreparingRebalance", ""));
    assert!(described.members.iter().all(|it| it.metadata.is_empty() && it.assignment.is_empty()));
    assert_eq!(described.members.len(), 2);
    assert_eq!(bench.group.overview().protocol_type, CONSUMER);
    assert_eq!(DescribedGroup::absent().state, State::Dead);
}

#[test]
fn nothing_of_a_stable_group_expires_whose_subscriptions_cannot_be_read() {
    let mut bench = bench();
    bench.commit_one("", None, -1, 5);
    bench.join(JoinRequest { protocols: vec![protocol("range", b"?")], ..joining("a") });
    bench.wait(3_000);
    bench.assign(&["a"], 1);
    bench.now_ms += 2 * RETENTION_MS;
    bench.group.expire_offsets(bench.now(), &mut Vec::new());
    assert_eq!(bench.offset("t", 0), 5);
}
