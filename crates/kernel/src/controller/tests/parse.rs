//! The words of a story.

use std::collections::BTreeMap;

use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, TopicName, TopicPartition};

use super::world::World;
use crate::controller::context::Replica;
use crate::controller::election::Strategy;
use crate::controller::event::{AlterPartition, AlterPartitionRequest};
use crate::controller::partition_state::PartitionState;
use crate::controller::replica_state::ReplicaState;
use crate::controller::values::{LeaderAndIsr, LeaderRecoveryState};
use crate::fetch::session::TopicRef;

pub(super) fn id(text: &str) -> BrokerId {
    BrokerId(text.parse().unwrap())
}

pub(super) fn ids(words: &[&str]) -> Vec<BrokerId> {
    words.iter().map(|word| id(word)).collect()
}

/// Ids separated by commas.
pub(super) fn list(text: &str) -> Vec<BrokerId> {
    if text == "none" { Vec::new() } else { text.split(',').map(id).collect() }
}

pub(super) fn topic(text: &str) -> TopicName {
    TopicName::from(text)
}

/// `t-0`.
pub(super) fn partition(text: &str) -> TopicPartition {
    let (topic, index) = text.rsplit_once('-').unwrap();
    TopicPartition::new(topic, index.parse().unwrap())
}

/// `1@t-0`.
pub(super) fn replica(text: &str) -> Replica {
    let (broker, name) = text.split_once('@').unwrap();
    Replica { partition: partition(name), broker: id(broker) }
}

pub(super) fn replica_state(text: &str) -> ReplicaState {
    ReplicaState::ALL.into_iter().find(|state| format!("{state:?}") == text).unwrap()
}

pub(super) fn partition_state(text: &str) -> PartitionState {
    PartitionState::ALL.into_iter().find(|state| format!("{state:?}") == text).unwrap()
}

pub(super) fn strategy(text: &str) -> Option<Strategy> {
    match text {
        "" => None,
        "Offline" => Some(Strategy::Offline { allow_unclean: false }),
        "Unclean" => Some(Strategy::Offline { allow_unclean: true }),
        "Reassign" => Some(Strategy::Reassign),
        "Preferred" => Some(Strategy::Preferred),
        "ControlledShutdown" => Some(Strategy::ControlledShutdown),
        other => panic!("{other}?"),
    }
}

/// The number after a word.
fn number(words: &[&str], after: &str) -> i32 {
    let at =
        words.iter().position(|word| *word == after).unwrap_or_else(|| panic!("no {after} in {words:?}"));
    words[at + 1].parse().unwrap()
}

fn isr(words: &[&str]) -> Vec<BrokerId> {
    list(isr_word(words))
}

fn isr_word<'a>(words: &[&'a str]) -> &'a str {
    let at = words.iter().position(|word| *word == "isr").unwrap();
    words[at + 1]
}

/// `1,2!1`: broker 1, and broker 2 in its first run. The brokers, and the epochs that are told.
fn isr_with_epochs(words: &[&str], world: &World) -> (Vec<BrokerId>, BTreeMap<BrokerId, BrokerEpoch>) {
    let (mut isr, mut epochs) = (Vec::new(), BTreeMap::new());
    for member in isr_word(words).split(',').filter(|member| *member != "none") {
        let (broker, run) = member.split_once('!').map_or((member, None), |(id, run)| (id, Some(run)));
        isr.push(id(broker));
        if let Some(run) = run {
            epochs.insert(id(broker), world.runs[&id(broker)][run.parse::<usize>().unwrap() - 1]);
        }
    }
    (isr, epochs)
}

fn version(words: &[&str]) -> i32 {
    let version = words.iter().rev().find_map(|word| word.strip_prefix('v')?.parse().ok());
    version.unwrap_or_else(|| panic!("no version in {words:?}"))
}

fn recovery(words: &[&str]) -> LeaderRecoveryState {
    let is_recovering = words.contains(&"recovering");
    if is_recovering { LeaderRecoveryState::Recovering } else { LeaderRecoveryState::Recovered }
}

/// `leader 1 epoch 0 isr 1,2 by 1 v0`.
pub(super) fn state(text: &str) -> LeaderAndIsr {
    let words: Vec<_> = text.split_whitespace().collect();
    LeaderAndIsr {
        leader: BrokerId(number(&words, "leader")),
        leader_epoch: LeaderEpoch(number(&words, "epoch")),
        isr: isr(&words),
        recovery_state: recovery(&words),
        controller_epoch: ControllerEpoch(number(&words, "by")),
        partition_epoch: version(&words),
    }
}

/// `1 v2 t-0 epoch 0 isr 1 v0, t-1 …`: a leader asks in version 2. A topic `?` stands for an id that nobody knows;
/// `isr 1,2!1` tells the epoch of broker 2's first run.
pub(super) fn alter(text: &str, world: &World) -> AlterPartitionRequest {
    let (broker, rest) = text.split_once(" v").unwrap();
    let (version_of_request, rest) = rest.split_once(' ').unwrap();
    let version_of_request: i16 = version_of_request.parse().unwrap();
    let (broker, run) = broker.split_once('!').map_or((broker, None), |(id, run)| (id, Some(run)));
    let runs = world.runs.get(&id(broker)).cloned().unwrap_or_default();
    let epoch = match run {
        Some(run) => runs[run.parse::<usize>().unwrap() - 1],
        None => runs.last().copied().unwrap_or_default(),
    };
    let partitions = rest.split(", ").map(|text| {
        let words: Vec<_> = text.split_whitespace().collect();
        let name = partition(words[0]);
        let id = world.topics.get(&name.topic).and_then(|topic| topic.topic_id);
        let topic = match version_of_request {
            ..2 => TopicRef::Name(name.topic),
            _ => TopicRef::Id(id.unwrap_or(wire::types::TopicId([255; 16]))),
        };
        let (isr, broker_epochs) = isr_with_epochs(&words, world);
        AlterPartition {
            topic,
            partition: name.partition,
            leader_epoch: LeaderEpoch(number(&words, "epoch")),
            isr,
            broker_epochs,
            recovery_state: recovery(&words),
            partition_epoch: version(&words),
        }
    });
    AlterPartitionRequest {
        version: version_of_request,
        broker: id(broker),
        broker_epoch: epoch,
        partitions: partitions.collect(),
    }
}
