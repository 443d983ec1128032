//! Task runner of the workspace.
//!
//! `cargo xtask tidy` checks what the compiler cannot: arrows between crates, sizes, placeholders, links.
//! `cargo xtask setup` installs what the end-to-end tests need; `cargo xtask test` runs everything that
//! continuous integration runs; `cargo xtask bench` measures Blumfeld beside a real Kafka.

mod bench;
mod command;
mod others;
mod setup;
mod simulation;
mod tally;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND
  tidy          check arrows between crates, file sizes, placeholders, module comments and links
  setup [--all] install the tools and clients that the end-to-end tests need (--all: those of the long forms too)
  test [--all]  run everything that continuous integration runs (--all: the long forms too)
  bench [--quick] [--rounds N] [--only-blumfeld | --only-kafka] [throughput] [latency] [startup] [partitions]
        [compaction] [groups] [connections] [cluster]
                measure Blumfeld beside a real Kafka
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = workspace_root()?;
    match arguments.as_slice() {
        ["tidy"] => tidy::run(&root),
        ["setup"] => setup::run(&root, test::Depth::Short).map(|_| ()),
        ["setup", "--all"] => setup::run(&root, test::Depth::Long).map(|_| ()),
        ["bench", rest @ ..] => bench::run(&root, rest),
        ["test"] => test::run(&root, test::Depth::Short),
        ["test", "--all"] => test::run(&root, test::Depth::Long),
        _ => {
            eprint!("{USAGE}");
            bail!("unknown command line {arguments:?}")
        }
    }
}

/// The folder of the workspace's `Cargo.toml`: the parent of this package's folder.
fn workspace_root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .context("the task runner's package has no parent folder")
}
