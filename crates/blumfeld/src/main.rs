//! The `blumfeld` binary: the server, and Kafka's tools as verbs of one program.
//!
//! A verb ends with 0 when it did what was asked, with 1 when it did not, and with 2 when it was asked in a
//! way that it does not understand.

mod client;
mod failure;
mod output;
mod verbs;

use std::process::ExitCode;

use clap::Parser;
use verbs::Verb;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A broker of Apache Kafka's protocol, and the tools to work with it
#[derive(Debug, Parser)]
#[command(name = "blumfeld", version, propagate_version = true, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

fn main() -> ExitCode {
    match CommandLine::parse().verb.run() {
        Ok(code) => code,
        Err(failure) if failure.is_quiet() => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        CommandLine::command().debug_assert();
    }
}
