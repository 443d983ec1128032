//! Leaders change their in-sync replicas (KIP-497).
//!
//! Each partition is judged against what is known, in a fixed order: a request that is ahead of this controller means
//! that another one is in office (KAFKA-14154); what is already so is a success, however old the request (KAFKA-14144);
//! a replica whose broker is not live does not come in (KAFKA-14140, KIP-841). Beyond Kafka, only the leader may ask, not
//! for an empty set, and for no broker that is not a replica. What is written is news for all. If a version had changed behind this controller's back, the
//! state is read again and the request judged once more, so that an answer that was lost, or a picture that was stale,
//! does not stay in the way for ever.

use std::collections::{BTreeMap, BTreeSet};

use wire::error_code::ErrorCode;
use wire::types::{BrokerId, TopicPartition};

use super::batch::RequestBatch;
use super::command::{AlteredPartition, ApiAnswer};
use super::context::Context;
use super::event::{AlterPartition, AlterPartitionRequest};
use super::note::What;
use super::program::{Flow, Step, Turn};
use super::store::{StateRead, StateWritten, StoreOp, StoreReply};
use super::values::{LeaderAndIsr, LeaderRecoveryState};
use crate::fetch::session::TopicRef;

/// The first version that names topics by id and knows INELIGIBLE_REPLICA.
const FIRST_VERSION_WITH_TOPIC_IDS: i16 = 2;

/// The change of in-sync replicas that one request asks for, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AlterIsr {
    request: AlterPartitionRequest,
    /// The partitions of the request that are known by name, with their place in it.
    places: BTreeMap<TopicPartition, usize>,
    results: BTreeMap<usize, Result<LeaderAndIsr, ErrorCode>>,
    /// What is being written.
    writes: BTreeMap<TopicPartition, LeaderAndIsr>,
    /// Whether the second judgement is under way.
    is_repeated: bool,
}

impl AlterIsr {
    /// Serves a request.
    pub(super) fn new(request: AlterPartitionRequest) -> Self {
        Self {
            request,
            places: BTreeMap::new(),
            results: BTreeMap::new(),
            writes: BTreeMap::new(),
            is_repeated: false,
        }
    }

    /// Goes on until the store has to be asked, or to the end.
    pub(super) fn run(mut self, turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
        match reply {
            None => self.start(turn),
            Some(StoreReply::Written(outcomes)) => {
                let stale = self.take_outcomes(turn, outcomes);
                if stale.is_empty() {
                    return self.finish(turn);
                }
                Flow::ask(StoreOp::ReadPartitionStates(stale), Step::AlterIsr(self))
            }
            Some(StoreReply::States(states)) => {
                let read = self.take_states(turn, states);
                if self.is_repeated {
                    return self.finish(turn);
                }
                self.is_repeated = true;
                self.judge_all(turn, read)
            }
            Some(_) => Flow::confused(),
        }
    }

    fn start(mut self, turn: &mut Turn<'_>) -> Flow {
        let epoch = turn.context.registered().get(&self.request.broker).map(|broker| broker.epoch);
        if epoch != Some(self.request.broker_epoch) {
            turn.answer(Err(ErrorCode::StaleBrokerEpoch));
            return Flow::Done;
        }
        for (place, wanted) in self.request.partitions.iter().enumerate() {
            let name = match &wanted.topic {
                TopicRef::Name(name) => Some(name),
                TopicRef::Id(id) => turn.context.topic_name(*id),
            };
            match name {
                Some(name) => {
                    let partition = TopicPartition::new(name.clone(), wanted.partition);
                    if let Some(earlier) = self.places.insert(partition, place) {
                        self.results.insert(earlier, Err(ErrorCode::InvalidRequest));
                    }
                }
                None => {
                    self.results.insert(place, Err(ErrorCode::UnknownTopicId));
                }
            }
        }
        let all = self.places.keys().cloned().collect();
        self.judge_all(turn, all)
    }

    /// Judges partitions, and writes what is accepted.
    fn judge_all(mut self, turn: &mut Turn<'_>, partitions: Vec<TopicPartition>) -> Flow {
        for partition in partitions {
            let Some(place) = self.places.get(&partition).copied() else { continue };
            let Some(wanted) = self.request.partitions.get(place) else { continue };
            match self.judge(turn, &partition, wanted) {
                Verdict::Write(state) => {
                    self.writes.insert(partition, state);
                }
                Verdict::Answer(result) => {
                    self.results.insert(place, result);
                }
            }
        }
        if self.writes.is_empty() {
            return self.finish(turn);
        }
        let states = self.writes.clone();
        let epoch_version = turn.epoch_version();
        Flow::ask(StoreOp::WritePartitionStates { states, epoch_version }, Step::AlterIsr(self))
    }

    /// The checks, in their order.
    fn judge(&self, turn: &Turn<'_>, partition: &TopicPartition, wanted: &AlterPartition) -> Verdict {
        let Some(known) = turn.context.leadership(partition) else {
            return Verdict::Answer(Err(ErrorCode::UnknownTopicOrPartition));
        };
        let leads = known.leader == self.request.broker;
        let is_so = leads && known.isr == wanted.isr && known.recovery_state == wanted.recovery_state;
        let recovering = LeaderRecoveryState::Recovering;
        let starts_recovering = known.recovery_state != recovering && wanted.recovery_state == recovering;
        let are_eligible = are_of_this_life(turn.context, wanted)
            && wanted.isr.iter().all(|replica| is_eligible(turn.context, partition, known, *replica));
        let error =
            if wanted.partition_epoch > known.partition_epoch || wanted.leader_epoch > known.leader_epoch {
                ErrorCode::NotController
            } else if wanted.leader_epoch < known.leader_epoch || !leads {
                ErrorCode::FencedLeaderEpoch
            } else if is_so {
                return Verdict::Answer(Ok(known.clone()));
            } else if wanted.partition_epoch < known.partition_epoch {
                ErrorCode::InvalidUpdateVersion
            } else if wanted.isr.is_empty()
                || has_repetition(&wanted.isr)
                || (wanted.recovery_state == recovering && wanted.isr.len() > 1)
                || starts_recovering
            {
                ErrorCode::InvalidRequest
            } else if !are_eligible {
                if self.request.version >= FIRST_VERSION_WITH_TOPIC_IDS {
                    ErrorCode::IneligibleReplica
                } else {
                    ErrorCode::OperationNotAttempted
                }
            } else {
                return Verdict::Write(LeaderAndIsr {
                    isr: wanted.isr.clone(),
                    recovery_state: wanted.recovery_state,
                    controller_epoch: turn.epoch(),
                    ..known.clone()
                });
            };
        Verdict::Answer(Err(error))
    }

    /// Takes in what was written, and returns the partitions whose version was another.
    fn take_outcomes(
        &mut self,
        turn: &mut Turn<'_>,
        outcomes: BTreeMap<TopicPartition, StateWritten>,
    ) -> Vec<TopicPartition> {
        let mut stale = Vec::new();
        for (partition, outcome) in outcomes {
            let Some(written) = self.writes.remove(&partition) else { continue };
            let result = match outcome {
                StateWritten::Written { partition_epoch } => {
                    let after = LeaderAndIsr { partition_epoch, ..written };
                    let before = turn.context.leadership(&partition).cloned();
                    turn.context.set_leadership(&partition, after.clone());
                    turn.note(What::Leadership {
                        partition: partition.clone(),
                        before,
                        after: after.clone(),
                    });
                    Ok(after)
                }
                StateWritten::BadVersion => {
                    stale.push(partition.clone());
                    Err(ErrorCode::InvalidUpdateVersion)
                }
                StateWritten::Refused(_) => Err(ErrorCode::UnknownServerError),
            };
            if let Some(place) = self.places.get(&partition) {
                self.results.insert(*place, result);
            }
        }
        stale
    }

    /// Takes in what was read anew, and returns the partitions to judge again.
    fn take_states(
        &self,
        turn: &mut Turn<'_>,
        states: BTreeMap<TopicPartition, StateRead>,
    ) -> Vec<TopicPartition> {
        let mut read = Vec::new();
        for (partition, state) in states {
            if let StateRead::State(stored) = state {
                turn.context.set_leadership(&partition, stored);
                read.push(partition);
            }
        }
        read
    }

    fn finish(self, turn: &mut Turn<'_>) -> Flow {
        if !self.places.is_empty() {
            let mut batch = RequestBatch::default();
            batch.update_metadata_to_all(turn.context, self.places.keys());
            turn.send(batch);
        }
        let mut results = self.results;
        let answers = self.request.partitions.into_iter().enumerate().map(|(place, wanted)| {
            let result = results.remove(&place).unwrap_or(Err(ErrorCode::UnknownServerError));
            AlteredPartition { topic: wanted.topic, partition: wanted.partition, result }
        });
        turn.answer(Ok(ApiAnswer::AlterPartition(answers.collect())));
        Flow::Done
    }
}

/// Whether a replica may be in sync: its broker is live, and it is assigned or was in sync before. (The latter without
/// the former is seen when a reassignment was interrupted, and must not keep a leader from shrinking, KAFKA-9672.)
fn is_eligible(
    context: &Context,
    partition: &TopicPartition,
    known: &LeaderAndIsr,
    replica: BrokerId,
) -> bool {
    let is_assigned =
        context.partition(partition).is_some_and(|known| known.assignment.replicas.contains(&replica));
    context.is_live(replica) && (is_assigned || known.isr.contains(&replica))
}

/// Whether the brokers that the leader knows by a registration still have that one. One that was registered anew may have
/// lost what the leader believes it to have (apache/kafka#14053).
fn are_of_this_life(context: &Context, wanted: &AlterPartition) -> bool {
    let registered = |replica| context.registered().get(replica).map(|broker| broker.epoch);
    wanted.broker_epochs.iter().all(|(replica, told)| registered(replica) == Some(*told))
}

/// Whether a request names a replica twice.
fn has_repetition(isr: &[BrokerId]) -> bool {
    isr.iter().collect::<BTreeSet<_>>().len() < isr.len()
}

enum Verdict {
    Write(LeaderAndIsr),
    Answer(Result<LeaderAndIsr, ErrorCode>),
}
