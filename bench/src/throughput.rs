//! Throughput and processor time of produce and consume.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use interop::batch::{Draft, now_ms};
use interop::calls;
use interop::java::{self, Jars};

use crate::Effort;
use crate::contender::Contender;
use crate::figures::{Figures, Goal, Row};
use crate::load::{self, Moved, PRODUCE_VERSION, Plan};

/// Connections of the generator; each writes to or reads from a partition of its own.
const CONNECTIONS: i32 = 2;
/// Bytes that a fetch asks of a partition.
const FETCH_BYTES: i32 = 1 << 20;
const FETCH_VERSION: i16 = 11;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Produce { record: usize, batch: usize },
    OneRecord { record: usize },
    Consume,
}

/// A scenario with its two rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    shape: Shape,
    speed: Row,
    cost: Row,
}

const fn bulk(name: &'static str, shape: Shape, faster: f64, cheaper: f64) -> Scenario {
    Scenario {
        shape,
        speed: Row { name, unit: "MB/s", goal: Goal::RatioAtLeast(faster) },
        cost: Row { name, unit: "CPU-s/GB", goal: Goal::RatioAtMost(cheaper) },
    }
}

/// All scenarios, in the order in which they run.
pub(crate) const SCENARIOS: [Scenario; 5] = [
    bulk(
        "produce 1 KiB records in 64 KiB batches",
        Shape::Produce { record: 1024, batch: 64 << 10 },
        1.7,
        0.4,
    ),
    bulk(
        "produce 1 KiB records in 16 KiB batches",
        Shape::Produce { record: 1024, batch: 16 << 10 },
        2.0,
        0.3,
    ),
    bulk(
        "produce 100 B records in 16 KiB batches",
        Shape::Produce { record: 100, batch: 16 << 10 },
        1.8,
        0.35,
    ),
    Scenario {
        shape: Shape::OneRecord { record: 100 },
        speed: Row { name: "produce one 100 B record a request", unit: "requests/s", goal: Goal::None },
        cost: Row {
            name: "produce one 100 B record a request",
            unit: "CPU-us/request",
            goal: Goal::RatioAtMost(0.35),
        },
    },
    bulk("consume from the page cache, 1 MiB a partition", Shape::Consume, 1.0, 0.6),
];

/// Works a broker warm with large and small batches.
pub(crate) fn warm_up(contender: &mut Contender, effort: Effort) -> Result<()> {
    eprintln!("warming {} up", contender.kind());
    for (record, batch, share) in [(1024, 64 << 10, 2), (100, 16 << 10, 2)] {
        let topic = format!("warm-{batch}");
        fresh_topic(contender, &topic)?;
        produce(contender, &topic, record, batch, effort.warm_up / share)?;
        consume(contender, &topic, record, batch, effort.warm_up / share)?;
        calls::delete_topic(&contender.address(), &topic)?;
    }
    fresh_topic(contender, "warm-single")?;
    produce_singles(contender, "warm-single", 100, 30_000)?;
    calls::delete_topic(&contender.address(), "warm-single")
}

/// One run of one scenario.
pub(crate) fn measure(
    scenario: &Scenario,
    contender: &mut Contender,
    effort: Effort,
    figures: &mut Figures,
) -> Result<()> {
    // A name of its own: the files of a deleted topic may still be on their way out.
    let topic = &format!("bench-{}", now_ms());
    fresh_topic(contender, topic)?;
    if scenario.shape == Shape::Consume {
        produce(contender, topic, 1024, 64 << 10, effort.volume)?;
    }
    let before = contender.cpu_seconds()?;
    let (moved, bytes) = match scenario.shape {
        Shape::Produce { record, batch } => {
            let moved = produce(contender, topic, record, batch, effort.volume)?;
            (moved, moved.requests as f64 * batch_of(record, batch).len() as f64)
        }
        Shape::OneRecord { record } => {
            (produce_singles(contender, topic, record, effort.volume / (16 << 10))?, 0.0)
        }
        Shape::Consume => {
            let moved = consume(contender, topic, 1024, 64 << 10, effort.volume * 2)?;
            (moved, moved.received as f64)
        }
    };
    let cpu = contender.cpu_seconds()? - before;
    let kind = contender.kind();
    if bytes == 0.0 {
        figures.add(scenario.speed, kind, moved.requests as f64 / moved.seconds);
        figures.add(scenario.cost, kind, cpu * 1e6 / moved.requests as f64);
    } else {
        figures.add(scenario.speed, kind, bytes / 1e6 / moved.seconds);
        figures.add(scenario.cost, kind, cpu / (bytes / 1e9));
    }
    calls::delete_topic(&contender.address(), topic)
}

/// The load tool of the Java client, as a cross-check: it uses more processor time than the broker.
pub(crate) fn java_tool(contender: &mut Contender, effort: Effort, figures: &mut Figures) -> Result<()> {
    const ROW: Row = Row { name: "Java's own load tool, 1 KiB records", unit: "MB/s", goal: Goal::None };
    fresh_topic(contender, "java-tool")?;
    let records = (effort.volume / 1024).to_string();
    let server = format!("bootstrap.servers={}", contender.address());
    let arguments = [
        "--topic",
        "java-tool",
        "--num-records",
        &records,
        "--record-size",
        "1024",
        "--throughput",
        "-1",
        "--producer-props",
        &server,
        "acks=1",
        "batch.size=65536",
        "linger.ms=5",
    ];
    let finished = java::tool(Jars::Kafka39, "org.apache.kafka.tools.ProducerPerformance", &arguments, "")?;
    let last = finished.stdout.lines().last().context("the load tool printed nothing")?;
    let (_, rate) = last.split_once('(').with_context(|| format!("no rate in {last:?}"))?;
    let mib = rate.split(' ').next().unwrap_or_default().parse::<f64>()?;
    figures.add(ROW, contender.kind(), mib * 1.048_576);
    calls::delete_topic(&contender.address(), "java-tool")
}

/// A topic whose files go at once when it is deleted.
fn fresh_topic(contender: &Contender, topic: &str) -> Result<()> {
    calls::create_topic(&contender.address(), topic, CONNECTIONS, &[("file.delete.delay.ms", "0")])
}

/// As many records of `record` bytes as a batch of `batch` bytes takes.
pub(crate) fn batch_of(record: usize, batch: usize) -> Bytes {
    let value: Vec<u8> = (0..record).map(|i| u8::try_from(i * 7 % 251).unwrap_or(0)).collect();
    Draft::of_values(now_ms(), &vec![value.as_slice(); records_in(record, batch)]).build()
}

fn records_in(record: usize, batch: usize) -> usize {
    ((batch - 61) / (record + 10)).max(1)
}

fn produce(contender: &Contender, topic: &str, record: usize, batch: usize, volume: u64) -> Result<Moved> {
    let batch = batch_of(record, batch);
    let connections = u64::try_from(CONNECTIONS)?;
    let requests = volume / u64::try_from(batch.len())? / connections;
    replay_batch(contender, topic, &batch, requests)
}

fn produce_singles(contender: &Contender, topic: &str, record: usize, requests: u64) -> Result<Moved> {
    replay_batch(contender, topic, &batch_of(record, record), requests / u64::try_from(CONNECTIONS)?)
}

fn replay_batch(contender: &Contender, topic: &str, batch: &Bytes, requests: u64) -> Result<Moved> {
    let plan = |partition| {
        let request = calls::produce_request(topic, partition, batch.clone(), 1);
        Ok(Plan { frames: vec![load::encode(PRODUCE_VERSION, &request)?], requests })
    };
    let plans = (0..CONNECTIONS).map(plan).collect::<Result<Vec<_>>>()?;
    load::replay(&contender.address(), &plans, load::produced)
}

/// Reads what `produce` wrote with the same sizes, from the start and round again until `volume` bytes came.
fn consume(contender: &Contender, topic: &str, record: usize, batch: usize, volume: u64) -> Result<Moved> {
    let size = u64::try_from(batch_of(record, batch).len())?;
    let whole = u64::try_from(FETCH_BYTES)? / size;
    let step = i64::try_from(whole * u64::try_from(records_in(record, batch))?)?;
    let address = contender.address();
    let plan = |partition: i32| {
        let end = calls::end_offset(&address, topic, usize::try_from(partition)?)?;
        let full = end / step;
        ensure!(full > 0, "too little in {topic} to read {FETCH_BYTES} bytes at once");
        let frames = (0..full).map(|index| {
            let request = calls::fetch_request(topic, partition, index * step, FETCH_BYTES);
            load::encode(FETCH_VERSION, &request)
        });
        let requests = volume / u64::try_from(FETCH_BYTES)? / u64::try_from(CONNECTIONS)?;
        Ok(Plan { frames: frames.collect::<Result<Vec<_>>>()?, requests })
    };
    let plans = (0..CONNECTIONS).map(plan).collect::<Result<Vec<_>>>()?;
    let moved = load::replay(&address, &plans, fetched)?;
    let least = moved.requests * whole * size;
    ensure!(moved.received >= least, "only {} bytes came instead of {least}", moved.received);
    Ok(moved)
}

/// Wants the error code at the top of a fetch response to be 0; its size tells the rest.
fn fetched(body: &[u8]) -> Result<()> {
    let code = body.get(8..10).context("a short fetch response")?;
    ensure!(code == [0, 0], "a fetch failed: error bytes {code:?}");
    Ok(())
}
