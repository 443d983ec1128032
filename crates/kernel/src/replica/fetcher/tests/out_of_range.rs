//! What a follower does when its offset is not in the leader's log.

use super::*;

/// A follower whose log is in epoch 0 up to `log_end` and whose fetch was out of range, with the lookup that follows.
fn out_of_range(log_end: i64) -> (Bench, RequestId) {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], log_end, 2);
    let commands = bench.answer(fetch_of(&commands).id, vec![failed(0, ErrorCode::OffsetOutOfRange)]);
    assert_eq!(commands[0], Command::Note(Note::OutOfRange(tp(0), Offset(log_end))));
    let (id, target, partitions) = lookup_of(&commands);
    assert_eq!((target, partitions), (Target::Latest, vec![(0, 2)]));
    (bench, id)
}

fn found(bench: &mut Bench, id: RequestId, offset: i64) -> Vec<Command> {
    found_or(bench, id, offset, ErrorCode::None)
}

fn found_or(bench: &mut Bench, id: RequestId, offset: i64, error: ErrorCode) -> Vec<Command> {
    let reply = ListOffsetsReply { partition: tp(0), error, offset: Offset(offset) };
    bench.step(Event::ListOffsetsReply(id, vec![reply]))
}

/// KAFKA-7414.
#[test]
fn a_leader_that_ends_below_is_followed_there() {
    let (mut bench, id) = out_of_range(9);
    let commands = found(&mut bench, id, 6);
    assert_eq!(truncations(&commands), [(0, 6, TruncationCause::LeaderEndsBelow { leader_end: Offset(6) })]);
    assert_eq!(asked(&fetch_of(&bench.truncate(&commands))), [(0, 6, 2, 0)]);
    assert_eq!(bench.fetcher.lags().collect::<Vec<_>>(), [(&tp(0), Some(0))]);
}

/// KAFKA-9491: log start and high watermark are at the new start as well, and nothing is left to diverge.
#[test]
fn a_leader_that_starts_above_makes_the_log_start_anew_there() {
    let (mut bench, id) = out_of_range(40);
    let commands = found(&mut bench, id, 150);
    let (id, target, _) = lookup_of(&commands);
    assert_eq!(target, Target::Earliest);
    let commands = found(&mut bench, id, 100);
    let work = LogWork { id: WorkId(0), partition: tp(0), leader_epoch: LeaderEpoch(2) };
    let cause = TruncationCause::BelowLeaderStart { leader_start: Offset(100) };
    assert_eq!(commands, [Command::TruncateFullyAndStartAt(work, Offset(100), cause)]);
    assert_eq!(asked(&fetch_of(&bench.truncate(&commands))), [(0, 100, 2, -1)]);
    assert_eq!(bench.fetcher.lags().collect::<Vec<_>>(), [(&tp(0), Some(50))]);
}

#[test]
fn an_offset_that_is_in_range_meanwhile_is_fetched_again_after_a_pause() {
    let (mut bench, id) = out_of_range(9);
    let commands = found(&mut bench, id, 9);
    let (id, ..) = lookup_of(&commands);
    let commands = found(&mut bench, id, 4);
    assert_eq!(truncations(&commands), []);
    // The same fetch at once might be refused for ever.
    assert_eq!(asked(&fetch_of(&commands)), []);
    bench.mono_ms += BACKOFF_MS;
    assert_eq!(asked(&fetch_of(&bench.answer(fetch_of(&commands).id, Vec::new()))), [(0, 9, 2, 0)]);
}

#[test]
fn a_lookup_that_fails_goes_back_to_fetching_after_a_pause() {
    for error in
        [ErrorCode::UnknownTopicOrPartition, ErrorCode::UnknownLeaderEpoch, ErrorCode::NotLeaderOrFollower]
    {
        let (mut bench, id) = out_of_range(9);
        let commands = found_or(&mut bench, id, -1, error);
        assert_eq!(commands[0], Command::Note(Note::Refused(tp(0), error)));
        bench.mono_ms += BACKOFF_MS;
        let commands = bench.answer(fetch_of(&commands).id, Vec::new());
        assert_eq!(asked(&fetch_of(&commands)), [(0, 9, 2, 0)]);
    }
    let (mut bench, id) = out_of_range(9);
    let commands = bench.step(Event::RequestFailed(id));
    assert_eq!(fetch_of(&commands).forgotten.len(), 1);
    let (mut bench, id) = out_of_range(9);
    let commands = bench.step(Event::ListOffsetsReply(id, Vec::new()));
    assert_eq!(commands[0], Command::Note(Note::Unanswered(tp(0))));
}

#[test]
fn a_fenced_lookup_fails_the_partition() {
    let (mut bench, id) = out_of_range(9);
    let commands = found_or(&mut bench, id, -1, ErrorCode::FencedLeaderEpoch);
    assert_eq!(commands[0], Command::MarkFailed(tp(0), Failure::Fenced));
}

#[test]
fn a_lookup_for_an_older_leader_epoch_is_dropped() {
    let (mut bench, id) = out_of_range(9);
    assert_eq!(bench.add(0, 3, 9), []);
    let commands = found(&mut bench, id, 6);
    assert_eq!(commands[0], Command::Note(Note::Outdated(tp(0))));
    assert_eq!(asked(&fetch_of(&commands)), [(0, 9, 3, 0)]);
}

#[test]
fn a_partition_added_without_an_offset_takes_the_leaders() {
    let mut bench = Bench::new(NEW);
    let (id, ..) = lookup_of(&bench.add(0, 2, -1));
    let (id, ..) = lookup_of(&found(&mut bench, id, 8));
    let commands = found(&mut bench, id, 5);
    assert_eq!(asked(&fetch_of(&bench.truncate(&commands))), [(0, 5, 2, -1)]);
}

/// KAFKA-6975.
#[test]
fn an_empty_log_that_begins_inside_the_first_batch_begins_at_the_batch_then() {
    let mut bench = Bench::new(NEW);
    bench.logs.logs.insert(tp(0), MemoryLog::empty_at(105));
    let commands = bench.add(0, 0, 105);
    let commands = bench.truncate(&commands);
    let told = PartitionReply { log_start: Offset(105), ..records(0, 110) };
    let commands = bench.answer(fetch_of(&commands).id, vec![told]);
    let work = append_of(&commands, 0);
    let failure = AppendFailure::UnexpectedOffset { first: Offset(100), last: Offset(109) };
    let commands = bench.step(Event::AppendFailed { work: work.id, partition: tp(0), failure });
    assert_eq!(truncations(&commands), [(0, 100, TruncationCause::StartsInsideBatch { first: Offset(100) })]);
    let commands = bench.truncate(&commands);
    assert_eq!(bench.log(0).log_end, 100);
    let commands = bench.append(&commands, 0, 0, 10);
    assert_eq!(commands[0], Command::SetHighWatermark(tp(0), LeaderEpoch(0), Offset(110)));
    assert_eq!(commands[1], Command::SetLogStart(tp(0), LeaderEpoch(0), Offset(105)));
    assert_eq!(asked(&fetch_of(&commands)), [(0, 110, 0, 0)]);
}

#[test]
fn a_log_that_ends_inside_the_batch_where_the_leader_starts_makes_room_for_it() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 9, 0);
    let told = PartitionReply { log_start: Offset(8), ..records(0, 13) };
    let work = append_of(&bench.answer(fetch_of(&commands).id, vec![told]), 0);
    let failure = AppendFailure::UnexpectedOffset { first: Offset(7), last: Offset(12) };
    let failed = Event::AppendFailed { work: work.id, partition: tp(0), failure };
    let commands = bench.step(failed);
    assert_eq!(truncations(&commands), [(0, 7, TruncationCause::EndsInsideBatch { first: Offset(7) })]);
    let commands = bench.truncate(&commands);
    let work = append_of(&commands, 0);
    // A second time would lead nowhere.
    let failed = Event::AppendFailed { work: work.id, partition: tp(0), failure };
    let failure = Failure::UnexpectedRecords { first: Offset(7), last: Offset(12) };
    assert_eq!(bench.clone().step(failed)[0], Command::MarkFailed(tp(0), failure));
    assert_eq!(asked(&fetch_of(&bench.append(&commands, 0, 0, 6))), [(0, 13, 0, 0)]);
}

/// Below its log start a leader may have forgotten where epochs ended, and tell nothing of what differs there.
#[test]
fn a_log_that_ends_where_the_leader_starts_is_emptied_before_records_of_another_epoch_come() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 9, 3);
    let told = PartitionReply { log_start: Offset(9), ..records(0, 13) };
    let commands = bench.answer(fetch_of(&commands).id, vec![told]);
    let cause = TruncationCause::BelowLeaderStart { leader_start: Offset(9) };
    assert_eq!(truncations(&commands), [(0, 9, cause)]);
    let commands = bench.truncate(&commands);
    assert!(bench.log(0).batches.is_empty());
    let commands = bench.append(&commands, 0, 3, 4);
    assert_eq!(asked(&fetch_of(&commands)), [(0, 13, 3, 3)]);
}

#[test]
fn a_log_is_kept_that_has_nothing_below_the_leaders_start_or_the_leaders_own_epoch_or_goes_on_above() {
    let appends = |epochs: &[(i32, i64)], leader_start: i64| {
        let (mut bench, commands) = Bench::following(NEW, epochs, 9, 3);
        let told = PartitionReply { log_start: Offset(leader_start), ..records(0, 13) };
        let commands = bench.answer(fetch_of(&commands).id, vec![told]);
        let is_cut = !truncations(&commands).is_empty();
        assert_ne!(is_cut, commands.iter().any(|it| matches!(it, Command::Append(_))));
        !is_cut
    };
    assert!(!appends(&[(0, 0)], 9));
    assert!(appends(&[(0, 0)], 8));
    assert!(appends(&[(0, 0), (3, 5)], 9));
    assert!(appends(&[(0, 9)], 9));
}

#[test]
fn records_below_the_end_of_a_log_that_has_records_fail_the_partition() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 9, 0);
    let work = append_of(&bench.answer(fetch_of(&commands).id, vec![records(0, 9)]), 0);
    let (first, last) = (Offset(8), Offset(12));
    let failure = AppendFailure::UnexpectedOffset { first, last };
    let commands = bench.step(Event::AppendFailed { work: work.id, partition: tp(0), failure });
    assert_eq!(commands[0], Command::MarkFailed(tp(0), Failure::UnexpectedRecords { first, last }));
}

#[test]
fn records_that_do_not_reach_the_log_end_fail_the_partition() {
    let (mut bench, commands) = Bench::following(NEW, &[(0, 0)], 9, 0);
    let work = append_of(&bench.answer(fetch_of(&commands).id, vec![records(0, 9)]), 0);
    let (first, last) = (Offset(6), Offset(8));
    let failure = AppendFailure::UnexpectedOffset { first, last };
    let commands = bench.step(Event::AppendFailed { work: work.id, partition: tp(0), failure });
    assert_eq!(commands[0], Command::MarkFailed(tp(0), Failure::UnexpectedRecords { first, last }));
}

#[test]
fn records_that_do_not_reach_an_empty_log_fail_the_partition() {
    let mut bench = Bench::new(NEW);
    bench.logs.logs.insert(tp(0), MemoryLog::empty_at(105));
    let commands = bench.add(0, 0, 105);
    let commands = bench.truncate(&commands);
    let work = append_of(&bench.answer(fetch_of(&commands).id, vec![records(0, 110)]), 0);
    let (first, last) = (Offset(90), Offset(104));
    let failure = AppendFailure::UnexpectedOffset { first, last };
    let commands = bench.step(Event::AppendFailed { work: work.id, partition: tp(0), failure });
    assert_eq!(commands[0], Command::MarkFailed(tp(0), Failure::UnexpectedRecords { first, last }));
}
