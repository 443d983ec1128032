//! Static members over the wire (KIP-345): every request that names an instance is fenced once another process has taken
//! its place.

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::leave_group_request::MemberIdentity;
use wire::messages::{
    DescribeGroupsRequest, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    OffsetCommitRequest, SyncGroupRequest, SyncGroupResponse,
};

use crate::group_tools::{code, commit_request, coordinator, join_request, joined, synced};
use crate::harness::Node;

fn instance() -> Option<Str> {
    Some(Str::from("i"))
}

fn join(node: &Node, member_id: &str) -> JoinGroupResponse {
    let request = JoinGroupRequest { group_instance_id: instance(), ..join_request("g", member_id) };
    joined(&node.begin_to_join(&request))
}

/// Requests of the instance `i` of the group `g`, by the member id that it has or had.
fn heartbeat_of(member_id: &str, generation: i32) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: Str::from("g"),
        generation_id: generation,
        member_id: Str::from(member_id),
        group_instance_id: instance(),
    }
}

fn sync_of(member_id: &str, generation: i32) -> SyncGroupRequest {
    SyncGroupRequest {
        group_id: Str::from("g"),
        generation_id: generation,
        member_id: Str::from(member_id),
        group_instance_id: instance(),
        ..SyncGroupRequest::default()
    }
}

fn commit_of(member_id: &str, generation: i32) -> OffsetCommitRequest {
    OffsetCommitRequest {
        generation_id_or_member_epoch: generation,
        member_id: Str::from(member_id),
        group_instance_id: instance(),
        ..commit_request("g", "t", 0, 5)
    }
}

/// The group `g` with one member, instance `i`, whose process was started again: the id that it had, the one that it has.
fn replaced(node: &Node) -> (String, JoinGroupResponse) {
    let first = join(node, "");
    assert_eq!(code(first.error_code), ErrorCode::None, "instances are told no id first");
    let id = first.member_id.to_string();
    let it = synced(&node.begin_to_sync("g", &id, first.generation_id, &[(&id, b"part")]));
    assert_eq!(code(it.error_code), ErrorCode::None);
    let second = join(node, "");
    assert_eq!((code(second.error_code), second.generation_id), (ErrorCode::None, first.generation_id));
    assert_ne!(second.member_id.as_str(), id);
    (id, second)
}

#[test]
fn whoever_was_replaced_is_fenced_whatever_it_asks() {
    let node = coordinator(&[]);
    let (old, new) = replaced(&node);
    let (generation, fenced) = (new.generation_id, ErrorCode::FencedInstanceId);
    let heartbeat = heartbeat_of(&old, generation);
    assert_eq!(code(node.call(4, &heartbeat).error_code), fenced);
    assert_eq!(node.commit_as(8, &commit_of(&old, generation)), fenced);
    let response: SyncGroupResponse = node.call(4, &sync_of(&old, generation));
    assert_eq!(code(response.error_code), fenced);
    assert_eq!(code(join(&node, &old).error_code), fenced);
    let member = MemberIdentity {
        member_id: Str::from(&old),
        group_instance_id: instance(),
        ..MemberIdentity::default()
    };
    let leave =
        LeaveGroupRequest { group_id: Str::from("g"), members: vec![member], ..LeaveGroupRequest::default() };
    assert_eq!(code(node.call(5, &leave).members[0].error_code), fenced);
    // The one that has its place goes on.
    let heartbeat = HeartbeatRequest { member_id: new.member_id.clone(), ..heartbeat };
    assert_eq!(code(node.call(4, &heartbeat).error_code), ErrorCode::None);
}

// KIP-814
#[test]
fn a_leader_that_took_its_own_place_is_told_not_to_assign() {
    let node = coordinator(&[]);
    let (_, new) = replaced(&node);
    assert!(new.skip_assignment);
    assert_eq!((new.leader.as_str(), new.members.len()), (new.member_id.as_str(), 1));
    assert_eq!(new.members[0].group_instance_id, instance());
}

#[test]
fn instances_are_described_from_version_4_on() {
    let node = coordinator(&[]);
    replaced(&node);
    for version in 0..=5 {
        let request =
            DescribeGroupsRequest { groups: vec![Str::from("g")], ..DescribeGroupsRequest::default() };
        let described = node.call(version, &request).groups.remove(0);
        let told = described.members[0].group_instance_id.clone();
        assert_eq!(told, instance().filter(|_| version >= 4), "v{version}");
    }
}

#[test]
fn instances_are_refused_as_long_as_some_broker_may_not_know_them() {
    let node = coordinator(&[("inter.broker.protocol.version", "2.2")]);
    let unsupported = ErrorCode::UnsupportedVersion;
    assert_eq!(code(join(&node, "").error_code), unsupported);
    let (id, generation) = node.stable_group("g");
    assert_eq!(code(node.call(4, &sync_of(&id, generation)).error_code), unsupported);
    assert_eq!(code(node.call(4, &heartbeat_of(&id, generation)).error_code), unsupported);
    let commit = commit_of(&id, generation);
    assert_eq!(node.commit_as(8, &commit), unsupported);
    assert_eq!(
        node.commit_as(8, &OffsetCommitRequest { group_instance_id: None, ..commit }),
        ErrorCode::None
    );
}
