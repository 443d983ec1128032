//! A Blumfeld among real Kafka brokers.

use anyhow::{Result, ensure};
use interop::broker::Kind;
use interop::cluster::{Cluster, LIMIT, Plan};
use interop::wait;

/// The Blumfeld's id.
const OURS: i32 = 3;

/// Two real brokers and a Blumfeld that joins them.
fn mixed() -> Result<Cluster> {
    let mut plan = Plan::of(Kind::Kafka, 2);
    plan.kinds.push(Kind::Blumfeld);
    let mut cluster = Cluster::prepare(&plan)?;
    cluster.start_brokers(&[1, 2])?;
    cluster.start_brokers(&[OURS])?;
    Ok(cluster)
}

/// Elections until the office is held by a Blumfeld, or by a real broker.
fn let_control(cluster: &Cluster, ours: bool) -> Result<i32> {
    let mut tree = cluster.tree()?;
    wait::until("the wished controller", LIMIT, || {
        match tree.controller()? {
            Some(controller) if (controller == OURS) == ours => return Ok(Some(controller)),
            Some(_) => tree.depose_controller()?,
            None => false,
        };
        Ok(None)
    })
}

#[test]
fn a_blumfeld_joins_a_cluster_of_real_brokers_and_tells_what_they_tell() -> Result<()> {
    let mut cluster = mixed()?;
    ensure!(
        cluster.until_controller()? != OURS,
        "the Blumfeld has taken the office from a broker that lives"
    );
    cluster.create_topic("t", 6, 1)?;
    let led = cluster.tree()?.assignment("t")?;
    ensure!(led.values().any(|replicas| replicas == &[OURS]), "nothing lies on the Blumfeld: {led:?}");
    cluster.broker(OURS)?.stop()?;
    cluster.until_all_known()?;
    cluster.start_brokers(&[OURS])?;
    cluster.until_agreed("t", 6)
}

#[test]
fn real_brokers_and_a_blumfeld_control_the_cluster_in_turn() -> Result<()> {
    let cluster = mixed()?;
    for (round, ours) in [true, false, true].into_iter().enumerate() {
        let_control(&cluster, ours)?;
        cluster.until_all_known()?;
        let topic = format!("round-{round}");
        cluster.create_topic(&topic, 6, 1)?;
        for earlier in 0..round {
            cluster.until_agreed(&format!("round-{earlier}"), 6)?;
        }
    }
    Ok(())
}
