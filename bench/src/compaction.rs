//! Compaction of a topic that was never compacted: bytes of dirty log in a second, from the moment when the topic may be
//! compacted until its checkpoint says that it is. Small records over many keys, and large ones over few.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use interop::batch::{Draft, now_ms};
use interop::broker::{Broker, Kind, Options};
use interop::calls;
use interop::raw::Connection;
use interop::wait;

use crate::Effort;
use crate::contender;
use crate::figures::{Figures, Goal, Row};

const LIMIT: Duration = Duration::from_secs(900);
/// So that only the last part stays out.
const SEGMENT_BYTES: &str = "67108864";
/// Keeps the cleaner away from what is younger, in milliseconds.
const FOR_EVER: &str = "9223372036854775807";

/// One kind of records.
struct Scenario {
    value_bytes: usize,
    /// Records in a batch.
    batch: usize,
    keys: u64,
    speed: Row,
    cost: Row,
}

const fn scenario(name: &'static str, value_bytes: usize, batch: usize, keys: u64) -> Scenario {
    Scenario {
        value_bytes,
        batch,
        keys,
        speed: Row { name, unit: "MB/s", goal: Goal::RatioAtLeast(2.0) },
        cost: Row { name, unit: "CPU-s/GB", goal: Goal::RatioAtMost(0.5) },
    }
}

const SCENARIOS: [Scenario; 2] = [
    scenario("compact 1 KiB records of 100,000 keys", 1024, 16, 100_000),
    scenario("compact 100 B records of 2,000,000 keys", 100, 120, 2_000_000),
];

/// All figures of one broker.
pub(crate) fn measure(kind: Kind, effort: Effort, figures: &mut Figures) -> Result<()> {
    let settings = [("log.cleaner.backoff.ms", "100")];
    let options = Options { java_options: contender::options().java_options, ..Options::with(&settings) };
    let mut broker = Broker::start(kind, options)?;
    for _ in 0..effort.rounds {
        for scenario in &SCENARIOS {
            round(&mut broker, scenario, effort, figures)?;
        }
    }
    broker.stop()
}

fn round(broker: &mut Broker, scenario: &Scenario, effort: Effort, figures: &mut Figures) -> Result<()> {
    let topic = format!("compacted-{}", now_ms());
    let address = broker.bootstrap();
    let configs = [
        ("cleanup.policy", "compact"),
        ("segment.bytes", SEGMENT_BYTES),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("min.compaction.lag.ms", FOR_EVER),
    ];
    calls::create_topic(&address, &topic, 1, &configs)?;
    let bytes = fill(&address, &topic, scenario, effort.volume)?;
    let end = calls::end_offset(&address, &topic, 0)?;
    let (cpu, start) = (broker.process()?.cpu_seconds()?, Instant::now());
    calls::set_topic_config(&address, &topic, "min.compaction.lag.ms", "0")?;
    // The last segment stays as it is.
    let segment: usize = SEGMENT_BYTES.parse()?;
    let least = end - i64::try_from(segment / scenario.value_bytes)?;
    wait_until_clean(broker, &topic, least)?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = broker.process()?.cpu_seconds()? - cpu;
    let kind = broker.kind();
    figures.add(scenario.speed, kind, bytes / 1e6 / seconds);
    figures.add(scenario.cost, kind, cpu / (bytes / 1e9));
    calls::delete_topic(&address, &topic)
}

/// Writes records whose keys go round in an order that looks random; returns the bytes.
fn fill(address: &str, topic: &str, scenario: &Scenario, volume: u64) -> Result<f64> {
    let mut connection = Connection::open(address)?;
    let value = Bytes::from(vec![b'v'; scenario.value_bytes]);
    let (mut written, mut number) = (0u64, 0u64);
    while written < volume {
        let mut draft = Draft::of_values(now_ms(), &[]);
        for _ in 0..scenario.batch {
            number += 1;
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % scenario.keys;
            draft.records.push((Some(Bytes::from(format!("{key:016}"))), Some(value.clone())));
        }
        let batch = draft.build();
        written += batch.len() as u64;
        let answer = calls::produce(&mut connection, topic, 0, batch)?;
        ensure!(answer.error_code == 0, "{answer:?}");
    }
    Ok(written as f64)
}

/// Waits until the checkpoint names an offset at or above `least`.
fn wait_until_clean(broker: &Broker, topic: &str, least: i64) -> Result<()> {
    let path = broker.data().join("cleaner-offset-checkpoint");
    wait::until("the compaction", LIMIT, || {
        let text = std::fs::read_to_string(&path).context("no checkpoint of the cleaner")?;
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{topic} 0 ")));
        Ok(line.and_then(|offset| offset.parse::<i64>().ok()).filter(|offset| *offset >= least).map(|_| ()))
    })
}
