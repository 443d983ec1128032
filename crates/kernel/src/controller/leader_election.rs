//! Leaders are elected for partitions that had one before.
//!
//! Each round reads the states, asks the configs of topics where only an unclean election could help, elects
//! ([`Ballot`]), and writes. A version that has changed in between leads to another whole round for that partition. A
//! state written by a later controller is not touched: this one has been replaced and will hear of it.

use std::collections::{BTreeMap, BTreeSet};

use wire::types::{TopicName, TopicPartition};

use super::batch::RequestBatch;
use super::command::Command;
use super::election::{Ballot, Elected, Strategy};
use super::note::{Reason, What};
use super::partition_state::PartitionState;
use super::partitions::{enter, refuse};
use super::program::{Progress, Turn};
use super::store::{StateRead, StateWritten, StoreOp, StoreReply};
use super::values::LeaderAndIsr;

/// The election of leaders, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LeaderElection {
    strategy: Strategy,
    remaining: Vec<TopicPartition>,
    /// The states that were read in this round.
    stored: BTreeMap<TopicPartition, LeaderAndIsr>,
    /// What is being written in this round.
    elected: BTreeMap<TopicPartition, Elected>,
}

impl LeaderElection {
    /// Elects leaders for `partitions`.
    pub(super) fn new(partitions: Vec<TopicPartition>, strategy: Strategy) -> Self {
        Self { strategy, remaining: partitions, stored: BTreeMap::new(), elected: BTreeMap::new() }
    }

    /// Goes on with a reply, or begins.
    pub(super) fn advance(
        &mut self,
        turn: &mut Turn<'_>,
        batch: &mut RequestBatch,
        reply: Option<StoreReply>,
    ) -> Progress {
        match reply {
            None => self.read(),
            Some(StoreReply::States(states)) => self.take_states(turn, states),
            Some(StoreReply::UncleanElection(overrides)) => {
                let default = turn.settings.unclean_leader_election_enable;
                let allowed =
                    overrides.into_iter().map(|(topic, read)| (topic, read.map(|v| v.unwrap_or(default))));
                self.elect(turn, &allowed.collect())
            }
            Some(StoreReply::Written(outcomes)) => {
                for (partition, outcome) in outcomes {
                    self.take_outcome(turn, batch, partition, outcome);
                }
                self.read()
            }
            Some(_) => Progress::Confused,
        }
    }

    fn read(&mut self) -> Progress {
        self.stored.clear();
        self.elected.clear();
        if self.remaining.is_empty() {
            return Progress::Done;
        }
        Progress::Ask(StoreOp::ReadPartitionStates(std::mem::take(&mut self.remaining)))
    }

    fn take_states(&mut self, turn: &mut Turn<'_>, states: BTreeMap<TopicPartition, StateRead>) -> Progress {
        for (partition, read) in states {
            let reason = match read {
                StateRead::State(stored) if stored.controller_epoch > turn.epoch() => {
                    Reason::NewerControllerEpoch(stored.controller_epoch)
                }
                StateRead::State(stored) => {
                    self.stored.insert(partition, stored);
                    continue;
                }
                StateRead::Missing => Reason::NoState,
                StateRead::Unreadable(why) => Reason::Unreadable(why),
            };
            fail(turn, partition, reason);
        }
        let topics = self.topics_to_ask(turn);
        if topics.is_empty() {
            return self.elect(turn, &BTreeMap::new());
        }
        Progress::Ask(StoreOp::ReadUncleanElection(topics))
    }

    /// The topics of partitions without an in-sync replica online, if it is up to the topic what then happens.
    fn topics_to_ask(&self, turn: &Turn<'_>) -> BTreeSet<TopicName> {
        if self.strategy != (Strategy::Offline { allow_unclean: false }) {
            return BTreeSet::new();
        }
        let lost = self.stored.iter().filter(|(partition, stored)| {
            !stored.isr.iter().any(|replica| turn.context.is_online(*replica, partition))
        });
        lost.map(|(partition, _)| partition.topic.clone()).collect()
    }

    fn elect(
        &mut self,
        turn: &mut Turn<'_>,
        unclean: &BTreeMap<TopicName, Result<bool, String>>,
    ) -> Progress {
        let mut states = BTreeMap::new();
        for (partition, stored) in &self.stored {
            let is_in_sync_online = stored.isr.iter().any(|id| turn.context.is_online(*id, partition));
            let is_unclean_allowed = match unclean.get(&partition.topic) {
                Some(Err(why)) if !is_in_sync_online => {
                    fail(turn, partition.clone(), Reason::ConfigUnreadable(why.clone()));
                    continue;
                }
                Some(Ok(allowed)) => *allowed,
                _ => false,
            };
            let elected = turn.context.partition(partition).and_then(|known| {
                let ballot = Ballot {
                    assignment: &known.assignment,
                    stored,
                    liveness: &|replica| turn.context.liveness(replica, partition),
                    shutting_down: turn.context.shutting_down(),
                    is_unclean_allowed,
                    uses_recovery_state: turn.settings.release.leader_recovery_supported(),
                    controller_epoch: turn.epoch(),
                };
                ballot.elect(self.strategy)
            });
            match elected {
                Some(elected) => {
                    states.insert(partition.clone(), elected.state.clone());
                    self.elected.insert(partition.clone(), elected);
                }
                None => fail(turn, partition.clone(), Reason::NoEligibleLeader),
            }
        }
        if states.is_empty() {
            return Progress::Done;
        }
        Progress::Ask(StoreOp::WritePartitionStates { states, epoch_version: turn.epoch_version() })
    }

    fn take_outcome(
        &mut self,
        turn: &mut Turn<'_>,
        batch: &mut RequestBatch,
        partition: TopicPartition,
        outcome: StateWritten,
    ) {
        let Some(elected) = self.elected.remove(&partition) else { return };
        match outcome {
            StateWritten::Written { partition_epoch } => {
                let after = LeaderAndIsr { partition_epoch, ..elected.state };
                turn.context.set_leadership(&partition, after.clone());
                batch.leader_and_isr(turn.context, &elected.recipients, &partition, false);
                enter(turn, &partition, PartitionState::Online);
                if elected.is_unclean {
                    turn.out.push(Command::CountUncleanElection);
                }
                let before = self.stored.remove(&partition);
                turn.elections.insert(partition.clone(), Ok(after.clone()));
                turn.note(What::Leadership { partition, before, after });
            }
            StateWritten::BadVersion => self.remaining.push(partition),
            StateWritten::Refused(why) => fail(turn, partition, Reason::Refused(why)),
        }
    }
}

fn fail(turn: &mut Turn<'_>, partition: TopicPartition, reason: Reason) {
    refuse(turn, &partition, PartitionState::Online, reason.clone());
    turn.elections.insert(partition, Err(reason));
}
