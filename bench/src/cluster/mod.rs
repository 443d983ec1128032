//! Three brokers of each kind over a ZooKeeper of their own: replication, failover, many partitions.
//!
//! The clusters run one after the other, since six brokers at once would measure the machine. Every broker reaches
//! ZooKeeper through a proxy of the harness, which costs both kinds the same.

mod failover;
mod many;
mod produce;

use std::time::Instant;

use anyhow::{Context, Result};
use interop::broker::Kind;
use interop::cluster::{Cluster, Plan, topic_view};

use crate::Effort;
use crate::contender;
use crate::figures::Figures;

/// Brokers of a cluster.
const BROKERS: usize = 3;
/// Shorter than Kafka's default: what is measured begins at the end of a session.
const SESSION_TIMEOUT_MS: u32 = 6_000;

/// All figures of one kind of cluster.
pub(crate) fn measure(kind: Kind, effort: Effort, figures: &mut Figures) -> Result<()> {
    let mut cluster = start(kind)?;
    produce::measure(&mut cluster, kind, effort, figures)?;
    for _ in 0..effort.rounds.min(3) {
        failover::after_a_stop(&mut cluster, kind, figures)?;
        failover::after_a_kill(&mut cluster, kind, figures)?;
    }
    drop(cluster);
    many::created(&mut start(kind)?, kind, effort, figures)?;
    many::moved(&mut start(kind)?, kind, effort, figures)
}

fn start(kind: Kind) -> Result<Cluster> {
    let mut plan = Plan::of(kind, BROKERS).with(&[
        ("min.insync.replicas", "2"),
        // Leaders stay where a scenario put them.
        ("auto.leader.rebalance.enable", "false"),
        ("leader.imbalance.check.interval.seconds", "3600"),
    ]);
    let properties = std::mem::take(&mut plan.options.properties);
    plan.options = contender::options();
    plan.options.properties.extend(properties);
    plan.session_timeout_ms = SESSION_TIMEOUT_MS;
    Cluster::start(&plan)
}

/// Processor time of all brokers so far, in seconds.
fn cpu_seconds(cluster: &mut Cluster) -> Result<f64> {
    let mut sum = 0.0;
    for id in cluster.running() {
        sum += cluster.broker(id)?.process()?.cpu_seconds()?;
    }
    Ok(sum)
}

/// The leader of a partition and its address, as any running broker tells.
fn leader(cluster: &mut Cluster, topic: &str, partition: i32) -> Result<(i32, String)> {
    let any = cluster.running().into_iter().next().context("no broker runs")?;
    let view = topic_view(&cluster.broker(any)?.bootstrap(), topic)?;
    let id = view.get(&partition).with_context(|| format!("no partition {partition}"))?.leader;
    Ok((id, cluster.broker(id)?.bootstrap()))
}

/// Waits until a broker is no longer registered, looking very often; gives that moment.
fn end_of_session(cluster: &Cluster, id: i32) -> Result<Instant> {
    let mut tree = cluster.tree()?;
    loop {
        if !tree.brokers()?.contains(&id) {
            return Ok(Instant::now());
        }
    }
}
