//! ListGroups (key 16): the groups that this broker coordinates (KIP-518, KIP-848).

use std::sync::Arc;

use kernel::group::Overview;
use wire::Str;
use wire::messages::list_groups_response::ListedGroup;
use wire::messages::{ListGroupsRequest, ListGroupsResponse};

use crate::broker::Broker;
use crate::call::Call;
use crate::drive::groups;

/// The type of all groups here.
const CLASSIC: &str = "classic";

/// Answers a ListGroups request.
pub(crate) fn handle(broker: &Arc<Broker>, _call: &Call, request: ListGroupsRequest) -> ListGroupsResponse {
    let (error, all) = groups::list(broker);
    let names = |filter: &[Str], name: &str| {
        filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
    };
    let is_wanted = |it: &Overview| {
        names(&request.states_filter, it.state.name()) && names(&request.types_filter, CLASSIC)
    };
    let listed = all.into_iter().filter(is_wanted).map(|it| ListedGroup {
        group_id: it.group_id,
        protocol_type: it.protocol_type,
        group_state: Str::from_static(it.state.name()),
        group_type: Str::from_static(CLASSIC),
    });
    ListGroupsResponse { error_code: error.code(), groups: listed.collect(), ..ListGroupsResponse::default() }
}
