//! AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids (KIP-730).

use std::sync::Arc;

use kernel::controller::command::ApiAnswer;
use kernel::controller::event::ApiRequest;
use wire::error_code::ErrorCode;
use wire::messages::{AllocateProducerIdsRequest, AllocateProducerIdsResponse};
use wire::types::{BrokerEpoch, BrokerId};

use super::Answer;
use crate::broker::Broker;
use crate::drive::controller;

/// Hands an AllocateProducerIds request to the controller of this broker.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: AllocateProducerIdsRequest) {
    let asked = ApiRequest::AllocateProducerIds {
        broker: BrokerId(request.broker_id),
        broker_epoch: BrokerEpoch(request.broker_epoch),
    };
    controller::ask(
        broker,
        asked,
        Box::new(move |outcome| {
            let mut response = AllocateProducerIdsResponse::default();
            match outcome {
                Ok(ApiAnswer::AllocateProducerIds(block)) => {
                    response.producer_id_start = block.first;
                    let len = block.last.saturating_sub(block.first).saturating_add(1);
                    response.producer_id_len = i32::try_from(len).unwrap_or(i32::MAX);
                }
                Ok(_) => response.error_code = ErrorCode::UnknownServerError.code(),
                Err(error) => response.error_code = error.code(),
            }
            answer.send(&response);
        }),
    );
}
