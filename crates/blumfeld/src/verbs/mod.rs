//! The verbs, one module each.

mod configs;
mod topics;

use std::future::Future;
use std::process::ExitCode;

use crate::failure::Failure;

/// What the program is asked to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Topics(topics::Args),
    Configs(configs::Args),
}

impl Verb {
    /// Does it.
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Topics(args) => wait(topics::run(&args)),
            Self::Configs(args) => wait(configs::run(&args)),
        }
    }
}

/// Runs a client verb to its end, on this thread.
fn wait(work: impl Future<Output = Result<(), Failure>>) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work).map(|()| ExitCode::SUCCESS)
}
