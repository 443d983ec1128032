//! The simulation as a step of the tests: many seeds, and faults planted in the brokers that it must find.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command::command;
use crate::tally::Tally;

/// How to run it: optimised, with every assertion, and able to plant faults.
const SIM: [&str; 9] =
    ["run", "--quiet", "--profile", "sim", "--package", "sim", "--features", "planted-faults", "--"];
/// How many seeds may be needed to find a planted fault.
const SEEDS_PER_PLANTED: &str = "60";

/// How many seeds are one step, which tells when it is done.
const SEEDS_PER_STEP: usize = 500;

/// Seeds that every run tries, and those of the long form.
const FEW: usize = 300;
const MANY: usize = 10_000;

/// Runs a few seeds, each with both versions of the protocol between brokers; then with planted faults.
///
/// # Errors
/// When a run finds something, a kind of fault or state never occurs, or a planted fault is not found.
pub(crate) fn run(root: &Path, tally: &mut Tally) -> Result<()> {
    seeds(root, 1, FEW, tally)?;
    let cores = cores();
    let planted = ["--count", SEEDS_PER_PLANTED, "--ms", "40000", "--at-once", &cores, "--planted", "all"];
    tally.step("simulation with planted faults", &mut sim(root, &planted))
}

/// Runs the seeds of the long form that [`run`] has not tried.
///
/// # Errors
/// Those of [`run`].
pub(crate) fn many_seeds(root: &Path, tally: &mut Tally) -> Result<()> {
    for first in (FEW + 1..=MANY).step_by(SEEDS_PER_STEP) {
        seeds(root, first, SEEDS_PER_STEP.min(MANY + 1 - first), tally)?;
    }
    Ok(())
}

fn seeds(root: &Path, first: usize, count: usize, tally: &mut Tally) -> Result<()> {
    let runs = format!("--seed {first} --count {count} --at-once {} --counts --every-kind", cores());
    let runs: Vec<&str> = runs.split(' ').collect();
    tally.step(&format!("simulation, {count} seeds from {first}"), &mut sim(root, &runs))
}

fn sim(root: &Path, arguments: &[&str]) -> Command {
    command("cargo", &[&SIM[..], arguments].concat(), root)
}

fn cores() -> String {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).to_string()
}
