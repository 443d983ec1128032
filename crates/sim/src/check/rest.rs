//! At rest: everything runs, nothing goes wrong any more, and after a while nothing is left to be done.

use metadata::znode::controller::Controller;
use metadata::znode::partition_state::{self, PartitionState};
use metadata::znode::topic::{self, TopicAssignment};
use wire::types::{BrokerId, TopicName, TopicPartition};

use super::replicas::{self, Lying};
use crate::workload::Kind;
use crate::world::{Life, World};

/// The controller, as the tree names it.
pub(crate) fn controller(world: &World) -> Option<BrokerId> {
    let (data, _) = world.tree.value("/controller")?;
    Some(Controller::decode(Some(&data)).ok()?.broker_id)
}

/// Why the cluster is not at rest yet while a broker is missing: the others do without it wherever they can.
pub(crate) fn unrest_without(world: &World, missing: BrokerId) -> Option<String> {
    let mut others = world.nodes().iter().filter(|node| node.id != missing);
    if let Some(node) = others.find(|node| !matches!(node.life(), Life::Serving(_))) {
        return Some(format!("broker {} does not serve", node.id));
    }
    if controller(world).is_none_or(|id| id == missing) {
        return Some("there is no controller".to_owned());
    }
    let deleted = world.tree.children("/admin/delete_topics");
    let kept =
        partitions(world).into_iter().filter(|it| !deleted.iter().any(|name| *name == it.0.topic.as_str()));
    kept.into_iter().find_map(|(partition, _)| {
        let (state, _) = state(world, &partition)?;
        let is_led = state.leader.0 >= 0 && state.leader != missing;
        let is_clean = partition.topic.as_str() != Kind::Unclean.name();
        let is_left_alone = is_clean && state.isr == [missing] && state.leader.0 < 0;
        let is_good = is_left_alone || (is_led && !state.isr.contains(&missing));
        (!is_good).then(|| format!("{partition} has leader {} and isr {:?}", state.leader, state.isr))
    })
}

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
    let partitions = partitions(world);
    let state = partitions.iter().find_map(|(partition, replicas)| state_of(world, partition, replicas));
    state
        .or_else(|| partitions.iter().find_map(|(partition, replicas)| unequal(world, partition, replicas)))
        .or_else(|| partitions.iter().find_map(|(partition, _)| unconfirmed(world, partition)))
}

/// Whether a leader has yet to hear that it is one, or that all replicas have everything: until then readers do not get
/// all of it.
fn unconfirmed(world: &World, partition: &TopicPartition) -> Option<String> {
    let (state, _) = state(world, partition)?;
    let end = replicas::end(&world.node(state.leader).disk(), partition);
    let told = replicas::told(world, state.leader, partition);
    if told.as_ref().and_then(|told| told.pointer("/log/role")?.as_str()) != Some("leader") {
        return Some(format!("broker {} does not know that it leads {partition}", state.leader));
    }
    let high_watermark = told.and_then(|told| replicas::high_watermark(&told));
    (high_watermark != Some(end))
        .then(|| format!("{partition} ends at {end}, confirmed to {high_watermark:?}"))
}

/// Whether the logs of a partition's replicas do not end with the same batch yet. As long as each other they can be while
/// one of them has still to cut what its leader never had.
fn unequal(world: &World, partition: &TopicPartition, replicas: &[BrokerId]) -> Option<String> {
    let ends: Vec<_> = replicas.iter().map(|id| replicas::last(&world.node(*id).disk(), partition)).collect();
    // What compaction has left of it need not be the same everywhere.
    let place = |end: &Option<Lying>| end.map(|it| (it.last, it.epoch));
    let are_equal = ends.windows(2).all(|pair| place(&pair[0]) == place(&pair[1]));
    (!are_equal).then(|| format!("{partition} ends with {ends:?} in {replicas:?}"))
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
