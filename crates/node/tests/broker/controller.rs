//! The controller of a broker that is alone, seen through the tree: what it writes, and what it does when somebody else
//! writes behind its back.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use metadata::store::{Blocking, CreateMode, Op, Store, Value};
use metadata::znode::config::{self, ConfigEntity};
use metadata::znode::partition_state::{self, PartitionState};
use metadata::znode::topic::{self, PartitionAssignment, TopicAssignment};
use metadata::znode::{broker, config_change, controller, controller_epoch};
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::MetadataRequest;
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::types::{BrokerId, ControllerEpoch, TopicName, TopicPartition};

use crate::cases_tools::good;
use crate::harness::{Node, PATIENCE};

/// Waits until `condition` holds; time passes for the broker too.
pub(crate) fn until(node: &Node, what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what} did not come to pass");
        node.advance(Duration::from_millis(50));
        node.broker.poll();
        std::thread::yield_now();
    }
}

fn epoch(store: &dyn Store) -> ControllerEpoch {
    let (data, _) = Blocking::new(store).get(controller_epoch::PATH).unwrap();
    controller_epoch::decode(data.as_deref()).unwrap()
}

fn state(store: &dyn Store, topic: &str, partition: i32) -> Option<PartitionState> {
    let name = TopicPartition { topic: TopicName::from(topic), partition };
    let (data, _) = Blocking::new(store).find(&partition_state::path(&name)).unwrap()?;
    Some(PartitionState::decode(data.as_deref()).unwrap())
}

pub(crate) fn leader(node: &Node, topic: &str) -> Option<i32> {
    let asked = MetadataRequestTopic { name: Some(Str::from(topic)), ..MetadataRequestTopic::default() };
    let request = MetadataRequest {
        topics: Some(vec![asked]),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    };
    let told = node.call(9, &request).topics.into_iter().next()?;
    (told.error_code == ErrorCode::None.code()).then(|| told.partitions[0].leader_id)
}

/// Writes a topic as a tool of old does, straight into the tree.
fn write_topic(store: &dyn Store, name: &str, partitions: i32) {
    write_topic_on(store, name, partitions, &[0]);
}

pub(crate) fn write_topic_on(store: &dyn Store, name: &str, partitions: i32, replicas: &[i32]) {
    let replicas = PartitionAssignment::of(replicas.iter().copied().map(BrokerId).collect());
    let assignment = (0..partitions).map(|index| (index, replicas.clone()));
    let value = TopicAssignment { topic_id: None, partitions: assignment.collect() }.encode();
    let path = topic::path(&TopicName::from(name));
    Blocking::new(store).create(&path, value, CreateMode::Persistent).unwrap();
}

/// Lets it look as if broker 1 were there too; it goes with the session of `store`.
pub(crate) fn register_another(store: &dyn Store) {
    let (registration, _) = Blocking::new(store).get(&broker::path(BrokerId(0))).unwrap();
    let registration = Value::from(registration);
    Blocking::new(store).create(&broker::path(BrokerId(1)), registration, CreateMode::Ephemeral).unwrap();
}

#[test]
fn each_start_opens_a_term_of_its_own() {
    let node = Node::start(&[("broker.id", "0")]);
    assert_eq!(epoch(&node.store()), ControllerEpoch(1));
    let node = node.restart(&[("broker.id", "0")]);
    assert_eq!(epoch(&node.store()), ControllerEpoch(2));
    let (data, stat) = Blocking::new(&node.store()).get(controller::PATH).unwrap();
    assert_eq!(controller::Controller::decode(data.as_deref()).unwrap().broker_id, BrokerId(0));
    assert_ne!(stat.ephemeral_owner.0, 0);
}

#[test]
fn a_topic_that_a_tool_writes_into_the_tree_gets_an_id_and_leaders() {
    let node = Node::start(&[("broker.id", "0")]);
    let store = node.store();
    write_topic(&store, "t", 3);
    until(&node, "a leader", || leader(&node, "t") == Some(0));
    for partition in 0..3 {
        assert_eq!(state(&store, "t", partition).unwrap().leader, BrokerId(0));
    }
    let (data, _) = Blocking::new(&store).get(&topic::path(&TopicName::from("t"))).unwrap();
    assert!(TopicAssignment::decode(data.as_deref()).unwrap().topic_id.is_some());
    assert_eq!(node.produce("t", 2, good(1)), Ok(0));
}

#[test]
fn a_creation_that_was_cut_short_between_its_znodes_is_finished() {
    let node = Node::start(&[("broker.id", "0")]);
    let store = node.store();
    let name = TopicName::from("t");
    let calls = Blocking::new(&store);
    calls
        .create("/brokers/topics/other", TopicAssignment::default().encode(), CreateMode::Persistent)
        .unwrap();
    let assignment =
        [(0, PartitionAssignment::of(vec![BrokerId(0)])), (1, PartitionAssignment::of(vec![BrokerId(0)]))];
    let value = TopicAssignment { topic_id: None, partitions: assignment.into() }.encode();
    let first = TopicPartition { topic: name.clone(), partition: 0 };
    calls
        .multi(vec![
            Op::create(topic::path(&name), value, CreateMode::Persistent),
            Op::create(partition_state::partitions_path(&name), Value::NULL, CreateMode::Persistent),
            Op::create(partition_state::partition_path(&first), Value::NULL, CreateMode::Persistent),
        ])
        .unwrap();
    until(&node, "the states of both partitions", || {
        state(&store, "t", 0).is_some() && state(&store, "t", 1).is_some()
    });
    until(&node, "a leader", || leader(&node, "t") == Some(0));
}

#[test]
fn a_controller_whose_epoch_is_taken_writes_nothing_in_the_old_term() {
    let node = Node::start(&[("broker.id", "0")]);
    let store = node.store();
    let calls = Blocking::new(&store);
    calls.set(controller_epoch::PATH, controller_epoch::encode(ControllerEpoch(7)), None).unwrap();
    write_topic(&store, "t", 1);
    until(&node, "a leader", || leader(&node, "t") == Some(0));
    // It gave its office up, and what it does now it does in a later term.
    assert!(epoch(&store) >= ControllerEpoch(7));
    assert!(state(&store, "t", 0).unwrap().controller_epoch >= ControllerEpoch(7));
}

#[test]
fn a_session_that_ends_is_followed_by_a_new_registration_and_a_new_term() {
    let node = Node::start(&[("broker.id", "0")]);
    node.create_topic("t", 1, &[]);
    let store = node.store();
    let before = Blocking::new(&store).exists(&broker::path(BrokerId(0))).unwrap().unwrap();
    node.expire_session();
    until(&node, "a new term", || epoch(&store) == ControllerEpoch(2));
    let after = Blocking::new(&store).exists(&broker::path(BrokerId(0))).unwrap().unwrap();
    assert!(after.czxid > before.czxid);
    until(&node, "a leader", || leader(&node, "t") == Some(0));
    assert_eq!(node.produce("t", 0, good(1)), Ok(0));
}

#[test]
fn configs_that_are_changed_elsewhere_are_in_force_and_old_notifications_are_removed() {
    let node = Node::start(&[("broker.id", "0")]);
    node.create_topic("t", 1, &[]);
    let store = node.store();
    let entity = ConfigEntity::Topic(TopicName::from("t"));
    let configs = [("max.message.bytes".to_owned(), "10".to_owned())].into();
    let change =
        || vec![Op::set(entity.path(), config::encode(&configs), None), config_change::notify(&entity)];
    Blocking::new(&store).multi(change()).unwrap();
    until(&node, "a refusal", || node.produce("t", 0, good(1)) == Err(ErrorCode::MessageTooLarge));
    node.advance(Duration::from_secs(16 * 60));
    Blocking::new(&store).multi(change()).unwrap();
    until(&node, "an empty list", || Blocking::new(&store).children(config_change::ROOT).unwrap().len() < 2);
}

/// KAFKA-6526.
#[test]
fn a_topic_that_may_lose_records_gets_a_leader_that_is_not_in_sync() {
    let node = Node::start(&[("broker.id", "0")]);
    let store = node.store();
    let calls = Blocking::new(&store);
    let (registration, _) = calls.get(&broker::path(BrokerId(0))).unwrap();
    calls.create(&broker::path(BrokerId(1)), Value::from(registration), CreateMode::Ephemeral).unwrap();
    write_topic_on(&store, "t", 1, &[1, 0]);
    until(&node, "a leader", || state(&store, "t", 0).is_some_and(|state| state.leader == BrokerId(1)));
    let alone = PartitionState { isr: vec![BrokerId(1)], ..state(&store, "t", 0).unwrap() };
    let name = TopicPartition { topic: TopicName::from("t"), partition: 0 };
    calls.set(&partition_state::path(&name), alone.encode(), None).unwrap();
    calls.delete(&broker::path(BrokerId(1)), None).unwrap();
    until(&node, "no leader", || state(&store, "t", 0).is_some_and(|state| state.leader == BrokerId::NONE));

    let entity = ConfigEntity::Topic(name.topic);
    let configs = [("unclean.leader.election.enable".to_owned(), "true".to_owned())].into();
    let written = Op::create(entity.path(), config::encode(&configs), CreateMode::Persistent);
    calls.multi(vec![written, config_change::notify(&entity)]).unwrap();
    until(&node, "a leader that is not in sync", || leader(&node, "t") == Some(0));
    let elected = state(&store, "t", 0).unwrap();
    assert_eq!((elected.isr, elected.is_recovering), (vec![BrokerId(0)], true));
}

#[test]
fn a_controller_whose_store_is_gone_gives_the_hand_over_of_its_leaderships_up_and_stops() {
    let soon = [("controller.socket.timeout.ms", "200"), ("controlled.shutdown.retry.backoff.ms", "50")];
    let node = Node::start(&[&[("broker.id", "0")][..], &soon].concat());
    let store = node.store();
    register_another(&store);
    write_topic_on(&store, "t", 1, &[0, 1]);
    until(&node, "a leader beside another member", || {
        leader(&node, "t") == Some(0) && state(&store, "t", 0).is_some_and(|state| state.isr.len() == 2)
    });
    node.gate.hold();
    let (end, ended) = mpsc::channel();
    node.broker.begin_to_leave(move || end.send(()).unwrap());
    assert!(ended.try_recv().is_err(), "what the store is asked for must hold the hand-over up");
    until(&node, "the end of the hand-over", || ended.try_recv().is_ok());
    node.broker.shut_down();
}
