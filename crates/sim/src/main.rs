//! `sim --seed N`: runs of the simulation from the command line.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use kernel::planted::Fault;
use sim::{Plan, Protocol, Report, Total, run_all};

/// Three brokers in one thread, from one seed.
#[derive(Debug, Parser)]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds are run.
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// How many of them at a time, each in a thread of its own.
    #[arg(long, default_value_t = 1)]
    at_once: usize,
    /// `inter.broker.protocol.version`: 2.6 or 3.9; both if it is not given.
    #[arg(long)]
    ibp: Option<Protocol>,
    /// How long things go wrong, in milliseconds of virtual time.
    #[arg(long, default_value_t = sim::USUAL_MS)]
    ms: u64,
    /// Nothing goes wrong.
    #[arg(long)]
    calm: bool,
    /// Prints all that happens.
    #[arg(long)]
    loud: bool,
    /// Prints the counts of faults, states and what clients did.
    #[arg(long)]
    counts: bool,
    /// Fails when a kind of fault or a state did not occur in any run.
    #[arg(long)]
    every_kind: bool,
    /// A fault that the brokers have: the first run that finds it is the last, and none is a failure. `all` plants one after
    /// the other. Only a build with the feature `planted-faults` can.
    #[arg(long, value_parser = faults)]
    planted: Option<Faults>,
}

/// The faults that simulations must find. The others lie behind a second fence; real processes find them, in the suite
/// `controller_moves`.
const OF_SIMULATIONS: [Fault; 5] = [
    Fault::TruncationByHighWatermark,
    Fault::EpochEndWithoutEpoch,
    Fault::HighWatermarkOfDivergingReply,
    Fault::OfflineReplicasLeftAlone,
    Fault::DeletionsNotAwaited,
];

/// Faults to plant, one at a time.
#[derive(Clone, Debug)]
struct Faults(Vec<Fault>);

impl Arguments {
    fn plans(&self, planted: Option<Fault>) -> Vec<Plan> {
        let protocols = self.ibp.map_or(vec![Protocol::V2_6, Protocol::V3_9], |one| vec![one]);
        let seeds = self.seed..self.seed.saturating_add(self.count);
        let plan = |seed, protocol| Plan {
            ms: self.ms,
            with_faults: !self.calm,
            is_loud: self.loud,
            planted,
            ..Plan::new(seed, protocol)
        };
        seeds.flat_map(|seed| protocols.iter().map(move |protocol| plan(seed, *protocol))).collect()
    }
}

fn faults(name: &str) -> Result<Faults, String> {
    let known = || Fault::ALL.map(Fault::name).join(", ");
    let is_named =
        |fault: &Fault| if name == "all" { OF_SIMULATIONS.contains(fault) } else { fault.name() == name };
    let named = Fault::ALL.into_iter().filter(is_named);
    let named: Vec<Fault> = named.filter(|_| cfg!(feature = "planted-faults")).collect();
    if named.is_empty() {
        return Err(format!("there are {}, in a build with the feature planted-faults", known()));
    }
    Ok(Faults(named))
}

fn main() -> ExitCode {
    let (arguments, started) = (Arguments::parse(), Instant::now());
    let (passed, failed) = match &arguments.planted {
        Some(Faults(faults)) => {
            let found = faults.iter().filter(|fault| finds(&arguments, **fault)).count();
            (found, faults.len() - found)
        }
        None => simulate(&arguments),
    };
    println!("took {:.1} s", started.elapsed().as_secs_f64());
    let outcome = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {outcome}. {passed} passed; {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs all plans. Returns how many found nothing and how many did; a kind that is missing counts as one that did.
fn simulate(arguments: &Arguments) -> (usize, usize) {
    let plans = arguments.plans(None);
    let is_one = plans.len() <= 2;
    let mut total = Total::default();
    run_all(&plans, arguments.at_once, |report| {
        if is_one || !report.findings.is_empty() {
            tell(arguments, &report);
        }
        total.add(&report);
        true
    });
    if arguments.counts {
        print!("{total}");
    }
    let missing = if arguments.every_kind { total.missing() } else { Vec::new() };
    for kind in &missing {
        println!("never in any run: {kind}");
    }
    (total.runs() - total.failed(), total.failed() + missing.len())
}

/// Whether any of the plans finds a fault that is planted.
fn finds(arguments: &Arguments, fault: Fault) -> bool {
    let mut is_found = false;
    run_all(&arguments.plans(Some(fault)), arguments.at_once, |report| {
        if let Some(finding) = report.findings.first() {
            println!("{} is found by {}: {finding}", fault.name(), report.plan);
            is_found = true;
        }
        !is_found
    });
    if !is_found {
        println!("{} is found by none of the runs", fault.name());
    }
    is_found
}

/// One run: its digest, and what led to what was found.
fn tell(arguments: &Arguments, report: &Report) {
    let (digest, lines) = report.digest;
    println!("{}: {digest:016x}, {lines} lines, {} findings", report.plan, report.findings.len());
    if report.findings.is_empty() {
        return;
    }
    for line in report.last_lines.iter().filter(|_| !arguments.loud) {
        println!("    {line}");
    }
    for finding in &report.findings {
        println!("  {finding}");
    }
    println!("  again: {}", report.plan.command());
}
