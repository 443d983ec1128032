//! SyncGroup (key 14): the leader gives the assignment, and every member gets its part (KIP-345, KIP-559).

use std::sync::Arc;

use kernel::group::gate::Api;
use kernel::group::{self, Event, SyncAnswer, SyncRequest};
use wire::error_code::ErrorCode;
use wire::messages::{SyncGroupRequest, SyncGroupResponse};

use super::Answer;
use super::k11_join_group::lacks_static_members;
use crate::broker::Broker;
use crate::drive::groups;

/// The first version that must name the protocol and its type (KIP-559).
const FIRST_VERSION_WITH_PROTOCOL: i16 = 5;

/// Handles a SyncGroup request.
pub(crate) fn handle(broker: &Arc<Broker>, mut answer: Answer, request: SyncGroupRequest) {
    answer.unpin();
    let names_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
    let refused = if lacks_static_members(broker, request.group_instance_id.as_ref()) {
        Some(ErrorCode::UnsupportedVersion)
    } else if answer.call().version() >= FIRST_VERSION_WITH_PROTOCOL && !names_protocol {
        Some(ErrorCode::InconsistentGroupProtocol)
    } else {
        None
    };
    if let Some(error) = refused {
        return answer.send(&failed(error));
    }
    let sync = SyncRequest {
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        generation: request.generation_id,
        protocol_type: request.protocol_type,
        protocol_name: request.protocol_name,
        assignments: request.assignments.into_iter().map(|it| (it.member_id, it.assignment)).collect(),
    };
    groups::ask(
        broker,
        Api::Sync,
        &request.group_id,
        |id| Event::Sync(id, sync),
        move |outcome| match outcome {
            Ok(group::Answer::Sync(it)) => answer.send(&response(it)),
            Ok(_) => answer.send(&failed(ErrorCode::UnknownServerError)),
            Err(error) => answer.send(&failed(error)),
        },
    );
}

fn failed(error: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse { error_code: error.code(), ..SyncGroupResponse::default() }
}

fn response(it: SyncAnswer) -> SyncGroupResponse {
    SyncGroupResponse {
        error_code: it.error.code(),
        protocol_type: it.protocol_type,
        protocol_name: it.protocol_name,
        assignment: it.assignment,
        ..SyncGroupResponse::default()
    }
}
