//! Very many partitions on three brokers: creation, Metadata, and the move of leaders when a broker or the controller dies.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use interop::broker::Kind;
use interop::calls;
use interop::cluster::{Cluster, topic_view};
use interop::raw::Connection;
use interop::wait;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::{CreateTopicsRequest, MetadataRequest};

use super::end_of_session;
use crate::Effort;
use crate::figures::{Figures, Goal, Row};
use crate::load::{self, Plan};

const TOPIC: &str = "many";
const REPLICAS: i16 = 2;
const LIMIT: Duration = Duration::from_secs(300);
/// Partitions whose creation is measured, in a full run.
const CREATED: i32 = 3_000;
/// Partitions whose leaders move, in a full run.
const MOVED: i32 = 10_000;

const CREATION: Row = Row {
    name: "3,000 partitions (a tenth with --quick), two replicas: known to all",
    unit: "s",
    goal: Goal::RatioAtMost(0.2),
};
const CONTROLLER_KILLED: Row = Row {
    name: "10,000 partitions (a tenth with --quick): controller killed, from the new one to all leaders",
    unit: "s",
    goal: Goal::AtMost(1.0),
};
const BROKER_KILLED: Row = Row {
    name: "10,000 partitions (a tenth with --quick): broker killed, from its session's end to all leaders",
    unit: "s",
    goal: Goal::AtMost(1.0),
};

const METADATA: Row = Row {
    name: "10,000 partitions (a tenth with --quick): Metadata of all",
    unit: "CPU-ms/request",
    goal: Goal::RatioAtMost(0.2),
};
/// Metadata requests of a run, over two connections.
const ASKED: u64 = 400;
const METADATA_VERSION: i16 = 12;

/// From the request to every broker's knowing every leader.
pub(super) fn created(
    cluster: &mut Cluster,
    kind: Kind,
    effort: Effort,
    figures: &mut Figures,
) -> Result<()> {
    let start = Instant::now();
    create(cluster, CREATED / effort.one_of)?;
    figures.add(CREATION, kind, start.elapsed().as_secs_f64());
    Ok(())
}

/// From the end of a dead broker's session, or from the new controller's election, until every other broker knows new
/// leaders.
pub(super) fn moved(cluster: &mut Cluster, kind: Kind, effort: Effort, figures: &mut Figures) -> Result<()> {
    create(cluster, MOVED / effort.one_of)?;
    cluster.until_in_sync(TOPIC)?;
    metadata(cluster, kind, figures)?;
    let controller = cluster.until_controller()?;
    let dead = cluster.ids().into_iter().find(|id| *id != controller).context("no other broker")?;
    cluster.broker(dead)?.kill()?;
    let end = end_of_session(cluster, dead)?;
    until_led(cluster, |leader| leader >= 0 && leader != dead)?;
    figures.add(BROKER_KILLED, kind, end.elapsed().as_secs_f64());
    cluster.start_brokers(&[dead])?;
    cluster.until_in_sync(TOPIC)?;

    cluster.broker(controller)?.kill()?;
    let elected = next_controller(cluster, controller)?;
    until_led(cluster, |leader| leader >= 0 && leader != controller)?;
    figures.add(CONTROLLER_KILLED, kind, elected.elapsed().as_secs_f64());
    Ok(())
}

/// What it costs a broker to tell clients all that it knows. The first half of the requests warms it up.
fn metadata(cluster: &mut Cluster, kind: Kind, figures: &mut Figures) -> Result<()> {
    let asked = cluster.running().into_iter().next().context("no broker runs")?;
    let address = cluster.broker(asked)?.bootstrap();
    let frame = load::encode(METADATA_VERSION, &MetadataRequest::default().with_topics(None))?;
    let plan = Plan { frames: vec![frame], requests: ASKED / 4 };
    let plans = [plan.clone(), plan];
    load::replay(&address, &plans, told)?;
    let before = cluster.broker(asked)?.process()?.cpu_seconds()?;
    let moved = load::replay(&address, &plans, told)?;
    let cpu = cluster.broker(asked)?.process()?.cpu_seconds()? - before;
    figures.add(METADATA, kind, cpu * 1e3 / moved.requests as f64);
    Ok(())
}

/// Wants an answer of a size that only all the partitions can have.
fn told(body: &[u8]) -> Result<()> {
    const LEAST: usize = 20_000;
    ensure!(body.len() > LEAST, "Metadata in {} bytes", body.len());
    Ok(())
}

fn create(cluster: &mut Cluster, partitions: i32) -> Result<()> {
    let controller = cluster.until_controller()?;
    let topic = CreatableTopic::default()
        .with_name(calls::topic_name(TOPIC))
        .with_num_partitions(partitions)
        .with_replication_factor(REPLICAS);
    let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(300_000);
    let response = Connection::open(&cluster.broker(controller)?.bootstrap())?.call(4, &request)?;
    let answer = response.topics.first().context("no topic in the answer")?;
    ensure!(answer.error_code == 0, "CreateTopics: {answer:?}");
    let all = usize::try_from(partitions)?;
    for id in cluster.running() {
        let address = cluster.broker(id)?.bootstrap();
        wait::until("leaders of all partitions", LIMIT, || {
            let view = topic_view(&address, TOPIC)?;
            Ok((view.len() == all && view.values().all(|it| it.leader >= 0)).then_some(()))
        })?;
    }
    Ok(())
}

/// Waits until every broker that runs tells of every partition that its leader is one of these.
fn until_led(cluster: &mut Cluster, is_right: impl Fn(i32) -> bool) -> Result<()> {
    for id in cluster.running() {
        let address = cluster.broker(id)?.bootstrap();
        wait::until("new leaders of all partitions", LIMIT, || {
            let view = topic_view(&address, TOPIC)?;
            Ok(view.values().all(|it| is_right(it.leader)).then_some(()))
        })?;
    }
    Ok(())
}

/// Waits for another controller than `before`, looking very often; gives the moment of its election.
fn next_controller(cluster: &Cluster, before: i32) -> Result<Instant> {
    let mut tree = cluster.tree()?;
    loop {
        if tree.controller()?.is_some_and(|controller| controller != before) {
            return Ok(Instant::now());
        }
    }
}
