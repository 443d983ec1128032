//! Groups of one broker: how they are found, joined and led, and what becomes of members that go.

use std::time::Duration;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::leave_group_request::MemberIdentity;
use wire::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, FindCoordinatorRequest, JoinGroupRequest, JoinGroupResponse,
    LeaveGroupRequest, ListGroupsRequest, MetadataRequest, SyncGroupRequest,
};

use crate::controller::until;
use crate::group_tools::{JOIN, NO_DELAY, code, coordinator, join_request, joined, synced};
use crate::harness::{Node, frame};

/// The group's state as DescribeGroups tells it, and its members.
pub(crate) fn described(
    node: &Node,
    group: &str,
) -> wire::messages::describe_groups_response::DescribedGroup {
    let request =
        DescribeGroupsRequest { groups: vec![Str::from(group)], ..DescribeGroupsRequest::default() };
    node.call(5, &request).groups[0].clone()
}

/// The groups in these states and of these types, each with its state; none stand for all.
pub(crate) fn listed(node: &Node, states: &[&str], types: &[&str]) -> Vec<(String, String)> {
    let filter = |names: &[&str]| names.iter().map(|name| Str::from(*name)).collect();
    let request = ListGroupsRequest { states_filter: filter(states), types_filter: filter(types) };
    let response = node.call(5, &request);
    assert_eq!(code(response.error_code), ErrorCode::None);
    response.groups.iter().map(|it| (it.group_id.to_string(), it.group_state.to_string())).collect()
}

/// Deletes groups.
pub(crate) fn delete(node: &Node, groups: &[&str]) -> Vec<ErrorCode> {
    let request = DeleteGroupsRequest { groups_names: groups.iter().map(|it| Str::from(*it)).collect() };
    node.call(2, &request).results.iter().map(|it| code(it.error_code)).collect()
}

#[test]
fn the_first_question_for_a_coordinator_creates_the_topic_of_offsets() {
    let node = Node::start(&[]);
    assert_eq!(node.find_coordinator("g"), (ErrorCode::CoordinatorNotAvailable, -1));
    until(&node, "a coordinator", || node.find_coordinator("g") == (ErrorCode::None, 0));
    let topics = node.call(9, &MetadataRequest { topics: None, ..MetadataRequest::default() }).topics;
    let it = topics.iter().find(|it| it.name.as_deref() == Some("__consumer_offsets")).unwrap();
    assert_eq!((it.partitions.len(), it.is_internal), (50, true));
}

#[test]
fn each_version_asks_for_coordinators_in_its_own_way() {
    let node = coordinator(&[]);
    let ask = |version, key_type| {
        let keys = if version < 4 { Vec::new() } else { vec![Str::from("a"), Str::from("b")] };
        let key = if version < 4 { Str::from("g") } else { Str::EMPTY };
        let request = FindCoordinatorRequest { key, key_type, coordinator_keys: keys };
        let response = node.call(version, &request);
        let codes: Vec<_> = response.coordinators.iter().map(|it| code(it.error_code)).collect();
        if version < 4 { (vec![code(response.error_code)], response) } else { (codes, response) }
    };
    for version in 0..=3 {
        let (codes, response) = ask(version, 0);
        assert_eq!(
            (codes, response.node_id, response.port > 0),
            (vec![ErrorCode::None], 0, true),
            "v{version}"
        );
        let message = if version == 0 { Some("") } else { Some("NONE") };
        assert_eq!(response.error_message.as_deref(), message, "v{version}");
    }
    for version in 4..=6 {
        assert_eq!(ask(version, 0).0, [ErrorCode::None; 2], "v{version}");
        // Nobody coordinates transactions here.
        assert_eq!(ask(version, 1).0, [ErrorCode::CoordinatorNotAvailable; 2], "v{version}");
        assert_eq!(ask(version, 9).0, [ErrorCode::InvalidRequest; 2], "v{version}");
    }
    assert_eq!(ask(3, 2).0, [ErrorCode::InvalidRequest]);
    assert_eq!(ask(5, 2).0, [ErrorCode::InvalidRequest; 2]);
    assert_eq!(ask(6, 2).0, [ErrorCode::CoordinatorNotAvailable; 2]);
}

#[test]
fn members_join_in_two_steps_and_get_their_parts_from_the_leader() {
    // Here a new group waits for others.
    let node = Node::start(&[]);
    node.create_topic("t", 2, &[]);
    node.create_topic("__consumer_offsets", 1, &[]);
    let [a, b] = [(); 2].map(|()| node.member_id("g"));
    let joins = [&a, &b].map(|id| node.begin_to_join(&join_request("g", id)));
    node.broker.poll();
    assert!(joins.iter().all(|it| it.try_recv().is_err()), "the group waits for others");
    for _ in 0..2 {
        node.advance(Duration::from_millis(3_000));
        node.broker.poll();
    }
    let [first, second] = joins.each_ref().map(joined);
    assert_eq!((first.generation_id, second.generation_id), (1, 1));
    assert_eq!((&first.leader, &second.leader), (&first.member_id, &first.member_id));
    assert_eq!((first.members.len(), second.members.len()), (2, 0));
    let follower = node.begin_to_sync("g", &b, 1, &[]);
    assert!(follower.try_recv().is_err(), "the leader has not spoken");
    let leader = synced(&node.begin_to_sync("g", &a, 1, &[(&a, b"x"), (&b, b"y")]));
    assert_eq!((&leader.assignment[..], &synced(&follower).assignment[..]), (&b"x"[..], &b"y"[..]));
    let group = described(&node, "g");
    assert_eq!(
        (&*group.group_state, &*group.protocol_type, &*group.protocol_data),
        ("Stable", "consumer", "range")
    );
    let mut parts: Vec<_> = group.members.iter().map(|it| it.member_assignment.to_vec()).collect();
    parts.sort();
    assert_eq!(parts, [b"x", b"y"]);
    assert!(group.members.iter().all(|it| &*it.client_host == "/127.0.0.1" && &*it.client_id == "test"));
}

#[test]
fn old_versions_join_in_one_step() {
    let node = coordinator(&[]);
    for version in 0..=3 {
        let group = format!("v{version}");
        let mut request = join_request(&group, "");
        if version == 0 {
            request.rebalance_timeout_ms = -1;
        }
        let response: JoinGroupResponse = node.call(version, &request);
        assert_eq!(code(response.error_code), ErrorCode::None, "v{version}");
        assert_eq!((response.generation_id, response.members.len()), (1, 1), "v{version}");
        assert_eq!(response.protocol_name.as_deref(), Some("range"));
    }
}

#[test]
fn an_error_has_no_protocol_where_that_can_be_said_and_an_empty_one_elsewhere() {
    let node = coordinator(&[]);
    for (version, name) in [(6, Some("")), (7, None), (9, None)] {
        let request = JoinGroupRequest { session_timeout_ms: 1, ..join_request("g", "") };
        let response: JoinGroupResponse = node.call(version, &request);
        assert_eq!(code(response.error_code), ErrorCode::InvalidSessionTimeout);
        assert_eq!((response.generation_id, response.protocol_name.as_deref()), (-1, name), "v{version}");
    }
    let nameless: JoinGroupResponse = node.call(JOIN, &join_request("", ""));
    assert_eq!(code(nameless.error_code), ErrorCode::InvalidGroupId);
}

#[test]
fn a_sync_of_version_5_names_the_protocol() {
    let node = coordinator(&[]);
    let (id, generation) = node.stable_group("g");
    let request = SyncGroupRequest {
        group_id: Str::from("g"),
        member_id: Str::from(&id),
        generation_id: generation,
        ..SyncGroupRequest::default()
    };
    assert_eq!(code(node.call(5, &request).error_code), ErrorCode::InconsistentGroupProtocol);
    assert_eq!(code(node.call(4, &request).error_code), ErrorCode::None);
}

#[test]
fn instances_are_not_known_while_the_cluster_has_brokers_that_know_none() {
    let node = coordinator(&[("inter.broker.protocol.version", "2.2")]);
    let request = JoinGroupRequest { group_instance_id: Some(Str::from("i")), ..join_request("g", "") };
    let response: JoinGroupResponse = node.call(JOIN, &request);
    assert_eq!(code(response.error_code), ErrorCode::UnsupportedVersion);
}

#[test]
fn a_member_that_is_not_heard_of_goes_when_its_session_is_over() {
    let node = coordinator(&[]);
    let (id, generation) = node.stable_group("g");
    for _ in 0..5 {
        node.advance(Duration::from_millis(4_000));
        node.broker.poll();
        assert_eq!(node.heartbeat("g", &id, generation), ErrorCode::None, "a heartbeat keeps the session");
    }
    node.advance(Duration::from_millis(10_001));
    node.broker.poll();
    assert_eq!(node.heartbeat("g", &id, generation), ErrorCode::UnknownMemberId);
    assert_eq!(listed(&node, &[], &[]), [("g".to_owned(), "Empty".to_owned())]);
}

#[test]
fn a_new_member_makes_the_others_join_again() {
    let node = coordinator(&[]);
    let (a, generation) = node.stable_group("g");
    let b = node.member_id("g");
    let waiting = node.begin_to_join(&join_request("g", &b));
    assert_eq!(node.heartbeat("g", &a, generation), ErrorCode::RebalanceInProgress);
    assert!(waiting.try_recv().is_err());
    let leader = joined(&node.begin_to_join(&join_request("g", &a)));
    assert_eq!((leader.generation_id, leader.members.len()), (generation + 1, 2));
    assert_eq!(joined(&waiting).generation_id, generation + 1);
}

#[test]
fn members_leave_one_by_one_or_many_at_once() {
    let node = coordinator(&[]);
    let (id, _) = node.stable_group("g");
    let request = LeaveGroupRequest {
        group_id: Str::from("g"),
        member_id: Str::from(&id),
        ..LeaveGroupRequest::default()
    };
    assert_eq!(code(node.call(2, &request).error_code), ErrorCode::None);
    assert_eq!(code(node.call(1, &request).error_code), ErrorCode::UnknownMemberId);
    let (id, _) = node.stable_group("g");
    let members = [id.as_str(), "nobody"]
        .map(|id| MemberIdentity { member_id: Str::from(id), ..MemberIdentity::default() });
    let request = LeaveGroupRequest {
        group_id: Str::from("g"),
        members: members.to_vec(),
        ..LeaveGroupRequest::default()
    };
    let response = node.call(5, &request);
    let codes: Vec<_> = response.members.iter().map(|it| code(it.error_code)).collect();
    assert_eq!(code(response.error_code), ErrorCode::None);
    assert_eq!(codes, [ErrorCode::None, ErrorCode::UnknownMemberId]);
}

#[test]
fn groups_are_listed_by_state_and_type() {
    let node = coordinator(&[]);
    node.stable_group("live");
    node.commit("simple", 1);
    let (live, simple) =
        (("live".to_owned(), "Stable".to_owned()), ("simple".to_owned(), "Empty".to_owned()));
    let mut all = listed(&node, &[], &[]);
    all.sort();
    assert_eq!(all, [live.clone(), simple.clone()]);
    assert_eq!(listed(&node, &["sTABLE"], &["Classic"]), [live]);
    assert_eq!(listed(&node, &["Empty", "unheard-of"], &[]), [simple]);
    assert_eq!(listed(&node, &[], &["consumer"]), []);
}

#[test]
fn a_group_that_does_not_exist_is_described_as_dead() {
    let node = coordinator(&[]);
    let it = described(&node, "nobody");
    assert_eq!((code(it.error_code), &*it.group_state, it.members.len()), (ErrorCode::None, "Dead", 0));
    let request =
        DescribeGroupsRequest { groups: vec![Str::from("nobody")], include_authorized_operations: true };
    assert_eq!(node.call(5, &request).groups[0].authorized_operations, 0x148);
}

#[test]
fn groups_without_members_are_deleted_for_good() {
    let node = coordinator(&[]);
    node.stable_group("live");
    node.commit("simple", 1);
    // In the order of their names.
    assert_eq!(
        delete(&node, &["simple", "live", "", "simple"]),
        [ErrorCode::GroupIdNotFound, ErrorCode::NonEmptyGroup, ErrorCode::None]
    );
    assert_eq!(delete(&node, &["simple"]), [ErrorCode::GroupIdNotFound]);
    let node = node.restart(&[NO_DELAY]);
    assert_eq!(delete(&node, &["simple", "live"]), [ErrorCode::NonEmptyGroup, ErrorCode::GroupIdNotFound]);
}

#[test]
fn members_outlive_their_coordinator() {
    let node = coordinator(&[]);
    let (id, generation) = node.stable_group("g");
    let node = node.restart_killed(&[NO_DELAY], |_| {});
    assert_eq!(node.heartbeat("g", &id, generation), ErrorCode::None);
    let synced = synced(&node.begin_to_sync("g", &id, generation, &[]));
    assert_eq!((code(synced.error_code), &synced.assignment[..]), (ErrorCode::None, &b"part"[..]));
    // And whoever is gone meanwhile has one session to come back.
    node.advance(Duration::from_millis(10_001));
    node.broker.poll();
    assert_eq!(node.heartbeat("g", &id, generation), ErrorCode::UnknownMemberId);
}

#[test]
fn a_group_is_as_large_as_it_may_be() {
    let node = coordinator(&[("group.max.size", "1")]);
    node.stable_group("g");
    let response: JoinGroupResponse = node.call(JOIN, &join_request("g", ""));
    assert_eq!(code(response.error_code), ErrorCode::GroupMaxSizeReached);
}

#[test]
fn a_join_waits_no_longer_than_for_those_who_are_left() {
    let node = coordinator(&[]);
    let (a, _) = node.stable_group("g");
    let b = node.member_id("g");
    let waiting = node.submit(frame(JOIN, &join_request("g", &b)));
    assert!(waiting.try_recv().is_err());
    // The member that is waited for goes: the other one is the group.
    let request = LeaveGroupRequest {
        group_id: Str::from("g"),
        member_id: Str::from(&a),
        ..LeaveGroupRequest::default()
    };
    assert_eq!(code(node.call(2, &request).error_code), ErrorCode::None);
    let alone = joined(&waiting);
    assert_eq!((alone.generation_id, alone.members.len()), (2, 1));
}
