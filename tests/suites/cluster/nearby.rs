//! Consumers that read from the replica in their rack (KIP-392), each broker in a rack of its own.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::broker::Kind;
use interop::clients::{Client, record};
use interop::cluster::{Cluster, Plan};
use interop::java::{self, Jars};
use interop::process::run_well;

const SELECTOR: &str = "org.apache.kafka.common.replica.RackAwareReplicaSelector";
const TOPIC: &str = "t";
const COUNT: usize = 200;
const LIMIT: Duration = Duration::from_secs(120);
/// Bytes of records given to consumers.
const BYTES_OUT: &str = "kafka_server_brokertopicmetrics_bytesout_total";

/// What the brokers have given to consumers, in order of id; nothing by those that do not run.
fn given(cluster: &mut Cluster) -> Result<Vec<f64>> {
    let running = cluster.running();
    let given = |id| if running.contains(&id) { cluster.broker(id)?.metric(BYTES_OUT) } else { Ok(0.0) };
    (1..=3).map(given).collect()
}

/// Reads all records with a consumer in the rack of broker `near`; broker `from`, and no other, gives them.
fn check(
    cluster: &mut Cluster,
    near: i32,
    from: i32,
    consume: impl Fn(&str, &str) -> Result<String>,
) -> Result<()> {
    let before = given(cluster)?;
    let output = consume(&cluster.addresses().join(","), &format!("rack-{near}"))?;
    let values = (0..COUNT).map(|index| record("none", index).1);
    ensure!(output.lines().eq(values), "read near broker {near}: {output}");
    let after = given(cluster)?;
    let more = (1..).zip(before.iter().zip(&after)).filter(|(_, (before, after))| before < after);
    let gave: Vec<i32> = more.map(|(id, _)| id).collect();
    ensure!(gave == [from], "broker {near} is near, {from} was to give: {before:?}, {after:?}");
    Ok(())
}

fn java(bootstrap: &str, rack: &str) -> Result<String> {
    let (count, rack) = (COUNT.to_string(), format!("client.rack={rack}"));
    let mut arguments = vec!["--bootstrap-server", bootstrap, "--topic", TOPIC, "--partition", "0"];
    arguments.extend(["--offset", "earliest", "--max-messages", &count, "--consumer-property", &rack]);
    let class = "org.apache.kafka.tools.consumer.ConsoleConsumer";
    Ok(java::tool(Jars::Kafka39, class, &arguments, "")?.stdout)
}

fn librdkafka(bootstrap: &str, rack: &str) -> Result<String> {
    let (count, rack) = (COUNT.to_string(), format!("client.rack={rack}"));
    let mut command = Command::new("kcat");
    command.args(["-C", "-b", bootstrap, "-t", TOPIC, "-p", "0", "-o", "beginning", "-q"]);
    command.args(["-c", &count, "-X", &rack]);
    Ok(run_well(&mut command, "", LIMIT)?.stdout)
}

#[test]
fn consumers_read_from_the_replica_in_their_rack_and_from_the_leader_when_it_is_gone() -> Result<()> {
    let plan = Plan::of(Kind::Blumfeld, 3).in_racks().with(&[("replica.selector.class", SELECTOR)]);
    let mut cluster = Cluster::start(&plan)?;
    cluster.create_topic(TOPIC, 1, 3)?;
    Client::Kcat.produce(&cluster.addresses().join(","), TOPIC, "none", COUNT)?;
    cluster.until_in_sync(TOPIC)?;
    let leader = cluster.tree()?.state(TOPIC, 0)?.context("no partition")?.leader;
    for near in 1..=3 {
        check(&mut cluster, near, near, librdkafka)?;
    }
    let follower = (1..=3).find(|id| *id != leader).context("no follower")?;
    check(&mut cluster, follower, follower, java)?;
    cluster.broker(follower)?.stop()?;
    cluster.until_agreed(TOPIC, 1)?;
    check(&mut cluster, follower, leader, librdkafka)
}
