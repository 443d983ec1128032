//! What groups commit: who may, what is kept and for how long, and how it is told.

use std::time::Duration;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::offset_commit_request::OffsetCommitRequestPartition;
use wire::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use wire::messages::{
    DeleteTopicsRequest, ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
};

use crate::controller::until;
use crate::group_tools::{NO_DELAY, code, commit_request, coordinator};
use crate::harness::Node;

const DAY: Duration = Duration::from_secs(86_400);

fn groups(node: &Node) -> Vec<String> {
    node.call(4, &ListGroupsRequest::default()).groups.iter().map(|it| it.group_id.to_string()).collect()
}

fn as_member(group: &str, member_id: &str, generation: i32, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        generation_id_or_member_epoch: generation,
        member_id: Str::from(member_id),
        ..commit_request(group, "t", 0, offset)
    }
}

fn delete_offsets(node: &Node, group: &str, topics: &[&str]) -> (ErrorCode, Vec<ErrorCode>) {
    let topics = topics.iter().map(|name| OffsetDeleteRequestTopic {
        name: Str::from(*name),
        partitions: vec![OffsetDeleteRequestPartition { partition_index: 0 }],
    });
    let request = OffsetDeleteRequest { group_id: Str::from(group), topics: topics.collect() };
    let response = node.call(0, &request);
    let codes = response.topics.iter().flat_map(|topic| &topic.partitions);
    (code(response.error_code), codes.map(|it| code(it.error_code)).collect())
}

#[test]
fn every_version_commits_and_fetches() {
    let node = coordinator(&[]);
    for (version, offset) in (0..=9).zip(10..) {
        let group = format!("g{version}");
        assert_eq!(
            node.commit_as(version, &commit_request(&group, "t", 0, offset)),
            ErrorCode::None,
            "v{version}"
        );
        let fetch_version = version.min(7);
        let response = node.fetch_offsets(fetch_version, &group, Some(&[("t", &[0, 1])]));
        let told: Vec<_> =
            response.topics[0].partitions.iter().map(|it| (it.committed_offset, it.error_code)).collect();
        // The first version has no other way to say that there is none.
        let none = if version == 0 { ErrorCode::UnknownTopicOrPartition } else { ErrorCode::None };
        assert_eq!(told, [(offset, 0), (-1, none.code())], "v{version}");
        let note = if version == 0 { "" } else { "note" };
        assert_eq!(response.topics[0].partitions[0].metadata.as_deref(), Some(note), "v{version}");
    }
    let asked = |name: &str, topics| OffsetFetchRequestGroup {
        group_id: Str::from(name),
        topics,
        ..OffsetFetchRequestGroup::default()
    };
    let named = OffsetFetchRequestTopics { name: Str::from("t"), partition_indexes: vec![0] };
    let several = vec![asked("g5", None), asked("nobody", None), asked("g6", Some(vec![named]))];
    for version in [8, 9] {
        let request = OffsetFetchRequest { groups: several.clone(), ..OffsetFetchRequest::default() };
        let response = node.call(version, &request);
        let told: Vec<_> =
            response.groups.iter().map(|it| (&*it.group_id, it.topics.len(), it.error_code)).collect();
        assert_eq!(told, [("g5", 1, 0), ("nobody", 0, 0), ("g6", 1, 0)]);
        assert_eq!(response.groups[0].topics[0].partitions[0].committed_offset, 15);
        assert_eq!(response.groups[2].topics[0].partitions[0].committed_offset, 16);
    }
}

#[test]
fn the_offsets_of_version_0_lie_in_the_metadata_store_and_are_replaced_there() {
    let node = coordinator(&[]);
    // A slash leads a level down, as in Kafka.
    for group in ["g", "a/b"] {
        for offset in [7, 8] {
            assert_eq!(node.commit_as(0, &commit_request(group, "t", 1, offset)), ErrorCode::None);
        }
        let response = node.fetch_offsets(0, group, Some(&[("t", &[1]), ("unknown", &[0])]));
        let told: Vec<_> = response
            .topics
            .iter()
            .map(|it| (it.partitions[0].committed_offset, code(it.partitions[0].error_code)))
            .collect();
        assert_eq!(told, [(8, ErrorCode::None), (-1, ErrorCode::UnknownTopicOrPartition)], "{group}");
        assert_eq!(node.committed(group), Ok(-1), "later versions have offsets of their own");
    }
    let mut long = commit_request("g", "t", 1, 9);
    long.topics[0].partitions[0].committed_metadata = Some(Str::from("x".repeat(4_097)));
    assert_eq!(node.commit_as(0, &long), ErrorCode::OffsetMetadataTooLarge);
    assert_eq!(node.commit_as(0, &commit_request("..", "t", 1, 9)), ErrorCode::InvalidGroupId);
}

#[test]
fn all_offsets_of_a_group_are_told_when_no_topics_are_named() {
    let node = coordinator(&[]);
    node.create_topic("u", 1, &[]);
    for (topic, partition) in [("u", 0), ("t", 1), ("t", 0)] {
        node.commit_as(8, &commit_request("g", topic, partition, 5));
    }
    for version in 2..=7 {
        let response = node.fetch_offsets(version, "g", None);
        let told = response.topics.iter().map(|it| {
            (it.name.to_string(), it.partitions.iter().map(|it| it.partition_index).collect::<Vec<_>>())
        });
        let told: Vec<_> = told.collect();
        assert_eq!(told, [("t".to_owned(), vec![0, 1]), ("u".to_owned(), vec![0])], "v{version}");
    }
}

#[test]
fn partitions_that_do_not_exist_are_refused_and_the_others_kept() {
    let node = coordinator(&[]);
    let mut request = commit_request("g", "t", 0, 5);
    let there = request.topics[0].partitions[0].clone();
    request.topics[0].partitions.insert(0, OffsetCommitRequestPartition { partition_index: 9, ..there });
    let response = node.call(8, &request);
    let told: Vec<_> =
        response.topics[0].partitions.iter().map(|it| (it.partition_index, code(it.error_code))).collect();
    assert_eq!(told, [(9, ErrorCode::UnknownTopicOrPartition), (0, ErrorCode::None)]);
    assert_eq!(node.committed("g"), Ok(5));
    // Nothing is left to ask a group for, so not even its name matters.
    let unknown = commit_request("nobody", "unknown", 0, 5);
    assert_eq!(node.commit_as(8, &unknown), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(groups(&node), ["g"]);
}

#[test]
fn a_group_with_members_takes_commits_of_its_members_only() {
    let node = coordinator(&[]);
    let (id, generation) = node.stable_group("g");
    for (member_id, generation, expected) in [
        ("", -1, ErrorCode::UnknownMemberId),
        (&*id, generation - 1, ErrorCode::IllegalGeneration),
        ("nobody", generation, ErrorCode::UnknownMemberId),
        (&*id, generation, ErrorCode::None),
    ] {
        assert_eq!(node.commit_as(8, &as_member("g", member_id, generation, 5)), expected, "{member_id}");
    }
    assert_eq!(node.commit_as(8, &as_member("absent", "m", 3, 5)), ErrorCode::IllegalGeneration);
    assert_eq!(node.committed("g"), Ok(5));
}

// KAFKA-16371
#[test]
fn metadata_that_is_too_long_is_refused_for_its_partition_only() {
    let node = coordinator(&[]);
    let mut request = commit_request("g", "t", 0, 5);
    let mut long = request.topics[0].partitions[0].clone();
    long.partition_index = 1;
    long.committed_metadata = Some(Str::from("x".repeat(4_097)));
    request.topics[0].partitions.push(long);
    let response = node.call(8, &request);
    let codes: Vec<_> = response.topics[0].partitions.iter().map(|it| code(it.error_code)).collect();
    assert_eq!(codes, [ErrorCode::None, ErrorCode::OffsetMetadataTooLarge]);
    let stable = OffsetFetchRequest {
        require_stable: true,
        group_id: Str::from("g"),
        ..OffsetFetchRequest::default()
    };
    let response = node.call(7, &OffsetFetchRequest { topics: None, ..stable });
    let told: Vec<_> =
        response.topics[0].partitions.iter().map(|it| (it.partition_index, it.error_code)).collect();
    assert_eq!(told, [(0, 0)]);
}

#[test]
fn committed_offsets_outlive_a_killed_broker() {
    let node = coordinator(&[]);
    for offset in 1..=20 {
        assert_eq!(node.commit("g", offset), ErrorCode::None);
    }
    let node = node.restart_killed(&[NO_DELAY], |_| {});
    assert_eq!(node.committed("g"), Ok(20));
    assert_eq!(groups(&node), ["g"]);
}

#[test]
fn a_compressed_topic_of_offsets_is_read_back() {
    for codec in ["1", "2", "3", "4"] {
        let settings = [("offsets.topic.compression.codec", codec), ("offsets.load.buffer.size", "1")];
        let node = coordinator(&settings);
        for offset in 1..=3 {
            assert_eq!(node.commit("g", offset), ErrorCode::None);
        }
        let node = node.restart(&settings);
        assert_eq!(node.committed("g"), Ok(3), "codec {codec}");
        let log = node.logs().join("__consumer_offsets-3/00000000000000000000.log");
        let attributes = std::fs::read(log).unwrap()[22];
        assert_eq!((attributes & 7).to_string(), codec, "the batches are compressed");
    }
}

#[test]
fn offsets_that_nobody_has_needed_for_long_go_and_stay_gone() {
    let node = coordinator(&[]);
    node.commit("simple", 5);
    let (id, generation) = node.stable_group("live");
    node.commit_as(8, &as_member("live", &id, generation, 6));
    node.advance(6 * DAY);
    node.broker.housekeep();
    assert_eq!(node.committed("simple"), Ok(5));
    node.advance(2 * DAY);
    node.broker.housekeep();
    assert_eq!(node.committed("simple"), Ok(-1));
    // Its member is long gone, but the group became empty only when somebody looked.
    node.broker.poll();
    assert_eq!(node.committed("live"), Ok(6));
    let node = node.restart(&[NO_DELAY]);
    assert_eq!(groups(&node), ["live"]);
}

#[test]
fn a_commit_may_say_how_long_it_is_to_be_kept() {
    let node = coordinator(&[]);
    let request = OffsetCommitRequest { retention_time_ms: 1_000, ..commit_request("g", "t", 0, 5) };
    assert_eq!(node.commit_as(2, &request), ErrorCode::None);
    node.advance(Duration::from_secs(601));
    node.broker.housekeep();
    assert_eq!(node.committed("g"), Ok(-1));
}

#[test]
fn an_administrator_deletes_offsets_that_nobody_subscribes_to() {
    let node = coordinator(&[]);
    node.create_topic("u", 1, &[]);
    let (id, generation) = node.stable_group("g");
    for topic in ["t", "u"] {
        let request = OffsetCommitRequest {
            topics: commit_request("g", topic, 0, 5).topics,
            ..as_member("g", &id, generation, 5)
        };
        assert_eq!(node.commit_as(8, &request), ErrorCode::None);
    }
    let (error, codes) = delete_offsets(&node, "g", &["t", "u", "unknown"]);
    assert_eq!(error, ErrorCode::None);
    let expected = [ErrorCode::GroupSubscribedToTopic, ErrorCode::None, ErrorCode::UnknownTopicOrPartition];
    assert_eq!(codes, expected);
    assert_eq!(node.fetch_offsets(7, "g", None).topics.len(), 1);
    assert_eq!(delete_offsets(&node, "nobody", &["t"]).0, ErrorCode::GroupIdNotFound);
    assert_eq!(delete_offsets(&node, "", &["t"]).0, ErrorCode::InvalidGroupId);
    let node = node.restart(&[NO_DELAY]);
    assert_eq!(node.fetch_offsets(7, "g", None).topics.len(), 1, "it is gone for good");
}

#[test]
fn with_a_topic_go_the_offsets_that_were_committed_for_it() {
    let node = coordinator(&[]);
    node.create_topic("u", 1, &[]);
    for topic in ["t", "u"] {
        node.commit_as(8, &commit_request("g", topic, 0, 5));
    }
    let topics = vec![DeleteTopicState { name: Some(Str::from("u")), ..DeleteTopicState::default() }];
    let request = DeleteTopicsRequest { topics, timeout_ms: 10_000, ..DeleteTopicsRequest::default() };
    assert_eq!(node.call(6, &request).responses[0].error_code, 0);
    let topics =
        || node.fetch_offsets(7, "g", None).topics.iter().map(|it| it.name.to_string()).collect::<Vec<_>>();
    until(&node, "the offsets of u to go", || topics() == ["t"]);
    let node = node.restart(&[NO_DELAY]);
    assert_eq!(node.fetch_offsets(7, "g", Some(&[("u", &[0])])).topics[0].partitions[0].committed_offset, -1);
}

// KAFKA-7437
#[test]
fn the_leader_epoch_of_a_commit_is_told_in_the_versions_that_have_it() {
    let node = coordinator(&[]);
    for version in 6..=8 {
        let mut request = commit_request("g", "t", 0, 5);
        request.topics[0].partitions[0].committed_leader_epoch = i32::from(version);
        assert_eq!(node.commit_as(version, &request), ErrorCode::None);
        for (fetch, epoch) in [(4, -1), (5, i32::from(version)), (7, i32::from(version))] {
            let response = node.fetch_offsets(fetch, "g", None);
            assert_eq!(response.topics[0].partitions[0].committed_leader_epoch, epoch, "{version}, {fetch}");
        }
    }
}

#[test]
fn a_commit_of_version_1_may_say_when_it_was() {
    let node = coordinator(&[]);
    for (group, days) in [("old", 8), ("new", 6)] {
        let mut request = commit_request(group, "t", 0, 5);
        let age_ms = i64::try_from((days * DAY).as_millis()).unwrap();
        let now_ms = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        request.topics[0].partitions[0].commit_timestamp = i64::try_from(now_ms).unwrap() - age_ms;
        assert_eq!(node.commit_as(1, &request), ErrorCode::None);
    }
    node.advance(Duration::from_secs(700));
    node.broker.housekeep();
    assert_eq!((node.committed("old"), node.committed("new")), (Ok(-1), Ok(5)));
}

// KAFKA-6773
#[test]
fn consumers_without_a_group_keep_offsets_under_no_name() {
    let node = coordinator(&[]);
    assert_eq!(node.commit("", 5), ErrorCode::None);
    assert_eq!(node.committed(""), Ok(5));
    assert_eq!(groups(&node), [""]);
    assert_eq!(node.heartbeat("", "m", 1), ErrorCode::InvalidGroupId);
}
