//! What the controller asks of the cluster's store, as typed values. The driver knows paths, JSON and versions of
//! formats; it pipelines what one operation names and reports the end of each operation once.
//!
//! Reads arm the watch of what they read: data watches of topics, registrations, `/controller` (also when it is absent)
//! and child watches of lists. Writes that carry an `epoch_version` are fenced: each is one `multi` with a check of that
//! version of `/controller_epoch`, and a check that fails ends the operation with [`StoreFailure::ControllerMoved`].
//! Requests that were lost with a connection are repeated by the driver; what is then ambiguous is settled here.

use std::collections::{BTreeMap, BTreeSet};

use wire::types::{BrokerId, ControllerEpoch, TopicName, TopicPartition};

use super::producer_ids::ProducerIdBlock;
use super::values::{Broker, LeaderAndIsr, TopicAssignment};

/// How many partition states the driver writes in one `multi` at most. One that meets a bad version is split.
pub const MAX_WRITES_PER_MULTI: usize = 100;

/// Names an operation and its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreOp {
    /// Reads `/controller`: [`StoreReply::Controller`].
    ReadController,
    /// Reads `/controller_epoch`: [`StoreReply::ControllerEpoch`].
    ReadControllerEpoch,
    /// Creates `/controller_epoch` with 0; that it exists already is no failure: [`StoreReply::Done`].
    CreateControllerEpoch,
    /// Creates `/controller` in the name of this session and sets `/controller_epoch`, in one `multi`:
    /// [`StoreReply::Elected`] or [`StoreReply::NotElected`].
    Elect {
        /// The epoch of the new term.
        epoch: ControllerEpoch,
        /// The version that `/controller_epoch` must have.
        expected_version: i32,
    },
    /// Deletes `/controller`, fenced: [`StoreReply::Done`].
    DeleteController {
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
    /// Reads `/feature`: [`StoreReply::Features`].
    ReadFeatures,
    /// Writes `/feature`, over any version, or creates it, fenced: [`StoreReply::Done`].
    WriteFeatures {
        /// The value.
        node: FeatureNode,
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
    /// Deletes all notifications of a kind, fenced, and arms the watch of their list: [`StoreReply::Done`].
    DropNotifications {
        /// Which.
        kind: NotificationKind,
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
    /// Reads all registrations as one fresh picture: [`StoreReply::Brokers`].
    ReadBrokers,
    /// Reads one registration: [`StoreReply::Broker`].
    ReadBroker(BrokerId),
    /// Lists the topics: [`StoreReply::TopicList`].
    ReadTopicList,
    /// Reads topic znodes: [`StoreReply::Topics`].
    ReadTopics(BTreeSet<TopicName>),
    /// Gives each topic a fresh random id by writing its znode, fenced: [`StoreReply::Topics`], as written.
    AssignTopicIds {
        /// The topics as read, none of which has an id.
        topics: BTreeMap<TopicName, TopicAssignment>,
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
    /// Writes topic znodes over any version, fenced: [`StoreReply::Topics`], those that were written.
    WriteTopics {
        /// The topics.
        topics: BTreeMap<TopicName, TopicAssignment>,
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
    /// Lists the partitions of a topic that have a znode: [`StoreReply::PartitionList`].
    ReadPartitionList(TopicName),
    /// Reads the states of partitions, without a watch: [`StoreReply::States`].
    ReadPartitionStates(Vec<TopicPartition>),
    /// Creates the states of new partitions, and their parents where these are missing, fenced:
    /// [`StoreReply::Created`].
    CreatePartitionStates {
        /// The states.
        states: BTreeMap<TopicPartition, LeaderAndIsr>,
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
    /// Writes the states of partitions, each over the partition epoch that it carries, fenced:
    /// [`StoreReply::Written`].
    WritePartitionStates {
        /// The states.
        states: BTreeMap<TopicPartition, LeaderAndIsr>,
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
    /// Reads what topics say of `unclean.leader.election.enable`: [`StoreReply::UncleanElection`].
    ReadUncleanElection(BTreeSet<TopicName>),
    /// Lists the topics that are to be deleted: [`StoreReply::TopicList`].
    ReadDeletions,
    /// Deletes requests for the deletion of topics, fenced; one that is gone is no failure: [`StoreReply::Done`].
    DropDeletions {
        /// The topics.
        topics: BTreeSet<TopicName>,
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
    /// Deletes the znodes of a topic, fenced: first what is below it; then itself, its configs and the request for its
    /// deletion in one `multi`, so that a topic of the same name that comes at once keeps its own. What is gone already
    /// is no failure: [`StoreReply::Done`].
    DeleteTopic {
        /// The topic.
        topic: TopicName,
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
    /// Reads `/admin/preferred_replica_election`, and arms its watch also when it is absent:
    /// [`StoreReply::PreferredElection`].
    ReadPreferredElection,
    /// Deletes it, fenced; that it is gone is no failure: [`StoreReply::Done`].
    DropPreferredElection {
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
    /// Reads the last block of producer ids: [`StoreReply::ProducerIds`].
    ReadProducerIds,
    /// Writes a block of producer ids over a version, fenced: [`StoreReply::Done`] or [`StoreReply::BadVersion`].
    WriteProducerIds {
        /// The block.
        block: ProducerIdBlock,
        /// The version that the znode must have.
        version: i32,
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
    /// Reads the notifications of failed log directories, and arms the watch of their list:
    /// [`StoreReply::LogDirEvents`].
    ReadLogDirEvents,
    /// Reads the notifications of changed in-sync replicas, and arms the watch of their list:
    /// [`StoreReply::IsrChanges`].
    ReadIsrChanges,
    /// Deletes notifications that were read, fenced; one that is gone is no failure: [`StoreReply::Done`].
    DropNotificationsRead {
        /// Of which kind.
        kind: NotificationKind,
        /// The names of their znodes.
        names: BTreeSet<String>,
        /// The version of `/controller_epoch`.
        epoch_version: i32,
    },
}

/// The end of an operation that could be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreReply {
    /// It was done.
    Done,
    /// Who holds `/controller`, if anybody.
    Controller(Option<ControllerNode>),
    /// The controller epoch and the version of its znode; `None` if there is no such znode.
    ControllerEpoch(Option<(ControllerEpoch, i32)>),
    /// This broker was elected; the new version of `/controller_epoch`.
    Elected {
        /// The version.
        epoch_version: i32,
    },
    /// `/controller` exists or `/controller_epoch` has another version: another broker was faster, or an earlier answer
    /// was lost.
    NotElected,
    /// The value of `/feature`, if it exists.
    Features(Option<FeatureNode>),
    /// Every registered broker.
    Brokers(BTreeMap<BrokerId, Broker>),
    /// One registered broker.
    Broker(Option<Broker>),
    /// The names of topics.
    TopicList(BTreeSet<TopicName>),
    /// The topics that exist and can be read.
    Topics(BTreeMap<TopicName, TopicAssignment>),
    /// The partitions that have a znode.
    PartitionList(BTreeSet<i32>),
    /// For each partition.
    States(BTreeMap<TopicPartition, StateRead>),
    /// For each partition.
    Created(BTreeMap<TopicPartition, StateCreated>),
    /// For each partition.
    Written(BTreeMap<TopicPartition, StateWritten>),
    /// For each topic: its override, if it has one, or why its configs cannot be read.
    UncleanElection(BTreeMap<TopicName, Result<Option<bool>, String>>),
    /// The partitions for which preferred leaders are asked for; `None` if there is no such znode, empty if it cannot be
    /// read.
    PreferredElection(Option<BTreeSet<TopicPartition>>),
    /// The last block of producer ids.
    ProducerIds {
        /// Its last id, inclusive; `None` if there was none yet.
        last: Option<i64>,
        /// The version of the znode.
        version: i32,
    },
    /// The znode has another version; nothing was done.
    BadVersion,
    /// For each notification, by the name of its znode: the broker, if it can be read.
    LogDirEvents(BTreeMap<String, Option<BrokerId>>),
    /// For each notification, by the name of its znode: the partitions, none if it cannot be read.
    IsrChanges(BTreeMap<String, BTreeSet<TopicPartition>>),
}

/// Why an operation ended without a reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreFailure {
    /// `/controller_epoch` has another version: another controller was elected.
    ControllerMoved,
    /// The session is over.
    SessionLost,
    /// Anything else; what was done is unknown.
    Unexpected(String),
}

/// The value of `/controller`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ControllerNode {
    /// The broker that was elected.
    pub broker_id: BrokerId,
    /// The session that the znode lives by; 0 if it is persistent, as a KRaft controller's is (KIP-866).
    pub owner: i64,
}

/// The value of `/feature`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FeatureNode {
    /// 1, or 2 from 3.3 on.
    pub format: i32,
    /// Whether the feature system is on.
    pub is_enabled: bool,
    /// The highest finalized level of each feature; none in a cluster that was always in ZooKeeper mode. Format 1 has the
    /// lowest level too, which is 1.
    pub features: BTreeMap<String, i16>,
}

/// The kinds of notifications that brokers leave for the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotificationKind {
    /// A log directory failed (KIP-112).
    LogDirEvent,
    /// A leader below 2.7 changed its in-sync replicas by itself.
    IsrChange,
}

/// What was read of a partition's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StateRead {
    /// The state.
    State(LeaderAndIsr),
    /// It has none.
    Missing,
    /// It cannot be read.
    Unreadable(String),
}

/// What became of a new partition's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StateCreated {
    /// It was created.
    Created,
    /// One exists already: that of an earlier try whose answer was lost, or another.
    Exists,
    /// The store refuses it; nothing was done.
    Refused(String),
}

/// What became of a write of a partition's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StateWritten {
    /// It was written; the new partition epoch.
    Written {
        /// The version of the znode.
        partition_epoch: i32,
    },
    /// The stored partition epoch is another; nothing was done.
    BadVersion,
    /// The store refuses it; nothing was done.
    Refused(String),
}
