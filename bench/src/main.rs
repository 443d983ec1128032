//! Blumfeld and a real Kafka, measured in turn on the same machine: `cargo xtask bench [--quick] [--rounds N]`.
//!
//! Absolute figures of one machine drift by a factor of two, so what counts are ratios of medians over
//! alternating runs. Load comes from requests that were encoded once and are sent again over raw sockets, so
//! that the broker is measured and not the client. Kafka runs with the flags of its own start script and is
//! warmed up first. Parts can be asked for by name: `throughput`, `latency`, `startup`, `partitions`, `compaction`,
//! `groups`, `connections`, `cluster`.

mod cluster;
mod compaction;
mod connections;
mod contender;
mod figures;
mod groups;
mod latency;
mod load;
mod partitions;
mod startup;
mod throughput;

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use interop::broker::Kind;

use crate::contender::Contender;
use crate::figures::Figures;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Alternating runs of each scenario.
    rounds: usize,
    /// Bytes that a throughput scenario moves in one run.
    volume: u64,
    /// Seconds of one latency run.
    latency_seconds: u64,
    /// Bytes that warm a broker up.
    warm_up: u64,
    /// Partitions of the large topic.
    partitions: i32,
    /// The part of a cluster's very many partitions: one of so many.
    one_of: i32,
}

const FULL: Effort = Effort {
    rounds: 5,
    volume: 1 << 30,
    latency_seconds: 20,
    warm_up: 2 << 30,
    partitions: 2_000,
    one_of: 1,
};
const QUICK: Effort = Effort {
    rounds: 1,
    volume: 256 << 20,
    latency_seconds: 4,
    warm_up: 512 << 20,
    partitions: 2_000,
    one_of: 10,
};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut effort = FULL;
    let mut only: Vec<Part> = Vec::new();
    let mut kinds = vec![Kind::Kafka, Kind::Blumfeld];
    let mut wanted_rounds = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => effort = QUICK,
            "--rounds" => wanted_rounds = Some(rounds(arguments.next())?),
            "--only-blumfeld" => kinds = vec![Kind::Blumfeld],
            "--only-kafka" => kinds = vec![Kind::Kafka],
            "throughput" => only.push(Part::Throughput),
            "latency" => only.push(Part::Latency),
            "startup" => only.push(Part::Startup),
            "partitions" => only.push(Part::Partitions),
            "compaction" => only.push(Part::Compaction),
            "groups" => only.push(Part::Groups),
            "connections" => only.push(Part::Connections),
            "cluster" => only.push(Part::Cluster),
            other => bail!("unknown argument {other:?}"),
        }
    }
    effort.rounds = wanted_rounds.unwrap_or(effort.rounds);
    let wanted = |part: Part| only.is_empty() || only.contains(&part);
    let mut figures = Figures::default();
    if wanted(Part::Throughput) || wanted(Part::Latency) || wanted(Part::Startup) {
        side_by_side(&kinds, effort, &wanted, &mut figures)?;
    }
    if wanted(Part::Partitions) {
        let mut kept = Vec::new();
        for kind in &kinds {
            partitions::measure(*kind, effort, &mut figures, &mut kept)?;
        }
    }
    if wanted(Part::Compaction) {
        for kind in &kinds {
            compaction::measure(*kind, effort, &mut figures)?;
        }
    }
    if wanted(Part::Groups) {
        groups::measure(&kinds, effort, &mut figures)?;
    }
    if wanted(Part::Connections) {
        for kind in &kinds {
            connections::measure(*kind, &mut figures)?;
        }
    }
    if wanted(Part::Cluster) {
        for kind in &kinds {
            cluster::measure(*kind, effort, &mut figures)?;
        }
    }
    print!("{}", figures.report());
    Ok(())
}

fn rounds(argument: Option<String>) -> Result<usize> {
    let rounds = argument.context("--rounds without a number")?.parse().context("--rounds")?;
    ensure!(rounds > 0, "no rounds");
    Ok(rounds)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Throughput,
    Latency,
    Startup,
    Partitions,
    Compaction,
    Groups,
    Connections,
    Cluster,
}

/// Everything that runs on one pair of brokers, scenario by scenario in turn.
fn side_by_side(
    kinds: &[Kind],
    effort: Effort,
    wanted: &dyn Fn(Part) -> bool,
    figures: &mut Figures,
) -> Result<()> {
    let mut contenders = kinds.iter().map(|kind| Contender::start(*kind)).collect::<Result<Vec<_>>>()?;
    for contender in &mut contenders {
        startup::resident_idle(contender, figures)?;
        throughput::warm_up(contender, effort)?;
    }
    for round in 1..=effort.rounds {
        eprintln!("round {round} of {}", effort.rounds);
        if wanted(Part::Throughput) {
            for scenario in throughput::SCENARIOS {
                for contender in &mut contenders {
                    throughput::measure(&scenario, contender, effort, figures)?;
                }
            }
        }
        if wanted(Part::Latency) {
            for contender in &mut contenders {
                latency::measure(contender, effort, figures)?;
            }
        }
    }
    if wanted(Part::Throughput) {
        for contender in &mut contenders {
            throughput::java_tool(contender, effort, figures)?;
        }
    }
    for contender in &mut contenders {
        startup::resident_after_load(contender, figures)?;
    }
    if wanted(Part::Startup) {
        for contender in &mut contenders {
            startup::first_ack(contender, effort, figures)?;
        }
    }
    Ok(())
}
