//! A group among three nodes: a static member is started again and costs no generation, a member is killed, then the
//! coordinator, whose successor reads what was committed from its own copy.

use anyhow::{Context, Result, ensure};
use interop::broker::Kind;
use interop::clients::Client;
use interop::cluster::{Cluster, Plan};
use interop::java::Jars;
use interop::{folders, wait};

use super::judge::judge;
use super::member::Member;
use super::seen::{committed, coordinator, ends, generation, members, wait_for_all, wait_for_each};
use super::{COUNT, LIMIT, PARTITIONS, PROPERTIES, TOPIC};

/// The instance of the member that is static.
const INSTANCE: &str = "steady";

fn cluster() -> Result<Cluster> {
    let mut plan = Plan::of(Kind::from_environment()?, 3).with(&PROPERTIES);
    plan.session_timeout_ms = 4_000;
    let cluster = Cluster::start(&plan)?;
    cluster.create_topic(TOPIC, i32::try_from(PARTITIONS)?, 3)?;
    Ok(cluster)
}

/// Starts the static member again, within its session: it gets its part back, and the others notice nothing.
fn start_again(asked: &str, member: &mut Member, start: impl Fn() -> Result<Member>) -> Result<()> {
    let of = |id: Option<&str>| -> Result<_> {
        let members = members(asked)?;
        members.into_iter().find(|it| it.group_instance_id.as_deref() == id).context("no such member")
    };
    let (before, other) = (of(Some(INSTANCE))?, of(None)?);
    let term = generation(asked, &other)?;
    member.end()?;
    *member = start()?;
    let after = wait::until("the static member to be back", LIMIT, || {
        Ok(of(Some(INSTANCE)).ok().filter(|it| it.member_id != before.member_id))
    })?;
    ensure!(
        after.member_assignment == before.member_assignment,
        "its part is another: {before:?}, {after:?}"
    );
    ensure!(generation(asked, &other)? == term, "its return has cost a generation");
    Ok(())
}

fn a_group_of_three(client: Client) -> Result<()> {
    let mut cluster = cluster()?;
    let addresses = cluster.addresses();
    let bootstrap = addresses.join(",");
    let asked = addresses.first().context("there are three")?;
    Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
    let folder = folders::temporary("blumfeld-groups-")?;
    let instance = client.knows_static_members().then_some(INSTANCE);
    let start = |name, instance| Member::start(client, &bootstrap, folder.path(), name, instance);
    let mut group = vec![start("a", None)?, start("b", None)?, start("c", instance)?];
    wait_for_all(asked, &group)?;
    wait_for_each(&bootstrap, &group)?;
    if let (Some(_), Some(last)) = (instance, group.last_mut()) {
        start_again(asked, last, || start("c", instance))?;
    }
    Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
    group.first_mut().context("there are three")?.kill()?;

    let (lost, _) = coordinator(asked)?;
    cluster.broker(lost)?.kill()?;
    let left = cluster.ids().into_iter().zip(&addresses).find(|(id, _)| *id != lost);
    let (_, asked) = left.context("there are three")?;
    wait::until("another coordinator", LIMIT, || {
        Ok(coordinator(asked).ok().filter(|(id, _)| *id != lost).map(drop))
    })?;
    if client == Client::Node {
        // It often does nothing any more once its coordinator has died, with a real Kafka too.
        for (member, name) in group.iter_mut().skip(1).zip(["b", "c"]) {
            member.kill()?;
            *member = start(name, None)?;
        }
    }
    Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
    wait_for_all(asked, &group)?;
    cluster.start_brokers(&[lost])?;
    cluster.until_in_sync(TOPIC)?;
    Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
    wait_for_all(asked, &group)?;

    group.iter_mut().skip(1).try_for_each(Member::end)?;
    judge(client, &group)?;
    ensure!(committed(asked)? == ends(asked)?, "something was committed that is not the end");
    Ok(())
}

#[test]
fn java_3_9_console_consumer() -> Result<()> {
    a_group_of_three(Client::Java(Jars::Kafka39))
}

#[test]
fn java_4_console_consumer() -> Result<()> {
    a_group_of_three(Client::Java(Jars::Tools4))
}

#[test]
fn kcat() -> Result<()> {
    a_group_of_three(Client::Kcat)
}

#[test]
fn confluent_kafka() -> Result<()> {
    a_group_of_three(Client::Python("client_confluent"))
}

#[test]
fn kafka_python() -> Result<()> {
    a_group_of_three(Client::Python("client_kafka_python"))
}

#[test]
fn aiokafka() -> Result<()> {
    a_group_of_three(Client::Python("client_aiokafka"))
}

#[test]
fn franz_go() -> Result<()> {
    a_group_of_three(Client::Franz)
}

#[test]
fn sarama() -> Result<()> {
    a_group_of_three(Client::Sarama)
}

#[test]
fn kafkajs() -> Result<()> {
    a_group_of_three(Client::Node)
}
