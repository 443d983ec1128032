//! A reader of one partition, from its start on, who notes everything that he is given.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use kafka_protocol::records::RecordBatchDecoder;

use super::leader::Tries;
use super::{Leader, Load, Progress};
use crate::calls::{fetch_request_in, whole_batches};
use crate::checker::{History, Partition, Read, ReadRecord, digest, record_id};
use crate::raw::Connection;

/// Bytes asked for at a time.
const FETCH_BYTES: i32 = 1 << 20;
/// Errors after which a reader asks for the leader again, as a producer does; OFFSET_NOT_AVAILABLE besides.
const RETRIABLE: [i16; 8] = [3, 5, 6, 7, 56, 74, 75, 78];

/// Reads until told to stop.
pub(super) fn follow(
    load: &Load,
    partition: &Partition,
    number: u32,
    progress: &Progress,
) -> Result<History> {
    let name = format!("reader {number}");
    let records = read(load, partition, progress, |_| progress.is_stopping())
        .with_context(|| format!("{name} of {partition}"))?;
    let mut history = History::default();
    history.partition(partition).reads.push(Read { reader: name, records, is_final: false });
    Ok(history)
}

/// Reads everything that is there.
pub(super) fn read_all(load: &Load, partition: &Partition) -> Result<Vec<ReadRecord>> {
    read(load, partition, &Progress::new(), |got| got.is_at_end)
        .with_context(|| format!("the last read of {partition}"))
}

/// What one fetch gave.
struct Got {
    records: Vec<ReadRecord>,
    /// Whether it ends at the leader's high watermark.
    is_at_end: bool,
}

fn read(
    load: &Load,
    partition: &Partition,
    progress: &Progress,
    is_enough: impl Fn(&Got) -> bool,
) -> Result<Vec<ReadRecord>> {
    let mut leader = Leader::of(load, partition);
    let mut tries = Tries::new();
    let mut records: Vec<ReadRecord> = Vec::new();
    let mut connection = leader.connect(progress)?;
    loop {
        let next = records.last().map_or(0, |last| last.offset + 1);
        match fetch(&mut connection, leader.epoch(), partition, next)? {
            Fetched::Records(got) => {
                tries.succeeded();
                records.extend(&got.records);
                if is_enough(&got) {
                    return Ok(records);
                }
            }
            Fetched::Failed(why) => {
                tries.failed(&why)?;
                connection = leader.connect(progress)?;
            }
        }
    }
}

enum Fetched {
    Records(Got),
    Failed(String),
}

/// Names the leader epoch, as Kafka's clients do: a leader that has not heard of its successors has none of what they gave,
/// and would say that there is no such offset.
fn fetch(
    connection: &mut Connection,
    leader_epoch: i32,
    partition: &Partition,
    offset: i64,
) -> Result<Fetched> {
    let request = fetch_request_in(leader_epoch, &partition.topic, partition.index, offset, FETCH_BYTES);
    let response = match connection.call(11, &request) {
        Ok(response) => response,
        Err(error) => return Ok(Fetched::Failed(format!("{error:#}"))),
    };
    let topic = response.responses.into_iter().next().context("no topic in the answer")?;
    let answer = topic.partitions.into_iter().next().context("no partition in the answer")?;
    match answer.error_code {
        0 => {}
        code if RETRIABLE.contains(&code) => return Ok(Fetched::Failed(format!("error {code}"))),
        code => bail!("error {code} at offset {offset}: {answer:?}"),
    }
    let mut records = Vec::new();
    for batch in whole_batches(answer.records.unwrap_or_default()) {
        records.extend(decode(batch)?.into_iter().filter(|record| record.offset >= offset));
    }
    let end = records.last().map_or(offset, |last| last.offset + 1);
    Ok(Fetched::Records(Got { records, is_at_end: end >= answer.high_watermark }))
}

fn decode(mut batch: Bytes) -> Result<Vec<ReadRecord>> {
    let records = RecordBatchDecoder::decode(&mut batch)?.records;
    let read = |record: kafka_protocol::records::Record| {
        let value = record.value.context("a record without a value")?;
        let id = record_id(&value).with_context(|| format!("no name at offset {}", record.offset))?;
        Ok(ReadRecord { offset: record.offset, id, digest: digest(&value) })
    };
    records.into_iter().map(read).collect()
}
