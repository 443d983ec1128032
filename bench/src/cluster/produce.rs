//! Produce with acks=all to three replicas: throughput, processor time of all brokers, time to the ack.

use anyhow::{Context, Result, ensure};
use interop::broker::Kind;
use interop::calls;
use interop::cluster::Cluster;
use interop::raw::Connection;

use super::{BROKERS, cpu_seconds, leader};
use crate::Effort;
use crate::figures::{Figures, Goal, Row};
use crate::load::{self, PRODUCE_VERSION, Plan};
use crate::{latency, throughput};

/// Requests a second of the latency run.
const RATE_PER_SECOND: u64 = 200;
const ACKS_ALL: i16 = -1;

/// Rows of one size of batches.
struct Bulk {
    topic: &'static str,
    batch: usize,
    speed: Row,
    cost: Row,
}

const fn bulk(topic: &'static str, name: &'static str, batch: usize) -> Bulk {
    Bulk {
        topic,
        batch,
        speed: Row { name, unit: "MB/s", goal: Goal::RatioAtLeast(2.0) },
        cost: Row { name, unit: "CPU-s/GB of all brokers", goal: Goal::RatioAtMost(0.3) },
    }
}

const BULKS: [Bulk; 2] = [
    bulk("large", "three replicas, acks=all, 1 KiB records in 64 KiB batches", 64 << 10),
    bulk("small", "three replicas, acks=all, 1 KiB records in 16 KiB batches", 16 << 10),
];

const ACK: &str = "three replicas, acks=all, 200 requests/s: ack";
const ACK_ROWS: [(f64, Row); 2] = [
    (0.5, Row { name: ACK, unit: "ms p50", goal: Goal::None }),
    (0.99, Row { name: ACK, unit: "ms p99", goal: Goal::RatioAtMost(0.3) }),
];

pub(super) fn measure(
    cluster: &mut Cluster,
    kind: Kind,
    effort: Effort,
    figures: &mut Figures,
) -> Result<()> {
    eprintln!("warming three times {kind} up");
    cluster.create_topic("warm", i32::try_from(BROKERS)?, 3)?;
    for bulk in &BULKS {
        replay(cluster, "warm", bulk.batch, effort.warm_up / 2)?;
    }
    for round in 1..=effort.rounds {
        eprintln!("round {round} of {}", effort.rounds);
        for bulk in &BULKS {
            let topic = format!("{}-{round}", bulk.topic);
            cluster.create_topic(&topic, i32::try_from(BROKERS)?, 3)?;
            let before = cpu_seconds(cluster)?;
            let (bytes, seconds) = replay(cluster, &topic, bulk.batch, effort.volume)?;
            cluster.until_in_sync(&topic)?;
            let cpu = cpu_seconds(cluster)? - before;
            figures.add(bulk.speed, kind, bytes / 1e6 / seconds);
            figures.add(bulk.cost, kind, cpu / (bytes / 1e9));
        }
        acks(cluster, &format!("acks-{round}"), kind, effort, figures)?;
    }
    Ok(())
}

/// Writes to a partition on each leader at once. Returns bytes and seconds.
fn replay(cluster: &mut Cluster, topic: &str, batch: usize, volume: u64) -> Result<(f64, f64)> {
    let batch = throughput::batch_of(1024, batch);
    let size = u64::try_from(batch.len())?;
    let requests = volume / size / u64::try_from(BROKERS)?;
    let mut plans = Vec::with_capacity(BROKERS);
    for partition in 0..i32::try_from(BROKERS)? {
        let (_, address) = leader(cluster, topic, partition)?;
        let request = calls::produce_request(topic, partition, batch.clone(), ACKS_ALL);
        plans.push((address, Plan { frames: vec![load::encode(PRODUCE_VERSION, &request)?], requests }));
    }
    let moved = load::replay_at(&plans, load::produced)?;
    Ok(((moved.requests * size) as f64, moved.seconds))
}

fn acks(cluster: &mut Cluster, topic: &str, kind: Kind, effort: Effort, figures: &mut Figures) -> Result<()> {
    cluster.create_topic(topic, 1, 3)?;
    let (_, address) = leader(cluster, topic, 0)?;
    // The followers of a new partition fetch it when their fetches of others have come back: not measured here.
    let first = calls::produce(&mut Connection::open(&address)?, topic, 0, throughput::batch_of(1024, 1024))?;
    ensure!(first.error_code == 0, "the first produce was refused: {first:?}");
    let request = calls::produce_request(topic, 0, throughput::batch_of(1024, 1024), ACKS_ALL);
    let frame = load::encode(PRODUCE_VERSION, &request)?;
    let requests = RATE_PER_SECOND * effort.latency_seconds;
    let mut samples = latency::run(&address, &frame, RATE_PER_SECOND, requests)?;
    samples.sort_unstable();
    for (share, row) in ACK_ROWS {
        let sample = latency::quantile(&samples, share).context("no samples")?;
        figures.add(row, kind, sample.as_secs_f64() * 1e3);
    }
    Ok(())
}
