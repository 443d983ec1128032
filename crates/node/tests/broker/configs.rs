//! Configs: what DescribeConfigs tells, and what AlterConfigs and IncrementalAlterConfigs change.

use wire::Str;
use wire::batch::{BatchBuilder, Compression};
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult};
use wire::messages::{
    AlterConfigsRequest, DescribeConfigsRequest, DescribeConfigsResponse, IncrementalAlterConfigsRequest,
    alter_configs_request, incremental_alter_configs_request as incremental,
};
use wire::types::Millis;

use crate::harness::Node;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;

fn describe(node: &Node, version: i16, resources: &[(i8, &str, Option<&[&str]>)]) -> DescribeConfigsResponse {
    let resources = resources.iter().map(|(resource_type, name, keys)| DescribeConfigsResource {
        resource_type: *resource_type,
        resource_name: Str::from(*name),
        configuration_keys: keys.map(|keys| keys.iter().map(|key| Str::from(*key)).collect()),
    });
    let request = DescribeConfigsRequest {
        resources: resources.collect(),
        include_synonyms: version >= 1,
        ..DescribeConfigsRequest::default()
    };
    node.call(version, &request)
}

fn described(node: &Node, version: i16, key: &str) -> DescribeConfigsResourceResult {
    let result = describe(node, version, &[(TOPIC, "t", Some(&[key]))]).results.remove(0);
    let [entry] = result.configs.as_slice() else { panic!("{result:?}") };
    entry.clone()
}

fn value(node: &Node, key: &str) -> String {
    described(node, 4, key).value.map(|value| value.to_string()).unwrap_or_default()
}

fn incremental(
    node: &Node,
    version: i16,
    validate_only: bool,
    name: &str,
    changes: &[(&str, i8, Option<&str>)],
) -> i16 {
    let configs = changes.iter().map(|(name, config_operation, value)| incremental::AlterableConfig {
        name: Str::from(*name),
        config_operation: *config_operation,
        value: value.map(Str::from),
    });
    let resource = incremental::AlterConfigsResource {
        resource_type: TOPIC,
        resource_name: Str::from(name),
        configs: configs.collect(),
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only };
    node.call(version, &request).responses[0].error_code
}

fn replace(node: &Node, version: i16, configs: &[(&str, &str)]) -> i16 {
    let configs = configs.iter().map(|(name, value)| alter_configs_request::AlterableConfig {
        name: Str::from(*name),
        value: Some(Str::from(*value)),
    });
    let resource = alter_configs_request::AlterConfigsResource {
        resource_type: TOPIC,
        resource_name: Str::from("t"),
        configs: configs.collect(),
    };
    let request = AlterConfigsRequest { resources: vec![resource], validate_only: false };
    node.call(version, &request).responses[0].error_code
}

#[test]
fn a_topics_configs_are_told_with_what_each_version_can_say() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("segment.bytes", "1000")]);
    for version in 0..=4 {
        let entry = described(&node, version, "segment.bytes");
        assert_eq!(entry.value.as_deref(), Some("1000"), "v{version}");
        assert_eq!(entry.config_source, if version >= 1 { 1 } else { -1 });
        let names: Vec<_> = entry.synonyms.iter().map(|synonym| synonym.name.to_string()).collect();
        let expected: &[&str] = if version >= 1 { &["segment.bytes", "log.segment.bytes"] } else { &[] };
        assert_eq!(names, expected, "v{version}");
        assert_eq!(entry.config_type, if version >= 3 { 3 } else { 0 });
        assert_eq!(described(&node, version, "retention.ms").is_default, version == 0);
    }
}

#[test]
fn every_resource_has_an_answer_of_its_own() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let asked = [
        (TOPIC, "t", None),
        (TOPIC, "u", None),
        (TOPIC, "a b", None),
        (BROKER, "0", None),
        (BROKER, "7", None),
    ];
    let told: Vec<_> = describe(&node, 4, &asked).results;
    let summary = |it: &DescribeConfigsResult| (it.error_code, it.configs.len());
    assert_eq!(told.iter().map(summary).collect::<Vec<_>>(), [(0, 36), (3, 0), (17, 0), (0, 315), (42, 0)]);
    let spoilt = describe(&node, 4, &[(TOPIC, "t", None), (99, "x", None)]).results;
    assert_eq!(spoilt.iter().map(summary).collect::<Vec<_>>(), [(42, 0), (42, 0)]);
}

#[test]
fn single_configs_are_set_deleted_and_appended_and_survive_a_restart() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("segment.bytes", "1000")]);
    for version in 0..=1 {
        let changes = [("retention.ms", SET, Some("5")), ("segment.bytes", DELETE, None)];
        assert_eq!(incremental(&node, version, false, "t", &changes), 0);
        assert_eq!(
            (value(&node, "retention.ms"), value(&node, "segment.bytes")),
            ("5".into(), "1073741824".into())
        );
    }
    assert_eq!(incremental(&node, 1, false, "t", &[("cleanup.policy", APPEND, Some("compact"))]), 0);
    let node = node.restart(&[]);
    assert_eq!(
        (value(&node, "retention.ms"), value(&node, "cleanup.policy")),
        ("5".into(), "delete,compact".into())
    );
}

#[test]
fn all_configs_are_replaced_at_once() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[("segment.bytes", "1000")]);
    for version in 0..=2 {
        assert_eq!(replace(&node, version, &[("flush.ms", "7")]), 0);
        assert_eq!(
            (value(&node, "flush.ms"), value(&node, "segment.bytes")),
            ("7".into(), "1073741824".into())
        );
        assert_eq!(replace(&node, version, &[("segment.bytes", "1000")]), 0);
    }
    assert_eq!(replace(&node, 2, &[("segment.bytes", "1")]), 40);
    assert_eq!(value(&node, "segment.bytes"), "1000");
}

#[test]
fn what_is_only_validated_or_refused_changes_nothing() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    assert_eq!(incremental(&node, 1, true, "t", &[("flush.ms", SET, Some("7"))]), 0);
    let refused = [("flush.ms", SET, Some("7")), ("segment.bytes", SET, Some("13"))];
    assert_eq!(incremental(&node, 1, false, "t", &refused), 40);
    assert_eq!(incremental(&node, 1, false, "u", &[("flush.ms", SET, Some("7"))]), 3);
    assert_eq!(described(&node, 4, "flush.ms").config_source, 5);
}

#[test]
fn a_changed_config_rules_the_next_batch() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let mut batch = BatchBuilder::new(Compression::None);
    batch.append(Millis(1), None, Some(b"a value"));
    let records = batch.build().unwrap().bytes;
    assert!(node.produce("t", 0, records.clone()).is_ok());
    assert_eq!(incremental(&node, 1, false, "t", &[("max.message.bytes", SET, Some("50"))]), 0);
    assert_eq!(node.produce("t", 0, records.clone()).unwrap_err().name(), "MESSAGE_TOO_LARGE");
    assert_eq!(incremental(&node, 1, false, "t", &[("max.message.bytes", DELETE, None)]), 0);
    assert!(node.produce("t", 0, records).is_ok());
}
