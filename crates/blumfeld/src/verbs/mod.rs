//! One module a verb: its options, what it does, and how it prints.

pub(crate) mod api_versions;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod configs;
pub(crate) mod console_consumer;
pub(crate) mod console_producer;
pub(crate) mod consumer_groups;
pub(crate) mod consumer_perf;
pub(crate) mod delete_records;
pub(crate) mod dev;
pub(crate) mod dump_log;
pub(crate) mod end_to_end_latency;
pub(crate) mod explain;
pub(crate) mod get_offsets;
mod latencies;
pub(crate) mod leader_election;
pub(crate) mod log_dirs;
pub(crate) mod metadata;
mod pace;
pub(crate) mod partition_list;
pub(crate) mod producer_perf;
pub(crate) mod select;
pub(crate) mod server;
pub(crate) mod topics;
pub(crate) mod verifiable_consumer;
pub(crate) mod verifiable_producer;

use std::future::Future;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cluster::Cluster;
use crate::cluster::settings::{ClientSettings, ConnectOptions};
use crate::error::VerbError;

/// Runs a verb that talks to a cluster, in this thread.
///
/// # Errors
/// Those of the verb.
pub(crate) fn block_on<T>(verb: impl Future<Output = Result<T, VerbError>>) -> Result<T, VerbError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(verb)
}

/// Connects as the options say; `client_id` is the default of `client.id`.
///
/// # Errors
/// If the options cannot be used, or no broker answers.
pub(crate) async fn connect(options: &ConnectOptions, client_id: &str) -> Result<Cluster, VerbError> {
    let mut properties = options.properties(&[])?;
    let settings = ClientSettings::take(&mut properties, client_id)?;
    properties.warn_rest();
    Ok(Cluster::connect(options.servers()?, settings).await?)
}

/// Milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Becomes true when the process is asked to end (SIGINT, SIGTERM), so that a verb can end in order; asked once more,
/// the process ends at once. Within [`block_on`] only.
///
/// # Errors
/// If the system does not let signals be handled.
pub(crate) fn asked_to_end() -> Result<watch::Receiver<bool>, VerbError> {
    let (sender, receiver) = watch::channel(false);
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if sender.send_replace(true) {
                std::process::exit(1);
            }
        }
    });
    Ok(receiver)
}
