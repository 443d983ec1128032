//! At rest: everything runs, nothing goes wrong any more, and after a while nothing is left to be done.

use metadata::znode::partition_state::{self, PartitionState};
use metadata::znode::topic::{self, TopicAssignment};
use wire::types::{BrokerId, TopicName, TopicPartition};

use crate::world::{Life, World};

/// Why the cluster is not at rest yet; `None` if it is.
pub(crate) fn unrest(world: &World) -> Option<String> {
    for node in world.nodes() {
        if !matches!(node.life(), Life::Serving(_)) {
            return Some(format!("broker {} does not serve", node.id));
        }
    }
    if world.tree.value("/controller").is_none() {
        return Some("there is no controller".to_owned());
    }
    let left = world.tree.children("/admin/delete_topics");
    if let Some(topic) = left.first() {
        return Some(format!("topic {topic} is being deleted"));
    }
    partitions(world).into_iter().find_map(|(partition, replicas)| state_of(world, &partition, &replicas))
}

/// All partitions of the tree and their replicas.
pub(crate) fn partitions(world: &World) -> Vec<(TopicPartition, Vec<BrokerId>)> {
    let mut all = Vec::new();
    for name in world.tree.children(topic::ROOT) {
        let name = TopicName::from(name.as_str());
        let Some((data, _)) = world.tree.value(&topic::path(&name)) else { continue };
        let Ok(assignment) = TopicAssignment::decode(Some(&data)) else { continue };
        for (index, assigned) in assignment.partitions {
            all.push((TopicPartition { topic: name.clone(), partition: index }, assigned.replicas));
        }
    }
    all
}

/// The state of a partition and its partition epoch.
pub(crate) fn state(world: &World, partition: &TopicPartition) -> Option<(PartitionState, i32)> {
    let (data, version) = world.tree.value(&partition_state::path(partition))?;
    PartitionState::decode(Some(&data)).ok().map(|state| (state, version))
}

fn state_of(world: &World, partition: &TopicPartition, replicas: &[BrokerId]) -> Option<String> {
    let Some((state, _)) = state(world, partition) else {
        return Some(format!("{partition} has no state"));
    };
    if state.leader.0 < 0 {
        return Some(format!("{partition} has no leader, isr {:?}", state.isr));
    }
    if !replicas.iter().all(|replica| state.isr.contains(replica)) {
        return Some(format!("{partition} has the isr {:?} of {replicas:?}", state.isr));
    }
    None
}
