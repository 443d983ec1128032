//! Truncation: by the epochs that OffsetsForLeaderEpoch or a fetch tells, in as many rounds as it takes.

use super::*;

/// KIP-279: the leader's epoch is not known here, so the next lower one is asked for.
#[test]
fn an_epoch_that_is_unknown_here_takes_another_round() {
    let (mut bench, commands) = Bench::following(ASKING, &[(0, 0), (3, 7)], 13, 6);
    let (id, questions) = question_of(&commands);
    assert_eq!(questions, [(0, 6, 3)]);
    let commands = bench.step(Event::EpochReply(id, vec![epoch_reply(0, 2, 10)]));
    assert_eq!(truncations(&commands)[0].1, 7);
    let commands = bench.truncate(&commands);
    let (id, questions) = question_of(&commands);
    assert_eq!(questions, [(0, 6, 0)]);
    let commands = bench.step(Event::EpochReply(id, vec![epoch_reply(0, 0, 5)]));
    assert_eq!(truncations(&commands)[0].1, 5);
    assert_eq!(asked(&fetch_of(&bench.truncate(&commands))), [(0, 5, 6, -1)]);
}

#[test]
fn a_fetch_that_tells_divergence_takes_as_many_rounds() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0), (3, 7)], 13, 6);
    let commands = bench.answer(fetch_of(&commands).id, vec![diverging(0, 2, 10)]);
    assert_eq!(truncations(&commands)[0].1, 7);
    let commands = bench.truncate(&commands);
    let fetch = fetch_of(&commands);
    assert_eq!(asked(&fetch), [(0, 7, 6, 0)]);
    let commands = bench.answer(fetch.id, vec![diverging(0, 0, 5)]);
    assert_eq!(truncations(&commands)[0].1, 5);
    assert_eq!(asked(&fetch_of(&bench.truncate(&commands))), [(0, 5, 6, 0)]);
}

/// KAFKA-14704.
#[test]
fn offsets_of_an_answer_that_tells_divergence_are_not_taken() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 9, 1);
    let told = PartitionReply { log_start: Offset(4), ..diverging(0, 0, 6) };
    let commands = bench.answer(fetch_of(&commands).id, vec![told]);
    assert_eq!(truncations(&commands).len(), 1);
    assert_eq!(commands.len(), 1, "{commands:?}");
}

/// KAFKA-10706.
#[test]
fn a_truncation_to_the_log_end_drops_an_epoch_without_records_and_goes_on() {
    let (mut bench, commands) = Bench::following(ASKING, &[(0, 0), (1, 5)], 5, 2);
    let (id, questions) = question_of(&commands);
    assert_eq!(questions, [(0, 2, 1)]);
    let commands = bench.step(Event::EpochReply(id, vec![epoch_reply(0, 0, 5)]));
    assert_eq!(truncations(&commands)[0].1, 5);
    assert_eq!(asked(&fetch_of(&bench.truncate(&commands))), [(0, 5, 2, -1)]);
    assert_eq!(bench.log(0).epochs.entries().len(), 1);
}

#[test]
fn a_leader_that_knows_no_epoch_leaves_the_high_watermark() {
    let mut bench = Bench::new(ASKING);
    bench.logs.logs.insert(tp(0), MemoryLog::with_epochs(&[(2, 0)], 9));
    let commands = bench.add(0, 3, 4);
    let (id, _) = question_of(&commands);
    let commands = bench.step(Event::EpochReply(id, vec![epoch_reply(0, -1, -1)]));
    assert_eq!(
        truncations(&commands),
        [(0, 4, TruncationCause::LeaderKnowsNoEpoch { asked: LeaderEpoch(2) })]
    );
}

/// KAFKA-7786.
#[test]
fn an_answer_for_an_older_leader_epoch_is_dropped_even_if_it_says_fenced() {
    let (mut bench, commands) = Bench::following(ASKING, &[(0, 0)], 9, 1);
    let (id, _) = question_of(&commands);
    assert_eq!(bench.add(0, 2, 9), []);
    let fenced = EpochReply { error: ErrorCode::FencedLeaderEpoch, ..epoch_reply(0, -1, -1) };
    let commands = bench.step(Event::EpochReply(id, vec![fenced]));
    assert_eq!(commands[0], Command::Note(Note::Outdated(tp(0))));
    assert_eq!(question_of(&commands).1, [(0, 2, 0)]);
}

#[test]
fn a_fenced_question_fails_the_partition_until_it_is_added_again() {
    let (mut bench, commands) = Bench::following(ASKING, &[(0, 0)], 9, 1);
    let fenced = EpochReply { error: ErrorCode::FencedLeaderEpoch, ..epoch_reply(0, -1, -1) };
    let commands = bench.step(Event::EpochReply(question_of(&commands).0, vec![fenced]));
    assert_eq!(commands, [Command::MarkFailed(tp(0), Failure::Fenced)]);
    assert_eq!(bench.tick(BACKOFF_MS), []);
    assert_eq!(question_of(&bench.add(0, 2, 9)).1, [(0, 2, 0)]);
}

#[test]
fn other_errors_and_failed_requests_pause_those_who_were_asked_about() {
    let mut bench = Bench::new(ASKING);
    bench.logs.logs.insert(tp(0), MemoryLog::with_epochs(&[(0, 0)], 9));
    bench.logs.logs.insert(tp(1), MemoryLog::with_epochs(&[(0, 0)], 9));
    let commands = bench.add(0, 1, 9);
    let refused = EpochReply { error: ErrorCode::NotLeaderOrFollower, ..epoch_reply(0, -1, -1) };
    let commands = bench.step(Event::EpochReply(question_of(&commands).0, vec![refused]));
    assert_eq!(commands, [Command::Note(Note::Refused(tp(0), ErrorCode::NotLeaderOrFollower))]);
    assert_eq!(bench.fetcher.deadline(), Some(BACKOFF_MS));
    // Another partition is not held up by the pause.
    let (id, questions) = question_of(&bench.add(1, 1, 9));
    assert_eq!(questions, [(1, 1, 0)]);
    assert_eq!(bench.step(Event::RequestFailed(id)), []);
    assert_eq!(bench.tick(BACKOFF_MS - 1), []);
    assert_eq!(question_of(&bench.tick(1)).1, [(0, 1, 0), (1, 1, 0)]);
}

#[test]
fn an_answer_about_another_partition_is_ignored_and_a_missing_one_is_asked_again_later() {
    let (mut bench, commands) = Bench::following(ASKING, &[(0, 0)], 9, 1);
    let commands = bench.step(Event::EpochReply(question_of(&commands).0, vec![epoch_reply(7, 0, 3)]));
    let expected = [Command::Note(Note::NotAsked(tp(7))), Command::Note(Note::Unanswered(tp(0)))];
    assert_eq!(commands, expected);
    assert_eq!(question_of(&bench.tick(BACKOFF_MS)).1, [(0, 1, 0)]);
}

/// KAFKA-8012, KAFKA-13207.
#[test]
fn a_partition_that_was_removed_is_not_truncated_and_the_others_go_on() {
    let mut bench = Bench::new(ASKING);
    for index in [0, 1] {
        bench.logs.logs.insert(tp(index), MemoryLog::with_epochs(&[(0, 0)], 9));
    }
    let additions = [0, 1].map(|index| Addition {
        partition: tp(index),
        topic_id: None,
        leader_epoch: LeaderEpoch(1),
        offset: Offset(9),
    });
    let commands = bench.step(Event::Add(additions.to_vec()));
    let (id, _) = question_of(&commands);
    bench.step(Event::Remove(vec![tp(0)]));
    let commands = bench.step(Event::EpochReply(id, vec![epoch_reply(0, 0, 3), epoch_reply(1, 0, 5)]));
    assert_eq!(truncations(&commands).iter().map(|it| (it.0, it.1)).collect::<Vec<_>>(), [(1, 5)]);
}

#[test]
fn a_truncation_that_fails_fails_the_partition() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 9, 1);
    bench.answer(fetch_of(&commands).id, vec![diverging(0, 0, 6)]);
    let commands = bench.step(Event::LogFailed(tp(0), LeaderEpoch(1)));
    assert_eq!(commands[0], Command::MarkFailed(tp(0), Failure::Storage));
    assert!(bench.fetcher.is_empty());
}

#[test]
fn questions_wait_for_truncations_to_the_high_watermark() {
    let mut bench = Bench::new(ASKING);
    bench.logs.logs.insert(tp(1), MemoryLog::with_epochs(&[(0, 0)], 9));
    bench.logs.logs.insert(tp(0), MemoryLog::empty_at(0));
    let additions = [0, 1].map(|index| Addition {
        partition: tp(index),
        topic_id: None,
        leader_epoch: LeaderEpoch(1),
        offset: Offset(0),
    });
    let commands = bench.step(Event::Add(additions.to_vec()));
    assert_eq!((truncations(&commands).len(), commands.len()), (1, 1));
    assert_eq!(question_of(&bench.truncate(&commands)).1, [(1, 1, 0)]);
}

#[test]
fn a_leader_that_repeats_itself_is_asked_again_only_after_a_pause() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 9, 1);
    let commands = bench.answer(fetch_of(&commands).id, vec![diverging(0, 0, 12)]);
    let commands = bench.truncate(&commands);
    assert_eq!(asked(&fetch_of(&commands)), [], "it is forgotten meanwhile");
    assert_eq!(bench.log(0).log_end, 9);
}
