//! Several listeners: who comes in by which, and what each is told there; and listeners that come and go while a broker
//! serves (KIP-226).

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use interop::broker::Kind;
use interop::calls;
use interop::clients::{Client, record};
use interop::cluster::{Cluster, LIMIT, Plan, Tree, told_addresses};
use interop::ports;
use interop::raw::Connection;
use interop::wait;
use kafka_protocol::messages::MetadataRequest;

const TOPIC: &str = "t";
const COUNT: usize = 100;

/// `host:port` of every listener of a broker, by name.
fn endpoints(tree: &mut Tree, id: i32) -> Result<BTreeMap<String, String>> {
    tree.endpoints(id)?.with_context(|| format!("broker {id} is not registered"))
}

/// Requests that came in by a listener of a broker.
fn requests(cluster: &mut Cluster, id: i32, listener: &str) -> Result<f64> {
    let name = "kafka_server_socket_server_metrics_request_total";
    cluster.broker(id)?.metric(&format!("{name}{{listener=\"{listener}\",networkProcessor=\"0\"}}"))
}

/// KIP-103, KIP-291.
#[test]
fn clients_brokers_and_controllers_come_in_by_listeners_of_their_own() -> Result<()> {
    let plan = Plan::of(Kind::Blumfeld, 2)
        .listening(&["BROKERS", "CONTROL"])
        .with(&[("inter.broker.listener.name", "BROKERS"), ("control.plane.listener.name", "CONTROL")]);
    let mut cluster = Cluster::start(&plan)?;
    cluster.create_topic(TOPIC, 2, 2)?;
    Client::Kcat.produce(&cluster.addresses().join(","), TOPIC, "none", COUNT)?;
    cluster.until_in_sync(TOPIC)?;
    let mut tree = cluster.tree()?;
    let of_brokers = [endpoints(&mut tree, 1)?, endpoints(&mut tree, 2)?];
    for name in ["PLAINTEXT", "BROKERS", "CONTROL"] {
        let expected: Vec<_> = of_brokers.iter().map(|it| &it[name]).collect();
        for address in &expected {
            let told = told_addresses(address)?;
            ensure!(told.values().eq(expected.iter().copied()), "over {name}: {told:?}, not {expected:?}");
        }
    }
    // Each broker follows the other, and a controller talks to both.
    let controller = cluster.until_controller()?;
    let before = [requests(&mut cluster, 1, "PLAINTEXT")?, requests(&mut cluster, 2, "PLAINTEXT")?];
    for id in 1..=2 {
        ensure!(requests(&mut cluster, id, "BROKERS")? > 1.0, "broker {id} is fetched from elsewhere");
        let asked = requests(&mut cluster, id, "CONTROL")?;
        // A controller does not talk to its own broker over a socket.
        ensure!(id == controller || asked > 2.0, "the controller talks to broker {id} elsewhere");
    }
    let after = [requests(&mut cluster, 1, "PLAINTEXT")?, requests(&mut cluster, 2, "PLAINTEXT")?];
    ensure!(after == before, "somebody else than the test came in where clients do: {before:?}, {after:?}");
    Ok(())
}

#[test]
fn a_listener_is_added_and_removed_while_the_broker_serves() -> Result<()> {
    let kind = Kind::from_environment()?;
    let mut cluster = Cluster::start(&Plan::of(kind, 2))?;
    cluster.create_topic(TOPIC, 2, 1)?;
    let all = cluster.addresses();
    Client::Kcat.produce(&all.join(","), TOPIC, "none", COUNT)?;
    let (own, extra) = (all[0].as_str(), format!("127.0.0.1:{}", ports::free()?));
    let both = format!("PLAINTEXT://{own},EXTRA://{extra}");
    let map = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT";
    let changes = [("listener.security.protocol.map", Some(map)), ("listeners", Some(both.as_str()))];
    calls::alter_broker(own, 1, &changes)?;
    // Broker 2 has no such listener, so whoever comes in by it is not told of broker 2.
    let only_1 = BTreeMap::from([(1, extra.clone())]);
    wait::until("the new listener", LIMIT, || {
        Ok(told_addresses(&extra).is_ok_and(|told| told == only_1).then_some(()))
    })?;
    let mut tree = cluster.tree()?;
    let registered = endpoints(&mut tree, 1)?;
    let expected = [("EXTRA", extra.as_str()), ("PLAINTEXT", own)].map(|(k, v)| (k.to_owned(), v.to_owned()));
    ensure!(registered == BTreeMap::from(expected), "{registered:?}");
    read_over(&cluster, &extra)?;

    cluster.broker(1)?.stop()?;
    cluster.start_brokers(&[1])?;
    wait::until("the listener after a restart", LIMIT, || {
        Ok(told_addresses(&extra).is_ok_and(|told| told == only_1).then_some(()))
    })?;
    cluster.until_agreed(TOPIC, 2)?;
    read_over(&cluster, &extra)?;

    let request = MetadataRequest::default().with_topics(Some(Vec::new()));
    let mut open = Connection::open(&extra)?;
    open.call(1, &request)?;
    calls::alter_broker(own, 1, &[("listeners", None)])?;
    wait::until("nobody who listens", LIMIT, || Ok(Connection::open(&extra).is_err().then_some(())))?;
    wait::until("the end of its connections", LIMIT, || Ok(open.call(1, &request).is_err().then_some(())))?;
    wait::until("an address less", LIMIT, || {
        Ok((endpoints(&mut tree, 1)?.len() == 1 && told_addresses(own)?.len() == 2).then_some(()))
    })?;
    cluster.until_all_known()
}

/// librdkafka, which knows the broker by this address alone, reads what the broker leads.
fn read_over(cluster: &Cluster, address: &str) -> Result<()> {
    let mut tree = cluster.tree()?;
    let led = (0..2).map(|partition| Ok((partition, tree.state(TOPIC, partition)?)));
    let led = led.collect::<Result<Vec<_>>>()?.into_iter();
    let mut led = led.filter(|(_, state)| state.as_ref().is_some_and(|state| state.leader == 1));
    let (partition, _) = led.next_back().context("broker 1 leads nothing")?;
    let partition = usize::try_from(partition)?;
    let end = calls::end_offset(address, TOPIC, partition)?;
    ensure!(end > 0, "nothing was written to the partition");
    let read = Client::Kcat.consume(address, TOPIC, partition, end)?;
    let known: Vec<_> = (0..COUNT).map(|index| record("none", index)).collect();
    ensure!(read.iter().all(|it| known.contains(&(it.key.clone(), it.value.clone()))), "{read:?}");
    ensure!(i64::try_from(read.len())? == end, "{} of {end} records", read.len());
    Ok(())
}
