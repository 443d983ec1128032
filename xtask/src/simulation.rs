//! The simulation as a step of the tests: many seeds, and faults planted in the brokers that it must find.

use std::path::Path;

use anyhow::Result;

use crate::command::command;
use crate::tally::Tally;
use crate::test::Depth;

/// How to run it: optimised, with every assertion, and able to plant faults.
const SIM: [&str; 9] =
    ["run", "--quiet", "--profile", "sim", "--package", "sim", "--features", "planted-faults", "--"];
/// How many seeds may be needed to find a planted fault.
const SEEDS_PER_PLANTED: &str = "60";

/// Runs the seeds of a depth, each with both versions of the protocol between brokers; then with planted faults.
///
/// # Errors
/// When a run finds something, a kind of fault or state never occurs, or a planted fault is not found.
pub(crate) fn run(root: &Path, depth: Depth, tally: &mut Tally) -> Result<()> {
    let (seeds, ms) = match depth {
        Depth::Short => ("300", "25000"),
        Depth::Long => ("10000", "40000"),
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).to_string();
    let runs = ["--count", seeds, "--ms", ms, "--at-once", &cores, "--counts", "--every-kind"];
    let planted = ["--count", SEEDS_PER_PLANTED, "--at-once", &cores, "--planted", "all"];
    let sim = |arguments: &[&str]| command("cargo", &[&SIM[..], arguments].concat(), root);
    tally.step("simulation", &mut sim(&runs))?;
    tally.step("simulation with planted faults", &mut sim(&planted))
}
