//! What happens to a group: requests of its members and of administrators, ends of appends, time.
//!
//! A request carries a token, by which its answer comes back exactly once ([`Command::Answer`]). Texts and bytes may be
//! slices of a frame; the group copies what it keeps.
//!
//! [`Command::Answer`]: super::Command::Answer

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::types::{LeaderEpoch, Millis, Offset, TopicPartition};

use super::ids::{AppendId, RequestId};
use super::member::Protocol;

/// What happens to a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// JoinGroup.
    Join(RequestId, JoinRequest),
    /// SyncGroup.
    Sync(RequestId, SyncRequest),
    /// Heartbeat.
    Heartbeat(RequestId, HeartbeatRequest),
    /// LeaveGroup: members and instances that leave.
    Leave(RequestId, Vec<LeavingMember>),
    /// OffsetCommit, or TxnOffsetCommit if it names a producer.
    Commit(RequestId, CommitRequest),
    /// OffsetDelete: the offsets that are to go.
    DeleteOffsets(RequestId, BTreeSet<TopicPartition>),
    /// DeleteGroups.
    Delete(RequestId),
    /// An append has ended: at which base offset, or with which error. The code is that of the log, or
    /// REQUEST_TIMED_OUT. One that is no longer awaited is ignored.
    Appended {
        /// The append.
        append: AppendId,
        /// The base offset of the batch, or why there is none.
        outcome: Result<Offset, ErrorCode>,
    },
    /// The marker of a transaction is in the log of this group's partition.
    TransactionEnded {
        /// The producer.
        producer_id: i64,
        /// Whether it was committed; otherwise it was aborted.
        committed: bool,
    },
    /// Partitions are gone: what was committed for them means nothing any more.
    PartitionsDeleted(Arc<BTreeSet<TopicPartition>>),
    /// Offsets that have not been needed for long enough go; due every `offsets.retention.check.interval.ms`.
    ExpireOffsets,
    /// This broker is not the coordinator any more.
    Unload,
    /// A [deadline](super::Group::deadline) has come.
    Tick,
}

/// A JoinGroup request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JoinRequest {
    /// The member id; empty if it has none yet.
    pub member_id: Str,
    /// The id it gets if it has none: instance id, or else client id, `-` and a random UUID.
    pub fresh_member_id: Str,
    /// The instance id of a static member (KIP-345).
    pub instance_id: Option<Str>,
    /// The client id of the request.
    pub client_id: Str,
    /// The client's address, as Java prints one: `/127.0.0.1`.
    pub client_host: Str,
    /// The session timeout in milliseconds.
    pub session_timeout_ms: i32,
    /// The rebalance timeout in milliseconds; that of the session in version 0.
    pub rebalance_timeout_ms: i32,
    /// What kind of member it is, such as `consumer`.
    pub protocol_type: Str,
    /// The protocols it knows, in order of preference.
    pub protocols: Vec<Protocol>,
    /// Version 4 and later: a member learns its id before it joins (KIP-394).
    pub requires_known_member_id: bool,
    /// Whether the broker has room for one more member id that is to come back. Without it a new member that must learn
    /// its id first is told to try again.
    pub may_be_given_id: bool,
    /// Version 9 and later: a leader can be told not to assign (KIP-814).
    pub supports_skipping_assignment: bool,
}

/// A SyncGroup request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SyncRequest {
    /// The member id.
    pub member_id: Str,
    /// The instance id of a static member.
    pub instance_id: Option<Str>,
    /// The generation it has joined.
    pub generation: i32,
    /// The protocol type, if the version has it.
    pub protocol_type: Option<Str>,
    /// The protocol, if the version has it.
    pub protocol_name: Option<Str>,
    /// What each member is assigned, if the leader sends it.
    pub assignments: BTreeMap<Str, Bytes>,
}

/// A Heartbeat request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeartbeatRequest {
    /// The member id.
    pub member_id: Str,
    /// The instance id of a static member.
    pub instance_id: Option<Str>,
    /// The generation it is in.
    pub generation: i32,
}

/// Who leaves, in a LeaveGroup request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeavingMember {
    /// The member id; empty if an administrator names an instance only.
    pub member_id: Str,
    /// The instance id of a static member.
    pub instance_id: Option<Str>,
}

/// An OffsetCommit or TxnOffsetCommit request, without the partitions that the metadata does not know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommitRequest {
    /// The member id; empty if the offsets are kept without a group.
    pub member_id: Str,
    /// The instance id of a static member.
    pub instance_id: Option<Str>,
    /// The generation; below zero if the offsets are kept without a group.
    pub generation: i32,
    /// The transaction that the commit is part of.
    pub producer: Option<Producer>,
    /// The offsets.
    pub offsets: BTreeMap<TopicPartition, OffsetToCommit>,
}

/// The producer of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Producer {
    /// The producer id.
    pub id: i64,
    /// The producer epoch.
    pub epoch: i16,
}

/// An offset that is to be committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OffsetToCommit {
    /// The offset to go on from.
    pub offset: Offset,
    /// The leader epoch of the record before it, or [`LeaderEpoch::UNKNOWN`].
    pub leader_epoch: LeaderEpoch,
    /// What the consumer says of it; empty for null.
    pub metadata: Str,
    /// When it was committed, in milliseconds since the Unix epoch: now, unless a request of version 1 says otherwise.
    pub commit_timestamp: Millis,
    /// When it expires, if the request says how long it is to be kept (versions 2 to 4).
    pub expire_timestamp: Option<Millis>,
}
