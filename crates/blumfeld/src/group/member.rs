//! A member of a group: it joins, shares the partitions if it is the leader, beats, and leaves.
//!
//! The coordinator parks a join until all members are there, so each member has a connection of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::join_group_request::JoinGroupRequestProtocol;
use wire::messages::leave_group_request::MemberIdentity;
use wire::messages::sync_group_request::SyncGroupRequestAssignment;
use wire::messages::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, SyncGroupRequest, SyncGroupResponse,
};
use wire::types::{Offset, TopicPartition};

use super::assign::{Assignor, Reader};
use super::coordinator::{Committer, Coordinator};
use super::embedded::{Wanted, decode_assignment, encode_assignment};
use crate::cluster::{Cluster, ClusterError, Topics};

/// The protocol type of consumers.
const CONSUMER: Str = Str::from_static("consumer");
/// The version of LeaveGroup that names several members.
const BATCHED_LEAVE: i16 = 3;
/// Time that a join may take beyond the time of a rebalance.
const JOIN_GRACE: Duration = Duration::from_secs(5);

/// How a member takes part.
#[derive(Clone, Debug)]
pub(crate) struct MemberSettings {
    /// `group.id`
    pub(crate) group: String,
    /// `group.instance.id`: a static member, which does not leave when it ends.
    pub(crate) instance: Option<String>,
    /// `session.timeout.ms`
    pub(crate) session_timeout: Duration,
    /// `max.poll.interval.ms`: how long a rebalance may wait for a member.
    pub(crate) rebalance_timeout: Duration,
    /// `partition.assignment.strategy`
    pub(crate) assignors: Vec<Assignor>,
}

/// What the coordinator says to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// All is well.
    Fine,
    /// Others come or go: join again.
    Rejoin,
    /// The member is not known any more: give up what it had, and join anew.
    Lost,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Member {
    coordinator: Coordinator,
    settings: MemberSettings,
    id: String,
    generation: i32,
    leads: bool,
    /// Topics and numbers of partitions that the leader has shared.
    shared: BTreeMap<String, i32>,
}

impl Member {
    /// A member that has not joined yet. `cluster` is for it alone.
    pub(crate) fn new(cluster: Cluster, settings: MemberSettings) -> Self {
        let coordinator = Coordinator::new(cluster, &settings.group);
        Self {
            coordinator,
            settings,
            id: String::new(),
            generation: -1,
            leads: false,
            shared: BTreeMap::new(),
        }
    }

    /// The coordinator, for offsets.
    pub(crate) fn coordinator(&mut self) -> &mut Coordinator {
        &mut self.coordinator
    }

    /// Joins with these topics, and waits for what it is assigned.
    ///
    /// # Errors
    /// If the group refuses the member, or the coordinator is not found in time.
    pub(crate) async fn join(
        &mut self,
        topics: &BTreeSet<String>,
    ) -> Result<Vec<TopicPartition>, ClusterError> {
        loop {
            let response = self.send_join(topics).await?;
            let code = ErrorCode::from_code(response.error_code).unwrap_or(ErrorCode::UnknownServerError);
            match code {
                ErrorCode::None => {}
                ErrorCode::MemberIdRequired => {
                    self.id = response.member_id.as_str().to_owned();
                    continue;
                }
                ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration => {
                    self.forget();
                    continue;
                }
                ErrorCode::RebalanceInProgress => {
                    tokio::time::sleep(self.coordinator.cluster().settings().retry_backoff).await;
                    continue;
                }
                _ => return Err(self.refused("joining", response.error_code)),
            }
            if let Some(assigned) = self.sync(response).await? {
                return Ok(assigned);
            }
        }
    }

    async fn send_join(&mut self, topics: &BTreeSet<String>) -> Result<JoinGroupResponse, ClusterError> {
        let wanted = Wanted { topics: topics.iter().cloned().collect() };
        let metadata = encoded(wanted.encode())?;
        let protocol = |assignor: &Assignor| JoinGroupRequestProtocol {
            name: Str::from(assignor.name()),
            metadata: metadata.clone(),
        };
        let settings = self.settings.clone();
        let id = self.id.clone();
        let request = |_: i16| JoinGroupRequest {
            group_id: Str::from(settings.group.as_str()),
            session_timeout_ms: millis(settings.session_timeout),
            rebalance_timeout_ms: millis(settings.rebalance_timeout),
            member_id: Str::from(id.as_str()),
            group_instance_id: settings.instance.as_deref().map(Str::from),
            protocol_type: CONSUMER,
            protocols: settings.assignors.iter().map(protocol).collect(),
            ..Default::default()
        };
        let patience = settings.rebalance_timeout + JOIN_GRACE;
        self.coordinator.call(request, patience, |response: &JoinGroupResponse| response.error_code).await
    }

    /// Gives or takes the assignment; `None` if the member must join again.
    async fn sync(&mut self, joined: JoinGroupResponse) -> Result<Option<Vec<TopicPartition>>, ClusterError> {
        self.id = joined.member_id.as_str().to_owned();
        self.generation = joined.generation_id;
        self.leads = joined.leader == joined.member_id;
        let protocol = joined.protocol_name.as_ref().map(Str::as_str).unwrap_or_default().to_owned();
        let assignments = if self.leads && !joined.skip_assignment {
            self.share(&protocol, &joined).await?
        } else {
            Vec::new()
        };
        let settings = self.settings.clone();
        let (id, generation) = (self.id.clone(), self.generation);
        let request = |_: i16| SyncGroupRequest {
            group_id: Str::from(settings.group.as_str()),
            generation_id: generation,
            member_id: Str::from(id.as_str()),
            group_instance_id: settings.instance.as_deref().map(Str::from),
            protocol_type: Some(CONSUMER),
            protocol_name: Some(Str::from(protocol.as_str())),
            assignments: assignments.clone(),
        };
        let patience = settings.rebalance_timeout + JOIN_GRACE;
        let code = |response: &SyncGroupResponse| response.error_code;
        let response = self.coordinator.call(request, patience, code).await?;
        match ErrorCode::from_code(response.error_code).unwrap_or(ErrorCode::UnknownServerError) {
            ErrorCode::None => Ok(Some(decoded(decode_assignment(response.assignment))?)),
            ErrorCode::RebalanceInProgress => Ok(None),
            ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration => {
                self.forget();
                Ok(None)
            }
            _ => Err(self.refused("the assignment", response.error_code)),
        }
    }

    /// As the leader, shares the partitions of the topics that the members want.
    async fn share(
        &mut self,
        protocol: &str,
        joined: &JoinGroupResponse,
    ) -> Result<Vec<SyncGroupRequestAssignment>, ClusterError> {
        let assignor = Assignor::of_name(protocol).unwrap_or_default();
        let mut readers = Vec::new();
        for member in &joined.members {
            readers.push(Reader {
                member: member.member_id.as_str().to_owned(),
                instance: member.group_instance_id.as_ref().map(|id| id.as_str().to_owned()),
                topics: decoded(Wanted::decode(member.metadata.clone()))?.topics,
            });
        }
        let topics: BTreeSet<String> = readers.iter().flat_map(|reader| reader.topics.clone()).collect();
        self.shared = counts(self.coordinator.cluster(), &topics).await?;
        let mut assignments = Vec::new();
        for (member, partitions) in assignor.assign(&readers, &self.shared) {
            assignments.push(SyncGroupRequestAssignment {
                member_id: Str::from(member.as_str()),
                assignment: encoded(encode_assignment(&partitions))?,
            });
        }
        Ok(assignments)
    }

    /// Whether this member leads, and the topics have other partitions now than those it has shared.
    ///
    /// # Errors
    /// If no broker answers.
    pub(crate) async fn must_share_anew(&mut self) -> Result<bool, ClusterError> {
        if !self.leads || self.shared.is_empty() {
            return Ok(false);
        }
        let topics: BTreeSet<String> = self.shared.keys().cloned().collect();
        let counts = counts(self.coordinator.cluster(), &topics).await?;
        Ok(counts != self.shared)
    }

    /// Tells the coordinator that the member lives.
    ///
    /// # Errors
    /// If another process has taken its `group.instance.id`, or the coordinator is not found in time.
    pub(crate) async fn beat(&mut self) -> Result<Beat, ClusterError> {
        let settings = self.settings.clone();
        let (id, generation) = (self.id.clone(), self.generation);
        let request = |_: i16| HeartbeatRequest {
            group_id: Str::from(settings.group.as_str()),
            generation_id: generation,
            member_id: Str::from(id.as_str()),
            group_instance_id: settings.instance.as_deref().map(Str::from),
        };
        let code = |response: &HeartbeatResponse| response.error_code;
        let response = self.coordinator.call(request, Duration::ZERO, code).await?;
        match ErrorCode::from_code(response.error_code).unwrap_or(ErrorCode::UnknownServerError) {
            ErrorCode::None => Ok(Beat::Fine),
            ErrorCode::RebalanceInProgress => Ok(Beat::Rejoin),
            ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration => {
                self.forget();
                Ok(Beat::Lost)
            }
            _ => Err(self.refused("a heartbeat", response.error_code)),
        }
    }

    /// Commits offsets as this member. What is not committed since the group goes on without this member, or is
    /// about to change, is left to the next owner: those partitions are in the answer with their codes.
    ///
    /// # Errors
    /// If the coordinator is not found in time.
    pub(crate) async fn commit(
        &mut self,
        offsets: &BTreeMap<TopicPartition, Offset>,
    ) -> Result<BTreeMap<TopicPartition, i16>, ClusterError> {
        if offsets.is_empty() {
            return Ok(BTreeMap::new());
        }
        let by = Committer {
            member: self.id.clone(),
            instance: self.settings.instance.clone(),
            generation: self.generation,
        };
        self.coordinator.commit(&by, offsets).await
    }

    /// Leaves the group, so that others need not wait for the end of the session. A static member stays.
    ///
    /// # Errors
    /// If the coordinator is not found in time.
    pub(crate) async fn leave(&mut self) -> Result<(), ClusterError> {
        if self.id.is_empty() || self.settings.instance.is_some() {
            return Ok(());
        }
        let group = Str::from(self.settings.group.as_str());
        let member_id = Str::from(self.id.as_str());
        let request = |version: i16| {
            if version < BATCHED_LEAVE {
                return LeaveGroupRequest {
                    group_id: group.clone(),
                    member_id: member_id.clone(),
                    ..Default::default()
                };
            }
            let reason = Some(Str::from_static("the consumer is being closed"));
            let member = MemberIdentity { member_id: member_id.clone(), group_instance_id: None, reason };
            LeaveGroupRequest { group_id: group.clone(), members: vec![member], ..Default::default() }
        };
        let code = |response: &LeaveGroupResponse| response.error_code;
        self.coordinator.call(request, Duration::ZERO, code).await?;
        self.forget();
        Ok(())
    }

    fn forget(&mut self) {
        self.id.clear();
        self.generation = -1;
        self.leads = false;
    }

    fn refused(&self, what: &str, code: i16) -> ClusterError {
        let hint = match ErrorCode::from_code(code) {
            Some(ErrorCode::FencedInstanceId) => {
                Some("another process uses the same group.instance.id; give each its own")
            }
            Some(ErrorCode::InconsistentGroupProtocol) => Some(
                "the other members of the group share partitions in a way that this one does not know; \
                 this tool knows range and roundrobin",
            ),
            Some(ErrorCode::InvalidSessionTimeout) => Some(
                "session.timeout.ms lies outside the broker's group.min.session.timeout.ms and \
                 group.max.session.timeout.ms",
            ),
            _ => None,
        };
        ClusterError::refused(format!("{what} in group {}", self.settings.group), code, hint)
    }
}

/// The numbers of partitions of topics, as far as they exist.
async fn counts(
    cluster: &mut Cluster,
    topics: &BTreeSet<String>,
) -> Result<BTreeMap<String, i32>, ClusterError> {
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    let metadata = cluster.metadata(Topics::Several(&names)).await?;
    let there = metadata.topics.into_iter().filter(|topic| topic.error_code == 0);
    let count = there.map(|topic| {
        let name = topic.name.as_deref().unwrap_or_default().to_owned();
        (name, i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX))
    });
    Ok(count.collect())
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

fn encoded(bytes: Result<Bytes, wire::EncodeError>) -> Result<Bytes, ClusterError> {
    bytes.map_err(|error| ClusterError::Client { address: "the coordinator".to_owned(), error: error.into() })
}

fn decoded<T>(value: Result<T, wire::DecodeError>) -> Result<T, ClusterError> {
    value.map_err(|error| ClusterError::Client { address: "the coordinator".to_owned(), error: error.into() })
}
