//! What clients can learn of a partition: bytes, offsets, leader epochs, and every record with its headers as
//! two client libraries read it.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use interop::broker::Broker;
use interop::cache;
use interop::calls;
use interop::clients::Client;
use interop::java::{self, Jars};
use interop::process::run_well;
use interop::raw::Connection;
use interop::wait;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{BrokerId, ListOffsetsRequest, OffsetForLeaderEpochRequest};

use super::{PARTITIONS, TOPIC};

const LIMIT: Duration = Duration::from_secs(60);
/// The timestamps of ListOffsets that stand for the first record and for the one with the largest timestamp.
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;

/// What a client can learn of a partition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    batches: Vec<Bytes>,
    latest: i64,
    /// Offset and leader epoch of the first record, of one found by its time, and of the youngest.
    found: Vec<(i64, i32)>,
    /// For each leader epoch up to that of the last record: the epoch that is told for it, and where it ends.
    epoch_ends: Vec<(i32, i64)>,
    /// A line for each record as Java's consumer prints it, with its headers.
    java: Vec<String>,
    /// A line for each record as librdkafka gives it, with headers and leader epoch.
    librdkafka: Vec<String>,
}

/// What is in all partitions.
pub(crate) fn of(broker: &Broker) -> Result<Vec<Contents>> {
    // A real Kafka leads its partitions a moment before it tells of them, and until then it refuses fetches.
    calls::wait_for_leaders(&broker.bootstrap(), TOPIC, PARTITIONS)?;
    (0..PARTITIONS).map(|partition| of_partition(&broker.bootstrap(), partition)).collect()
}

fn of_partition(bootstrap: &str, partition: usize) -> Result<Contents> {
    let earliest = calls::offset_at(bootstrap, TOPIC, partition, EARLIEST)?;
    let batches = calls::fetch_all(bootstrap, TOPIC, partition, earliest)?;
    let latest = calls::end_offset(bootstrap, TOPIC, partition)?;
    let middle = batches.get(batches.len() / 2).context("no middle")?;
    let time = i64::from_be_bytes(field(middle, 35)?);
    let last_epoch = i32::from_be_bytes(field(batches.last().context("no batches")?, 12)?);
    let found = [EARLIEST, time, MAX_TIMESTAMP].map(|time| found_at(bootstrap, partition, time));
    let epoch_ends = (0..=last_epoch).map(|epoch| epoch_end(bootstrap, partition, epoch));
    let count = latest - earliest;
    let contents = Contents {
        latest,
        found: found.into_iter().collect::<Result<_>>()?,
        epoch_ends: epoch_ends.collect::<Result<_>>()?,
        java: by_java(bootstrap, partition, count)?,
        librdkafka: by_librdkafka(bootstrap, partition, latest)?,
        batches,
    };
    let read = [contents.java.len(), contents.librdkafka.len()];
    ensure!(read.map(i64::try_from) == [Ok(count); 2], "{read:?} records of {count} were read");
    ensure!(contents.java == by_our_console(bootstrap, partition, count)?, "our console consumer differs");
    Ok(contents)
}

fn field<const N: usize>(batch: &[u8], at: usize) -> Result<[u8; N]> {
    Ok(batch.get(at..at + N).context("a short batch")?.try_into()?)
}

/// The offset for a timestamp, and its leader epoch.
fn found_at(bootstrap: &str, partition: usize, timestamp: i64) -> Result<(i64, i32)> {
    let partition = ListOffsetsPartition::default()
        .with_partition_index(i32::try_from(partition)?)
        .with_current_leader_epoch(-1)
        .with_timestamp(timestamp);
    let topic =
        ListOffsetsTopic::default().with_name(calls::topic_name(TOPIC)).with_partitions(vec![partition]);
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    wait::until("an answer of ListOffsets", LIMIT, || {
        let response = Connection::open(bootstrap)?.call(7, &request)?;
        let answer = response.topics.first().and_then(|t| t.partitions.first()).context("an empty answer")?;
        match answer.error_code {
            0 => Ok(Some((answer.offset, answer.leader_epoch))),
            code if calls::NOT_YET.contains(&code) => Ok(None),
            code => bail!("ListOffsets: error {code}"),
        }
    })
}

/// The largest known epoch up to `epoch`, and the offset where it ends.
fn epoch_end(bootstrap: &str, partition: usize, epoch: i32) -> Result<(i32, i64)> {
    let partition = OffsetForLeaderPartition::default()
        .with_partition(i32::try_from(partition)?)
        .with_current_leader_epoch(-1)
        .with_leader_epoch(epoch);
    let topic =
        OffsetForLeaderTopic::default().with_topic(calls::topic_name(TOPIC)).with_partitions(vec![partition]);
    let request =
        OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    wait::until("an answer of OffsetForLeaderEpoch", LIMIT, || {
        let response = Connection::open(bootstrap)?.call(3, &request)?;
        let answer = response.topics.first().and_then(|t| t.partitions.first()).context("an empty answer")?;
        match answer.error_code {
            0 => Ok(Some((answer.leader_epoch, answer.end_offset))),
            code if calls::NOT_YET.contains(&code) => Ok(None),
            code => bail!("OffsetForLeaderEpoch: error {code}"),
        }
    })
}

fn console_arguments(bootstrap: &str, partition: usize, count: i64) -> Vec<String> {
    let (partition, count) = (partition.to_string(), count.to_string());
    let mut arguments = vec!["--bootstrap-server", bootstrap, "--topic", TOPIC, "--partition", &partition];
    arguments.extend(["--offset", "earliest", "--max-messages", &count, "--timeout-ms", "60000"]);
    let printed = ["timestamp=true", "partition=true", "offset=true", "headers=true", "key=true"];
    let printed = printed.map(|what| format!("print.{what}"));
    printed.iter().for_each(|property| arguments.extend(["--property", property]));
    arguments.into_iter().map(str::to_owned).collect()
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn by_java(bootstrap: &str, partition: usize, count: i64) -> Result<Vec<String>> {
    let arguments = console_arguments(bootstrap, partition, count);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let class = "org.apache.kafka.tools.consumer.ConsoleConsumer";
    Ok(lines(&java::tool(Jars::Kafka39, class, &arguments, "")?.stdout))
}

fn by_our_console(bootstrap: &str, partition: usize, count: i64) -> Result<Vec<String>> {
    let mut command = Command::new(cache::blumfeld_binary()?);
    command.arg("console-consumer").args(console_arguments(bootstrap, partition, count));
    Ok(lines(&run_well(&mut command, "", LIMIT)?.stdout))
}

fn by_librdkafka(bootstrap: &str, partition: usize, end: i64) -> Result<Vec<String>> {
    let arguments = ["consume-all", bootstrap, TOPIC, &partition.to_string(), &end.to_string()];
    Ok(lines(&Client::Python("client_confluent").program(&arguments)?))
}

/// Wants both to hold the same; names what differs without printing whole logs.
pub(crate) fn same(before: &[Contents], after: &[Contents]) -> Result<()> {
    for (partition, (before, after)) in before.iter().zip(after).enumerate() {
        let told = |c: &Contents| (c.latest, c.found.clone(), c.epoch_ends.clone(), c.batches.len());
        ensure!(
            told(before) == told(after),
            "partition {partition}: latest, offsets found, ends of epochs, batches: {:?} became {:?}",
            told(before),
            told(after)
        );
        let different = before.batches.iter().zip(&after.batches).position(|(before, after)| before != after);
        ensure!(different.is_none(), "partition {partition}: batch {different:?} changed");
        for (before, after) in [(&before.java, &after.java), (&before.librdkafka, &after.librdkafka)] {
            let different = before.iter().zip(after).find(|(before, after)| before != after);
            ensure!(different.is_none(), "partition {partition}: a record changed: {different:#?}");
        }
        ensure!(before == after, "partition {partition} changed");
    }
    ensure!(before.len() == after.len(), "another number of partitions");
    Ok(())
}

/// Wants a partition to hold what makes the comparison worth something: records with headers, and batches of
/// `epochs` different leader epochs.
pub(crate) fn is_rich(contents: &[Contents], epochs: usize) -> Result<()> {
    for (partition, contents) in contents.iter().enumerate() {
        let told: std::collections::BTreeSet<i32> = contents
            .batches
            .iter()
            .map(|batch| Ok(i32::from_be_bytes(field(batch, 12)?)))
            .collect::<Result<_>>()?;
        ensure!(told.len() == epochs, "partition {partition}: batches of the leader epochs {told:?}");
        for sign in ["trace:", "empty:,", "none:null"] {
            ensure!(contents.java.iter().any(|line| line.contains(sign)), "partition {partition}: no {sign}");
        }
    }
    Ok(())
}
