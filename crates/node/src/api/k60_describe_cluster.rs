//! DescribeCluster (key 60): the live brokers and the controller (KIP-700, KIP-919).

use std::sync::Arc;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::describe_cluster_response::DescribeClusterBroker;
use wire::messages::{DescribeClusterRequest, DescribeClusterResponse};
use wire::types::BrokerId;

use super::authorized::CLUSTER_OPERATIONS;
use crate::broker::Broker;
use crate::call::Call;

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// Answers a DescribeCluster request.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    call: &Call,
    request: DescribeClusterRequest,
) -> DescribeClusterResponse {
    let mut response = DescribeClusterResponse::default();
    if call.version() >= 1 {
        let refused = match request.endpoint_type {
            BROKERS => None,
            CONTROLLERS => Some((
                ErrorCode::MismatchedEndpointType,
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
            )),
            _ => Some((ErrorCode::UnsupportedEndpointType, "Unsupported endpoint type")),
        };
        if let Some((error, message)) = refused {
            response.error_code = error.code();
            response.error_message = Some(Str::from(message));
            return response;
        }
    }
    let image = broker.image();
    response.cluster_id = image.cluster_id().map(Str::from).unwrap_or_default();
    response.brokers = image
        .brokers()
        .iter()
        .filter_map(|(id, info)| {
            let endpoint = info.endpoint(&call.connection.listener)?;
            Some(DescribeClusterBroker {
                broker_id: id.0,
                host: Str::from(endpoint.host.as_str()),
                port: endpoint.port,
                rack: info.rack.as_deref().map(Str::from),
            })
        })
        .collect();
    let listed = |id: &BrokerId| response.brokers.iter().any(|broker| broker.broker_id == id.0);
    response.controller_id = image.controller().filter(listed).unwrap_or(BrokerId::NONE).0;
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = CLUSTER_OPERATIONS;
    }
    response
}
