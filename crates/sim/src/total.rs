//! Many runs: several at a time, and what they come to together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::plan::Plan;
use crate::report::Report;
use crate::run::run;
use crate::world::{Fault, KINDS};

/// The states that runs must go through, as the controller names them, and what must happen to logs.
const STATES: [&str; 14] = [
    "partition NewPartition",
    "partition OnlinePartition",
    "partition OfflinePartition",
    "partition NonExistentPartition",
    "replica NewReplica",
    "replica OnlineReplica",
    "replica OfflineReplica",
    "replica ReplicaDeletionStarted",
    "replica ReplicaDeletionSuccessful",
    "replica ReplicaDeletionIneligible",
    "replica NonExistentReplica",
    "logs compacted",
    "logs cut to the start of their leaders'",
    "compacted logs truncated",
];

/// What clients must have got, as they name it.
const DONE: [&str; 8] = [
    "batches confirmed by all",
    "batches written",
    "compacted logs compared",
    "deletions of records confirmed",
    "ends told",
    "records read",
    "starts of logs compared",
    "topics grown",
];

/// Runs `plans`, `at_once` at a time, each from beginning to end in one thread. `done` is told of each in the order of the
/// plans; when it returns false no more are begun.
pub fn run_all(plans: &[Plan], at_once: usize, mut done: impl FnMut(Report) -> bool) {
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let (sender, reports) = mpsc::sync_channel(at_once.max(1));
    std::thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            let (sender, next, is_over) = (sender.clone(), &next, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(plan) = plans.get(at) else { return };
                    if sender.send((at, run(plan))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let (mut early, mut told) = (BTreeMap::new(), 0);
        for (at, report) in reports {
            early.insert(at, report);
            while let Some(report) = early.remove(&told) {
                told += 1;
                if !is_over.load(Ordering::Relaxed) && !done(report) {
                    is_over.store(true, Ordering::Relaxed);
                }
            }
        }
    });
}

/// What runs come to together.
#[derive(Clone, Debug, Default)]
pub struct Total {
    runs: usize,
    failed: usize,
    faults: BTreeMap<Fault, u64>,
    states: BTreeMap<String, u64>,
    done: BTreeMap<&'static str, u64>,
}

impl Total {
    /// Adds a run.
    pub fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.failed += usize::from(!report.findings.is_empty());
        for (fault, count) in &report.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
        for (state, count) in &report.states {
            *self.states.entry(state.clone()).or_default() += count;
        }
        for (what, count) in &report.done {
            *self.done.entry(what).or_default() += count;
        }
    }

    /// How many runs there were.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// How many of them found something.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// The kinds of faults, the states and what clients wanted, as far as no run had them.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let faults = KINDS.iter().filter(|kind| !self.faults.contains_key(kind)).map(ToString::to_string);
        let states = STATES.iter().filter(|state| !self.states.contains_key(**state));
        let done = DONE.iter().filter(|what| !self.done.contains_key(**what));
        faults.chain(states.chain(done).map(|name| (*name).to_owned())).collect()
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (fault, count) in &self.faults {
            writeln!(f, "{count:>10} {fault}")?;
        }
        for (state, count) in &self.states {
            writeln!(f, "{count:>10} {state}")?;
        }
        for (what, count) in &self.done {
            writeln!(f, "{count:>10} {what}")?;
        }
        Ok(())
    }
}
