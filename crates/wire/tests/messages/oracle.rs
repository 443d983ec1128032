//! Every message in every version against the crate `kafka-protocol`, which was generated from the same
//! definitions by others: it reads what we write, sees the same value in every field, and writes the same
//! bytes again; and we read what we wrote.

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable};
use wire::api::ApiKey;
use wire::messages::{self as ours, Message};
use wire::random::Rng;
use wire::types::TopicId;
use wire::{Decoder, Encoder};

/// Random values for each version of each message; the first is the default.
const ROUNDS: u64 = 40;

fn compare<Ours: Message, Theirs: Encodable + Decodable + Debug>() {
    for version in Ours::VERSIONS {
        for round in 0..ROUNDS {
            let about = format!("{} v{version}, seed {round}", Ours::NAME);
            let value =
                if round == 0 { Ours::default() } else { Ours::random(&mut Rng::new(round), version) };
            let mut dst = Encoder::new();
            if let Err(error) = value.encode(&mut dst, version) {
                panic!("{about}: {error}: {value:?}");
            }
            let bytes = dst.into_bytes();

            let mut src = Decoder::new(bytes.clone());
            assert_eq!(Ours::decode(&mut src, version).as_ref(), Ok(&value), "{about}");
            assert_eq!(src.remaining(), 0, "{about}: bytes left by us");

            let mut rest = bytes.clone();
            let read = match Theirs::decode(&mut rest, version) {
                Ok(read) => read,
                Err(error) => panic!("{about}: {error:#}: {value:?} {bytes:?}"),
            };
            assert!(rest.is_empty(), "{about}: bytes left by them");
            assert_eq!(their_fields(&read), format!("{value:?}"), "{about}");
            assert_eq!(write(&read, version), bytes, "{about}");
        }
    }
}

fn write(message: &impl Encodable, version: i16) -> Bytes {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes, version).unwrap();
    bytes.freeze()
}

/// Their message as text, in our way: without unknown tagged fields, with ids in base64 and our names
/// of the few fields whose names in Rust differ.
fn their_fields(message: &impl Debug) -> String {
    let text = format!("{message:?}").replace(", unknown_tagged_fields: {}", "");
    let text = text.replace(" { unknown_tagged_fields: {} }", "");
    let text =
        text.replace(" _type: ", " type: ").replace(" _match: ", " match: ").replace("k_raft", "kraft");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(letter) = rest.chars().next() {
        match rest.get(..36).and_then(|id| uuid::Uuid::try_parse(id).ok()) {
            Some(id) => {
                out.push_str(&TopicId(id.into_bytes()).to_string());
                rest = &rest[36..];
            }
            None => {
                out.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
    }
    out
}

macro_rules! compare {
    ($($test:ident $key:ident $request:ident $response:ident)*) => {
        $(
            #[test]
            fn $test() {
                assert_eq!(ours::$request::API_KEY, ApiKey::$key.code());
                assert_eq!(ours::$response::API_KEY, ApiKey::$key.code());
                assert_eq!(ours::$request::VERSIONS, ApiKey::$key.versions());
                assert_eq!(ours::$response::VERSIONS, ApiKey::$key.versions());
                compare::<ours::$request, theirs::$request>();
                compare::<ours::$response, theirs::$response>();
                for version in ApiKey::$key.versions() {
                    let key = theirs::ApiKey::$key;
                    assert_eq!(ApiKey::$key.request_header_version(version), key.request_header_version(version));
                    assert_eq!(ApiKey::$key.response_header_version(version), key.response_header_version(version));
                }
            }
        )*

        #[test]
        fn every_served_key_is_compared() {
            let compared = [$(ApiKey::$key),*];
            let served: Vec<_> = ApiKey::ALL.iter().copied().filter(|key| key.is_served()).collect();
            assert_eq!(compared.to_vec(), served);
        }
    };
}

compare! {
    produce Produce ProduceRequest ProduceResponse
    fetch Fetch FetchRequest FetchResponse
    list_offsets ListOffsets ListOffsetsRequest ListOffsetsResponse
    metadata Metadata MetadataRequest MetadataResponse
    leader_and_isr LeaderAndIsr LeaderAndIsrRequest LeaderAndIsrResponse
    stop_replica StopReplica StopReplicaRequest StopReplicaResponse
    update_metadata UpdateMetadata UpdateMetadataRequest UpdateMetadataResponse
    controlled_shutdown ControlledShutdown ControlledShutdownRequest ControlledShutdownResponse
    offset_commit OffsetCommit OffsetCommitRequest OffsetCommitResponse
    offset_fetch OffsetFetch OffsetFetchRequest OffsetFetchResponse
    find_coordinator FindCoordinator FindCoordinatorRequest FindCoordinatorResponse
    join_group JoinGroup JoinGroupRequest JoinGroupResponse
    heartbeat Heartbeat HeartbeatRequest HeartbeatResponse
    leave_group LeaveGroup LeaveGroupRequest LeaveGroupResponse
    sync_group SyncGroup SyncGroupRequest SyncGroupResponse
    describe_groups DescribeGroups DescribeGroupsRequest DescribeGroupsResponse
    list_groups ListGroups ListGroupsRequest ListGroupsResponse
    sasl_handshake SaslHandshake SaslHandshakeRequest SaslHandshakeResponse
    api_versions ApiVersions ApiVersionsRequest ApiVersionsResponse
    create_topics CreateTopics CreateTopicsRequest CreateTopicsResponse
    delete_topics DeleteTopics DeleteTopicsRequest DeleteTopicsResponse
    delete_records DeleteRecords DeleteRecordsRequest DeleteRecordsResponse
    init_producer_id InitProducerId InitProducerIdRequest InitProducerIdResponse
    offset_for_leader_epoch OffsetForLeaderEpoch OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse
    add_partitions_to_txn AddPartitionsToTxn AddPartitionsToTxnRequest AddPartitionsToTxnResponse
    add_offsets_to_txn AddOffsetsToTxn AddOffsetsToTxnRequest AddOffsetsToTxnResponse
    end_txn EndTxn EndTxnRequest EndTxnResponse
    write_txn_markers WriteTxnMarkers WriteTxnMarkersRequest WriteTxnMarkersResponse
    txn_offset_commit TxnOffsetCommit TxnOffsetCommitRequest TxnOffsetCommitResponse
    describe_acls DescribeAcls DescribeAclsRequest DescribeAclsResponse
    create_acls CreateAcls CreateAclsRequest CreateAclsResponse
    delete_acls DeleteAcls DeleteAclsRequest DeleteAclsResponse
    describe_configs DescribeConfigs DescribeConfigsRequest DescribeConfigsResponse
    alter_configs AlterConfigs AlterConfigsRequest AlterConfigsResponse
    alter_replica_log_dirs AlterReplicaLogDirs AlterReplicaLogDirsRequest AlterReplicaLogDirsResponse
    describe_log_dirs DescribeLogDirs DescribeLogDirsRequest DescribeLogDirsResponse
    sasl_authenticate SaslAuthenticate SaslAuthenticateRequest SaslAuthenticateResponse
    create_partitions CreatePartitions CreatePartitionsRequest CreatePartitionsResponse
    create_delegation_token CreateDelegationToken CreateDelegationTokenRequest CreateDelegationTokenResponse
    renew_delegation_token RenewDelegationToken RenewDelegationTokenRequest RenewDelegationTokenResponse
    expire_delegation_token ExpireDelegationToken ExpireDelegationTokenRequest ExpireDelegationTokenResponse
    describe_delegation_token DescribeDelegationToken DescribeDelegationTokenRequest DescribeDelegationTokenResponse
    delete_groups DeleteGroups DeleteGroupsRequest DeleteGroupsResponse
    elect_leaders ElectLeaders ElectLeadersRequest ElectLeadersResponse
    incremental_alter_configs IncrementalAlterConfigs IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse
    alter_partition_reassignments AlterPartitionReassignments AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse
    list_partition_reassignments ListPartitionReassignments ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse
    offset_delete OffsetDelete OffsetDeleteRequest OffsetDeleteResponse
    describe_client_quotas DescribeClientQuotas DescribeClientQuotasRequest DescribeClientQuotasResponse
    alter_client_quotas AlterClientQuotas AlterClientQuotasRequest AlterClientQuotasResponse
    describe_user_scram_credentials DescribeUserScramCredentials DescribeUserScramCredentialsRequest DescribeUserScramCredentialsResponse
    alter_user_scram_credentials AlterUserScramCredentials AlterUserScramCredentialsRequest AlterUserScramCredentialsResponse
    alter_partition AlterPartition AlterPartitionRequest AlterPartitionResponse
    update_features UpdateFeatures UpdateFeaturesRequest UpdateFeaturesResponse
    envelope Envelope EnvelopeRequest EnvelopeResponse
    describe_cluster DescribeCluster DescribeClusterRequest DescribeClusterResponse
    describe_producers DescribeProducers DescribeProducersRequest DescribeProducersResponse
    describe_transactions DescribeTransactions DescribeTransactionsRequest DescribeTransactionsResponse
    list_transactions ListTransactions ListTransactionsRequest ListTransactionsResponse
    allocate_producer_ids AllocateProducerIds AllocateProducerIdsRequest AllocateProducerIdsResponse
    consumer_group_heartbeat ConsumerGroupHeartbeat ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse
    consumer_group_describe ConsumerGroupDescribe ConsumerGroupDescribeRequest ConsumerGroupDescribeResponse
}
