//! New partitions get their first state: the first replica that is online leads, and all that are online are in sync.
//!
//! Assigned replicas that are offline are not in sync; they learn of the partition when their broker starts. A partition
//! without a replica online stays New until one comes. If a state exists already it may be ours, of a try whose answer
//! was lost: it is read back, and adopted if it is what was to be written.

use std::collections::BTreeMap;

use wire::types::{BrokerId, LeaderEpoch, TopicPartition};

use super::batch::RequestBatch;
use super::note::{Reason, What};
use super::partition_state::PartitionState;
use super::partitions::{enter, refuse};
use super::program::{Progress, Turn};
use super::store::{StateCreated, StateRead, StoreOp, StoreReply};
use super::values::{INITIAL_PARTITION_EPOCH, LeaderAndIsr, LeaderRecoveryState};

/// The creation of first states, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Creation {
    partitions: Vec<TopicPartition>,
    /// The states that are being created or read back.
    pending: BTreeMap<TopicPartition, LeaderAndIsr>,
}

impl Creation {
    /// Creates the first states of `partitions`, which are New.
    pub(super) fn new(partitions: Vec<TopicPartition>) -> Self {
        Self { partitions, pending: BTreeMap::new() }
    }

    /// Goes on with a reply, or begins.
    pub(super) fn advance(
        &mut self,
        turn: &mut Turn<'_>,
        batch: &mut RequestBatch,
        reply: Option<StoreReply>,
    ) -> Progress {
        match reply {
            None => self.create(turn),
            Some(StoreReply::Created(outcomes)) => self.take_outcomes(turn, batch, outcomes),
            Some(StoreReply::States(states)) => {
                for (partition, read) in states {
                    self.take_existing(turn, batch, partition, read);
                }
                Progress::Done
            }
            Some(_) => Progress::Confused,
        }
    }

    fn create(&mut self, turn: &mut Turn<'_>) -> Progress {
        for partition in std::mem::take(&mut self.partitions) {
            match first_state(turn, &partition) {
                Some(state) => {
                    self.pending.insert(partition, state);
                }
                None => refuse(turn, &partition, PartitionState::Online, Reason::NoReplicaOnline),
            }
        }
        if self.pending.is_empty() {
            return Progress::Done;
        }
        let (states, epoch_version) = (self.pending.clone(), turn.epoch_version());
        Progress::Ask(StoreOp::CreatePartitionStates { states, epoch_version })
    }

    fn take_outcomes(
        &mut self,
        turn: &mut Turn<'_>,
        batch: &mut RequestBatch,
        outcomes: BTreeMap<TopicPartition, StateCreated>,
    ) -> Progress {
        let mut existing = Vec::new();
        for (partition, outcome) in outcomes {
            match outcome {
                StateCreated::Created => self.succeed(turn, batch, &partition),
                StateCreated::Exists => existing.push(partition),
                StateCreated::Refused(why) => {
                    refuse(turn, &partition, PartitionState::Online, Reason::Refused(why));
                }
            }
        }
        if existing.is_empty() {
            return Progress::Done;
        }
        Progress::Ask(StoreOp::ReadPartitionStates(existing))
    }

    fn take_existing(
        &mut self,
        turn: &mut Turn<'_>,
        batch: &mut RequestBatch,
        partition: TopicPartition,
        read: StateRead,
    ) {
        let reason = match read {
            StateRead::State(stored) if self.pending.get(&partition) == Some(&stored) => {
                return self.succeed(turn, batch, &partition);
            }
            StateRead::State(_) => Reason::StateExists,
            StateRead::Missing => Reason::NoState,
            StateRead::Unreadable(why) => Reason::Unreadable(why),
        };
        refuse(turn, &partition, PartitionState::Online, reason);
    }

    fn succeed(&mut self, turn: &mut Turn<'_>, batch: &mut RequestBatch, partition: &TopicPartition) {
        let Some(state) = self.pending.remove(partition) else { return };
        turn.context.set_leadership(partition, state.clone());
        batch.leader_and_isr(turn.context, &state.isr, partition, true);
        enter(turn, partition, PartitionState::Online);
        turn.note(What::Leadership { partition: partition.clone(), before: None, after: state });
    }
}

fn first_state(turn: &Turn<'_>, partition: &TopicPartition) -> Option<LeaderAndIsr> {
    let replicas = turn.context.partition(partition)?.assignment.replicas.iter().copied();
    let isr: Vec<BrokerId> = replicas.filter(|id| turn.context.is_online(*id, partition)).collect();
    Some(LeaderAndIsr {
        leader: *isr.first()?,
        leader_epoch: LeaderEpoch(0),
        isr,
        recovery_state: LeaderRecoveryState::Recovered,
        controller_epoch: turn.epoch(),
        partition_epoch: INITIAL_PARTITION_EPOCH,
    })
}
