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
    /// A fault that the brokers have; only a build with the feature `planted-faults` can. Runs end with the first that
    /// finds it, and none is a failure.
    #[arg(long, value_parser = fault)]
    planted: Option<Fault>,
}

impl Arguments {
    fn plans(&self) -> Vec<Plan> {
        let protocols = self.ibp.map_or(vec![Protocol::V2_6, Protocol::V3_9], |one| vec![one]);
        let seeds = self.seed..self.seed.saturating_add(self.count);
        let plan = |seed, protocol| Plan {
            ms: self.ms,
            with_faults: !self.calm,
            is_loud: self.loud,
            planted: self.planted,
            ..Plan::new(seed, protocol)
        };
        seeds.flat_map(|seed| protocols.iter().map(move |protocol| plan(seed, *protocol))).collect()
    }
}

fn fault(name: &str) -> Result<Fault, String> {
    let known = || Fault::ALL.map(Fault::name).join(", ");
    let found = Fault::ALL.into_iter().find(|fault| fault.name() == name);
    found
        .filter(|_| cfg!(feature = "planted-faults"))
        .ok_or_else(|| format!("there are {}, in a build with the feature planted-faults", known()))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (started, plans) = (Instant::now(), arguments.plans());
    let is_one = plans.len() <= 2;
    let mut total = Total::default();
    run_all(&plans, arguments.at_once, |report| {
        if is_one || !(report.findings.is_empty() || arguments.planted.is_some()) {
            tell(&arguments, &report);
        } else if let Some(finding) = report.findings.first() {
            println!("found by {}: {finding}", report.plan);
        }
        total.add(&report);
        // One run that finds what is planted is enough.
        arguments.planted.is_none() || report.findings.is_empty()
    });
    if arguments.counts || arguments.every_kind {
        print!("{total}");
    }
    let missing = if arguments.every_kind { total.missing() } else { Vec::new() };
    for kind in &missing {
        println!("never in any run: {kind}");
    }
    let took = started.elapsed().as_secs_f64();
    println!("{} runs, {} with findings, {took:.1} s", total.runs(), total.failed());
    let must_find = arguments.planted.is_some();
    if (total.failed() > 0) == must_find && missing.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
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
