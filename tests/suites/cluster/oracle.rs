//! The harness itself, judged by a cluster of real Kafka brokers: what it starts, disturbs and checks there is
//! right, so what it finds elsewhere counts.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::broker::Kind;
use interop::broker_proxy::{Action, Direction, Rule};
use interop::checker::{Partition, compare_replicas, judge};
use interop::cluster::{Cluster, LIMIT, Plan};
use interop::workload::{self, Load, Progress};

const TOPIC: &str = "history";
const PARTITIONS: i32 = 2;
/// Fetch, AlterPartition.
const FETCH: i16 = 1;
const ALTER_PARTITION: i16 = 56;

fn load(cluster: &Cluster) -> Load {
    Load {
        addresses: cluster.addresses(),
        partitions: (0..PARTITIONS).map(|index| Partition::new(TOPIC, index)).collect(),
        producers: 2,
        readers: 1,
        record_bytes: 100,
        pause: Duration::from_millis(2),
    }
}

fn leader(cluster: &Cluster) -> Result<i32> {
    Ok(cluster.until_state(TOPIC, 0, "a leader", |state| state.leader >= 0)?.leader)
}

/// Kills a leader, takes the controller's office away, freezes a leader beyond its session, parts a follower from
/// its leader, loses the answer of an AlterPartition, and starts ZooKeeper again.
fn disturb(cluster: &mut Cluster, progress: &Progress) -> Result<()> {
    progress.until_more(50, LIMIT)?;
    let killed = leader(cluster)?;
    cluster.broker(killed)?.kill()?;
    cluster.until_state(TOPIC, 0, "another leader", |state| state.leader >= 0 && state.leader != killed)?;
    progress.until_more(50, LIMIT)?;
    cluster.start_brokers(&[killed])?;
    cluster.until_in_sync(TOPIC)?;

    let epoch = cluster.tree()?.controller_epoch()?;
    ensure!(cluster.tree()?.depose_controller()?, "no controller to depose");
    cluster.until_controller()?;
    ensure!(cluster.tree()?.controller_epoch()? > epoch, "no election after {epoch}");
    progress.until_more(50, LIMIT)?;

    let frozen = leader(cluster)?;
    cluster.broker(frozen)?.freeze()?;
    cluster.until_state(TOPIC, 0, "another leader", |state| state.leader >= 0 && state.leader != frozen)?;
    progress.until_more(50, LIMIT)?;
    cluster.broker(frozen)?.thaw()?;
    cluster.until_all_known()?;
    cluster.until_in_sync(TOPIC)?;

    let leader = leader(cluster)?;
    let controller = cluster.until_controller()?;
    // The leader must still reach the controller.
    let follower = cluster.ids().into_iter().find(|id| ![leader, controller].contains(id));
    let follower = follower.context("no follower")?;
    let lost =
        cluster.proxy(controller)?.rule(Rule::for_responses(Action::Close).of_key(ALTER_PARTITION).times(1));
    let parting = cluster.part(leader, follower)?;
    cluster.until_state(TOPIC, 0, "without the follower", |state| !state.isr.contains(&follower))?;
    progress.until_more(50, LIMIT)?;
    parting.heal();
    cluster.until_in_sync(TOPIC)?;
    ensure!(lost.count() == 1, "no answer of AlterPartition was lost");

    let mut while_down = Ok(());
    cluster.restart_zookeeper(|| while_down = progress.until_more(20, LIMIT))?;
    while_down.context("without ZooKeeper")?;
    cluster.until_all_known()?;
    progress.until_more(50, LIMIT)
}

#[test]
fn a_real_cluster_keeps_its_promises_and_the_harness_sees_it() -> Result<()> {
    let plan = Plan::of(Kind::Kafka, 3).proxied().with(&[
        ("min.insync.replicas", "2"),
        ("replica.lag.time.max.ms", "3000"),
        ("log.segment.bytes", "20000"),
        // A leader moves when something has happened to it, and not some time after an election.
        ("auto.leader.rebalance.enable", "false"),
    ]);
    let mut cluster = Cluster::start(&plan)?;
    cluster.create_topic(TOPIC, PARTITIONS, 3)?;
    let load = load(&cluster);
    let history = workload::run(&load, |progress| disturb(&mut cluster, progress))?;
    judge(&history).into_result()?;
    println!("{} records acknowledged", history.acknowledged());
    ensure!(history.acknowledged() > 250);
    for id in cluster.ids() {
        ensure!(
            cluster.proxy(id)?.count(Direction::Request, FETCH) > 0,
            "nobody fetched through {id}'s proxy"
        );
    }
    for (index, _) in (0..PARTITIONS).zip(&load.partitions) {
        let replicas = cluster.replicas(TOPIC, index)?;
        ensure!(replicas.len() == 3);
        let end = replicas.iter().map(|(_, dump)| dump.end()).min().unwrap_or(0);
        ensure!(end > 100, "partition {index} ends at {end}");
        let different = compare_replicas(&replicas, end);
        ensure!(different.is_empty(), "partition {index}: {different:?}");
    }
    Ok(())
}
