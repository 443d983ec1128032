//! `cargo xtask bench`: builds the broker and the load generator for speed, and runs the comparison.

use std::path::Path;

use anyhow::Result;

use crate::command::{command, step};
use crate::setup;
use crate::test::Depth;

/// Runs the benchmarks with `arguments` for the program in `bench/`.
///
/// # Errors
/// When something is missing, does not build, or a broker does not answer as it should.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let cache = setup::run(root, Depth::Short)?;
    let build = ["build", "--release", "--quiet", "--package", "blumfeld", "--package", "bench"];
    step("release builds", &mut command("cargo", &build, root))?;
    let mut run = command("cargo", &["run", "--release", "--quiet", "--package", "bench", "--"], root);
    step("benchmarks", run.args(arguments).env("BLUMFELD_TEST_CACHE", &cache))
}
