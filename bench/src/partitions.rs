//! A topic with very many partitions: creation, a clean restart, and a restart after `kill -9`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use interop::batch::{Draft, now_ms};
use interop::broker::{Broker, Kind};
use interop::calls::{self, NOT_YET};
use interop::raw::Connection;
use interop::wait;
use interop::zookeeper::ZookeeperClient;
use kafka_protocol::messages::ProduceRequest;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};

use crate::Effort;
use crate::contender;
use crate::figures::{Figures, Goal, Row};
use crate::startup;

const TOPIC: &str = "many";
const LIMIT: Duration = Duration::from_secs(180);
/// Partitions in one produce request.
const AT_ONCE: usize = 200;

const fn row(name: &'static str, goal: Goal) -> Row {
    Row { name, unit: "s", goal }
}

const CREATED: Row = row("2,000 partitions: created", Goal::AtMost(1.0));
const CLEAN: Row = row("2,000 partitions: clean restart to the first ack", Goal::None);
const KILLED_FIRST: Row = row("2,000 partitions: after kill -9 to the first ack", Goal::AtMost(0.2));
const KILLED_ALL: Row = row("2,000 partitions: after kill -9 to acks of all", Goal::AtMost(1.0));

/// All figures of one broker, on a fresh folder each round. The brokers are stopped and added to `kept`: the files of a
/// removed folder, which a file system remembers for minutes, would make the next round's creations slow.
pub(crate) fn measure(
    kind: Kind,
    effort: Effort,
    figures: &mut Figures,
    kept: &mut Vec<Broker>,
) -> Result<()> {
    // Kafka's take a minute each and differ by far more than their noise.
    let rounds = if kind == Kind::Kafka { 1 } else { effort.rounds.max(3) };
    for _ in 0..rounds {
        kept.push(round(kind, effort, figures)?);
    }
    Ok(())
}

fn round(kind: Kind, effort: Effort, figures: &mut Figures) -> Result<Broker> {
    let mut broker = Broker::start(kind, contender::options())?;
    let address = broker.bootstrap();
    let start = Instant::now();
    calls::create_topic(&address, TOPIC, effort.partitions, &[])?;
    figures.add(CREATED, kind, start.elapsed().as_secs_f64());
    produce_to_all(&address, effort.partitions)?;

    broker.stop()?;
    let seconds = startup::start_until_ack(&mut broker, TOPIC, Instant::now())?;
    figures.add(CLEAN, kind, seconds);
    produce_to_all(&address, effort.partitions)?;

    broker.kill()?;
    if kind == Kind::Kafka {
        forget(&broker)?;
    }
    let start = Instant::now();
    let seconds = startup::start_until_ack(&mut broker, TOPIC, start)?;
    figures.add(KILLED_FIRST, kind, seconds);
    produce_to_all(&address, effort.partitions)?;
    figures.add(KILLED_ALL, kind, start.elapsed().as_secs_f64());
    broker.stop()?;
    Ok(broker)
}

/// Takes a dead broker out of ZooKeeper: it would neither start nor get leaders before its old session has ended, and that
/// is not measured here.
fn forget(broker: &Broker) -> Result<()> {
    let mut client = ZookeeperClient::connect(&broker.zookeeper()?.address())?;
    client.delete(&format!("/brokers/ids/{}", broker.id()))?;
    client.delete("/controller")?;
    Ok(())
}

/// Writes one record to every partition, again and again to those that do not serve yet.
fn produce_to_all(address: &str, partitions: i32) -> Result<()> {
    let batch = Draft::of_values(now_ms(), &[b"one"]).build();
    let mut connection = Connection::open(address)?;
    let mut open: BTreeSet<i32> = (0..partitions).collect();
    wait::until("an ack of every partition", LIMIT, || {
        for some in open.clone().iter().copied().collect::<Vec<_>>().chunks(AT_ONCE) {
            let data = some.iter().map(|index| {
                PartitionProduceData::default().with_index(*index).with_records(Some(batch.clone()))
            });
            let topic = TopicProduceData::default()
                .with_name(calls::topic_name(TOPIC))
                .with_partition_data(data.collect());
            let request =
                ProduceRequest::default().with_acks(1).with_timeout_ms(30_000).with_topic_data(vec![topic]);
            let response = connection.call(9, &request)?;
            let answer = response.responses.first().context("an empty answer")?;
            ensure!(answer.partition_responses.len() == some.len(), "an answer of another size");
            for partition in &answer.partition_responses {
                match partition.error_code {
                    0 => drop(open.remove(&partition.index)),
                    code if NOT_YET.contains(&code) => {}
                    code => bail!("partition {}: error {code}", partition.index),
                }
            }
        }
        Ok(open.is_empty().then_some(()))
    })
}
