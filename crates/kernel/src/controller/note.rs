//! What the controller tells of its work, each piece with its cause, so that every change of a leader or of an epoch
//! can be traced to the event that led to it.

use std::fmt;

use wire::types::{BrokerId, ControllerEpoch, TopicName, TopicPartition};

use super::partition_state::PartitionState;
use super::replica_state::ReplicaState;
use super::values::LeaderAndIsr;

/// The event that is being worked on, or none: number 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cause {
    /// Events are numbered from 1 in the order in which their turn came.
    pub number: u64,
    /// What happened.
    pub event: String,
    /// The number of the event that led to this one, if the controller raised it itself.
    pub parent: Option<u64>,
}

/// Something worth a line in the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// Why.
    pub cause: Cause,
    /// The epoch of the term in which it happened; 0 out of office.
    pub controller_epoch: ControllerEpoch,
    /// What.
    pub what: What,
}

/// How much a note concerns the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Of use when something is traced.
    Trace,
    /// In the course of things.
    Info,
    /// Not as it should be, and dealt with.
    Warn,
    /// Something could not be done.
    Error,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// This broker became controller.
    TookOffice,
    /// This broker is no longer controller.
    LeftOffice {
        /// Why.
        reason: String,
    },
    /// Leader or in-sync replicas of a partition were written.
    Leadership {
        /// The partition.
        partition: TopicPartition,
        /// As the store had it; `None` for a new partition.
        before: Option<LeaderAndIsr>,
        /// As it is now.
        after: LeaderAndIsr,
    },
    /// A partition changed its state.
    Partition {
        /// The partition.
        partition: TopicPartition,
        /// Before.
        from: PartitionState,
        /// Now.
        to: PartitionState,
    },
    /// A replica changed its state.
    Replica {
        /// The partition.
        partition: TopicPartition,
        /// The broker.
        broker: BrokerId,
        /// Before.
        from: ReplicaState,
        /// Now.
        to: ReplicaState,
    },
    /// A partition did not change its state.
    PartitionRefused {
        /// The partition.
        partition: TopicPartition,
        /// Its state.
        from: PartitionState,
        /// The state that was wanted.
        to: PartitionState,
        /// Why.
        reason: Reason,
    },
    /// A replica did not change its state.
    ReplicaRefused {
        /// The partition.
        partition: TopicPartition,
        /// The broker.
        broker: BrokerId,
        /// Its state.
        from: ReplicaState,
        /// The state that was wanted.
        to: ReplicaState,
        /// Why.
        reason: Reason,
    },
    /// The state of a partition cannot be read; it counts as a partition without one.
    StateUnreadable {
        /// The partition.
        partition: TopicPartition,
        /// Why.
        reason: String,
    },
    /// A replica came online that its partition's assignment does not list; it was appended.
    UnassignedReplica {
        /// The partition.
        partition: TopicPartition,
        /// The broker.
        broker: BrokerId,
    },
    /// The znode of a topic had lost the topic's id; it was written back (KAFKA-14190).
    TopicIdRestored {
        /// The topic.
        topic: TopicName,
    },
    /// Partitions were added to a topic that is to be deleted; the addition is undone (KAFKA-6612).
    PartitionsRemoved {
        /// The topic.
        topic: TopicName,
    },
    /// Somebody wants a topic deleted, and `delete.topic.enable` is false.
    DeletionDisabled {
        /// The topic.
        topic: TopicName,
    },
    /// A topic is to be deleted and cannot be now.
    DeletionHalted {
        /// The topic.
        topic: TopicName,
        /// Why.
        why: Halt,
    },
    /// A topic was deleted.
    TopicDeleted {
        /// The topic.
        topic: TopicName,
    },
    /// A broker tells that a log directory failed.
    LogDirFailed {
        /// The broker.
        broker: BrokerId,
    },
    /// There are no more producer ids.
    ProducerIdsExhausted,
    /// A broker refused a control request as a whole. Nothing follows from it: what led to it is followed by an event of
    /// the store.
    ResponseError {
        /// The broker.
        broker: BrokerId,
        /// The error, by Kafka's name.
        error: &'static str,
    },
    /// The store failed in a way that leaves its state unknown.
    StoreFailed {
        /// How.
        reason: String,
    },
}

/// Why a state was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The table of transitions does not allow it.
    Illegal,
    /// The replica leads the partition, so it is not new.
    IsLeader,
    /// The partition has no state in the store.
    NoState,
    /// The stored state was written by a later controller.
    NewerControllerEpoch(ControllerEpoch),
    /// The stored state cannot be read.
    Unreadable(String),
    /// The store refuses the write.
    Refused(String),
    /// A state exists already, and it is not what was to be created.
    StateExists,
    /// No replica is online.
    NoReplicaOnline,
    /// No replica may become leader.
    NoEligibleLeader,
    /// The topic's configs cannot be read, so that an unclean election cannot be decided.
    ConfigUnreadable(String),
}

/// Why a topic cannot be deleted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Halt {
    /// A replica is offline: its broker is gone or stopping, or its log directory failed.
    OfflineReplicas,
    /// One of its partitions is being reassigned.
    Reassignment,
    /// A broker could not delete a replica.
    Failure(BrokerId),
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfflineReplicas => write!(f, "a replica is offline; it goes on when its broker starts"),
            Self::Reassignment => {
                write!(f, "a partition is being reassigned; it goes on when that is complete")
            }
            Self::Failure(broker) => {
                write!(
                    f,
                    "broker {broker} could not delete a replica; it goes on when that broker starts anew"
                )
            }
        }
    }
}

impl What {
    /// How much it concerns the operator.
    pub fn level(&self) -> Level {
        match self {
            Self::Partition { .. } | Self::Replica { .. } => Level::Trace,
            Self::TookOffice
            | Self::LeftOffice { .. }
            | Self::Leadership { .. }
            | Self::DeletionDisabled { .. }
            | Self::DeletionHalted { .. }
            | Self::TopicDeleted { .. } => Level::Info,
            Self::TopicIdRestored { .. }
            | Self::PartitionsRemoved { .. }
            | Self::ResponseError { .. }
            | Self::LogDirFailed { .. } => Level::Warn,
            Self::PartitionRefused { .. }
            | Self::ReplicaRefused { .. }
            | Self::StateUnreadable { .. }
            | Self::UnassignedReplica { .. }
            | Self::ProducerIdsExhausted
            | Self::StoreFailed { .. } => Level::Error,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TookOffice => write!(f, "this broker is the controller"),
            Self::LeftOffice { reason } => write!(f, "this broker is no longer the controller: {reason}"),
            Self::Leadership { partition, before: Some(before), after } => {
                write!(f, "{partition}: {before} -> {after}")
            }
            Self::Leadership { partition, before: None, after } => write!(f, "{partition}: {after}"),
            Self::Partition { partition, from, to } => {
                write!(f, "partition {partition}: {} -> {}", from.name(), to.name())
            }
            Self::Replica { partition, broker, from, to } => {
                write!(f, "replica {broker} of {partition}: {} -> {}", from.name(), to.name())
            }
            Self::PartitionRefused { partition, from, to, reason } => {
                write!(f, "partition {partition} {}: ", Staying(from.name(), to.name()))?;
                fmt_reason(f, reason, to.legal_previous().iter().map(|state| state.name()))
            }
            Self::ReplicaRefused { partition, broker, from, to, reason } => {
                write!(f, "replica {broker} of {partition} {}: ", Staying(from.name(), to.name()))?;
                fmt_reason(f, reason, to.legal_previous().iter().map(|state| state.name()))
            }
            Self::StateUnreadable { partition, reason } => {
                write!(f, "the state of {partition} cannot be read: {reason}")
            }
            Self::UnassignedReplica { partition, broker } => {
                write!(f, "replica {broker} is not in the assignment of {partition} and was appended to it")
            }
            Self::TopicIdRestored { topic } => {
                write!(f, "the znode of topic {topic} had lost the topic's id, which was written back")
            }
            Self::PartitionsRemoved { topic } => {
                write!(f, "topic {topic} is to be deleted: the partitions that were added to it are removed")
            }
            Self::DeletionDisabled { topic } => {
                write!(f, "topic {topic} is not deleted: delete.topic.enable is false")
            }
            Self::DeletionHalted { topic, why } => write!(f, "the deletion of topic {topic} waits: {why}"),
            Self::TopicDeleted { topic } => write!(f, "topic {topic} was deleted"),
            Self::LogDirFailed { broker } => {
                write!(
                    f,
                    "broker {broker} tells that a log directory failed; it is asked which replicas it lost"
                )
            }
            Self::ProducerIdsExhausted => write!(f, "all producer ids have been handed out"),
            Self::ResponseError { broker, error } => {
                write!(f, "broker {broker} refused a control request with {error}")
            }
            Self::StoreFailed { reason } => write!(f, "the store failed: {reason}"),
        }
    }
}

/// What did not become of a state: an election in a partition that is online leaves it online.
struct Staying(&'static str, &'static str);

impl fmt::Display for Staying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(from, to) = self;
        if from == to { write!(f, "stays {from} as it is") } else { write!(f, "stays {from}, not {to}") }
    }
}

fn fmt_reason<'a>(
    f: &mut fmt::Formatter<'_>,
    reason: &Reason,
    legal: impl Iterator<Item = &'a str>,
) -> fmt::Result {
    match reason {
        Reason::Illegal => {
            write!(f, "it is reached only from")?;
            for (at, state) in legal.enumerate() {
                write!(f, "{} {state}", if at == 0 { "" } else { "," })?;
            }
            Ok(())
        }
        Reason::IsLeader => write!(f, "it is the leader"),
        Reason::NoState => write!(f, "its state is missing in the store"),
        Reason::NewerControllerEpoch(epoch) => {
            write!(f, "a controller of the later epoch {epoch} wrote its state")
        }
        Reason::Unreadable(reason) => write!(f, "its state cannot be read: {reason}"),
        Reason::Refused(reason) => write!(f, "the store refuses the write: {reason}"),
        Reason::StateExists => write!(f, "another state exists already"),
        Reason::NoReplicaOnline => write!(f, "no replica is online"),
        Reason::NoEligibleLeader => write!(f, "no replica may become leader"),
        Reason::ConfigUnreadable(reason) => {
            write!(f, "the configs of its topic cannot be read: {reason}")
        }
    }
}
