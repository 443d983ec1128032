//! What the controller knows of the cluster while it is in office: brokers, topics with their assignments and leaders,
//! and the states of partitions and replicas. It is loaded from the store at the start of a term and dropped at its end.
//!
//! Three words for brokers: *registered* ones have a registration; those of them that asked for a controlled shutdown
//! are *shutting down*; the others are *live*. A replica is online if its broker is live and the log directory it lies
//! in works.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::types::{BrokerId, TopicId, TopicName, TopicPartition};

use super::election::Liveness;
use super::partition_state::PartitionState;
use super::replica_state::ReplicaState;
use super::values::{Broker, BrokerRegistration, LeaderAndIsr, ReplicaAssignment};

/// A partition on a broker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Replica {
    /// The partition.
    pub partition: TopicPartition,
    /// The broker.
    pub broker: BrokerId,
}

/// What is known of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Partition {
    /// Its replicas.
    pub assignment: ReplicaAssignment,
    /// Leader and in-sync replicas as last read or written; `None` if it never had a leader.
    pub leadership: Option<LeaderAndIsr>,
    /// Its state.
    pub state: PartitionState,
    /// The state of each replica that is, or was just, assigned.
    pub replicas: BTreeMap<BrokerId, ReplicaState>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Topic {
    id: Option<TopicId>,
    partitions: BTreeMap<i32, Partition>,
}

/// Topics under deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Deletions {
    /// Topics that are to be deleted.
    pub queued: BTreeSet<TopicName>,
    /// Those of them whose deletion has begun.
    pub started: BTreeSet<TopicName>,
    /// Those of them that cannot be deleted now.
    pub ineligible: BTreeSet<TopicName>,
}

/// The controller's picture of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context {
    brokers: BTreeMap<BrokerId, Broker>,
    shutting_down: BTreeSet<BrokerId>,
    topics: BTreeMap<TopicName, Topic>,
    names: BTreeMap<TopicId, TopicName>,
    /// The replicas that lie in a failed log directory, by broker.
    pub offline_dirs: BTreeMap<BrokerId, BTreeSet<TopicPartition>>,
    /// Topics under deletion.
    pub deletions: Deletions,
    /// The partitions that are being reassigned.
    pub reassigning: BTreeSet<TopicPartition>,
}

/// Brokers.
impl Context {
    /// The registered brokers.
    pub fn registered(&self) -> &BTreeMap<BrokerId, Broker> {
        &self.brokers
    }

    /// The brokers that are shutting down.
    pub fn shutting_down(&self) -> &BTreeSet<BrokerId> {
        &self.shutting_down
    }

    /// Whether a broker is registered and not shutting down.
    pub fn is_live(&self, broker: BrokerId) -> bool {
        self.brokers.contains_key(&broker) && !self.shutting_down.contains(&broker)
    }

    /// Adds a registered broker, or replaces what is known of it.
    pub fn add_broker(&mut self, id: BrokerId, broker: Broker) {
        self.brokers.insert(id, broker);
    }

    /// Removes a broker whose registration is gone, and with it the mark that it is shutting down.
    pub fn remove_broker(&mut self, id: BrokerId) {
        self.brokers.remove(&id);
        self.shutting_down.remove(&id);
    }

    /// Replaces what a registered broker tells of itself.
    pub fn update_broker(&mut self, id: BrokerId, registration: Arc<BrokerRegistration>) {
        if let Some(broker) = self.brokers.get_mut(&id) {
            broker.registration = registration;
        }
    }

    /// Marks a registered broker as shutting down, until its registration goes.
    pub fn mark_shutting_down(&mut self, id: BrokerId) {
        if self.brokers.contains_key(&id) {
            self.shutting_down.insert(id);
        }
    }

    /// How far a replica can be counted on.
    pub fn liveness(&self, broker: BrokerId, partition: &TopicPartition) -> Liveness {
        let is_dir_offline =
            self.offline_dirs.get(&broker).is_some_and(|offline| offline.contains(partition));
        if is_dir_offline || !self.brokers.contains_key(&broker) {
            Liveness::Offline
        } else if self.shutting_down.contains(&broker) {
            Liveness::ShuttingDown
        } else {
            Liveness::Online
        }
    }

    /// Whether a replica is online.
    pub fn is_online(&self, broker: BrokerId, partition: &TopicPartition) -> bool {
        self.liveness(broker, partition) == Liveness::Online
    }
}

/// Topics and partitions.
impl Context {
    /// The names of all topics.
    pub fn topics(&self) -> impl Iterator<Item = &TopicName> {
        self.topics.keys()
    }

    /// Whether there is such a topic.
    pub fn has_topic(&self, topic: &TopicName) -> bool {
        self.topics.contains_key(topic)
    }

    /// Adds a topic without partitions; one that is known stays as it is.
    pub fn add_topic(&mut self, topic: TopicName) {
        self.topics.entry(topic).or_default();
    }

    /// Forgets a topic and everything about it.
    pub fn remove_topic(&mut self, topic: &TopicName) {
        if let Some(id) = self.topics.remove(topic).and_then(|topic| topic.id) {
            self.names.remove(&id);
        }
        for topics in
            [&mut self.deletions.queued, &mut self.deletions.started, &mut self.deletions.ineligible]
        {
            topics.remove(topic);
        }
        self.reassigning.retain(|partition| partition.topic != *topic);
        self.offline_dirs.retain(|_, partitions| {
            partitions.retain(|partition| partition.topic != *topic);
            !partitions.is_empty()
        });
    }

    /// The id of a topic, if it has one.
    pub fn topic_id(&self, topic: &TopicName) -> Option<TopicId> {
        self.topics.get(topic)?.id
    }

    /// The topic of an id.
    pub fn topic_name(&self, id: TopicId) -> Option<&TopicName> {
        self.names.get(&id)
    }

    /// Sets the id of a topic that is known.
    pub fn set_topic_id(&mut self, topic: &TopicName, id: TopicId) {
        if let Some(known) = self.topics.get_mut(topic) {
            if let Some(old) = known.id.replace(id) {
                self.names.remove(&old);
            }
            self.names.insert(id, topic.clone());
        }
    }

    /// All partitions.
    pub fn partitions(&self) -> impl Iterator<Item = (TopicPartition, &Partition)> {
        self.topics.iter().flat_map(|(name, topic)| {
            topic.partitions.iter().map(|(index, partition)| {
                (TopicPartition { topic: name.clone(), partition: *index }, partition)
            })
        })
    }

    /// The partitions of one topic.
    pub fn partitions_of(&self, topic: &TopicName) -> impl Iterator<Item = (TopicPartition, &Partition)> {
        let known = self.topics.get_key_value(topic);
        known.into_iter().flat_map(|(name, topic)| {
            topic.partitions.iter().map(|(index, partition)| {
                (TopicPartition { topic: name.clone(), partition: *index }, partition)
            })
        })
    }

    /// One partition.
    pub fn partition(&self, partition: &TopicPartition) -> Option<&Partition> {
        self.topics.get(&partition.topic)?.partitions.get(&partition.partition)
    }

    /// The leadership of a partition, if it ever had one.
    pub fn leadership(&self, partition: &TopicPartition) -> Option<&LeaderAndIsr> {
        self.partition(partition)?.leadership.as_ref()
    }

    /// The state of a partition.
    pub fn partition_state(&self, partition: &TopicPartition) -> PartitionState {
        self.partition(partition).map(|known| known.state).unwrap_or_default()
    }

    /// The state of a replica.
    pub fn replica_state(&self, replica: &Replica) -> ReplicaState {
        let partition = self.partition(&replica.partition);
        partition.and_then(|known| known.replicas.get(&replica.broker)).copied().unwrap_or_default()
    }

    /// Sets the assignment of a partition; an unknown partition or topic becomes known.
    pub fn set_assignment(&mut self, partition: &TopicPartition, assignment: ReplicaAssignment) {
        let topic = self.topics.entry(partition.topic.clone()).or_default();
        topic.partitions.entry(partition.partition).or_default().assignment = assignment;
    }

    /// Sets the leadership of a known partition.
    pub fn set_leadership(&mut self, partition: &TopicPartition, leadership: LeaderAndIsr) {
        if let Some(known) = self.partition_mut(partition) {
            known.leadership = Some(leadership);
        }
    }

    /// Sets the state of a known partition.
    pub fn set_partition_state(&mut self, partition: &TopicPartition, state: PartitionState) {
        if let Some(known) = self.partition_mut(partition) {
            known.state = state;
        }
    }

    /// Sets the state of a replica of a known partition; [`ReplicaState::NonExistent`] is what no entry means.
    pub fn set_replica_state(&mut self, replica: &Replica, state: ReplicaState) {
        if let Some(known) = self.partition_mut(&replica.partition) {
            if state == ReplicaState::NonExistent {
                known.replicas.remove(&replica.broker);
            } else {
                known.replicas.insert(replica.broker, state);
            }
        }
    }

    fn partition_mut(&mut self, partition: &TopicPartition) -> Option<&mut Partition> {
        self.topics.get_mut(&partition.topic)?.partitions.get_mut(&partition.partition)
    }

    /// Whether a topic is to be deleted.
    pub fn is_queued_for_deletion(&self, topic: &TopicName) -> bool {
        self.deletions.queued.contains(topic)
    }
}

/// Selections, in the order of partitions.
impl Context {
    /// The replicas on any of `brokers`.
    pub fn replicas_on(&self, brokers: &BTreeSet<BrokerId>) -> Vec<Replica> {
        let assigned = self.partitions().flat_map(|(partition, known)| replicas_of(partition, known));
        assigned.filter(|replica| brokers.contains(&replica.broker)).collect()
    }

    /// The replicas of `partitions`.
    pub fn replicas_of(&self, partitions: &[TopicPartition]) -> Vec<Replica> {
        let known = partitions.iter().filter_map(|name| Some((name.clone(), self.partition(name)?)));
        known.flat_map(|(partition, known)| replicas_of(partition, known)).collect()
    }

    /// The partitions for which `keep` holds.
    pub fn select(&self, keep: impl Fn(&TopicPartition, &Partition) -> bool) -> Vec<TopicPartition> {
        let kept = self.partitions().filter(|(name, partition)| keep(name, partition));
        kept.map(|(name, _)| name).collect()
    }
}

fn replicas_of(partition: TopicPartition, known: &Partition) -> impl Iterator<Item = Replica> {
    let brokers = known.assignment.replicas.iter();
    brokers.map(move |broker| Replica { partition: partition.clone(), broker: *broker })
}

impl Context {
    /// Asserts that the parts fit together.
    pub fn check(&self) {
        assert!(
            self.shutting_down.iter().all(|id| self.brokers.contains_key(id)),
            "a broker shuts down unregistered"
        );
        let named = |(id, name): (&TopicId, &TopicName)| self.topic_id(name) == Some(*id);
        assert!(self.names.iter().all(named), "a topic id names a topic that has another");
        for topics in [&self.deletions.started, &self.deletions.ineligible] {
            assert!(topics.is_subset(&self.deletions.queued), "a topic is deleted that is not queued");
        }
    }
}
