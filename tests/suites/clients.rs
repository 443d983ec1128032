//! Every client creates a topic, writes with every codec, and reads all back by partition, before and after a
//! restart of the broker. With `BLUMFELD_TEST_TARGET=kafka` the same runs against the real one.

use std::time::Duration;

use anyhow::{Result, bail};
use interop::broker::{Broker, Kind, Options};
use interop::clients::{CODECS, Client, Read, judge};
use interop::java::Jars;
use interop::raw::Connection;
use interop::wait;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{BrokerId, ListOffsetsRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

const PARTITIONS: usize = 3;
const COUNT: usize = 200;

fn end_offset(bootstrap: &str, topic: &str, partition: usize) -> Result<i64> {
    let partition =
        ListOffsetsPartition::default().with_partition_index(i32::try_from(partition)?).with_timestamp(-1);
    let topic = ListOffsetsTopic::default()
        .with_name(TopicName(StrBytes::from_string(topic.to_owned())))
        .with_partitions(vec![partition]);
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    // A broker that has just started may not know its partitions yet.
    wait::until("an end offset", Duration::from_secs(30), || {
        let response = Connection::open(bootstrap)?.call(1, &request)?;
        let answer = &response.topics[0].partitions[0];
        match answer.error_code {
            0 => Ok(Some(answer.offset)),
            3 | 5 | 6 => Ok(None),
            code => bail!("ListOffsets: error {code}"),
        }
    })
}

fn read_all(reader: Client, bootstrap: &str, topic: &str) -> Result<Vec<Vec<Read>>> {
    (0..PARTITIONS)
        .map(|partition| {
            reader.consume(bootstrap, topic, partition, end_offset(bootstrap, topic, partition)?)
        })
        .collect()
}

fn round_trip(writer: Client, reader: Client) -> Result<()> {
    let mut broker = Broker::start(Kind::from_environment()?, Options::default())?;
    let (bootstrap, topic) = (broker.bootstrap(), "round-trip");
    writer.create(&bootstrap, topic, PARTITIONS)?;
    for codec in CODECS {
        writer.produce(&bootstrap, topic, codec, COUNT)?;
    }
    let before = read_all(reader, &bootstrap, topic)?;
    judge(&before, &CODECS, COUNT)?;
    broker.stop()?;
    broker.resume()?;
    assert_eq!(read_all(reader, &bootstrap, topic)?, before, "what is read changed with the restart");
    Ok(())
}

#[test]
fn java_3_9_console_tools() -> Result<()> {
    round_trip(Client::Java(Jars::Kafka39), Client::Java(Jars::Kafka39))
}

#[test]
fn java_4_console_tools() -> Result<()> {
    round_trip(Client::Java(Jars::Tools4), Client::Java(Jars::Tools4))
}

#[test]
fn kcat() -> Result<()> {
    round_trip(Client::Kcat, Client::Kcat)
}

#[test]
fn confluent_kafka() -> Result<()> {
    round_trip(Client::Python("client_confluent"), Client::Python("client_confluent"))
}

#[test]
fn kafka_python() -> Result<()> {
    round_trip(Client::Python("client_kafka_python"), Client::Python("client_kafka_python"))
}

#[test]
fn aiokafka() -> Result<()> {
    round_trip(Client::Python("client_aiokafka"), Client::Python("client_aiokafka"))
}

#[test]
fn franz_go() -> Result<()> {
    round_trip(Client::Go, Client::Go)
}

#[test]
fn kafkajs_writes_what_franz_go_reads() -> Result<()> {
    round_trip(Client::Node, Client::Go)
}
