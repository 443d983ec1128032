//! Fetching: what is asked, what is taken from an answer, in which order, and what becomes of errors.

use super::*;

/// A fetcher of partitions 0 to `count`, each at offset 3 in leader epoch 0; the first fetch is answered with
/// nothing new, and the second, which is under way, is returned.
fn settled(count: i32) -> (Bench, FetchRequest) {
    let mut bench = Bench::new(NEW);
    let mut commands = Vec::new();
    for index in 0..count {
        let mut log = MemoryLog::with_epochs(&[(0, 0)], 3);
        log.high_watermark = 3;
        bench.logs.logs.insert(tp(index), log);
        let more = bench.add(index, 0, 3);
        commands = if index == 0 { more } else { commands };
    }
    let first = bench.answer(fetch_of(&commands).id, vec![quiet(0, 3)]);
    let others = fetch_of(&first);
    let commands = bench.answer(others.id, (1..count).map(|index| quiet(index, 3)).collect());
    (bench, fetch_of(&commands))
}

#[test]
fn a_fetch_tells_offset_log_start_and_epochs() {
    let mut bench = Bench::new(NEW);
    let mut log = MemoryLog::with_epochs(&[(0, 0), (2, 5)], 9);
    (log.high_watermark, log.log_start) = (9, 2);
    bench.logs.logs.insert(tp(0), log);
    let fetch = fetch_of(&bench.add(0, 4, 9));
    assert_eq!((fetch.session_id, fetch.session_epoch, fetch.by_id), (0, 0, false));
    let expected = FetchPartition {
        max_bytes: MAX_BYTES,
        fetch_offset: Offset(9),
        current_leader_epoch: LeaderEpoch(4),
        log_start: Offset(2),
        last_fetched_epoch: LeaderEpoch(2),
    };
    assert_eq!(fetch.partitions, [(tp(0), Asked { topic_id: TopicId::ZERO, fetch: expected })]);
}

#[test]
fn records_are_appended_before_the_offsets_of_their_answer_are_taken() {
    let (mut bench, fetch) = settled(1);
    let told = PartitionReply { log_start: Offset(1), ..records(0, 4) };
    let commands = bench.answer(fetch.id, vec![told]);
    let work = append_of(&commands, 0);
    assert_eq!(commands, [Command::Append(work)]);
    let commands = bench.append(&commands, 0, 0, 2);
    assert_eq!(commands[0], Command::SetHighWatermark(tp(0), LeaderEpoch(0), Offset(4)));
    assert_eq!(commands[1], Command::SetLogStart(tp(0), LeaderEpoch(0), Offset(1)));
    assert_eq!(asked(&fetch_of(&commands)), [(0, 5, 0, 0)]);
}

#[test]
fn the_high_watermark_follows_the_leaders_within_the_log_and_may_go_back() {
    let (mut bench, fetch) = settled(1);
    let commands = bench.answer(fetch.id, vec![quiet(0, 900)]);
    assert_eq!(maybe_high_watermark(&commands), None, "it is at the log end already");
    let commands = bench.answer(fetch_of(&commands).id, vec![quiet(0, 2)]);
    assert_eq!(maybe_high_watermark(&commands), Some(2));
    let commands = bench.answer(fetch_of(&commands).id, vec![quiet(0, -1)]);
    assert_eq!(maybe_high_watermark(&commands), Some(0), "never below the log start");
}

fn maybe_high_watermark(commands: &[Command]) -> Option<i64> {
    commands.iter().find_map(|command| match command {
        Command::SetHighWatermark(_, _, offset) => Some(offset.0),
        _ => None,
    })
}

#[test]
fn the_last_epoch_is_that_of_the_last_batch() {
    let (mut bench, fetch) = settled(1);
    let commands = bench.answer(fetch.id, vec![records(0, 3)]);
    bench.log(0).append_as_leader(1, &["a"]);
    let commands = bench.append(&commands, 0, 4, 1);
    assert_eq!(asked(&fetch_of(&commands)), [(0, 5, 0, 4)]);
}

/// KAFKA-15510.
#[test]
fn the_last_epoch_survives_answers_without_records() {
    let (mut bench, mut fetch) = settled(1);
    for high_watermark in [2, 3, 2, 3] {
        fetch = fetch_of(&bench.answer(fetch.id, vec![quiet(0, high_watermark)]));
    }
    assert_eq!(fetch.partitions, [], "it is what the session remembers");
    // After the session is lost everything is named again.
    let commands = bench.step(Event::RequestFailed(fetch.id));
    assert_eq!(commands, []);
    assert_eq!(asked(&fetch_of(&bench.tick(BACKOFF_MS))), [(0, 3, 0, 0)]);
}

/// KAFKA-15080.
#[test]
fn the_lag_is_known_after_an_answer_without_records() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 3, 0);
    assert_eq!(bench.fetcher.lags().collect::<Vec<_>>(), [(&tp(0), None)]);
    let commands = bench.answer(fetch_of(&commands).id, vec![quiet(0, 3)]);
    assert_eq!(bench.fetcher.lags().collect::<Vec<_>>(), [(&tp(0), Some(0))]);
    let commands = bench.answer(fetch_of(&commands).id, vec![records(0, 9)]);
    bench.append(&commands, 0, 0, 2);
    assert_eq!(bench.fetcher.lags().collect::<Vec<_>>(), [(&tp(0), Some(4))]);
}

#[test]
fn partitions_that_had_records_are_asked_for_last() {
    let (mut bench, fetch) = settled(3);
    let commands = bench.answer(fetch.id, vec![records(1, 5)]);
    let commands = bench.append(&commands, 1, 0, 2);
    let fetch = fetch_of(&commands);
    // A new session shows the order.
    bench.step(Event::RequestFailed(fetch.id));
    let order: Vec<_> = asked(&fetch_of(&bench.tick(BACKOFF_MS))).iter().map(|it| it.0).collect();
    assert_eq!(order, [0, 2, 1]);
}

#[test]
fn the_next_fetch_waits_until_all_records_are_appended() {
    let (mut bench, fetch) = settled(2);
    let commands = bench.answer(fetch.id, vec![records(0, 4), records(1, 4)]);
    let more = bench.append(&commands, 0, 0, 1);
    assert_eq!(maybe_fetch_of(&more), None);
    let more = bench.append(&commands, 1, 0, 1);
    assert_eq!(asked(&fetch_of(&more)), [(0, 4, 0, 0), (1, 4, 0, 0)]);
}

#[test]
fn an_answer_to_an_older_request_is_dropped() {
    let (mut bench, fetch) = settled(1);
    let before = bench.fetcher.clone();
    let older = RequestId(fetch.id.0 - 1);
    assert_eq!(bench.answer(older, vec![records(0, 9)]), []);
    assert_eq!(bench.step(Event::RequestFailed(older)), []);
    assert_eq!(bench.fetcher, before);
}

#[test]
fn a_log_that_does_not_end_where_it_was_fetched_from_fails() {
    let (mut bench, fetch) = settled(1);
    bench.log(0).append_as_leader(0, &["stranger"]);
    let commands = bench.answer(fetch.id, vec![records(0, 9)]);
    let failure = Failure::UnexpectedLogEnd { fetch_offset: Offset(3), log_end: Offset(4) };
    assert_eq!(commands[0], Command::MarkFailed(tp(0), failure));
}

#[test]
fn a_fenced_fetch_fails_the_partition_until_it_is_added_again() {
    let (mut bench, fetch) = settled(1);
    let commands = bench.answer(fetch.id, vec![failed(0, ErrorCode::FencedLeaderEpoch)]);
    assert_eq!(commands[0], Command::MarkFailed(tp(0), Failure::Fenced));
    assert!(bench.fetcher.is_empty());
    bench.answer(fetch_of(&commands).id, Vec::new());
    assert_eq!(asked(&fetch_of(&bench.add(0, 1, 3))), [(0, 3, 1, 0)]);
}

#[test]
fn a_fenced_fetch_of_an_older_epoch_is_only_repeated() {
    let (mut bench, fetch) = settled(1);
    bench.add(0, 1, 3);
    let commands = bench.answer(fetch.id, vec![failed(0, ErrorCode::FencedLeaderEpoch)]);
    assert_eq!(asked(&fetch_of(&commands)), [(0, 3, 1, 0)]);
}

#[test]
fn each_other_error_pauses_its_partition_alone() {
    let errors = [
        ErrorCode::UnknownLeaderEpoch,
        ErrorCode::NotLeaderOrFollower,
        ErrorCode::UnknownTopicOrPartition,
        ErrorCode::UnknownTopicId,
        ErrorCode::InconsistentTopicId,
        ErrorCode::KafkaStorageError,
        ErrorCode::UnknownServerError,
    ];
    for error in errors {
        let (mut bench, fetch) = settled(2);
        let commands = bench.answer(fetch.id, vec![failed(0, error)]);
        assert_eq!(commands[0], Command::Note(Note::Refused(tp(0), error)));
        let fetch = fetch_of(&commands);
        assert_eq!(fetch.forgotten, [(tp(0), TopicId::ZERO)], "{error}");
        bench.mono_ms += BACKOFF_MS;
        assert_eq!(asked(&fetch_of(&bench.answer(fetch.id, Vec::new()))), [(0, 3, 0, 0)], "{error}");
    }
}

#[test]
fn a_damaged_batch_is_fetched_again_after_a_pause() {
    let (mut bench, fetch) = settled(1);
    let work = append_of(&bench.answer(fetch.id, vec![records(0, 9)]), 0);
    let failure = AppendFailure::Corrupt;
    let commands = bench.step(Event::AppendFailed { work: work.id, partition: tp(0), failure });
    assert_eq!(commands[0], Command::Note(Note::CorruptRecords(tp(0))));
    bench.answer(fetch_of(&commands).id, Vec::new());
    assert_eq!(bench.fetcher.deadline(), Some(BACKOFF_MS));
    assert_eq!(asked(&fetch_of(&bench.tick(BACKOFF_MS))), [(0, 3, 0, 0)]);
}

#[test]
fn records_of_which_none_can_be_appended_are_fetched_again_after_a_pause() {
    let (mut bench, fetch) = settled(1);
    let work = append_of(&bench.answer(fetch.id, vec![records(0, 9)]), 0);
    let nothing = Event::Appended { work: work.id, partition: tp(0), log_end: Offset(3), last_epoch: None };
    let commands = bench.step(nothing);
    assert_eq!(commands[0], Command::Note(Note::NothingAppended(tp(0))));
    assert_eq!(asked(&fetch_of(&commands)), []);
}

#[test]
fn a_failed_log_fails_its_partition_and_the_others_go_on() {
    let (mut bench, fetch) = settled(2);
    let commands = bench.answer(fetch.id, vec![records(0, 4), records(1, 4)]);
    let work = append_of(&commands, 0);
    let failure = AppendFailure::Storage;
    let more = bench.step(Event::AppendFailed { work: work.id, partition: tp(0), failure });
    assert_eq!(more, [Command::MarkFailed(tp(0), Failure::Storage)]);
    assert_eq!(asked(&fetch_of(&bench.append(&commands, 1, 0, 1))), [(1, 4, 0, 0)]);
}

#[test]
fn a_log_that_cannot_be_used_is_left_out() {
    let (mut bench, fetch) = settled(2);
    bench.logs.logs.remove(&tp(1));
    // Nobody says so: it is seen when all partitions are looked at.
    bench.mono_ms += 1_000;
    let commands = bench.answer(fetch.id, Vec::new());
    assert_eq!(commands[0], Command::Note(Note::LogUnavailable(tp(1))));
    assert_eq!(fetch_of(&commands).forgotten.len(), 1);
}

#[test]
fn a_failed_request_pauses_all_and_a_pause_that_lasts_is_not_made_longer() {
    let (mut bench, fetch) = settled(2);
    let commands = bench.answer(fetch.id, vec![failed(0, ErrorCode::NotLeaderOrFollower)]);
    bench.mono_ms += 400;
    assert_eq!(bench.step(Event::RequestFailed(fetch_of(&commands).id)), []);
    assert_eq!(bench.fetcher.deadline(), Some(BACKOFF_MS));
    assert_eq!(asked(&fetch_of(&bench.tick(600))), [(0, 3, 0, 0)]);
    assert_eq!(bench.mono_ms, BACKOFF_MS);
}

#[test]
fn nothing_is_due_while_a_request_is_under_way() {
    let (bench, _) = settled(1);
    assert_eq!(bench.fetcher.deadline(), None);
}
