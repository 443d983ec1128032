//! One replica leaves the in-sync replicas of partitions.
//!
//! Each round reads the states and writes those in which the replica is in sync: without it, without a leader if it led,
//! and with the next leader epoch. The last in-sync replica stays, even without being leader: only it may be elected
//! cleanly later, and the in-sync replicas never become empty. Where the replica is not in sync nothing is written; what
//! was read is news all the same. A version that has changed in between leads to another round for that partition.

use std::collections::BTreeMap;

use wire::types::{BrokerId, TopicPartition};

use super::context::Replica;
use super::note::{Reason, What};
use super::program::{Progress, Turn};
use super::replica_state::ReplicaState;
use super::replicas::refuse;
use super::store::{StateRead, StateWritten, StoreOp, StoreReply};
use super::values::LeaderAndIsr;

/// The removal of one replica, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct IsrRemoval {
    replica: BrokerId,
    remaining: Vec<TopicPartition>,
    /// What is being written, with what was read.
    writes: BTreeMap<TopicPartition, (LeaderAndIsr, LeaderAndIsr)>,
    removed: Vec<TopicPartition>,
}

impl IsrRemoval {
    /// Removes `replica` from the in-sync replicas of `partitions`.
    pub(super) fn new(replica: BrokerId, partitions: Vec<TopicPartition>) -> Self {
        Self { replica, remaining: partitions, writes: BTreeMap::new(), removed: Vec::new() }
    }

    /// The replica.
    pub(super) fn replica(&self) -> BrokerId {
        self.replica
    }

    /// The partitions it has left, or whose in-sync replicas it was not among.
    pub(super) fn removed(&self) -> &[TopicPartition] {
        &self.removed
    }

    /// Goes on with a reply, or begins.
    pub(super) fn advance(&mut self, turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Progress {
        match reply {
            None => self.read(),
            Some(StoreReply::States(states)) => {
                for (partition, read) in states {
                    self.take_state(turn, partition, read);
                }
                self.write(turn)
            }
            Some(StoreReply::Written(outcomes)) => {
                for (partition, outcome) in outcomes {
                    self.take_outcome(turn, partition, outcome);
                }
                self.writes.clear();
                self.read()
            }
            Some(_) => Progress::Confused,
        }
    }

    fn read(&mut self) -> Progress {
        if self.remaining.is_empty() {
            return Progress::Done;
        }
        Progress::Ask(StoreOp::ReadPartitionStates(std::mem::take(&mut self.remaining)))
    }

    fn write(&self, turn: &Turn<'_>) -> Progress {
        if self.writes.is_empty() {
            return Progress::Done;
        }
        let states = self.writes.iter().map(|(name, (_, after))| (name.clone(), after.clone())).collect();
        Progress::Ask(StoreOp::WritePartitionStates { states, epoch_version: turn.epoch_version() })
    }

    fn take_state(&mut self, turn: &mut Turn<'_>, partition: TopicPartition, read: StateRead) {
        let stored = match read {
            StateRead::State(stored) if stored.controller_epoch > turn.epoch() => {
                return self.refuse(turn, partition, Reason::NewerControllerEpoch(stored.controller_epoch));
            }
            StateRead::State(stored) => stored,
            // A topic that is being deleted may have lost its states already: there is nothing to leave.
            StateRead::Missing if turn.context.is_queued_for_deletion(&partition.topic) => {
                return self.removed.push(partition);
            }
            StateRead::Missing => return self.refuse(turn, partition, Reason::NoState),
            StateRead::Unreadable(why) => return self.refuse(turn, partition, Reason::Unreadable(why)),
        };
        if stored.isr.contains(&self.replica) {
            let after = self.without_replica(turn, &stored);
            self.writes.insert(partition, (stored, after));
        } else {
            let known = LeaderAndIsr { controller_epoch: turn.epoch(), ..stored };
            turn.context.set_leadership(&partition, known);
            self.removed.push(partition);
        }
    }

    fn without_replica(&self, turn: &Turn<'_>, stored: &LeaderAndIsr) -> LeaderAndIsr {
        let leader = if stored.leader == self.replica { BrokerId::NONE } else { stored.leader };
        let isr = match stored.isr.as_slice() {
            [last] => vec![*last],
            isr => isr.iter().filter(|id| **id != self.replica).copied().collect(),
        };
        stored.with_leader(leader, isr, turn.epoch())
    }

    fn take_outcome(&mut self, turn: &mut Turn<'_>, partition: TopicPartition, outcome: StateWritten) {
        let Some((before, after)) = self.writes.remove(&partition) else { return };
        match outcome {
            StateWritten::Written { partition_epoch } => {
                let after = LeaderAndIsr { partition_epoch, ..after };
                turn.context.set_leadership(&partition, after.clone());
                self.removed.push(partition.clone());
                turn.note(What::Leadership { partition, before: Some(before), after });
            }
            StateWritten::BadVersion => self.remaining.push(partition),
            StateWritten::Refused(why) => self.refuse(turn, partition, Reason::Refused(why)),
        }
    }

    fn refuse(&self, turn: &mut Turn<'_>, partition: TopicPartition, reason: Reason) {
        let replica = Replica { partition, broker: self.replica };
        refuse(turn, &replica, ReplicaState::Offline, reason);
    }
}
