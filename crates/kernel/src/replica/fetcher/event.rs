//! What reaches a fetcher and what it wants done, as plain values.
//!
//! Answers name the request they belong to, and results of work on a log the work; whatever comes for a request or a
//! work that is no longer the current one is dropped.

use wire::error_code::ErrorCode;
use wire::types::{LeaderEpoch, Offset, TopicId, TopicPartition};

use super::truncation::TruncationCause;
use crate::epochs::EpochEnd;
use crate::fetch::session::{FetchPartition, PartitionKey};

/// The number of a request of one fetcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The number of a piece of work on one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(pub u64);

/// A partition to fetch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Addition {
    /// The partition.
    pub partition: TopicPartition,
    /// The topic's id, if it has one.
    pub topic_id: Option<TopicId>,
    /// The leader epoch in which this broker follows.
    pub leader_epoch: LeaderEpoch,
    /// Where to begin: the log end if the log knows leader epochs and the leader tells divergence in its answers, else
    /// the high watermark. Negative: not known, so the leader is asked.
    pub offset: Offset,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Fetch these too. One that is here already in the same leader epoch stays as it is.
    Add(Vec<Addition>),
    /// Fetch these no more.
    Remove(Vec<TopicPartition>),
    /// The ids of topics became known, or are no longer to be used.
    TopicIds(Vec<(TopicPartition, Option<TopicId>)>),
    /// The leader answered a Fetch.
    FetchReply(RequestId, FetchReply),
    /// The leader answered an OffsetsForLeaderEpoch.
    EpochReply(RequestId, Vec<EpochReply>),
    /// The leader answered a ListOffsets.
    ListOffsetsReply(RequestId, Vec<ListOffsetsReply>),
    /// A request has no answer, or one that cannot be read.
    RequestFailed(RequestId),
    /// A log was cut.
    Truncated {
        /// The work.
        work: WorkId,
        /// The partition.
        partition: TopicPartition,
        /// The log end now.
        log_end: Offset,
        /// The latest leader epoch of the log now.
        latest_epoch: Option<LeaderEpoch>,
    },
    /// Records were appended.
    Appended {
        /// The work.
        work: WorkId,
        /// The partition.
        partition: TopicPartition,
        /// The log end now.
        log_end: Offset,
        /// The leader epoch of the last batch, if it has one.
        last_epoch: Option<LeaderEpoch>,
    },
    /// Records were not appended.
    AppendFailed {
        /// The work.
        work: WorkId,
        /// The partition.
        partition: TopicPartition,
        /// Why.
        failure: AppendFailure,
    },
    /// A log could not be cut, or its offsets not be set: it is out of service.
    LogFailed(TopicPartition, LeaderEpoch),
    /// A command was not carried out, because this broker no longer follows in its leader epoch.
    Fenced(TopicPartition, LeaderEpoch),
    /// Time has passed.
    Tick,
}

/// Why records were not appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AppendFailure {
    /// A batch is damaged: it may be whole when it is fetched again.
    Corrupt,
    /// The records begin below the log end.
    UnexpectedOffset {
        /// The first offset of the records.
        first: Offset,
        /// The last offset of the records.
        last: Offset,
    },
    /// The log or its directory has failed.
    Storage,
}

/// The answer to a Fetch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchReply {
    /// The error of the whole request.
    pub error: ErrorCode,
    /// The session, 0 if there is none.
    pub session_id: i32,
    /// Whether the leader throttles this fetcher.
    pub throttled: bool,
    /// The partitions that are named.
    pub partitions: Vec<PartitionReply>,
}

/// What a Fetch is answered about one partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionReply {
    /// The partition, named as in the request.
    pub key: PartitionKey,
    /// The error.
    pub error: ErrorCode,
    /// The leader's high watermark.
    pub high_watermark: Offset,
    /// The leader's log start.
    pub log_start: Offset,
    /// Where the logs part, if they do.
    pub diverging: Option<EpochEnd>,
    /// The number of bytes of records.
    pub records_bytes: usize,
}

/// What an OffsetsForLeaderEpoch is answered about one partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EpochReply {
    /// The partition.
    pub partition: TopicPartition,
    /// The error.
    pub error: ErrorCode,
    /// The answer. Before KIP-279 it has an end and no epoch.
    pub end: EpochEnd,
}

/// What a ListOffsets is answered about one partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListOffsetsReply {
    /// The partition.
    pub partition: TopicPartition,
    /// The error.
    pub error: ErrorCode,
    /// The offset.
    pub offset: Offset,
}

/// Which offset a ListOffsets asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The leader's log end.
    Latest,
    /// The leader's log start.
    Earliest,
}

/// A Fetch to send. Limits of time and of the whole answer are the sender's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchRequest {
    /// The number.
    pub id: RequestId,
    /// The session, 0 if there is none.
    pub session_id: i32,
    /// The epoch of the session, 0 in a full fetch.
    pub session_epoch: i32,
    /// Whether topics are named by id. If not, the version must be one that names them by name.
    pub by_id: bool,
    /// The partitions to name, in this order.
    pub partitions: Vec<(TopicPartition, Asked)>,
    /// The partitions that the session is to forget, each with the id of its topic, zero if it has none.
    pub forgotten: Vec<(TopicPartition, TopicId)>,
}

/// What is asked of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Asked {
    /// The topic's id, zero if it has none.
    pub topic_id: TopicId,
    /// The rest.
    pub fetch: FetchPartition,
}

/// One question of an OffsetsForLeaderEpoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EpochQuestion {
    /// The partition.
    pub partition: TopicPartition,
    /// The leader epoch in which this broker follows.
    pub current_leader_epoch: LeaderEpoch,
    /// The epoch whose end is asked for.
    pub epoch: LeaderEpoch,
}

/// What is to be done. Commands that concern a log are to be carried out in their order, and only while this broker
/// follows in their leader epoch; those that cannot be end with [`Event::LogFailed`] or [`Event::Fenced`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Send a Fetch; ends with [`Event::FetchReply`] or [`Event::RequestFailed`].
    SendFetch(FetchRequest),
    /// Send an OffsetsForLeaderEpoch; ends with [`Event::EpochReply`] or [`Event::RequestFailed`].
    SendOffsetsForLeaderEpoch(RequestId, Vec<EpochQuestion>),
    /// Send a ListOffsets; ends with [`Event::ListOffsetsReply`] or [`Event::RequestFailed`].
    SendListOffsets(RequestId, Target, Vec<(TopicPartition, LeaderEpoch)>),
    /// Cut a log at its end; ends with [`Event::Truncated`].
    TruncateTo(LogWork, Offset, TruncationCause),
    /// Empty a log and let it start at an offset; ends with [`Event::Truncated`].
    TruncateFullyAndStartAt(LogWork, Offset, TruncationCause),
    /// Append the partition's records of the answer under way, but no batch of a later leader epoch than that of the
    /// work, nor what follows it; ends with [`Event::Appended`] or [`Event::AppendFailed`].
    Append(LogWork),
    /// Set the high watermark, which may go back.
    SetHighWatermark(TopicPartition, LeaderEpoch, Offset),
    /// Raise the log start.
    SetLogStart(TopicPartition, LeaderEpoch, Offset),
    /// The partition is no longer fetched, and will not be until it is added again (KIP-461).
    MarkFailed(TopicPartition, Failure),
    /// Something to tell.
    Note(Note),
}

/// Which work on which log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogWork {
    /// The number.
    pub id: WorkId,
    /// The partition.
    pub partition: TopicPartition,
    /// The leader epoch in which this broker follows.
    pub leader_epoch: LeaderEpoch,
}

/// Why a partition is no longer fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The leader is in a later epoch; the controller will say so.
    Fenced,
    /// The log does not end where it was fetched from.
    UnexpectedLogEnd {
        /// The offset that was fetched from.
        fetch_offset: Offset,
        /// The log end.
        log_end: Offset,
    },
    /// The leader sent records that this log has already.
    UnexpectedRecords {
        /// The first offset of the records.
        first: Offset,
        /// The last offset of the records.
        last: Offset,
    },
    /// The log or its directory has failed.
    Storage,
}

/// Something to tell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Note {
    /// The leader answered an error; the partition is tried again after a pause.
    Refused(TopicPartition, ErrorCode),
    /// A batch was damaged; the partition is tried again after a pause.
    CorruptRecords(TopicPartition),
    /// None of the records could be appended: not one batch was whole, or all were of a later leader epoch. The
    /// partition is tried again after a pause.
    NothingAppended(TopicPartition),
    /// The log cannot be used; the partition is tried again after a pause.
    LogUnavailable(TopicPartition),
    /// The leader answered nothing about a partition that it was asked about, which is tried again after a pause.
    Unanswered(TopicPartition),
    /// The leader named a partition that it was not asked about.
    NotAsked(TopicPartition),
    /// An answer came too late: the partition was added anew or its offset moved meanwhile.
    Outdated(TopicPartition),
    /// The offset is out of range at the leader.
    OutOfRange(TopicPartition, Offset),
    /// The leader ended the fetch session; a new one is begun.
    SessionLost(ErrorCode),
    /// The leader refused the whole fetch; all partitions are tried again after a pause.
    FetchRefused(ErrorCode),
    /// The answer does not name the partitions of its session; all are tried again after a pause.
    SessionMismatch,
}
