//! What administrators of other brokers ran into: impossible topics, records deleted, configs reset.

use std::time::Duration;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use wire::messages::create_topics_response::CreatableTopicResult;
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::describe_configs_response::DescribeConfigsResourceResult;
use wire::messages::describe_log_dirs_request::DescribableLogDirTopic;
use wire::messages::{
    AlterConfigsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeConfigsRequest,
    DescribeLogDirsRequest, MetadataRequest, alter_configs_request,
};
use wire::types::TopicId;

use crate::cases_tools::{
    batches_of, delete_records, delete_topic, end_offset, fetched, good, listed, set_topic_config, topic_id,
};
use crate::harness::Node;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

fn wanted(name: &str, num_partitions: i32, replication_factor: i16) -> CreatableTopic {
    CreatableTopic { name: Str::from(name), num_partitions, replication_factor, ..CreatableTopic::default() }
}

fn create(node: &Node, version: i16, topic: CreatableTopic) -> CreatableTopicResult {
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 60_000, ..CreateTopicsRequest::default() };
    node.call(version, &request).topics.remove(0)
}

fn topic_count(node: &Node) -> usize {
    node.call(9, &MetadataRequest { topics: None, ..MetadataRequest::default() }).topics.len()
}

fn described(
    node: &Node,
    resource_type: i8,
    name: &str,
    keys: Option<&[&str]>,
) -> Vec<DescribeConfigsResourceResult> {
    let resource = DescribeConfigsResource {
        resource_type,
        resource_name: Str::from(name),
        configuration_keys: keys.map(|keys| keys.iter().map(|key| Str::from(*key)).collect()),
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..DescribeConfigsRequest::default() };
    let mut result = node.call(4, &request).results.remove(0);
    assert_eq!(result.error_code, 0);
    std::mem::take(&mut result.configs)
}

fn value_and_source(node: &Node, key: &str) -> (String, i8) {
    let entry = described(node, TOPIC, "t", Some(&[key])).remove(0);
    (entry.value.unwrap().to_string(), entry.config_source)
}

/// redpanda-data/redpanda#1573, redpanda-data/redpanda#10379: each impossible topic has its code, and none is made.
#[test]
fn impossible_topics_are_refused_by_code_and_not_made() {
    let node = Node::start(&[("num.partitions", "2")]);
    let by_hand = |replicas: &[(i32, &[i32])]| {
        let assignments = replicas.iter().map(|(partition_index, broker_ids)| CreatableReplicaAssignment {
            partition_index: *partition_index,
            broker_ids: broker_ids.to_vec(),
        });
        CreatableTopic { assignments: assignments.collect(), ..wanted("x", -1, -1) }
    };
    let both = CreatableTopic { num_partitions: 1, replication_factor: 1, ..by_hand(&[(0, &[0])]) };
    let table = [
        (wanted("x", 1, 2), ErrorCode::InvalidReplicationFactor),
        (wanted("x", 1, 4), ErrorCode::InvalidReplicationFactor),
        (wanted("x", 1, 0), ErrorCode::InvalidReplicationFactor),
        (wanted("x", 0, 1), ErrorCode::InvalidPartitions),
        (both, ErrorCode::InvalidRequest),
        (by_hand(&[(0, &[0, 0])]), ErrorCode::InvalidReplicaAssignment),
        (by_hand(&[(0, &[0]), (2, &[0])]), ErrorCode::InvalidReplicaAssignment),
        (by_hand(&[(0, &[0]), (1, &[0, 1])]), ErrorCode::InvalidReplicaAssignment),
    ];
    for (at, (topic, code)) in table.into_iter().enumerate() {
        for version in [4, 7] {
            assert_eq!(create(&node, version, topic.clone()).error_code, code.code(), "case {at} v{version}");
        }
    }
    assert_eq!(topic_count(&node), 0);
    assert_eq!(create(&node, 4, wanted("defaults", -1, -1)).error_code, 0);
    let request = MetadataRequest { topics: None, ..MetadataRequest::default() };
    assert_eq!(node.call(9, &request).topics[0].partitions.len(), 2);
}

/// redpanda-data/redpanda#16578, redpanda-data/redpanda#16453, KIP-525: who creates learns what came of it.
#[test]
fn a_created_topic_is_told_with_counts_id_and_all_configs() {
    let node = Node::start(&[("num.partitions", "3")]);
    for (version, name) in [(5, "v5"), (6, "v6"), (7, "v7")] {
        let config = CreatableTopicConfig { name: Str::from("retention.ms"), value: Some(Str::from("5000")) };
        let topic = CreatableTopic { configs: vec![config], ..wanted(name, -1, -1) };
        let told = create(&node, version, topic);
        assert_eq!((told.error_code, told.topic_config_error_code), (0, 0));
        assert_eq!((told.num_partitions, told.replication_factor), (3, 1));
        let id = topic_id(&node, name);
        assert_eq!(told.topic_id, if version >= 7 { id } else { TopicId::ZERO });
        let configs = told.configs.unwrap();
        let mut told: Vec<_> = configs
            .iter()
            .map(|it| (it.name.clone(), it.value.clone(), it.config_source, it.read_only, it.is_sensitive))
            .collect();
        let mut asked: Vec<_> = described(&node, TOPIC, name, None)
            .iter()
            .map(|it| (it.name.clone(), it.value.clone(), it.config_source, it.read_only, it.is_sensitive))
            .collect();
        told.sort();
        asked.sort();
        assert_eq!(told, asked);
    }
}

/// redpanda-data/redpanda#22905, redpanda-data/redpanda#11997: the edges of DeleteRecords, and that it lasts.
#[test]
fn records_are_deleted_up_to_the_high_watermark_and_stay_deleted() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.produce("t", 0, good(10)).unwrap();
    let out_of_range = (ErrorCode::OffsetOutOfRange.code(), -1);
    // The one batch holds offsets 0 to 9: every start is within it.
    let table = [(5, (0, 5)), (3, (0, 5)), (5, (0, 5)), (7, (0, 7)), (11, out_of_range), (-2, out_of_range)];
    for (to, expected) in table {
        assert_eq!(delete_records(&node, "t", to), expected, "to {to}");
    }
    let check = |node: &Node, start| {
        assert_eq!(listed(node, 7, "t", -2, 0).2, start);
        assert_eq!(fetched(node, 11, "t", start - 1).error_code, ErrorCode::OffsetOutOfRange.code());
        assert_eq!(fetched(node, 11, "t", start).error_code, 0);
    };
    check(&node, 7);
    let node = node.restart(&[]);
    check(&node, 7);
    assert_eq!(delete_records(&node, "t", 10), (0, 10));
    node.produce("t", 0, good(2)).unwrap();
    assert_eq!(delete_records(&node, "t", -1), (0, 12));
    check(&node, 12);
    let node = node.restart(&[]);
    check(&node, 12);
    assert_eq!(node.produce("t", 0, good(1)), Ok(12));
    node.create_topic("compacted", 1, &[("cleanup.policy", "compact")]);
    assert_eq!(delete_records(&node, "compacted", 0).0, ErrorCode::PolicyViolation.code());
    assert_eq!(delete_records(&node, "nobody", 0).0, ErrorCode::UnknownTopicOrPartition.code());
}

/// redpanda-data/docs#635, redpanda-data/redpanda#1512: what AlterConfigs does not name is reset.
#[test]
fn alter_configs_resets_what_it_does_not_name() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("retention.ms", "5"), ("flush.ms", "7")]);
    let alter = |configs: &[(&str, Option<&str>)]| {
        let configs = configs.iter().map(|(name, value)| alter_configs_request::AlterableConfig {
            name: Str::from(*name),
            value: value.map(Str::from),
        });
        let resource = alter_configs_request::AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: Str::from("t"),
            configs: configs.collect(),
        };
        let request = AlterConfigsRequest { resources: vec![resource], validate_only: false };
        node.call(2, &request).responses[0].error_code
    };
    let (of_topic, default) = (1, 5);
    // Set to what is the default anyway, it remains set.
    assert_eq!(alter(&[("retention.ms", Some("604800000"))]), 0);
    assert_eq!(value_and_source(&node, "retention.ms"), ("604800000".to_owned(), of_topic));
    assert_eq!(value_and_source(&node, "flush.ms").1, default);
    assert_ne!(alter(&[("flush.ms", None)]), 0);
    assert_eq!(value_and_source(&node, "retention.ms").1, of_topic);
    // An old tool writes back everything that it has read.
    let read = described(&node, TOPIC, "t", None);
    let copy: Vec<(&str, Option<&str>)> = read.iter().map(|it| (&*it.name, it.value.as_deref())).collect();
    assert_eq!(alter(&copy), 0);
    assert_eq!(value_and_source(&node, "flush.ms").1, of_topic);
    assert_eq!(alter(&[]), 0);
    assert_eq!(value_and_source(&node, "retention.ms"), ("604800000".to_owned(), default));
}

/// redpanda-data/redpanda#1108, apache/kafka#9990: only the keys that are asked for, and all if none is.
#[test]
fn described_configs_are_those_that_were_asked_for() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    for (resource, name, one, two) in [
        (TOPIC, "t", "retention.ms", "cleanup.policy"),
        (BROKER, "0", "log.retention.ms", "log.cleanup.policy"),
    ] {
        let names = |keys: Option<&[&str]>| -> Vec<String> {
            let mut names: Vec<_> =
                described(&node, resource, name, keys).iter().map(|it| it.name.to_string()).collect();
            names.sort();
            names
        };
        let all = names(None);
        assert!(all.len() > 20);
        assert_eq!(names(Some(&[])), all);
        assert_eq!(names(Some(&[one])), [one]);
        assert_eq!(names(Some(&[one, two])), [two, one]);
        assert_eq!(names(Some(&[one, "no.such.key"])), [one]);
        assert_eq!(names(Some(&["no.such.key"])), Vec::<String>::new());
    }
}

/// apache/kafka#7870, apache/kafka#17258: a broker's retention in another unit holds for topics, whatever else is
/// changed, and a compacted topic stays one.
#[test]
fn changes_of_a_topic_leave_the_brokers_units_and_other_overrides_alone() {
    let node = Node::start(&[("log.retention.minutes", "60")]);
    node.create_topic("t", 1, &[("cleanup.policy", "compact")]);
    for (key, value) in [("min.cleanable.dirty.ratio", "0.7"), ("flush.ms", "9")] {
        set_topic_config(&node, "t", key, value);
        assert_eq!(value_and_source(&node, "retention.ms").0, "3600000");
        assert_eq!(value_and_source(&node, "cleanup.policy"), ("compact".to_owned(), 1));
    }
    let mut keyed = wire::batch::BatchBuilder::new(wire::batch::Compression::None);
    keyed.append(wire::types::Millis(1), Some(b"k"), Some(b"v"));
    node.produce("t", 0, keyed.build().unwrap().bytes).unwrap();
    node.advance(Duration::from_secs(7_200));
    node.broker.housekeep();
    assert_eq!(batches_of(&fetched(&node, 11, "t", 0)).len(), 1);
}

fn delete(node: &Node, version: i16, name: Option<&str>, id: TopicId) -> i16 {
    let mut request = DeleteTopicsRequest { timeout_ms: 60_000, ..DeleteTopicsRequest::default() };
    if version >= 6 {
        request.topics = vec![DeleteTopicState { name: name.map(Str::from), topic_id: id }];
    } else {
        request.topic_names = name.map(Str::from).into_iter().collect();
    }
    node.call(version, &request).responses[0].error_code
}

/// apache/kafka#3960, apache/kafka#6869, apache/kafka#10223: deletion forbidden, of long names, by id, and made anew.
#[test]
fn topics_are_deleted_by_name_or_id_and_leave_nothing_on_disk() {
    let forbidden = Node::start(&[("delete.topic.enable", "false")]);
    forbidden.create_topic("t", 1, &[]);
    assert_eq!(delete(&forbidden, 6, Some("t"), TopicId::ZERO), ErrorCode::TopicDeletionDisabled.code());
    assert_eq!(delete(&forbidden, 3, Some("t"), TopicId::ZERO), ErrorCode::TopicDeletionDisabled.code());
    assert_eq!(delete(&forbidden, 2, Some("t"), TopicId::ZERO), ErrorCode::InvalidRequest.code());
    assert_eq!(topic_count(&forbidden), 1);

    let node = Node::start(&[]);
    let long = "x".repeat(249);
    node.create_topic(&long, 11, &[]);
    node.create_topic("t", 1, &[]);
    let id = topic_id(&node, "t");
    assert_eq!(delete(&node, 6, None, TopicId([9; 16])), ErrorCode::UnknownTopicId.code());
    assert_eq!(delete(&node, 6, Some("nobody"), TopicId::ZERO), ErrorCode::UnknownTopicOrPartition.code());
    assert_eq!(topic_count(&node), 2);
    node.produce(&long, 10, good(1)).unwrap();
    assert_eq!(delete(&node, 6, Some(&long), TopicId::ZERO), 0);
    for _ in 0..3 {
        node.produce("t", 0, good(2)).unwrap();
        delete_topic(&node, "t");
        node.create_topic("t", 1, &[]);
        assert_eq!(end_offset(&node, "t"), 0);
    }
    assert_ne!(topic_id(&node, "t"), id);
    node.advance(Duration::from_secs(3_600));
    node.broker.housekeep();
    let entries = std::fs::read_dir(node.logs()).unwrap().map(|entry| entry.unwrap());
    let dirs: Vec<_> = entries.filter(|entry| entry.file_type().unwrap().is_dir()).collect();
    assert_eq!(dirs.iter().map(|dir| dir.file_name()).collect::<Vec<_>>(), ["t-0"]);
}

/// apache/kafka#10223: name and id at once are a contradiction, and nothing is deleted.
#[test]
fn a_deletion_by_name_and_id_at_once_is_refused_as_a_whole() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let id = topic_id(&node, "t");
    let topics = vec![DeleteTopicState { name: Some(Str::from("t")), topic_id: id }];
    let request = DeleteTopicsRequest { topics, timeout_ms: 60_000, ..DeleteTopicsRequest::default() };
    let response = node.call(6, &request);
    assert!(response.responses.iter().all(|it| it.error_code == ErrorCode::InvalidRequest.code()));
    assert!(!response.responses.is_empty());
    assert_eq!(topic_count(&node), 1);
}

/// apache/kafka#3874, apache/kafka#8348, KIP-827: what lies in the log directories, in bytes as they are on disk.
#[test]
fn log_directories_are_described_with_the_sizes_of_their_logs() {
    let node = Node::start(&[]);
    node.create_topic("t", 2, &[]);
    node.create_topic("u", 1, &[]);
    for _ in 0..5 {
        node.produce("t", 1, good(50)).unwrap();
    }
    let ask = |version, topics| {
        let response = node.call(version, &DescribeLogDirsRequest { topics });
        assert_eq!(response.results.len(), 1);
        response.results[0].clone()
    };
    let all = ask(4, None);
    assert_eq!((all.error_code, &*all.log_dir), (0, node.logs().to_str().unwrap()));
    assert_eq!(all.topics.iter().map(|topic| topic.partitions.len()).sum::<usize>(), 3);
    assert!(all.total_bytes >= all.usable_bytes && all.usable_bytes >= 0);
    let one = DescribableLogDirTopic { topic: Str::from("t"), partitions: vec![1] };
    let it = ask(4, Some(vec![one])).topics.remove(0).partitions.remove(0);
    let on_disk = std::fs::metadata(node.logs().join("t-1/00000000000000000000.log")).unwrap().len();
    assert_eq!(u64::try_from(it.partition_size), Ok(on_disk));
    assert_eq!((it.offset_lag, it.is_future_key), (0, false));
    assert_eq!(ask(1, Some(Vec::new())).topics.len(), 0);
}
