//! Brokers come, go, come back faster than that was seen, and change their addresses.
//!
//! Who is there is taken from one fresh read, never from the order of events (KAFKA-3085). A broker that was started
//! anew in between has a later broker epoch, and is treated as gone and come (KAFKA-7235).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::types::{BrokerId, TopicPartition};

use super::batch::RequestBatch;
use super::command::Command;
use super::context::Replica;
use super::partition_state::PartitionState;
use super::partitions::PartitionTransition;
use super::program::{Flow, Step, Turn};
use super::replica_state::ReplicaState;
use super::replicas::ReplicaTransition;
use super::store::{StoreOp, StoreReply};
use super::values::Broker;

/// The way to a broker.
pub(super) fn open_channel(broker: BrokerId, known: &Broker) -> Command {
    Command::OpenChannel { broker, registration: Arc::clone(&known.registration) }
}

/// Tells every broker who is registered.
pub(super) fn announce(turn: &mut Turn<'_>) -> Flow {
    let mut batch = RequestBatch::default();
    batch.update_metadata_to_all(turn.context, []);
    turn.send(batch);
    Flow::Done
}

/// Reads who is registered and finds who came, went, or did both.
pub(super) fn compare(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadBrokers, Step::CompareBrokers),
        Some(StoreReply::Brokers(registered)) => compare_with(turn, registered),
        Some(_) => Flow::confused(),
    }
}

fn compare_with(turn: &mut Turn<'_>, registered: BTreeMap<BrokerId, Broker>) -> Flow {
    let known = turn.context.registered();
    let dead: BTreeSet<_> = known.keys().filter(|id| !registered.contains_key(id)).copied().collect();
    let (mut new, mut bounced) = (BTreeMap::new(), BTreeMap::new());
    for (id, broker) in registered {
        match known.get(&id) {
            None => {
                new.insert(id, broker);
            }
            Some(before) if broker.epoch > before.epoch => {
                bounced.insert(id, broker);
            }
            Some(_) => {}
        }
    }
    // The requests that wait for an earlier run of a broker are not for the present one.
    turn.out.extend(new.iter().map(|(id, broker)| open_channel(*id, broker)));
    turn.out.extend(bounced.keys().chain(&dead).map(|id| Command::CloseChannel { broker: *id }));
    turn.out.extend(bounced.iter().map(|(id, broker)| open_channel(*id, broker)));

    let (came, came_back) = (new.keys().copied().collect(), bounced.keys().copied().collect::<BTreeSet<_>>());
    let mut steps = Vec::new();
    if !new.is_empty() {
        steps.extend([Step::AddBrokers(new), Step::BrokersStarted(came)]);
    }
    if !bounced.is_empty() {
        steps.extend([Step::RemoveBrokers(came_back.clone()), Step::BrokersFailed(came_back.clone())]);
        steps.extend([Step::AddBrokers(bounced), Step::BrokersStarted(came_back)]);
    }
    if !dead.is_empty() {
        steps.extend([Step::RemoveBrokers(dead.clone()), Step::BrokersFailed(dead)]);
    }
    Flow::Then(steps)
}

/// Takes brokers into the context.
pub(super) fn add(turn: &mut Turn<'_>, added: BTreeMap<BrokerId, Broker>) -> Flow {
    for (id, broker) in added {
        turn.context.add_broker(id, broker);
    }
    Flow::Done
}

/// Takes brokers out of the context.
pub(super) fn remove(turn: &mut Turn<'_>, removed: &BTreeSet<BrokerId>) -> Flow {
    for id in removed {
        turn.context.remove_broker(*id);
    }
    Flow::Done
}

/// Brokers have come. The others learn of them; they learn of everything (KAFKA-7537), are told the state of their
/// replicas, and partitions that waited for them are led again.
pub(super) fn started(turn: &mut Turn<'_>, started: &BTreeSet<BrokerId>) -> Flow {
    for id in started {
        turn.context.offline_dirs.remove(id);
    }
    let others: Vec<_> =
        turn.context.registered().keys().filter(|id| !started.contains(id)).copied().collect();
    let mut news = RequestBatch::default();
    news.update_metadata(turn.context, others, []);
    turn.send(news);

    let led = turn.context.select(|partition, known| {
        known.leadership.is_some() && !turn.context.is_queued_for_deletion(&partition.topic)
    });
    let mut picture = RequestBatch::default();
    picture.update_metadata(turn.context, started.iter().copied(), &led);
    turn.send(picture);

    // A replica that was deleted with its topic is not told to come back.
    let is_there =
        |replica: &Replica| turn.context.replica_state(replica) != ReplicaState::DeletionSuccessful;
    let replicas = turn.context.replicas_on(started).into_iter().filter(is_there).collect();
    Flow::Then(vec![
        Step::Replicas(ReplicaTransition::new(replicas, ReplicaState::Online)),
        Step::TriggerOnline(None),
        Step::AllowDeletionsOn(started.clone()),
    ])
}

/// Brokers are gone.
pub(super) fn failed(turn: &mut Turn<'_>, failed: &BTreeSet<BrokerId>) -> Flow {
    for id in failed {
        turn.context.offline_dirs.remove(id);
    }
    Flow::Then(vec![Step::ReplicasOffline(turn.context.replicas_on(failed))])
}

/// Replicas are offline, with their broker or with a log directory: other leaders are elected, and then the replicas
/// leave the in-sync replicas.
pub(super) fn replicas_offline(turn: &mut Turn<'_>, replicas: Vec<Replica>) -> Flow {
    let is_kept = |partition: &TopicPartition| !turn.context.is_queued_for_deletion(&partition.topic);
    let (replicas, undeletable): (Vec<_>, Vec<_>) =
        replicas.into_iter().partition(|replica| is_kept(&replica.partition));
    let has_offline_replicas = !replicas.is_empty();
    let leaderless = turn.context.select(|partition, known| {
        let leader = known.leadership.as_ref().map(|state| state.leader);
        leader.is_some_and(|leader| !turn.context.is_online(leader, partition)) && is_kept(partition)
    });
    Flow::Then(vec![
        Step::Partitions(PartitionTransition::new(leaderless, PartitionState::Offline, None)),
        Step::TriggerOnline(None),
        Step::Replicas(ReplicaTransition::new(replicas, ReplicaState::Offline)),
        Step::FailDeletions(undeletable),
        Step::AnnounceIfNothingChanged { has_offline_replicas },
    ])
}

/// A broker that had no replica is gone: the others learn of it although nothing else changed (KAFKA-13225).
pub(super) fn announce_if_nothing_changed(turn: &mut Turn<'_>, has_offline_replicas: bool) -> Flow {
    let has_elected = turn.elections.values().any(Result::is_ok);
    if has_offline_replicas || has_elected { Flow::Done } else { announce(turn) }
}

/// Reads one registration and tells all brokers if its addresses changed.
pub(super) fn compare_one(turn: &mut Turn<'_>, id: BrokerId, reply: Option<StoreReply>) -> Flow {
    let broker = match reply {
        None => return Flow::ask(StoreOp::ReadBroker(id), Step::CompareBroker(id)),
        Some(StoreReply::Broker(broker)) => broker,
        Some(_) => return Flow::confused(),
    };
    // A broker that is gone, or was started anew, is the matter of the list of brokers.
    let known = turn.context.registered().get(&id);
    let (Some(broker), Some(known)) = (broker, known) else { return Flow::Done };
    if broker.epoch != known.epoch || broker.registration.endpoints == known.registration.endpoints {
        return Flow::Done;
    }
    turn.out.push(open_channel(id, &broker));
    turn.context.update_broker(id, broker.registration);
    announce(turn)
}
