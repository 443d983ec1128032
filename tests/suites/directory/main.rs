//! One data directory, two brokers: what Blumfeld wrote, a real Kafka serves, and the other way round, there and
//! back, after a clean stop and after `kill -9`. Clients see the same bytes, offsets, leader epochs and headers;
//! Kafka's dump tool and ours read every file and print the same.

mod carry;
mod compacted;
mod contents;
mod dump;
mod groups;
mod transacted;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use interop::batch::{Draft, now_ms};
use interop::broker::{Broker, Kind};
use interop::calls;
use interop::clients::{CODECS, Client};
use interop::raw::Connection;
use interop::wait;

const TOPIC: &str = "carried";
const PARTITIONS: usize = 2;
const COUNT: usize = 300;
const LIMIT: Duration = Duration::from_secs(60);
/// Small segments, so that a log has several, and little is enough for a cleaner.
const SETTINGS: [(&str, &str); 10] = [
    ("log.segment.bytes", "80000"),
    ("log.index.interval.bytes", "1000"),
    ("log.retention.ms", "-1"),
    ("log.flush.start.offset.checkpoint.interval.ms", "500"),
    ("log.cleaner.backoff.ms", "200"),
    ("log.cleaner.min.cleanable.ratio", "0.01"),
    ("log.cleaner.delete.retention.ms", "100"),
    ("offsets.topic.num.partitions", "3"),
    ("offsets.topic.segment.bytes", "16384"),
    ("transaction.state.log.num.partitions", "1"),
];

/// How a broker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Clean,
    Killed,
}

/// Fills a broker: every codec, an idempotent producer, headers, and records deleted at the front.
fn fill(broker: &Broker, data: &Path) -> Result<()> {
    let bootstrap = broker.bootstrap();
    calls::create_topic(&bootstrap, TOPIC, i32::try_from(PARTITIONS)?, &[("max.message.bytes", "900000")])?;
    for codec in CODECS {
        Client::Franz.produce(&bootstrap, TOPIC, codec, COUNT)?;
    }
    let mut connection = Connection::open(&bootstrap)?;
    let (id, epoch) = calls::init_producer_id(&mut connection)?;
    for sequence in 0..200 {
        let batch = Draft::of_values(now_ms(), &[&[b'v'; 500]]).from_producer(id, epoch, sequence).build();
        let answer = calls::produce(&mut connection, TOPIC, 0, batch)?;
        ensure!(answer.error_code == 0, "{answer:?}");
    }
    write_more(broker)?;
    calls::delete_records(&bootstrap, TOPIC, 1, 37)?;
    // A start offset is promised only from its next checkpoint on.
    let checkpoint = data.join("log-start-offset-checkpoint");
    wait::until("a checkpoint of start offsets", LIMIT, || {
        let text = std::fs::read_to_string(&checkpoint).unwrap_or_default();
        Ok(text.lines().any(|line| line == format!("{TOPIC} 1 37")).then_some(()))
    })
}

/// Writes to every partition, with headers: the directory is served, not only read.
fn write_more(broker: &Broker) -> Result<()> {
    let bootstrap = broker.bootstrap();
    let mut connection = Connection::open(&bootstrap)?;
    for partition in 0..PARTITIONS {
        let latest = calls::end_offset(&bootstrap, TOPIC, partition)?;
        let headers =
            [("trace", Some(&b"42"[..])), ("empty", Some(b"")), ("none", None), ("trace", Some(b"43"))];
        let batch = Draft::of_values(now_ms(), &[b"plain", b"and more"]).with_headers(&headers).build();
        let answer = calls::produce(&mut connection, TOPIC, i32::try_from(partition)?, batch)?;
        ensure!((answer.error_code, answer.base_offset) == (0, latest), "{answer:?} at {latest}");
    }
    for codec in CODECS {
        Client::Python("client_confluent").program(&["produce-headers", &bootstrap, TOPIC, codec, "20"])?;
    }
    Ok(())
}

/// From a broker of one kind to the other and back, with new records in each life.
fn there_and_back(first: Kind, how: End) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    std::fs::create_dir(&data)?;
    let mut broker = carry::prepare(first, &data)?;
    broker.resume()?;
    fill(&broker, &data)?;
    for move_number in 1..=2 {
        let before = contents::of(&broker)?;
        contents::is_rich(&before, move_number)?;
        broker = carry::over(broker, &data, TOPIC, how)?;
        contents::same(&before, &contents::of(&broker)?)?;
        write_more(&broker)?;
    }
    carry::end(&mut broker, &data, TOPIC, how)
}

#[test]
fn what_blumfeld_left_after_a_clean_stop_goes_to_kafka_and_back() -> Result<()> {
    there_and_back(Kind::Blumfeld, End::Clean)
}

#[test]
fn what_blumfeld_left_when_it_was_killed_goes_to_kafka_and_back() -> Result<()> {
    there_and_back(Kind::Blumfeld, End::Killed)
}

#[test]
fn what_kafka_left_after_a_clean_stop_goes_to_blumfeld_and_back() -> Result<()> {
    there_and_back(Kind::Kafka, End::Clean)
}

#[test]
fn what_kafka_left_when_it_was_killed_goes_to_blumfeld_and_back() -> Result<()> {
    there_and_back(Kind::Kafka, End::Killed)
}
