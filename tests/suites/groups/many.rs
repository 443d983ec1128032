//! Very many groups on three brokers that are restarted one after the other: every group goes on in its generation, with
//! all that it has committed, and no broker needs much memory.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use interop::broker::Kind;
use interop::cluster::{Cluster, Plan};
use interop::raw::Connection;
use interop::wait;
use kafka_protocol::messages::OffsetFetchRequest;
use kafka_protocol::messages::offset_fetch_response::OffsetFetchResponseTopic;

use super::seen::{NONE, coordinator_of, group_id};
use super::tenth::Tenth;
use super::{LIMIT, PARTITIONS, TOPIC};

/// Each has ten members.
const GROUPS: usize = 200;
/// No broker may need more, in bytes.
const MOST_MEMORY: u64 = 300_000_000;
/// Between two rounds of heartbeats of a group.
const BEAT: Duration = Duration::from_millis(500);
const OFFSETS: &str = "__consumer_offsets";
/// COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE and NOT_COORDINATOR.
const MOVING: [i16; 3] = [14, 15, 16];

/// What a group has told so far.
struct Told {
    /// The latest offset whose commit was confirmed, -1 for none.
    confirmed: AtomicI64,
    generation: AtomicI64,
}

/// Drives one group until it is told to stop. What a broker that goes away leaves unanswered is asked again.
fn drive(name: &str, addresses: &[String], told: &Told, stop: &AtomicBool) -> Result<()> {
    let mut group = Tenth::new(name);
    while !stop.load(Ordering::Relaxed) {
        let found = addresses.iter().find_map(|address| coordinator_of(name, address).ok());
        if let Some((_, address)) = found
            && let ControlFlow::Break(error) = until_lost(&mut group, &address, told, stop)
        {
            return Err(error);
        }
        std::thread::sleep(BEAT);
    }
    Ok(())
}

/// Heartbeats and commits as long as the coordinator answers; breaks off at what must not happen.
fn until_lost(
    group: &mut Tenth,
    address: &str,
    told: &Told,
    stop: &AtomicBool,
) -> ControlFlow<anyhow::Error> {
    if group.connect(address).is_err() {
        return ControlFlow::Continue(());
    }
    while !stop.load(Ordering::Relaxed) {
        let offset = told.confirmed.load(Ordering::Relaxed) + 1;
        match group.beat_and_commit(offset) {
            Ok(true) => {
                told.confirmed.store(offset, Ordering::Relaxed);
                let before = told.generation.swap(i64::from(group.generation()), Ordering::Relaxed);
                if before >= 0 && before != i64::from(group.generation()) {
                    return ControlFlow::Break(anyhow!("a rebalance after generation {before}"));
                }
            }
            // Refused, or no answer: there is another coordinator, or will be.
            Ok(false) | Err(_) => return ControlFlow::Continue(()),
        }
        std::thread::sleep(BEAT);
    }
    ControlFlow::Continue(())
}

fn cluster() -> Result<Cluster> {
    let mut plan = Plan::of(Kind::from_environment()?, 3)
        .with(&[("group.initial.rebalance.delay.ms", "3000"), ("offsets.topic.num.partitions", "12")]);
    plan.session_timeout_ms = 6_000;
    let cluster = Cluster::start(&plan)?;
    cluster.create_topic(TOPIC, i32::try_from(PARTITIONS)?, 3)?;
    Ok(cluster)
}

/// Restarts all brokers in turn, each when all replicas are in sync, and looks at their memory.
fn roll(cluster: &mut Cluster, until_all_go_on: &dyn Fn() -> Result<()>) -> Result<()> {
    for id in cluster.ids() {
        memory(cluster, id)?;
        cluster.broker(id)?.stop()?;
        cluster.start_brokers(&[id])?;
        cluster.until_in_sync(TOPIC)?;
        cluster.until_in_sync(OFFSETS)?;
        until_all_go_on()?;
    }
    cluster.ids().into_iter().try_for_each(|id| memory(cluster, id))
}

fn memory(cluster: &mut Cluster, id: i32) -> Result<()> {
    let bytes = cluster.broker(id)?.process()?.resident_bytes()?;
    let is_ours = Kind::from_environment()? == Kind::Blumfeld;
    ensure!(!is_ours || bytes < MOST_MEMORY, "broker {id} needs {bytes} bytes");
    Ok(())
}

/// Waits until every group has had another commit confirmed that was begun after the call.
fn until_all_go_on(told: &[(String, Told)]) -> Result<()> {
    let confirmed = || told.iter().map(|(_, it)| it.confirmed.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let before = confirmed();
    wait::until("every group to go on", LIMIT, || {
        let all = confirmed().iter().zip(&before).all(|(now, before)| *now > before + 1);
        Ok(all.then_some(()))
    })
}

/// The coordinator knows at least what it has confirmed, and at most one commit more whose answer was lost.
fn must_be_kept(asked: &str, name: &str, told: &Told) -> Result<()> {
    let topics = wait::until("the coordinator's answer", LIMIT, || committed(asked, name))?;
    let topic = topics.first().with_context(|| format!("{name} has nothing committed"))?;
    let offset = topic.partitions.first().context("no partition")?.committed_offset;
    let confirmed = told.confirmed.load(Ordering::Relaxed);
    ensure!((confirmed..=confirmed + 1).contains(&offset), "{name}: {offset} is committed, not {confirmed}");
    Ok(())
}

/// All that a group has committed; none while its coordinator moves.
fn committed(asked: &str, name: &str) -> Result<Option<Vec<OffsetFetchResponseTopic>>> {
    let Ok((_, address)) = coordinator_of(name, asked) else { return Ok(None) };
    let request = OffsetFetchRequest::default().with_group_id(group_id(name)).with_topics(None);
    let response = Connection::open(&address)?.call(7, &request)?;
    ensure!(response.error_code == NONE || MOVING.contains(&response.error_code), "{name}: {response:?}");
    Ok((response.error_code == NONE).then_some(response.topics))
}

#[test]
fn very_many_groups_go_on_while_all_brokers_are_restarted() -> Result<()> {
    let mut cluster = cluster()?;
    let addresses = cluster.addresses();
    let told: Vec<_> = (0..GROUPS)
        .map(|number| {
            let nothing = Told { confirmed: AtomicI64::new(-1), generation: AtomicI64::new(-1) };
            (format!("group-{number}"), nothing)
        })
        .collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let drives: Vec<_> =
            told.iter().map(|(name, it)| scope.spawn(|| drive(name, &addresses, it, &stop))).collect();
        let rolled = until_all_go_on(&told).and_then(|()| roll(&mut cluster, &|| until_all_go_on(&told)));
        stop.store(true, Ordering::Relaxed);
        for drive in drives {
            drive.join().map_err(|_| anyhow!("a group has panicked"))??;
        }
        rolled
    })?;
    let asked = addresses.first().context("there are three")?;
    told.iter().try_for_each(|(name, it)| must_be_kept(asked, name, it))
}
