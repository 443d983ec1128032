//! The start of a broker, from an open store and its directories to the first request.
//!
//! Order: identity (cluster id, broker id), logs, registration, controller, topics. A broker on the embedded
//! store is alone in its cluster: nobody else can hold the controller's node, and its own old ephemerals died
//! when the store was opened.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use kernel::metadata_image::{BrokerInfo, Endpoint, MetadataImage, PartitionImage, TopicImage};
use metadata::store::{Blocking, CreateMode, Op, OpResult, Request, Response, Store, StoreError, Value};
use metadata::znode::config::ConfigEntity;
use metadata::znode::controller::Controller;
use metadata::znode::feature::{Features, Format};
use metadata::znode::partition_state::{self, PartitionState};
use metadata::znode::topic::{self, TopicAssignment};
use metadata::znode::{self, broker::BrokerRegistration};
use metadata::znode::{
    DecodeError, broker_seqid, cluster_id, config, controller, controller_epoch, delete_topics, feature,
    persistent_paths,
};
use storage::log_dirs::{LogDirs, LogDirsError, LogDirsOptions};
use wire::types::{
    BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, Millis, TopicId, TopicName, TopicPartition,
};

use super::{isr_shrink, topics};
use crate::broker::{Broker, BrokerState, Environment, Found};
use crate::config::{EndPoint, KafkaConfig};

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The metadata store cannot be used.
    #[error("the metadata store cannot be used: {0}")]
    Store(#[from] StoreError),
    /// A znode holds what cannot be read.
    #[error("{0}")]
    Znode(#[from] DecodeError),
    /// The log directories cannot be used.
    #[error("{0}")]
    LogDirs(#[from] LogDirsError),
    /// No broker id can be drawn.
    #[error("no broker id is left above reserved.broker.max.id")]
    NoBrokerId,
}

/// Starts a broker. Blocks until it can serve.
///
/// # Errors
/// When the store or the directories cannot be used; nothing is served then.
pub fn start(config: KafkaConfig, environment: Environment) -> Result<Arc<Broker>, StartError> {
    let store = environment.store.clone();
    persistent_paths::ensure_persistent_paths(&*store)?;
    let now = environment.clock.now();
    let log_dirs = LogDirs::open(&config.log_dirs, log_dirs_options(&config))?;
    let cluster_id = find_cluster_id(&*store, log_dirs.cluster_id().as_deref(), environment.seed)?;
    let id = find_broker_id(&*store, &config, log_dirs.broker_id())?;
    log_dirs.claim(&cluster_id, id, now)?;
    let topics = read_topics(&*store)?;
    let config_of = |partition: &TopicPartition| {
        let none = BTreeMap::new();
        let overrides = topics.get(&partition.topic).map_or(&none, |topic: &StoredTopic| &topic.configs);
        Arc::new(config.log_config(overrides))
    };
    let loaded = log_dirs.load(config.num_recovery_threads_per_data_dir.max(1), &config_of, now)?;
    for (partition, error) in &loaded.failed {
        tracing::error!(%partition, %error, "the log cannot be opened and stays offline");
    }
    let (registration, broker_epoch) = register(&*store, &config, &environment.endpoints, id, now.wall_ms)?;
    let controller_epoch = elect(&*store, id, now.wall_ms)?;
    let image = MetadataImage::default()
        .with_cluster_id(&cluster_id)
        .with_broker(id, registration)
        .with_controller(Some(id));
    let features_epoch = features_epoch(&*store)?;
    let found = Found { id, log_dirs, image, broker_epoch, controller_epoch, features_epoch };
    let broker = Arc::new(Broker::new(config, environment, found));
    broker.set_state(BrokerState::Recovery);
    lead(&broker, topics)?;
    resume_deletions(&broker)?;
    isr_shrink::schedule(&broker);
    broker.set_state(BrokerState::Running);
    Ok(broker)
}

fn log_dirs_options(config: &KafkaConfig) -> LogDirsOptions {
    LogDirsOptions {
        producer_expiration: Millis(i64::from(config.producer_id_expiration_ms)),
        ..LogDirsOptions::default()
    }
}

/// The cluster's id: the store's; else that of the directories, which may come from a Kafka; else a new one.
fn find_cluster_id(store: &dyn Store, of_dirs: Option<&str>, seed: u64) -> Result<String, StartError> {
    let calls = Blocking::new(store);
    if let Some((data, _)) = calls.find(cluster_id::PATH)? {
        return Ok(cluster_id::decode(data.as_deref())?);
    }
    let mut random = fastrand::Rng::with_seed(seed.rotate_left(17));
    let id = of_dirs.map_or_else(|| TopicId(random.u128(..).to_be_bytes()).to_string(), str::to_owned);
    calls.ensure_path("/cluster")?;
    calls.create(cluster_id::PATH, cluster_id::encode(&id), CreateMode::Persistent)?;
    Ok(id)
}

/// The version of the finalized features; a new cluster begins with none of them, at 0.
fn features_epoch(store: &dyn Store) -> Result<i64, StartError> {
    let calls = Blocking::new(store);
    if let Some(stat) = calls.exists(feature::PATH)? {
        return Ok(i64::from(stat.version));
    }
    calls.create(feature::PATH, Features::none(Format::V2, true).encode(), CreateMode::Persistent)?;
    Ok(0)
}

/// The broker's id: the configured one, else that of the directories, else one that is drawn.
fn find_broker_id(
    store: &dyn Store,
    config: &KafkaConfig,
    of_dirs: Option<BrokerId>,
) -> Result<BrokerId, StartError> {
    if config.broker_id >= 0 {
        return Ok(BrokerId(config.broker_id));
    }
    if let Some(id) = of_dirs {
        return Ok(id);
    }
    match store.call(Request::Write(broker_seqid::draw()))? {
        Response::Written(OpResult::Set { stat }) => {
            broker_seqid::broker_id(&stat, config.reserved_broker_max_id).ok_or(StartError::NoBrokerId)
        }
        _ => Err(StoreError::Unexpected("an answer of another kind").into()),
    }
}

fn register(
    store: &dyn Store,
    config: &KafkaConfig,
    endpoints: &[EndPoint],
    id: BrokerId,
    wall_ms: i64,
) -> Result<(BrokerInfo, BrokerEpoch), StartError> {
    let told = |it: &EndPoint| Endpoint {
        listener: it.listener_name.clone(),
        host: it.host.clone(),
        port: i32::from(it.port),
    };
    let stored = |it: &EndPoint| znode::broker::Endpoint {
        listener_name: it.listener_name.clone(),
        host: it.host.clone(),
        port: i32::from(it.port),
        security_protocol: znode::broker::SecurityProtocol::from_name(it.security_protocol.name())
            .unwrap_or(znode::broker::SecurityProtocol::Plaintext),
    };
    let info =
        BrokerInfo { endpoints: endpoints.iter().map(told).collect(), rack: config.broker_rack.clone() };
    let registration = BrokerRegistration {
        endpoints: endpoints.iter().map(stored).collect(),
        rack: config.broker_rack.clone(),
        jmx_port: -1,
        timestamp_ms: Millis(wall_ms),
    };
    let results = Blocking::new(store).multi(registration.register(id, 5))?;
    let czxid = results.iter().find_map(|result| match result {
        OpResult::Set { stat } => Some(stat.czxid),
        _ => None,
    });
    Ok((info, BrokerEpoch(czxid.unwrap_or(-1))))
}

/// Takes the controller's node and opens a new term.
fn elect(store: &dyn Store, id: BrokerId, wall_ms: i64) -> Result<ControllerEpoch, StartError> {
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

/// Data and version of a znode, if there is one.
type Node = Option<(Option<Bytes>, i32)>;

/// Data and version of each of `paths`, asked for at once; none where there is no such znode.
fn read_nodes(store: &dyn Store, paths: Vec<String>) -> Result<Vec<Node>, StoreError> {
    let answers = Blocking::new(store).pipeline(paths.into_iter().map(Request::get).collect());
    let node = |answer: Result<Response, StoreError>| match answer {
        Ok(Response::Data { data, stat }) => Ok(Some((data, stat.version))),
        Ok(_) => Err(StoreError::Unexpected("an answer of another kind")),
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(error),
    };
    answers.into_iter().map(node).collect()
}

struct StoredTopic {
    assignment: TopicAssignment,
    configs: BTreeMap<String, String>,
}

fn read_topics(store: &dyn Store) -> Result<BTreeMap<TopicName, StoredTopic>, StartError> {
    let names: Vec<_> =
        Blocking::new(store).children(topic::ROOT)?.iter().map(|n| TopicName::from(n.as_str())).collect();
    let assignments = read_nodes(store, names.iter().map(topic::path).collect())?;
    let config_path = |name: &TopicName| ConfigEntity::Topic(name.clone()).path();
    let configs = read_nodes(store, names.iter().map(config_path).collect())?;
    let mut topics = BTreeMap::new();
    for ((name, assignment), configs) in names.into_iter().zip(assignments).zip(configs) {
        let Some((data, _)) = assignment else { continue };
        let assignment = TopicAssignment::decode(data.as_deref())?;
        // A topic without a config node is one whose node was removed by hand: it has no overrides.
        let configs = match configs {
            Some((data, _)) => config::decode(data.as_deref())?,
            None => BTreeMap::new(),
        };
        topics.insert(name, StoredTopic { assignment, configs });
    }
    Ok(topics)
}

/// Reads the states of all partitions, settles those that need it, and leads what is this broker's.
fn lead(broker: &Arc<Broker>, topics: BTreeMap<TopicName, StoredTopic>) -> Result<(), StartError> {
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
fn resume_deletions(broker: &Arc<Broker>) -> Result<(), StartError> {
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
