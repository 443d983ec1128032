//! A group on one node: a member is killed, then the broker, which comes back.

use anyhow::{Context, Result, ensure};
use interop::broker::{Broker, Kind, Options};
use interop::calls::create_topic;
use interop::clients::Client;
use interop::depth::Depth;
use interop::java::Jars;
use interop::{folders, wait};

use super::judge::judge;
use super::member::Member;
use super::seen::{committed, ends, wait_for_all, wait_for_each};
use super::{COUNT, LIMIT, PARTITIONS, PROPERTIES, TOPIC};

fn a_group_of_three(client: Client) -> Result<()> {
    let mut broker = Broker::start(Kind::from_environment()?, Options::with(&PROPERTIES))?;
    let bootstrap = broker.bootstrap();
    create_topic(&bootstrap, TOPIC, i32::try_from(PARTITIONS)?, &[])?;
    Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
    let folder = folders::temporary("blumfeld-groups-")?;
    let start = |name| Member::start(client, &bootstrap, folder.path(), name, None);
    let mut members = ["a", "b", "c"].into_iter().map(start).collect::<Result<Vec<_>>>()?;
    wait_for_all(&bootstrap, &members)?;
    wait_for_each(&bootstrap, &members)?;
    members.first_mut().context("there are three")?.kill()?;
    Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
    broker.kill()?;
    if client == Client::Kcat {
        // It ends when there is no broker any more.
        wait::until("kcat to give up", LIMIT, || {
            let ended = members.iter_mut().skip(1).map(Member::has_ended).collect::<Result<Vec<_>>>()?;
            Ok(ended.into_iter().all(|ended| ended).then_some(()))
        })?;
    }
    broker.resume()?;
    if client == Client::Kcat {
        for (member, name) in members.iter_mut().skip(1).zip(["b", "c"]) {
            *member = start(name)?;
        }
    }
    Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
    wait_for_all(&bootstrap, &members)?;
    members.iter_mut().skip(1).try_for_each(Member::end)?;
    judge(client, &members)?;
    ensure!(committed(&bootstrap)? == ends(&bootstrap)?, "something was committed that is not the end");
    broker.stop()
}

#[test]
fn kcat() -> Result<()> {
    a_group_of_three(Client::Kcat)
}

#[test]
fn franz_go() -> Result<()> {
    a_group_of_three(Client::Franz)
}

/// Each of them has the same story among three nodes.
#[test]
fn the_other_clients() -> Result<()> {
    if Depth::from_environment()? == Depth::Short {
        return a_group_of_three(Client::Java(Jars::Tools4));
    }
    [
        Client::Java(Jars::Kafka39),
        Client::Java(Jars::Tools4),
        Client::Python("client_confluent"),
        Client::Python("client_kafka_python"),
        Client::Python("client_aiokafka"),
        Client::Sarama,
        Client::Node,
    ]
    .into_iter()
    .try_for_each(|client| a_group_of_three(client).with_context(|| format!("{client:?}")))
}
