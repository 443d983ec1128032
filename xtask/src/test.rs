//! `cargo xtask test`: everything that continuous integration runs, in the order of the quickest answer.
//!
//! Formatting, house rules and lints come first, then the tests beside the code, then the end-to-end suites
//! against the release binary. A tool or client that is missing fails the run, nothing is skipped.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;

use crate::command::{command, step};
use crate::tally::Tally;
use crate::{setup, simulation, tidy};

/// The end-to-end suites of the package `interop`, and how many of their tests run at a time.
const SUITES: [(&str, &str); 14] = [
    ("hostile", "1"),
    ("excess", "1"),
    ("durability", "2"),
    ("clients", "2"),
    ("groups", "2"),
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

/// Where the binary for planted faults is built: apart, so that nobody takes it for the real one.
fn planted_folder(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    target.join("planted")
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
    simulation::run(root, depth, tally)?;
    let cache = setup::run(root)?;
    cargo("release binary", &["build", "--release", "--quiet", "--package", "blumfeld"])?;
    let planted = planted_folder(root);
    let features =
        ["build", "--quiet", "--package", "blumfeld", "--features", "planted-faults", "--target-dir"];
    cargo("binary for planted faults", &[&features[..], &[&planted.to_string_lossy()]].concat())?;
    for (suite, threads) in SUITES {
        let lints = ["clippy", "--quiet", "--package", "interop", "--test", suite, "--", "-D", "warnings"];
        cargo(&format!("lints of the suite {suite}"), &lints)?;
        let mut run = command("cargo", &["test", "--package", "interop", "--test", suite, "--"], root);
        run.arg(format!("--test-threads={threads}"));
        run.env("BLUMFELD_TEST_CACHE", &cache).env("BLUMFELD_TEST_DEPTH", depth.name());
        tally.step(&format!("suite {suite}"), &mut run)?;
    }
    Ok(())
}
