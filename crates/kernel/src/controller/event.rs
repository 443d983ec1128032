//! What the controller is told.
//!
//! Only the end of a store operation and a few events that cannot wait are looked at when they come; a [`Change`] or a
//! request of a broker or client waits for its turn, and a change is read from the store when its turn comes.

use std::collections::BTreeMap;

use wire::types::{BrokerEpoch, BrokerId, LeaderEpoch, TopicName};

use super::elect_leaders::ElectLeadersRequest;
use super::features::FeatureUpdate;
use super::store::{OpId, StoreFailure, StoreReply};
use super::values::{ControlResponse, LeaderRecoveryState};
use crate::fetch::session::TopicRef;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A session with the store lives and this broker is registered under it: the broker may become controller. Comes
    /// at the start and after each expiry.
    SessionStarted {
        /// The id of the session; znodes owned by it are ours.
        session: i64,
    },
    /// The session is over; nothing that was planned under it is done any more.
    SessionExpired,
    /// The broker stops.
    Shutdown,
    /// The time of [`deadline`](super::Controller::deadline) has come.
    Tick,
    /// `/controller` was created, written or deleted.
    ControllerNodeChanged,
    /// Something else that is watched changed.
    Changed(Change),
    /// The broker's default of `unclean.leader.election.enable` was set.
    UncleanElectionDefault(bool),
    /// A broker or client asks for something.
    Request {
        /// Names the request and its answer.
        id: RequestId,
        /// What is asked.
        request: ApiRequest,
    },
    /// A broker answered a control request.
    Responded {
        /// The broker.
        broker: BrokerId,
        /// Its answer.
        response: ControlResponse,
    },
    /// A store operation ended.
    StoreDone {
        /// Which.
        id: OpId,
        /// How.
        result: Result<StoreReply, StoreFailure>,
    },
}

/// Something that changed, and is read when its turn comes; several changes of the same thing that wait are one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// The children of `/brokers/ids`.
    Brokers,
    /// The data of a registration.
    Broker(BrokerId),
    /// The children of `/brokers/topics`.
    Topics,
    /// The data of a topic.
    Topic(TopicName),
    /// The children of `/admin/delete_topics`.
    Deletions,
    /// The children of `/log_dir_event_notification`.
    LogDirEvents,
    /// The children of `/isr_change_notification`.
    IsrChanges,
    /// `/admin/preferred_replica_election` was created.
    PreferredElection,
    /// Unclean elections were allowed: for one topic, or by default.
    UncleanElection(Option<TopicName>),
}

/// Names a request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What is asked of the controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ApiRequest {
    /// A leader changes its in-sync replicas.
    AlterPartition(AlterPartitionRequest),
    /// A broker is about to stop.
    ControlledShutdown {
        /// The broker.
        broker: BrokerId,
        /// Its epoch, -1 from brokers before KIP-380.
        broker_epoch: BrokerEpoch,
    },
    /// Elect leaders.
    ElectLeaders(ElectLeadersRequest),
    /// A broker wants a block of producer ids.
    AllocateProducerIds {
        /// The broker.
        broker: BrokerId,
        /// Its epoch.
        broker_epoch: BrokerEpoch,
    },
    /// Change finalized features.
    UpdateFeatures(Vec<FeatureUpdate>),
}

/// AlterPartition (KIP-497).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterPartitionRequest {
    /// The version of the request: 2 and later name topics by id, and know INELIGIBLE_REPLICA.
    pub version: i16,
    /// The leader that asks.
    pub broker: BrokerId,
    /// Its epoch.
    pub broker_epoch: BrokerEpoch,
    /// The partitions, topic by topic.
    pub partitions: Vec<AlterPartition>,
}

/// One partition of an AlterPartition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterPartition {
    /// The topic.
    pub topic: TopicRef,
    /// The index of the partition.
    pub partition: i32,
    /// The epoch of the leader that asks.
    pub leader_epoch: LeaderEpoch,
    /// The in-sync replicas that it wants.
    pub isr: Vec<BrokerId>,
    /// The registrations by which it knows members of the ISR; those that are not told are missing.
    pub broker_epochs: BTreeMap<BrokerId, BrokerEpoch>,
    /// The recovery state that it wants.
    pub recovery_state: LeaderRecoveryState,
    /// The partition epoch that it knows.
    pub partition_epoch: i32,
}
