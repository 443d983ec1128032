//! DescribeGroups (key 15): the states of groups and what their members are assigned (KIP-345, KIP-430).

use std::sync::Arc;

use kernel::group::gate::Api;
use kernel::group::{self, Group};
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use wire::messages::{DescribeGroupsRequest, DescribeGroupsResponse};

use super::authorized::{GROUP_OPERATIONS, OPERATIONS_NOT_ASKED_FOR};
use crate::broker::Broker;
use crate::call::Call;
use crate::drive::groups;

/// Answers a DescribeGroups request.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    _call: &Call,
    request: DescribeGroupsRequest,
) -> DescribeGroupsResponse {
    let operations =
        if request.include_authorized_operations { GROUP_OPERATIONS } else { OPERATIONS_NOT_ASKED_FOR };
    let described = request.groups.into_iter().map(|group_id| {
        let described = |group: Option<&Group>| match group {
            Some(group) => group.describe(),
            None => group::DescribedGroup::absent(),
        };
        match groups::look(broker, Api::Describe, &group_id, described) {
            Ok(it) => found(group_id, it, operations),
            Err(error) => failed(group_id, error),
        }
    });
    DescribeGroupsResponse { groups: described.collect(), ..DescribeGroupsResponse::default() }
}

fn failed(group_id: Str, error: ErrorCode) -> DescribedGroup {
    DescribedGroup {
        error_code: error.code(),
        group_id,
        authorized_operations: OPERATIONS_NOT_ASKED_FOR,
        ..DescribedGroup::default()
    }
}

fn found(group_id: Str, it: group::DescribedGroup, operations: i32) -> DescribedGroup {
    let members = it.members.into_iter().map(|member| DescribedGroupMember {
        member_id: member.member_id,
        group_instance_id: member.instance_id,
        client_id: member.client_id,
        client_host: member.client_host,
        member_metadata: member.metadata,
        member_assignment: member.assignment,
    });
    DescribedGroup {
        group_id,
        group_state: Str::from_static(it.state.name()),
        protocol_type: it.protocol_type,
        protocol_data: it.protocol,
        members: members.collect(),
        authorized_operations: operations,
        ..DescribedGroup::default()
    }
}
