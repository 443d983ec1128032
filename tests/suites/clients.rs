//! Every client creates a topic, writes with every codec, and reads all back by partition, before and after a
//! restart of the broker. With `BLUMFELD_TEST_TARGET=kafka` the same runs against the real one.

use anyhow::Result;
use interop::broker::{Broker, Kind, Options};
use interop::calls::end_offset;
use interop::clients::{CODECS, Client, Read, judge};
use interop::java::Jars;

const PARTITIONS: usize = 3;
const COUNT: usize = 200;

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
    round_trip(Client::Franz, Client::Franz)
}

#[test]
fn sarama() -> Result<()> {
    round_trip(Client::Sarama, Client::Sarama)
}

#[test]
fn kafkajs_writes_what_franz_go_reads() -> Result<()> {
    round_trip(Client::Node, Client::Franz)
}
