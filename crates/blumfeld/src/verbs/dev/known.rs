//! A cluster is there when each of its brokers knows of all: only then a client that asks the first one that it finds
//! is told the whole, and a topic with as many copies as there are brokers can be created.
//!
//! Each broker is asked as a client asks it, again and again, since the controller tells one after the other.

use std::net::SocketAddr;
use std::time::Duration;

use net::client::{Client, ClientError};
use server::run::Serving;
use tokio::time::{Instant, sleep};
use wire::messages::MetadataRequest;

use crate::error::VerbError;
use crate::verbs::block_on;

/// How long it may take until all know of all. It takes milliseconds, and a few hundred when the controller was too early.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until all of these know of each other and of a controller. May be called on a thread that drives a runtime.
///
/// # Errors
/// If that takes too long.
pub(super) fn until_all_known(serving: &[Serving]) -> Result<(), VerbError> {
    let asking = || block_on(ask_all(serving));
    // A runtime cannot wait within another one.
    let asked = std::thread::scope(|scope| scope.spawn(asking).join());
    asked.unwrap_or_else(|_| Err(VerbError::Failed("the question for the brokers broke off".to_owned())))
}

async fn ask_all(serving: &[Serving]) -> Result<(), VerbError> {
    let deadline = Instant::now() + PATIENCE;
    for broker in serving {
        let Some(address) = broker.addresses.first() else { continue };
        while !knows(*address, serving.len()).await.unwrap_or(false) {
            if Instant::now() >= deadline {
                let seconds = PATIENCE.as_secs();
                return Err(VerbError::Failed(format!(
                    "broker {} does not know of all after {seconds} s",
                    broker.id
                )));
            }
            sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Whether the broker at `address` knows of a controller and of `count` brokers.
async fn knows(address: SocketAddr, count: usize) -> Result<bool, ClientError> {
    let mut client = Client::connect(&address.to_string(), "blumfeld-dev").await?;
    let request = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
    let metadata = client.send(&request).await?;
    Ok(metadata.controller_id >= 0 && metadata.brokers.len() == count)
}
