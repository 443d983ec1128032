//! From the start of the process to the first acknowledgement, and resident memory.

use std::time::{Duration, Instant};

use anyhow::Result;
use interop::batch::{Draft, now_ms};
use interop::broker::{Broker, Kind};
use interop::calls;
use interop::raw::Connection;
use interop::wait;

use crate::Effort;
use crate::contender::Contender;
use crate::figures::{Figures, Goal, Row};

const IDLE: Row = Row { name: "resident memory, idle", unit: "MB", goal: Goal::AtMost(18.0) };
const LOADED: Row = Row { name: "resident memory, after the load", unit: "MB", goal: Goal::AtMost(30.0) };
const FIRST: Row =
    Row { name: "start of the process to the first ack", unit: "ms", goal: Goal::AtMost(40.0) };
const LIMIT: Duration = Duration::from_secs(120);

/// Memory of a broker that has just started.
pub(crate) fn resident_idle(contender: &mut Contender, figures: &mut Figures) -> Result<()> {
    figures.add(IDLE, contender.kind(), contender.resident_mb()?);
    Ok(())
}

/// Memory after all the load.
pub(crate) fn resident_after_load(contender: &mut Contender, figures: &mut Figures) -> Result<()> {
    figures.add(LOADED, contender.kind(), contender.resident_mb()?);
    Ok(())
}

/// Starts on a folder that holds a topic.
pub(crate) fn first_ack(contender: &mut Contender, effort: Effort, figures: &mut Figures) -> Result<()> {
    calls::create_topic(&contender.address(), "startup", 1, &[])?;
    for _ in 0..effort.rounds.max(3) {
        contender.broker.stop()?;
        let start = Instant::now();
        let seconds = start_until_ack(&mut contender.broker, "startup", start)?;
        figures.add(FIRST, contender.kind(), seconds * 1e3);
    }
    Ok(())
}

/// Starts the process and produces until a batch is acknowledged; returns the seconds since `start`.
pub(crate) fn start_until_ack(broker: &mut Broker, topic: &str, start: Instant) -> Result<f64> {
    let mut process = broker.spawn()?;
    let address = broker.bootstrap();
    let batch = Draft::of_values(now_ms(), &[b"first"]).build();
    wait::until("the first ack", LIMIT, || {
        anyhow::ensure!(process.is_running()?, "the broker ended:\n{}", process.log_tail(30));
        let Ok(mut connection) = Connection::open(&address) else { return Ok(None) };
        let Ok(answer) = calls::produce(&mut connection, topic, 0, batch.clone()) else { return Ok(None) };
        Ok((answer.error_code == 0).then_some(()))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    broker.adopt(process);
    if broker.kind() == Kind::Kafka {
        // Its start goes on for a while after it serves, and a stop in between is refused.
        calls::create_topic(&address, &format!("settled-{}", now_ms()), 1, &[])?;
    }
    Ok(seconds)
}
