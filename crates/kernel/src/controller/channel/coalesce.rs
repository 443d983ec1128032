//! Waiting requests without what is void: the receiver ends in the state it would have come to anyway.
//!
//! Four passes, each of which leaves the order of what matters to each other as it was:
//! 1. For each partition, the steps of LeaderAndIsr and StopReplica that later ones undo are dropped (`replica_steps`).
//! 2. For each partition, of what UpdateMetadata says only the last word remains, and before it the last word that the
//!    partition is gone: a topic made anew must not inherit partitions of the old one.
//! 3. An UpdateMetadata moves back to the next one and becomes part of it, unless a LeaderAndIsr between them needs to
//!    know first who is alive (KAFKA-4443), or the next one brings back a topic that this one removes.
//! 4. Neighbours of one kind become one request, where they concern different partitions.
//!
//! Every request that remains holds a step that no later one makes void, or stands between two such. Their number is
//! limited by that of the partitions. (Before the first UpdateMetadata nobody knows whom the receiver believes to be alive,
//! and what depends on it stays; a controller begins with one.)

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use wire::types::{BrokerId, TopicName, TopicPartition};

use super::Waiting;
use super::replica_steps::{Applies, Lead, Placed, Step, add};
use crate::controller::values::{
    ControlRequest, LEADER_DURING_DELETE, LeaderAndIsrPartition, LeaderAndIsrRequest, StopReplicaRequest,
    UpdateMetadataBody, UpdateMetadataPartition, UpdateMetadataRequest,
};
use crate::metadata_version::MetadataVersion;

/// The brokers that a receiver believes to be alive; nothing is known before the first UpdateMetadata.
type Live = Option<BTreeSet<BrokerId>>;

/// What remains of `waiting` for `broker`, whose last word on who is alive was `announced`.
pub(super) fn coalesce(
    waiting: VecDeque<Waiting>,
    announced: Option<&BTreeSet<BrokerId>>,
    broker: BrokerId,
    release: MetadataVersion,
) -> VecDeque<Waiting> {
    let mut waiting: Vec<Waiting> = waiting.into();
    drop_void_steps(&mut waiting, announced.cloned(), broker);
    drop_void_metadata(&mut waiting);
    waiting.retain(|each| !holds_no_replica(&each.request));
    let waiting = gather_metadata(waiting, announced.cloned(), broker);
    join_neighbours(waiting, release).into()
}

/// Whether the receiver will act on being told to follow or to lead.
fn applies(partition: &LeaderAndIsrPartition, live: &Live, broker: BrokerId) -> Applies {
    let leader = partition.state.leader;
    match live {
        _ if leader == broker => Applies::Surely,
        _ if leader.0 < 0 => Applies::Never,
        None => Applies::Perhaps,
        Some(live) if live.contains(&leader) => Applies::Surely,
        Some(_) => Applies::Never,
    }
}

fn told_alive(body: &UpdateMetadataBody) -> BTreeSet<BrokerId> {
    body.live_brokers.keys().copied().collect()
}

fn holds_no_replica(request: &ControlRequest) -> bool {
    match request {
        ControlRequest::LeaderAndIsr(request) => request.partitions.is_empty(),
        ControlRequest::StopReplica(request) => request.partitions.is_empty(),
        ControlRequest::UpdateMetadata(_) => false,
    }
}

fn drop_void_steps(waiting: &mut [Waiting], mut live: Live, broker: BrokerId) {
    let mut remaining: BTreeMap<TopicPartition, Vec<Placed>> = BTreeMap::new();
    for (at, Waiting { request, .. }) in waiting.iter().enumerate() {
        match request {
            ControlRequest::UpdateMetadata(update) => live = Some(told_alive(&update.body)),
            ControlRequest::LeaderAndIsr(request) => {
                for (tp, partition) in &request.partitions {
                    let step = Step::Lead(Lead {
                        epoch: partition.state.leader_epoch,
                        applies: applies(partition, &live, broker),
                        is_new: partition.is_new,
                        topic_id: request.topic_ids.get(&tp.topic).copied(),
                    });
                    add(remaining.entry(tp.clone()).or_default(), Placed { at, step });
                }
            }
            ControlRequest::StopReplica(request) => {
                for (tp, stop) in &request.partitions {
                    let step = Step::Stop { epoch: stop.leader_epoch, delete: stop.delete };
                    add(remaining.entry(tp.clone()).or_default(), Placed { at, step });
                }
            }
        }
    }
    let step_at = |tp: &TopicPartition, at: usize| remaining.get(tp)?.iter().find(|placed| placed.at == at);
    for (at, Waiting { request, .. }) in waiting.iter_mut().enumerate() {
        match request {
            ControlRequest::LeaderAndIsr(request) => {
                request.partitions.retain(|tp, partition| match step_at(tp, at) {
                    Some(Placed { step: Step::Lead(lead), .. }) => {
                        partition.is_new = lead.is_new;
                        true
                    }
                    _ => false,
                });
                forget_the_absent(request);
            }
            ControlRequest::StopReplica(request) => {
                request.partitions.retain(|tp, _| step_at(tp, at).is_some())
            }
            ControlRequest::UpdateMetadata(_) => {}
        }
    }
}

/// Leaves out the ids and leaders of partitions that are no longer in the request.
fn forget_the_absent(request: &mut LeaderAndIsrRequest) {
    let topics: BTreeSet<&TopicName> = request.partitions.keys().map(|tp| &tp.topic).collect();
    request.topic_ids.retain(|topic, _| topics.contains(topic));
    let leaders: BTreeSet<BrokerId> = request.partitions.values().map(|p| p.state.leader).collect();
    request.live_leaders.retain(|leader| leaders.contains(&leader.id));
}

fn removes(partition: &UpdateMetadataPartition) -> bool {
    partition.state.leader == LEADER_DURING_DELETE
}

fn drop_void_metadata(waiting: &mut [Waiting]) {
    let mut said: BTreeSet<TopicPartition> = BTreeSet::new();
    // The place of the last request that removes the partition.
    let mut removal: BTreeMap<TopicPartition, usize> = BTreeMap::new();
    let mut perhaps_unknown: BTreeSet<(usize, TopicName)> = BTreeSet::new();
    for (at, Waiting { request, .. }) in waiting.iter_mut().enumerate().rev() {
        let ControlRequest::UpdateMetadata(update) = request else { continue };
        let mut void = Vec::new();
        for (tp, partition) in &update.body.partitions {
            let is_last_word = said.insert(tp.clone());
            let is_last_removal = removes(partition) && !removal.contains_key(tp);
            if is_last_removal {
                removal.insert(tp.clone(), at);
            }
            if !is_last_word && !is_last_removal {
                void.push(tp.clone());
                perhaps_unknown.extend(removal.get(tp).map(|at| (*at, tp.topic.clone())));
            }
        }
        if !void.is_empty() {
            let body = Arc::make_mut(&mut update.body);
            void.iter().for_each(|tp| drop(body.partitions.remove(tp)));
            keep_ids_of_present_topics(body);
        }
    }
    for (at, topic) in perhaps_unknown {
        if let Some(Waiting { request: ControlRequest::UpdateMetadata(update), .. }) = waiting.get_mut(at) {
            // A receiver that has never heard of the topic would keep the id of what is not there.
            Arc::make_mut(&mut update.body).topic_ids.remove(&topic);
        }
    }
}

fn keep_ids_of_present_topics(body: &mut UpdateMetadataBody) {
    let topics: BTreeSet<&TopicName> = body.partitions.keys().map(|tp| &tp.topic).collect();
    body.topic_ids.retain(|topic, _| topics.contains(topic));
}

/// An UpdateMetadata that has not found its place yet.
struct Pending {
    update: UpdateMetadataRequest,
    since: i64,
}

impl Pending {
    fn alive(&self) -> Live {
        Some(told_alive(&self.update.body))
    }

    fn waiting(self) -> Waiting {
        Waiting { request: ControlRequest::UpdateMetadata(self.update), since: self.since }
    }

    /// Whether a LeaderAndIsr is acted on differently without it.
    fn is_needed_by(&self, request: &LeaderAndIsrRequest, live: &Live, broker: BrokerId) -> bool {
        let then = self.alive();
        request.partitions.values().any(|p| applies(p, live, broker) != applies(p, &then, broker))
    }

    /// Whether `later` makes a topic anew that it removes.
    fn is_needed_before(&self, later: &UpdateMetadataBody) -> bool {
        let gone = self.update.body.partitions.iter().filter(|(_, partition)| removes(partition));
        let gone: BTreeSet<&TopicName> = gone.map(|(tp, _)| &tp.topic).collect();
        later.partitions.iter().any(|(tp, partition)| !removes(partition) && gone.contains(&tp.topic))
    }

    /// Takes in what the next one says.
    fn join(&mut self, later: &UpdateMetadataBody) {
        let body = Arc::make_mut(&mut self.update.body);
        for tp in later.partitions.keys() {
            // An id that is missing is taken back by the receiver.
            body.topic_ids.remove(&tp.topic);
        }
        body.topic_ids.extend(later.topic_ids.iter().map(|(topic, id)| (topic.clone(), *id)));
        body.partitions
            .extend(later.partitions.iter().map(|(tp, partition)| (tp.clone(), partition.clone())));
        body.live_brokers.clone_from(&later.live_brokers);
    }
}

fn gather_metadata(waiting: Vec<Waiting>, mut live: Live, broker: BrokerId) -> Vec<Waiting> {
    let mut gathered = Vec::with_capacity(waiting.len());
    let mut pending: Option<Pending> = None;
    for Waiting { request, since } in waiting {
        let stays = match (&request, &pending) {
            (_, None) | (ControlRequest::StopReplica(_), _) => false,
            (ControlRequest::LeaderAndIsr(request), Some(pending)) => {
                pending.is_needed_by(request, &live, broker)
            }
            (ControlRequest::UpdateMetadata(later), Some(pending)) => pending.is_needed_before(&later.body),
        };
        if stays && let Some(pending) = pending.take() {
            live = pending.alive();
            gathered.push(pending.waiting());
        }
        match (request, &mut pending) {
            (ControlRequest::UpdateMetadata(later), Some(pending)) => pending.join(&later.body),
            (ControlRequest::UpdateMetadata(update), None) => pending = Some(Pending { update, since }),
            (request, _) => gathered.push(Waiting { request, since }),
        }
    }
    gathered.extend(pending.map(Pending::waiting));
    gathered
}

fn join_neighbours(waiting: Vec<Waiting>, release: MetadataVersion) -> Vec<Waiting> {
    let mut joined: Vec<Waiting> = Vec::with_capacity(waiting.len());
    for mut each in waiting {
        let done = joined.last_mut().is_some_and(|last| match (&mut last.request, &mut each.request) {
            (ControlRequest::LeaderAndIsr(one), ControlRequest::LeaderAndIsr(two)) => join_leads(one, two),
            (ControlRequest::StopReplica(one), ControlRequest::StopReplica(two)) => {
                join_stops(one, two, release)
            }
            _ => false,
        });
        if !done {
            joined.push(each);
        }
    }
    joined
}

/// Moves what `two` holds into `one`, if they have no partition in common.
fn join_leads(one: &mut LeaderAndIsrRequest, two: &mut LeaderAndIsrRequest) -> bool {
    if two.partitions.keys().any(|tp| one.partitions.contains_key(tp)) {
        return false;
    }
    one.partitions.append(&mut two.partitions);
    one.topic_ids.append(&mut two.topic_ids);
    one.live_leaders.retain(|leader| two.live_leaders.iter().all(|later| later.id != leader.id));
    one.live_leaders.append(&mut two.live_leaders);
    true
}

/// Moves what `two` holds into `one`, if they have no partition in common and one flag is enough where there is one.
fn join_stops(one: &mut StopReplicaRequest, two: &mut StopReplicaRequest, release: MetadataVersion) -> bool {
    let delete = |request: &StopReplicaRequest| request.partitions.values().any(|stop| stop.delete);
    let one_flag = !release.stop_replica_leader_epoch_supported();
    if (one_flag && delete(one) != delete(two))
        || two.partitions.keys().any(|tp| one.partitions.contains_key(tp))
    {
        return false;
    }
    one.partitions.append(&mut two.partitions);
    true
}
