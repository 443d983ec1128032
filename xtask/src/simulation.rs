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

/// How many seeds one process runs: what the brokers of a run leave behind in memory goes with it.
const SEEDS_PER_PROCESS: usize = 500;

/// Runs the seeds of a depth, each with both versions of the protocol between brokers; then with planted faults.
///
/// # Errors
/// When a run finds something, a kind of fault or state never occurs, or a planted fault is not found.
pub(crate) fn run(root: &Path, depth: Depth, tally: &mut Tally) -> Result<()> {
    let seeds = match depth {
        Depth::Short => 300,
        Depth::Long => 10_000,
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).to_string();
    let sim = |arguments: &[&str]| command("cargo", &[&SIM[..], arguments].concat(), root);
    for first in (1..=seeds).step_by(SEEDS_PER_PROCESS) {
        let count = SEEDS_PER_PROCESS.min(seeds + 1 - first).to_string();
        let runs = format!("--seed {first} --count {count} --at-once {cores} --counts --every-kind");
        let runs: Vec<&str> = runs.split(' ').collect();
        tally.step(&format!("simulation, {count} seeds from {first}"), &mut sim(&runs))?;
    }
    let planted = ["--count", SEEDS_PER_PLANTED, "--ms", "40000", "--at-once", &cores, "--planted", "all"];
    tally.step("simulation with planted faults", &mut sim(&planted))
}
