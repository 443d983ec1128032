//! Requests that have confused other brokers: versions, acks, client ids, pipelines.

use std::sync::mpsc::Receiver;

use bytes::Bytes;
use node::call::Outcome;
use wire::api::ApiKey;
use wire::header::{RequestHeader, encode_request_header};
use wire::messages::create_topics_request::CreatableTopic;
use wire::messages::{
    AllocateProducerIdsRequest, AlterConfigsRequest, AlterPartitionRequest, ApiVersionsRequest,
    ControlledShutdownRequest, CreatePartitionsRequest, CreateTopicsRequest, DeleteGroupsRequest,
    DeleteRecordsRequest, DeleteTopicsRequest, DescribeClusterRequest, DescribeConfigsRequest,
    DescribeGroupsRequest, DescribeLogDirsRequest, DescribeProducersRequest, ElectLeadersRequest,
    FetchRequest, FindCoordinatorRequest, HeartbeatRequest, IncrementalAlterConfigsRequest,
    InitProducerIdRequest, JoinGroupRequest, LeaderAndIsrRequest, LeaveGroupRequest, ListGroupsRequest,
    ListOffsetsRequest, MetadataRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
    OffsetForLeaderEpochRequest, ProduceRequest, Request, StopReplicaRequest, SyncGroupRequest,
    UpdateFeaturesRequest, UpdateMetadataRequest,
};
use wire::{Encoder, Str};

use crate::cases_tools::{end_offset, fetch, good};
use crate::harness::{Node, PATIENCE, answer, frame, joined, produce_request};

fn is_closed(outcome: &Receiver<Outcome>) -> bool {
    matches!(outcome.recv_timeout(PATIENCE).unwrap(), Outcome::Close(_))
}

fn bytes_of(outcome: &Receiver<Outcome>) -> Bytes {
    match outcome.recv_timeout(PATIENCE).unwrap() {
        Outcome::Respond(parts) => joined(&parts),
        other => panic!("{other:?}"),
    }
}

/// streamnative/kop#176, apache/kafka#7381, KIP-511: a client newer than the broker learns what to speak.
#[test]
fn api_versions_of_an_unknown_version_is_answered_in_the_oldest_form() {
    let node = Node::start(&[]);
    // Key 18, version 9, correlation 7, client id "x", no tags, and a body of who knows what.
    let unknown = b"\x00\x12\x00\x09\x00\x00\x00\x07\x00\x01x\x00\xff\xfe\xfd\xfc\xfb";
    let versions = ApiKey::ApiVersions.versions();
    let mut expected = Vec::new();
    expected.extend_from_slice(&7_i32.to_be_bytes());
    expected.extend_from_slice(&35_i16.to_be_bytes());
    expected.extend_from_slice(&1_i32.to_be_bytes());
    for number in [18, *versions.start(), *versions.end()] {
        expected.extend_from_slice(&number.to_be_bytes());
    }
    assert_eq!(bytes_of(&node.submit(Bytes::from_static(unknown))), expected);
    assert_eq!(node.call(0, &ApiVersionsRequest::default()).error_code, 0);
    // Any other key of an unknown version ends the connection.
    let metadata = b"\x00\x03\x00\x63\x00\x00\x00\x07\x00\x01x\x00\x00";
    assert!(is_closed(&node.submit(Bytes::from_static(metadata))));
}

/// streamnative/kop#1875: an answer where none is wanted confuses the client as much as none where one is.
#[test]
fn each_kind_of_acks_is_answered_or_not_as_clients_expect() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let produce =
        |topic: &str, records, acks| node.submit(frame(9, &produce_request(topic, 0, records, acks)));
    let outcome = produce("t", good(1), 0).recv_timeout(PATIENCE).unwrap();
    assert!(matches!(outcome, Outcome::NoResponse));
    assert!(is_closed(&produce("absent", good(1), 0)));
    let mut damaged = good(1).to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(is_closed(&produce("t", damaged.into(), 0)));
    let nothing = ProduceRequest { acks: -1, timeout_ms: 1000, ..ProduceRequest::default() };
    assert!(node.call(9, &nothing).responses.is_empty());
    let response = node.call(9, &produce_request("t", 0, good(1), 2));
    assert_eq!(response.responses[0].partition_responses[0].error_code, 21);
    assert_eq!(end_offset(&node, "t"), 1);
}

/// nisshi-io/nisshi#62, streamnative/kop#180: each version has its own fields, all of them and no others. That
/// an answer ends with its last field is checked wherever one is read.
#[test]
fn every_served_request_is_answered_in_the_form_of_its_version() {
    fn all<R: Request>(node: &Node, request: &R) -> usize {
        let versions = ApiKey::from_code(R::API_KEY).unwrap().versions();
        for version in versions.clone() {
            node.call(version, request);
        }
        versions.count()
    }
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let tools = ApiVersionsRequest { client_software_name: "a".into(), client_software_version: "1".into() };
    let create = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: Str::from("t"),
            num_partitions: 1,
            replication_factor: 1,
            ..CreatableTopic::default()
        }],
        ..CreateTopicsRequest::default()
    };
    let init = InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
    let cluster = DescribeClusterRequest { endpoint_type: 1, ..DescribeClusterRequest::default() };
    let answered = [
        all(&node, &produce_request("t", 0, good(1), -1)),
        all(&node, &fetch("t", &[(0, 0)], 1000)),
        all(&node, &ListOffsetsRequest { replica_id: -1, ..ListOffsetsRequest::default() }),
        all(&node, &MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }),
        all(&node, &LeaderAndIsrRequest::default()),
        all(&node, &StopReplicaRequest::default()),
        all(&node, &UpdateMetadataRequest::default()),
        all(&node, &ControlledShutdownRequest::default()),
        all(&node, &OffsetCommitRequest::default()),
        all(&node, &OffsetFetchRequest::default()),
        all(&node, &FindCoordinatorRequest::default()),
        all(&node, &JoinGroupRequest::default()),
        all(&node, &HeartbeatRequest::default()),
        all(&node, &LeaveGroupRequest::default()),
        all(&node, &SyncGroupRequest::default()),
        all(&node, &DescribeGroupsRequest::default()),
        all(&node, &ListGroupsRequest::default()),
        all(&node, &tools),
        all(&node, &create),
        all(&node, &DeleteTopicsRequest::default()),
        all(&node, &DeleteRecordsRequest::default()),
        all(&node, &init),
        all(&node, &OffsetForLeaderEpochRequest::default()),
        all(&node, &DescribeConfigsRequest::default()),
        all(&node, &AlterConfigsRequest::default()),
        all(&node, &DescribeLogDirsRequest::default()),
        all(&node, &CreatePartitionsRequest::default()),
        all(&node, &DeleteGroupsRequest::default()),
        all(
            &node,
            &ElectLeadersRequest { topic_partitions: Some(Vec::new()), ..ElectLeadersRequest::default() },
        ),
        all(&node, &IncrementalAlterConfigsRequest::default()),
        all(&node, &OffsetDeleteRequest::default()),
        all(&node, &AlterPartitionRequest::default()),
        all(&node, &UpdateFeaturesRequest::default()),
        all(&node, &cluster),
        all(&node, &DescribeProducersRequest::default()),
        all(&node, &AllocateProducerIdsRequest::default()),
    ];
    let told = node.call(3, &tools).api_keys;
    let advertised = told.iter().map(|it| usize::try_from(it.max_version - it.min_version + 1).unwrap());
    assert!(advertised.eq(answered));
}

/// nisshi-io/nisshi#62: what is not known has the default of the protocol, never what lay in memory.
#[test]
fn fields_that_do_not_apply_hold_their_defaults() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    node.produce("t", 0, good(3)).unwrap();
    for version in 4..=12 {
        let response = node.call(version, &fetch("t", &[(0, 0)], 1000));
        let it = &response.responses[0].partitions[0];
        assert_eq!((it.error_code, it.preferred_read_replica, it.high_watermark), (0, -1, 3), "v{version}");
        assert!(it.aborted_transactions.as_ref().is_none_or(Vec::is_empty), "v{version}");
        assert_eq!(it.log_start_offset, if version >= 5 { 0 } else { -1 }, "v{version}");
        assert_eq!((it.diverging_epoch.epoch, it.diverging_epoch.end_offset), (-1, -1));
    }
    for version in 5..=12 {
        let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
        let it = node.call(version, &all).topics[0].partitions[0].clone();
        assert_eq!((it.leader_epoch, it.offline_replicas.len()), (if version >= 7 { 0 } else { -1 }, 0));
    }
}

/// KAFKA-13385, apache/kafka#866: a missing client id is an empty one, and any other is only a name.
#[test]
fn client_ids_of_all_kinds_are_served() {
    fn framed<R: Request>(version: i16, client_id: Option<&str>, request: &R) -> Bytes {
        let header = RequestHeader {
            api_key: R::API_KEY,
            api_version: version,
            correlation_id: 42,
            client_id: client_id.map(Str::from),
        };
        let mut encoder = Encoder::new();
        encode_request_header(&mut encoder, &header).unwrap();
        request.encode(&mut encoder, version).unwrap();
        encoder.into_bytes()
    }
    fn answered<R: Request>(node: &Node, version: i16, id: Option<&str>, request: &R) -> R::Response {
        answer(&node.submit(framed(version, id, request)), version)
    }
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let long = "x".repeat(32_767);
    for id in [None, Some(""), Some(long.as_str()), Some("a/b=c,d"), Some("\u{fc}\u{1F600}\0")] {
        let produced = answered(&node, 9, id, &produce_request("t", 0, good(1), -1));
        assert_eq!(produced.responses[0].partition_responses[0].error_code, 0);
        let fetched = answered(&node, 11, id, &fetch("t", &[(0, 0)], 1000));
        assert_eq!(fetched.responses[0].partitions[0].error_code, 0);
        let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
        assert_eq!(answered(&node, 8, id, &all).topics.len(), 1);
        assert_eq!(answered(&node, 0, id, &ApiVersionsRequest::default()).error_code, 0);
    }
    assert_eq!(end_offset(&node, "t"), 5);
}

/// redpanda-data/redpanda#25636: a produce that is handed in while a fetch of its connection waits is served by
/// the broker at once; the order of the answers is kept where connections are served.
#[test]
fn a_fetch_that_waits_holds_up_no_other_request() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    let waiting = FetchRequest { max_wait_ms: 60_000, min_bytes: 1, ..fetch("t", &[(0, 0)], 1000) };
    let waiting = node.submit(frame(11, &waiting));
    assert_eq!(node.call(7, &MetadataRequest { topics: None, ..MetadataRequest::default() }).topics.len(), 1);
    assert_eq!(end_offset(&node, "t"), 0);
    assert!(waiting.try_recv().is_err());
    assert_eq!(node.produce("t", 0, good(1)), Ok(0));
    let response: wire::messages::FetchResponse = answer(&waiting, 11);
    assert_eq!(response.responses[0].partitions[0].high_watermark, 1);
}

/// confluentinc/librdkafka of version 2.0.2 read past an answer that had more or fewer fields than version 3
/// has: every field stands where it says, and nothing follows.
#[test]
fn the_third_version_of_api_versions_has_exactly_its_fields() {
    let node = Node::start(&[]);
    let request =
        ApiVersionsRequest { client_software_name: "a".into(), client_software_version: "1".into() };
    let bytes = bytes_of(&node.submit(frame(3, &request)));
    // Correlation id, error, and the count of keys plus one; the header is that of version 0.
    assert_eq!(bytes[..6], [0, 0, 0, 42, 0, 0]);
    let keys = usize::from(bytes[6]) - 1;
    assert!((0..keys).all(|at| bytes[7 + at * 7 + 6] == 0), "an entry has tagged fields");
    let rest = &bytes[7 + keys * 7..];
    // No throttle time; one tagged field: the epoch of the finalized features, eight bytes long.
    assert_eq!(rest, [&[0, 0, 0, 0, 1, 1, 8][..], &0_i64.to_be_bytes()].concat());
    let response = node.call(3, &request);
    assert_eq!(response.api_keys.len(), keys);
}
