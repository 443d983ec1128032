//! LeaveGroup (key 13): members leave, or are removed by an administrator (KIP-345, KIP-800).

use std::sync::Arc;

use kernel::group::gate::Api;
use kernel::group::{self, Event, LeavingMember};
use wire::error_code::ErrorCode;
use wire::messages::leave_group_response::MemberResponse;
use wire::messages::{LeaveGroupRequest, LeaveGroupResponse};

use super::Answer;
use crate::broker::Broker;
use crate::drive::groups;

/// The first version in which several members leave, each with a result of its own.
const FIRST_BATCHED_VERSION: i16 = 3;

/// Handles a LeaveGroup request.
pub(crate) fn handle(broker: &Arc<Broker>, mut answer: Answer, request: LeaveGroupRequest) {
    answer.unpin();
    let is_batched = answer.call().version() >= FIRST_BATCHED_VERSION;
    let leaving: Vec<_> = if is_batched {
        let members = request.members.into_iter();
        members
            .map(|it| LeavingMember { member_id: it.member_id, instance_id: it.group_instance_id })
            .collect()
    } else {
        vec![LeavingMember { member_id: request.member_id, instance_id: None }]
    };
    let named = leaving.clone();
    groups::ask(
        broker,
        Api::Leave,
        &request.group_id,
        |id| Event::Leave(id, leaving),
        move |outcome| {
            let codes = match outcome {
                Ok(group::Answer::Leave(codes)) => codes,
                Ok(_) => Err(ErrorCode::UnknownServerError),
                Err(error) => Err(error),
            };
            answer.send(&response(is_batched, named, codes));
        },
    );
}

fn response(
    is_batched: bool,
    leaving: Vec<LeavingMember>,
    codes: Result<Vec<ErrorCode>, ErrorCode>,
) -> LeaveGroupResponse {
    let failed =
        |error: ErrorCode| LeaveGroupResponse { error_code: error.code(), ..LeaveGroupResponse::default() };
    match codes {
        Err(error) => failed(error),
        Ok(codes) if is_batched => {
            let members = leaving.into_iter().zip(codes).map(|(it, code)| MemberResponse {
                member_id: it.member_id,
                group_instance_id: it.instance_id,
                error_code: code.code(),
            });
            LeaveGroupResponse { members: members.collect(), ..LeaveGroupResponse::default() }
        }
        // There is only one.
        Ok(codes) => failed(codes.first().copied().unwrap_or(ErrorCode::None)),
    }
}
