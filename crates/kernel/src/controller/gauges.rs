//! The controller's gauges, counted when somebody looks at them.

use super::context::{Context, Partition};
use super::office::Office;
use super::partition_state::PartitionState;
use super::replica_state::ReplicaState;

/// The gauges under `kafka.controller:type=KafkaController`; the fields carry Kafka's names. All are 0 out of office.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gauges {
    /// `ActiveControllerCount`: 1 in office.
    pub active_controller_count: usize,
    /// `ActiveBrokerCount`: registered brokers.
    pub active_broker_count: usize,
    /// `GlobalTopicCount`.
    pub global_topic_count: usize,
    /// `GlobalPartitionCount`.
    pub global_partition_count: usize,
    /// `OfflinePartitionsCount`: partitions that lost their leader.
    pub offline_partitions_count: usize,
    /// `PreferredReplicaImbalanceCount`: partitions that another replica than the first leads. While the first is being
    /// added, from when it is in sync.
    pub preferred_replica_imbalance_count: usize,
    /// `TopicsToDeleteCount`.
    pub topics_to_delete_count: usize,
    /// `ReplicasToDeleteCount`: replicas of these topics that are not deleted yet.
    pub replicas_to_delete_count: usize,
    /// `TopicsIneligibleToDeleteCount`.
    pub topics_ineligible_to_delete_count: usize,
    /// `ReplicasIneligibleToDeleteCount`.
    pub replicas_ineligible_to_delete_count: usize,
}

impl Gauges {
    pub(super) fn of(office: &Office, context: &Context) -> Self {
        let mut gauges = Self {
            active_controller_count: usize::from(office.is_active()),
            active_broker_count: context.registered().len(),
            global_topic_count: context.topics().count(),
            topics_to_delete_count: context.deletions.queued.len(),
            topics_ineligible_to_delete_count: context.deletions.ineligible.len(),
            ..Self::default()
        };
        for (partition, known) in context.partitions() {
            gauges.global_partition_count += 1;
            let is_started = context.deletions.started.contains(&partition.topic);
            if known.state == PartitionState::Offline && !is_started {
                gauges.offline_partitions_count += 1;
            }
            if context.is_queued_for_deletion(&partition.topic) {
                let not_in = |state| known.replicas.values().filter(|of| **of != state).count();
                gauges.replicas_to_delete_count += not_in(ReplicaState::DeletionSuccessful);
                gauges.replicas_ineligible_to_delete_count +=
                    known.replicas.len() - not_in(ReplicaState::DeletionIneligible);
            } else if is_imbalanced(known) {
                gauges.preferred_replica_imbalance_count += 1;
            }
        }
        gauges
    }
}

fn is_imbalanced(known: &Partition) -> bool {
    let (Some(state), Some(first)) = (&known.leadership, known.assignment.replicas.first()) else {
        return false;
    };
    if known.assignment.adding.contains(first) { state.isr.contains(first) } else { state.leader != *first }
}
