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

#[cfg(test)]
mod tests {
    use wire::types::{BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition};

    use super::*;
    use crate::controller::context::Replica;
    use crate::controller::values::{LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment};

    fn led(leader: i32, isr: &[i32]) -> LeaderAndIsr {
        LeaderAndIsr {
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(0),
            isr: isr.iter().copied().map(BrokerId).collect(),
            recovery_state: LeaderRecoveryState::Recovered,
            controller_epoch: ControllerEpoch(1),
            partition_epoch: 0,
        }
    }

    fn imbalance(adding: &[i32], leadership: LeaderAndIsr) -> usize {
        let mut context = Context::default();
        let partition = TopicPartition::new("t", 0);
        let assignment = ReplicaAssignment {
            replicas: [1, 2].map(BrokerId).to_vec(),
            adding: adding.iter().copied().map(BrokerId).collect(),
            removing: Vec::new(),
        };
        context.set_assignment(&partition, assignment);
        context.set_leadership(&partition, leadership);
        Gauges::of(&Office::default(), &context).preferred_replica_imbalance_count
    }

    #[test]
    fn a_partition_is_imbalanced_unless_its_first_replica_leads() {
        assert_eq!(imbalance(&[], led(1, &[1, 2])), 0);
        assert_eq!(imbalance(&[], led(2, &[1, 2])), 1);
        assert_eq!(imbalance(&[], led(-1, &[1])), 1);
    }

    #[test]
    fn a_first_replica_that_is_being_added_is_waited_for_until_it_is_in_sync() {
        assert_eq!(imbalance(&[1], led(2, &[2])), 0);
        assert_eq!(imbalance(&[1], led(2, &[2, 1])), 1);
    }

    #[test]
    fn partitions_and_replicas_of_topics_under_deletion_are_counted_apart() {
        let mut context = Context::default();
        for topic in ["gone", "kept"] {
            let partition = TopicPartition::new(topic, 0);
            context.set_assignment(&partition, ReplicaAssignment::of([1, 2].map(BrokerId).to_vec()));
            context.set_partition_state(&partition, PartitionState::Offline);
            for (broker, state) in
                [(1, ReplicaState::DeletionIneligible), (2, ReplicaState::DeletionSuccessful)]
            {
                let replica = Replica { partition: partition.clone(), broker: BrokerId(broker) };
                context.set_replica_state(&replica, state);
            }
        }
        context.deletions.queued.insert("gone".into());
        context.deletions.started.insert("gone".into());
        context.deletions.ineligible.insert("gone".into());
        let gauges = Gauges::of(&Office::default(), &context);
        let expected = Gauges {
            global_topic_count: 2,
            global_partition_count: 2,
            offline_partitions_count: 1,
            topics_to_delete_count: 1,
            replicas_to_delete_count: 1,
            topics_ineligible_to_delete_count: 1,
            replicas_ineligible_to_delete_count: 1,
            ..Gauges::default()
        };
        assert_eq!(gauges, expected);
    }
}
