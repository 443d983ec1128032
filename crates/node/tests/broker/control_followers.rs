//! What the fetches of followers mean for the ISR, and for produces and deletions that wait for replicas.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use node::call::Outcome;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::alter_partition_response::{PartitionData, TopicData};
use wire::messages::api_versions_response::ApiVersion;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use wire::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};
use wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use wire::messages::{
    AlterPartitionRequest, AlterPartitionResponse, ApiVersionsRequest, ApiVersionsResponse,
    DeleteRecordsRequest, DeleteRecordsResponse, FetchRequest, ProduceRequest, ProduceResponse,
};
use wire::types::TopicId;

use crate::cases_tools::{batches_of, end_offset, fetched, good};
use crate::control_tools::{ID, Order, order};
use crate::harness::{Node, answer, frame, produce_request};

/// The version of Fetch that tells the log start and the leader epoch, and names topics.
const FETCH: i16 = 11;

fn leading(orders: &[Order], settings: &[(&str, &str)]) -> Node {
    let node = Node::start(settings);
    node.tell(2, &[0, 1, 2], orders);
    assert!(node.order(orders).iter().all(|error| *error == ErrorCode::None));
    node
}

/// `t` in epoch 1 with the replicas 0 and 1, of which 1 is not in sync.
fn with_a_laggard() -> Node {
    leading(&[Order { isr: vec![0], ..order("t", 0, 1, &[0, 1]) }], &[])
}

/// Broker 1 fetches `topic` at `offset`; its log begins at `log_start`.
fn fetches(node: &Node, topic: &str, offset: i64, log_start: i64) {
    let partition = FetchPartition {
        current_leader_epoch: 1,
        fetch_offset: offset,
        log_start_offset: log_start,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    let topic = FetchTopic { topic: Str::from(topic), partitions: vec![partition], ..FetchTopic::default() };
    let request = FetchRequest { replica_id: 1, topics: vec![topic], ..FetchRequest::default() };
    let response = node.call(FETCH, &request);
    assert_eq!(response.responses[0].partitions[0].error_code, 0);
}

fn written(node: &Node, topic: &str, records: usize) {
    let response: ProduceResponse = node.call(9, &produce_request(topic, 0, good(records), 1));
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
}

fn acks_all(node: &Node, topics: &[&str], timeout_ms: i32) -> Receiver<Outcome> {
    let topic = |name: &&str| TopicProduceData {
        name: Str::from(*name),
        partition_data: vec![PartitionProduceData { index: 0, records: Some(good(1)) }],
    };
    let request = ProduceRequest {
        acks: -1,
        timeout_ms,
        topic_data: topics.iter().map(topic).collect(),
        ..ProduceRequest::default()
    };
    node.submit(frame(9, &request))
}

/// Error and base offset of each partition.
fn outcomes(waiting: &Receiver<Outcome>) -> Vec<(i16, i64)> {
    let response: ProduceResponse = answer(waiting, 9);
    let each = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    each.map(|it| (it.error_code, it.base_offset)).collect()
}

/// The ISR that the leader asks the controller for; it is granted.
fn granted(node: &Node) -> Vec<i32> {
    let asked = node.peers.take::<ApiVersionsRequest>();
    let key = ApiVersion { api_key: 56, min_version: 0, max_version: 2 };
    asked.answer(&ApiVersionsResponse { api_keys: vec![key], ..ApiVersionsResponse::default() });
    let sent = node.peers.take::<AlterPartitionRequest>();
    let topic = sent.request.topics[0].clone();
    let asked = topic.partitions[0].clone();
    let result = PartitionData {
        leader_epoch: asked.leader_epoch,
        isr: asked.new_isr.clone(),
        partition_epoch: asked.partition_epoch + 1,
        ..PartitionData::default()
    };
    let topic = TopicData { topic_id: topic.topic_id, partitions: vec![result], ..TopicData::default() };
    sent.answer(&AlterPartitionResponse { topics: vec![topic], ..AlterPartitionResponse::default() });
    asked.new_isr
}

#[test]
fn a_follower_that_has_caught_up_joins_the_isr() {
    let node = with_a_laggard();
    written(&node, "t", 3);
    fetches(&node, "t", 2, 0);
    assert_eq!(node.peers.count::<ApiVersionsRequest>(), 0, "it lacks a committed record");
    fetches(&node, "t", 3, 0);
    assert_eq!(granted(&node), [0, 1]);
    assert!(node.broker.render_metrics().contains("kafka_server_replicamanager_isrexpands_total 1"));
    // It counts from now on.
    written(&node, "t", 1);
    assert_eq!(end_offset(&node, "t"), 3);
    fetches(&node, "t", 4, 0);
    assert_eq!(end_offset(&node, "t"), 4);
}

/// Broker 1 fetches `t` at `offset` in the version that tells its registration.
fn fetches_registered(node: &Node, broker_epoch: i64, offset: i64) {
    let partition = FetchPartition {
        current_leader_epoch: 1,
        fetch_offset: offset,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    let topic = FetchTopic { topic_id: ID, partitions: vec![partition], ..FetchTopic::default() };
    let request = FetchRequest {
        replica_state: ReplicaState { replica_id: 1, replica_epoch: broker_epoch },
        topics: vec![topic],
        ..FetchRequest::default()
    };
    let response = node.call(15, &request);
    assert_eq!(response.responses[0].partitions[0].error_code, 0);
}

#[test]
fn what_a_follower_has_sent_in_an_earlier_life_does_not_let_it_in() {
    // apache/kafka#14053: it had all three records, and came back without the last two.
    let node = with_a_laggard();
    written(&node, "t", 3);
    fetches_registered(&node, 71, 1);
    fetches_registered(&node, 70, 3);
    assert_eq!(node.peers.count::<ApiVersionsRequest>(), 0);
    fetches_registered(&node, 71, 3);
    let asked = node.peers.take::<ApiVersionsRequest>();
    let key = ApiVersion { api_key: 56, min_version: 0, max_version: 3 };
    asked.answer(&ApiVersionsResponse { api_keys: vec![key], ..ApiVersionsResponse::default() });
    // The controller is told in which life it has them.
    let sent = node.peers.take::<AlterPartitionRequest>();
    let isr = &sent.request.topics[0].partitions[0].new_isr_with_epochs;
    let isr: Vec<_> = isr.iter().map(|it| (it.broker_id, it.broker_epoch)).collect();
    assert_eq!(isr, [(0, -1), (1, 71)]);
}

#[test]
fn a_follower_whose_broker_is_not_alive_is_not_let_in_though_it_fetches() {
    // KAFKA-14140: as in its controlled shutdown.
    let node = with_a_laggard();
    written(&node, "t", 1);
    node.tell(2, &[0, 2], &[]);
    fetches(&node, "t", 1, 0);
    assert_eq!(node.peers.count::<ApiVersionsRequest>(), 0);
    node.tell(2, &[0, 1, 2], &[]);
    fetches(&node, "t", 1, 0);
    assert_eq!(granted(&node), [0, 1]);
}

#[test]
fn a_follower_that_was_there_before_joins_only_with_the_start_of_the_epoch() {
    // KAFKA-7128: the high watermark of the new leader lies below what was committed.
    let node = leading(&[order("t", 0, 1, &[0, 1, 2])], &[]);
    written(&node, "t", 4);
    node.obeys(&Order { isr: vec![0, 2], ..order("t", 0, 2, &[0, 1, 2]) });
    let fetch = |offset| {
        let partition = FetchPartition {
            current_leader_epoch: 2,
            fetch_offset: offset,
            partition_max_bytes: 1 << 20,
            ..FetchPartition::default()
        };
        let topic =
            FetchTopic { topic: Str::from("t"), partitions: vec![partition], ..FetchTopic::default() };
        node.call(FETCH, &FetchRequest { replica_id: 1, topics: vec![topic], ..FetchRequest::default() });
    };
    fetch(0);
    fetch(3);
    assert_eq!(node.peers.count::<ApiVersionsRequest>(), 0);
    fetch(4);
    assert_eq!(granted(&node), [0, 2, 1]);
}

#[test]
fn produces_that_wait_together_are_answered_each_when_its_records_are_replicated() {
    let node = leading(&[order("t", 0, 1, &[0, 1])], &[]);
    let waiting: Vec<_> = (0..5).map(|_| acks_all(&node, &["t"], 3_600_000)).collect();
    assert!(node.broker.render_metrics().contains("purgatorysize{delayedOperation=\"Produce\"} 5"));
    fetches(&node, "t", 2, 0);
    assert_eq!((outcomes(&waiting[0]), outcomes(&waiting[1])), (vec![(0, 0)], vec![(0, 1)]));
    assert!(waiting[2].try_recv().is_err());
    fetches(&node, "t", 5, 0);
    for (at, waiting) in (2..).zip(&waiting[2..]) {
        assert_eq!(outcomes(waiting), [(0, at)]);
    }
    assert!(node.broker.render_metrics().contains("purgatorysize{delayedOperation=\"Produce\"} 0"));
}

#[test]
fn the_partitions_of_a_request_are_judged_on_their_own() {
    let ids = |topic: &str| TopicId([topic.as_bytes()[0]; 16]);
    let orders: Vec<_> =
        ["a", "b", "c"].iter().map(|topic| Order { id: ids(topic), ..order(topic, 0, 1, &[0, 1]) }).collect();
    let alone = Order { id: ids("d"), ..order("d", 0, 1, &[0]) };
    let node = leading(&[&orders[..], &[alone]].concat(), &[]);
    let waiting = acks_all(&node, &["a", "b", "c", "d"], 60_000);
    fetches(&node, "a", 1, 0);
    node.obeys(&Order { leader: 1, leader_epoch: 2, partition_epoch: 2, ..orders[1].clone() });
    assert!(waiting.try_recv().is_err(), "the third is neither replicated nor lost");
    node.advance(Duration::from_secs(61));
    node.broker.poll();
    let (timed_out, not_leader) = (ErrorCode::RequestTimedOut.code(), ErrorCode::NotLeaderOrFollower.code());
    assert_eq!(outcomes(&waiting), [(0, 0), (not_leader, 0), (timed_out, 0), (0, 0)]);
}

#[test]
fn deleted_records_are_waited_for_until_the_follower_tells_that_its_log_begins_there() {
    let node = leading(&[order("t", 0, 1, &[0, 1])], &[]);
    written(&node, "t", 5);
    fetches(&node, "t", 5, 0);
    let topic = DeleteRecordsTopic {
        name: Str::from("t"),
        partitions: vec![DeleteRecordsPartition { partition_index: 0, offset: 3 }],
    };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 3_600_000 };
    let waiting = node.submit(frame(2, &request));
    fetches(&node, "t", 5, 2);
    assert!(waiting.try_recv().is_err());
    fetches(&node, "t", 5, 3);
    let response: DeleteRecordsResponse = answer(&waiting, 2);
    let it = &response.topics[0].partitions[0];
    assert_eq!((it.error_code, it.low_watermark), (0, 3));
}

#[test]
fn min_insync_replicas_is_learned_while_the_leader_leads() {
    let node = Node::start(&[]);
    node.create_topic("t", 1, &[]);
    assert_eq!(node.produce("t", 0, good(1)), Ok(0));
    crate::cases_tools::set_topic_config(&node, "t", "min.insync.replicas", "3");
    // One replica is all there is: that many are wanted at most.
    assert_eq!(node.produce("t", 0, good(1)), Ok(1));
    let id = crate::cases_tools::topic_id(&node, "t");
    node.tell(2, &[0, 1, 2], &[]);
    node.obeys(&Order { id, isr: vec![0, 1], ..order("t", 0, 9, &[0, 1, 2]) });
    assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::NotEnoughReplicas));
    crate::cases_tools::set_topic_config(&node, "t", "min.insync.replicas", "1");
    let waiting = acks_all(&node, &["t"], 3_600_000);
    assert!(waiting.try_recv().is_err(), "now it is written, and waits for broker 1");
}

#[test]
fn a_leader_whose_high_watermark_was_lost_begins_at_the_log_start_and_climbs() {
    // KAFKA-16452
    let alone = Order { isr: vec![0], ..order("t", 0, 1, &[0, 1]) };
    let node = leading(std::slice::from_ref(&alone), &[]);
    written(&node, "t", 5);
    let topic = DeleteRecordsTopic {
        name: Str::from("t"),
        partitions: vec![DeleteRecordsPartition { partition_index: 0, offset: 3 }],
    };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 0 };
    assert_eq!(node.call(2, &request).topics[0].partitions[0].low_watermark, -1);
    // The log start is written, the high watermark is lost.
    node.advance(Duration::from_secs(120));
    node.broker.housekeep();
    let node = node.restart_killed(&[], |logs| {
        std::fs::remove_file(logs.join("replication-offset-checkpoint")).unwrap();
    });
    let led = order("t", 0, 1, &[0, 1]);
    node.tell(2, &[0, 1, 2], std::slice::from_ref(&led));
    node.obeys(&led);
    let data = fetched(&node, 12, "t", 3);
    assert_eq!((data.error_code, data.high_watermark, data.log_start_offset), (0, 3, 3));
    fetches(&node, "t", 4, 0);
    assert_eq!(fetched(&node, 12, "t", 3).high_watermark, 4);
}

#[test]
fn every_record_has_the_epoch_in_which_its_offset_lies_however_often_the_leader_changes() {
    // R5: no append of an old epoch comes behind the start of a new one.
    let node = leading(&[order("t", 0, 1, &[0])], &[]);
    std::thread::scope(|scope| {
        let produce = || {
            let mut appended = 0;
            while appended < 150 {
                let response: ProduceResponse = node.call(9, &produce_request("t", 0, good(1), 1));
                match ErrorCode::from_code(response.responses[0].partition_responses[0].error_code).unwrap() {
                    ErrorCode::None => appended += 1,
                    error => assert_eq!(error, ErrorCode::NotLeaderOrFollower),
                }
            }
        };
        let producers: Vec<_> = (0..3).map(|_| scope.spawn(produce)).collect();
        let mut epoch = 1;
        while producers.iter().any(|producer| !producer.is_finished()) {
            epoch += 1;
            let leader = if epoch % 5 == 0 { 1 } else { 0 };
            node.obeys(&order("t", leader, epoch, if leader == 0 { &[0] } else { &[0, 1] }));
            if leader == 1 {
                epoch += 1;
                node.obeys(&order("t", 0, epoch, &[0]));
            }
        }
    });
    let file = std::fs::read_to_string(node.logs().join("t-0/leader-epoch-checkpoint")).unwrap();
    let epochs: Vec<(i32, i64)> = file
        .lines()
        .skip(2)
        .map(|line| {
            let (epoch, start) = line.split_once(' ').unwrap();
            (epoch.parse().unwrap(), start.parse().unwrap())
        })
        .collect();
    let mut offset = 0;
    while offset < end_offset(&node, "t") {
        for batch in batches_of(&fetched(&node, 12, "t", offset)) {
            let header = batch.header;
            let (epoch, _) = epochs.iter().rfind(|(_, start)| *start <= header.base_offset.0).unwrap();
            assert_eq!(header.partition_leader_epoch.0, *epoch, "at {}: {file}", header.base_offset);
            offset = header.next_offset().0;
        }
    }
    assert_eq!(offset, 450);
}
