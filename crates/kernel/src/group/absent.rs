//! What becomes of requests for a group that does not exist.

use wire::error_code::ErrorCode;

use super::event::{Event, JoinRequest};
use super::ids::RequestId;
use super::{Answer, JoinAnswer, Settings, SyncAnswer};

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WhenAbsent {
    /// Make the group and give it the event.
    Create,
    /// Answer this.
    Answer(RequestId, Answer),
    /// Nothing: nobody waits.
    Ignore,
}

/// What to do with an event for a group that does not exist.
#[must_use]
pub fn without_group(settings: &Settings, event: &Event) -> WhenAbsent {
    let answer = |request: &RequestId, answer| WhenAbsent::Answer(*request, answer);
    match event {
        Event::Join(request, join) => match join_error(settings, join) {
            None => WhenAbsent::Create,
            Some(error) => answer(request, Answer::Join(JoinAnswer::error(error, join.member_id.clone()))),
        },
        Event::Sync(request, _) => {
            answer(request, Answer::Sync(SyncAnswer::error(ErrorCode::UnknownMemberId)))
        }
        Event::Heartbeat(request, _) => answer(request, Answer::Heartbeat(ErrorCode::UnknownMemberId)),
        Event::Leave(request, leaving) => {
            answer(request, Answer::Leave(Ok(vec![ErrorCode::UnknownMemberId; leaving.len()])))
        }
        Event::Commit(_, commit) if commit.generation < 0 || commit.producer.is_some() => WhenAbsent::Create,
        Event::Commit(request, commit) => {
            let errors = commit.offsets.keys().map(|it| (it.clone(), ErrorCode::IllegalGeneration));
            answer(request, Answer::Commit(errors.collect()))
        }
        Event::DeleteOffsets(request, _) => {
            answer(request, Answer::DeleteOffsets(Err(ErrorCode::GroupIdNotFound)))
        }
        Event::Delete(request) => answer(request, Answer::Delete(ErrorCode::GroupIdNotFound)),
        Event::Appended { .. }
        | Event::TransactionEnded { .. }
        | Event::PartitionsDeleted(_)
        | Event::ExpireOffsets
        | Event::Unload
        | Event::Tick => WhenAbsent::Ignore,
    }
}

fn join_error(settings: &Settings, join: &JoinRequest) -> Option<ErrorCode> {
    if !settings.allows_session_timeout(join.session_timeout_ms) {
        return Some(ErrorCode::InvalidSessionTimeout);
    }
    (!join.member_id.is_empty()).then_some(ErrorCode::UnknownMemberId)
}
