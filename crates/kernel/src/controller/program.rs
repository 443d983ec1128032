//! How an event is worked on: as a program of steps, since pure code cannot wait for the store.
//!
//! The program is a stack. The step on top runs; it ends, or puts further steps on top, or asks one operation of the
//! store and is run again with the reply. A step is a plain value that holds what it has gathered so far, so a program
//! that is given up leaves nothing behind. What comes after a step that failed is not run: the controller gives up its
//! office instead.

use std::collections::{BTreeMap, BTreeSet};

use wire::error_code::ErrorCode;
use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, TopicName, TopicPartition};

use super::alter_partition::AlterIsr;
use super::batch::RequestBatch;
use super::command::{ApiAnswer, Command};
use super::context::{Context, Replica};
use super::controlled_shutdown::{self, ShutdownRequest};
use super::elect_leaders::{self, ElectLeadersRequest, ElectedLeaders, ElectionType};
use super::event::{Change, RequestId};
use super::features::{self, FeatureUpdate};
use super::note::{Cause, Note, Reason, What};
use super::office::Office;
use super::partitions::PartitionTransition;
use super::producer_ids::Allocation;
use super::replicas::ReplicaTransition;
use super::responses::Outcomes;
use super::settings::Settings;
use super::store::{NotificationKind, StoreOp, StoreReply};
use super::values::{Broker, LeaderAndIsr, TopicAssignment};
use super::{brokers, deletion, failover, notifications, office, responses, topics};

/// One step of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    // Who is controller (`office`).
    FindController { has_stood: bool },
    ReadEpoch,
    CreateEpoch,
    Stand { epoch: ControllerEpoch, expected_version: i32 },
    ReadOwnEpoch,
    DeleteController { epoch_version: i32 },
    // A term begins (`failover`).
    EnableFeatures,
    DropNotifications(NotificationKind),
    LoadBrokers,
    LoadTopicList,
    LoadTopics(BTreeSet<TopicName>),
    AssignTopicIds(BTreeMap<TopicName, TopicAssignment>),
    LoadPartitionStates,
    OpenChannels,
    LoadDeletions,
    AnnounceBrokers,
    StartReplicas,
    StartPartitions,
    // State transitions (`replicas`, `partitions`).
    Replicas(ReplicaTransition),
    Partitions(PartitionTransition),
    TriggerOnline(Option<TopicName>),
    // Brokers come and go (`brokers`).
    CompareBrokers,
    CompareBroker(BrokerId),
    AddBrokers(BTreeMap<BrokerId, Broker>),
    RemoveBrokers(BTreeSet<BrokerId>),
    BrokersStarted(BTreeSet<BrokerId>),
    BrokersFailed(BTreeSet<BrokerId>),
    ReplicasOffline(Vec<Replica>),
    AnnounceIfNothingChanged { has_offline_replicas: bool },
    // Topics come, grow and go (`topics`).
    CompareTopics,
    CreateTopics(BTreeSet<TopicName>),
    CompareTopic(TopicName),
    RestoreTopic { topic: TopicName, read: TopicAssignment },
    WriteTopic { topic: TopicName, assignment: TopicAssignment, note: What },
    CreatePartitions(Vec<TopicPartition>),
    // Topics are deleted (`deletion`).
    CompareDeletions,
    DropDeletions(BTreeSet<TopicName>),
    AllowDeletionsOn(BTreeSet<BrokerId>),
    ResumeDeletions,
    StartDeletions(BTreeSet<TopicName>),
    DeleteReplicas(BTreeSet<TopicName>),
    ReplicasDeleted { broker: BrokerId, run: BrokerEpoch, outcomes: Outcomes },
    FailDeletions(Vec<Replica>),
    CompleteDeletion(TopicName),
    DeleteTopic(TopicName),
    // What brokers tell (`notifications`, `responses`).
    ReadLogDirEvents,
    ReadIsrChanges,
    RefreshStates(Vec<TopicPartition>),
    DropRead { kind: NotificationKind, names: BTreeSet<String> },
    ReplicasLed { broker: BrokerId, run: BrokerEpoch, outcomes: Outcomes },
    // Elections that are asked for (`elect_leaders`).
    ElectLeaders(ElectLeadersRequest),
    AnswerElections { kind: ElectionType, electable: Vec<TopicPartition>, results: ElectedLeaders },
    ReadPreferredElection,
    DropPreferredElection,
    BalanceLeaders,
    // Requests (`controlled_shutdown`, `alter_partition`, `producer_ids`, `features`).
    ShutDownBroker(ShutdownRequest),
    StopFollowers { broker: BrokerId, partitions: Vec<TopicPartition> },
    AnswerShutdown(ShutdownRequest),
    AlterIsr(AlterIsr),
    AllocateProducerIds(Allocation),
    UpdateFeatures(Vec<FeatureUpdate>),
}

/// What a step comes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Flow {
    /// It has ended.
    Done,
    /// It has ended, and these steps come next, in this order.
    Then(Vec<Step>),
    /// It asks the store, and then goes on as this step.
    Ask(StoreOp, Box<Step>),
    /// It cannot go on.
    Fail(String),
}

impl Flow {
    /// Asks the store, and then goes on as `step`.
    pub(super) fn ask(op: StoreOp, step: Step) -> Self {
        Self::Ask(op, Box::new(step))
    }

    /// The store answered something that was not asked.
    pub(super) fn confused() -> Self {
        Self::Fail("the store answered what was not asked".to_owned())
    }
}

/// What a part of a step comes to that asks the store on its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Progress {
    /// It is done.
    Done,
    /// It asks the store, and goes on with the reply.
    Ask(StoreOp),
    /// The store answered something that was not asked.
    Confused,
}

/// The outcome of the last elections of the event, by partition.
pub(super) type Elections = BTreeMap<TopicPartition, Result<LeaderAndIsr, Reason>>;

/// What a step sees and changes while it runs.
pub(super) struct Turn<'a> {
    pub(super) settings: &'a Settings,
    pub(super) office: &'a mut Office,
    pub(super) context: &'a mut Context,
    pub(super) cause: &'a Cause,
    pub(super) elections: &'a mut Elections,
    /// The request that is served, until it is answered.
    pub(super) unanswered: &'a mut Option<RequestId>,
    /// What is to be looked at after this event.
    pub(super) raised: &'a mut Vec<Change>,
    pub(super) out: &'a mut Vec<Command>,
}

impl Turn<'_> {
    /// The epoch of the term.
    pub(super) fn epoch(&self) -> ControllerEpoch {
        self.office.epoch()
    }

    /// The version of `/controller_epoch` by which writes of the term are fenced.
    pub(super) fn epoch_version(&self) -> i32 {
        self.office.epoch_version()
    }

    /// Sends what a transition has gathered.
    pub(super) fn send(&mut self, batch: RequestBatch) {
        let epoch = self.epoch();
        batch.send(self.context, self.settings, epoch, self.out);
    }

    /// Notes something.
    pub(super) fn note(&mut self, what: What) {
        let note = Note { cause: self.cause.clone(), controller_epoch: self.epoch(), what };
        self.out.push(Command::Note(note));
    }

    /// Has something looked at after this event.
    pub(super) fn raise(&mut self, change: Change) {
        self.raised.push(change);
    }

    /// Answers the request that is served.
    pub(super) fn answer(&mut self, answer: Result<ApiAnswer, ErrorCode>) {
        if let Some(id) = self.unanswered.take() {
            self.out.push(Command::Answer { id, answer });
        }
    }
}

impl Step {
    /// Runs the step, for the first time or with the reply it asked for.
    pub(super) fn run(self, turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
        match self {
            Self::FindController { has_stood } => office::find_controller(turn, has_stood, reply),
            Self::ReadEpoch => office::read_epoch(reply),
            Self::CreateEpoch => office::create_epoch(reply),
            Self::Stand { epoch, expected_version } => office::stand(turn, epoch, expected_version, reply),
            Self::ReadOwnEpoch => office::read_own_epoch(turn, reply),
            Self::DeleteController { epoch_version } => office::delete_controller(epoch_version, reply),

            Self::EnableFeatures => features::enable(turn, reply),
            Self::DropNotifications(kind) => failover::drop_notifications(turn, kind, reply),
            Self::LoadBrokers => failover::load_brokers(turn, reply),
            Self::LoadTopicList => failover::load_topic_list(turn, reply),
            Self::LoadTopics(names) => topics::load(turn, names, reply),
            Self::AssignTopicIds(topics) => topics::assign_ids(turn, topics, reply),
            Self::LoadPartitionStates => failover::load_partition_states(turn, reply),
            Self::OpenChannels => failover::open_channels(turn),
            Self::LoadDeletions => deletion::load(turn, reply),
            Self::AnnounceBrokers => brokers::announce(turn),
            Self::StartReplicas => failover::start_replicas(turn),
            Self::StartPartitions => failover::start_partitions(turn),

            Self::Replicas(transition) => transition.run(turn, reply),
            Self::Partitions(transition) => transition.run(turn, reply),
            Self::TriggerOnline(topic) => PartitionTransition::trigger_online(turn, topic.as_ref()),

            Self::CompareBrokers => brokers::compare(turn, reply),
            Self::CompareBroker(id) => brokers::compare_one(turn, id, reply),
            Self::AddBrokers(added) => brokers::add(turn, added),
            Self::RemoveBrokers(removed) => brokers::remove(turn, &removed),
            Self::BrokersStarted(started) => brokers::started(turn, &started),
            Self::BrokersFailed(failed) => brokers::failed(turn, &failed),
            Self::ReplicasOffline(replicas) => brokers::replicas_offline(turn, replicas),
            Self::AnnounceIfNothingChanged { has_offline_replicas } => {
                brokers::announce_if_nothing_changed(turn, has_offline_replicas)
            }

            Self::CompareTopics => topics::compare(turn, reply),
            Self::CreateTopics(names) => topics::create(turn, &names),
            Self::CompareTopic(topic) => topics::compare_one(turn, topic, reply),
            Self::RestoreTopic { topic, read } => topics::restore(topic, read, reply),
            Self::WriteTopic { topic, assignment, note } => {
                topics::write(turn, topic, assignment, note, reply)
            }
            Self::CreatePartitions(partitions) => topics::create_partitions(turn, partitions),

            Self::CompareDeletions => deletion::compare(turn, reply),
            Self::DropDeletions(topics) => deletion::drop_requests(turn, topics, reply),
            Self::AllowDeletionsOn(brokers) => deletion::allow_on(turn, &brokers),
            Self::ResumeDeletions => deletion::resume(turn),
            Self::StartDeletions(topics) => deletion::start(turn, topics),
            Self::DeleteReplicas(topics) => deletion::delete_replicas(turn, &topics),
            Self::ReplicasDeleted { broker, run, outcomes } => {
                responses::deleted(turn, broker, run, outcomes)
            }
            Self::FailDeletions(replicas) => deletion::fail(turn, replicas),
            Self::CompleteDeletion(topic) => deletion::complete(turn, topic),
            Self::DeleteTopic(topic) => deletion::delete_topic(turn, topic, reply),

            Self::ReadLogDirEvents => notifications::read_log_dir_events(turn, reply),
            Self::ReadIsrChanges => notifications::read_isr_changes(reply),
            Self::RefreshStates(partitions) => notifications::refresh_states(turn, partitions, reply),
            Self::DropRead { kind, names } => notifications::drop_read(turn, kind, names, reply),
            Self::ReplicasLed { broker, run, outcomes } => responses::led(turn, broker, run, outcomes),

            Self::ElectLeaders(request) => elect_leaders::serve(turn, request),
            Self::AnswerElections { kind, electable, results } => {
                elect_leaders::answer(turn, kind, electable, results)
            }
            Self::ReadPreferredElection => elect_leaders::read_node(turn, reply),
            Self::DropPreferredElection => elect_leaders::drop_node(turn, reply),
            Self::BalanceLeaders => elect_leaders::balance(turn),

            Self::ShutDownBroker(request) => controlled_shutdown::shut_down(turn, request),
            Self::StopFollowers { broker, partitions } => {
                controlled_shutdown::stop_followers(turn, broker, &partitions)
            }
            Self::AnswerShutdown(request) => controlled_shutdown::answer(turn, &request),
            Self::AlterIsr(machine) => machine.run(turn, reply),
            Self::AllocateProducerIds(machine) => machine.run(turn, reply),
            Self::UpdateFeatures(updates) => features::update(turn, updates),
        }
    }
}
