//! The broker asks the controller to move its leaderships before it stops (KIP-380).
//!
//! It asks `controlled.shutdown.max.retries` times at most, and stops in any case: what is left then has no leader until
//! the controller sees the broker's session end. A broker that is alone has nobody to hand anything to.

use std::sync::Arc;

use wire::error_code::ErrorCode;
use wire::messages::{ControlledShutdownRequest, ControlledShutdownResponse};

use super::to_broker;
use crate::broker::Broker;
use crate::peers::{Channel, Purpose};

/// Why a try has not moved everything.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("no controller is known")]
    NoController,
    #[error("{0}")]
    Unanswered(String),
    #[error("the controller refused: {}", .0.name())]
    Refused(ErrorCode),
    #[error("{0} partitions are still led by this broker")]
    Remaining(usize),
}

/// Called when the leaderships are handed over, or when that is given up.
type Done = Box<dyn FnOnce() + Send>;

/// Hands the leaderships over.
pub(crate) fn hand_over(broker: &Arc<Broker>, done: Done) {
    if !broker.config().controlled_shutdown_enable || broker.image().brokers().len() <= 1 {
        return done();
    }
    attempt(broker, 1, done);
}

/// Asks for the time number `number`, from 1.
fn attempt(broker: &Arc<Broker>, number: i32, done: Done) {
    ask(broker, move |broker, outcome| match outcome {
        Ok(()) => {
            tracing::info!("the controller has moved all leaderships of this broker");
            done();
        }
        Err(error) if number < broker.config().controlled_shutdown_max_retries => {
            tracing::warn!(%error, "a controlled shutdown did not succeed and is tried again");
            let pause_ms = broker.config().controlled_shutdown_retry_backoff_ms;
            let again_ms = broker.now().mono_ms.saturating_add(pause_ms);
            broker.timers().add_task(again_ms, move |broker| attempt(broker, number + 1, done));
        }
        Err(error) => {
            tracing::warn!(%error, "the broker stops without a controlled shutdown");
            done();
        }
    });
}

fn ask(broker: &Arc<Broker>, then: impl FnOnce(&Arc<Broker>, Result<(), Failure>) + Send + 'static) {
    let Some((controller, address)) = to_broker::controller(broker) else {
        return then(broker, Err(Failure::NoController));
    };
    let version = broker.config().inter_broker_protocol_version.controlled_shutdown_version();
    let channel = Channel { broker: controller, purpose: Purpose::ToController };
    let request = ControlledShutdownRequest {
        broker_id: broker.id().0,
        broker_epoch: broker.control().broker_epoch().0,
    };
    to_broker::call(broker, channel, address, version, &request, move |broker, answer| {
        then(broker, answer.map_err(Failure::Unanswered).and_then(|response| judge(&response)));
    });
}

fn judge(response: &ControlledShutdownResponse) -> Result<(), Failure> {
    match ErrorCode::from_code(response.error_code) {
        Some(ErrorCode::None) if response.remaining_partitions.is_empty() => Ok(()),
        Some(ErrorCode::None) => Err(Failure::Remaining(response.remaining_partitions.len())),
        error => Err(Failure::Refused(error.unwrap_or(ErrorCode::UnknownServerError))),
    }
}
