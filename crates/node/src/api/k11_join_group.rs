//! JoinGroup (key 11): a member joins a group, and hears of it when all have (KIP-62, KIP-345, KIP-394, KIP-814).

use std::net::IpAddr;
use std::sync::Arc;

use kernel::group::gate::Api;
use kernel::group::{self, Event, JoinAnswer, JoinRequest, Protocol};
use kernel::metadata_version::MetadataVersion;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::join_group_response::JoinGroupResponseMember;
use wire::messages::{JoinGroupRequest, JoinGroupResponse};

use super::Answer;
use crate::broker::Broker;
use crate::call::Call;
use crate::drive::groups;

/// The first version in which a member learns its id before it joins (KIP-394).
const FIRST_VERSION_WITH_TWO_STEPS: i16 = 4;
/// The first version in which the protocol may be null, and the last one without.
const FIRST_VERSION_WITH_NULL_PROTOCOL: i16 = 7;
/// The first version in which a leader can be told not to assign (KIP-814).
const FIRST_VERSION_WITH_SKIPPING: i16 = 9;

/// Handles a JoinGroup request.
pub(crate) fn handle(broker: &Arc<Broker>, mut answer: Answer, request: JoinGroupRequest) {
    answer.unpin();
    let version = answer.call().version();
    if lacks_static_members(broker, request.group_instance_id.as_ref()) {
        let refused = JoinAnswer::error(ErrorCode::UnsupportedVersion, Str::EMPTY);
        return answer.send(&response(version, refused));
    }
    let (group_id, member_id) = (request.group_id.clone(), Str::from(request.member_id.as_str()));
    let join = join(broker, answer.call(), request);
    groups::ask(
        broker,
        Api::Join,
        &group_id,
        |id| Event::Join(id, join),
        move |outcome| {
            let it = match outcome {
                Ok(group::Answer::Join(it)) => it,
                Ok(_) => JoinAnswer::error(ErrorCode::UnknownServerError, member_id),
                Err(error) => JoinAnswer::error(error, member_id),
            };
            answer.send(&response(version, it));
        },
    );
}

/// Whether a request names an instance in a cluster some of whose brokers know none.
pub(super) fn lacks_static_members(broker: &Broker, instance_id: Option<&Str>) -> bool {
    let version = broker.config().inter_broker_protocol_version;
    instance_id.is_some() && version < MetadataVersion::IBP_2_3_IV0
}

fn join(broker: &Broker, call: &Call, request: JoinGroupRequest) -> JoinRequest {
    let version = call.version();
    let client_id = Str::from(call.client_id());
    let named = request.group_instance_id.as_ref().unwrap_or(&client_id);
    let protocols = request.protocols.into_iter().map(|it| Protocol { name: it.name, metadata: it.metadata });
    JoinRequest {
        member_id: request.member_id,
        fresh_member_id: Str::from(format!("{}-{}", named.as_str(), broker.draw_uuid())),
        instance_id: request.group_instance_id,
        client_host: Str::from(as_java_prints(call.connection.client_address)),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: if version == 0 {
            request.session_timeout_ms
        } else {
            request.rebalance_timeout_ms
        },
        protocol_type: request.protocol_type,
        protocols: protocols.collect(),
        requires_known_member_id: version >= FIRST_VERSION_WITH_TWO_STEPS,
        may_be_given_id: broker.groups().may_give_out_id(),
        supports_skipping_assignment: version >= FIRST_VERSION_WITH_SKIPPING,
        client_id,
    }
}

/// An address as Java writes one without a host name: `/127.0.0.1`, `/0:0:0:0:0:0:0:1`.
fn as_java_prints(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("/{address}"),
        IpAddr::V6(address) => {
            let parts = address.segments().map(|part| format!("{part:x}"));
            format!("/{}", parts.join(":"))
        }
    }
}

fn response(version: i16, it: JoinAnswer) -> JoinGroupResponse {
    let members = it.members.into_iter().map(|member| JoinGroupResponseMember {
        member_id: member.member_id,
        group_instance_id: member.instance_id,
        metadata: member.metadata,
    });
    let protocol_name = if version >= FIRST_VERSION_WITH_NULL_PROTOCOL {
        it.protocol_name.filter(|name| !name.is_empty())
    } else {
        Some(it.protocol_name.unwrap_or_default())
    };
    JoinGroupResponse {
        error_code: it.error.code(),
        generation_id: it.generation,
        protocol_type: it.protocol_type,
        protocol_name,
        leader: it.leader,
        skip_assignment: it.skip_assignment,
        member_id: it.member_id,
        members: members.collect(),
        ..JoinGroupResponse::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_java_writes_them() {
        let written = |address: &str| as_java_prints(address.parse().unwrap());
        assert_eq!(written("127.0.0.1"), "/127.0.0.1");
        assert_eq!(written("::1"), "/0:0:0:0:0:0:0:1");
        assert_eq!(written("fe80::a:0:ff"), "/fe80:0:0:0:0:a:0:ff");
    }
}
