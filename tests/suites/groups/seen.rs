//! What can be seen of a group from outside: how far partitions reach, what is committed, who coordinates, and in which
//! generation the members are.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use interop::calls::{describe_topic, end_offset};
use interop::clients::Client;
use interop::raw::Connection;
use interop::wait;
use kafka_protocol::messages::describe_groups_response::DescribedGroupMember;
use kafka_protocol::messages::{
    DescribeGroupsRequest, FindCoordinatorRequest, GroupId, HeartbeatRequest, OffsetFetchRequest,
};
use kafka_protocol::protocol::StrBytes;

use super::member::{Member, Place};
use super::{COUNT, GROUP, LIMIT, PARTITIONS, TOPIC};

/// As many generations as a test can have.
const GENERATIONS: i32 = 200;
pub(crate) const NONE: i16 = 0;

pub(crate) fn group_id(name: &str) -> GroupId {
    GroupId(StrBytes::from_string(name.to_owned()))
}

/// The id of the broker that coordinates the shared topic's group, and its address, as the broker at `asked` has it.
pub(crate) fn coordinator(asked: &str) -> Result<(i32, String)> {
    coordinator_of(GROUP, asked)
}

/// The id of the broker that coordinates a group, and its address, as the broker at `asked` has it.
pub(crate) fn coordinator_of(group: &str, asked: &str) -> Result<(i32, String)> {
    let request = FindCoordinatorRequest::default().with_key(group_id(group).0);
    let response = Connection::open(asked)?.call(2, &request)?;
    ensure!(response.error_code == NONE, "no coordinator yet: error {}", response.error_code);
    Ok((response.node_id.0, format!("{}:{}", response.host, response.port)))
}

/// The end of each partition, as its leader has it.
pub(crate) fn ends(asked: &str) -> Result<Vec<i64>> {
    let request = kafka_protocol::messages::MetadataRequest::default().with_topics(Some(Vec::new()));
    let mut connection = Connection::open(asked)?;
    let brokers = connection.call(5, &request)?.brokers;
    let mut ends = vec![-1; PARTITIONS];
    for partition in describe_topic(&mut connection, TOPIC)?.partitions {
        let leader = brokers.iter().find(|it| it.node_id == partition.leader_id).context("no leader")?;
        let index = usize::try_from(partition.partition_index)?;
        if let Some(end) = ends.get_mut(index) {
            *end = end_offset(&format!("{}:{}", leader.host, leader.port), TOPIC, index)?;
        }
    }
    Ok(ends)
}

/// What is committed of each partition, -1 for nothing.
pub(crate) fn committed(asked: &str) -> Result<Vec<i64>> {
    let request = OffsetFetchRequest::default().with_group_id(group_id(GROUP)).with_topics(None);
    let response = Connection::open(&coordinator(asked)?.1)?.call(7, &request)?;
    let mut offsets = vec![-1; PARTITIONS];
    for it in response.topics.iter().flat_map(|topic| &topic.partitions) {
        if let Some(offset) = offsets.get_mut(usize::try_from(it.partition_index)?) {
            *offset = it.committed_offset;
        }
    }
    Ok(offsets)
}

/// The members, as the coordinator describes them.
pub(crate) fn members(asked: &str) -> Result<Vec<DescribedGroupMember>> {
    let request = DescribeGroupsRequest::default().with_groups(vec![group_id(GROUP)]);
    let response = Connection::open(&coordinator(asked)?.1)?.call(4, &request)?;
    let group = response.groups.into_iter().next().context("no group in the answer")?;
    ensure!(group.error_code == NONE, "DescribeGroups: error {}", group.error_code);
    Ok(group.members)
}

/// The generation of the group, while it is stable: the one in which this member's heartbeat is welcome.
pub(crate) fn generation(asked: &str, member: &DescribedGroupMember) -> Result<i32> {
    let mut connection = Connection::open(&coordinator(asked)?.1)?;
    for generation in 1..GENERATIONS {
        let request = HeartbeatRequest::default()
            .with_group_id(group_id(GROUP))
            .with_member_id(member.member_id.clone())
            .with_group_instance_id(member.group_instance_id.clone())
            .with_generation_id(generation);
        if connection.call(3, &request)?.error_code == NONE {
            return Ok(generation);
        }
    }
    anyhow::bail!("the group is not stable")
}

/// Waits until every record is read by somebody, and committed.
pub(crate) fn wait_for_all(asked: &str, members: &[Member]) -> Result<()> {
    let ends = ends(asked)?;
    let wanted = ends.iter().enumerate();
    let wanted: BTreeSet<Place> =
        wanted.flat_map(|(partition, end)| (0..*end).map(move |at| (partition, at))).collect();
    let all = wait::until("all records to be read and committed", LIMIT, || {
        let mut read = BTreeSet::new();
        for member in members {
            read.extend(member.reads()?);
        }
        let done = wanted.is_subset(&read) && committed(asked).is_ok_and(|committed| committed == ends);
        Ok(done.then_some(()))
    });
    all.with_context(|| format!("ends {ends:?}, committed {:?}", committed(asked)))
}

/// Writes until each of the members has read some of it: then they have different parts.
pub(crate) fn wait_for_each(bootstrap: &str, members: &[Member]) -> Result<()> {
    let count = || members.iter().map(|it| it.reads().map(|it| it.len())).collect::<Result<Vec<_>>>();
    let before = count()?;
    wait::until("every member to read", LIMIT, || {
        Client::Kcat.produce(bootstrap, TOPIC, "none", COUNT)?;
        Ok(count()?.iter().zip(&before).all(|(now, before)| now > before).then_some(()))
    })
}
