//! A broker whose log may have lost its tail must not come back as an in-sync replica.
//!
//! What a broker acknowledged stands in the page cache until it is synced, which Kafka leaves to the system. It survives the
//! broker, not the machine: after a lost power the log may end earlier than the partition's in-sync replicas were
//! promised. If such a broker registers while it still counts as in sync, it can be elected and take records away that others
//! have. So it first waits until it has been taken out wherever that can happen: by the controller, which does so when the
//! broker's registration is gone, or by the leader, when it does not fetch. Then it comes back as a follower that cuts
//! its log to its leader's.
//!
//! Where no other member of the ISR is alive there is nobody to take it out, and nobody to lead instead. There it waits for
//! a session timeout, so that a member whose log is whole can come first, and goes on.

use std::time::Duration;

use metadata::store::{Blocking, Request, Response, Store, StoreError};
use metadata::znode::partition_state::{self, PartitionState};
use metadata::znode::topic::{self, TopicAssignment};
use metadata::znode::{broker, delete_topics};
use wire::types::{BrokerId, Now, TopicName, TopicPartition};

use super::{StartError, register, waited};
use crate::clock::Clock;

/// The first and the longest pause between two looks.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// How often it is told that the start waits.
const TOLD_EVERY: Duration = Duration::from_secs(30);

/// Whether logs may end before what was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostTail {
    /// They were closed in order, or the machine has been up ever since they were written.
    No,
    /// Neither is known.
    Possible,
}

/// How the cluster looks to a broker that is not registered.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// No other broker counts on it.
    Out,
    /// It is a member of ISRs beside brokers of which none is alive.
    AmongDead,
    /// It is a member of ISRs beside brokers that are alive.
    AmongLiving,
}

/// Waits until no partition counts `id` as in sync beside a broker that is alive, and for `grace` while it does so beside
/// brokers that are not. `id` is not registered, so it becomes no member meanwhile. Topics that are being deleted do not count.
pub(crate) fn wait_until_out_of_isrs(
    store: &dyn Store,
    clock: &dyn Clock,
    id: BrokerId,
    grace: Duration,
) -> Result<(), StartError> {
    let mut partitions = partitions(store)?;
    let (mut pause, start) = (PAUSE.0, clock.now());
    let mut told: Option<Now> = None;
    loop {
        let standing = look(store, id, &mut partitions)?;
        match standing {
            Standing::Out => return Ok(()),
            Standing::AmongDead if waited(clock, start) >= grace => {
                tracing::warn!(
                    partitions = partitions.len(),
                    "no other in-sync replica is alive: the broker comes back with what its logs hold"
                );
                return Ok(());
            }
            Standing::AmongDead | Standing::AmongLiving => {}
        }
        if told.is_none_or(|at| waited(clock, at) >= TOLD_EVERY) {
            told = Some(clock.now());
            tracing::warn!(
                partitions = partitions.len(),
                "the logs were not closed in order before the machine went down and may lack what was not synced; \
                 waiting until the broker does not count as in sync any more"
            );
        }
        clock.sleep(pause);
        pause = (pause * 2).min(PAUSE.1);
    }
}

/// Keeps those of `partitions` that count `id` as in sync beside others, and tells how that is.
fn look(
    store: &dyn Store,
    id: BrokerId,
    partitions: &mut Vec<TopicPartition>,
) -> Result<Standing, StartError> {
    let calls = Blocking::new(store);
    let living: Vec<BrokerId> = register::ids(&calls.children(broker::ROOT)?).collect();
    let deleted = calls.children(delete_topics::ROOT)?;
    let (mut standing, mut kept) = (Standing::Out, Vec::new());
    let answers =
        calls.pipeline(partitions.iter().map(|it| Request::get(partition_state::path(it))).collect());
    for (partition, answer) in std::mem::take(partitions).into_iter().zip(answers) {
        let Some(state) = state(answer)? else { continue };
        let is_alone = state.isr.iter().all(|member| *member == id);
        if !state.isr.contains(&id)
            || is_alone
            || deleted.iter().any(|name| *name == partition.topic.as_str())
        {
            continue;
        }
        if state.isr.iter().any(|member| *member != id && living.contains(member)) {
            standing = Standing::AmongLiving;
        } else if standing == Standing::Out {
            standing = Standing::AmongDead;
        }
        kept.push(partition);
    }
    *partitions = kept;
    Ok(standing)
}

fn state(answer: Result<Response, StoreError>) -> Result<Option<PartitionState>, StartError> {
    match answer {
        Ok(Response::Data { data, .. }) => Ok(Some(PartitionState::decode(data.as_deref())?)),
        Ok(_) => Err(StoreError::Unexpected("an answer of another kind").into()),
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// All partitions of the cluster.
fn partitions(store: &dyn Store) -> Result<Vec<TopicPartition>, StartError> {
    let calls = Blocking::new(store);
    let names: Vec<TopicName> =
        calls.children(topic::ROOT)?.iter().map(|name| TopicName::from(name.as_str())).collect();
    let answers = calls.pipeline(names.iter().map(|name| Request::get(topic::path(name))).collect());
    let mut partitions = Vec::new();
    for (topic, answer) in names.into_iter().zip(answers) {
        let data = match answer {
            Ok(Response::Data { data, .. }) => data,
            Err(error) if !error.is_no_node() => return Err(error.into()),
            _ => continue,
        };
        let assignment = TopicAssignment::decode(data.as_deref())?;
        let of_topic = |partition: &i32| TopicPartition { topic: topic.clone(), partition: *partition };
        partitions.extend(assignment.partitions.keys().map(of_topic));
    }
    Ok(partitions)
}
