//! The binary: a broker and the tools that Kafka's users know, one verb each.
//!
//! Nothing is done here before the verb runs, so that a broker answers within milliseconds of its start. Verbs
//! are clients like any other: what they do, an unmodified Kafka tool can do too.

mod allocator;
mod cli;
mod cluster;
mod error;
mod group;
mod logging;
mod output;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(std::env::args_os())
}
