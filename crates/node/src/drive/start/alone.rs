//! The start of a broker that decides alone: it takes the controller's node, settles every partition's state and leads what
//! is its own.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use kernel::metadata_image::{PartitionImage, TopicImage};
use metadata::store::{Blocking, CreateMode, Op, Store, Value};
use metadata::znode::controller::Controller;
use metadata::znode::feature::{Features, Format};
use metadata::znode::partition_state::{self, PartitionState};
use metadata::znode::{controller, controller_epoch, delete_topics, feature};
use wire::types::{BrokerId, ControllerEpoch, LeaderEpoch, Millis, TopicId, TopicName, TopicPartition};

use super::StartError;
use super::stored::{StoredTopic, read_nodes};
use crate::broker::Broker;
use crate::drive::topics;

/// Takes the controller's node and opens a new term.
pub(super) fn elect(store: &dyn Store, id: BrokerId, wall_ms: i64) -> Result<ControllerEpoch, StartError> {
    let calls = Blocking::new(store);
    let me = Controller { broker_id: id, timestamp_ms: Millis(wall_ms), kraft_controller_epoch: Some(-1) };
    let claim = Op::create(controller::PATH, me.encode(), CreateMode::Ephemeral);
    let (epoch, write) = match calls.find(controller_epoch::PATH)? {
        Some((data, stat)) => {
            let epoch = ControllerEpoch(controller_epoch::decode(data.as_deref())?.0 + 1);
            (epoch, Op::set(controller_epoch::PATH, controller_epoch::encode(epoch), Some(stat.version)))
        }
        None => {
            let epoch = ControllerEpoch(controller_epoch::INITIAL.0 + 1);
            let create =
                Op::create(controller_epoch::PATH, controller_epoch::encode(epoch), CreateMode::Persistent);
            (epoch, create)
        }
    };
    calls.multi(vec![claim, write])?;
    Ok(epoch)
}

/// The version of the finalized features; a new cluster begins with none of them, at 0.
pub(super) fn features_epoch(store: &dyn Store) -> Result<i64, StartError> {
    let calls = Blocking::new(store);
    if let Some(stat) = calls.exists(feature::PATH)? {
        return Ok(i64::from(stat.version));
    }
    calls.create(feature::PATH, Features::none(Format::V2, true).encode(), CreateMode::Persistent)?;
    Ok(0)
}

/// Reads the states of all partitions, settles those that need it, and leads what is this broker's.
pub(super) fn lead(broker: &Arc<Broker>, topics: BTreeMap<TopicName, StoredTopic>) -> Result<(), StartError> {
    let store = broker.store().clone();
    let partitions: Vec<_> = topics
        .iter()
        .flat_map(|(name, topic)| {
            topic
                .assignment
                .partitions
                .keys()
                .map(|index| TopicPartition { topic: name.clone(), partition: *index })
        })
        .collect();
    let nodes = read_nodes(&*store, partitions.iter().map(partition_state::path).collect())?;
    let mut states = BTreeMap::new();
    for (partition, node) in partitions.into_iter().zip(nodes) {
        if let Some((data, version)) = node {
            states.insert(partition, (PartitionState::decode(data.as_deref())?, version));
        }
    }
    let mut settled = Vec::new();
    let mut images = Vec::new();
    for (name, topic) in topics {
        let mut image = TopicImage {
            name: name.clone(),
            id: topic.assignment.topic_id.unwrap_or(TopicId::ZERO),
            partitions: BTreeMap::new(),
            configs: topic.configs,
        };
        for (index, assigned) in topic.assignment.partitions {
            let partition = TopicPartition { topic: name.clone(), partition: index };
            let stored = states.remove(&partition);
            let (it, ops) = settle(broker, &partition, assigned.replicas, stored);
            settled.extend(ops);
            image.partitions.insert(index, it);
        }
        images.push(image);
    }
    if !settled.is_empty() {
        Blocking::new(&*store).multi(settled)?;
    }
    for image in &images {
        for (index, it) in image.partitions.iter().filter(|(_, it)| it.leader == broker.id()) {
            let name = TopicPartition { topic: image.name.clone(), partition: *index };
            broker.become_leader(&name, image, it, false);
        }
    }
    broker.update_image(|now| now.with_topics(images));
    Ok(())
}

/// The state of a partition now that this broker is alive, and the writes that make it so.
fn settle(
    broker: &Broker,
    partition: &TopicPartition,
    replicas: Vec<BrokerId>,
    stored: Option<(PartitionState, i32)>,
) -> (PartitionImage, Vec<Op>) {
    let me = broker.id();
    let image = |state: &PartitionState, partition_epoch| PartitionImage {
        leader: state.leader,
        leader_epoch: state.leader_epoch,
        partition_epoch,
        controller_epoch: state.controller_epoch,
        replicas: replicas.clone(),
        isr: state.isr.clone(),
        offline: Vec::new(),
    };
    let elected = |leader_epoch| PartitionState {
        leader: me,
        leader_epoch,
        isr: vec![me],
        controller_epoch: broker.controller_epoch(),
        is_recovering: false,
    };
    match stored {
        // It leads already, and nobody is in sync but this broker; nothing has changed.
        Some((state, version)) if state.leader == me && state.isr == [me] => {
            (image(&state, version), Vec::new())
        }
        // The leader is gone, and this broker has all that was confirmed.
        Some((state, version)) if state.isr.contains(&me) && replicas.contains(&me) => {
            let state = elected(LeaderEpoch(state.leader_epoch.0.saturating_add(1)));
            let write = Op::set(partition_state::path(partition), state.encode(), Some(version));
            (image(&state, version + 1), vec![write])
        }
        Some((mut state, version)) => {
            tracing::warn!(%partition, isr = ?state.isr, "no in-sync replica is alive: the partition has no leader");
            state.leader = BrokerId::NONE;
            (image(&state, version), Vec::new())
        }
        // The broker died between the topic's node and the partition's.
        None if replicas.contains(&me) => {
            let state = elected(LeaderEpoch(0));
            let path = partition_state::partition_path(partition);
            let ops = vec![
                Op::create(path, Value::NULL, CreateMode::Persistent),
                Op::create(partition_state::path(partition), state.encode(), CreateMode::Persistent),
            ];
            (image(&state, 0), ops)
        }
        None => {
            let nobody = PartitionState {
                leader: BrokerId::NONE,
                leader_epoch: LeaderEpoch(0),
                isr: Vec::new(),
                controller_epoch: broker.controller_epoch(),
                is_recovering: false,
            };
            (image(&nobody, 0), Vec::new())
        }
    }
}

/// Finishes the deletions that were begun before the broker stopped.
pub(super) fn resume_deletions(broker: &Arc<Broker>) -> Result<(), StartError> {
    let image = broker.image();
    for name in Blocking::new(&**broker.store()).children(delete_topics::ROOT)? {
        let Some(topic) = image.topic(&name) else {
            let path = delete_topics::path(&TopicName::from(name.as_str()));
            Blocking::new(&**broker.store()).delete(&path, None)?;
            continue;
        };
        let (sender, receiver) = mpsc::sync_channel(1);
        topics::finish_deletion(broker, topic, move |outcome| {
            // The receiver waits right below.
            let _ = sender.send(outcome.is_ok());
        });
        if receiver.recv() != Ok(true) {
            tracing::error!(topic = name, "a deletion that was begun earlier cannot be finished");
        }
    }
    Ok(())
}
