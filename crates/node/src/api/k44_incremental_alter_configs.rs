//! IncrementalAlterConfigs (key 44): sets, deletes, appends and subtracts single configs of a topic or a broker (KIP-339).

use std::sync::Arc;

use wire::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use wire::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use super::Answer;
use super::k33_alter_configs::{Stored, carry_out, read_stored};
use crate::broker::Broker;
use crate::config::alter::{Alteration, Change, Way};

/// Answers an IncrementalAlterConfigs request once every resource is altered or refused.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: IncrementalAlterConfigsRequest) {
    let names: Vec<_> = request.resources.iter().map(|resource| resource.resource_name.clone()).collect();
    let then = broker.clone();
    read_stored(broker, &names, move |stored| alter(&then, answer, &request, &stored));
}

fn alter(broker: &Arc<Broker>, answer: Answer, request: &IncrementalAlterConfigsRequest, stored: &Stored) {
    let wanted = request.resources.iter().map(|resource| Alteration {
        resource_type: resource.resource_type,
        resource_name: &resource.resource_name,
        changes: resource
            .configs
            .iter()
            .map(|config| Change {
                name: &config.name,
                operation: config.config_operation,
                value: config.value.as_deref(),
            })
            .collect(),
    });
    let wanted: Vec<_> = wanted.collect();
    carry_out(broker, Way::Incremental, request.validate_only, &wanted, stored, move |outcomes| {
        let responses = outcomes.into_iter().map(|outcome| AlterConfigsResourceResponse {
            error_code: outcome.error_code,
            error_message: outcome.error_message,
            resource_type: outcome.resource_type,
            resource_name: outcome.resource_name,
        });
        answer.send(&IncrementalAlterConfigsResponse {
            responses: responses.collect(),
            ..IncrementalAlterConfigsResponse::default()
        });
    });
}
