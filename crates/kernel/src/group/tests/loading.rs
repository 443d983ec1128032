//! Groups from the records of a partition.

use super::*;
use crate::group::load::{LoadError, Loader};

fn finish(loader: Loader, settings: Settings) -> Vec<(Group, Vec<Command>)> {
    loader.finish(&Arc::new(settings), Now { mono_ms: 0, wall_ms: EPOCH_MS }).groups
}

/// Feeds the batches that a bench has written.
fn feed(loader: &mut Loader, bench: &Bench) {
    for (base, batch) in &bench.log {
        for (key, value) in &batch.records {
            let producer = batch.producer.map(|it| it.id);
            loader.record(*base, producer, Some(key.clone()), value.clone()).unwrap();
        }
    }
}

#[test]
fn replay_of_the_log_gives_the_stable_group_and_its_offsets() {
    let mut bench = Bench::new();
    bench.stable(&["a", "b"]);
    bench.commit_one("a", None, 1, 5);
    let loaded = bench.reloaded().remove(0);
    assert_eq!((loaded.state, loaded.generation), (State::Stable, 1));
    assert_eq!(loaded.members, bench.group.members);
    assert_eq!(loaded.offsets, bench.group.offsets);
    assert_eq!(loaded.subscribed_topics, bench.group.subscribed_topics);
    assert_eq!(loaded.leader, bench.group.leader);
    let mut next = Bench::of(loaded);
    assert_eq!(next.heartbeat("a", None, 1), 0);
    assert_eq!(next.commit_one("b", None, 1, 6), 0);
}

#[test]
fn a_rebalance_that_had_not_ended_is_forgotten() {
    let mut bench = Bench::new();
    bench.stable(&["a", "b"]);
    let (a, _) = (bench.join(rejoining("a")), bench.join(rejoining("b")));
    assert_eq!(bench.joined(a).generation, 2);
    let mut next = Bench::of(bench.reloaded().remove(0));
    assert_eq!(next.group.state, State::Stable);
    assert_eq!((next.heartbeat("a", None, 2), next.heartbeat("a", None, 1)), (22, 0));
}

#[test]
fn members_have_their_whole_session_from_the_load() {
    let mut bench = Bench::new();
    bench.stable(&["a"]);
    let mut loader = Loader::default();
    feed(&mut loader, &bench);
    let mut next = Bench::of(finish(loader, settings()).remove(0).0);
    next.wait(i64::from(SESSION_MS) - 1);
    assert_eq!(next.group.len(), 1);
    next.wait(1);
    assert_eq!((next.group.len(), next.group.state), (0, State::Empty));
}

#[test]
fn a_group_larger_than_the_limit_rebalances_and_the_last_to_come_are_refused() {
    let mut bench = Bench::new();
    bench.stable(&["a", "b", "c"]);
    let mut loader = Loader::default();
    feed(&mut loader, &bench);
    let (group, commands) = finish(loader, Settings { max_size: 2, ..settings() }).remove(0);
    assert_eq!(group.state, State::PreparingRebalance);
    assert!(matches!(commands[0], Command::Note(Note::Rebalancing { reason: Reason::OverCapacity, .. })));
    let mut next = Bench::of(group);
    let (a, b) = (next.join(rejoining("a")), next.join(rejoining("b")));
    let c = next.join(rejoining("c"));
    assert_eq!(next.joined(c).error.code(), 81);
    assert_eq!(next.joined(a).members.len(), 2);
    assert!(!next.is_parked(b));
}

#[test]
fn offsets_without_a_group_become_a_simple_group() {
    let mut bench = Bench::new();
    bench.commit_one("", None, -1, 5);
    let loaded = bench.reloaded().remove(0);
    assert_eq!((loaded.state, loaded.protocol_type.as_ref()), (State::Empty, None));
    assert_eq!(loaded.offsets, bench.group.offsets);
}

#[test]
fn a_deleted_group_with_later_offsets_is_a_simple_group() {
    let mut bench = Bench::new();
    bench.stable(&["a"]);
    bench.leave("a", None);
    let request = bench.request();
    bench.step(Event::Delete(request));
    let mut loader = Loader::default();
    feed(&mut loader, &bench);
    let mut again = Bench::new();
    again.log_end = bench.log_end;
    again.commit_one("", None, -1, 9);
    feed(&mut loader, &again);
    let loaded = finish(loader, settings()).remove(0).0;
    assert_eq!((loaded.generation, loaded.protocol_type, loaded.offsets), (0, None, again.group.offsets));
}

// KAFKA-10401
#[test]
fn an_empty_group_keeps_the_time_it_became_so() {
    let mut bench = Bench::new();
    bench.stable(&["a"]);
    bench.leave("a", None);
    assert_eq!(bench.reloaded()[0].state_timestamp, bench.group.state_timestamp);
}

// KAFKA-5247, KAFKA-5600
#[test]
fn the_largest_offset_of_the_log_counts_across_plain_and_transactional_commits() {
    for committed in [true, false] {
        let mut bench = Bench::new();
        bench.commit_one("", None, -1, 1);
        bench.commit(of_transaction(7, &[("t", 0, 10), ("t", 1, 10), ("t", 2, 10)]));
        bench.commit(commit_of("", -1, &[("t", 1, 2)]));
        let mut loader = Loader::default();
        feed(&mut loader, &bench);
        loader.transaction_ended(7, committed);
        bench.step(Event::TransactionEnded { producer_id: 7, committed });
        let loaded = finish(loader, settings()).remove(0).0;
        assert_eq!(loaded.offsets, bench.group.offsets);
        let expected = if committed { [10, 2, 10] } else { [1, 2, -1] };
        let offsets = [0, 1, 2].map(|partition| loaded.fetch_offset(&tp("t", partition), true).offset.0);
        assert_eq!(offsets, expected);
    }
}

#[test]
fn offsets_of_a_transaction_that_is_open_stay_unstable_after_a_load() {
    let mut bench = Bench::new();
    bench.commit(of_transaction(7, &[("t", 0, 10)]));
    let mut next = Bench::of(bench.reloaded().remove(0));
    assert!(next.is_unstable("t", 0));
    next.step(Event::TransactionEnded { producer_id: 7, committed: true });
    assert_eq!(next.offset("t", 0), 10);
}

// KAFKA-7437
#[test]
fn the_leader_epoch_of_a_commit_survives() {
    let mut bench = Bench::new();
    let offset = OffsetToCommit { leader_epoch: LeaderEpoch(5), ..committing(42, "m") };
    bench.commit(CommitRequest { offsets: [(tp("t", 3), offset)].into(), ..commit_of("", -1, &[]) });
    let fetched = bench.reloaded()[0].fetch_offset(&tp("t", 3), true);
    assert_eq!((fetched.leader_epoch, fetched.metadata.as_str()), (LeaderEpoch(5), "m"));
}

// KAFKA-14869
#[test]
fn records_of_unknown_kinds_are_passed_over_and_counted() {
    let mut loader = Loader::default();
    for version in [3_i16, 3, 16] {
        let key = Bytes::copy_from_slice(&version.to_be_bytes());
        loader.record(Offset(0), None, Some(key), None).unwrap();
    }
    let loaded = loader.finish(&Arc::new(settings()), Now::default());
    assert_eq!(loaded.unknown, [(3, 2), (16, 1)].into());
    assert!(loaded.groups.is_empty());
}

#[test]
fn what_cannot_be_read_fails_the_load() {
    let mut loader = Loader::default();
    assert_eq!(loader.record(Offset(0), None, None, None), Err(LoadError::NullKey));
    let key = Some(Bytes::from_static(&[0, 1, 0]));
    assert!(matches!(loader.record(Offset(0), None, key, None), Err(LoadError::Key(_))));
    let key = Some(Bytes::from_static(&[0, 2, 0, 1, b'g']));
    let later = Some(Bytes::from_static(&[0, 9]));
    assert!(matches!(loader.record(Offset(0), None, key, later), Err(LoadError::Value(_))));
}
