//! ControlledShutdown (key 7): a broker that is about to stop asks the controller to move its leaderships (KIP-380).

use std::sync::Arc;

use kernel::controller::command::ApiAnswer;
use kernel::controller::event::ApiRequest;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::controlled_shutdown_response::RemainingPartition;
use wire::messages::{ControlledShutdownRequest, ControlledShutdownResponse};
use wire::types::{BrokerEpoch, BrokerId};

use super::Answer;
use crate::broker::Broker;
use crate::drive::controller;

/// Hands a ControlledShutdown request to the controller of this broker.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: ControlledShutdownRequest) {
    let asked = ApiRequest::ControlledShutdown {
        broker: BrokerId(request.broker_id),
        broker_epoch: BrokerEpoch(request.broker_epoch),
    };
    controller::ask(
        broker,
        asked,
        Box::new(move |outcome| {
            let mut response = ControlledShutdownResponse::default();
            match outcome {
                Ok(ApiAnswer::ControlledShutdown(remaining)) => {
                    let partition = |it: wire::types::TopicPartition| RemainingPartition {
                        topic_name: Str::from(it.topic.as_str()),
                        partition_index: it.partition,
                    };
                    response.remaining_partitions = remaining.into_iter().map(partition).collect();
                }
                Ok(_) => response.error_code = ErrorCode::UnknownServerError.code(),
                Err(error) => response.error_code = error.code(),
            }
            answer.send(&response);
        }),
    );
}
