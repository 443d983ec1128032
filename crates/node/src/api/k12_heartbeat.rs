//! Heartbeat (key 12): a member is alive, and learns whether its group rebalances.

use std::sync::Arc;

use kernel::group::gate::Api;
use kernel::group::{self, Event};
use wire::error_code::ErrorCode;
use wire::messages::{HeartbeatRequest, HeartbeatResponse};

use super::Answer;
use super::k11_join_group::lacks_static_members;
use crate::broker::Broker;
use crate::drive::groups;

/// Handles a Heartbeat request.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: HeartbeatRequest) {
    let response =
        |error: ErrorCode| HeartbeatResponse { error_code: error.code(), ..HeartbeatResponse::default() };
    if lacks_static_members(broker, request.group_instance_id.as_ref()) {
        return answer.send(&response(ErrorCode::UnsupportedVersion));
    }
    let heartbeat = group::HeartbeatRequest {
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        generation: request.generation_id,
    };
    groups::ask(
        broker,
        Api::Heartbeat,
        &request.group_id,
        |id| Event::Heartbeat(id, heartbeat),
        move |outcome| {
            let error = match outcome {
                Ok(group::Answer::Heartbeat(error)) | Err(error) => error,
                Ok(_) => ErrorCode::UnknownServerError,
            };
            answer.send(&response(error));
        },
    );
}
