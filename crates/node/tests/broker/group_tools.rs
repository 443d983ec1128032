//! Members of groups, as their requests.

use std::sync::mpsc::Receiver;

use bytes::Bytes;
use node::call::Outcome;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::join_group_request::JoinGroupRequestProtocol;
use wire::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use wire::messages::offset_fetch_request::OffsetFetchRequestTopic;
use wire::messages::sync_group_request::SyncGroupRequestAssignment;
use wire::messages::{
    FindCoordinatorRequest, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, OffsetCommitRequest,
    OffsetFetchRequest, OffsetFetchResponse, SyncGroupRequest, SyncGroupResponse,
};

use crate::harness::{Node, answer, frame};

/// The newest version of JoinGroup.
pub(crate) const JOIN: i16 = 9;
/// The newest version of SyncGroup.
pub(crate) const SYNC: i16 = 5;
/// A group's topic of offsets has so many partitions here.
pub(crate) const PARTITIONS: i32 = 4;
/// Rebalances of new groups end at once.
pub(crate) const NO_DELAY: (&str, &str) = ("group.initial.rebalance.delay.ms", "0");

pub(crate) fn code(code: i16) -> ErrorCode {
    ErrorCode::from_code(code).unwrap()
}

/// A subscription of version 0 to one topic.
pub(crate) fn subscription(topic: &str) -> Bytes {
    let mut bytes = vec![0, 0, 0, 0, 0, 1];
    bytes.extend(u16::try_from(topic.len()).unwrap().to_be_bytes());
    bytes.extend(topic.as_bytes());
    bytes.extend([0xff; 4]);
    Bytes::from(bytes)
}

/// A consumer of topic `t` joins; an empty id asks for one.
pub(crate) fn join_request(group: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: Str::from(group),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        member_id: Str::from(member_id),
        protocol_type: Str::from("consumer"),
        protocols: vec![JoinGroupRequestProtocol { name: Str::from("range"), metadata: subscription("t") }],
        ..JoinGroupRequest::default()
    }
}

/// A broker with topic `t` of two partitions and a topic of offsets, and with these settings.
pub(crate) fn coordinator(settings: &[(&str, &str)]) -> Node {
    let mut settings = settings.to_vec();
    settings.push(NO_DELAY);
    let node = Node::start(&settings);
    node.create_topic("t", 2, &[]);
    node.create_topic("__consumer_offsets", PARTITIONS, &[("cleanup.policy", "compact")]);
    node
}

impl Node {
    /// The groups of `g`'s partition are being loaded, or cannot be: members neither give up nor look elsewhere.
    pub(crate) fn keeps_members_waiting(&self) {
        assert_eq!(self.committed("g"), Err(ErrorCode::CoordinatorLoadInProgress));
        assert_eq!(self.commit("g", 7), ErrorCode::CoordinatorLoadInProgress);
        assert_eq!(self.heartbeat("g", "m", 1), ErrorCode::None);
        let told = synced(&self.begin_to_sync("g", "m", 1, &[]));
        assert_eq!(code(told.error_code), ErrorCode::RebalanceInProgress);
    }

    /// Asks who coordinates a group: its error and the broker.
    pub(crate) fn find_coordinator(&self, group: &str) -> (ErrorCode, i32) {
        let request = FindCoordinatorRequest {
            coordinator_keys: vec![Str::from(group)],
            ..FindCoordinatorRequest::default()
        };
        let response = self.call(4, &request);
        let it = &response.coordinators[0];
        assert_eq!(it.key, Str::from(group));
        (code(it.error_code), it.node_id)
    }

    /// Begins to join; the answer comes when all have.
    pub(crate) fn begin_to_join(&self, request: &JoinGroupRequest) -> Receiver<Outcome> {
        self.submit(frame(JOIN, request))
    }

    /// Joins in two steps, and waits for the answer.
    pub(crate) fn join(&self, group: &str) -> JoinGroupResponse {
        let id = self.member_id(group);
        joined(&self.begin_to_join(&join_request(group, &id)))
    }

    /// The id that a new member is given.
    pub(crate) fn member_id(&self, group: &str) -> String {
        let response: JoinGroupResponse = self.call(JOIN, &join_request(group, ""));
        assert_eq!(code(response.error_code), ErrorCode::MemberIdRequired);
        assert!(response.member_id.starts_with("test-"), "{}", response.member_id);
        response.member_id.to_string()
    }

    /// Begins to sync; the leader names the parts.
    pub(crate) fn begin_to_sync(
        &self,
        group: &str,
        member_id: &str,
        generation: i32,
        parts: &[(&str, &[u8])],
    ) -> Receiver<Outcome> {
        let assignments = parts.iter().map(|(member_id, part)| SyncGroupRequestAssignment {
            member_id: Str::from(*member_id),
            assignment: Bytes::copy_from_slice(part),
        });
        let request = SyncGroupRequest {
            group_id: Str::from(group),
            generation_id: generation,
            member_id: Str::from(member_id),
            protocol_type: Some(Str::from("consumer")),
            protocol_name: Some(Str::from("range")),
            assignments: assignments.collect(),
            ..SyncGroupRequest::default()
        };
        self.submit(frame(SYNC, &request))
    }

    /// Makes a group with one member, which has its part: member id and generation.
    pub(crate) fn stable_group(&self, group: &str) -> (String, i32) {
        let it = self.join(group);
        assert_eq!(code(it.error_code), ErrorCode::None);
        let id = it.member_id.to_string();
        let synced = synced(&self.begin_to_sync(group, &id, it.generation_id, &[(&id, b"part")]));
        assert_eq!((code(synced.error_code), &synced.assignment[..]), (ErrorCode::None, &b"part"[..]));
        (id, it.generation_id)
    }

    pub(crate) fn heartbeat(&self, group: &str, member_id: &str, generation: i32) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: Str::from(group),
            generation_id: generation,
            member_id: Str::from(member_id),
            ..HeartbeatRequest::default()
        };
        code(self.call(4, &request).error_code)
    }

    /// Begins to commit an offset.
    pub(crate) fn begin_to_commit(&self, version: i16, request: &OffsetCommitRequest) -> Receiver<Outcome> {
        self.submit(frame(version, request))
    }

    /// Commits an offset of partition 0 of `t` for nobody in particular.
    pub(crate) fn commit(&self, group: &str, offset: i64) -> ErrorCode {
        self.commit_as(8, &commit_request(group, "t", 0, offset))
    }

    /// Commits one offset.
    pub(crate) fn commit_as(&self, version: i16, request: &OffsetCommitRequest) -> ErrorCode {
        code(self.call(version, request).topics[0].partitions[0].error_code)
    }

    /// The committed offset of partition 0 of `t`, or the group's error.
    pub(crate) fn committed(&self, group: &str) -> Result<i64, ErrorCode> {
        let response = self.fetch_offsets(7, group, Some(&[("t", &[0])]));
        match code(response.error_code) {
            ErrorCode::None => Ok(response.topics[0].partitions[0].committed_offset),
            error => Err(error),
        }
    }

    /// Fetches offsets in a version below 8; no topics ask for all.
    pub(crate) fn fetch_offsets(
        &self,
        version: i16,
        group: &str,
        topics: Option<&[(&str, &[i32])]>,
    ) -> OffsetFetchResponse {
        let topics = topics.map(|all| {
            let of = |(name, indexes): &(&str, &[i32])| OffsetFetchRequestTopic {
                name: Str::from(*name),
                partition_indexes: indexes.to_vec(),
            };
            all.iter().map(of).collect()
        });
        self.call(
            version,
            &OffsetFetchRequest { group_id: Str::from(group), topics, ..OffsetFetchRequest::default() },
        )
    }
}

/// The answer to a JoinGroup.
pub(crate) fn joined(answered: &Receiver<Outcome>) -> JoinGroupResponse {
    answer(answered, JOIN)
}

/// The answer to a SyncGroup.
pub(crate) fn synced(answered: &Receiver<Outcome>) -> SyncGroupResponse {
    answer(answered, SYNC)
}

/// A commit of one offset for nobody in particular.
pub(crate) fn commit_request(group: &str, topic: &str, partition: i32, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition {
        partition_index: partition,
        committed_offset: offset,
        committed_metadata: Some(Str::from("note")),
        ..OffsetCommitRequestPartition::default()
    };
    OffsetCommitRequest {
        group_id: Str::from(group),
        topics: vec![OffsetCommitRequestTopic { name: Str::from(topic), partitions: vec![partition] }],
        ..OffsetCommitRequest::default()
    }
}
