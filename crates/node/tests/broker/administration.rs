//! Administration: names that collide, a thousand topics at once, partitions for what is being deleted, producers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use metadata::store::{Blocking, CreateMode, Value};
use metadata::znode::{broker, delete_topics, topic};
use node::loggers::{LogLevel, LogLevels, Loggers};
use wire::Str;
use wire::batch::{BatchBuilder, Compression};
use wire::error_code::ErrorCode;
use wire::messages::create_partitions_request::CreatePartitionsTopic;
use wire::messages::create_topics_request::CreatableTopic;
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::describe_producers_request::TopicRequest;
use wire::messages::describe_producers_response::PartitionResponse;
use wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest,
    DeleteTopicsResponse, DescribeConfigsRequest, DescribeProducersRequest, IncrementalAlterConfigsRequest,
    MetadataRequest,
};
use wire::types::{BrokerId, Millis, TopicName};

use crate::control_tools::order;
use crate::controller::{leader, until, write_topic_on};
use crate::harness::{Node, answer, answer_within, frame};

const BROKER_LOGGER: i8 = 8;

fn creation(names: &[String]) -> CreateTopicsRequest {
    let topics = names.iter().map(|name| CreatableTopic {
        name: Str::from(name.as_str()),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    });
    CreateTopicsRequest { topics: topics.collect(), timeout_ms: 600_000, ..CreateTopicsRequest::default() }
}

fn deletion(names: &[String]) -> DeleteTopicsRequest {
    let topics = names
        .iter()
        .map(|name| DeleteTopicState { name: Some(Str::from(name.as_str())), ..DeleteTopicState::default() });
    DeleteTopicsRequest { topics: topics.collect(), timeout_ms: 600_000, ..DeleteTopicsRequest::default() }
}

fn create(node: &Node, names: &[&str]) -> Vec<ErrorCode> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let response = node.call(7, &creation(&names));
    response.topics.iter().map(|topic| ErrorCode::from_code(topic.error_code).unwrap()).collect()
}

fn topics(node: &Node) -> BTreeSet<String> {
    let told = node.call(9, &MetadataRequest { topics: None, ..MetadataRequest::default() }).topics;
    told.iter().map(|topic| topic.name.as_ref().unwrap().to_string()).collect()
}

#[test]
fn of_topics_whose_names_collide_one_is_made_though_they_come_at_once() {
    use ErrorCode::{InvalidTopicException, None};
    let node = Node::start(&[]);
    assert_eq!(create(&node, &["a.b", "a_b", "a.c"]), [None, InvalidTopicException, None]);
    assert_eq!(create(&node, &["a_c", "a_b_c"]), [InvalidTopicException, None]);
    // In two requests, of which neither has been carried out when the other comes.
    node.gate.hold();
    let pending: Vec<_> =
        ["x.y", "x_y"].map(|name| node.submit(frame(7, &creation(&[name.to_owned()])))).into();
    node.gate.open();
    let codes: BTreeSet<i16> = pending
        .iter()
        .map(|pending| answer::<CreateTopicsResponse>(pending, 7).topics[0].error_code)
        .collect();
    assert_eq!(codes, BTreeSet::from([0, InvalidTopicException.code()]));
    // The name is free when the topic is gone.
    let response = node.call(6, &deletion(&["a.b".to_owned()]));
    assert_eq!(response.responses[0].error_code, 0);
    assert_eq!(create(&node, &["a_b"]), [None]);
}

#[test]
fn only_validated_topics_collide_with_what_there_is() {
    let node = Node::start(&[]);
    node.create_topic("a.b", 1, &[]);
    let names = ["a_b", "c.d", "c_d"].map(str::to_owned);
    let response = node.call(7, &CreateTopicsRequest { validate_only: true, ..creation(&names) });
    let codes: Vec<_> = response.topics.iter().map(|topic| topic.error_code).collect();
    assert_eq!(codes, [ErrorCode::InvalidTopicException.code(), 0, 0]);
    assert_eq!(topics(&node), BTreeSet::from(["a.b".to_owned()]));
}

/// KAFKA-16975, strimzi/strimzi-kafka-operator#990.
#[test]
fn a_topic_that_is_refused_says_why_and_holds_no_other_up() {
    let node = Node::start(&[]);
    assert_eq!(create(&node, &["__cluster_metadata", "t"]), [ErrorCode::InvalidRequest, ErrorCode::None]);
    let mut request = creation(&["wide".to_owned()]);
    request.topics[0].replication_factor = 7;
    let refused = node.call(7, &request).topics.remove(0);
    assert_eq!(refused.error_code, ErrorCode::InvalidReplicationFactor.code());
    let message = refused.error_message.unwrap();
    assert!(message.contains(" 7 ") && message.contains(" 1."), "{message}");
    assert_eq!(topics(&node), BTreeSet::from(["t".to_owned()]));
}

/// KAFKA-10606.
#[test]
fn who_asks_for_all_topics_creates_none() {
    let node = Node::start(&[]);
    for version in 0..=12 {
        let topics = (version == 0).then(Vec::new);
        let request =
            MetadataRequest { topics, allow_auto_topic_creation: true, ..MetadataRequest::default() };
        assert_eq!(node.call(version, &request).topics, [], "v{version}");
    }
    assert_eq!(Blocking::new(&node.store()).children(topic::ROOT).unwrap(), Vec::<String>::new());
}

/// KAFKA-10312.
#[test]
fn a_partition_whose_leader_is_dead_has_no_leader_for_clients_of_any_version() {
    let node = Node::start(&[]);
    node.tell(9, &[0], &[order("t", 1, 3, &[1, 0])]);
    for version in 1..=12 {
        let asked = MetadataRequestTopic { name: Some(Str::from("t")), ..MetadataRequestTopic::default() };
        let request = MetadataRequest { topics: Some(vec![asked]), ..MetadataRequest::default() };
        let told = node.call(version, &request).topics.remove(0).partitions.remove(0);
        assert_eq!(told.error_code, ErrorCode::LeaderNotAvailable.code(), "v{version}");
        assert_eq!((told.leader_id, told.replica_nodes), (-1, vec![1, 0]), "v{version}");
    }
}

#[test]
fn a_thousand_topics_come_and_go_in_one_request_and_in_a_thousand() {
    const LONG: Duration = Duration::from_secs(300);
    let node = Node::start(&[]);
    let names: Vec<String> = (0..1_000).map(|number| format!("topic.{number}")).collect();
    for at_once in [names.len(), 1] {
        let pending: Vec<_> =
            names.chunks(at_once).map(|names| node.submit(frame(7, &creation(names)))).collect();
        for pending in &pending {
            let response: CreateTopicsResponse = answer_within(LONG, pending, 7);
            assert!(response.topics.iter().all(|topic| topic.error_code == 0));
        }
        assert_eq!(topics(&node).len(), names.len());
        let pending: Vec<_> =
            names.chunks(at_once).map(|names| node.submit(frame(6, &deletion(names)))).collect();
        for pending in &pending {
            let response: DeleteTopicsResponse = answer_within(LONG, pending, 6);
            assert!(response.responses.iter().all(|topic| topic.error_code == 0));
        }
        assert_eq!(topics(&node).len(), 0);
    }
}

#[test]
fn a_topic_that_is_to_be_deleted_gains_no_partitions() {
    let node = Node::start(&[]);
    let store = node.store();
    let calls = Blocking::new(&store);
    let (registration, _) = calls.get(&broker::path(BrokerId(0))).unwrap();
    calls.create(&broker::path(BrokerId(1)), Value::from(registration), CreateMode::Ephemeral).unwrap();
    write_topic_on(&store, "t", 1, &[0, 1]);
    until(&node, "a leader", || leader(&node, "t") == Some(0));
    // The other replica's broker goes, and the deletion waits for it.
    calls.delete(&broker::path(BrokerId(1)), None).unwrap();
    let name = TopicName::from("t");
    calls.create(&delete_topics::path(&name), Value::NULL, CreateMode::Persistent).unwrap();
    let more = || {
        let topic =
            CreatePartitionsTopic { name: Str::from("t"), count: 2, ..CreatePartitionsTopic::default() };
        let request = CreatePartitionsRequest { topics: vec![topic], timeout_ms: 0, validate_only: true };
        node.call(3, &request).results[0].error_code
    };
    until(&node, "the refusal", || more() == ErrorCode::InvalidTopicException.code());
}

/// KIP-412.
#[test]
fn levels_of_loggers_are_told_and_changed_but_only_together() {
    let node = Node::start(&[]);
    let (told, seen) = mpsc::channel();
    let levels = LogLevels { root: LogLevel::Info, own: BTreeMap::new() };
    node.broker.log_by(Arc::new(Loggers::new(levels, move |levels| told.send(levels.clone()).unwrap())));
    let alter = |validate_only, changes: &[(&str, i8, &str)]| {
        let configs = changes.iter().map(|(name, operation, value)| AlterableConfig {
            name: Str::from(*name),
            config_operation: *operation,
            value: Some(Str::from(*value)),
        });
        let resource = AlterConfigsResource {
            resource_type: BROKER_LOGGER,
            resource_name: Str::from("0"),
            configs: configs.collect(),
        };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only };
        node.call(1, &request).responses[0].error_code
    };
    let level = |logger: &str| {
        let resource = DescribeConfigsResource {
            resource_type: BROKER_LOGGER,
            resource_name: Str::from("0"),
            configuration_keys: Some(vec![Str::from(logger)]),
        };
        let request =
            DescribeConfigsRequest { resources: vec![resource], ..DescribeConfigsRequest::default() };
        node.call(4, &request).results[0].configs[0].value.as_ref().unwrap().to_string()
    };
    assert_eq!(alter(true, &[("node", 0, "DEBUG")]), 0);
    assert_eq!(alter(false, &[("node", 0, "DEBUG"), ("root", 1, "")]), ErrorCode::InvalidRequest.code());
    assert_eq!((level("node"), level("root")), ("INFO".to_owned(), "INFO".to_owned()));
    assert!(seen.try_recv().is_err());
    assert_eq!(alter(false, &[("node", 0, "DEBUG"), ("root", 0, "WARN")]), 0);
    assert_eq!((level("node.api"), level("net")), ("DEBUG".to_owned(), "WARN".to_owned()));
    assert_eq!(alter(false, &[("node", 1, "")]), 0);
    assert_eq!(level("node.api"), "WARN");
    let in_force: Vec<_> = seen.try_iter().map(|levels| levels.of("node")).collect();
    assert_eq!(in_force, [LogLevel::Debug, LogLevel::Warn]);
}

fn written(producer_id: i64, epoch: i16, sequence: i32, timestamp: i64) -> Bytes {
    let mut batch = BatchBuilder::new(Compression::None).producer(producer_id, epoch, sequence);
    batch.append(Millis(timestamp), None, Some(b"a"));
    batch.append(Millis(timestamp), None, Some(b"b"));
    batch.build().unwrap().bytes
}

fn producers(node: &Node, topic: &str, partitions: &[i32]) -> Vec<PartitionResponse> {
    let topics = vec![TopicRequest { name: Str::from(topic), partition_indexes: partitions.to_vec() }];
    let mut response = node.call(0, &DescribeProducersRequest { topics });
    assert_eq!(response.topics[0].name, topic);
    response.topics.remove(0).partitions
}

/// KIP-664.
#[test]
fn the_producers_of_a_partition_are_told_by_whoever_has_it() {
    let node = Node::start(&[]);
    node.tell(9, &[0, 1], &[order("elsewhere", 1, 0, &[1]), order("t", 0, 2, &[0])]);
    node.obeys(&order("t", 0, 2, &[0]));
    assert_eq!(producers(&node, "t", &[0])[0].active_producers, []);
    let now = crate::cases_tools::now_ms();
    for records in [written(9, 3, 0, now), written(5, 0, 0, now), written(9, 3, 2, now + 1)] {
        node.produce("t", 0, records).unwrap();
    }
    let told = |node: &Node| {
        let it = producers(node, "t", &[0]).remove(0);
        assert_eq!(it.error_code, 0);
        let each = it.active_producers.iter();
        each.map(|it| (it.producer_id, it.producer_epoch, it.last_sequence, it.last_timestamp))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&node), [(5, 0, 1, now), (9, 3, 3, now + 1)]);
    let it = producers(&node, "t", &[0]).remove(0).active_producers.remove(0);
    assert_eq!((it.coordinator_epoch, it.current_txn_start_offset), (-1, -1));
    // A follower knows them, too.
    node.obeys(&order("t", 1, 3, &[0, 1]));
    assert_eq!(told(&node), [(5, 0, 1, now), (9, 3, 3, now + 1)]);
    for (topic, partition, error) in [
        ("a b", 0, ErrorCode::InvalidTopicException),
        ("nobody", 0, ErrorCode::UnknownTopicOrPartition),
        ("elsewhere", 0, ErrorCode::NotLeaderOrFollower),
        ("elsewhere", 1, ErrorCode::UnknownTopicOrPartition),
    ] {
        assert_eq!(producers(&node, topic, &[partition])[0].error_code, error.code(), "{topic}-{partition}");
    }
}
