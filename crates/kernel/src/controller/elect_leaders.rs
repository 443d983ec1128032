//! Leaders are elected because somebody asks for it: ElectLeaders (KIP-183, KIP-460), the znode by which old tools ask
//! for preferred leaders, and the balance of leaders.
//!
//! | asked for | not needed if | who may lead | failure |
//! |---|---|---|---|
//! | preferred | the first replica leads | the first replica, in sync and online | PREFERRED_LEADER_NOT_AVAILABLE |
//! | unclean | the leader is live | an in-sync replica, else any that is online, whatever the topic says | ELIGIBLE_LEADERS_NOT_AVAILABLE |
//!
//! The znode is dropped whatever comes of the elections, and looked for again, so that the next one is heard of.

use std::collections::{BTreeMap, BTreeSet};

use wire::error_code::ErrorCode;
use wire::types::{BrokerId, TopicPartition};

use super::command::ApiAnswer;
use super::context::{Context, Partition};
use super::election::Strategy;
use super::event::Change;
use super::partition_state::PartitionState;
use super::partitions::PartitionTransition;
use super::program::{Flow, Step, Turn};
use super::store::{StoreOp, StoreReply};

/// What kind of leader is asked for; the numbers are those of ElectLeaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElectionType {
    /// The first replica.
    Preferred = 0,
    /// Any, where there is none.
    Unclean = 1,
}

/// An ElectLeaders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElectLeadersRequest {
    /// What kind of leader.
    pub kind: ElectionType,
    /// For which partitions; `None` for all that need it.
    pub partitions: Option<BTreeSet<TopicPartition>>,
}

/// For each partition, its new leader, or why it has none.
pub type ElectedLeaders = BTreeMap<TopicPartition, Result<BrokerId, ErrorCode>>;

/// Judges each partition and plans the elections.
pub(super) fn serve(turn: &mut Turn<'_>, request: ElectLeadersRequest) -> Flow {
    let ElectLeadersRequest { kind, partitions } = request;
    let is_for_all = partitions.is_none();
    let wanted = partitions.unwrap_or_else(|| announced(turn.context));
    let (mut electable, mut results) = (Vec::new(), ElectedLeaders::new());
    for partition in wanted {
        match judge(turn.context, &partition, kind) {
            Ok(()) => electable.push(partition),
            Err(ErrorCode::ElectionNotNeeded) if is_for_all => {}
            Err(error) => {
                results.insert(partition, Err(error));
            }
        }
    }
    let strategy = match kind {
        ElectionType::Preferred => Strategy::Preferred,
        ElectionType::Unclean => Strategy::Offline { allow_unclean: true },
    };
    Flow::Then(vec![
        Step::Partitions(PartitionTransition::online(electable.clone(), strategy)),
        Step::AnswerElections { kind, electable, results },
    ])
}

/// The partitions that brokers have been told of: all but those that never had a leader and those that are being deleted.
fn announced(context: &Context) -> BTreeSet<TopicPartition> {
    let known = context.partitions().filter(|(_, known)| known.leadership.is_some());
    known.map(|(name, _)| name).filter(|name| !context.is_queued_for_deletion(&name.topic)).collect()
}

fn judge(context: &Context, partition: &TopicPartition, kind: ElectionType) -> Result<(), ErrorCode> {
    let known = context.partition(partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    if context.is_queued_for_deletion(&partition.topic) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let Some(state) = &known.leadership else { return Ok(()) };
    let is_led = match kind {
        ElectionType::Preferred => known.assignment.replicas.first() == Some(&state.leader),
        ElectionType::Unclean => context.is_live(state.leader),
    };
    if is_led { Err(ErrorCode::ElectionNotNeeded) } else { Ok(()) }
}

/// Answers what came of the elections.
pub(super) fn answer(
    turn: &mut Turn<'_>,
    kind: ElectionType,
    electable: Vec<TopicPartition>,
    mut results: ElectedLeaders,
) -> Flow {
    let failure = match kind {
        ElectionType::Preferred => ErrorCode::PreferredLeaderNotAvailable,
        ElectionType::Unclean => ErrorCode::EligibleLeadersNotAvailable,
    };
    for partition in electable {
        let elected = match turn.elections.get(&partition) {
            Some(result) => result.as_ref().map(|state| state.leader).ok(),
            // One that had never had a leader has been created, or not.
            None => turn
                .context
                .leadership(&partition)
                .filter(|_| turn.context.partition_state(&partition) == PartitionState::Online)
                .map(|state| state.leader),
        };
        results.insert(partition, elected.ok_or(failure));
    }
    turn.answer(Ok(ApiAnswer::ElectLeaders(results)));
    Flow::Done
}

/// Looks for the znode by which old tools ask for preferred leaders.
pub(super) fn read_node(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadPreferredElection, Step::ReadPreferredElection),
        Some(StoreReply::PreferredElection(None)) => Flow::Done,
        Some(StoreReply::PreferredElection(Some(partitions))) => {
            let needed =
                |partition: &TopicPartition| judge(turn.context, partition, ElectionType::Preferred).is_ok();
            let electable = partitions.into_iter().filter(needed).collect();
            Flow::Then(vec![
                Step::Partitions(PartitionTransition::online(electable, Strategy::Preferred)),
                Step::DropPreferredElection,
            ])
        }
        Some(_) => Flow::confused(),
    }
}

/// Drops the znode; what comes after it is another event.
pub(super) fn drop_node(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => {
            let epoch_version = turn.epoch_version();
            Flow::ask(StoreOp::DropPreferredElection { epoch_version }, Step::DropPreferredElection)
        }
        Some(StoreReply::Done) => {
            turn.raise(Change::PreferredElection);
            Flow::Done
        }
        Some(_) => Flow::confused(),
    }
}

/// Brings leaders back to the first replicas where too many have left them
/// (`leader.imbalance.per.broker.percentage`). Only a first replica that could lead is tried (KAFKA-9866), and a
/// reassignment elsewhere does not stand in the way (KAFKA-10149).
pub(super) fn balance(turn: &mut Turn<'_>) -> Flow {
    let mut by_preferred: BTreeMap<BrokerId, (usize, Vec<TopicPartition>)> = BTreeMap::new();
    for (partition, known) in turn.context.partitions() {
        let Some(first) = known.assignment.replicas.first() else { continue };
        if turn.context.is_queued_for_deletion(&partition.topic) {
            continue;
        }
        let (all, elsewhere) = by_preferred.entry(*first).or_default();
        *all += 1;
        if known.leadership.as_ref().is_some_and(|state| state.leader != *first) {
            elsewhere.push(partition);
        }
    }
    let percentage = turn.settings.leader_imbalance_per_broker_percentage;
    let is_imbalanced = |all: usize, elsewhere: usize| {
        elsewhere.saturating_mul(100) > all.saturating_mul(usize::try_from(percentage).unwrap_or(0))
    };
    let candidates = by_preferred
        .into_values()
        .filter(|(all, elsewhere)| is_imbalanced(*all, elsewhere.len()))
        .flat_map(|(_, elsewhere)| elsewhere)
        .filter(|partition| {
            turn.context.partition(partition).is_some_and(|k| first_could_lead(turn.context, partition, k))
        })
        .collect();
    Flow::Then(vec![Step::Partitions(PartitionTransition::online(candidates, Strategy::Preferred))])
}

fn first_could_lead(context: &Context, partition: &TopicPartition, known: &Partition) -> bool {
    let (Some(first), Some(state)) = (known.assignment.replicas.first(), &known.leadership) else {
        return false;
    };
    context.is_online(*first, partition) && state.isr.contains(first)
}
