//! A rebalance of a group of a hundred members, from the leader's wish for it until each member has its part. All members
//! ask at once, so that the broker is measured and not the heartbeats that would tell them.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use interop::broker::Broker;
use interop::raw::Connection;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, SyncGroupRequest, SyncGroupResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::{group_id, until_coordinated};
use crate::figures::{Figures, Goal, Row};

const MEMBERS: usize = 100;
/// Rebalances of one run.
const TIMES: usize = 20;
/// The first one without a detour for the member's id is 3.
const JOIN_VERSION: i16 = 3;
const SYNC_VERSION: i16 = 2;
const HEARTBEAT_VERSION: i16 = 2;
const REBALANCE_IN_PROGRESS: i16 = 27;
const SESSION_MS: i32 = 60_000;
/// So long that a subscription is as large as that of a consumer of a few topics.
const TOPIC: &str = "a-topic-with-a-name-as-long-as-those-of-several-ones";
/// As large as the part of a consumer of a few topics; nobody but members looks into it.
const ASSIGNMENT: [u8; 64] = [7; 64];

const ROW: Row =
    Row { name: "rebalance of a group of 100 members", unit: "ms", goal: Goal::RatioAtMost(0.5) };

struct Member {
    connection: Connection,
    id: StrBytes,
}

/// One run: the median is taken over all rebalances of all runs.
pub(super) fn measure(broker: &mut Broker, round: usize, figures: &mut Figures) -> Result<()> {
    let (address, group) = (broker.bootstrap(), format!("hundred-{round}"));
    until_coordinated(&address, &group)?;
    let mut members = (0..MEMBERS)
        .map(|_| Ok(Member { connection: Connection::open(&address)?, id: StrBytes::default() }))
        .collect::<Result<Vec<_>>>()?;
    // The first waits for the group's initial delay.
    let mut generation = 0;
    let mut leader = rebalance(&group, &mut members, &mut generation)?;
    for _ in 0..TIMES {
        // Only a leader that joins again makes all others do so.
        members.swap(0, leader);
        let start = Instant::now();
        leader = rebalance(&group, &mut members, &mut generation)?;
        figures.add(ROW, broker.kind(), start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}

/// Joins and synchronises all members, the first one first; gives the place of the leader.
fn rebalance(group: &str, members: &mut [Member], generation: &mut i32) -> Result<usize> {
    let (first, others) = members.split_first_mut().context("no members")?;
    first.connection.ask(JOIN_VERSION, &join(group, &first.id))?;
    if let (Some(other), 1..) = (others.first_mut(), *generation) {
        until_begun(group, *generation, other)?;
    }
    for member in others {
        member.connection.ask(JOIN_VERSION, &join(group, &member.id))?;
    }
    let (mut leader, mut all) = (0, Vec::new());
    for (place, member) in members.iter_mut().enumerate() {
        let joined: JoinGroupResponse = member.connection.answer::<JoinGroupRequest>(JOIN_VERSION)?;
        ensure!(joined.error_code == 0, "JoinGroup: error {}", joined.error_code);
        if joined.leader == joined.member_id {
            (leader, all) = (place, joined.members.iter().map(|it| it.member_id.clone()).collect());
        }
        *generation = joined.generation_id;
        member.id = joined.member_id;
    }
    ensure!(all.len() == members.len(), "{} members in generation {generation}", all.len());
    for (place, member) in members.iter_mut().enumerate() {
        let assigned = if place == leader { std::mem::take(&mut all) } else { Vec::new() };
        member.connection.ask(SYNC_VERSION, &sync(group, *generation, &member.id, assigned))?;
    }
    for member in members.iter_mut() {
        let synced: SyncGroupResponse = member.connection.answer::<SyncGroupRequest>(SYNC_VERSION)?;
        ensure!(synced.error_code == 0, "SyncGroup: error {}", synced.error_code);
    }
    Ok(leader)
}

/// Waits until the group rebalances: who joins before is told the generation that is about to end.
fn until_begun(group: &str, generation: i32, member: &mut Member) -> Result<()> {
    let request = HeartbeatRequest::default()
        .with_group_id(group_id(group))
        .with_generation_id(generation)
        .with_member_id(member.id.clone());
    loop {
        member.connection.ask(HEARTBEAT_VERSION, &request)?;
        match member.connection.answer::<HeartbeatRequest>(HEARTBEAT_VERSION)?.error_code {
            0 => {}
            REBALANCE_IN_PROGRESS => return Ok(()),
            code => bail!("Heartbeat: error {code}"),
        }
    }
}

fn join(group: &str, id: &StrBytes) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(StrBytes::from_static_str("range"))
        .with_metadata(subscription());
    JoinGroupRequest::default()
        .with_group_id(group_id(group))
        .with_session_timeout_ms(SESSION_MS)
        .with_rebalance_timeout_ms(SESSION_MS)
        .with_member_id(id.clone())
        .with_protocol_type(StrBytes::from_static_str("consumer"))
        .with_protocols(vec![protocol])
}

/// A subscription of version 0. A coordinator looks into those of groups of the type `consumer`, and a real Kafka never
/// answers anybody in a group with one that says that it is longer than it is.
fn subscription() -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i16(0);
    bytes.put_i32(1);
    bytes.put_u16(TOPIC.len() as u16);
    bytes.put_slice(TOPIC.as_bytes());
    // No data of the user's.
    bytes.put_i32(-1);
    bytes.freeze()
}

fn sync(group: &str, generation: i32, id: &StrBytes, assigned: Vec<StrBytes>) -> SyncGroupRequest {
    let part = |id| {
        SyncGroupRequestAssignment::default()
            .with_member_id(id)
            .with_assignment(Bytes::from_static(&ASSIGNMENT))
    };
    SyncGroupRequest::default()
        .with_group_id(group_id(group))
        .with_generation_id(generation)
        .with_member_id(id.clone())
        .with_assignments(assigned.into_iter().map(part).collect())
}
