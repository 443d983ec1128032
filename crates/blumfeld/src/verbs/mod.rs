//! One module a verb: its options, what it does, and how it prints.

pub(crate) mod configs;
pub(crate) mod console_consumer;
pub(crate) mod console_producer;
pub(crate) mod dev;
pub(crate) mod dump_log;
pub(crate) mod explain;
pub(crate) mod metadata;
pub(crate) mod server;
pub(crate) mod topics;

use std::future::Future;

use crate::error::VerbError;

/// Runs a verb that talks to a cluster, in this thread.
///
/// # Errors
/// Those of the verb.
pub(crate) fn block_on<T>(verb: impl Future<Output = Result<T, VerbError>>) -> Result<T, VerbError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(verb)
}
