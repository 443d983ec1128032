//! What a coordinator refuses whatever the state of a group is: names, numbers and protocols that cannot be.

use anyhow::Result;
use wire::messages::leave_group_request::MemberIdentity;
use wire::messages::offset_commit_request::OffsetCommitRequestTopic;
use wire::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest,
    ListGroupsRequest, OffsetCommitRequest, OffsetFetchRequest, Request, SyncGroupRequest,
};
use wire::{Encoder, Str};

use super::all;
use super::groups::{delete_offsets, fetch_offsets, leave, offset, protocol};
use crate::lab::{Lab, put_header};

pub fn run(lab: &mut Lab) -> Result<()> {
    for group in ["", "absent", " ", "a/b"] {
        members(lab, group)?;
        offsets(lab, group)?;
    }
    joins(lab)?;
    protocols_of_syncs(lab)?;
    lists(lab)?;
    nulls::<JoinGroupRequest>(lab)?;
    nulls::<SyncGroupRequest>(lab)?;
    nulls::<HeartbeatRequest>(lab)?;
    nulls::<LeaveGroupRequest>(lab)?;
    nulls::<DescribeGroupsRequest>(lab)?;
    nulls::<DeleteGroupsRequest>(lab)?;
    nulls::<OffsetCommitRequest>(lab)?;
    nulls::<OffsetFetchRequest>(lab)
}

fn members(lab: &mut Lab, group: &str) -> Result<()> {
    let group_id = Str::from(group);
    lab.ask(&format!("nobody joins {group:?}"), all::<JoinGroupRequest>(), |_, _| JoinGroupRequest {
        member_id: "nobody".into(),
        ..join(group)
    })?;
    lab.ask(&format!("nobody syncs in {group:?}"), all::<SyncGroupRequest>(), |_, version| {
        let named = version >= 5;
        SyncGroupRequest {
            group_id: group_id.clone(),
            member_id: "nobody".into(),
            protocol_type: named.then(|| "consumer".into()),
            protocol_name: named.then(|| "range".into()),
            ..SyncGroupRequest::default()
        }
    })?;
    lab.ask(&format!("nobody is alive in {group:?}"), all::<HeartbeatRequest>(), |_, _| HeartbeatRequest {
        group_id: group_id.clone(),
        member_id: "nobody".into(),
        ..HeartbeatRequest::default()
    })?;
    lab.ask(&format!("nobody leaves {group:?}"), all::<LeaveGroupRequest>(), |_, version| {
        let member = MemberIdentity { member_id: "nobody".into(), ..MemberIdentity::default() };
        leave(version, group, vec![member])
    })?;
    lab.ask(&format!("{group:?} described"), all::<DescribeGroupsRequest>(), |_, _| DescribeGroupsRequest {
        groups: vec![group_id.clone(), group_id.clone()],
        ..DescribeGroupsRequest::default()
    })
}

fn offsets(lab: &mut Lab, group: &str) -> Result<()> {
    let group_id = Str::from(group);
    let topics: [(&str, &[i32]); 2] = [("life", &[0, 9]), ("nobody", &[0])];
    lab.ask(&format!("offsets of {group:?}"), all::<OffsetFetchRequest>(), |_, version| {
        fetch_offsets(version, group, Some(&topics))
    })?;
    lab.ask(&format!("all offsets of {group:?}"), 2..=9, |_, version| fetch_offsets(version, group, None))?;
    for (topic, generation) in [("life", -1), ("life", 3), ("nobody", -1)] {
        let case = format!("offsets of {topic} for {group:?} in {generation}");
        lab.ask(&case, all::<OffsetCommitRequest>(), |_, version| OffsetCommitRequest {
            group_id: group_id.clone(),
            generation_id_or_member_epoch: if version >= 1 { generation } else { -1 },
            topics: vec![OffsetCommitRequestTopic {
                name: Str::from(topic),
                partitions: vec![
                    offset(0, 8, "m"),
                    offset(1, 8, &"m".repeat(4_096)),
                    offset(2, 8, &"m".repeat(5_000)),
                ],
            }],
            ..OffsetCommitRequest::default()
        })?;
        lab.ask(&format!("{case}, read"), all::<OffsetFetchRequest>(), |_, version| {
            fetch_offsets(version, group, Some(&topics))
        })?;
    }
    lab.ask(&format!("nothing committed for {group:?}"), all::<OffsetCommitRequest>(), |_, _| {
        OffsetCommitRequest { group_id: group_id.clone(), ..OffsetCommitRequest::default() }
    })?;
    lab.ask(&format!("offsets of {group:?} deleted"), 0..=0, |_, _| delete_offsets(group, &topics))?;
    lab.ask(&format!("no offsets of {group:?} deleted"), 0..=0, |_, _| delete_offsets(group, &[]))?;
    lab.ask(&format!("{group:?} deleted"), all::<DeleteGroupsRequest>(), |_, _| DeleteGroupsRequest {
        groups_names: vec![group_id.clone()],
    })
}

fn join(group: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: Str::from(group),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".into(),
        protocols: vec![protocol("range")],
        ..JoinGroupRequest::default()
    }
}

fn joins(lab: &mut Lab) -> Result<()> {
    for timeout in [i32::MIN, -1, 0, 5_999, 1_800_001, i32::MAX] {
        for member in ["", "nobody"] {
            let case = format!("a session of {timeout} ms of {member:?}");
            lab.ask(&case, all::<JoinGroupRequest>(), |_, _| JoinGroupRequest {
                session_timeout_ms: timeout,
                member_id: Str::from(member),
                ..join("never")
            })?;
        }
    }
    lab.ask("no protocols", all::<JoinGroupRequest>(), |_, _| JoinGroupRequest {
        protocols: Vec::new(),
        ..join("never")
    })?;
    lab.ask("no type", all::<JoinGroupRequest>(), |_, _| JoinGroupRequest {
        protocol_type: Str::EMPTY,
        ..join("never")
    })?;
    for instance in ["", ".", "..", "a b", "ü", &"i".repeat(250)] {
        lab.ask(&format!("instance {instance:?}"), 5..=9, |_, _| JoinGroupRequest {
            group_instance_id: Some(Str::from(instance)),
            session_timeout_ms: 1,
            ..join("never")
        })?;
    }
    Ok(())
}

fn protocols_of_syncs(lab: &mut Lab) -> Result<()> {
    for (kind, name) in [(None, None), (Some("consumer"), None), (None, Some("range")), (Some(""), Some(""))]
    {
        lab.ask(&format!("a sync of {kind:?} and {name:?}"), 5..=5, |_, _| SyncGroupRequest {
            group_id: "never".into(),
            member_id: "nobody".into(),
            protocol_type: kind.map(Str::from),
            protocol_name: name.map(Str::from),
            ..SyncGroupRequest::default()
        })?;
    }
    Ok(())
}

fn lists(lab: &mut Lab) -> Result<()> {
    for types in [&["classic"][..], &["CLASSIC", "consumer"], &["consumer"], &["share"], &["nonsense"], &[""]]
    {
        lab.ask(&format!("groups of types {types:?}"), 5..=5, |_, _| ListGroupsRequest {
            types_filter: types.iter().map(|it| Str::from(*it)).collect(),
            ..ListGroupsRequest::default()
        })?;
    }
    lab.ask("no groups described", all::<DescribeGroupsRequest>(), |_, _| DescribeGroupsRequest::default())?;
    lab.ask("no groups deleted", all::<DeleteGroupsRequest>(), |_, _| DeleteGroupsRequest::default())?;
    lab.silent_kafka(|lab| lab.ask("offsets of no groups", 8..=9, |_, _| OffsetFetchRequest::default()))
}

/// The first text or list of a request is null, where null is no value.
fn nulls<R: Request + Default>(lab: &mut Lab) -> Result<()> {
    for version in R::VERSIONS {
        lab.raw("null comes first", R::API_KEY, version, |_| {
            let mut dst = Encoder::new();
            put_header(&mut dst, R::API_KEY, version, 77)?;
            let head = dst.len();
            R::default().encode(&mut dst, version)?;
            let positions = dst.length_positions().to_vec();
            let bytes = dst.into_bytes();
            let Some(first) = positions.into_iter().find(|it| it.start >= head) else {
                return Ok((bytes, false));
            };
            let null: &[u8] = if first.flexible { &[0] } else { &[0xff; 4][..first.end - first.start] };
            Ok(([&bytes[..first.start], null, &bytes[first.end..]].concat().into(), false))
        })?;
    }
    Ok(())
}
