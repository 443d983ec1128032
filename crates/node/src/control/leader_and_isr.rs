//! LeaderAndIsr: partitions get their leaders, here and elsewhere.
//!
//! Fetchers let go of all partitions first, so that nobody appends while a role changes (KAFKA-13266); then come the
//! leaders, then the followers, which the fetchers take up again together. A partition that fails keeps the epoch it
//! had, so that the same request can come again.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::replica::control::{self, Order, Ordered, Refusal};
use kernel::replica::leader::Leadership;
use metadata::store::{Request, Response, StoreError};
use metadata::znode::config::{self, ConfigEntity};
use storage::log_dirs::NewLog;
use wire::types::{BrokerId, TopicId, TopicName, TopicPartition};

use super::Failure;
use crate::broker::Broker;
use crate::drive::gather::Gather;
use crate::drive::{broker_configs, fetchers, groups, topic_configs};
use crate::partition::{Following, Origin, Partition};

/// The configs of topics are read in portions of this many.
const TOPICS_AT_ONCE: usize = 1_000;

/// What the controller says of one partition.
#[derive(Clone, Debug)]
pub(crate) struct PartitionOrder {
    pub(crate) partition: TopicPartition,
    /// The topic's id; zero if none was told.
    pub(crate) topic_id: TopicId,
    pub(crate) leader: BrokerId,
    /// Epochs, replicas, ISR.
    pub(crate) leadership: Leadership,
    /// Whether no replica of the partition has existed before.
    pub(crate) is_new: bool,
}

/// What became of one partition.
pub(crate) type Outcome = Result<(), Failure>;

type Configs = BTreeMap<String, String>;
type KnownConfigs = BTreeMap<TopicName, Result<Configs, StoreError>>;

/// Obeys a request that the fence has let pass; `done` gets the outcome of each order, in their order.
pub(crate) fn obey(
    broker: &Arc<Broker>,
    orders: Arc<Vec<PartitionOrder>>,
    origin: Origin,
    done: impl FnOnce(Vec<Outcome>) + Send + 'static,
) {
    let mut unknown: Vec<TopicName> = orders
        .iter()
        .filter(|order| broker.hosted(&order.partition).is_none())
        .map(|order| order.partition.topic.clone())
        .collect();
    unknown.sort();
    unknown.dedup();
    let is_unknown =
        |order: &PartitionOrder| groups::needs_to_learn(broker, &order.partition.topic, order.topic_id);
    let then = broker.clone();
    if orders.iter().any(is_unknown) {
        return groups::learn(broker, move || read_and_change(&then, orders, unknown, origin, done));
    }
    read_and_change(&then, orders, unknown, origin, done);
}

fn read_and_change(
    broker: &Arc<Broker>,
    orders: Arc<Vec<PartitionOrder>>,
    unknown: Vec<TopicName>,
    origin: Origin,
    done: impl FnOnce(Vec<Outcome>) + Send + 'static,
) {
    let then = broker.clone();
    broker.config_changes().logs_are_being_made();
    read_configs(broker, unknown, KnownConfigs::new(), move |configs| {
        let outcomes = change_roles(&then, &orders, &configs, origin);
        let meanwhile = then.config_changes().logs_are_made();
        for (topic, configs) in meanwhile.topics {
            topic_configs::apply(&then, &topic, &configs);
        }
        if meanwhile.defaults {
            broker_configs::refresh_logs(&then, || {});
        }
        done(outcomes);
    });
}

/// Reads the configs of `topics` behind those that are known, and goes on with all of them.
fn read_configs(
    broker: &Arc<Broker>,
    mut topics: Vec<TopicName>,
    known: KnownConfigs,
    then: impl FnOnce(KnownConfigs) + Send + 'static,
) {
    let rest = topics.split_off(topics.len().min(TOPICS_AT_ONCE));
    if topics.is_empty() {
        return then(known);
    }
    let broker = broker.clone();
    let next = broker.clone();
    let gather = Gather::new(topics.len(), move |read: Vec<(TopicName, Result<Configs, StoreError>)>| {
        let mut known = known;
        known.extend(read);
        // Answers come on a thread of the store's, which is not for work.
        next.clone().run_job(move || read_configs(&next, rest, known, then));
    });
    for (place, topic) in topics.into_iter().enumerate() {
        let gather = gather.clone();
        let path = ConfigEntity::Topic(topic.clone()).path();
        broker.store().submit(
            Request::get(path),
            Box::new(move |answer| gather.put(place, (topic, configs_in(answer)))),
        );
    }
}

fn configs_in(answer: Result<Response, StoreError>) -> Result<Configs, StoreError> {
    match answer {
        Ok(Response::Data { data, .. }) => {
            config::decode(data.as_deref()).map_err(|_| StoreError::Unexpected("configs that cannot be read"))
        }
        Ok(_) => Err(StoreError::Unexpected("an answer of another kind")),
        // A topic without a config node has no overrides.
        Err(error) if error.is_no_node() => Ok(Configs::new()),
        Err(error) => Err(error),
    }
}

fn change_roles(
    broker: &Arc<Broker>,
    orders: &[PartitionOrder],
    configs: &KnownConfigs,
    origin: Origin,
) -> Vec<Outcome> {
    let decided: Vec<Order> = orders.iter().map(|order| decide(broker, order)).collect();
    let changing = |decision: &Order| matches!(decision, Order::Lead | Order::Follow);
    let leaving = orders.iter().zip(&decided).filter(|(_, decision)| changing(decision));
    let leaving: Vec<_> = leaving.map(|(order, _)| order.partition.clone()).collect();
    fetchers::remove(broker, &leaving);
    make_logs(broker, orders, &decided, configs);
    let mut outcomes: Vec<Outcome> = orders.iter().map(|_| Ok(())).collect();
    let mut followers = Vec::new();
    for wanted in [Order::Lead, Order::Follow, Order::KeepLog] {
        let each = orders.iter().zip(&decided).zip(&mut outcomes);
        for ((order, _), outcome) in each.filter(|((_, decision), _)| **decision == wanted) {
            let taken = take_role(broker, order, wanted, configs, origin);
            *outcome = taken.map(|follower| followers.extend(follower));
        }
    }
    for ((order, decision), outcome) in orders.iter().zip(&decided).zip(&mut outcomes) {
        match decision {
            Order::Refused(refusal) => *outcome = Err(Failure::Refused(*refusal)),
            Order::AssignTopicId => *outcome = assign_topic_id(broker, order),
            Order::ForgetTopicId => fetchers::topic_id_changed(broker, &order.partition, None),
            Order::Lead | Order::Follow | Order::KeepLog | Order::Overtaken => {}
        }
    }
    fetchers::add(broker, followers);
    outcomes
}

/// Makes the logs of all partitions that are new here, together, and enters the epochs of those that it is to lead.
fn make_logs(broker: &Broker, orders: &[PartitionOrder], decided: &[Order], configs: &KnownConfigs) {
    let needs_log = |decision: &Order| matches!(decision, Order::Lead | Order::Follow | Order::KeepLog);
    let new = |(order, decision): (&PartitionOrder, &Order)| {
        let configs = configs.get(&order.partition.topic)?.as_ref().ok()?;
        let config = Arc::new(broker.log_config(configs));
        let leader_epoch = (*decision == Order::Lead).then_some(order.leadership.leader_epoch);
        let PartitionOrder { topic_id, is_new, .. } = *order;
        Some((order.partition.clone(), NewLog { topic_id, config, is_new, leader_epoch }))
    };
    let orders = orders.iter().zip(decided).filter(|(_, decision)| needs_log(decision));
    let orders = orders.filter(|(order, _)| broker.hosted(&order.partition).is_none());
    let wanted: BTreeMap<_, _> = orders.filter_map(new).collect();
    if wanted.len() > 1 {
        broker.make_logs(&wanted);
    }
}

fn decide(broker: &Broker, order: &PartitionOrder) -> Order {
    let image = broker.image();
    let ordered = Ordered {
        leader: order.leader,
        leader_epoch: order.leadership.leader_epoch,
        partition_epoch: order.leadership.partition_epoch,
        replicas: &order.leadership.replicas,
        topic_id: order.topic_id,
    };
    let decision = control::leader_and_isr(broker.id(), broker.local(&order.partition), &ordered, |id| {
        image.brokers().contains_key(&id)
    });
    tracing::debug!(partition = %order.partition, ?decision, leader = %order.leader, epoch = %ordered.leader_epoch, "LeaderAndIsr");
    decision
}

/// Makes the partition and gives it its role. Returns it if a fetcher must take it up.
fn take_role(
    broker: &Arc<Broker>,
    order: &PartitionOrder,
    role: Order,
    configs: &KnownConfigs,
    origin: Origin,
) -> Result<Option<Arc<Partition>>, Failure> {
    let partition = match broker.hosted(&order.partition) {
        Some(partition) => partition,
        None => {
            let configs = match configs.get(&order.partition.topic) {
                Some(Ok(configs)) => configs,
                Some(Err(error)) => {
                    let topic = &order.partition.topic;
                    tracing::error!(%topic, %error, "the configs of the topic cannot be read: it gets no replica here");
                    return Err(Failure::Configs);
                }
                // It was hosted when the request came, and no other has been served since.
                None => return Err(Failure::Configs),
            };
            broker.host(&order.partition, order.topic_id, configs, order.is_new).map_err(Failure::Create)?
        }
    };
    partition.log().set_topic_id(order.topic_id).map_err(Failure::Log)?;
    partition.learn_topic_id(order.topic_id);
    match role {
        Order::Lead => {
            partition.become_leader(broker, order.leadership.clone(), origin).map_err(Failure::Log)?;
            groups::elected(broker, &order.partition, order.leadership.leader_epoch);
            if !partition.log().health().is_online() {
                // The directory has failed meanwhile; who takes its partitions offline may have been here before.
                groups::resigned(broker, &order.partition, None);
            }
            Ok(None)
        }
        Order::Follow => {
            let following = Following {
                leader: order.leader,
                epoch: order.leadership.leader_epoch,
                partition_epoch: order.leadership.partition_epoch,
            };
            partition.become_follower(broker, following, origin);
            groups::resigned(broker, &order.partition, Some(following.epoch));
            Ok(Some(partition))
        }
        _ => {
            tracing::error!(
                partition = %order.partition, leader = %order.leader,
                "the leader is not alive: the replica keeps its role until the controller names another one"
            );
            Ok(None)
        }
    }
}

fn assign_topic_id(broker: &Arc<Broker>, order: &PartitionOrder) -> Outcome {
    let Some(partition) = broker.hosted(&order.partition) else {
        return Err(Failure::Refused(Refusal::StaleLeaderEpoch));
    };
    partition.log().set_topic_id(order.topic_id).map_err(Failure::Log)?;
    partition.learn_topic_id(order.topic_id);
    fetchers::topic_id_changed(broker, &order.partition, Some(order.topic_id));
    Ok(())
}
