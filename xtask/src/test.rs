//! `cargo xtask test`: everything that continuous integration runs, in the order of the quickest answer.
//!
//! Formatting, house rules and lints come first, then the tests beside the code, then the end-to-end suites
//! against the release binary, and in the long form ten thousand seeds of the simulation. A tool or client that is
//! missing fails the run, nothing is skipped; a suite that fails does not keep the next from running.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Error, Result, anyhow, ensure};

use crate::command::{command, step};
use crate::tally::Tally;
use crate::{setup, simulation, tidy};

/// An end-to-end suite of the package `interop`, and how many of its tests run at a time.
type Suite = (&'static str, &'static str);

/// Suites that judge memory and time have the machine for themselves.
const ALONE: [Suite; 5] =
    [("hostile", "1"), ("excess", "1"), ("durability", "2"), ("cluster", "2"), ("fire", "1")];

/// The others wait for processes most of the time: two go on side by side, each with the next of its list.
const SIDE_BY_SIDE: [&[Suite]; 2] = [
    &[
        ("oracle", "1"),
        ("clients", "2"),
        ("zookeeper", "2"),
        ("controller_moves", "3"),
        ("anomalies", "2"),
        ("others", "1"),
    ],
    &[("directory", "2"), ("groups", "4"), ("tools", "2"), ("same_tree", "1")],
];

/// Suites that have a long form only.
const LONG: [Suite; 1] = [("others_long", "1")];

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
    // These are no part of all targets.
    let suites_lints = [&["clippy", "--workspace", "--quiet"], &names()[..], &["--", "-D", "warnings"]];
    cargo("lints of the suites", &suites_lints.concat())?;
    tally.step("tests beside the code", &mut command("cargo", &["test", "--workspace", "--quiet"], root))?;
    for package in ["kernel", "node"] {
        let arguments = ["test", "--package", package, "--features", "planted-faults", "--quiet", "planted"];
        tally.step(&format!("planted faults in {package}"), &mut command("cargo", &arguments, root))?;
    }
    simulation::run(root, tally)?;
    let cache = setup::run(root, depth)?;
    cargo("release binary", &["build", "--release", "--quiet", "--package", "blumfeld"])?;
    planted_binary(root)?;
    let mut failures = suites(root, depth, &cache, tally);
    if depth == Depth::Long {
        failures.extend(simulation::many_seeds(root, tally).err());
    }
    finish(&failures)
}

/// Cargo's arguments that choose all suites.
fn names() -> Vec<&'static str> {
    let all = ALONE.iter().chain(SIDE_BY_SIDE.into_iter().flatten()).chain(&LONG);
    all.flat_map(|(suite, _)| ["--test", *suite]).collect()
}

/// Builds and runs all suites, also after one that fails: a run tells all that is wrong at once. Returns what failed.
fn suites(root: &Path, depth: Depth, cache: &Path, tally: &mut Tally) -> Vec<Error> {
    let long: &[Suite] = if depth == Depth::Long { &LONG } else { &[] };
    // Of the whole workspace, so that dependencies are those that are built already, with the same features.
    let build = [&["test", "--workspace", "--quiet", "--no-run"], &names()[..]].concat();
    if let Err(failure) = step("programs of the suites", &mut command("cargo", &build, root)) {
        return vec![failure];
    }
    let program = |(suite, threads): Suite| {
        let mut run = command("cargo", &["test", "--workspace", "--quiet", "--test", suite, "--"], root);
        run.arg(format!("--test-threads={threads}"));
        run.env("BLUMFELD_TEST_CACHE", cache).env("BLUMFELD_TEST_DEPTH", depth.name());
        (format!("suite {suite}"), run)
    };
    let mut failures = Vec::new();
    for (name, mut run) in ALONE.map(program) {
        failures.extend(tally.step(&name, &mut run).err());
    }
    let lists = SIDE_BY_SIDE.map(|list| list.iter().copied().map(program).collect());
    failures.extend(side_by_side(lists, tally));
    for (name, mut run) in long.iter().copied().map(program) {
        failures.extend(tally.step(&name, &mut run).err());
    }
    failures
}

/// Goes through both lists at the same time; what a program prints is shown when it has ended.
fn side_by_side(lists: [Vec<(String, Command)>; 2], tally: &mut Tally) -> Vec<Error> {
    let one = |list: Vec<(String, Command)>| {
        let (mut tally, mut failures) = (Tally::default(), Vec::new());
        for (name, mut run) in list {
            failures.extend(tally.step_quietly(&name, &mut run).err());
        }
        (tally, failures)
    };
    let ran = std::thread::scope(|scope| {
        lists.map(|list| scope.spawn(move || one(list))).map(std::thread::ScopedJoinHandle::join)
    });
    let mut failures = Vec::new();
    for list in ran {
        match list {
            Ok((counted, failed)) => {
                *tally += counted;
                failures.extend(failed);
            }
            Err(_) => failures.push(anyhow!("a list of suites has panicked")),
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
    use super::*;

    #[test]
    fn every_failure_of_a_run_is_named_at_its_end() {
        finish(&[]).unwrap();
        let error = finish(&[anyhow!("suite one failed"), anyhow!("suite two failed")]).unwrap_err();
        assert_eq!(error.to_string(), "suite one failed\nsuite two failed");
    }

    #[test]
    fn two_lists_are_run_to_their_ends_whatever_fails_in_them() {
        let program =
            |name: &str, script: &str| (name.to_owned(), command("sh", &["-c", script], Path::new("/")));
        let passes = "echo 'test result: ok. 2 passed; 0 failed'";
        let fails = "echo 'test result: FAILED. 1 passed; 1 failed'; exit 101";
        let lists = [
            vec![program("first", fails), program("second", passes)],
            vec![program("third", passes), program("fourth", fails)],
        ];
        let mut tally = Tally::default();
        let failures = side_by_side(lists, &mut tally);
        assert_eq!(tally.to_string(), "6 passed, 2 failed");
        let told: Vec<_> = failures.iter().map(ToString::to_string).collect();
        assert!(told.len() == 2 && told[0].contains("first") && told[1].contains("fourth"), "{told:?}");
    }
}
