//! Tests of another project as a score: how many of those that pass on a real Kafka pass on Blumfeld.
//!
//! Each broker is fresh and alone. A test that fails is run again, among those that failed with it only, on a fresh broker:
//! tests of others wait for fixed times, and a machine that is busy for a moment must not decide. What passes on Kafka
//! and not on Blumfeld is an error that names it.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Result, ensure};

use crate::broker::{Broker, Kind, Options};

/// How many times a test may fail before it counts as failed.
const TRIES: usize = 3;

/// How a test of another project ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is content.
    Passed,
    /// It is not.
    Failed,
    /// It says that it does not apply.
    Skipped,
}

/// The end of each test, by its name; a test that told nothing is not there.
pub type Outcomes = BTreeMap<String, Outcome>;

/// Runs the tests of `project` against both brokers and prints the score. `run` is given the tests that it shall run, or
/// none for all of its selection.
///
/// # Errors
/// When nothing passes on Kafka, something passes there and not on Blumfeld, or `run` fails.
pub fn compare(
    project: &str,
    properties: &[(&str, &str)],
    run: impl Fn(&Broker, &[String]) -> Result<Outcomes>,
) -> Result<()> {
    compare_kinds(project, |kind, tests| {
        let small = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"].map(str::to_owned);
        let options = Options { java_options: small.to_vec(), ..Options::with(properties) };
        run(&Broker::start(kind, options)?, tests)
    })
}

/// As [`compare`], for tests that start brokers themselves: `run` is told of which kind.
///
/// # Errors
/// As [`compare`].
pub fn compare_kinds(project: &str, run: impl Fn(Kind, &[String]) -> Result<Outcomes>) -> Result<()> {
    let kafka = patiently(|tests| run(Kind::Kafka, tests), failed)?;
    let blumfeld = patiently(|tests| run(Kind::Blumfeld, tests), |now| missing(&kafka, now))?;
    let (theirs, missing) = (passed(&kafka), missing(&kafka, &blumfeld));
    let ours = theirs.saturating_sub(missing.len());
    // Not captured by the test runner: the score of a run that is green is worth reading.
    writeln!(std::io::stdout(), "{project}: {ours} of {theirs} tests that pass on Kafka pass on Blumfeld")?;
    ensure!(theirs > 0, "{project}: no test passes on Kafka: {kafka:?}");
    ensure!(missing.is_empty(), "{project}: these pass on Kafka and not on Blumfeld: {missing:?}");
    Ok(())
}

/// Runs all, then what is `wanted` and has not passed, until nothing is left or it has had its tries. What has passed once has
/// passed: a project may run, or skip, more than it was asked for.
fn patiently(
    run: impl Fn(&[String]) -> Result<Outcomes>,
    wanted: impl Fn(&Outcomes) -> Vec<String>,
) -> Result<Outcomes> {
    let mut outcomes = run(&[])?;
    for _ in 1..TRIES {
        let tests = wanted(&outcomes);
        if tests.is_empty() {
            break;
        }
        for (name, outcome) in run(&tests)? {
            let known = outcomes.entry(name).or_insert(outcome);
            if *known != Outcome::Passed {
                *known = outcome;
            }
        }
    }
    Ok(outcomes)
}

fn failed(outcomes: &Outcomes) -> Vec<String> {
    let failed = outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Failed);
    failed.map(|(name, _)| name.clone()).collect()
}

/// What passes on Kafka and not on Blumfeld.
fn missing(kafka: &Outcomes, blumfeld: &Outcomes) -> Vec<String> {
    let passes = |name: &&String| blumfeld.get(*name) != Some(&Outcome::Passed);
    let theirs = kafka.iter().filter(|(_, outcome)| **outcome == Outcome::Passed).map(|(name, _)| name);
    theirs.filter(passes).cloned().collect()
}

fn passed(outcomes: &Outcomes) -> usize {
    outcomes.values().filter(|outcome| **outcome == Outcome::Passed).count()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn outcomes(all: &[(&str, Outcome)]) -> Outcomes {
        all.iter().map(|(name, outcome)| ((*name).to_owned(), *outcome)).collect()
    }

    #[test]
    fn what_passes_there_and_fails_is_skipped_or_tells_nothing_here_is_missing() {
        use Outcome::{Failed, Passed, Skipped};
        let kafka = outcomes(&[("a", Passed), ("b", Passed), ("c", Passed), ("d", Passed), ("e", Failed)]);
        let blumfeld = outcomes(&[("a", Passed), ("b", Failed), ("c", Skipped), ("e", Failed)]);
        assert_eq!(missing(&kafka, &blumfeld), ["b", "c", "d"]);
        assert_eq!((passed(&kafka), passed(&blumfeld)), (4, 1));
    }

    #[test]
    fn what_has_passed_stays_passed_when_others_are_run_again() {
        use Outcome::{Failed, Passed, Skipped};
        let run = |tests: &[String]| {
            let (done, again) = if tests.is_empty() { (Passed, Failed) } else { (Skipped, Passed) };
            Ok(outcomes(&[("done", done), ("again", again)]))
        };
        assert_eq!(patiently(run, failed).unwrap(), outcomes(&[("done", Passed), ("again", Passed)]));
    }

    #[test]
    fn what_fails_is_run_again_alone_until_it_has_had_its_tries() {
        let calls: RefCell<Vec<Vec<String>>> = RefCell::default();
        let run = |tests: &[String]| {
            calls.borrow_mut().push(tests.to_vec());
            let second = if tests.is_empty() { Outcome::Failed } else { Outcome::Passed };
            Ok(outcomes(&[("never", Outcome::Failed), ("second", second)]))
        };
        let end = patiently(run, failed).unwrap();
        assert_eq!(end, outcomes(&[("never", Outcome::Failed), ("second", Outcome::Passed)]));
        let expected: [&[&str]; TRIES] = [&[], &["never", "second"], &["never"]];
        assert_eq!(*calls.borrow(), expected);
    }
}
