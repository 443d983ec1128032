//! A small model of the znodes that the controllers of a story share, with versions, sessions and watches that fire once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, TopicId, TopicName, TopicPartition};

use super::administration::Administration;
use crate::controller::event::{Change, Event};
use crate::controller::store::{
    ControllerNode, StateCreated, StateRead, StateWritten, StoreFailure, StoreOp, StoreReply,
};
use crate::controller::values::{Broker, BrokerRegistration, Endpoint, LeaderAndIsr, TopicAssignment};

/// What a watch is set on; it fires once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Watch {
    Controller,
    Change(Change),
}

impl Watch {
    fn event(&self) -> Event {
        match self {
            Self::Controller => Event::ControllerNodeChanged,
            Self::Change(change) => Event::Changed(change.clone()),
        }
    }
}

/// The znodes, and who watches what.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) controller: Option<ControllerNode>,
    pub(super) epoch: Option<(ControllerEpoch, i32)>,
    pub(super) brokers: BTreeMap<BrokerId, Broker>,
    pub(super) topics: BTreeMap<TopicName, TopicAssignment>,
    pub(super) states: BTreeMap<TopicPartition, LeaderAndIsr>,
    pub(super) unclean: BTreeMap<TopicName, Result<Option<bool>, String>>,
    pub(super) admin: Administration,
    watches: BTreeSet<(BrokerId, Watch)>,
    /// Events of watches that fired, in order.
    pub(super) fired: Vec<(BrokerId, Event)>,
    /// The registrations of each broker so far, oldest first: the last is the present run, if it is registered.
    pub(super) runs: BTreeMap<BrokerId, Vec<BrokerEpoch>>,
    pub(super) forbids_unclean_elections: bool,
    /// The logs that brokers have, if they act on requests.
    pub(super) logs: BTreeSet<(BrokerId, TopicPartition)>,
    zxid: i64,
    ids: u8,
    /// Every state that was ever stored.
    history: BTreeMap<TopicPartition, Vec<LeaderAndIsr>>,
}

/// The session of a broker in its present run.
pub(super) fn session_of(broker: BrokerId, run: usize) -> i64 {
    i64::from(broker.0) * 100 + i64::try_from(run).unwrap()
}

/// What others do.
impl World {
    /// Registers a broker anew.
    pub(super) fn register(&mut self, id: BrokerId) {
        self.zxid += 1;
        let epoch = BrokerEpoch(self.zxid);
        self.runs.entry(id).or_default().push(epoch);
        self.brokers.insert(id, Broker { epoch, registration: Arc::new(registration(id, 9092)) });
        self.fire(&Watch::Change(Change::Brokers));
    }

    /// Changes the addresses of a broker.
    pub(super) fn move_broker(&mut self, id: BrokerId, port: i32) {
        if let Some(broker) = self.brokers.get_mut(&id) {
            broker.registration = Arc::new(registration(id, port));
        }
        self.fire(&Watch::Change(Change::Broker(id)));
    }

    /// Ends the session of a broker.
    pub(super) fn end_session(&mut self, id: BrokerId) {
        self.watches.retain(|(watcher, _)| *watcher != id);
        let session = self.session(id);
        if self.controller.is_some_and(|node| node.owner == session) {
            self.controller = None;
            self.fire(&Watch::Controller);
        }
        if self.brokers.remove(&id).is_some() {
            self.fire(&Watch::Change(Change::Brokers));
            // The watch of what is deleted is spent; nobody wants to know by it.
            self.watches.retain(|(_, watch)| *watch != Watch::Change(Change::Broker(id)));
        }
    }

    /// The session of a broker in its present run.
    pub(super) fn session(&self, id: BrokerId) -> i64 {
        session_of(id, self.runs.get(&id).map_or(0, Vec::len))
    }

    /// Writes a topic's znode.
    pub(super) fn set_topic(&mut self, name: &TopicName, topic: TopicAssignment) {
        let watch = if self.topics.contains_key(name) { Change::Topic(name.clone()) } else { Change::Topics };
        self.topics.insert(name.clone(), topic);
        self.fire(&Watch::Change(watch));
    }

    /// Deletes a topic's znodes.
    pub(super) fn drop_topic(&mut self, name: &TopicName) {
        self.topics.remove(name);
        self.states.retain(|partition, _| partition.topic != *name);
        self.fire(&Watch::Change(Change::Topics));
        self.watches.retain(|(_, watch)| *watch != Watch::Change(Change::Topic(name.clone())));
    }

    /// Puts a node at `/controller`, or takes it away.
    pub(super) fn set_controller(&mut self, node: Option<ControllerNode>) {
        self.controller = node;
        self.fire(&Watch::Controller);
    }

    /// Stores the state of a partition.
    pub(super) fn set_state(&mut self, partition: TopicPartition, state: LeaderAndIsr) {
        self.history.entry(partition.clone()).or_default().push(state.clone());
        self.states.insert(partition, state);
    }

    /// Asserts that what brokers are told was stored before. The controller epoch aside: a state that is read while a
    /// replica goes offline is passed on in the reader's name.
    pub(super) fn check_was_stored(&self, partition: &TopicPartition, told: &LeaderAndIsr) {
        let stored = self.history.get(partition).map(Vec::as_slice).unwrap_or_default();
        let is_told = |stored: &LeaderAndIsr| {
            LeaderAndIsr { controller_epoch: stored.controller_epoch, ..told.clone() } == *stored
        };
        assert!(stored.iter().any(is_told), "{partition} is told as {told}, which was never stored");
    }

    /// A topic id that was not given before.
    pub(super) fn fresh_id(&mut self) -> TopicId {
        self.ids += 1;
        TopicId([self.ids; 16])
    }

    pub(super) fn fire(&mut self, watch: &Watch) {
        let watchers: Vec<_> = self.watches.iter().filter(|(_, on)| on == watch).cloned().collect();
        for armed in watchers {
            self.fired.push((armed.0, watch.event()));
            self.watches.remove(&armed);
        }
    }

    pub(super) fn arm(&mut self, watcher: BrokerId, watch: Watch) {
        self.watches.insert((watcher, watch));
    }
}

fn registration(id: BrokerId, port: i32) -> BrokerRegistration {
    let listener = "PLAINTEXT".to_owned();
    let endpoint = Endpoint { listener, host: format!("host{id}"), port, security_protocol: 0 };
    BrokerRegistration { endpoints: vec![endpoint], rack: None }
}

/// What a controller does.
impl World {
    /// Carries out an operation in the name of a broker.
    pub(super) fn run(&mut self, by: BrokerId, op: &StoreOp) -> Result<StoreReply, StoreFailure> {
        if let Some(version) = fence(op)
            && self.epoch.map(|(_, version)| version) != Some(version)
        {
            return Err(StoreFailure::ControllerMoved);
        }
        Ok(match op {
            StoreOp::ReadController => {
                self.arm(by, Watch::Controller);
                StoreReply::Controller(self.controller)
            }
            StoreOp::ReadControllerEpoch => StoreReply::ControllerEpoch(self.epoch),
            StoreOp::CreateControllerEpoch => {
                self.epoch.get_or_insert((ControllerEpoch(0), 0));
                StoreReply::Done
            }
            StoreOp::Elect { epoch, expected_version } => self.elect(by, *epoch, *expected_version),
            StoreOp::DeleteController { .. } => {
                self.set_controller(None);
                StoreReply::Done
            }
            StoreOp::ReadBrokers => {
                self.arm(by, Watch::Change(Change::Brokers));
                for id in self.brokers.keys().copied().collect::<Vec<_>>() {
                    self.arm(by, Watch::Change(Change::Broker(id)));
                }
                StoreReply::Brokers(self.brokers.clone())
            }
            StoreOp::ReadBroker(id) => {
                self.arm(by, Watch::Change(Change::Broker(*id)));
                StoreReply::Broker(self.brokers.get(id).cloned())
            }
            _ => self.run_on_topics(by, op),
        })
    }

    fn elect(&mut self, by: BrokerId, epoch: ControllerEpoch, expected_version: i32) -> StoreReply {
        if self.controller.is_some() || self.epoch.map(|(_, version)| version) != Some(expected_version) {
            return StoreReply::NotElected;
        }
        self.set_controller(Some(ControllerNode { broker_id: by, owner: self.session(by) }));
        self.epoch = Some((epoch, expected_version + 1));
        StoreReply::Elected { epoch_version: expected_version + 1 }
    }

    fn run_on_topics(&mut self, by: BrokerId, op: &StoreOp) -> StoreReply {
        match op {
            StoreOp::ReadTopicList => {
                self.arm(by, Watch::Change(Change::Topics));
                StoreReply::TopicList(self.topics.keys().cloned().collect())
            }
            StoreOp::ReadTopics(names) => {
                let known: Vec<_> =
                    names.iter().filter(|name| self.topics.contains_key(*name)).cloned().collect();
                known.iter().for_each(|name| self.arm(by, Watch::Change(Change::Topic(name.clone()))));
                StoreReply::Topics(
                    known.into_iter().map(|name| (name.clone(), self.topics[&name].clone())).collect(),
                )
            }
            StoreOp::AssignTopicIds { topics, .. } => {
                let mut written = BTreeMap::new();
                for (name, topic) in topics {
                    let topic = TopicAssignment { topic_id: Some(self.fresh_id()), ..topic.clone() };
                    self.set_topic(name, topic.clone());
                    written.insert(name.clone(), topic);
                }
                StoreReply::Topics(written)
            }
            StoreOp::WriteTopics { topics, .. } => {
                let known = topics.iter().filter(|(name, _)| self.topics.contains_key(*name));
                let known: BTreeMap<_, _> =
                    known.map(|(name, topic)| (name.clone(), topic.clone())).collect();
                known.iter().for_each(|(name, topic)| self.set_topic(name, topic.clone()));
                StoreReply::Topics(known)
            }
            StoreOp::ReadPartitionList(topic) => {
                let states = self.states.keys().filter(|partition| partition.topic == *topic);
                StoreReply::PartitionList(states.map(|partition| partition.partition).collect())
            }
            StoreOp::ReadPartitionStates(partitions) => {
                StoreReply::States(partitions.iter().map(|name| (name.clone(), self.read(name))).collect())
            }
            StoreOp::CreatePartitionStates { states, .. } => StoreReply::Created(
                states.iter().map(|(name, state)| (name.clone(), self.create(name, state))).collect(),
            ),
            StoreOp::WritePartitionStates { states, .. } => StoreReply::Written(
                states.iter().map(|(name, state)| (name.clone(), self.write(name, state))).collect(),
            ),
            StoreOp::ReadUncleanElection(topics) => {
                let read = |name: &TopicName| self.unclean.get(name).cloned().unwrap_or(Ok(None));
                StoreReply::UncleanElection(topics.iter().map(|name| (name.clone(), read(name))).collect())
            }
            other => self.administer(by, other),
        }
    }

    fn read(&self, partition: &TopicPartition) -> StateRead {
        self.states.get(partition).map_or(StateRead::Missing, |state| StateRead::State(state.clone()))
    }

    fn create(&mut self, partition: &TopicPartition, state: &LeaderAndIsr) -> StateCreated {
        check_written(partition, state);
        if self.states.contains_key(partition) {
            return StateCreated::Exists;
        }
        if !self.topics.contains_key(&partition.topic) {
            return StateCreated::Refused("no such znode".to_owned());
        }
        self.set_state(partition.clone(), state.clone());
        StateCreated::Created
    }

    fn write(&mut self, partition: &TopicPartition, state: &LeaderAndIsr) -> StateWritten {
        check_written(partition, state);
        match self.states.get(partition) {
            None => StateWritten::Refused("no such znode".to_owned()),
            Some(stored) if stored.partition_epoch != state.partition_epoch => StateWritten::BadVersion,
            Some(stored) => {
                check_successor(partition, stored, state);
                let is_clean = state.leader == BrokerId::NONE || stored.isr.contains(&state.leader);
                assert!(is_clean || !self.forbids_unclean_elections, "{partition}: an unclean leader");
                let partition_epoch = stored.partition_epoch + 1;
                self.set_state(partition.clone(), LeaderAndIsr { partition_epoch, ..state.clone() });
                StateWritten::Written { partition_epoch }
            }
        }
    }
}

/// What holds for everything that a controller writes.
fn check_written(partition: &TopicPartition, state: &LeaderAndIsr) {
    assert!(!state.isr.is_empty(), "{partition} has no in-sync replica");
    assert!(
        state.leader == BrokerId::NONE || state.isr.contains(&state.leader),
        "the leader of {partition} is not in sync"
    );
}

/// What holds for everything that a controller writes over something else.
fn check_successor(partition: &TopicPartition, stored: &LeaderAndIsr, state: &LeaderAndIsr) {
    assert!(state.leader_epoch >= stored.leader_epoch, "the leader epoch of {partition} falls");
    assert!(state.controller_epoch >= stored.controller_epoch, "the controller epoch of {partition} falls");
    let is_another = state.leader != stored.leader && state.leader != BrokerId::NONE;
    assert!(
        !is_another || state.leader_epoch > stored.leader_epoch,
        "{partition}: another leader, the same epoch"
    );
}

fn fence(op: &StoreOp) -> Option<i32> {
    match op {
        StoreOp::DeleteController { epoch_version }
        | StoreOp::DropNotifications { epoch_version, .. }
        | StoreOp::AssignTopicIds { epoch_version, .. }
        | StoreOp::WriteTopics { epoch_version, .. }
        | StoreOp::CreatePartitionStates { epoch_version, .. }
        | StoreOp::WriteFeatures { epoch_version, .. }
        | StoreOp::WriteProducerIds { epoch_version, .. }
        | StoreOp::DropDeletions { epoch_version, .. }
        | StoreOp::DeleteTopic { epoch_version, .. }
        | StoreOp::DropPreferredElection { epoch_version }
        | StoreOp::DropNotificationsRead { epoch_version, .. }
        | StoreOp::WritePartitionStates { epoch_version, .. } => Some(*epoch_version),
        _ => None,
    }
}
