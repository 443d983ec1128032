//! The start of a term: everything is read anew, brokers are told who is there, and then the machines of replicas and
//! partitions start. [`program`] is the order; each step says why it stands where it stands.
//!
//! Nothing that happened before is lost by dropping old notifications: the states are read after that, and every
//! replica is told its state again, which brings failed log directories to light.

use super::brokers;
use super::command::Command;
use super::context::Replica;
use super::note::What;
use super::partition_state::PartitionState;
use super::program::{Flow, Step, Turn};
use super::replica_state::ReplicaState;
use super::replicas::ReplicaTransition;
use super::store::{NotificationKind, StateRead, StoreOp, StoreReply};
use crate::planted::Fault;

/// The steps that begin a term.
pub(super) fn program() -> Vec<Step> {
    vec![
        Step::EnableFeatures,
        Step::DropNotifications(NotificationKind::LogDirEvent),
        Step::DropNotifications(NotificationKind::IsrChange),
        Step::LoadBrokers,
        Step::LoadTopicList,
        Step::LoadPartitionStates,
        Step::OpenChannels,
        Step::LoadDeletions,
        // A follower refuses a leader that it does not know to be alive (KAFKA-4443).
        Step::AnnounceBrokers,
        // Replicas come first: one that died with the last controller leaves its partition's in-sync replicas here, or
        // its leadership (KAFKA-3143).
        Step::StartReplicas,
        Step::StartPartitions,
        Step::ResumeDeletions,
        // Somebody may have asked for preferred leaders while nobody was in office.
        Step::ReadPreferredElection,
    ]
}

/// Drops what brokers left for an earlier controller.
pub(super) fn drop_notifications(
    turn: &mut Turn<'_>,
    kind: NotificationKind,
    reply: Option<StoreReply>,
) -> Flow {
    let epoch_version = turn.epoch_version();
    match reply {
        None => Flow::ask(StoreOp::DropNotifications { kind, epoch_version }, Step::DropNotifications(kind)),
        Some(StoreReply::Done) => Flow::Done,
        Some(_) => Flow::confused(),
    }
}

/// Reads who is registered. The context is that of a new term: empty.
pub(super) fn load_brokers(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadBrokers, Step::LoadBrokers),
        Some(StoreReply::Brokers(registered)) => {
            for (id, broker) in registered {
                turn.context.add_broker(id, broker);
            }
            Flow::Done
        }
        Some(_) => Flow::confused(),
    }
}

/// Reads which topics there are, and then each.
pub(super) fn load_topic_list(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadTopicList, Step::LoadTopicList),
        Some(StoreReply::TopicList(names)) => {
            for name in &names {
                turn.context.add_topic(name.clone());
            }
            Flow::Then(vec![Step::LoadTopics(names)])
        }
        Some(_) => Flow::confused(),
    }
}

/// Reads the state of every partition.
pub(super) fn load_partition_states(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => {
            let all = turn.context.select(|_, _| true);
            if all.is_empty() {
                return Flow::Done;
            }
            Flow::ask(StoreOp::ReadPartitionStates(all), Step::LoadPartitionStates)
        }
        Some(StoreReply::States(states)) => {
            for (partition, read) in states {
                match read {
                    StateRead::State(state) => turn.context.set_leadership(&partition, state),
                    StateRead::Missing => {}
                    StateRead::Unreadable(reason) => turn.note(What::StateUnreadable { partition, reason }),
                }
            }
            Flow::Done
        }
        Some(_) => Flow::confused(),
    }
}

/// Opens the ways to the brokers.
pub(super) fn open_channels(turn: &mut Turn<'_>) -> Flow {
    let open = turn.context.registered().iter().map(|(id, broker)| brokers::open_channel(*id, broker));
    turn.out.extend(open.collect::<Vec<Command>>());
    Flow::Done
}

/// Marks every replica as online or, if its broker is gone, as one that cannot be deleted now; then all that are online
/// are told their state, and the others leave the in-sync replicas.
pub(super) fn start_replicas(turn: &mut Turn<'_>) -> Flow {
    let all = turn.context.select(|_, _| true);
    let (mut online, mut offline) = (Vec::new(), Vec::new());
    for replica in turn.context.replicas_of(&all) {
        let Replica { partition, broker } = &replica;
        if turn.context.is_online(*broker, partition) {
            turn.context.set_replica_state(&replica, ReplicaState::Online);
            online.push(replica);
        } else {
            turn.context.set_replica_state(&replica, ReplicaState::DeletionIneligible);
            offline.push(replica);
        }
    }
    if turn.settings.faults.has(Fault::OfflineReplicasLeftAlone) {
        offline.clear();
    }
    Flow::Then(vec![
        Step::Replicas(ReplicaTransition::new(online, ReplicaState::Online)),
        Step::Replicas(ReplicaTransition::new(offline, ReplicaState::Offline)),
    ])
}

/// Marks every partition as new, online or offline, and elects leaders for those that are not online.
pub(super) fn start_partitions(turn: &mut Turn<'_>) -> Flow {
    for partition in turn.context.select(|_, _| true) {
        let state = match turn.context.leadership(&partition) {
            None => PartitionState::New,
            Some(known) if turn.context.is_online(known.leader, &partition) => PartitionState::Online,
            Some(_) => PartitionState::Offline,
        };
        turn.context.set_partition_state(&partition, state);
    }
    Flow::Then(vec![Step::TriggerOnline(None)])
}
