//! What is told of groups under the names that Kafka's dashboards know: `kafka.coordinator.group:type=GroupMetadataManager`
//! and `kafka.server:type=group-coordinator-metrics`.

use std::time::Duration;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::OffsetDeleteRequest;
use wire::messages::offset_commit_request::OffsetCommitRequestPartition;
use wire::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};

use crate::cases_tools::good;
use crate::group_tools::{code, commit_request, coordinator, join_request};
use crate::groups_loading::{alone, follow, lead};
use crate::harness::Node;

const MANAGER: &str = "kafka_coordinator_group_groupmetadatamanager";
const COORDINATOR: &str = "kafka_server_group_coordinator_metrics";

/// The value of a series without labels; none if there is no such series.
fn value(node: &Node, name: &str) -> Option<f64> {
    let text = node.broker.render_metrics();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

fn counted(node: &Node, name: &str) -> f64 {
    value(node, &format!("{COORDINATOR}_{name}_count")).unwrap()
}

/// Groups in each state, in the order of a group's life, then all of them, then their offsets.
pub(crate) fn groups(node: &Node) -> [f64; 7] {
    let names = [
        "groupsempty",
        "groupspreparingrebalance",
        "groupscompletingrebalance",
        "groupsstable",
        "groupsdead",
    ];
    let [a, b, c, d, e] = names.map(|name| value(node, &format!("{MANAGER}_num{name}")).unwrap());
    let [all, offsets] =
        ["numgroups", "numoffsets"].map(|name| value(node, &format!("{MANAGER}_{name}")).unwrap());
    [a, b, c, d, e, all, offsets]
}

#[test]
fn every_series_is_there_before_there_is_a_group() {
    let node = Node::start(&[]);
    assert_eq!(groups(&node), [0.0; 7]);
    for name in ["offset_commit", "offset_expiration", "offset_deletion", "group_completed_rebalance"] {
        assert_eq!(value(&node, &format!("{COORDINATOR}_{name}_count")), Some(0.0), "{name}");
        assert_eq!(value(&node, &format!("{COORDINATOR}_{name}_rate")), Some(0.0), "{name}");
    }
    for name in ["max", "avg"] {
        let told = value(&node, &format!("{COORDINATOR}_partition_load_time_{name}"));
        assert!(told.is_some_and(f64::is_nan), "as Kafka tells that there was none");
    }
}

#[test]
fn groups_are_counted_in_their_states() {
    let node = coordinator(&[]);
    assert_eq!(node.commit("empty", 5), ErrorCode::None);
    node.stable_group("stable");
    node.stable_group("preparing");
    let second = node.member_id("preparing");
    let waits = node.begin_to_join(&join_request("preparing", &second));
    node.join("completing");
    assert!(waits.try_recv().is_err());
    assert_eq!(groups(&node), [1.0, 1.0, 1.0, 1.0, 0.0, 4.0, 1.0]);
}

#[test]
fn what_becomes_of_offsets_and_groups_is_counted() {
    let node = coordinator(&[]);
    node.stable_group("g");
    assert_eq!(counted(&node, "group_completed_rebalance"), 1.0);
    assert_eq!(node.commit("deleted", 5), ErrorCode::None);
    assert_eq!(node.commit("expires", 5), ErrorCode::None);
    assert_eq!(counted(&node, "offset_commit"), 2.0);
    // A rate is told every five seconds.
    node.advance(Duration::from_secs(6));
    assert!(value(&node, &format!("{COORDINATOR}_offset_commit_rate")).unwrap() > 0.0);
    let partitions = vec![OffsetDeleteRequestPartition { partition_index: 0 }];
    let topics = vec![OffsetDeleteRequestTopic { name: Str::from("t"), partitions }];
    let request = OffsetDeleteRequest { group_id: Str::from("deleted"), topics };
    assert_eq!(code(node.call(0, &request).error_code), ErrorCode::None);
    node.advance(Duration::from_secs(8 * 86_400));
    node.broker.housekeep();
    assert_eq!((counted(&node, "offset_deletion"), counted(&node, "offset_expiration")), (1.0, 1.0));
}

/// The value of a series of a group; none if there is no such series.
fn of_group(node: &Node, name: &str, labels: &str) -> Option<f64> {
    value(node, &format!("kafka_consumergroup_{name}{{{labels}}}"))
}

#[test]
fn how_far_groups_have_come_and_lag_is_told_by_partition() {
    let node = coordinator(&[]);
    node.create_topic("read", 1, &[]);
    for _ in 0..3 {
        node.produce("read", 0, good(3)).unwrap();
    }
    assert_eq!(node.commit_as(8, &commit_request("g", "read", 0, 4)), ErrorCode::None);
    node.stable_group("empty-handed");
    let labels = r#"consumergroup="g",topic="read",partition="0""#;
    assert_eq!(of_group(&node, "current_offset", labels), Some(4.0));
    assert_eq!(of_group(&node, "lag", labels), Some(5.0));
    assert_eq!(of_group(&node, "members", r#"consumergroup="g""#), Some(0.0));
    assert_eq!(of_group(&node, "members", r#"consumergroup="empty-handed""#), Some(1.0));
    assert_eq!(value(&node, "blumfeld_consumergroup_offsets_left_out"), Some(0.0));
    // An offset behind the end, as after a loss, is no lag.
    assert_eq!(node.commit_as(8, &commit_request("g", "read", 0, 12)), ErrorCode::None);
    assert_eq!(of_group(&node, "lag", labels), Some(0.0));
}

#[test]
fn a_scrape_tells_of_ten_thousand_offsets_and_how_many_there_are_besides() {
    let node = coordinator(&[]);
    node.create_topic("wide", 1_000, &[]);
    for group in 0..11 {
        let mut request = commit_request(&format!("g{group}"), "wide", 0, 5);
        let first = request.topics[0].partitions[0].clone();
        request.topics[0].partitions = (0..1_000)
            .map(|partition_index| OffsetCommitRequestPartition { partition_index, ..first.clone() })
            .collect();
        assert_eq!(node.commit_as(8, &request), ErrorCode::None);
    }
    let text = node.broker.render_metrics();
    let told = text.lines().filter(|line| line.starts_with("kafka_consumergroup_current_offset{")).count();
    assert_eq!((told, value(&node, "blumfeld_consumergroup_offsets_left_out")), (10_000, Some(1_000.0)));
}

#[test]
fn how_long_loads_took_is_told_for_a_minute() {
    let (node, id) = alone();
    node.advance(Duration::from_secs(120));
    let told = || ["max", "avg"].map(|it| value(&node, &format!("{COORDINATOR}_partition_load_time_{it}")));
    assert!(told().iter().all(|it| it.is_some_and(f64::is_nan)));
    follow(&node, id, 1);
    let loads = node.hold_loads();
    lead(&node, id, 2);
    loads.let_go();
    assert!(told().iter().all(|it| it.is_some_and(|ms| ms >= 0.0)), "{:?}", told());
}
