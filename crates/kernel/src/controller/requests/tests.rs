use std::collections::BTreeMap;
use std::sync::Arc;

use wire::Decoder;
use wire::messages::leader_and_isr_response::{LeaderAndIsrPartitionError, LeaderAndIsrTopicError};
use wire::messages::stop_replica_response::StopReplicaPartitionError;
use wire::types::{BrokerEpoch, ControllerEpoch, LeaderEpoch, TopicId, TopicPartition};

use super::*;
use crate::controller::values::{
    BrokerRegistration, ControlSender, EPOCH_DURING_DELETE, Endpoint, LeaderAndIsr, LeaderAndIsrPartition,
    LeaderAndIsrRequest, LeaderRecoveryState, LiveLeader, ReplicaAssignment, StopReplicaPartition,
    StopReplicaRequest, UpdateMetadataBody, UpdateMetadataPartition, UpdateMetadataRequest,
};

const SENDER: ControlSender = ControlSender {
    controller_id: BrokerId(1),
    controller_epoch: ControllerEpoch(7),
    broker_epoch: BrokerEpoch(40),
};

const ID_OF_A: TopicId = TopicId([3; 16]);

fn brokers(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

fn tp(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition::new(topic, partition)
}

/// A partition that recovers, decided by an earlier controller.
fn state() -> LeaderAndIsr {
    LeaderAndIsr {
        leader: BrokerId(2),
        leader_epoch: LeaderEpoch(5),
        isr: brokers(&[2, 3]),
        recovery_state: LeaderRecoveryState::Recovering,
        controller_epoch: ControllerEpoch(6),
        partition_epoch: 9,
    }
}

/// a-0, a-1 and b-0; a has an id.
fn leader_and_isr_request() -> LeaderAndIsrRequest {
    let partition = LeaderAndIsrPartition {
        state: state(),
        assignment: ReplicaAssignment {
            replicas: brokers(&[2, 3, 4]),
            adding: brokers(&[4]),
            removing: brokers(&[3]),
        },
        is_new: true,
    };
    LeaderAndIsrRequest {
        sender: SENDER,
        partitions: [tp("a", 0), tp("a", 1), tp("b", 0)].map(|tp| (tp, partition.clone())).into(),
        topic_ids: BTreeMap::from([("a".into(), ID_OF_A)]),
        live_leaders: vec![LiveLeader { id: BrokerId(2), host: "two".into(), port: 9092 }],
    }
}

fn update_metadata_request() -> UpdateMetadataRequest {
    let endpoint = |listener: &str, port, security_protocol| Endpoint {
        listener: listener.into(),
        host: "two".into(),
        port,
        security_protocol,
    };
    let broker = BrokerRegistration {
        endpoints: vec![endpoint("REPLICATION", 9093, 1), endpoint("PLAINTEXT", 9092, 0)],
        rack: Some("r".into()),
    };
    let partition = UpdateMetadataPartition {
        state: state(),
        replicas: brokers(&[2, 3, 4]),
        offline_replicas: brokers(&[4]),
    };
    let body = UpdateMetadataBody {
        partitions: [tp("a", 0), tp("a", 1), tp("b", 0)].map(|tp| (tp, partition.clone())).into(),
        topic_ids: BTreeMap::from([("a".into(), ID_OF_A)]),
        live_brokers: BTreeMap::from([(BrokerId(2), Arc::new(broker))]),
    };
    UpdateMetadataRequest { sender: SENDER, body: Arc::new(body) }
}

/// a-0 and b-0 go, a-1 is only stopped.
fn stop_replica_request() -> StopReplicaRequest {
    let stop = |epoch, delete| StopReplicaPartition { leader_epoch: epoch, delete };
    StopReplicaRequest {
        sender: SENDER,
        partitions: BTreeMap::from([
            (tp("a", 0), stop(EPOCH_DURING_DELETE, true)),
            (tp("a", 1), stop(LeaderEpoch(5), false)),
            (tp("b", 0), stop(LeaderEpoch(5), true)),
        ]),
    }
}

/// What the receiver of a message reads.
fn sent<M: messages::Message>(message: &ControlMessage) -> M {
    let mut bytes = Encoder::new();
    message.encode(&mut bytes).unwrap();
    let mut bytes = Decoder::new(bytes.into_bytes());
    let read = M::decode(&mut bytes, message.version).unwrap();
    assert!(bytes.remaining() == 0);
    read
}

/// The newest finished release whose requests are of this version.
fn release(version: i16, of: fn(MetadataVersion) -> i16) -> MetadataVersion {
    MetadataVersion::all().filter(|release| of(*release) == version).last().unwrap()
}

fn leader_and_isr(version: i16) -> messages::LeaderAndIsrRequest {
    let request = ControlRequest::LeaderAndIsr(leader_and_isr_request());
    sent(&ControlMessage::new(&request, release(version, MetadataVersion::leader_and_isr_version)))
}

fn update_metadata(version: i16) -> messages::UpdateMetadataRequest {
    let request = ControlRequest::UpdateMetadata(update_metadata_request());
    sent(&ControlMessage::new(&request, release(version, MetadataVersion::update_metadata_version)))
}

fn stop_replica(version: i16) -> Vec<messages::StopReplicaRequest> {
    let release = release(version, MetadataVersion::stop_replica_version);
    let parts = split(ControlRequest::StopReplica(stop_replica_request()), release);
    parts.iter().map(|part| sent(&ControlMessage::new(part, release))).collect()
}

#[test]
fn leader_and_isr_says_in_each_version_what_the_version_has_fields_for() {
    for version in 0..=7 {
        let read = leader_and_isr(version);
        assert_eq!((read.controller_id, read.controller_epoch), (1, 7));
        assert_eq!(read.broker_epoch, if version >= 2 { 40 } else { -1 });
        assert_eq!((read.live_leaders[0].broker_id, &*read.live_leaders[0].host_name), (2, "two"));
        let grouped: Vec<_> = read
            .topic_states
            .iter()
            .map(|topic| (&*topic.topic_name, topic.topic_id, topic.partition_states.len()))
            .collect();
        let ungrouped: Vec<_> =
            read.ungrouped_partition_states.iter().map(|p| (&*p.topic_name, p.partition_index)).collect();
        if version >= 2 {
            let id = if version >= 5 { ID_OF_A } else { TopicId::ZERO };
            assert_eq!(grouped, [("a", id, 2), ("b", TopicId::ZERO, 1)]);
            assert_eq!(ungrouped, []);
        } else {
            assert_eq!(ungrouped, [("a", 0), ("a", 1), ("b", 0)]);
        }
        let of_topics = read.topic_states.iter().flat_map(|topic| &topic.partition_states);
        for partition in read.ungrouped_partition_states.iter().chain(of_topics) {
            assert_eq!((partition.leader, partition.leader_epoch, partition.partition_epoch), (2, 5, 9));
            assert_eq!(partition.controller_epoch, 6, "of the controller that decided");
            assert_eq!((&partition.isr[..], &partition.replicas[..]), (&[2, 3][..], &[2, 3, 4][..]));
            assert_eq!(partition.is_new, version >= 1);
            let reassigned = (partition.adding_replicas.clone(), partition.removing_replicas.clone());
            assert_eq!(reassigned, if version >= 3 { (vec![4], vec![3]) } else { (vec![], vec![]) });
            assert_eq!(partition.leader_recovery_state, i8::from(version >= 6));
        }
    }
}

/// A receiver takes "full" (2) as leave to treat logs that are not listed as strays (KAFKA-15605).
#[test]
fn no_request_is_full_or_from_kraft() {
    let (lead, update) = (leader_and_isr(7), update_metadata(8));
    assert_eq!((lead.r#type, lead.is_kraft_controller), (0, false));
    assert_eq!((update.r#type, update.is_kraft_controller), (0, false));
    assert!(stop_replica(4).iter().all(|stop| !stop.is_kraft_controller));
}

#[test]
fn update_metadata_says_in_each_version_what_the_version_has_fields_for() {
    for version in 1..=8 {
        let read = update_metadata(version);
        assert_eq!((read.controller_id, read.controller_epoch), (1, 7));
        assert_eq!(read.broker_epoch, if version >= 5 { 40 } else { -1 });
        if version >= 5 {
            let id = if version >= 7 { ID_OF_A } else { TopicId::ZERO };
            let topics: Vec<_> = read.topic_states.iter().map(|t| (&*t.topic_name, t.topic_id)).collect();
            assert_eq!(topics, [("a", id), ("b", TopicId::ZERO)]);
        } else {
            assert_eq!(read.ungrouped_partition_states.len(), 3);
            assert_eq!(&*read.ungrouped_partition_states[2].topic_name, "b");
        }
        let of_topics = read.topic_states.iter().flat_map(|topic| &topic.partition_states);
        for partition in read.ungrouped_partition_states.iter().chain(of_topics) {
            assert_eq!((partition.leader, partition.leader_epoch, partition.zk_version), (2, 5, 9));
            assert_eq!(partition.controller_epoch, 6);
            assert_eq!((&partition.isr[..], &partition.replicas[..]), (&[2, 3][..], &[2, 3, 4][..]));
            assert_eq!(partition.offline_replicas, if version >= 4 { vec![4] } else { vec![] });
        }
        let broker = &read.live_brokers[0];
        let endpoints: Vec<_> =
            broker.endpoints.iter().map(|e| (&*e.listener, &*e.host, e.port, e.security_protocol)).collect();
        let named = version >= 3;
        let listeners = if named { ["REPLICATION", "PLAINTEXT"] } else { ["", ""] };
        assert_eq!(endpoints, [(listeners[0], "two", 9093, 1), (listeners[1], "two", 9092, 0)]);
        assert_eq!(broker.rack.as_deref(), Some(if version >= 2 { "r" } else { "" }));
    }
}

#[test]
fn the_oldest_update_metadata_names_the_plaintext_address_alone() {
    let read = update_metadata(0);
    assert_eq!((&*read.live_brokers[0].v0_host, read.live_brokers[0].v0_port), ("two", 9092));
}

#[test]
fn stop_replica_carries_epoch_and_flag_of_each_partition_from_version_3_on() {
    for version in 3..=4 {
        let [read] = &stop_replica(version)[..] else { panic!("not one request") };
        assert_eq!((read.controller_id, read.controller_epoch, read.broker_epoch), (1, 7, 40));
        let states: Vec<_> = read
            .topic_states
            .iter()
            .flat_map(|topic| topic.partition_states.iter().map(move |p| (&*topic.topic_name, p)))
            .map(|(topic, p)| (topic, p.partition_index, p.leader_epoch, p.delete_partition))
            .collect();
        assert_eq!(states, [("a", 0, -2, true), ("a", 1, 5, false), ("b", 0, 5, true)]);
    }
}

#[test]
fn stop_replica_is_split_by_its_flag_below_version_3() {
    for version in 0..=2 {
        let [kept, deleted] = &stop_replica(version)[..] else { panic!("not two requests") };
        let partitions = |read: &messages::StopReplicaRequest| -> Vec<(String, i32)> {
            let ungrouped =
                read.ungrouped_partitions.iter().map(|p| (p.topic_name.to_string(), p.partition_index));
            let grouped = read
                .topics
                .iter()
                .flat_map(|topic| topic.partition_indexes.iter().map(|p| (topic.name.to_string(), *p)));
            ungrouped.chain(grouped).collect()
        };
        assert_eq!((kept.delete_partitions, partitions(kept)), (false, vec![("a".into(), 1)]));
        assert_eq!(
            (deleted.delete_partitions, partitions(deleted)),
            (true, vec![("a".into(), 0), ("b".into(), 0)])
        );
        assert_eq!(kept.broker_epoch, if version >= 1 { 40 } else { -1 });
    }
}

#[test]
fn a_stop_replica_that_wants_one_thing_of_all_is_never_split() {
    let mut request = stop_replica_request();
    request.partitions.retain(|_, stop| stop.delete);
    let request = ControlRequest::StopReplica(request);
    assert_eq!(split(request.clone(), MetadataVersion::IBP_2_0_IV1), [request]);
}

#[test]
fn a_leader_and_isr_answer_is_read_by_names_or_by_the_ids_of_the_request() {
    let partition = |topic: &str, partition_index, error: ErrorCode| LeaderAndIsrPartitionError {
        topic_name: topic.into(),
        partition_index,
        error_code: error.code(),
    };
    let named = messages::LeaderAndIsrResponse {
        partition_errors: vec![
            partition("a", 1, ErrorCode::KafkaStorageError),
            partition("b", 0, ErrorCode::None),
            partition("a", 9, ErrorCode::None),
        ],
        ..Default::default()
    };
    let topic = |topic_id, partition_errors| LeaderAndIsrTopicError { topic_id, partition_errors };
    let with_ids = messages::LeaderAndIsrResponse {
        topics: vec![
            topic(ID_OF_A, vec![partition("", 1, ErrorCode::KafkaStorageError)]),
            topic(TopicId([8; 16]), vec![partition("", 0, ErrorCode::KafkaStorageError)]),
        ],
        ..Default::default()
    };
    let request = ControlRequest::LeaderAndIsr(leader_and_isr_request());
    for (reply, expected) in [
        (named, vec![(tp("a", 1), ErrorCode::KafkaStorageError), (tp("b", 0), ErrorCode::None)]),
        (with_ids, vec![(tp("a", 1), ErrorCode::KafkaStorageError)]),
    ] {
        assert_eq!(
            ControlReply::LeaderAndIsr(reply).read(&request),
            Some(ControlResponse::LeaderAndIsr {
                error: ErrorCode::None,
                partitions: expected.into_iter().collect()
            })
        );
    }
}

/// KAFKA-9946.
#[test]
fn a_stop_replica_answer_tells_only_of_replicas_that_were_to_be_deleted() {
    let partition = |topic: &str, error: ErrorCode, partition_index| StopReplicaPartitionError {
        topic_name: topic.into(),
        partition_index,
        error_code: error.code(),
    };
    let reply = ControlReply::StopReplica(messages::StopReplicaResponse {
        error_code: 0,
        partition_errors: vec![
            partition("a", ErrorCode::None, 0),
            partition("a", ErrorCode::None, 1),
            partition("b", ErrorCode::FencedLeaderEpoch, 0),
        ],
    });
    let request = ControlRequest::StopReplica(stop_replica_request());
    let deleted = BTreeMap::from([(tp("a", 0), ErrorCode::None), (tp("b", 0), ErrorCode::FencedLeaderEpoch)]);
    let expected = ControlResponse::StopReplica { error: ErrorCode::None, deleted };
    assert_eq!(reply.read(&request), Some(expected));
}

#[test]
fn an_error_of_the_whole_request_is_passed_on_and_an_unknown_one_is_unknown() {
    let request = ControlRequest::UpdateMetadata(update_metadata_request());
    for (error_code, error) in [(77, ErrorCode::StaleBrokerEpoch), (9999, ErrorCode::UnknownServerError)] {
        let reply = ControlReply::UpdateMetadata(messages::UpdateMetadataResponse { error_code });
        assert_eq!(reply.read(&request), Some(ControlResponse::UpdateMetadata { error }));
    }
}

#[test]
fn an_answer_to_another_kind_of_request_is_none() {
    let request = ControlRequest::UpdateMetadata(update_metadata_request());
    assert_eq!(ControlReply::StopReplica(Default::default()).read(&request), None);
}
