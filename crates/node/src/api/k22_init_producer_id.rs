//! InitProducerId (key 22): an id under which a producer's batches are told apart (KIP-98, KIP-360).

use std::sync::Arc;

use wire::error_code::ErrorCode;
use wire::messages::{InitProducerIdRequest, InitProducerIdResponse};

use super::Answer;
use crate::broker::Broker;
use crate::drive::producer_ids;

/// Answers an InitProducerId request.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: InitProducerIdRequest) {
    if (request.producer_id == -1) != (request.producer_epoch == -1) {
        return answer.send(&failed(ErrorCode::InvalidRequest));
    }
    match request.transactional_id.as_deref() {
        None => producer_ids::next(
            broker,
            Box::new(move |id| match id {
                Ok(producer_id) => {
                    answer.send(&InitProducerIdResponse { producer_id, ..InitProducerIdResponse::default() });
                }
                Err(error) => answer.send(&failed(error)),
            }),
        ),
        Some("") => answer.send(&failed(ErrorCode::InvalidRequest)),
        // No broker of this cluster coordinates transactions.
        Some(_) => answer.send(&failed(ErrorCode::CoordinatorNotAvailable)),
    }
}

fn failed(error: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse {
        error_code: error.code(),
        producer_epoch: -1,
        ..InitProducerIdResponse::default()
    }
}
