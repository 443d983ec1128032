//! Appends that have not ended, and what becomes of the group when they do.

use std::collections::BTreeMap;

use bytes::Bytes;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::types::{Now, Offset};

use super::join::refuse;
use super::member::Member;
use super::offsets::CommitInFlight;
use super::{AppendId, Batch, Command, Group, JoinAnswer, Note, RequestId, answer};

/// What an append is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum InFlight {
    /// A commit of offsets.
    Commit(CommitInFlight),
    /// The leader's assignment.
    Sync { generation: i32, assignments: BTreeMap<Str, Bytes> },
    /// A static member's new id.
    Replacement(Box<Replacement>),
    /// A group that has become Empty; nobody waits.
    Empty,
}

/// A static member that was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Replacement {
    pub(super) request: RequestId,
    /// What it is answered if the record can be stored.
    pub(super) joined: JoinAnswer,
    /// The new member id.
    pub(super) member_id: Str,
    /// The member as it was.
    pub(super) before: Member,
}

impl InFlight {
    /// Answers whoever waits with an error.
    pub(super) fn give_up(self, error: ErrorCode, out: &mut Vec<Command>) {
        match self {
            Self::Commit(commit) => {
                let (request, said) = commit.answer(error);
                answer(request, said, out);
            }
            Self::Replacement(replacement) => refuse(replacement.request, error, Str::EMPTY, out),
            Self::Sync { .. } | Self::Empty => {}
        }
    }

    const fn what(&self) -> &'static str {
        match self {
            Self::Commit(_) => "a commit of offsets",
            Self::Sync { .. } => "an assignment",
            Self::Replacement(_) => "the id of a replaced static member",
            Self::Empty => "the record of a group without members",
        }
    }
}

impl Group {
    /// Appends a batch, and keeps what it is for.
    pub(super) fn append(&mut self, batch: Batch, in_flight: InFlight, out: &mut Vec<Command>) -> AppendId {
        self.appends = self.appends.wrapping_add(1);
        let append = AppendId(self.appends);
        self.in_flight.insert(append, in_flight);
        out.push(Command::Append { append, batch });
        append
    }

    pub(super) fn appended(
        &mut self,
        now: Now,
        append: AppendId,
        outcome: Result<Offset, ErrorCode>,
        out: &mut Vec<Command>,
    ) {
        let Some(in_flight) = self.in_flight.remove(&append) else { return };
        self.ended(now, append, in_flight, outcome, out);
    }

    /// An append has ended, or could not begin.
    pub(super) fn ended(
        &mut self,
        now: Now,
        append: AppendId,
        in_flight: InFlight,
        outcome: Result<Offset, ErrorCode>,
        out: &mut Vec<Command>,
    ) {
        if let Err(error) = outcome {
            out.push(Command::Note(Note::AppendFailed { what: in_flight.what(), error }));
        }
        let stored = outcome.map(|_| ());
        match in_flight {
            InFlight::Commit(commit) => self.commit_ended(append, commit, outcome, out),
            InFlight::Sync { generation, assignments } => {
                self.sync_stored(now, generation, assignments, stored, out);
            }
            InFlight::Replacement(replacement) => self.replacement_stored(now, *replacement, stored, out),
            InFlight::Empty => {}
        }
    }
}
