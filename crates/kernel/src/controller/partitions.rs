//! The transitions of partitions, and what each entails.
//!
//! | target | from | what happens |
//! |---|---|---|
//! | New | NonExistent | – |
//! | Online | New | the first state is created (`creation`) |
//! | Online | Online, Offline | a leader is elected (`leader_election`) |
//! | Offline, NonExistent | – | nothing is written and nobody is told |
//!
//! A partition comes online only when its state is written. One that may not come to the target is noted and left as it
//! is; the others go on. One call sends one batch at its end.

use wire::types::{TopicName, TopicPartition};

use super::batch::RequestBatch;
use super::creation::Creation;
use super::election::Strategy;
use super::leader_election::LeaderElection;
use super::note::{Reason, What};
use super::partition_state::PartitionState;
use super::program::{Flow, Progress, Step, Turn};
use super::store::StoreReply;

/// A transition of partitions, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PartitionTransition {
    target: PartitionState,
    stage: Stage,
    batch: RequestBatch,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Start { partitions: Vec<TopicPartition>, strategy: Option<Strategy> },
    Create(Creation, LeaderElection),
    Elect(LeaderElection),
}

impl PartitionTransition {
    /// Brings `partitions` to `target`. To come online from another state than New needs a strategy.
    pub(super) fn new(
        partitions: Vec<TopicPartition>,
        target: PartitionState,
        strategy: Option<Strategy>,
    ) -> Self {
        Self { target, stage: Stage::Start { partitions, strategy }, batch: RequestBatch::default() }
    }

    /// Brings `partitions` online.
    pub(super) fn online(partitions: Vec<TopicPartition>, strategy: Strategy) -> Self {
        Self::new(partitions, PartitionState::Online, Some(strategy))
    }

    /// Tries to bring every new or offline partition online, or those of one topic; not those that are to be deleted.
    pub(super) fn trigger_online(turn: &mut Turn<'_>, topic: Option<&TopicName>) -> Flow {
        let partitions = turn.context.select(|partition, known| {
            matches!(known.state, PartitionState::New | PartitionState::Offline)
                && topic.is_none_or(|topic| partition.topic == *topic)
                && !turn.context.is_queued_for_deletion(&partition.topic)
        });
        let strategy = Strategy::Offline { allow_unclean: false };
        Flow::Then(vec![Step::Partitions(Self::online(partitions, strategy))])
    }

    /// Goes on until the store has to be asked, or to the end.
    pub(super) fn run(mut self, turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
        let mut reply = reply;
        if let Stage::Start { partitions, strategy } = self.stage {
            let valid = legal(turn, partitions, self.target);
            if self.target != PartitionState::Online {
                valid.iter().for_each(|partition| enter(turn, partition, self.target));
                return Flow::Done;
            }
            turn.elections.clear();
            let is_new =
                |partition: &TopicPartition| turn.context.partition_state(partition) == PartitionState::New;
            let (new, led): (Vec<_>, Vec<_>) = valid.into_iter().partition(is_new);
            if strategy.is_none() && !led.is_empty() {
                return Flow::Fail("partitions cannot come online without a strategy".to_owned());
            }
            let strategy = strategy.unwrap_or(Strategy::Offline { allow_unclean: false });
            self.stage = Stage::Create(Creation::new(new), LeaderElection::new(led, strategy));
        }
        if let Stage::Create(mut creation, election) = self.stage {
            match creation.advance(turn, &mut self.batch, reply.take()) {
                Progress::Ask(op) => {
                    self.stage = Stage::Create(creation, election);
                    return Flow::ask(op, Step::Partitions(self));
                }
                Progress::Confused => return Flow::confused(),
                Progress::Done => self.stage = Stage::Elect(election),
            }
        }
        if let Stage::Elect(election) = &mut self.stage {
            match election.advance(turn, &mut self.batch, reply.take()) {
                Progress::Ask(op) => return Flow::ask(op, Step::Partitions(self)),
                Progress::Confused => return Flow::confused(),
                Progress::Done => {}
            }
        }
        turn.send(self.batch);
        Flow::Done
    }
}

/// The partitions that may come to `to`; the others are noted.
fn legal(turn: &mut Turn<'_>, partitions: Vec<TopicPartition>, to: PartitionState) -> Vec<TopicPartition> {
    let mut valid = Vec::with_capacity(partitions.len());
    for partition in partitions {
        if to.legal_previous().contains(&turn.context.partition_state(&partition)) {
            valid.push(partition);
        } else {
            refuse(turn, &partition, to, Reason::Illegal);
        }
    }
    valid
}

/// Brings a partition to a state.
pub(super) fn enter(turn: &mut Turn<'_>, partition: &TopicPartition, to: PartitionState) {
    let from = turn.context.partition_state(partition);
    turn.context.set_partition_state(partition, to);
    if from != to {
        turn.note(What::Partition { partition: partition.clone(), from, to });
    }
}

/// Notes that a partition stays as it is.
pub(super) fn refuse(turn: &mut Turn<'_>, partition: &TopicPartition, to: PartitionState, reason: Reason) {
    let from = turn.context.partition_state(partition);
    turn.note(What::PartitionRefused { partition: partition.clone(), from, to, reason });
}
