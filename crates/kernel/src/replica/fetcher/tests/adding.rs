//! What becomes of partitions that are added, added again, and removed.

use super::*;

#[test]
fn a_log_with_epochs_is_fetched_at_once_where_the_leader_tells_divergence() {
    let (_, commands) = Bench::following(NEW, &[(0, 0), (3, 4)], 7, 5);
    assert_eq!(asked(&fetch_of(&commands)), [(0, 7, 5, 3)]);
}

#[test]
fn a_log_without_epochs_is_truncated_to_the_high_watermark() {
    let mut bench = Bench::new(NEW);
    bench.logs.logs.insert(tp(0), MemoryLog { log_end: 9, high_watermark: 6, ..MemoryLog::empty_at(0) });
    let commands = bench.add(0, 5, 6);
    assert_eq!(truncations(&commands), [(0, 6, TruncationCause::NoLocalEpoch)]);
    assert_eq!(asked(&fetch_of(&bench.truncate(&commands))), [(0, 6, 5, -1)]);
}

/// KAFKA-6859.
#[test]
fn a_log_without_epochs_asks_for_none_in_old_versions_either() {
    let mut bench = Bench::new(ASKING);
    bench.logs.logs.insert(tp(0), MemoryLog { log_end: 9, high_watermark: 6, ..MemoryLog::empty_at(0) });
    let commands = bench.add(0, 5, 6);
    assert_eq!(truncations(&commands), [(0, 6, TruncationCause::NoLocalEpoch)]);
    assert_eq!(commands.len(), 1);
}

#[test]
fn an_older_version_asks_for_the_end_of_the_latest_epoch_first() {
    let (mut bench, commands) = Bench::following(ASKING, &[(0, 0), (3, 4)], 7, 5);
    let (id, questions) = question_of(&commands);
    assert_eq!(questions, [(0, 5, 3)]);
    let commands = bench.step(Event::EpochReply(id, vec![epoch_reply(0, 3, 6)]));
    assert_eq!(truncations(&commands), [(0, 6, TruncationCause::LeaderEpochEnd { answer: end_of(3, 6) })]);
    // The fetch of such a version names no last epoch.
    assert_eq!(asked(&fetch_of(&bench.truncate(&commands))), [(0, 6, 5, -1)]);
}

#[test]
fn before_epochs_could_be_asked_for_only_the_high_watermark_decides() {
    let (_, commands) = Bench::following(WITHOUT_EPOCHS, &[(0, 0)], 7, 5);
    assert_eq!(truncations(&commands), [(0, 7, TruncationCause::NoLocalEpoch)]);
}

#[test]
fn an_unknown_offset_is_looked_up_at_the_leader() {
    let mut bench = Bench::new(NEW);
    let commands = bench.add(0, 5, -1);
    assert_eq!(lookup_of(&commands), (RequestId(0), Target::Latest, vec![(0, 5)]));
}

#[test]
fn a_partition_added_again_in_the_same_epoch_stays_as_it_is() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 3, 0);
    let commands = bench.answer(fetch_of(&commands).id, vec![failed(0, ErrorCode::UnknownLeaderEpoch)]);
    assert_eq!(maybe_fetch_of(&commands).map(|it| it.forgotten.len()), Some(1));
    let before = bench.fetcher.clone();
    assert_eq!(bench.add(0, 0, 1), []);
    assert_eq!(bench.fetcher, before);
}

/// KAFKA-7164.
#[test]
fn a_partition_added_in_a_later_epoch_starts_anew_and_is_checked_for_divergence() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 3, 0);
    assert_eq!(bench.add(0, 2, 3), []);
    let commands = bench.answer(fetch_of(&commands).id, vec![records(0, 9)]);
    assert_eq!(commands[0], Command::Note(Note::Outdated(tp(0))));
    assert_eq!(asked(&fetch_of(&commands)), [(0, 3, 2, 0)]);
}

#[test]
fn a_removed_partition_takes_nothing_from_an_answer_under_way() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 3, 0);
    assert_eq!(bench.step(Event::Remove(vec![tp(0)])), []);
    let commands = bench.answer(fetch_of(&commands).id, vec![records(0, 9)]);
    // Only the session is told to forget it.
    let fetch = fetch_of(&commands);
    assert_eq!((commands.len(), fetch.partitions.len(), fetch.forgotten.len()), (1, 0, 1));
}

#[test]
fn work_on_the_log_of_a_partition_that_was_added_anew_is_not_taken_for_the_new_ones() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 3, 0);
    let commands = bench.answer(fetch_of(&commands).id, vec![records(0, 9)]);
    let work = append_of(&commands, 0);
    let commands = bench.add(0, 1, 3);
    assert_eq!(asked(&fetch_of(&commands)), [(0, 3, 1, 0)]);
    let late = Event::Appended {
        work: work.id,
        partition: tp(0),
        log_end: Offset(9),
        last_epoch: Some(LeaderEpoch(0)),
    };
    assert_eq!(bench.step(late), []);
    let late = Event::LogFailed(tp(0), LeaderEpoch(0));
    assert_eq!(bench.step(late), []);
    assert_eq!(bench.step(Event::Fenced(tp(0), LeaderEpoch(0))), []);
    assert_eq!(bench.fetcher.len(), 1);
}

#[test]
fn a_command_that_was_fenced_ends_the_partition_without_a_failure() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 3, 0);
    bench.answer(fetch_of(&commands).id, vec![records(0, 9)]);
    let commands = bench.step(Event::Fenced(tp(0), LeaderEpoch(0)));
    assert!(commands.iter().all(|it| !matches!(it, Command::MarkFailed(..))), "{commands:?}");
    assert!(bench.fetcher.is_empty());
}
