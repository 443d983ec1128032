//! The transitions of replicas, and what each entails.
//!
//! | target | requests | changes |
//! |---|---|---|
//! | New | LeaderAndIsr (new) if the partition has a leader, which must be another replica | – |
//! | Online from New | – | an unassigned replica is appended to the assignment |
//! | Online from elsewhere | LeaderAndIsr with what is known | – |
//! | Offline | StopReplica (no delete), before anything is written; LeaderAndIsr to the other replicas after | leaves the in-sync replicas (`isr_removal`) |
//! | DeletionStarted | StopReplica (delete) | – |
//! | DeletionSuccessful, DeletionIneligible | – | – |
//! | NonExistent | – | leaves the assignment |
//!
//! One call works broker by broker and sends one batch at its end. A replica that may not come to the target is noted
//! and left as it is; the others go on.

use std::collections::{BTreeMap, VecDeque};

use wire::types::{BrokerId, TopicPartition};

use super::batch::RequestBatch;
use super::context::Replica;
use super::isr_removal::IsrRemoval;
use super::note::{Reason, What};
use super::program::{Flow, Progress, Step, Turn};
use super::replica_state::ReplicaState;
use super::store::StoreReply;

/// A transition of replicas, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReplicaTransition {
    target: ReplicaState,
    input: Vec<Replica>,
    groups: VecDeque<(BrokerId, Vec<TopicPartition>)>,
    batch: RequestBatch,
    removal: Option<IsrRemoval>,
}

impl ReplicaTransition {
    /// Brings `replicas` to `target`.
    pub(super) fn new(replicas: Vec<Replica>, target: ReplicaState) -> Self {
        let batch = RequestBatch::default();
        Self { target, input: replicas, groups: VecDeque::new(), batch, removal: None }
    }

    /// Goes on until the store has to be asked, or to the end.
    pub(super) fn run(mut self, turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
        if !self.input.is_empty() {
            self.groups = by_broker(std::mem::take(&mut self.input), self.target, turn);
        }
        let mut reply = reply;
        loop {
            if let Some(mut removal) = self.removal.take() {
                match removal.advance(turn, reply.take()) {
                    Progress::Ask(op) => {
                        self.removal = Some(removal);
                        return Flow::ask(op, Step::Replicas(self));
                    }
                    Progress::Confused => return Flow::confused(),
                    Progress::Done => self.end_offline(turn, &removal),
                }
            }
            let Some((broker, partitions)) = self.groups.pop_front() else { break };
            self.start_group(turn, broker, partitions);
        }
        turn.send(self.batch);
        Flow::Done
    }

    fn start_group(&mut self, turn: &mut Turn<'_>, broker: BrokerId, partitions: Vec<TopicPartition>) {
        let mut valid = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let replica = Replica { partition, broker };
            let from = turn.context.replica_state(&replica);
            if self.target.legal_previous().contains(&from) {
                valid.push(replica);
            } else {
                refuse(turn, &replica, self.target, Reason::Illegal);
            }
        }
        if self.target == ReplicaState::Offline {
            self.start_offline(turn, broker, valid);
            return;
        }
        for replica in &valid {
            match self.target {
                ReplicaState::New => self.enter_new(turn, replica),
                ReplicaState::Online => self.enter_online(turn, replica),
                ReplicaState::DeletionStarted => {
                    self.batch.stop_replica(turn.context, broker, &replica.partition, true);
                    enter(turn, replica, self.target);
                }
                ReplicaState::NonExistent => {
                    leave_assignment(turn, replica);
                    enter(turn, replica, self.target);
                }
                _ => enter(turn, replica, self.target),
            }
        }
    }

    fn enter_new(&mut self, turn: &mut Turn<'_>, replica: &Replica) {
        let leader = turn.context.leadership(&replica.partition).map(|state| state.leader);
        if leader == Some(replica.broker) {
            refuse(turn, replica, self.target, Reason::IsLeader);
            return;
        }
        self.batch.leader_and_isr(turn.context, &[replica.broker], &replica.partition, true);
        enter(turn, replica, self.target);
    }

    fn enter_online(&mut self, turn: &mut Turn<'_>, replica: &Replica) {
        let Replica { partition, broker } = replica;
        if turn.context.replica_state(replica) != ReplicaState::New {
            self.batch.leader_and_isr(turn.context, &[*broker], partition, false);
        } else if let Some(known) = turn.context.partition(partition)
            && !known.assignment.replicas.contains(broker)
        {
            let mut assignment = known.assignment.clone();
            assignment.replicas.push(*broker);
            turn.context.set_assignment(partition, assignment);
            turn.note(What::UnassignedReplica { partition: partition.clone(), broker: *broker });
        }
        enter(turn, replica, self.target);
    }

    /// Every replica is told to stop, with the leader epoch as it was; those of partitions that were ever led then leave
    /// the in-sync replicas, and for the others there is nothing to write.
    fn start_offline(&mut self, turn: &mut Turn<'_>, broker: BrokerId, replicas: Vec<Replica>) {
        let mut led = Vec::with_capacity(replicas.len());
        for replica in replicas {
            self.batch.stop_replica(turn.context, broker, &replica.partition, false);
            if turn.context.leadership(&replica.partition).is_some() {
                led.push(replica.partition);
            } else {
                self.batch.update_metadata_to_all(turn.context, [&replica.partition]);
                enter(turn, &replica, self.target);
            }
        }
        self.removal = Some(IsrRemoval::new(broker, led));
    }

    fn end_offline(&mut self, turn: &mut Turn<'_>, removal: &IsrRemoval) {
        let broker = removal.replica();
        for partition in removal.removed() {
            if !turn.context.is_queued_for_deletion(&partition.topic) {
                let replicas =
                    turn.context.partition(partition).map(|known| known.assignment.replicas.iter());
                let others: Vec<_> =
                    replicas.into_iter().flatten().filter(|id| **id != broker).copied().collect();
                self.batch.leader_and_isr(turn.context, &others, partition, false);
            }
            enter(turn, &Replica { partition: partition.clone(), broker }, self.target);
        }
    }
}

/// Groups by broker, ascending. Where replicas go offline, those that do not lead go first: if all in-sync replicas of a
/// partition are found dead at once, the one that stays in sync is then the last leader.
fn by_broker(
    replicas: Vec<Replica>,
    target: ReplicaState,
    turn: &Turn<'_>,
) -> VecDeque<(BrokerId, Vec<TopicPartition>)> {
    let mut groups: BTreeMap<(bool, BrokerId), Vec<TopicPartition>> = BTreeMap::new();
    for Replica { partition, broker } in replicas {
        let leader = turn.context.leadership(&partition).map(|state| state.leader);
        let is_last = target == ReplicaState::Offline && leader == Some(broker);
        groups.entry((is_last, broker)).or_default().push(partition);
    }
    groups.into_iter().map(|((_, broker), partitions)| (broker, partitions)).collect()
}

fn enter(turn: &mut Turn<'_>, replica: &Replica, to: ReplicaState) {
    let from = turn.context.replica_state(replica);
    turn.context.set_replica_state(replica, to);
    if from != to {
        let Replica { partition, broker } = replica.clone();
        turn.note(What::Replica { partition, broker, from, to });
    }
}

/// Notes that a replica stays as it is.
pub(super) fn refuse(turn: &mut Turn<'_>, replica: &Replica, to: ReplicaState, reason: Reason) {
    let from = turn.context.replica_state(replica);
    let Replica { partition, broker } = replica.clone();
    turn.note(What::ReplicaRefused { partition, broker, from, to, reason });
}

fn leave_assignment(turn: &mut Turn<'_>, replica: &Replica) {
    let Some(known) = turn.context.partition(&replica.partition) else { return };
    let mut assignment = known.assignment.clone();
    for ids in [&mut assignment.replicas, &mut assignment.adding, &mut assignment.removing] {
        ids.retain(|id| *id != replica.broker);
    }
    turn.context.set_assignment(&replica.partition, assignment);
}
