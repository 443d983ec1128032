//! For how long a partition takes no record when its leader goes: after SIGTERM, and after `kill -9` from the end of
//! the dead broker's session on.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use interop::broker::Kind;
use interop::cluster::Cluster;
use interop::raw::Connection;
use interop::{calls, wait};

use super::{end_of_session, leader};
use crate::figures::{Figures, Goal, Row};
use crate::throughput;

const LIMIT: Duration = Duration::from_secs(120);
/// How long one attempt may take: a broker that is dying answers nothing.
const ATTEMPT: Duration = Duration::from_millis(500);

const STOPPED: Row = Row {
    name: "three replicas: no acks after SIGTERM of a leader",
    unit: "ms",
    goal: Goal::RatioAtMost(0.1),
};
const KILLED: Row = Row {
    name: "three replicas: no acks after the end of a killed leader's session",
    unit: "ms",
    goal: Goal::RatioAtMost(0.2),
};

/// Stops the leader in order while a client writes; the longest time without an ack.
pub(super) fn after_a_stop(cluster: &mut Cluster, kind: Kind, figures: &mut Figures) -> Result<()> {
    let topic = fresh_topic(cluster)?;
    let (dead, _) = leader(cluster, &topic, 0)?;
    let others = others(cluster, dead)?;
    std::thread::scope(|scope| -> Result<()> {
        let stopping = scope.spawn(|| cluster.broker(dead).and_then(|broker| broker.stop()));
        let mut worst = Duration::ZERO;
        let mut last = Instant::now();
        // Some acks after the old leader is gone: by then the gap is over.
        let mut rest = 20;
        while rest > 0 {
            if write(&others, &topic) == Some(true) {
                worst = worst.max(last.elapsed());
                last = Instant::now();
                if stopping.is_finished() {
                    rest -= 1;
                }
            }
            anyhow::ensure!(last.elapsed() < LIMIT, "no acks any more");
        }
        figures.add(STOPPED, kind, worst.as_secs_f64() * 1e3);
        stopping.join().ok().context("the thread that stops a broker panicked")?
    })?;
    cluster.start_brokers(&[dead])?;
    cluster.until_in_sync(&topic)
}

/// Kills the leader; the time from the end of its session to the next ack.
pub(super) fn after_a_kill(cluster: &mut Cluster, kind: Kind, figures: &mut Figures) -> Result<()> {
    let topic = fresh_topic(cluster)?;
    let (dead, _) = leader(cluster, &topic, 0)?;
    let others = others(cluster, dead)?;
    cluster.broker(dead)?.kill()?;
    let end = end_of_session(cluster, dead)?;
    wait::until("an ack of another leader", LIMIT, || Ok(write(&others, &topic).filter(|acked| *acked)))?;
    figures.add(KILLED, kind, end.elapsed().as_secs_f64() * 1e3);
    cluster.start_brokers(&[dead])?;
    cluster.until_in_sync(&topic)
}

fn fresh_topic(cluster: &mut Cluster) -> Result<String> {
    let topic = format!("failover-{}", interop::batch::now_ms());
    cluster.create_topic(&topic, 1, 3)?;
    cluster.until_in_sync(&topic)?;
    Ok(topic)
}

/// The addresses of all brokers, that of `dead` last.
fn others(cluster: &mut Cluster, dead: i32) -> Result<Vec<String>> {
    let mut ids: Vec<i32> = cluster.ids();
    ids.sort_by_key(|id| *id == dead);
    ids.into_iter().map(|id| Ok(cluster.broker(id)?.bootstrap())).collect()
}

/// Writes one record with acks=all to whoever leads; none if nobody takes it.
fn write(addresses: &[String], topic: &str) -> Option<bool> {
    addresses.iter().find_map(|address| {
        let mut connection = Connection::open(address).ok()?;
        connection.set_answer_limit(ATTEMPT).ok()?;
        let batch = throughput::batch_of(100, 100);
        let answer = calls::produce(&mut connection, topic, 0, batch).ok()?;
        (answer.error_code == 0).then_some(true)
    })
}
