//! FindCoordinator (key 10): which broker coordinates a group (KIP-699).
//!
//! It is the leader of the partition of `__consumer_offsets` that keeps the group. The first question creates that topic,
//! and is answered like all until there is a leader: COORDINATOR_NOT_AVAILABLE, ask again. Nobody coordinates
//! transactions here, so that is what those who ask for their coordinator are told, too.

use std::sync::Arc;

use kernel::topic_name::CONSUMER_OFFSETS;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::find_coordinator_response::Coordinator;
use wire::messages::{FindCoordinatorRequest, FindCoordinatorResponse};

use crate::broker::Broker;
use crate::call::Call;
use crate::drive::{auto_create, groups};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;
/// The first version that asks for several keys, and may ask for a share coordinator only two versions later.
const FIRST_BATCHED_VERSION: i16 = 4;
const FIRST_VERSION_WITH_SHARE: i16 = 6;

/// Answers a FindCoordinator request.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    call: &Call,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    let version = call.version();
    let key_type = if version == 0 { GROUP } else { request.key_type };
    let is_known = match key_type {
        GROUP | TRANSACTION => true,
        SHARE => version >= FIRST_VERSION_WITH_SHARE,
        _ => false,
    };
    let of = |key: Str| {
        let found =
            if is_known { find(broker, call, key_type, &key) } else { Err(ErrorCode::InvalidRequest) };
        told(key, found, !is_known)
    };
    if version >= FIRST_BATCHED_VERSION {
        let coordinators = request.coordinator_keys.into_iter().map(of).collect();
        return FindCoordinatorResponse { coordinators, ..FindCoordinatorResponse::default() };
    }
    let it = of(request.key);
    let error = ErrorCode::from_code(it.error_code).unwrap_or(ErrorCode::UnknownServerError);
    FindCoordinatorResponse {
        error_code: it.error_code,
        // Without an error the message is the name of that, NONE.
        error_message: Some(Str::from(if error.is_error() { error.message() } else { error.name() })),
        node_id: it.node_id,
        host: it.host,
        port: it.port,
        ..FindCoordinatorResponse::default()
    }
}

/// Where a coordinator listens.
struct Node {
    id: i32,
    host: Str,
    port: i32,
}

fn find(broker: &Arc<Broker>, call: &Call, key_type: i8, key: &str) -> Result<Node, ErrorCode> {
    let unavailable = ErrorCode::CoordinatorNotAvailable;
    if key_type != GROUP {
        return Err(unavailable);
    }
    let image = broker.image();
    if image.topic(CONSUMER_OFFSETS).is_none() {
        auto_create::create(broker, CONSUMER_OFFSETS);
        return Err(unavailable);
    }
    let index = groups::partition_of(broker, &image, key).ok_or(unavailable)?;
    let leader = image.partition(CONSUMER_OFFSETS, index).ok_or(unavailable)?.leader;
    let info = image.brokers().get(&leader).ok_or(unavailable)?;
    let endpoint = info.endpoint(&call.connection.listener).ok_or(unavailable)?;
    Ok(Node { id: leader.0, host: Str::from(endpoint.host.as_str()), port: endpoint.port })
}

fn told(key: Str, found: Result<Node, ErrorCode>, explains: bool) -> Coordinator {
    match found {
        Ok(Node { id, host, port }) => Coordinator { key, node_id: id, host, port, ..Coordinator::default() },
        Err(error) => Coordinator {
            key,
            node_id: -1,
            port: -1,
            error_code: error.code(),
            error_message: Some(if explains { Str::from(error.message()) } else { Str::EMPTY }),
            ..Coordinator::default()
        },
    }
}
