//! What a group wants done, its answers among it.

use std::collections::BTreeMap;

use bytes::Bytes;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::types::{Millis, TopicPartition};

use super::event::Producer;
use super::ids::{AppendId, RequestId};
use super::note::Note;

/// What a group wants done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Answers a request.
    Answer {
        /// The request.
        request: RequestId,
        /// The answer.
        answer: Answer,
    },
    /// Appends a batch to the group's partition with `offsets.commit.required.acks` and `offsets.commit.timeout.ms`;
    /// [`Event::Appended`](super::Event::Appended) reports the end.
    Append {
        /// The number to report.
        append: AppendId,
        /// What to append.
        batch: Batch,
    },
    /// Appends tombstones; nobody waits for them, and if that fails it is only logged.
    AppendTombstones(Batch),
    /// The group is Dead and nothing of it is waited for: it may be dropped.
    Forget,
    /// Tells what happened, and why.
    Note(Note),
}

/// A batch of records for the group's partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    /// The time of all records (CreateTime), in milliseconds since the Unix epoch.
    pub timestamp: Millis,
    /// The producer whose transaction the batch is part of, if it is part of one.
    pub producer: Option<Producer>,
    /// Key and value of each record; at least one.
    pub records: Vec<(Bytes, Option<Bytes>)>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// To JoinGroup.
    Join(JoinAnswer),
    /// To SyncGroup.
    Sync(SyncAnswer),
    /// To Heartbeat.
    Heartbeat(ErrorCode),
    /// To LeaveGroup: for all, or for each member in the order of the request.
    Leave(Result<Vec<ErrorCode>, ErrorCode>),
    /// To OffsetCommit and TxnOffsetCommit: for each partition.
    Commit(BTreeMap<TopicPartition, ErrorCode>),
    /// To OffsetDelete: for all, or for each partition.
    DeleteOffsets(Result<BTreeMap<TopicPartition, ErrorCode>, ErrorCode>),
    /// To DeleteGroups.
    Delete(ErrorCode),
}

/// An answer to JoinGroup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JoinAnswer {
    /// The error, or none.
    pub error: ErrorCode,
    /// The member id.
    pub member_id: Str,
    /// The generation; -1 with an error.
    pub generation: i32,
    /// The protocol type; none with an error.
    pub protocol_type: Option<Str>,
    /// The protocol that was chosen; none with an error (written as "" below version 7).
    pub protocol_name: Option<Str>,
    /// The member id of the leader; empty with an error.
    pub leader: Str,
    /// Whether a leader is not to assign (KIP-814).
    pub skip_assignment: bool,
    /// For the leader: all members.
    pub members: Vec<JoinedMember>,
}

impl JoinAnswer {
    /// An answer with an error.
    #[must_use]
    pub fn error(error: ErrorCode, member_id: Str) -> Self {
        Self {
            error,
            member_id,
            generation: -1,
            protocol_type: None,
            protocol_name: None,
            leader: Str::EMPTY,
            skip_assignment: false,
            members: Vec::new(),
        }
    }
}

/// A member, as the leader is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JoinedMember {
    /// The member id.
    pub member_id: Str,
    /// The instance id of a static member.
    pub instance_id: Option<Str>,
    /// What it has to say for the protocol that was chosen.
    pub metadata: Bytes,
}

/// An answer to SyncGroup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SyncAnswer {
    /// The error, or none.
    pub error: ErrorCode,
    /// The protocol type; none with an error.
    pub protocol_type: Option<Str>,
    /// The protocol; none with an error.
    pub protocol_name: Option<Str>,
    /// The assignment; empty with an error.
    pub assignment: Bytes,
}

impl SyncAnswer {
    /// An answer with an error.
    pub(super) fn error(error: ErrorCode) -> Self {
        Self { error, protocol_type: None, protocol_name: None, assignment: Bytes::new() }
    }
}
