//! Groups that nothing has come of: as in Kafka they are there until offsets expire next, unless there are too many.

use std::time::Duration;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::{DeleteTopicsRequest, JoinGroupRequest};

use crate::controller::until;
use crate::group_tools::{code, commit_request, coordinator, join_request, joined};
use crate::groups::{delete, described, listed};
use crate::groups_metrics;
use crate::harness::Node;

/// So many bytes of groups that hold nothing are kept, and each takes so many besides its name.
const MOST_BYTES: usize = 16 << 20;
const GROUP_BYTES: usize = 1 << 10;

/// A member without protocols wants to join.
fn refused(node: &Node, group: &str) {
    let join = JoinGroupRequest { protocols: Vec::new(), ..join_request(group, "") };
    assert_eq!(code(joined(&node.begin_to_join(&join)).error_code), ErrorCode::InconsistentGroupProtocol);
}

/// A broker with a group for each way in which nothing comes of one.
fn with_three() -> Node {
    let node = coordinator(&[]);
    refused(&node, "refused");
    node.member_id("not come back");
    let mut commit = commit_request("not committed", "t", 0, 5);
    commit.topics[0].partitions[0].committed_metadata = Some(Str::from("m".repeat(5_000)));
    assert_eq!(node.commit_as(8, &commit), ErrorCode::OffsetMetadataTooLarge);
    node.advance(Duration::from_secs(10));
    node.broker.poll();
    node
}

fn empty(groups: &[&str]) -> Vec<(String, String)> {
    groups.iter().map(|it| ((*it).to_owned(), "Empty".to_owned())).collect()
}

fn all(node: &Node) -> Vec<(String, String)> {
    let mut all = listed(node, &[], &[]);
    all.sort();
    all
}

#[test]
fn a_group_that_nothing_has_come_of_is_shown_until_offsets_expire_next() {
    let node = with_three();
    assert_eq!(all(&node), empty(&["not come back", "not committed", "refused"]));
    assert_eq!(groups_metrics::groups(&node), [3.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0]);
    let it = described(&node, "refused");
    assert_eq!((&*it.group_state, &*it.protocol_type, it.members.len()), ("Empty", "", 0));
    // By default they expire every ten minutes.
    node.advance(Duration::from_secs(580));
    node.broker.housekeep();
    assert_eq!(all(&node).len(), 3);
    node.advance(Duration::from_secs(20));
    node.broker.housekeep();
    assert_eq!(all(&node), []);
    assert_eq!(groups_metrics::groups(&node), [0.0; 7]);
    assert_eq!(&*described(&node, "refused").group_state, "Dead");
}

#[test]
fn a_group_that_nothing_has_come_of_can_be_deleted() {
    let node = with_three();
    assert_eq!(delete(&node, &["refused", "not committed"]), [ErrorCode::None; 2]);
    assert_eq!(delete(&node, &["refused"]), [ErrorCode::GroupIdNotFound]);
    assert_eq!(all(&node), empty(&["not come back"]));
}

#[test]
fn a_group_that_nothing_has_come_of_ends_when_any_topic_is_deleted() {
    let node = with_three();
    assert_eq!(node.commit("committed", 5), ErrorCode::None);
    node.create_topic("u", 1, &[]);
    let topics = vec![DeleteTopicState { name: Some(Str::from("u")), ..DeleteTopicState::default() }];
    let request = DeleteTopicsRequest { topics, timeout_ms: 10_000, ..DeleteTopicsRequest::default() };
    assert_eq!(node.call(6, &request).responses[0].error_code, 0);
    until(&node, "the groups to end", || all(&node) == empty(&["committed"]));
}

#[test]
fn when_too_many_groups_hold_nothing_the_oldest_end_and_no_others() {
    let node = coordinator(&[]);
    assert_eq!(node.commit("committed", 5), ErrorCode::None);
    // Long names, so that a few are enough.
    let name = |n: usize| format!("{n:05}{}", "g".repeat(15 * 1_024 - 5));
    let room = MOST_BYTES / (15 * 1_024 + GROUP_BYTES);
    for n in 0..room {
        refused(&node, &name(n));
    }
    assert_eq!(all(&node).len(), room + 1, "there is room for all");
    // Something comes of the oldest one, and nothing anew of the second.
    node.stable_group(&name(0));
    refused(&node, &name(1));
    refused(&node, &name(room));
    assert_eq!(all(&node).len(), room + 2, "the first makes room");
    refused(&node, &name(room + 1));
    let left = all(&node);
    assert_eq!(left.len(), room + 2);
    assert!(left.contains(&(name(0), "Stable".to_owned())) && left.contains(&(name(2), "Empty".to_owned())));
    assert_eq!(
        (node.committed("committed"), described(&node, &name(1)).group_state),
        (Ok(5), Str::from("Dead"))
    );
}
