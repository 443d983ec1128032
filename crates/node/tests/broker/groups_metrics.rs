//! What is told of groups under the names that Kafka's dashboards know: `kafka.coordinator.group:type=GroupMetadataManager`
//! and `kafka.server:type=group-coordinator-metrics`.

use std::time::Duration;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::OffsetDeleteRequest;
use wire::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};

use crate::group_tools::{code, coordinator, join_request};
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
fn groups(node: &Node) -> [f64; 7] {
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
