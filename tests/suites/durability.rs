//! What is acknowledged stays: `kill -9` at random moments during idempotent production, and a clean stop.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::Bytes;
use interop::batch::{Draft, now_ms};
use interop::broker::{Broker, Kind, Options};
use interop::calls::{self, NOT_YET, produce_request};
use interop::raw::{Answer, Connection, frame};
use interop::wait;
use kafka_protocol::messages::{ProduceResponse, ResponseHeader};
use kafka_protocol::protocol::Decodable;
use kafka_protocol::records::RecordBatchDecoder;

const TOPIC: &str = "acknowledged";
const PARTITIONS: i32 = 3;
const KILLS: usize = 10;
const IN_FLIGHT: usize = 5;
const VERSION: i16 = 9;
const LIMIT: Duration = Duration::from_secs(60);
const DUPLICATE_SEQUENCE_NUMBER: i16 = 46;

/// Numbers from a seed; good enough to choose moments.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A batch that was sent and not acknowledged yet.
struct Pending {
    payload: Bytes,
    last_record: i32,
}

/// An idempotent producer of one partition that numbers its records and never gives up on one.
struct Producer<'a> {
    address: String,
    partition: i32,
    id: (i64, i16),
    pending: VecDeque<Pending>,
    next_record: i32,
    acknowledged: i32,
    all_acknowledged: &'a AtomicU64,
    stop: &'a AtomicBool,
    random: Random,
}

impl Producer<'_> {
    /// Produces until told to stop and everything sent is acknowledged; returns how many records that were.
    fn run(mut self) -> Result<i32> {
        loop {
            match self.until_broken()? {
                Some(records) => return Ok(records),
                None => continue,
            }
        }
    }

    /// Works on one connection; `None` when it broke.
    fn until_broken(&mut self) -> Result<Option<i32>> {
        let mut connection =
            wait::until("a broker that listens", LIMIT, || Ok(Connection::open(&self.address).ok()))?;
        for pending in &self.pending {
            if connection.send(&pending.payload).is_err() {
                return Ok(None);
            }
        }
        loop {
            let stopping = self.stop.load(Ordering::Relaxed);
            while !stopping && self.pending.len() < IN_FLIGHT {
                let payload = self.next_batch()?;
                if connection.send(&payload).is_err() {
                    return Ok(None);
                }
            }
            let Some(first) = self.pending.front() else { return Ok(Some(self.next_record)) };
            let last_record = first.last_record;
            let Ok(Answer::Frame(answer)) = connection.receive() else { return Ok(None) };
            match error_code(answer)? {
                0 | DUPLICATE_SEQUENCE_NUMBER => {
                    self.pending.pop_front();
                    self.acknowledged = last_record + 1;
                    self.all_acknowledged.fetch_add(1, Ordering::Relaxed);
                }
                // The broker is starting: all that is in flight goes again, in order.
                code if NOT_YET.contains(&code) => return Ok(None),
                code => {
                    bail!("partition {}: error {code} after record {}", self.partition, self.acknowledged)
                }
            }
        }
    }

    fn next_batch(&mut self) -> Result<Bytes> {
        let first = self.next_record;
        let count = i32::try_from(1 + self.random.below(4))?;
        let values: Vec<String> = (first..first + count).map(|n| n.to_string()).collect();
        let values: Vec<&[u8]> = values.iter().map(String::as_bytes).collect();
        let batch = Draft::of_values(now_ms(), &values).from_producer(self.id.0, self.id.1, first).build();
        let payload = frame(VERSION, first, &produce_request(TOPIC, self.partition, batch, -1))?;
        self.next_record += count;
        self.pending.push_back(Pending { payload: payload.clone(), last_record: first + count - 1 });
        Ok(payload)
    }
}

fn error_code(mut answer: Bytes) -> Result<i16> {
    ResponseHeader::decode(&mut answer, 1)?;
    let response = ProduceResponse::decode(&mut answer, VERSION)?;
    let partition = response.responses.first().and_then(|topic| topic.partition_responses.first());
    Ok(partition.context("an empty answer")?.error_code)
}

/// Kills the broker again and again: mostly in full work, sometimes while it starts.
fn kill_and_restart(broker: &mut Broker, acknowledged: &AtomicU64, random: &mut Random) -> Result<()> {
    for kill in 0..KILLS {
        if kill % 4 == 3 {
            let moment = Duration::from_millis(random.below(60));
            let start = Instant::now();
            wait::until("a moment in the start", LIMIT, || Ok((start.elapsed() > moment).then_some(())))?;
        } else {
            let goal = acknowledged.load(Ordering::Relaxed) + 200 + random.below(2000);
            wait::until("more acknowledgements", LIMIT, || {
                ensure!(broker.process()?.is_running()?, "the broker ended by itself");
                Ok((acknowledged.load(Ordering::Relaxed) >= goal).then_some(()))
            })?;
        }
        broker.kill()?;
        let process = broker.spawn()?;
        broker.adopt(process);
    }
    let goal = acknowledged.load(Ordering::Relaxed) + 50;
    wait::until("acknowledgements after the last kill", LIMIT, || {
        Ok((acknowledged.load(Ordering::Relaxed) >= goal).then_some(()))
    })
}

/// How many segments a partition has.
fn segments(broker: &Broker, partition: i32) -> Result<usize> {
    let files = broker.data().join(format!("{TOPIC}-{partition}")).read_dir()?;
    let names = files.map(|file| Ok(file?.file_name())).collect::<Result<Vec<_>>>()?;
    Ok(names.iter().filter(|name| name.to_string_lossy().ends_with(".log")).count())
}

/// Every number from 0 to `count` once and in order.
fn verify(broker: &Broker, partition: usize, count: i32) -> Result<()> {
    let batches = calls::fetch_all(&broker.bootstrap(), TOPIC, partition, 0)?;
    let mut expected = 0;
    for mut batch in batches {
        for record in RecordBatchDecoder::decode(&mut batch)?.records {
            let value = record.value.context("a record without a value")?;
            let number: i32 = std::str::from_utf8(&value)?.parse()?;
            ensure!(number == expected, "partition {partition}: {number} where {expected} belongs");
            ensure!(
                record.offset == i64::from(expected),
                "partition {partition}: {number} at {}",
                record.offset
            );
            expected += 1;
        }
    }
    ensure!(expected == count, "partition {partition}: {expected} records of {count} acknowledged");
    Ok(())
}

#[test]
fn ten_kills_lose_and_double_nothing_acknowledged() -> Result<()> {
    let seed = u64::try_from(now_ms())?;
    println!("seed {seed}");
    // Small segments and frequent snapshots, so that kills meet rolls too.
    let options = Options::with(&[("log.segment.bytes", "2000"), ("log.index.interval.bytes", "500")]);
    let mut broker = Broker::start(Kind::from_environment()?, options)?;
    let address = broker.bootstrap();
    calls::create_topic(&address, TOPIC, PARTITIONS, &[])?;
    let id = calls::init_producer_id(&mut Connection::open(&address)?)?;
    let (acknowledged, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let counts = std::thread::scope(|scope| -> Result<Vec<i32>> {
        let workers: Vec<_> = (0..PARTITIONS)
            .map(|partition| Producer {
                address: address.clone(),
                partition,
                id,
                pending: VecDeque::new(),
                next_record: 0,
                acknowledged: 0,
                all_acknowledged: &acknowledged,
                stop: &stop,
                random: Random(seed + u64::from(partition.cast_unsigned())),
            })
            .map(|producer| scope.spawn(move || producer.run()))
            .collect();
        let killed = kill_and_restart(&mut broker, &acknowledged, &mut Random(seed));
        stop.store(true, Ordering::Relaxed);
        let counts =
            workers.into_iter().map(|worker| worker.join().map_err(|_| anyhow!("a producer panicked"))?);
        let counts = counts.collect::<Result<Vec<i32>>>();
        killed?;
        counts
    })?;
    for (partition, count) in counts.iter().enumerate() {
        verify(&broker, partition, *count)?;
    }
    broker.stop()?;
    broker.resume()?;
    for (partition, count) in counts.iter().enumerate() {
        verify(&broker, partition, *count).context("after a clean restart")?;
    }
    let segments =
        (0..PARTITIONS).map(|partition| segments(&broker, partition)).collect::<Result<Vec<_>>>()?;
    ensure!(
        segments.iter().all(|count| *count > KILLS),
        "too few rolls among the kills: {segments:?} segments"
    );
    println!(
        "{} records acknowledged over {KILLS} kills in {segments:?} segments",
        counts.iter().sum::<i32>()
    );
    Ok(())
}

#[test]
fn a_clean_stop_leaves_its_marker_and_a_kill_does_not() -> Result<()> {
    let mut broker = Broker::start(Kind::from_environment()?, Options::default())?;
    let marker = broker.data().join(".kafka_cleanshutdown");
    calls::create_topic(&broker.bootstrap(), TOPIC, 1, &[])?;
    ensure!(!marker.exists(), "a running broker has the marker of a clean stop");
    broker.stop()?;
    ensure!(marker.exists(), "no marker after a clean stop");
    broker.resume()?;
    ensure!(!marker.exists(), "the marker outlived the start");
    broker.kill()?;
    ensure!(!marker.exists(), "a killed broker left the marker of a clean stop");
    broker.resume()?;
    broker.stop()
}
