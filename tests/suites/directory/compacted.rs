//! A compacted topic: what one broker has compacted, the other serves and compacts on, and Kafka's dump tool reads.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use interop::batch::{Draft, now_ms};
use interop::broker::{Broker, Kind};
use interop::calls;
use interop::raw::Connection;
use interop::wait;
use kafka_protocol::records::RecordBatchDecoder;

use super::{End, LIMIT, PARTITIONS, TOPIC, carry};

/// A small dirty part is enough, and segments are small.
const COMPACT: [(&str, &str); 4] = [
    ("cleanup.policy", "compact"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("segment.bytes", "20000"),
    ("delete.retention.ms", "600000"),
];
/// Rounds of records over the same keys, in each life of the directory.
const ROUNDS: usize = 600;
const KEYS: usize = 7;

/// The offset and value of the last record of each key.
type Latest = BTreeMap<Vec<u8>, (i64, Vec<u8>)>;

/// Writes the same keys again and again to every partition, from an idempotent producer too, and deletes one.
fn write(broker: &Broker, life: usize) -> Result<()> {
    let mut connection = Connection::open(&broker.bootstrap())?;
    let (id, epoch) = calls::init_producer_id(&mut connection)?;
    for partition in 0..PARTITIONS {
        let partition = i32::try_from(partition)?;
        for round in 0..ROUNDS {
            let key = Bytes::from(format!("key-{}", round % KEYS));
            let value = Bytes::from(format!("{life}-{round:0150}"));
            let mut draft = Draft::of_values(now_ms(), &[&value]);
            draft.records = vec![(Some(key), Some(value))];
            let answer = calls::produce(&mut connection, TOPIC, partition, draft.build())?;
            ensure!(answer.error_code == 0, "{answer:?}");
        }
        for sequence in 0..3 {
            let mut draft = Draft::of_values(now_ms(), &[b"same"]).from_producer(id, epoch, sequence);
            draft.records = vec![(Some(Bytes::from("produced")), Some(Bytes::from("same")))];
            calls::produce(&mut connection, TOPIC, partition, draft.build())?;
        }
        let mut draft = Draft::of_values(now_ms(), &[b""]);
        draft.records = vec![(Some(Bytes::from("key-0")), None)];
        calls::produce(&mut connection, TOPIC, partition, draft.build())?;
        // A segment's worth behind it, so that all of the above may be compacted.
        for round in 0..150 {
            let mut draft = Draft::of_values(now_ms(), &[b"x"]);
            draft.records = vec![(Some(Bytes::from("behind")), Some(Bytes::from(format!("{round:0200}"))))];
            calls::produce(&mut connection, TOPIC, partition, draft.build())?;
        }
    }
    Ok(())
}

/// How many records a partition holds.
fn record_count(broker: &Broker, partition: usize) -> Result<usize> {
    let batches = calls::fetch_all(&broker.bootstrap(), TOPIC, partition, 0)?;
    let counts = batches.iter().map(|batch| {
        let count = batch.get(57..61).context("a short batch")?;
        Ok(usize::try_from(i32::from_be_bytes(count.try_into()?))?)
    });
    counts.sum()
}

/// Waits until most of what was written is gone.
fn wait_until_compacted(broker: &Broker) -> Result<()> {
    wait::until("the topic is compacted", LIMIT, || {
        let counts: Result<Vec<usize>> = (0..PARTITIONS).map(|it| record_count(broker, it)).collect();
        Ok(counts?.into_iter().all(|count| count < 350).then_some(()))
    })
}

/// What a consumer of a partition comes to know, which no compaction changes.
fn latest(broker: &Broker, partition: usize) -> Result<(Latest, i64)> {
    let bootstrap = broker.bootstrap();
    let mut latest = Latest::new();
    for batch in calls::fetch_all(&bootstrap, TOPIC, partition, 0)? {
        let mut batch = batch.clone();
        for record in RecordBatchDecoder::decode(&mut batch)?.records {
            let key = record.key.context("a record without a key")?.to_vec();
            match record.value {
                Some(value) => latest.insert(key, (record.offset, value.to_vec())),
                None => latest.remove(&key),
            };
        }
    }
    Ok((latest, calls::end_offset(&bootstrap, TOPIC, partition)?))
}

fn all_latest(broker: &Broker) -> Result<Vec<(Latest, i64)>> {
    calls::wait_for_leaders(&broker.bootstrap(), TOPIC, PARTITIONS)?;
    (0..PARTITIONS).map(|partition| latest(broker, partition)).collect()
}

fn there_and_back(first: Kind, how: End) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    std::fs::create_dir(&data)?;
    let mut broker = carry::prepare(first, &data)?;
    broker.resume()?;
    calls::create_topic(&broker.bootstrap(), TOPIC, i32::try_from(PARTITIONS)?, &COMPACT)?;
    for life in 0..2 {
        write(&broker, life)?;
        wait_until_compacted(&broker)?;
        let before = all_latest(&broker)?;
        ensure!(before.iter().all(|(latest, _)| latest.len() == KEYS + 1), "{before:?}");
        broker = carry::over(broker, &data, TOPIC, how)?;
        let after = all_latest(&broker)?;
        ensure!(before == after, "what {first:?} had compacted: {before:?} became {after:?}");
        is_known(&data)?;
    }
    carry::end(&mut broker, &data, TOPIC, how)
}

/// The checkpoint names every partition of the topic.
fn is_known(data: &Path) -> Result<()> {
    let text = std::fs::read_to_string(data.join("cleaner-offset-checkpoint"))?;
    let lines = text.lines().filter(|line| line.starts_with(TOPIC)).count();
    ensure!(lines == PARTITIONS, "{text}");
    Ok(())
}

#[test]
fn what_blumfeld_has_compacted_goes_to_kafka_and_back() -> Result<()> {
    there_and_back(Kind::Blumfeld, End::Clean)
}

#[test]
fn what_kafka_has_compacted_goes_to_blumfeld_and_back() -> Result<()> {
    there_and_back(Kind::Kafka, End::Killed)
}
