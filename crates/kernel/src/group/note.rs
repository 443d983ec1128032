//! What happened to a group and why, in words for the log and for those who ask.

use std::fmt;

use wire::Str;
use wire::error_code::ErrorCode;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Note {
    /// A rebalance begins.
    Rebalancing {
        /// The generation that ends.
        generation: i32,
        /// Why.
        reason: Reason,
    },
    /// The join phase is over.
    Joined {
        /// The generation that begins.
        generation: i32,
        /// How many members it has.
        members: usize,
    },
    /// The assignment is stored.
    Stabilized {
        /// The generation.
        generation: i32,
    },
    /// A member is gone.
    MemberRemoved {
        /// The member.
        member_id: Str,
        /// Why.
        reason: Reason,
    },
    /// An append failed: nothing has changed.
    AppendFailed {
        /// What was to be stored.
        what: &'static str,
        /// The error of the log.
        error: ErrorCode,
    },
    /// Offsets have expired.
    OffsetsExpired {
        /// How many.
        offsets: usize,
    },
    /// The group is gone.
    Dead {
        /// The generation it ended in.
        generation: i32,
    },
}

/// Why a rebalance begins, or a member goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A member joins.
    NewMember(Str),
    /// A member joins again: the leader, or with other protocols.
    Rejoined(Str),
    /// The process behind an instance id is another one.
    InstanceReplaced(Str),
    /// A member left.
    Left(Str),
    /// A member was not heard of for its session timeout.
    SessionExpired(Str),
    /// Members did not join in time.
    JoinTimedOut,
    /// Members did not send SyncGroup in time (KAFKA-12890).
    SyncTimedOut,
    /// The assignment could not be stored.
    StoreFailed(ErrorCode),
    /// The group was loaded with more members than `group.max.size`.
    OverCapacity,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewMember(id) => write!(f, "member {id} joins"),
            Self::Rejoined(id) => write!(f, "member {id} joins again"),
            Self::InstanceReplaced(id) => write!(f, "member {id} takes the place of its instance"),
            Self::Left(id) => write!(f, "member {id} leaves"),
            Self::SessionExpired(id) => write!(f, "the session of member {id} has expired"),
            Self::JoinTimedOut => f.write_str("not all members joined within the rebalance timeout"),
            Self::SyncTimedOut => f.write_str("not all members synced within the rebalance timeout"),
            Self::StoreFailed(error) => write!(f, "the assignment could not be stored: {}", error.name()),
            Self::OverCapacity => f.write_str("it was loaded with more members than group.max.size"),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rebalancing { generation, reason } => {
                write!(f, "rebalances after generation {generation}: {reason}")
            }
            Self::Joined { generation, members } => {
                write!(f, "generation {generation} has {members} members")
            }
            Self::Stabilized { generation } => write!(f, "generation {generation} is stable"),
            Self::MemberRemoved { member_id, reason } => write!(f, "member {member_id} is removed: {reason}"),
            Self::AppendFailed { what, error } => write!(f, "{what} could not be stored: {}", error.name()),
            Self::OffsetsExpired { offsets } => write!(f, "{offsets} offsets have expired"),
            Self::Dead { generation } => write!(f, "is gone after generation {generation}"),
        }
    }
}
