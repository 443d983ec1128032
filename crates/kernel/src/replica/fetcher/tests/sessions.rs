//! The fetcher's side of fetch sessions.

use super::*;

const ID: TopicId = TopicId([7; 16]);
const OTHER_ID: TopicId = TopicId([8; 16]);

fn by_id(id: TopicId, index: i32) -> PartitionReply {
    PartitionReply { key: PartitionKey { topic: TopicRef::Id(id), partition: index }, ..quiet(index, 0) }
}

fn addition(index: i32, topic_id: Option<TopicId>) -> Addition {
    Addition { partition: tp(index), topic_id, leader_epoch: LeaderEpoch(0), offset: Offset(1) }
}

/// A fetcher of these partitions at offset 1, and its first request.
fn fetching(protocol: MetadataVersion, partitions: &[(i32, Option<TopicId>)]) -> (Bench, FetchRequest) {
    let mut bench = Bench::new(protocol);
    for (index, _) in partitions {
        bench.logs.logs.insert(tp(*index), MemoryLog::with_epochs(&[(0, 0)], 1));
    }
    let commands =
        bench.step(Event::Add(partitions.iter().map(|(index, id)| addition(*index, *id)).collect()));
    let fetch = fetch_of(&commands);
    (bench, fetch)
}

fn place(fetch: &FetchRequest) -> (i32, i32) {
    (fetch.session_id, fetch.session_epoch)
}

#[test]
fn after_a_full_fetch_only_what_changes_is_named() {
    let (mut bench, fetch) = fetching(NEW, &[(0, None), (1, None)]);
    assert_eq!(place(&fetch), (0, 0));
    let fetch = fetch_of(&bench.answer(fetch.id, vec![quiet(0, 1), quiet(1, 1)]));
    assert_eq!((place(&fetch), asked(&fetch)), ((5, 1), vec![]));
    let commands = bench.answer(fetch.id, vec![records(1, 1)]);
    let fetch = fetch_of(&bench.append(&commands, 1, 0, 2));
    assert_eq!((place(&fetch), asked(&fetch)), ((5, 2), vec![(1, 3, 0, 0)]));
    // A log start that moves by itself is told as well, within a second.
    bench.log(0).high_watermark = 1;
    bench.log(0).set_log_start(1);
    let fetch = fetch_of(&bench.answer(fetch.id, Vec::new()));
    assert_eq!((place(&fetch), asked(&fetch)), ((5, 3), vec![]));
    bench.mono_ms += 1_000;
    let fetch = fetch_of(&bench.answer(fetch.id, Vec::new()));
    assert_eq!((place(&fetch), asked(&fetch)), ((5, 4), vec![(0, 1, 0, 0)]));
}

#[test]
fn without_a_session_every_fetch_is_full() {
    let (mut bench, fetch) = fetching(NEW, &[(0, None)]);
    let fetch = fetch_of(&bench.step(Event::FetchReply(fetch.id, reply(0, vec![quiet(0, 1)]))));
    assert_eq!((place(&fetch), asked(&fetch).len()), ((0, 0), 1));
}

#[test]
fn a_session_that_the_leader_no_longer_knows_is_begun_anew_at_once() {
    for (error, session_id) in
        [(ErrorCode::FetchSessionIdNotFound, 0), (ErrorCode::InvalidFetchSessionEpoch, 5)]
    {
        let (mut bench, fetch) = fetching(NEW, &[(0, None)]);
        let fetch = fetch_of(&bench.answer(fetch.id, vec![quiet(0, 1)]));
        let commands = bench.step(Event::FetchReply(fetch.id, refused(error)));
        assert_eq!(commands[0], Command::Note(Note::SessionLost(error)));
        let fetch = fetch_of(&commands);
        assert_eq!((place(&fetch), asked(&fetch).len()), ((session_id, 0), 1));
    }
}

#[test]
fn other_errors_of_the_whole_fetch_pause_everything_and_begin_a_new_session() {
    for error in [ErrorCode::FetchSessionTopicIdError, ErrorCode::UnknownServerError] {
        let (mut bench, fetch) = fetching(NEW, &[(0, None)]);
        let fetch = fetch_of(&bench.answer(fetch.id, vec![quiet(0, 1)]));
        let commands = bench.step(Event::FetchReply(fetch.id, refused(error)));
        assert_eq!(commands, [Command::Note(Note::FetchRefused(error))]);
        assert_eq!(place(&fetch_of(&bench.tick(BACKOFF_MS))), (5, 0));
    }
}

#[test]
fn a_full_fetch_that_is_refused_pauses_whatever_the_error() {
    let (mut bench, fetch) = fetching(NEW, &[(0, None)]);
    let error = ErrorCode::FetchSessionIdNotFound;
    let commands = bench.step(Event::FetchReply(fetch.id, refused(error)));
    assert_eq!(commands, [Command::Note(Note::FetchRefused(error))]);
}

#[test]
fn after_a_failed_request_the_session_is_closed_and_begun_anew() {
    let (mut bench, fetch) = fetching(NEW, &[(0, None)]);
    let fetch = fetch_of(&bench.answer(fetch.id, vec![quiet(0, 1)]));
    bench.step(Event::RequestFailed(fetch.id));
    assert_eq!(place(&fetch_of(&bench.tick(BACKOFF_MS))), (5, 0));
}

#[test]
fn a_full_answer_must_name_exactly_what_was_asked() {
    let wrong = [
        vec![quiet(0, 1)],
        vec![quiet(0, 1), quiet(1, 1), quiet(2, 1)],
        vec![quiet(0, 1), quiet(0, 1)],
        vec![],
    ];
    for partitions in wrong {
        let (mut bench, fetch) = fetching(NEW, &[(0, None), (1, None)]);
        assert_eq!(bench.answer(fetch.id, partitions), [Command::Note(Note::SessionMismatch)]);
        assert_eq!(place(&fetch_of(&bench.tick(BACKOFF_MS))), (0, 0));
    }
}

#[test]
fn a_throttled_full_answer_may_be_empty() {
    let (mut bench, fetch) = fetching(NEW, &[(0, None)]);
    let throttled = FetchReply { throttled: true, ..reply(0, Vec::new()) };
    assert_eq!(bench.step(Event::FetchReply(fetch.id, throttled)), []);
    assert_eq!(place(&fetch_of(&bench.tick(BACKOFF_MS))), (0, 0));
}

#[test]
fn an_incremental_answer_must_not_name_what_is_not_in_the_session() {
    let (mut bench, fetch) = fetching(NEW, &[(0, None)]);
    let fetch = fetch_of(&bench.answer(fetch.id, vec![quiet(0, 1)]));
    assert_eq!(bench.answer(fetch.id, vec![quiet(3, 1)]), [Command::Note(Note::SessionMismatch)]);
    assert_eq!(place(&fetch_of(&bench.tick(BACKOFF_MS))), (5, 0));
}

/// The leader believes that its high watermark was heard, and would not tell it again.
#[test]
fn an_answer_that_came_too_late_makes_the_next_fetch_a_full_one() {
    let (mut bench, fetch) = fetching(NEW, &[(0, None)]);
    let fetch = fetch_of(&bench.answer(fetch.id, vec![quiet(0, 1)]));
    bench.step(Event::Add(vec![Addition { leader_epoch: LeaderEpoch(1), ..addition(0, None) }]));
    let fetch = fetch_of(&bench.answer(fetch.id, vec![quiet(0, 1)]));
    assert_eq!((place(&fetch), asked(&fetch)), ((5, 0), vec![(0, 1, 1, 0)]));
}

#[test]
fn removed_partitions_are_forgotten_and_added_ones_are_named() {
    let (mut bench, fetch) = fetching(NEW, &[(0, None), (1, None)]);
    let fetch = fetch_of(&bench.answer(fetch.id, vec![quiet(0, 1), quiet(1, 1)]));
    bench.logs.logs.insert(tp(2), MemoryLog::with_epochs(&[(0, 0)], 1));
    bench.step(Event::Remove(vec![tp(0)]));
    bench.step(Event::Add(vec![addition(2, None)]));
    let fetch = fetch_of(&bench.answer(fetch.id, Vec::new()));
    assert_eq!((asked(&fetch), &fetch.forgotten[..]), (vec![(2, 1, 0, 0)], &[(tp(0), TopicId::ZERO)][..]));
    // The last one that goes takes the session with it: the leader answers without one.
    bench.step(Event::Remove(vec![tp(1), tp(2)]));
    let fetch = fetch_of(&bench.answer(fetch.id, Vec::new()));
    assert_eq!((asked(&fetch).len(), fetch.forgotten.len()), (0, 2));
    assert_eq!(bench.step(Event::FetchReply(fetch.id, reply(0, Vec::new()))), []);
    assert_eq!(place(&fetch_of(&bench.step(Event::Add(vec![addition(2, None)])))), (0, 0));
}

#[test]
fn topics_go_by_id_when_all_have_one() {
    let (mut bench, fetch) = fetching(NEW, &[(0, Some(ID)), (1, Some(ID))]);
    assert!(fetch.by_id);
    let fetch = fetch_of(&bench.answer(fetch.id, vec![by_id(ID, 0), by_id(ID, 1)]));
    assert_eq!(place(&fetch), (5, 1));
    // One partition of the topic goes; the other is still known by the id.
    bench.step(Event::Remove(vec![tp(0)]));
    let fetch = fetch_of(&bench.answer(fetch.id, Vec::new()));
    assert_eq!(fetch.forgotten, [(tp(0), ID)]);
    let commands = bench.answer(fetch.id, vec![PartitionReply { records_bytes: 9, ..by_id(ID, 1) }]);
    append_of(&commands, 1);
}

#[test]
fn one_topic_without_an_id_makes_all_go_by_name() {
    let (_, fetch) = fetching(NEW, &[(0, Some(ID)), (1, None)]);
    assert!(!fetch.by_id);
    let (_, fetch) = fetching(MetadataVersion::IBP_3_0_IV1, &[(0, Some(ID))]);
    assert!(!fetch.by_id, "the version knows no ids");
}

/// KAFKA-13132, KAFKA-13394.
#[test]
fn ids_that_become_known_or_are_dropped_begin_a_new_session() {
    let (mut bench, fetch) = fetching(NEW, &[(0, None)]);
    bench.step(Event::TopicIds(vec![(tp(0), Some(ID))]));
    let fetch = fetch_of(&bench.answer(fetch.id, vec![quiet(0, 1)]));
    assert_eq!((fetch.by_id, place(&fetch)), (true, (5, 0)));
    bench.step(Event::TopicIds(vec![(tp(0), None)]));
    let fetch = fetch_of(&bench.answer(fetch.id, vec![by_id(ID, 0)]));
    assert_eq!((fetch.by_id, place(&fetch)), (false, (5, 0)));
}

#[test]
fn an_id_that_changes_is_forgotten_and_the_new_one_named() {
    let (mut bench, fetch) = fetching(NEW, &[(0, Some(ID))]);
    let fetch = fetch_of(&bench.answer(fetch.id, vec![by_id(ID, 0)]));
    bench.step(Event::TopicIds(vec![(tp(0), Some(OTHER_ID))]));
    let fetch = fetch_of(&bench.answer(fetch.id, Vec::new()));
    assert_eq!((place(&fetch), fetch.partitions[0].1.topic_id), ((5, 2), OTHER_ID));
    assert_eq!(fetch.forgotten, [(tp(0), ID)]);
    // What is still said under the old id does not fit.
    assert_eq!(bench.answer(fetch.id, vec![by_id(ID, 0)]), [Command::Note(Note::SessionMismatch)]);
}

#[test]
fn the_epoch_of_a_session_wraps_to_one() {
    let mut session = Session::default();
    let fetch = FetchPartition {
        max_bytes: 1,
        fetch_offset: Offset(0),
        current_leader_epoch: LeaderEpoch(0),
        log_start: Offset(0),
        last_fetched_epoch: LeaderEpoch(0),
    };
    let wanted = || vec![(tp(0), Asked { topic_id: TopicId::ZERO, fetch })];
    assert_eq!(session.next_all(wanted(), true).unwrap().epoch, 0);
    session.receive(reply(5, vec![quiet(0, 0)]));
    session.set_epoch(i32::MAX);
    assert_eq!(session.next_all(wanted(), true).unwrap().epoch, i32::MAX);
    session.receive(reply(5, Vec::new()));
    assert_eq!(session.next_all(wanted(), true).unwrap().epoch, 1);
}
