//! The control requests of one transition, gathered by broker and sent at its end.
//!
//! What is added is frozen at that moment. A partition that is once marked as new, or as to be deleted, stays marked in
//! its batch. A LeaderAndIsr to anybody is news for all: it adds an UpdateMetadata to every registered broker. At the
//! end, brokers that are not registered are left out; those that are shutting down are not (KAFKA-7482).
//!
//! A batch is a local value of one transition: one that is dropped half full cannot block the next (KAFKA-12315).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::types::{BrokerId, ControllerEpoch, LeaderEpoch, TopicId, TopicName, TopicPartition};

use super::command::Command;
use super::context::{Context, Partition};
use super::settings::Settings;
use super::values::{
    BrokerRegistration, ControlRequest, ControlSender, EPOCH_DURING_DELETE, INITIAL_PARTITION_EPOCH,
    LEADER_DURING_DELETE, LeaderAndIsr, LeaderAndIsrPartition, LeaderAndIsrRequest, LiveLeader,
    StopReplicaPartition, StopReplicaRequest, UpdateMetadataBody, UpdateMetadataPartition,
    UpdateMetadataRequest,
};

/// The requests gathered so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestBatch {
    leader_and_isr: BTreeMap<BrokerId, BTreeMap<TopicPartition, LeaderAndIsrPartition>>,
    /// Whether every registered broker gets the UpdateMetadata; otherwise the receivers do.
    is_news_for_all: bool,
    update_metadata_receivers: BTreeSet<BrokerId>,
    update_metadata: BTreeMap<TopicPartition, UpdateMetadataPartition>,
    stop_replica: BTreeMap<BrokerId, BTreeMap<TopicPartition, StopReplicaPartition>>,
}

impl RequestBatch {
    /// Tells `brokers` of the leadership of a partition as it stands in `context`, and with it everybody. A partition
    /// without leadership is not told.
    pub fn leader_and_isr(
        &mut self,
        context: &Context,
        brokers: &[BrokerId],
        partition: &TopicPartition,
        is_new: bool,
    ) {
        let Some(known) = context.partition(partition) else { return };
        let Some(state) = &known.leadership else { return };
        for broker in brokers {
            let told = self.leader_and_isr.entry(*broker).or_default();
            let was_new = told.get(partition).is_some_and(|before| before.is_new);
            let assignment = known.assignment.clone();
            let news = LeaderAndIsrPartition { state: state.clone(), assignment, is_new: is_new || was_new };
            told.insert(partition.clone(), news);
        }
        self.update_metadata_to_all(context, [partition]);
    }

    /// Tells every registered broker of all brokers and of `partitions`; those without leadership are left out.
    pub fn update_metadata_to_all<'a>(
        &mut self,
        context: &Context,
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
    ) {
        self.is_news_for_all = true;
        self.add_metadata(context, partitions);
    }

    /// The same to `brokers` only.
    pub fn update_metadata<'a>(
        &mut self,
        context: &Context,
        brokers: impl IntoIterator<Item = BrokerId>,
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
    ) {
        self.update_metadata_receivers.extend(brokers);
        self.add_metadata(context, partitions);
    }

    fn add_metadata<'a>(
        &mut self,
        context: &Context,
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
    ) {
        for partition in partitions {
            let Some(known) = context.partition(partition) else { continue };
            let Some(leadership) = &known.leadership else { continue };
            let state = if context.is_queued_for_deletion(&partition.topic) {
                during_delete(leadership)
            } else {
                leadership.clone()
            };
            let news = UpdateMetadataPartition {
                state,
                replicas: known.assignment.replicas.clone(),
                offline_replicas: offline_replicas(context, partition, known),
            };
            self.update_metadata.insert(partition.clone(), news);
        }
    }

    /// Tells a broker to stop its replica of a partition, and to delete it if `delete`.
    pub fn stop_replica(
        &mut self,
        context: &Context,
        broker: BrokerId,
        partition: &TopicPartition,
        delete: bool,
    ) {
        let leader_epoch = if context.is_queued_for_deletion(&partition.topic) {
            EPOCH_DURING_DELETE
        } else {
            context.leadership(partition).map_or(LeaderEpoch::UNKNOWN, |state| state.leader_epoch)
        };
        let told = self.stop_replica.entry(broker).or_default();
        let delete = delete || told.get(partition).is_some_and(|before| before.delete);
        told.insert(partition.clone(), StopReplicaPartition { leader_epoch, delete });
    }

    /// Sends what was gathered: first every LeaderAndIsr, then UpdateMetadata, then StopReplica.
    pub fn send(
        mut self,
        context: &Context,
        settings: &Settings,
        epoch: ControllerEpoch,
        out: &mut Vec<Command>,
    ) {
        let sender = |broker: BrokerId| {
            let broker_epoch = context.registered().get(&broker)?.epoch;
            Some(ControlSender { controller_id: settings.broker_id, controller_epoch: epoch, broker_epoch })
        };
        for (broker, partitions) in std::mem::take(&mut self.leader_and_isr) {
            let Some(sender) = sender(broker) else { continue };
            let live_leaders = live_leaders(context, settings, &partitions);
            let topic_ids = topic_ids(context, partitions.keys());
            let request = LeaderAndIsrRequest { sender, partitions, topic_ids, live_leaders };
            out.push(Command::Send { broker, request: ControlRequest::LeaderAndIsr(request) });
        }
        if self.is_news_for_all {
            self.update_metadata_receivers.extend(context.registered().keys());
        }
        let body = Arc::new(UpdateMetadataBody {
            topic_ids: topic_ids(context, self.update_metadata.keys()),
            partitions: self.update_metadata,
            live_brokers: registrations(context),
        });
        for broker in self.update_metadata_receivers {
            let Some(sender) = sender(broker) else { continue };
            let request = UpdateMetadataRequest { sender, body: Arc::clone(&body) };
            out.push(Command::Send { broker, request: ControlRequest::UpdateMetadata(request) });
        }
        for (broker, partitions) in self.stop_replica {
            let Some(sender) = sender(broker) else { continue };
            let request = StopReplicaRequest { sender, partitions };
            out.push(Command::Send { broker, request: ControlRequest::StopReplica(request) });
        }
    }
}

fn during_delete(known: &LeaderAndIsr) -> LeaderAndIsr {
    LeaderAndIsr {
        leader: LEADER_DURING_DELETE,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: INITIAL_PARTITION_EPOCH,
        ..known.clone()
    }
}

fn offline_replicas(context: &Context, partition: &TopicPartition, known: &Partition) -> Vec<BrokerId> {
    let replicas = known.assignment.replicas.iter().copied();
    replicas.filter(|replica| !context.is_online(*replica, partition)).collect()
}

fn registrations(context: &Context) -> BTreeMap<BrokerId, Arc<BrokerRegistration>> {
    let registered = context.registered().iter();
    registered.map(|(id, broker)| (*id, Arc::clone(&broker.registration))).collect()
}

fn live_leaders(
    context: &Context,
    settings: &Settings,
    partitions: &BTreeMap<TopicPartition, LeaderAndIsrPartition>,
) -> Vec<LiveLeader> {
    let leaders: BTreeSet<_> = partitions.values().map(|partition| partition.state.leader).collect();
    let reached = leaders.into_iter().filter_map(|id| {
        let endpoint =
            context.registered().get(&id)?.registration.endpoint(&settings.inter_broker_listener)?;
        Some(LiveLeader { id, host: endpoint.host.clone(), port: endpoint.port })
    });
    reached.collect()
}

fn topic_ids<'a>(
    context: &Context,
    partitions: impl Iterator<Item = &'a TopicPartition>,
) -> BTreeMap<TopicName, TopicId> {
    let mut ids = BTreeMap::new();
    for partition in partitions {
        if !ids.contains_key(&partition.topic)
            && let Some(id) = context.topic_id(&partition.topic)
        {
            ids.insert(partition.topic.clone(), id);
        }
    }
    ids
}
