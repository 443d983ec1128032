//! The load of a large partition of `__consumer_offsets` after a restart, from the first answer of the broker to the first
//! offset that it tells.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use interop::broker::Broker;
use interop::calls;
use interop::raw::Connection;
use interop::wait;
use kafka_protocol::messages::OffsetFetchRequest;

use super::{LIMIT, commits, group_id, until_coordinated};
use crate::Effort;
use crate::figures::{Figures, Goal, Row};
use crate::load::{self, Plan};

const TOPIC: &str = "loaded";
const PARTITIONS: i32 = 1_000;
const GROUPS: usize = 20;
/// Told with each offset, so that a record has about 200 bytes.
const METADATA_BYTES: usize = 120;
const RECORD_BYTES: u64 = 200;
/// COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR.
const NOT_LOADED: [i16; 3] = [14, 15, 16];

const fn row(name: &'static str, unit: &'static str, goal: Goal) -> Row {
    Row { name, unit, goal }
}

const SECONDS: Row = row("load of 1 GB of offsets (a quarter with --quick)", "s", Goal::RatioAtMost(0.2));
const COST: Row = row("load of 1 GB of offsets (a quarter with --quick)", "CPU-s", Goal::None);
const MEMORY: Row =
    row("load of 1 GB of offsets (a quarter with --quick): resident afterwards", "MB", Goal::None);

/// Writes the offsets, restarts the broker, and waits for them.
pub(super) fn measure(broker: &mut Broker, effort: Effort, figures: &mut Figures) -> Result<()> {
    fill(&broker.bootstrap(), effort.volume)?;
    for _ in 0..effort.rounds.min(3) {
        broker.stop()?;
        broker.resume()?;
        let start = Instant::now();
        until_loaded(&broker.bootstrap())?;
        let kind = broker.kind();
        figures.add(SECONDS, kind, start.elapsed().as_secs_f64());
        figures.add(COST, kind, broker.process()?.cpu_seconds()?);
        figures.add(MEMORY, kind, broker.process()?.resident_bytes()? as f64 / 1e6);
    }
    Ok(())
}

fn fill(address: &str, volume: u64) -> Result<()> {
    calls::create_topic(address, TOPIC, PARTITIONS, &[])?;
    let metadata = "m".repeat(METADATA_BYTES);
    let frame = |group: usize| {
        let name = name(group);
        until_coordinated(address, &name)?;
        load::encode(commits::VERSION, &commits::request(&name, TOPIC, 0..PARTITIONS, 42, &metadata))
    };
    let frames = (0..GROUPS).map(frame).collect::<Result<Vec<_>>>()?;
    let requests = volume / (RECORD_BYTES * u64::from(PARTITIONS.unsigned_abs()));
    load::replay(address, &[Plan { frames, requests }], commits::committed).map(drop)
}

fn name(group: usize) -> String {
    format!("loaded-{group}")
}

/// Waits until the last group's offsets are told.
fn until_loaded(address: &str) -> Result<()> {
    let request = OffsetFetchRequest::default().with_group_id(group_id(&name(GROUPS - 1))).with_topics(None);
    let mut connection = Connection::open(address)?;
    wait::until("the groups to be loaded", LIMIT, || {
        let response = connection.call(7, &request)?;
        if NOT_LOADED.contains(&response.error_code) {
            return Ok(None);
        }
        let topic = response.topics.first().context("no offset is left")?;
        ensure!(response.error_code == 0, "OffsetFetch: error {}", response.error_code);
        ensure!(topic.partitions.iter().all(|it| it.committed_offset == 42), "another offset is told");
        Ok(Some(()))
    })
}
