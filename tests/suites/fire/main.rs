//! Three brokers over three ZooKeeper servers while everything that can happen to processes and ways happens to them:
//! nothing that was confirmed is lost, doubled, reordered or changed, and the replicas are the same in the end.
//!
//! The seed is printed; `BLUMFELD_TEST_SEED` takes it again. It repeats the faults and not the moments.

mod blaze;
mod fault;
mod planted;
mod tally;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use interop::broker::Kind;
use interop::checker::{Dump, Partition, compare_replicas, judge};
use interop::cluster::{Cluster, LIMIT, Plan};
use interop::depth::Depth;
use interop::wait;
use interop::workload::{self, Load};

use blaze::{Blaze, until_well};
use fault::SESSION_TIMEOUT_MS;
use tally::Tally;

const TOPIC: &str = "fire";
const PARTITIONS: i32 = 4;
/// The longest time that may go by without an acknowledgement of any producer: two faults one after the other, with the
/// end of a session each.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

fn plan(version: &str) -> Plan {
    let mut plan = Plan::of(Kind::Blumfeld, 3).over(3).proxied().with(&[
        ("inter.broker.protocol.version", version),
        ("min.insync.replicas", "2"),
        ("replica.lag.time.max.ms", "2000"),
        ("replica.fetch.wait.max.ms", "200"),
        // Short, so that requests are given up and sent again while the first ones are still under way.
        ("replica.socket.timeout.ms", "1500"),
        ("controller.socket.timeout.ms", "1500"),
        ("zookeeper.connection.timeout.ms", "60000"),
        ("log.segment.bytes", "100000"),
        // Leaders go back to preferred replicas again and again.
        ("leader.imbalance.check.interval.seconds", "3"),
        ("leader.imbalance.per.broker.percentage", "0"),
    ]);
    plan.session_timeout_ms = SESSION_TIMEOUT_MS;
    plan
}

fn load(cluster: &Cluster) -> Load {
    Load {
        addresses: cluster.addresses(),
        partitions: (0..PARTITIONS).map(|index| Partition::new(TOPIC, index)).collect(),
        producers: 2,
        readers: 1,
        record_bytes: 100,
        pause: Duration::from_millis(10),
        answer_limit: Duration::from_millis(2500),
    }
}

/// The logs of a partition's replicas once none of them gets longer and all have the same end.
fn replicas_at_rest(cluster: &Cluster, index: i32) -> Result<(Vec<(String, Dump)>, i64)> {
    let mut seen = Vec::new();
    let reached = wait::until("replicas that end alike", LIMIT, || {
        seen = cluster.replicas(TOPIC, index)?;
        let mut ends = seen.iter().map(|(_, dump)| dump.end());
        let first = ends.next().unwrap_or(0);
        Ok(ends.all(|end| end == first).then_some(first))
    });
    let ends: Vec<_> = seen.iter().map(|(name, dump)| (name, dump.end())).collect();
    let end = reached.with_context(|| format!("{TOPIC}-{index}: {ends:?}"))?;
    Ok((seen, end))
}

/// All replicas are the same, batch by batch, up to their log ends.
fn replicas_are_equal(cluster: &Cluster) -> Result<()> {
    for index in 0..PARTITIONS {
        let (replicas, end) = replicas_at_rest(cluster, index)?;
        ensure!(replicas.len() == 3 && end > 100, "{} replicas of {index} end at {end}", replicas.len());
        let different = compare_replicas(&replicas, end);
        let told: Vec<_> = different.iter().map(ToString::to_string).collect();
        ensure!(told.is_empty(), "{TOPIC}-{index}: {}", told.join("; "));
    }
    Ok(())
}

/// What a broker says of a log that has lost what had been replicated.
const LOSS: &str = "below its high watermark";

/// No broker has panicked, or found less in its logs than it had written: the machine has been up all the while.
fn nobody_tells_of_harm(cluster: &mut Cluster) -> Result<()> {
    for id in cluster.ids() {
        let log = cluster.broker(id)?.log()?;
        let harm = log.lines().find(|line| line.contains("panicked") || line.contains(LOSS));
        ensure!(harm.is_none(), "broker {id}: {harm:?}");
    }
    Ok(())
}

/// Told also when the test succeeds: what has not happened has not been tried.
fn say(text: &str) {
    // A report that nobody takes changes nothing of what it reports.
    let _ = writeln!(io::stdout().lock(), "{text}");
}

fn survives(version: &str, time: Duration, seed: u64) -> Result<()> {
    say(&format!("version {version}, {time:?}, BLUMFELD_TEST_SEED={seed}"));
    let start = Instant::now();
    let mut cluster = Cluster::start(&plan(version))?;
    cluster.create_topic(TOPIC, PARTITIONS, 3)?;
    let load = load(&cluster);
    let (mut tally, mut silence) = (Tally::default(), Duration::ZERO);
    let history = workload::run(&load, |progress| {
        progress.until_more(100, LIMIT)?;
        tally = Blaze::burn(&mut cluster, seed, time)?;
        until_well(&mut cluster)?;
        silence = progress.longest_silence();
        progress.until_more(100, LIMIT)
    })?;
    judge(&history).into_result()?;
    replicas_are_equal(&cluster)?;
    for id in cluster.ids() {
        cluster.broker(id)?.stop()?;
    }
    replicas_are_equal(&cluster).context("after an orderly stop")?;
    nobody_tells_of_harm(&mut cluster)?;
    let (records, seconds) = (history.acknowledged(), start.elapsed().as_secs());
    let ends = history.ends_told();
    let told = format!("{records} records acknowledged, {ends} ends told");
    say(&format!("{tally}{told}, at most {silence:.1?} without any; {seconds} s"));
    tally.is_complete()?;
    ensure!(history.acknowledged() > 1000, "only {} records acknowledged", history.acknowledged());
    ensure!(history.ends_told() > 200, "only {} latest offsets told", history.ends_told());
    ensure!(silence < LONGEST_SILENCE, "nothing was acknowledged for {silence:?}");
    Ok(())
}

#[test]
fn nothing_that_was_confirmed_is_lost_or_changed_under_fire() -> Result<()> {
    let seed = match std::env::var("BLUMFELD_TEST_SEED") {
        Ok(seed) => seed.parse().context("BLUMFELD_TEST_SEED")?,
        Err(_) => fastrand::u64(..),
    };
    if Depth::from_environment()? == Depth::Short {
        return survives("3.9", Duration::from_secs(60), seed);
    }
    for version in ["3.9", "2.6"] {
        survives(version, Duration::from_secs(600), seed)?;
    }
    Ok(())
}
