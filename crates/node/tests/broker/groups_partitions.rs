//! Where groups are coordinated: they come and go with the leadership of their partition, and what cannot be read or
//! replicated is not told as done.

use std::time::Duration;

use wire::batch::{BatchBuilder, Compression};
use wire::error_code::ErrorCode;
use wire::header::{RequestHeader, encode_request_header};
use wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use wire::messages::{
    ListGroupsRequest, Message, OffsetCommitResponse, OffsetFetchRequest, ProduceRequest, ProduceResponse,
};
use wire::types::{Millis, TopicId};
use wire::{Encoder, Str};

use crate::control_tools::{Order, order};
use crate::group_tools::{NO_DELAY, code, commit_request, coordinator, join_request, joined, synced};
use crate::harness::{Node, answer, produce_request};
use crate::pair::{Pair, Way};

const OFFSETS: &str = "__consumer_offsets";
/// Longer than `replica.fetch.wait.max.ms` and `replica.fetch.backoff.ms`.
const A_WHILE: Duration = Duration::from_millis(1_200);
/// Longer than `offsets.commit.timeout.ms`.
const COMMIT_TIMEOUT: Duration = Duration::from_millis(5_200);
/// Nobody leaves the ISR for being slow.
const NO_LAG: (&str, &str) = ("replica.lag.time.max.ms", "3600000");

/// `leader` coordinates all groups in this epoch.
fn lead_offsets(pair: &mut Pair, leader: i32, leader_epoch: i32, isr: &[i32]) {
    let id = TopicId([8; 16]);
    pair.lead_by(&Order { id, isr: isr.to_vec(), ..order(OFFSETS, leader, leader_epoch, &[0, 1]) });
}

/// Two brokers; broker 0 coordinates all groups in epoch 0.
fn pair(settings: &[(&str, &str)]) -> Pair {
    let settings = [settings, &[NO_DELAY, NO_LAG]].concat();
    let mut pair = Pair::start(2, &settings);
    pair.lead("t", 0, 0, &[0, 1]);
    lead_offsets(&mut pair, 0, 0, &[0, 1]);
    pair.pass(A_WHILE);
    pair
}

fn commit(pair: &Pair, id: i32, offset: i64) -> ErrorCode {
    let answered = pair.node(id).begin_to_commit(8, &commit_request("g", "t", 0, offset));
    pair.pass(A_WHILE);
    let response: OffsetCommitResponse = answer(&answered, 8);
    code(response.topics[0].partitions[0].error_code)
}

#[test]
fn groups_and_their_offsets_move_with_the_leadership_of_their_partition() {
    let mut pair = pair(&[]);
    assert_eq!(pair.node(1).find_coordinator("g"), (ErrorCode::None, 0));
    assert_eq!(commit(&pair, 1, 4), ErrorCode::NotCoordinator);
    assert_eq!(commit(&pair, 0, 5), ErrorCode::None);
    let it = pair.node(0).join("m");
    let (id, generation) = (it.member_id.to_string(), it.generation_id);
    let answered = pair.node(0).begin_to_sync("m", &id, generation, &[(&id, b"part")]);
    pair.pass(A_WHILE);
    assert_eq!(code(synced(&answered).error_code), ErrorCode::None);

    lead_offsets(&mut pair, 1, 1, &[0, 1]);
    assert_eq!(pair.node(0).find_coordinator("g"), (ErrorCode::None, 1));
    assert_eq!(pair.node(0).committed("g"), Err(ErrorCode::NotCoordinator));
    assert_eq!(pair.node(0).heartbeat("m", &id, generation), ErrorCode::NotCoordinator);
    assert_eq!(pair.node(1).committed("g"), Ok(5));
    assert_eq!(pair.node(1).heartbeat("m", &id, generation), ErrorCode::None);
    pair.pass(A_WHILE);
    assert_eq!(commit(&pair, 1, 6), ErrorCode::None);

    lead_offsets(&mut pair, 0, 2, &[0, 1]);
    assert_eq!(pair.node(0).committed("g"), Ok(6), "what it knew before is forgotten");
    assert_eq!(pair.node(0).heartbeat("m", &id, generation), ErrorCode::None);
}

#[test]
fn a_higher_epoch_of_the_same_leader_changes_nothing() {
    let mut pair = pair(&[]);
    let waiting = pair.node(0).member_id("m");
    lead_offsets(&mut pair, 0, 1, &[0, 1]);
    // An id that was given out is in no log: it is known only to a coordinator that has gone on.
    let it = joined(&pair.node(0).begin_to_join(&join_request("m", &waiting)));
    assert_eq!(code(it.error_code), ErrorCode::None);
}

#[test]
fn who_waits_at_a_coordinator_that_resigns_is_sent_to_look_for_the_next() {
    let mut pair = pair(&[]);
    let it = pair.node(0).join("m");
    let leader = it.member_id.to_string();
    let second = pair.node(0).member_id("m");
    let waits_to_join = pair.node(0).begin_to_join(&join_request("m", &second));
    assert!(waits_to_join.try_recv().is_err());
    pair.set_way(0, Way::Cut);
    let commits = pair.node(0).begin_to_commit(8, &commit_request("g", "t", 0, 5));
    assert!(commits.try_recv().is_err());
    lead_offsets(&mut pair, 1, 1, &[0, 1]);
    assert_eq!(code(joined(&waits_to_join).error_code), ErrorCode::NotCoordinator);
    let response: OffsetCommitResponse = answer(&commits, 8);
    assert_eq!(code(response.topics[0].partitions[0].error_code), ErrorCode::NotCoordinator);
    assert_eq!(pair.node(0).heartbeat("m", &leader, 1), ErrorCode::NotCoordinator);
}

#[test]
fn a_commit_that_is_not_replicated_in_time_is_not_told_as_done() {
    let pair = pair(&[]);
    assert_eq!(commit(&pair, 0, 5), ErrorCode::None);
    pair.set_way(0, Way::Cut);
    let answered = pair.node(0).begin_to_commit(8, &commit_request("g", "t", 0, 6));
    pair.pass(A_WHILE);
    assert!(answered.try_recv().is_err());
    let stable = OffsetFetchRequest {
        require_stable: true,
        group_id: Str::from("g"),
        ..OffsetFetchRequest::default()
    };
    let told = pair.node(0).call(7, &OffsetFetchRequest { topics: None, ..stable });
    assert_eq!(code(told.topics[0].partitions[0].error_code), ErrorCode::UnstableOffsetCommit);
    for version in [8, 9] {
        let group =
            OffsetFetchRequestGroup { group_id: Str::from("g"), ..OffsetFetchRequestGroup::default() };
        let groups = vec![OffsetFetchRequestGroup { topics: None, ..group }];
        let request = OffsetFetchRequest { groups, require_stable: true, ..OffsetFetchRequest::default() };
        let told = pair.node(0).call(version, &request).groups.remove(0);
        let unstable = code(told.topics[0].partitions[0].error_code);
        assert_eq!((code(told.error_code), unstable), (ErrorCode::None, ErrorCode::UnstableOffsetCommit));
    }
    pair.pass(COMMIT_TIMEOUT);
    let response: OffsetCommitResponse = answer(&answered, 8);
    assert_eq!(code(response.topics[0].partitions[0].error_code), ErrorCode::RequestTimedOut);
    assert_eq!(pair.node(0).committed("g"), Ok(5));
}

#[test]
fn too_few_in_sync_replicas_take_no_commits() {
    let mut pair = pair(&[("min.insync.replicas", "2")]);
    assert_eq!(commit(&pair, 0, 5), ErrorCode::None);
    lead_offsets(&mut pair, 0, 1, &[0]);
    pair.set_way(0, Way::Cut);
    assert_eq!(commit(&pair, 0, 6), ErrorCode::CoordinatorNotAvailable);
    assert_eq!(pair.node(0).committed("g"), Ok(5));
    // KAFKA-12660: it is not counted either.
    let text = pair.node(0).broker.render_metrics();
    assert!(
        text.lines().any(|line| line == "kafka_server_group_coordinator_metrics_offset_commit_count 1.0")
    );
}

#[test]
fn a_replica_that_is_removed_coordinates_nothing() {
    let pair = pair(&[]);
    assert_eq!(commit(&pair, 0, 5), ErrorCode::None);
    pair.node(0).stop(&[(OFFSETS, 1, true)]);
    assert_eq!(pair.node(0).committed("g"), Err(ErrorCode::NotCoordinator));
}

/// Writes a record with this key into the partition of group `g`, as only Kafka's own client may.
fn write_record(node: &Node, key: &[u8]) {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.append(Millis(1_000), Some(key), Some(b"value"));
    let request = produce_request(OFFSETS, 3, builder.build().unwrap().bytes, -1);
    let header = RequestHeader {
        api_key: ProduceRequest::API_KEY,
        api_version: 9,
        correlation_id: 42,
        client_id: Some(Str::from("__admin_client")),
    };
    let mut encoder = Encoder::new();
    encode_request_header(&mut encoder, &header).unwrap();
    request.encode(&mut encoder, 9).unwrap();
    let response: ProduceResponse = answer(&node.submit(encoder.into_bytes()), 9);
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
}

#[test]
fn a_partition_that_cannot_be_read_wholly_is_not_served() {
    let node = coordinator(&[]);
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    assert_eq!(node.commit("h", 6), ErrorCode::None);
    // An offset of a group whose name ends too early.
    write_record(&node, &[0, 1, 0, 9, b'g']);
    let node = node.restart_killed(&[NO_DELAY], |_| {});
    node.keeps_members_waiting();
    let listed = node.call(4, &ListGroupsRequest::default());
    // Not that it is loading: whoever lists the groups of a cluster would try again until it gives up.
    assert_eq!(code(listed.error_code), ErrorCode::None);
    assert_eq!(listed.groups.len(), 1, "other partitions are served");
    let asked =
        |name| OffsetFetchRequestGroup { group_id: Str::from(name), ..OffsetFetchRequestGroup::default() };
    let groups = ["g", "h"].map(asked).to_vec();
    let told = node.call(8, &OffsetFetchRequest { groups, ..OffsetFetchRequest::default() });
    let codes: Vec<_> = told.groups.iter().map(|it| code(it.error_code)).collect();
    assert_eq!(codes, [ErrorCode::CoordinatorLoadInProgress, ErrorCode::None]);
    assert_eq!(node.committed("h"), Ok(6));
}

// KAFKA-19246
#[test]
fn each_version_tells_the_error_of_a_group_in_its_own_place() {
    let pair = pair(&[]);
    let elsewhere = ErrorCode::NotCoordinator;
    for version in 1..=7 {
        let response = pair.node(1).fetch_offsets(version, "g", Some(&[("t", &[0, 1])]));
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        let codes: Vec<_> = partitions.map(|it| code(it.error_code)).collect();
        match version {
            1 => assert_eq!(codes, [elsewhere; 2]),
            _ => assert_eq!((code(response.error_code), codes), (elsewhere, Vec::new()), "v{version}"),
        }
    }
    let groups =
        vec![OffsetFetchRequestGroup { group_id: Str::from("g"), ..OffsetFetchRequestGroup::default() }];
    let response = pair.node(1).call(9, &OffsetFetchRequest { groups, ..OffsetFetchRequest::default() });
    assert_eq!(code(response.groups[0].error_code), elsewhere);
}

// KAFKA-14869
#[test]
fn records_of_later_versions_are_passed_over() {
    let node = coordinator(&[]);
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    write_record(&node, &[0, 16, 1, 2, 3]);
    let node = node.restart_killed(&[NO_DELAY], |_| {});
    assert_eq!(node.committed("g"), Ok(5));
}

#[test]
fn a_broker_that_is_shut_down_coordinates_nothing() {
    let node = coordinator(&[]);
    assert_eq!(node.commit("g", 5), ErrorCode::None);
    let text = node.broker.render_metrics();
    for series in [
        "kafka_coordinator_group_groupmetadatamanager_numgroups 1.0",
        "kafka_coordinator_group_groupmetadatamanager_numgroupsempty 1.0",
        "kafka_coordinator_group_groupmetadatamanager_numoffsets 1.0",
        "kafka_server_group_coordinator_metrics_offset_commit_count 1.0",
    ] {
        assert!(text.lines().any(|line| line == series), "no {series}");
    }
    node.broker.shut_down();
    assert_eq!(node.committed("g"), Err(ErrorCode::CoordinatorNotAvailable));
    let listed = node.call(4, &ListGroupsRequest::default());
    assert_eq!((code(listed.error_code), listed.groups.len()), (ErrorCode::CoordinatorNotAvailable, 0));
}
