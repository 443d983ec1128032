//! What producers and readers see of a cluster to which things happen: nothing is lost, doubled, reordered or
//! changed, and the replicas are the same in the end.
//!
//! A cluster of real Kafka brokers goes the same way: so what the harness finds with ours counts.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use interop::broker::Kind;
use interop::broker_proxy::{Action, Direction, Rule};
use interop::checker::{Partition, compare_replicas, judge};
use interop::cluster::{Cluster, LIMIT, Plan};
use interop::depth::Depth;
use interop::workload::{self, Load, Progress};

const TOPIC: &str = "history";
const PARTITIONS: i32 = 2;
/// Short, as some wait for the end of a session; but a loaded machine must keep it, and a virtual machine that warms up
/// keeps it less well.
const SESSION_TIMEOUT_MS: u32 = 4000;
const SESSION_TIMEOUT_WITH_REAL_BROKERS_MS: u32 = 8000;
const FETCH: i16 = 1;
const ALTER_PARTITION: i16 = 56;

fn load(cluster: &Cluster) -> Load {
    Load {
        addresses: cluster.addresses(),
        partitions: (0..PARTITIONS).map(|index| Partition::new(TOPIC, index)).collect(),
        producers: 2,
        readers: 1,
        record_bytes: 100,
        pause: Duration::from_millis(5),
        answer_limit: Duration::from_secs(5),
    }
}

fn leader(cluster: &Cluster) -> Result<i32> {
    Ok(cluster.until_state(TOPIC, 0, "a leader", |state| state.leader >= 0)?.leader)
}

fn until_another_leader(cluster: &Cluster, before: i32) -> Result<()> {
    cluster.until_state(TOPIC, 0, "another leader", |state| state.leader >= 0 && state.leader != before)?;
    Ok(())
}

fn kill_a_leader(cluster: &mut Cluster, progress: &Progress) -> Result<()> {
    let killed = leader(cluster)?;
    cluster.broker(killed)?.kill()?;
    until_another_leader(cluster, killed)?;
    progress.until_more(50, LIMIT)?;
    cluster.start_brokers(&[killed])?;
    cluster.until_in_sync(TOPIC)
}

fn stop_a_leader(cluster: &mut Cluster, progress: &Progress) -> Result<()> {
    let stopped = leader(cluster)?;
    cluster.broker(stopped)?.stop()?;
    until_another_leader(cluster, stopped)?;
    progress.until_more(50, LIMIT)?;
    cluster.start_brokers(&[stopped])?;
    cluster.until_in_sync(TOPIC)
}

fn depose_the_controller(cluster: &mut Cluster, progress: &Progress) -> Result<()> {
    let epoch = cluster.tree()?.controller_epoch()?;
    ensure!(cluster.tree()?.depose_controller()?, "no controller to depose");
    cluster.until_controller()?;
    ensure!(cluster.tree()?.controller_epoch()? > epoch, "no election after {epoch}");
    progress.until_more(50, LIMIT)
}

/// A leader that is frozen for longer than its session, and goes on as if nothing had happened.
fn freeze_a_leader(cluster: &mut Cluster, progress: &Progress) -> Result<()> {
    let frozen = leader(cluster)?;
    cluster.broker(frozen)?.freeze()?;
    until_another_leader(cluster, frozen)?;
    progress.until_more(50, LIMIT)?;
    cluster.broker(frozen)?.thaw()?;
    cluster.until_all_known()?;
    cluster.until_in_sync(TOPIC)
}

/// A follower that does not reach its leader leaves the in-sync replicas and comes back; an answer of AlterPartition
/// is lost.
fn part_a_follower(cluster: &mut Cluster, progress: &Progress) -> Result<()> {
    let leader = leader(cluster)?;
    let controller = cluster.until_controller()?;
    // The leader must still reach the controller.
    let follower = cluster.ids().into_iter().find(|id| ![leader, controller].contains(id));
    let follower = follower.context("no follower")?;
    let lose = Rule::for_responses(Action::Close).of_key(ALTER_PARTITION).times(1);
    let lost = cluster.proxy(controller)?.rule(lose);
    let parting = cluster.part(leader, follower)?;
    cluster.until_state(TOPIC, 0, "without the follower", |state| !state.isr.contains(&follower))?;
    progress.until_more(50, LIMIT)?;
    parting.heal();
    cluster.until_in_sync(TOPIC)?;
    // A controller that leads the partition itself asks nobody over the network, if it is ours.
    ensure!(lost.count() == 1 || leader == controller, "no answer of AlterPartition was lost");
    lost.remove();
    Ok(())
}

fn restart_zookeeper(cluster: &mut Cluster, progress: &Progress) -> Result<()> {
    let mut while_down = Ok(());
    cluster.restart_zookeeper(|| while_down = progress.until_more(20, LIMIT))?;
    while_down.context("without ZooKeeper")?;
    cluster.until_all_known()?;
    progress.until_more(50, LIMIT)
}

/// Something that happens to a cluster under load.
type Disturbance = fn(&mut Cluster, &Progress) -> Result<()>;

const DISTURBANCES: [(&str, Disturbance); 6] = [
    ("kill a leader", kill_a_leader),
    ("part a follower", part_a_follower),
    ("stop a leader", stop_a_leader),
    ("depose the controller", depose_the_controller),
    ("freeze a leader", freeze_a_leader),
    ("restart ZooKeeper", restart_zookeeper),
];

/// The disturbances of a cluster with real Kafka brokers, which need seconds for each: in the short form the first ones.
fn with_real_brokers() -> Result<&'static [(&'static str, Disturbance)]> {
    let (first, _) = DISTURBANCES.split_at(2);
    Ok(if Depth::from_environment()? == Depth::Long { &DISTURBANCES } else { first })
}

fn disturb(cluster: &mut Cluster, progress: &Progress, how: &[(&'static str, Disturbance)]) -> Result<()> {
    progress.until_more(50, LIMIT)?;
    for (what, happens) in how {
        let start = Instant::now();
        happens(cluster, progress).context(*what)?;
        println!("{what}: {:.1} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

fn keeps_its_promises(kinds: &[Kind], how: &[(&'static str, Disturbance)]) -> Result<()> {
    let mut plan = Plan::of(Kind::Kafka, 0).proxied().with(&[
        ("min.insync.replicas", "2"),
        ("replica.lag.time.max.ms", "3000"),
        ("log.segment.bytes", "20000"),
        // A leader moves when something has happened to it, and not some time after an election.
        ("auto.leader.rebalance.enable", "false"),
    ]);
    plan.kinds = kinds.to_vec();
    plan.session_timeout_ms = match kinds.contains(&Kind::Kafka) {
        true => SESSION_TIMEOUT_WITH_REAL_BROKERS_MS,
        false => SESSION_TIMEOUT_MS,
    };
    let mut cluster = Cluster::start(&plan)?;
    cluster.create_topic(TOPIC, PARTITIONS, 3)?;
    let load = load(&cluster);
    let history = workload::run(&load, |progress| disturb(&mut cluster, progress, how))?;
    judge(&history).into_result()?;
    println!("{} records acknowledged", history.acknowledged());
    ensure!(history.acknowledged() > 300);
    cluster.until_in_sync(TOPIC)?;
    let ids = cluster.ids().into_iter();
    let fetches =
        ids.map(|id| Ok(cluster.proxy(id)?.count(Direction::Request, FETCH))).sum::<Result<u64>>()?;
    ensure!(fetches > 100, "only {fetches} fetches went through proxies");
    for index in 0..PARTITIONS {
        let replicas = cluster.replicas(TOPIC, index)?;
        ensure!(replicas.len() == 3);
        let end = replicas.iter().map(|(_, dump)| dump.end()).min().unwrap_or(0);
        ensure!(end > 100, "partition {index} ends at {end}");
        let different = compare_replicas(&replicas, end);
        ensure!(different.is_empty(), "partition {index}: {different:?}");
    }
    Ok(())
}

#[test]
fn a_cluster_keeps_its_promises() -> Result<()> {
    keeps_its_promises(&[Kind::Blumfeld; 3], &DISTURBANCES)
}

#[test]
fn a_mixed_cluster_keeps_its_promises() -> Result<()> {
    keeps_its_promises(&[Kind::Kafka, Kind::Blumfeld, Kind::Blumfeld], with_real_brokers()?)
}

#[test]
fn a_real_cluster_keeps_its_promises_and_the_harness_sees_it() -> Result<()> {
    keeps_its_promises(&[Kind::Kafka; 3], with_real_brokers()?)
}
