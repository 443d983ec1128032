//! The vocabulary of the controller: what stands in the znodes, what it sends to brokers and what they answer, as plain
//! values. `requests` knows how each looks on the wire of a given release, the driver how each looks as a znode.
//!
//! The version of a partition's state znode is its partition epoch; the czxid of a broker's registration is its broker
//! epoch (KIP-380); an epoch of leadership is written with the epoch of the controller that decided it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use wire::error_code::ErrorCode;
use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, TopicId, TopicName, TopicPartition};

/// The leader that brokers are told of while a topic is deleted.
pub const LEADER_DURING_DELETE: BrokerId = BrokerId(-2);

/// The leader epoch in a StopReplica for a topic that is queued for deletion: it fences nothing.
pub const EPOCH_DURING_DELETE: LeaderEpoch = LeaderEpoch(-2);

/// The partition epoch of a state znode that was just created.
pub const INITIAL_PARTITION_EPOCH: i32 = 0;

/// Whether a leader still recovers from an unclean election (KIP-704).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaderRecoveryState {
    /// The log of the leader is what was committed.
    #[default]
    Recovered,
    /// The leader was elected although it was not in sync.
    Recovering,
}

impl LeaderRecoveryState {
    /// The number on the wire and in the znode.
    pub fn code(self) -> i8 {
        match self {
            Self::Recovered => 0,
            Self::Recovering => 1,
        }
    }

    /// The state with that number.
    pub fn from_code(code: i8) -> Option<Self> {
        match code {
            0 => Some(Self::Recovered),
            1 => Some(Self::Recovering),
            _ => None,
        }
    }
}

/// Who leads a partition and who is in sync, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaderAndIsr {
    /// The leader; [`BrokerId::NONE`] if there is none.
    pub leader: BrokerId,
    /// The number of its leadership, from 0.
    pub leader_epoch: LeaderEpoch,
    /// The in-sync replicas; never empty in what this controller writes.
    pub isr: Vec<BrokerId>,
    /// Whether the leader recovers from an unclean election.
    pub recovery_state: LeaderRecoveryState,
    /// The epoch of the controller that decided this, not necessarily the present one.
    pub controller_epoch: ControllerEpoch,
    /// The version of the znode.
    pub partition_epoch: i32,
}

impl fmt::Display for LeaderAndIsr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { leader, leader_epoch, isr, controller_epoch, partition_epoch, .. } = self;
        write!(f, "leader {leader} epoch {leader_epoch} isr {isr:?} by {controller_epoch}")?;
        if self.recovery_state == LeaderRecoveryState::Recovering {
            write!(f, " recovering")?;
        }
        write!(f, " version {partition_epoch}")
    }
}

/// The replicas of a partition; a reassignment adds and removes some of them (KIP-455).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReplicaAssignment {
    /// All replicas; the first is the preferred leader.
    pub replicas: Vec<BrokerId>,
    /// Those of them that a reassignment is adding.
    pub adding: Vec<BrokerId>,
    /// Those of them that a reassignment is removing.
    pub removing: Vec<BrokerId>,
}

impl ReplicaAssignment {
    /// An assignment that nothing is changing.
    pub fn of(replicas: Vec<BrokerId>) -> Self {
        Self { replicas, ..Self::default() }
    }

    /// Whether a reassignment is under way.
    pub fn is_being_reassigned(&self) -> bool {
        !self.adding.is_empty() || !self.removing.is_empty()
    }

    /// The replicas as they will be when the reassignment is complete.
    pub fn target(&self) -> Vec<BrokerId> {
        self.replicas.iter().filter(|id| !self.removing.contains(id)).copied().collect()
    }

    /// The replicas as they were before the reassignment.
    pub fn origin(&self) -> Vec<BrokerId> {
        self.replicas.iter().filter(|id| !self.adding.contains(id)).copied().collect()
    }
}

/// An advertised address of a broker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The name of the listener.
    pub listener: String,
    /// The host name or IP, without brackets.
    pub host: String,
    /// The port.
    pub port: i32,
    /// How the listener is secured, by its number on the wire: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
}

/// What a broker tells of itself in its registration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BrokerRegistration {
    /// Its advertised addresses.
    pub endpoints: Vec<Endpoint>,
    /// `broker.rack`.
    pub rack: Option<String>,
}

impl BrokerRegistration {
    /// The address under the name of a listener.
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.listener == listener)
    }
}

/// A registered broker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broker {
    /// The czxid of its registration.
    pub epoch: BrokerEpoch,
    /// What it tells of itself.
    pub registration: Arc<BrokerRegistration>,
}

/// A topic znode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TopicAssignment {
    /// The id; `None` until a controller of 2.8 or later gives it one (KIP-516).
    pub topic_id: Option<TopicId>,
    /// The replicas of each partition, by its index.
    pub partitions: BTreeMap<i32, ReplicaAssignment>,
}

/// What one transition tells one broker. The epochs are those of the moment at which it was made: a request that waits
/// in a queue does not follow later changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ControlRequest {
    /// Lead or follow these partitions.
    LeaderAndIsr(LeaderAndIsrRequest),
    /// This is the cluster.
    UpdateMetadata(UpdateMetadataRequest),
    /// Stop these replicas.
    StopReplica(StopReplicaRequest),
}

impl ControlRequest {
    /// The broker epoch that the request carries; a broker that was started anew since refuses it.
    pub fn broker_epoch(&self) -> BrokerEpoch {
        match self {
            Self::LeaderAndIsr(request) => request.sender.broker_epoch,
            Self::UpdateMetadata(request) => request.sender.broker_epoch,
            Self::StopReplica(request) => request.sender.broker_epoch,
        }
    }
}

/// Who sends a control request, and to which run of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ControlSender {
    /// The controller's broker id.
    pub controller_id: BrokerId,
    /// Its epoch.
    pub controller_epoch: ControllerEpoch,
    /// The epoch of the broker that the request goes to.
    pub broker_epoch: BrokerEpoch,
}

/// LeaderAndIsr to one broker. Its type is always "unknown" (0): full requests were never used by a controller in
/// ZooKeeper mode, and a receiver would take logs that are not listed for strays (KAFKA-15605).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaderAndIsrRequest {
    /// Controller and epochs.
    pub sender: ControlSender,
    /// The partitions; the broker is a replica of each.
    pub partitions: BTreeMap<TopicPartition, LeaderAndIsrPartition>,
    /// The ids of the topics that have one; on the wire the zero id stands for the others.
    pub topic_ids: BTreeMap<TopicName, TopicId>,
    /// The registered brokers that lead one of the partitions.
    pub live_leaders: Vec<LiveLeader>,
}

/// One partition of a LeaderAndIsr.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaderAndIsrPartition {
    /// Leader, in-sync replicas and epochs.
    pub state: LeaderAndIsr,
    /// The replicas.
    pub assignment: ReplicaAssignment,
    /// Whether the broker gets the partition for the first time, and may place it on any of its log directories.
    pub is_new: bool,
}

/// Where a leader is reached by other brokers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LiveLeader {
    /// Its id.
    pub id: BrokerId,
    /// The host of its inter-broker listener.
    pub host: String,
    /// The port of its inter-broker listener.
    pub port: i32,
}

/// UpdateMetadata to one broker. The body is the same for all receivers of one transition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpdateMetadataRequest {
    /// Controller and epochs.
    pub sender: ControlSender,
    /// What all receivers are told.
    pub body: Arc<UpdateMetadataBody>,
}

/// All brokers, and the partitions that changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UpdateMetadataBody {
    /// The partitions; those of a topic that is being deleted have [`LEADER_DURING_DELETE`].
    pub partitions: BTreeMap<TopicPartition, UpdateMetadataPartition>,
    /// The ids of the topics that have one; on the wire the zero id stands for the others.
    pub topic_ids: BTreeMap<TopicName, TopicId>,
    /// Every broker that is live or shutting down: receivers replace what they knew.
    pub live_brokers: BTreeMap<BrokerId, Arc<BrokerRegistration>>,
}

/// One partition of an UpdateMetadata.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpdateMetadataPartition {
    /// Leader, in-sync replicas and epochs.
    pub state: LeaderAndIsr,
    /// The assigned replicas.
    pub replicas: Vec<BrokerId>,
    /// Those of them that are not online.
    pub offline_replicas: Vec<BrokerId>,
}

/// StopReplica to one broker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StopReplicaRequest {
    /// Controller and epochs.
    pub sender: ControlSender,
    /// The replicas to stop.
    pub partitions: BTreeMap<TopicPartition, StopReplicaPartition>,
}

/// One partition of a StopReplica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StopReplicaPartition {
    /// A broker that knows a later epoch keeps the replica; [`LeaderEpoch::UNKNOWN`] and [`EPOCH_DURING_DELETE`] fence
    /// nothing (KIP-570).
    pub leader_epoch: LeaderEpoch,
    /// Whether its log is deleted too.
    pub delete: bool,
}

/// What a broker answers to a control request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ControlResponse {
    /// To LeaderAndIsr.
    LeaderAndIsr {
        /// The error of the whole request.
        error: ErrorCode,
        /// The outcome for each partition.
        partitions: BTreeMap<TopicPartition, ErrorCode>,
    },
    /// To UpdateMetadata.
    UpdateMetadata {
        /// The error of the request.
        error: ErrorCode,
    },
    /// To StopReplica.
    StopReplica {
        /// The error of the whole request.
        error: ErrorCode,
        /// The outcome for each partition whose log was to be deleted; one that was only stopped never counts as deleted
        /// (KAFKA-9946).
        deleted: BTreeMap<TopicPartition, ErrorCode>,
    },
}
