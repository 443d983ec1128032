//! Calls to the coordinator of a group, as consumers and administrators make them, and all that it tells of groups.
//!
//! A coordinator that is being looked for, or that loads, is asked again.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use kafka_protocol::messages::describe_groups_response::DescribedGroup;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::offset_fetch_response::OffsetFetchResponseGroup;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, FindCoordinatorRequest, GroupId, HeartbeatRequest,
    JoinGroupRequest, ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
    SyncGroupRequest,
};
use kafka_protocol::protocol::{Request, StrBytes};

use crate::calls::{SERVE_LIMIT, topic_name};
use crate::raw::Connection;
use crate::wait;

/// COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS: what a client asks
/// again after.
const NOT_YET: [i16; 4] = [14, 15, 16, 51];

/// Longer than any test.
const SESSION_MS: i32 = 600_000;

/// A static member, alone in its group.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its group.
    pub group: &'static str,
    /// What it is known by over restarts.
    pub instance: &'static str,
    /// What the coordinator calls it.
    pub id: StrBytes,
    /// The generation that it is a member of.
    pub generation: i32,
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// The id of a group for the crate `kafka-protocol`.
#[must_use]
pub fn group_id(group: &str) -> GroupId {
    GroupId(text(group))
}

/// Asks until the coordinator serves; `errors` are all those of an answer.
///
/// # Errors
/// When an answer has any other error, or the coordinator does not serve in time.
pub fn ask<R: Request>(
    connection: &mut Connection,
    version: i16,
    request: &R,
    errors: impl Fn(&R::Response) -> Vec<i16>,
) -> Result<R::Response> {
    wait::until("an answer of a coordinator", SERVE_LIMIT, || {
        let response = connection.call(version, request)?;
        let errors = errors(&response);
        if errors.iter().any(|error| NOT_YET.contains(error)) {
            return Ok(None);
        }
        ensure!(errors.iter().all(|error| *error == 0), "key {}: errors {errors:?}", R::KEY);
        Ok(Some(response))
    })
}

/// Waits until the group has a coordinator, for which the topic of offsets is made if need be.
///
/// # Errors
/// When it has none in time.
pub fn find_coordinator(connection: &mut Connection, group: &str) -> Result<()> {
    let request = FindCoordinatorRequest::default().with_key(text(group)).with_key_type(0);
    ask(connection, 3, &request, |it| vec![it.error_code]).map(drop)
}

/// Offsets of partitions of a topic, by a consumer that is no member of the group.
#[must_use]
pub fn commit_request(
    group: &str,
    topic: &str,
    offsets: &[(i32, i64)],
    metadata: &str,
) -> OffsetCommitRequest {
    let partitions = offsets.iter().map(|(partition, offset)| {
        OffsetCommitRequestPartition::default()
            .with_partition_index(*partition)
            .with_committed_offset(*offset)
            .with_committed_leader_epoch(0)
            .with_committed_metadata(Some(text(metadata)))
    });
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(partitions.collect());
    OffsetCommitRequest::default()
        .with_group_id(group_id(group))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic])
}

/// Commits.
///
/// # Errors
/// When the coordinator refuses any of the offsets.
pub fn commit(connection: &mut Connection, version: i16, request: &OffsetCommitRequest) -> Result<()> {
    let errors = |response: &<OffsetCommitRequest as Request>::Response| {
        response.topics.iter().flat_map(|topic| &topic.partitions).map(|it| it.error_code).collect()
    };
    ask(connection, version, request, errors).map(drop)
}

/// Deletes the offset of one partition.
///
/// # Errors
/// When the coordinator refuses.
pub fn delete_offset(connection: &mut Connection, group: &str, topic: &str, partition: i32) -> Result<()> {
    let partition = OffsetDeleteRequestPartition::default().with_partition_index(partition);
    let topic =
        OffsetDeleteRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    let request = OffsetDeleteRequest::default().with_group_id(group_id(group)).with_topics(vec![topic]);
    let errors = |response: &<OffsetDeleteRequest as Request>::Response| {
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.map(|it| it.error_code).chain([response.error_code]).collect()
    };
    ask(connection, 0, &request, errors).map(drop)
}

/// Deletes a group.
///
/// # Errors
/// When the coordinator refuses.
pub fn delete_group(connection: &mut Connection, group: &str) -> Result<()> {
    let request = DeleteGroupsRequest::default().with_groups_names(vec![group_id(group)]);
    ask(connection, 2, &request, |it| it.results.iter().map(|group| group.error_code).collect()).map(drop)
}

impl Member {
    /// Who has not joined yet.
    #[must_use]
    pub fn new(group: &'static str, instance: &'static str) -> Self {
        Self { group, instance, id: StrBytes::default(), generation: -1 }
    }

    /// Joins, again if it is a member, leads the group, and gives itself `assignment`.
    ///
    /// # Errors
    /// When the coordinator refuses.
    pub fn join(&mut self, connection: &mut Connection, subscription: &str, assignment: &str) -> Result<()> {
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(text("range"))
            .with_metadata(Bytes::from(subscription.to_owned()));
        let request = JoinGroupRequest::default()
            .with_group_id(group_id(self.group))
            .with_session_timeout_ms(SESSION_MS)
            .with_rebalance_timeout_ms(SESSION_MS)
            .with_member_id(self.id.clone())
            .with_group_instance_id(Some(text(self.instance)))
            .with_protocol_type(text("test"))
            .with_protocols(vec![protocol]);
        let joined = ask(connection, 5, &request, |it| vec![it.error_code])?;
        ensure!(joined.leader == joined.member_id, "a member that is alone does not lead: {joined:?}");
        (self.id, self.generation) = (joined.member_id, joined.generation_id);
        let assignment = SyncGroupRequestAssignment::default()
            .with_member_id(self.id.clone())
            .with_assignment(Bytes::from(assignment.to_owned()));
        let request = SyncGroupRequest::default()
            .with_group_id(group_id(self.group))
            .with_generation_id(self.generation)
            .with_member_id(self.id.clone())
            .with_group_instance_id(Some(text(self.instance)))
            .with_assignments(vec![assignment]);
        ask(connection, 3, &request, |it| vec![it.error_code]).map(drop)
    }

    /// Says that it is alive.
    ///
    /// # Errors
    /// When the coordinator does not know it, or not in this generation.
    pub fn heartbeat(&self, connection: &mut Connection) -> Result<()> {
        let request = HeartbeatRequest::default()
            .with_group_id(group_id(self.group))
            .with_generation_id(self.generation)
            .with_member_id(self.id.clone())
            .with_group_instance_id(Some(text(self.instance)));
        ask(connection, 3, &request, |it| vec![it.error_code]).map(drop)
    }

    /// Commits as a member of its generation.
    ///
    /// # Errors
    /// When the coordinator refuses.
    pub fn commit(&self, connection: &mut Connection, topic: &str, offsets: &[(i32, i64)]) -> Result<()> {
        let request = commit_request(self.group, topic, offsets, self.instance)
            .with_generation_id_or_member_epoch(self.generation)
            .with_member_id(self.id.clone())
            .with_group_instance_id(Some(text(self.instance)));
        commit(connection, 8, &request)
    }
}

/// All that is told of groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// All groups of the broker, by id.
    pub listed: Vec<ListedGroup>,
    /// The groups that were asked for.
    pub described: Vec<DescribedGroup>,
    /// All their offsets, by topic and partition.
    pub offsets: Vec<OffsetFetchResponseGroup>,
}

impl Told {
    /// Asks for all offsets of `groups`, describes them, and lists all groups of the broker.
    ///
    /// # Errors
    /// When an answer has an error, or the coordinators do not serve in time.
    pub fn of(bootstrap: &str, groups: &[&str]) -> Result<Self> {
        let mut connection = Connection::open(bootstrap)?;
        let request = DescribeGroupsRequest::default()
            .with_groups(groups.iter().map(|group| group_id(group)).collect());
        let errors = |it: &<DescribeGroupsRequest as Request>::Response| {
            it.groups.iter().map(|group| group.error_code).collect()
        };
        let mut described = ask(&mut connection, 5, &request, errors)?.groups;
        described.sort_by(|a, b| a.group_id.cmp(&b.group_id));
        let groups = groups
            .iter()
            .map(|group| OffsetFetchRequestGroup::default().with_group_id(group_id(group)).with_topics(None));
        let request = OffsetFetchRequest::default().with_groups(groups.collect()).with_require_stable(true);
        let errors = |it: &<OffsetFetchRequest as Request>::Response| {
            it.groups.iter().map(|group| group.error_code).collect()
        };
        let mut offsets = ask(&mut connection, 8, &request, errors)?.groups;
        offsets.sort_by(|a, b| a.group_id.cmp(&b.group_id));
        for group in &mut offsets {
            group.topics.sort_by(|a, b| a.name.cmp(&b.name));
            for topic in &mut group.topics {
                topic.partitions.sort_by_key(|it| it.partition_index);
            }
        }
        let request = ListGroupsRequest::default();
        let mut listed = ask(&mut connection, 5, &request, |it| vec![it.error_code])?.groups;
        listed.sort_by(|a, b| a.group_id.cmp(&b.group_id));
        Ok(Self { listed, described, offsets })
    }

    /// The offset and metadata of a partition of a group that was asked for; none if there are none.
    ///
    /// # Errors
    /// When the group was not asked for.
    pub fn offset(&self, group: &str, topic: &str, partition: i32) -> Result<Option<(i64, String)>> {
        let group =
            self.offsets.iter().find(|it| it.group_id.0.as_str() == group).context("no such group")?;
        let topic = group.topics.iter().find(|it| it.name.0.as_str() == topic);
        let mut partitions = topic.into_iter().flat_map(|topic| &topic.partitions);
        let found = partitions.find(|it| it.partition_index == partition && it.committed_offset >= 0);
        Ok(found.map(|it| {
            (it.committed_offset, it.metadata.as_ref().map(|it| it.to_string()).unwrap_or_default())
        }))
    }

    /// Wants all to be the same; names what is not.
    ///
    /// # Errors
    /// When something differs.
    pub fn same(&self, after: &Self) -> Result<()> {
        let differs = |what: &str, before: String, after: String| {
            ensure!(before == after, "{what} before:\n{before}\nand after:\n{after}");
            Ok(())
        };
        let listed = |told: &Self| told.listed.iter().map(|it| format!("{it:?}\n")).collect();
        differs("all groups", listed(self), listed(after))?;
        for (before, after) in self.described.iter().zip(&after.described) {
            differs("a group", format!("{before:#?}"), format!("{after:#?}"))?;
        }
        for (before, after) in self.offsets.iter().zip(&after.offsets) {
            differs("offsets", format!("{before:#?}"), format!("{after:#?}"))?;
        }
        ensure!(self == after, "another number of groups");
        Ok(())
    }
}
