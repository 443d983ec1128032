//! The broker asks the controller to move its leaderships before it stops (KIP-380).
//!
//! It asks `controlled.shutdown.max.retries` times at most, and stops in any case: what is left then has no leader until
//! the controller sees the broker's session end. A broker that is alone has nobody to hand anything to.

use std::sync::{Arc, mpsc};
use std::time::Duration;

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
    #[error("the controller did not answer in time")]
    NoAnswer,
    #[error("the controller refused: {}", .0.name())]
    Refused(ErrorCode),
    #[error("{0} partitions are still led by this broker")]
    Remaining(usize),
}

/// Hands the leaderships over. Blocks until that is done or given up.
pub(crate) fn hand_over(broker: &Arc<Broker>) {
    let config = broker.config();
    if !config.controlled_shutdown_enable || broker.image().brokers().len() <= 1 {
        return;
    }
    let tries = config.controlled_shutdown_max_retries.max(1);
    let pause =
        Duration::from_millis(u64::try_from(config.controlled_shutdown_retry_backoff_ms).unwrap_or(0));
    for number in 1..=tries {
        match hand_over_once(broker) {
            Ok(()) => {
                tracing::info!("the controller has moved all leaderships of this broker");
                return;
            }
            Err(error) if number < tries => {
                tracing::warn!(%error, "a controlled shutdown did not succeed and is tried again");
                // Nothing else wakes a broker that stops.
                std::thread::sleep(pause);
            }
            Err(error) => tracing::warn!(%error, "the broker stops without a controlled shutdown"),
        }
    }
}

fn hand_over_once(broker: &Arc<Broker>) -> Result<(), Failure> {
    let (controller, address) = to_broker::controller(broker).ok_or(Failure::NoController)?;
    let version = broker.config().inter_broker_protocol_version.controlled_shutdown_version();
    let channel = Channel { broker: controller, purpose: Purpose::ToController };
    let request = ControlledShutdownRequest {
        broker_id: broker.id().0,
        broker_epoch: broker.control().broker_epoch().0,
    };
    let (sender, receiver) = mpsc::sync_channel(1);
    to_broker::call(broker, channel, address, version, &request, move |_, answer| {
        // Whoever has given up waiting listens no more.
        drop(sender.send(answer));
    });
    let answer = receiver.recv_timeout(to_broker::timeout(broker)).map_err(|_| Failure::NoAnswer)?;
    judge(&answer.map_err(Failure::Unanswered)?)
}

fn judge(response: &ControlledShutdownResponse) -> Result<(), Failure> {
    match ErrorCode::from_code(response.error_code) {
        Some(ErrorCode::None) if response.remaining_partitions.is_empty() => Ok(()),
        Some(ErrorCode::None) => Err(Failure::Remaining(response.remaining_partitions.len())),
        error => Err(Failure::Refused(error.unwrap_or(ErrorCode::UnknownServerError))),
    }
}
