//! `cargo xtask test`: everything that continuous integration runs, in the order of the quickest answer.
//!
//! Formatting, house rules and lints come first, then the tests beside the code, then the end-to-end suites
//! against the release binary, and in the long form ten thousand seeds of the simulation. A tool or client that is
//! missing fails the run, nothing is skipped; a suite that fails does not keep the next from running.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Error, Result, ensure};

use crate::command::{command, step};
use crate::tally::Tally;
use crate::{setup, simulation, tidy};

/// The end-to-end suites of the package `interop`, and how many of their tests run at a time.
const SUITES: [(&str, &str); 14] = [
    ("hostile", "1"),
    ("excess", "1"),
    ("durability", "2"),
    ("clients", "2"),
    ("groups", "4"),
    ("tools", "2"),
    ("zookeeper", "2"),
    ("cluster", "2"),
    ("controller_moves", "3"),
    ("anomalies", "2"),
    ("same_tree", "1"),
    ("fire", "1"),
    ("directory", "2"),
    ("oracle", "1"),
];

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What continuous integration runs.
    Short,
    /// The long forms too.
    Long,
}

impl Depth {
    /// What suites find in `$BLUMFELD_TEST_DEPTH`.
    fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Long => "long",
        }
    }
}

/// Runs all steps; the last line tells how many tests passed and failed, also when a step fails.
///
/// # Errors
/// When a step fails.
pub(crate) fn run(root: &Path, depth: Depth) -> Result<()> {
    let start = Instant::now();
    let mut tally = Tally::default();
    let result = steps(root, depth, &mut tally);
    println!("xtask test ({depth:?}): {:.0} s", start.elapsed().as_secs_f64());
    println!("{tally}");
    result
}

/// Builds the binary for planted faults and puts it apart, so that nobody takes it for the real one.
///
/// It is built among all other builds: a folder of its own would build, and store, every dependency again.
fn planted_binary(root: &Path) -> Result<()> {
    let arguments = ["build", "--quiet", "--package", "blumfeld", "--features", "planted-faults"];
    step("binary for planted faults", &mut command("cargo", &arguments, root))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let apart = target.join("planted/debug");
    std::fs::create_dir_all(&apart).with_context(|| format!("cannot create {}", apart.display()))?;
    std::fs::rename(target.join("debug/blumfeld"), apart.join("blumfeld"))
        .with_context(|| format!("cannot move the binary for planted faults to {}", apart.display()))
}

fn steps(root: &Path, depth: Depth, tally: &mut Tally) -> Result<()> {
    let cargo = |name: &str, arguments: &[&str]| step(name, &mut command("cargo", arguments, root));
    cargo("formatting", &["fmt", "--all", "--check"])?;
    tidy::run(root)?;
    cargo("lints", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    tally.step("tests beside the code", &mut command("cargo", &["test", "--workspace", "--quiet"], root))?;
    for package in ["kernel", "node"] {
        let arguments = ["test", "--package", package, "--features", "planted-faults", "--quiet", "planted"];
        tally.step(&format!("planted faults in {package}"), &mut command("cargo", &arguments, root))?;
    }
    simulation::run(root, tally)?;
    let cache = setup::run(root)?;
    cargo("release binary", &["build", "--release", "--quiet", "--package", "blumfeld"])?;
    planted_binary(root)?;
    let mut failures = suites(root, depth, &cache, tally);
    if depth == Depth::Long {
        failures.extend(simulation::many_seeds(root, tally).err());
    }
    finish(&failures)
}

/// Runs all suites, also after one that fails: a long run tells all that is wrong at once. Returns what failed.
fn suites(root: &Path, depth: Depth, cache: &Path, tally: &mut Tally) -> Vec<Error> {
    let mut one = |suite: &str, threads: &str| {
        let lints = ["clippy", "--quiet", "--package", "interop", "--test", suite, "--", "-D", "warnings"];
        step(&format!("lints of the suite {suite}"), &mut command("cargo", &lints, root))?;
        let mut run = command("cargo", &["test", "--package", "interop", "--test", suite, "--"], root);
        run.arg(format!("--test-threads={threads}"));
        run.env("BLUMFELD_TEST_CACHE", cache).env("BLUMFELD_TEST_DEPTH", depth.name());
        tally.step(&format!("suite {suite}"), &mut run)
    };
    let mut failures = Vec::new();
    for (suite, threads) in SUITES {
        if let Err(failure) = one(suite, threads) {
            println!("{failure:#}");
            failures.push(failure);
        }
    }
    failures
}

/// Fails if anything has failed, and names all of it.
fn finish(failures: &[Error]) -> Result<()> {
    let told: Vec<String> = failures.iter().map(|failure| format!("{failure:#}")).collect();
    ensure!(told.is_empty(), "{}", told.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn every_failure_of_a_run_is_named_at_its_end() {
        finish(&[]).unwrap();
        let error = finish(&[anyhow!("suite one failed"), anyhow!("suite two failed")]).unwrap_err();
        assert_eq!(error.to_string(), "suite one failed\nsuite two failed");
    }
}
