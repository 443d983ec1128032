//! Programs of the real Kafka, run from the jars in the cache.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::cache;
use crate::process::{Finished, run, run_well};

/// How long a tool may take.
const TOOL_LIMIT: Duration = Duration::from_secs(120);

/// A set of jars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jars {
    /// Kafka 3.9: broker, ZooKeeper, tools.
    Kafka39,
    /// The tools of the newest line.
    Tools4,
}

impl Jars {
    fn class_path(self) -> Result<PathBuf> {
        let name = match self {
            Self::Kafka39 => "kafka-3.9",
            Self::Tools4 => "tools-4",
        };
        let folder = cache::folder()?.join(name).join("jars");
        ensure!(folder.is_dir(), "{} is missing: run `cargo xtask setup` once", folder.display());
        Ok(folder.join("*"))
    }
}

/// A Java command with `options` for the virtual machine.
///
/// # Errors
/// When the jars are not installed.
pub fn command(jars: Jars, options: &[&str], main_class: &str, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new("java");
    command.args(options).arg("-cp").arg(jars.class_path()?).arg(main_class).args(arguments);
    Ok(command)
}

fn tool_command(jars: Jars, main_class: &str, arguments: &[&str]) -> Result<Command> {
    let options = ["-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"];
    command(jars, &options, main_class, arguments)
}

/// Runs a tool and wants it to succeed.
///
/// # Errors
/// When it fails or takes more than two minutes.
pub fn tool(jars: Jars, main_class: &str, arguments: &[&str], input: &str) -> Result<Finished> {
    run_well(&mut tool_command(jars, main_class, arguments)?, input, TOOL_LIMIT)
}

/// Runs a tool whose exit code is judged by the caller.
///
/// # Errors
/// When it cannot be run or takes more than two minutes.
pub fn tool_any_end(jars: Jars, main_class: &str, arguments: &[&str]) -> Result<Finished> {
    run(&mut tool_command(jars, main_class, arguments)?, "", TOOL_LIMIT)
}
