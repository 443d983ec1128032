//! Ten members of a group that one thread drives, a connection each: they join together, and then send heartbeats and
//! commits.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use interop::calls;
use interop::raw::Connection;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{HeartbeatRequest, JoinGroupRequest, OffsetCommitRequest, SyncGroupRequest};
use kafka_protocol::protocol::{Request, StrBytes};

use super::TOPIC;
use super::seen::group_id;

const MEMBERS: usize = 10;
/// The last one in which a member joins without an id of the coordinator's.
const JOIN_VERSION: i16 = 3;
const SYNC_VERSION: i16 = 2;
const HEARTBEAT_VERSION: i16 = 2;
const COMMIT_VERSION: i16 = 6;
const SESSION_MS: i32 = 30_000;
const REBALANCE_MS: i32 = 10_000;

/// See the module.
pub(crate) struct Tenth {
    name: String,
    members: Vec<Member>,
    /// 0 before they have joined.
    generation: i32,
}

#[derive(Default)]
struct Member {
    connection: Option<Connection>,
    id: StrBytes,
}

impl Tenth {
    /// Members that have not joined yet.
    pub(crate) fn new(name: &str) -> Self {
        let members = (0..MEMBERS).map(|_| Member::default()).collect();
        Self { name: name.to_owned(), members, generation: 0 }
    }

    pub(crate) fn generation(&self) -> i32 {
        self.generation
    }

    /// Connects all of them to their coordinator; those that have never joined do so.
    pub(crate) fn connect(&mut self, coordinator: &str) -> Result<()> {
        for member in &mut self.members {
            member.connection = Some(Connection::open(coordinator)?);
        }
        if self.generation == 0 { self.join() } else { Ok(()) }
    }

    fn join(&mut self) -> Result<()> {
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(StrBytes::from_static_str("range"))
            .with_metadata(Bytes::from_static(b"all"));
        let request = JoinGroupRequest::default()
            .with_group_id(group_id(&self.name))
            .with_session_timeout_ms(SESSION_MS)
            .with_rebalance_timeout_ms(REBALANCE_MS)
            .with_protocol_type(StrBytes::from_static_str("consumer"))
            .with_protocols(vec![protocol]);
        self.members.iter_mut().try_for_each(|it| it.ask(JOIN_VERSION, &request))?;
        let (mut generation, mut parts) = (0, Vec::new());
        for member in &mut self.members {
            let joined = member.answer::<JoinGroupRequest>(JOIN_VERSION)?;
            ensure!(joined.error_code == 0, "JoinGroup: error {}", joined.error_code);
            generation = joined.generation_id;
            member.id = joined.member_id;
            parts.extend(joined.members.into_iter().map(|it| it.member_id));
        }
        ensure!(parts.len() == MEMBERS, "{} members have joined", parts.len());
        self.sync(generation, parts)?;
        self.generation = generation;
        Ok(())
    }

    /// Any member may bring the parts; only the leader's count.
    fn sync(&mut self, generation: i32, parts: Vec<StrBytes>) -> Result<()> {
        let part = |id| {
            let part = SyncGroupRequestAssignment::default().with_member_id(id);
            part.with_assignment(Bytes::from_static(b"some"))
        };
        let request = SyncGroupRequest::default()
            .with_group_id(group_id(&self.name))
            .with_generation_id(generation)
            .with_assignments(parts.into_iter().map(part).collect());
        for member in &mut self.members {
            member.ask(SYNC_VERSION, &request.clone().with_member_id(member.id.clone()))?;
        }
        for member in &mut self.members {
            let code = member.answer::<SyncGroupRequest>(SYNC_VERSION)?.error_code;
            ensure!(code == 0, "SyncGroup: error {code}");
        }
        Ok(())
    }

    /// A heartbeat of each, and the first one's commit; whether all were welcome.
    pub(crate) fn beat_and_commit(&mut self, offset: i64) -> Result<bool> {
        let beat = HeartbeatRequest::default()
            .with_group_id(group_id(&self.name))
            .with_generation_id(self.generation);
        for member in &mut self.members {
            member.ask(HEARTBEAT_VERSION, &beat.clone().with_member_id(member.id.clone()))?;
        }
        let mut all = true;
        for member in &mut self.members {
            all &= member.answer::<HeartbeatRequest>(HEARTBEAT_VERSION)?.error_code == 0;
        }
        if !all {
            return Ok(false);
        }
        let partition = OffsetCommitRequestPartition::default().with_committed_offset(offset);
        let topic = OffsetCommitRequestTopic::default()
            .with_name(calls::topic_name(TOPIC))
            .with_partitions(vec![partition]);
        let first = self.members.first_mut().context("no members")?;
        let commit = OffsetCommitRequest::default()
            .with_group_id(group_id(&self.name))
            .with_generation_id_or_member_epoch(self.generation)
            .with_member_id(first.id.clone())
            .with_topics(vec![topic]);
        first.ask(COMMIT_VERSION, &commit)?;
        let committed = first.answer::<OffsetCommitRequest>(COMMIT_VERSION)?;
        Ok(committed.topics.iter().flat_map(|it| &it.partitions).all(|it| it.error_code == 0))
    }
}

impl Member {
    fn connection(&mut self) -> Result<&mut Connection> {
        self.connection.as_mut().context("not connected")
    }

    fn ask(&mut self, version: i16, request: &impl Request) -> Result<()> {
        self.connection()?.ask(version, request)
    }

    fn answer<R: Request>(&mut self, version: i16) -> Result<R::Response> {
        self.connection()?.answer::<R>(version)
    }
}
