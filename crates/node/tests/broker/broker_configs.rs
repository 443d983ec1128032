//! Dynamic broker configs (KIP-226): where they are stored, what they override, and that they come in force at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use metadata::store::{Blocking, CreateMode, Op, Store, Value};
use metadata::znode::config::{self, ConfigEntity, EntityName};
use metadata::znode::partition_state::{self, PartitionState};
use metadata::znode::{broker, config_change};
use node::config::ConnectionRates;
use node::peers::Purpose;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::describe_configs_response::DescribeConfigsResourceResult;
use wire::messages::{
    AlterConfigsRequest, DescribeConfigsRequest, FetchRequest, IncrementalAlterConfigsRequest,
    LeaderAndIsrResponse, alter_configs_request, incremental_alter_configs_request as incremental,
};
use wire::types::{BrokerId, TopicId, TopicName, TopicPartition};

use crate::cases_tools::good;
use crate::control_tools::{LATEST, Order, errors, leader_and_isr, order};
use crate::controller::{leader, until, write_topic_on};
use crate::harness::{Node, answer, frame};
use crate::peers::Sent;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const SET: i8 = 0;
const DELETE: i8 = 1;
const ONE: &str = "0";
const ALL: &str = "";

fn described(node: &Node, kind: i8, name: &str) -> Vec<DescribeConfigsResourceResult> {
    let resource = DescribeConfigsResource {
        resource_type: kind,
        resource_name: Str::from(name),
        configuration_keys: None,
    };
    let request = DescribeConfigsRequest {
        resources: vec![resource],
        include_synonyms: true,
        ..DescribeConfigsRequest::default()
    };
    let result = node.call(4, &request).results.remove(0);
    assert_eq!(result.error_code, 0, "{result:?}");
    result.configs
}

/// Value and sources of a key, the strongest first.
fn told(node: &Node, kind: i8, name: &str, key: &str) -> (String, Vec<i8>) {
    let all = described(node, kind, name);
    let it = all.iter().find(|it| it.name == key).unwrap_or_else(|| panic!("{key} is not told"));
    let value = it.value.as_deref().unwrap_or("null").to_owned();
    (value, it.synonyms.iter().map(|synonym| synonym.source).collect())
}

fn alter(node: &Node, name: &str, validate_only: bool, changes: &[(&str, i8, Option<&str>)]) -> i16 {
    let configs = changes.iter().map(|(name, config_operation, value)| incremental::AlterableConfig {
        name: Str::from(*name),
        config_operation: *config_operation,
        value: value.map(Str::from),
    });
    let resource = incremental::AlterConfigsResource {
        resource_type: BROKER,
        resource_name: Str::from(name),
        configs: configs.collect(),
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only };
    node.call(1, &request).responses[0].error_code
}

#[track_caller]
fn set(node: &Node, name: &str, key: &str, value: &str) {
    assert_eq!(alter(node, name, false, &[(key, SET, Some(value))]), 0, "{key}={value}");
}

#[track_caller]
fn delete(node: &Node, name: &str, key: &str) {
    assert_eq!(alter(node, name, false, &[(key, DELETE, None)]), 0, "{key}");
}

fn stored(node: &Node, entity: &ConfigEntity) -> Option<config::Configs> {
    let (data, _) = Blocking::new(&node.store()).find(&entity.path()).unwrap()?;
    Some(config::decode(data.as_deref()).unwrap())
}

/// Another program changes the dynamic configs of all brokers.
fn change_elsewhere(store: &dyn Store, configs: &[(&str, &str)]) {
    let configs = configs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let (calls, entity) = (Blocking::new(store), ConfigEntity::DefaultBroker);
    let value = config::encode(&configs);
    let write = match calls.find(&entity.path()).unwrap() {
        Some(_) => Op::set(entity.path(), value, None),
        None => Op::create(entity.path(), value, CreateMode::Persistent),
    };
    calls.multi(vec![write, config_change::notify(&entity)]).unwrap();
}

#[test]
fn one_broker_goes_before_all_and_they_before_the_file() {
    let node = Node::start(&[("num.io.threads", "8")]);
    set(&node, ALL, "num.io.threads", "10");
    set(&node, ONE, "num.io.threads", "12");
    assert_eq!(told(&node, BROKER, ONE, "num.io.threads"), ("12".to_owned(), vec![2, 3, 4, 5]));
    assert_eq!(told(&node, BROKER, ALL, "num.io.threads"), ("10".to_owned(), vec![3]));
    assert_eq!(node.broker.config().num_io_threads, 12);
    delete(&node, ONE, "num.io.threads");
    assert_eq!(told(&node, BROKER, ONE, "num.io.threads"), ("10".to_owned(), vec![3, 4, 5]));
    delete(&node, ALL, "num.io.threads");
    assert_eq!(told(&node, BROKER, ONE, "num.io.threads"), ("8".to_owned(), vec![4, 5]));
    assert_eq!(described(&node, BROKER, ALL), []);
}

#[test]
fn they_are_stored_as_kafka_stores_them_and_survive_a_restart() {
    let node = Node::start(&[]);
    set(&node, ALL, "log.retention.ms", "5000");
    set(&node, ONE, "background.threads", "11");
    set(&node, ONE, "some.plugin", "x");
    let of_broker = ConfigEntity::Broker(BrokerId(0));
    assert_eq!(of_broker.path(), "/config/brokers/0");
    assert_eq!(ConfigEntity::DefaultBroker.path(), "/config/brokers/<default>");
    let (one, all) =
        (stored(&node, &of_broker).unwrap(), stored(&node, &ConfigEntity::DefaultBroker).unwrap());
    assert_eq!(
        one.into_iter().collect::<Vec<_>>(),
        [("background.threads".to_owned(), "11".to_owned()), ("some.plugin".to_owned(), "x".to_owned())]
    );
    assert_eq!(all.into_iter().collect::<Vec<_>>(), [("log.retention.ms".to_owned(), "5000".to_owned())]);
    let notified = Blocking::new(&node.store()).children(config_change::ROOT).unwrap();
    assert_eq!(notified.len(), 3);
    let node = node.restart(&[]);
    assert_eq!(told(&node, BROKER, ONE, "background.threads"), ("11".to_owned(), vec![2, 5]));
    assert_eq!(told(&node, BROKER, ONE, "log.retention.ms").0, "5000");
    assert_eq!(node.broker.config().background_threads, 11);
}

#[test]
fn a_replacing_request_removes_what_it_does_not_name() {
    let node = Node::start(&[]);
    set(&node, ALL, "background.threads", "11");
    let config = alter_configs_request::AlterableConfig {
        name: Str::from("num.io.threads"),
        value: Some(Str::from("9")),
    };
    let resource = alter_configs_request::AlterConfigsResource {
        resource_type: BROKER,
        resource_name: Str::from(ALL),
        configs: vec![config],
    };
    for validate_only in [true, false] {
        let request = AlterConfigsRequest { resources: vec![resource.clone()], validate_only };
        assert_eq!(node.call(2, &request).responses[0].error_code, 0);
        let names: Vec<_> = described(&node, BROKER, ALL).iter().map(|it| it.name.to_string()).collect();
        assert_eq!(names, [if validate_only { "background.threads" } else { "num.io.threads" }]);
    }
}

/// KAFKA-16938.
#[test]
fn what_is_refused_or_only_validated_is_neither_stored_nor_in_force() {
    let node = Node::start(&[]);
    let refused = [("background.threads", SET, Some("11")), ("broker.rack", SET, Some("r"))];
    assert_eq!(alter(&node, ONE, false, &refused), ErrorCode::InvalidRequest.code());
    assert_eq!(alter(&node, ONE, true, &refused[..1]), 0);
    let password = ("sasl.jaas.config", SET, Some("secret"));
    assert_eq!(alter(&node, ONE, true, &[password]), 0);
    assert_eq!(alter(&node, ONE, false, &[password]), ErrorCode::InvalidConfig.code());
    assert_eq!(stored(&node, &ConfigEntity::Broker(BrokerId(0))), None);
    assert_eq!(told(&node, BROKER, ONE, "background.threads"), ("10".to_owned(), vec![5]));
}

/// KAFKA-9254.
#[test]
fn a_default_of_topics_rules_the_next_batch_unless_the_topic_has_its_own() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.create_topic("own", 1, &[("max.message.bytes", "5000")]);
    set(&node, ALL, "message.max.bytes", "10");
    assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::MessageTooLarge));
    assert!(node.produce("own", 0, good(1)).is_ok());
    assert_eq!(told(&node, TOPIC, "t", "max.message.bytes"), ("10".to_owned(), vec![3, 5]));
    assert_eq!(told(&node, TOPIC, "own", "max.message.bytes"), ("5000".to_owned(), vec![1, 3, 5]));
    node.create_topic("later", 1, &[]);
    assert_eq!(node.produce("later", 0, good(1)), Err(ErrorCode::MessageTooLarge));
    let node = node.restart(&[]);
    assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::MessageTooLarge));
    delete(&node, ALL, "message.max.bytes");
    assert!(node.produce("t", 0, good(1)).is_ok());
    assert!(node.produce("later", 0, good(1)).is_ok());
}

/// KAFKA-10268.
#[test]
fn retention_goes_back_to_the_hours_of_the_file_when_the_milliseconds_are_deleted() {
    let node = Node::start(&[("log.retention.hours", "2")]);
    node.create_topic("t", 1, &[]);
    assert_eq!(told(&node, TOPIC, "t", "retention.ms").0, "7200000");
    set(&node, ONE, "log.retention.ms", "1000");
    assert_eq!(told(&node, TOPIC, "t", "retention.ms"), ("1000".to_owned(), vec![2, 4, 5]));
    delete(&node, ONE, "log.retention.ms");
    assert_eq!(told(&node, TOPIC, "t", "retention.ms").0, "7200000");
}

#[test]
fn a_change_that_another_broker_has_stored_is_followed() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let store = node.store();
    change_elsewhere(
        &store,
        &[("message.max.bytes", "10"), ("num.partitions", "7"), ("num.io.threads", "0")],
    );
    until(&node, "the change", || node.produce("t", 0, good(1)) == Err(ErrorCode::MessageTooLarge));
    // What may not be stored there has no effect.
    assert_eq!(told(&node, BROKER, ONE, "num.partitions"), ("1".to_owned(), vec![5]));
    assert_eq!(node.broker.config().num_io_threads, 8);
    change_elsewhere(&store, &[]);
    until(&node, "the change back", || node.produce("t", 0, good(1)).is_ok());
}

#[test]
fn a_default_that_changes_while_a_log_is_made_is_in_force() {
    let node = Node::start(&[]);
    node.create_topic("u", 1, &[]);
    node.gate.hold_answer();
    let waiting = node.submit(frame(LATEST, &leader_and_isr(LATEST, &[order("t", 0, 0, &[0])])));
    node.gate.wait_for_answer();
    change_elsewhere(&node.store(), &[("message.max.bytes", "10")]);
    until(&node, "the change", || node.produce("u", 0, good(1)) == Err(ErrorCode::MessageTooLarge));
    node.gate.let_answer_go();
    let response: LeaderAndIsrResponse = answer(&waiting, LATEST);
    assert_eq!(errors(&response), [ErrorCode::None]);
    assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::MessageTooLarge));
}

/// KAFKA-6526, for all topics at once.
#[test]
fn brokers_that_may_lose_records_elect_leaders_that_are_not_in_sync_but_for_topics_that_may_not() {
    let node = Node::start(&[]);
    let store = node.store();
    let calls = Blocking::new(&store);
    let (registration, _) = calls.get(&broker::path(BrokerId(0))).unwrap();
    calls.create(&broker::path(BrokerId(1)), Value::from(registration), CreateMode::Ephemeral).unwrap();
    let safe = ConfigEntity::Topic(TopicName::from("safe"));
    let never = [("unclean.leader.election.enable".to_owned(), "false".to_owned())].into();
    calls.create(&safe.path(), Value::from(config::encode(&never)), CreateMode::Persistent).unwrap();
    let name = |topic| TopicPartition { topic: TopicName::from(topic), partition: 0 };
    let state = |topic| {
        let (data, _) = calls.find(&partition_state::path(&name(topic))).unwrap()?;
        Some(PartitionState::decode(data.as_deref()).unwrap())
    };
    for topic in ["t", "safe"] {
        write_topic_on(&store, topic, 1, &[1, 0]);
        until(&node, "a leader", || state(topic).is_some_and(|state| state.leader == BrokerId(1)));
        let alone = PartitionState { isr: vec![BrokerId(1)], ..state(topic).unwrap() };
        calls.set(&partition_state::path(&name(topic)), alone.encode(), None).unwrap();
    }
    calls.delete(&broker::path(BrokerId(1)), None).unwrap();
    let leaderless = |topic| state(topic).is_some_and(|state| state.leader == BrokerId::NONE);
    until(&node, "no leaders", || leaderless("t") && leaderless("safe"));
    set(&node, ALL, "unclean.leader.election.enable", "true");
    until(&node, "a leader that is not in sync", || leader(&node, "t") == Some(0));
    assert!(leaderless("safe"));
}

fn topics_of(sent: &Sent<FetchRequest>) -> Vec<TopicId> {
    sent.request.topics.iter().map(|topic| topic.topic_id).collect()
}

#[test]
fn partitions_move_among_fetchers_when_their_number_changes() {
    let node = Node::start(&[]);
    let ids: Vec<_> = (1..=4).map(|number| TopicId([number; 16])).collect();
    let orders: Vec<Order> =
        ids.iter().map(|id| Order { id: *id, ..order(&format!("t{}", id.0[0]), 1, 3, &[0, 1]) }).collect();
    node.tell(9, &[0, 1], &orders);
    orders.iter().for_each(|order| node.obeys(order));
    let first = node.peers.take::<FetchRequest>();
    assert_eq!(first.channel.purpose, Purpose::Fetcher(0));
    set(&node, ONE, "num.replica.fetchers", "2");
    let second = node.peers.take::<FetchRequest>();
    assert_eq!(second.channel.purpose, Purpose::Fetcher(1));
    first.fail();
    node.advance(Duration::from_secs(2));
    node.broker.poll();
    let third = node.peers.take::<FetchRequest>();
    assert_eq!(third.channel.purpose, Purpose::Fetcher(0));
    let mut fetched = [topics_of(&second), topics_of(&third)].concat();
    fetched.sort();
    assert_eq!(fetched, ids, "every partition by one fetcher");
    assert!(!second.request.topics.is_empty() && !third.request.topics.is_empty());
}

#[test]
fn whoever_asked_is_told_the_limits_now_and_when_they_change() {
    let node = Node::start(&[("max.connections", "100")]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    node.broker.on_reconfigured(move |config| sink.lock().unwrap().push(config.max_connections));
    set(&node, ALL, "max.connections", "50");
    set(&node, ONE, "max.connections", "60");
    delete(&node, ONE, "max.connections");
    let mut seen = seen.lock().unwrap().clone();
    seen.dedup();
    assert_eq!(seen, [100, 50, 60, 50]);
}

/// Another program stores a rate of connections, or deletes it.
fn store_rate(store: &dyn Store, ip: EntityName, rate: Option<&str>) {
    let (calls, entity) = (Blocking::new(store), ConfigEntity::Ip(ip));
    let configs = rate.map(|rate| ("connection_creation_rate".to_owned(), rate.to_owned()));
    let value = config::encode(&configs.into_iter().collect());
    let write = match calls.find(&entity.path()).unwrap() {
        Some(_) => Op::set(entity.path(), value, None),
        None => Op::create(entity.path(), value, CreateMode::Persistent),
    };
    calls.multi(vec![write, config_change::notify(&entity)]).unwrap();
}

/// KIP-612.
#[test]
fn rates_of_connections_that_are_stored_of_ips_are_told_to_whoever_asked_and_known_to_the_next_start() {
    let (six, any) = (EntityName::Named("::1".to_owned()), EntityName::Default);
    let follow = |node: &Node| {
        let seen = Arc::new(Mutex::new(ConnectionRates::default()));
        let sink = seen.clone();
        node.broker.on_reconfigured(move |config| *sink.lock().unwrap() = config.connection_rates().clone());
        seen
    };
    let node = Node::start(&[]);
    let seen = follow(&node);
    let told = |seen: &Mutex<ConnectionRates>| {
        let seen = seen.lock().unwrap().clone();
        (seen.default, seen.own.into_iter().collect::<Vec<_>>())
    };
    assert_eq!(told(&seen), (None, vec![]));
    let store = node.store();
    store_rate(&store, six.clone(), Some("10"));
    store_rate(&store, any.clone(), Some("20"));
    let both = (Some(20), vec![("::1".to_owned(), 10)]);
    until(&node, "both rates", || told(&seen) == both);
    // What is no rate changes nothing, and other configs of brokers do not either.
    store_rate(&store, six.clone(), Some("fast"));
    set(&node, ONE, "max.connections", "60");
    store_rate(&store, EntityName::Named("10.0.0.1".to_owned()), Some("1"));
    until(&node, "the third", || told(&seen).1.len() == 2);
    assert_eq!((told(&seen).0, told(&seen).1.pop().unwrap()), (Some(20), ("::1".to_owned(), 10)));
    store_rate(&store, six, Some("11"));
    let node = node.restart(&[]);
    let seen = follow(&node);
    let expected = vec![("10.0.0.1".to_owned(), 1), ("::1".to_owned(), 11)];
    assert_eq!(told(&seen), (Some(20), expected));
    store_rate(&node.store(), any, None);
    until(&node, "no default", || told(&seen).0.is_none());
}

/// KIP-226.
#[test]
fn a_broker_is_given_other_listeners_while_it_runs_but_not_without_that_of_the_brokers() {
    let node = Node::start(&[]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    node.broker.on_reconfigured(move |config| {
        let names = config.listeners.bound.iter().map(|it| it.listener_name.clone());
        *sink.lock().unwrap() = names.collect::<Vec<_>>();
    });
    let map = ("listener.security.protocol.map", SET, Some("PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT"));
    let listeners = |text| ("listeners", SET, Some(text));
    let two = listeners("PLAINTEXT://localhost:9092,EXTRA://localhost:9095");
    let refused = ErrorCode::InvalidRequest.code();
    assert_eq!(alter(&node, ONE, false, &[two]), refused, "it has no security protocol");
    assert_eq!(alter(&node, ALL, false, &[map, two]), refused, "brokers do not share a port");
    assert_eq!(alter(&node, ONE, false, &[map, two]), 0);
    assert_eq!(*seen.lock().unwrap(), ["PLAINTEXT", "EXTRA"]);
    assert_eq!(alter(&node, ONE, false, &[listeners("EXTRA://localhost:9095")]), refused);
    assert_eq!(*seen.lock().unwrap(), ["PLAINTEXT", "EXTRA"]);
    delete(&node, ONE, "listeners");
    assert_eq!(*seen.lock().unwrap(), ["PLAINTEXT"]);
}

/// KAFKA-9625, redpanda-data/redpanda#2645.
#[test]
fn throttles_are_shown_and_keys_of_plugins_are_not() {
    let node = Node::start(&[]);
    set(&node, ONE, "leader.replication.throttled.rate", "1000");
    set(&node, ALL, "some.plugin", "secret");
    let entry = |name: &str, key: &str| {
        let all = described(&node, BROKER, name);
        let it = all.into_iter().find(|it| it.name == key)?;
        Some((it.value.map(|value| value.to_string()), it.is_sensitive, it.read_only))
    };
    let throttle = "leader.replication.throttled.rate";
    assert_eq!(entry(ONE, throttle), Some((Some("1000".to_owned()), false, true)));
    assert_eq!(entry(ALL, "some.plugin"), Some((None, true, true)));
    delete(&node, ONE, throttle);
    assert_eq!(entry(ONE, throttle), None);
}

/// KAFKA-13672.
#[test]
fn of_many_changes_at_once_none_is_lost_to_the_broker() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let changes: Vec<_> = (1..=50)
        .map(|value: i32| {
            let config = incremental::AlterableConfig {
                name: Str::from("log.retention.ms"),
                config_operation: SET,
                value: Some(Str::from(value.to_string())),
            };
            let resource = incremental::AlterConfigsResource {
                resource_type: BROKER,
                resource_name: Str::from(ALL),
                configs: vec![config],
            };
            let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
            node.submit(frame(1, &request))
        })
        .collect();
    for change in &changes {
        let response: wire::messages::IncrementalAlterConfigsResponse = answer(change, 1);
        assert_eq!(response.responses[0].error_code, 0);
    }
    let last = stored(&node, &ConfigEntity::DefaultBroker).unwrap();
    until(&node, "what was stored last", || {
        told(&node, TOPIC, "t", "retention.ms").0 == last["log.retention.ms"]
    });
}
