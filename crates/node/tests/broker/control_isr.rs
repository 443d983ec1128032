//! A leader changes its ISR: whom it asks, what it makes of the answers, and what that means for those who wait.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use kernel::replica::alter_partition::RETRY_PAUSE_MS;
use metadata::store::{Blocking, Store};
use node::call::Outcome;
use node::peers::{Channel, Purpose};
use wire::error_code::ErrorCode;
use wire::messages::alter_partition_response::{PartitionData, TopicData};
use wire::messages::api_versions_response::ApiVersion;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use wire::messages::{
    AlterPartitionRequest, AlterPartitionResponse, ApiVersionsRequest, ApiVersionsResponse,
    DeleteRecordsRequest, DeleteRecordsResponse, ProduceRequest, ProduceResponse,
};
use wire::types::{BrokerId, TopicId};

use crate::cases_tools::{end_offset, good, listed};
use crate::control_tools::{ID, Order, order};
use crate::harness::{Node, answer, frame, produce_request};
use crate::journal;
use crate::peers::Sent;

/// Longer than `replica.lag.time.max.ms`, and its half besides.
const LAG: Duration = Duration::from_secs(46);
const PAUSE: Duration = Duration::from_millis(RETRY_PAUSE_MS.unsigned_abs());

/// Broker 0 leads `t` with broker 1, which never fetches; broker 2 is controller.
fn leader() -> Node {
    led(&[], order("t", 0, 1, &[0, 1]))
}

fn led(settings: &[(&str, &str)], order: Order) -> Node {
    let node = Node::start(settings);
    node.tell(2, &[0, 1, 2], std::slice::from_ref(&order));
    node.obeys(&order);
    node
}

fn pass(node: &Node, time: Duration) {
    node.advance(time);
    node.broker.poll();
}

fn negotiate(node: &Node, newest: i16) -> Channel {
    let asked = node.peers.take::<ApiVersionsRequest>();
    let channel = asked.channel;
    let key = ApiVersion { api_key: 56, min_version: 0, max_version: newest };
    asked.answer(&ApiVersionsResponse { api_keys: vec![key], ..ApiVersionsResponse::default() });
    channel
}

/// The change is made.
fn confirm(sent: Sent<AlterPartitionRequest>) {
    let topic = sent.request.topics[0].clone();
    let asked = &topic.partitions[0];
    let with_epochs = asked.new_isr_with_epochs.iter().map(|it| it.broker_id);
    let result = PartitionData {
        partition_index: 0,
        leader_id: 0,
        leader_epoch: asked.leader_epoch,
        isr: asked.new_isr.iter().copied().chain(with_epochs).collect(),
        partition_epoch: asked.partition_epoch + 1,
        ..PartitionData::default()
    };
    let topic =
        TopicData { topic_name: topic.topic_name, topic_id: topic.topic_id, partitions: vec![result] };
    sent.answer(&AlterPartitionResponse { topics: vec![topic], ..AlterPartitionResponse::default() });
}

fn refuse(sent: Sent<AlterPartitionRequest>, code: ErrorCode) {
    let topic = sent.request.topics[0].clone();
    let result = PartitionData { partition_index: 0, error_code: code.code(), ..PartitionData::default() };
    let topic =
        TopicData { topic_name: topic.topic_name, topic_id: topic.topic_id, partitions: vec![result] };
    sent.answer(&AlterPartitionResponse { topics: vec![topic], ..AlterPartitionResponse::default() });
}

/// Produces with acks -1 and all patience.
fn acks_all(node: &Node, records: usize) -> Receiver<Outcome> {
    let request = ProduceRequest { timeout_ms: 3_600_000, ..produce_request("t", 0, good(records), -1) };
    node.submit(frame(9, &request))
}

fn outcome(waiting: &Receiver<Outcome>) -> ErrorCode {
    let response: ProduceResponse = answer(waiting, 9);
    ErrorCode::from_code(response.responses[0].partition_responses[0].error_code).unwrap()
}

fn metric(node: &Node, name: &str) -> String {
    let text = node.broker.render_metrics();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name}")).rsplit_once(' ').unwrap().1.to_owned()
}

#[test]
fn a_follower_that_does_not_fetch_leaves_and_what_waits_for_it_is_replicated() {
    // KAFKA-13091: nothing else comes that would move the high watermark.
    let node = leader();
    let waiting = acks_all(&node, 3);
    pass(&node, Duration::from_secs(29));
    assert_eq!(node.peers.count::<ApiVersionsRequest>(), 0, "it still has time");
    pass(&node, LAG);
    let channel = negotiate(&node, 3);
    assert_eq!(channel, Channel { broker: BrokerId(2), purpose: Purpose::ToController });
    let sent = node.peers.take::<AlterPartitionRequest>();
    assert_eq!((sent.channel, sent.address.as_str(), sent.client_id.as_str()), (channel, "host2:9094", "0"));
    let (topic, asked) = (&sent.request.topics[0], &sent.request.topics[0].partitions[0]);
    assert_eq!((sent.version, sent.request.broker_id, topic.topic_id), (3, 0, ID));
    assert_eq!((asked.leader_epoch, asked.partition_epoch, asked.leader_recovery_state), (1, 1, 0));
    let isr: Vec<_> = asked.new_isr_with_epochs.iter().map(|it| (it.broker_id, it.broker_epoch)).collect();
    assert_eq!(isr, [(0, -1)]);
    assert!(waiting.try_recv().is_err());
    confirm(sent);
    assert_eq!(outcome(&waiting), ErrorCode::None);
    assert_eq!(end_offset(&node, "t"), 3);
    assert_eq!(metric(&node, "kafka_server_replicamanager_isrshrinks_total"), "1");
    assert_eq!(metric(&node, "kafka_server_replicamanager_underreplicatedpartitions"), "1.0");
}

#[test]
fn a_controller_that_is_none_any_more_is_left_for_the_one_that_is() {
    let node = leader();
    pass(&node, LAG);
    let channel = negotiate(&node, 3);
    let sent = node.peers.take::<AlterPartitionRequest>();
    sent.answer(&AlterPartitionResponse {
        error_code: ErrorCode::NotController.code(),
        ..AlterPartitionResponse::default()
    });
    assert_eq!(node.peers.closed(), [channel]);
    node.tell(1, &[0, 1, 2], &[]);
    assert_eq!(node.peers.count::<ApiVersionsRequest>(), 0, "not before the pause is over");
    pass(&node, PAUSE);
    assert_eq!(negotiate(&node, 2).broker, BrokerId(1));
    let sent = node.peers.take::<AlterPartitionRequest>();
    assert_eq!((sent.version, sent.address.as_str()), (2, "host1:9093"));
    assert_eq!(sent.request.topics[0].partitions[0].new_isr, [0]);
    confirm(sent);
    assert_eq!(end_offset(&node, "t"), 0);
    assert_eq!(metric(&node, "kafka_server_replicamanager_isrshrinks_total"), "1");
}

#[test]
fn a_request_that_has_no_answer_is_made_again_for_ever() {
    let node = leader();
    let waiting = acks_all(&node, 1);
    pass(&node, LAG);
    for _ in 0..5 {
        negotiate(&node, 3);
        node.peers.take::<AlterPartitionRequest>().fail();
        assert_eq!(node.peers.count::<ApiVersionsRequest>(), 0);
        pass(&node, PAUSE);
    }
    negotiate(&node, 3);
    confirm(node.peers.take());
    assert_eq!(outcome(&waiting), ErrorCode::None);
}

#[test]
fn that_the_isr_cannot_be_changed_is_told_once_until_it_can() {
    // It is tried again twenty times a second, for as long as it takes.
    let logged = journal::logged(|| {
        let node = leader();
        pass(&node, LAG);
        for _ in 0..5 {
            negotiate(&node, 3);
            node.peers.take::<AlterPartitionRequest>().fail();
            pass(&node, PAUSE);
        }
        negotiate(&node, 3);
        confirm(node.peers.take());
        // Another time is told of again.
        node.obeys(&order("t", 0, 2, &[0, 1]));
        pass(&node, LAG);
        node.peers.take::<AlterPartitionRequest>().fail();
    });
    let told = logged.iter().filter(|(_, line)| line.starts_with("the controller does not change the ISR"));
    assert_eq!(told.count(), 2, "{logged:#?}");
}

#[test]
fn nobody_is_asked_while_there_is_no_controller() {
    let node = leader();
    node.tell(-1, &[0, 1, 2], &[]);
    pass(&node, LAG);
    pass(&node, PAUSE);
    assert_eq!(node.peers.count::<ApiVersionsRequest>(), 0);
    node.tell(2, &[0, 1, 2], &[]);
    pass(&node, PAUSE);
    negotiate(&node, 3);
    confirm(node.peers.take());
}

#[test]
fn a_topic_without_an_id_is_named_in_an_older_version() {
    let node = led(&[], Order { id: TopicId::ZERO, ..order("t", 0, 1, &[0, 1]) });
    pass(&node, LAG);
    negotiate(&node, 3);
    let sent = node.peers.take::<AlterPartitionRequest>();
    assert_eq!((sent.version, sent.request.topics[0].topic_name.as_str()), (1, "t"));
    confirm(sent);
    assert_eq!(metric(&node, "kafka_server_replicamanager_isrshrinks_total"), "1");
}

#[test]
fn changes_that_come_while_one_is_in_flight_go_together() {
    let node = leader();
    pass(&node, LAG);
    negotiate(&node, 3);
    let first = node.peers.take::<AlterPartitionRequest>();
    for topic in ["u", "v", "w"] {
        let id = TopicId([topic.as_bytes()[0]; 16]);
        node.obeys(&Order { id, ..order(topic, 0, 1, &[0, 1]) });
    }
    pass(&node, LAG);
    assert_eq!(node.peers.count::<AlterPartitionRequest>(), 0, "one request is in flight at a time");
    confirm(first);
    let second = node.peers.take::<AlterPartitionRequest>();
    assert_eq!(second.request.topics.len(), 3);
}

#[test]
fn a_change_that_the_controller_refuses_is_asked_for_again_at_the_next_look() {
    let node = leader();
    let waiting = acks_all(&node, 1);
    pass(&node, LAG);
    negotiate(&node, 3);
    refuse(node.peers.take(), ErrorCode::IneligibleReplica);
    assert_eq!(metric(&node, "kafka_server_replicamanager_failedisrupdates_total"), "1");
    assert!(waiting.try_recv().is_err());
    pass(&node, LAG);
    confirm(node.peers.take());
    assert_eq!(outcome(&waiting), ErrorCode::None);
}

#[test]
fn a_retriable_error_of_one_partition_makes_its_leader_ask_again() {
    // KAFKA-14010
    let node = leader();
    pass(&node, LAG);
    negotiate(&node, 3);
    refuse(node.peers.take(), ErrorCode::UnknownServerError);
    assert_eq!(node.peers.count::<AlterPartitionRequest>(), 0, "not without a pause");
    pass(&node, PAUSE);
    confirm(node.peers.take());
    assert_eq!(metric(&node, "kafka_server_replicamanager_isrshrinks_total"), "1");
}

#[test]
fn a_leader_that_is_behind_waits_for_the_next_leader_and_isr() {
    for code in [ErrorCode::FencedLeaderEpoch, ErrorCode::InvalidUpdateVersion, ErrorCode::UnknownTopicId] {
        let node = leader();
        pass(&node, LAG);
        negotiate(&node, 3);
        refuse(node.peers.take(), code);
        pass(&node, LAG);
        assert_eq!(node.peers.count::<AlterPartitionRequest>(), 0, "{code:?}");
        node.obeys(&order("t", 0, 2, &[0, 1]));
        pass(&node, LAG);
        assert_eq!(
            node.peers.take::<AlterPartitionRequest>().request.topics[0].partitions[0].leader_epoch,
            2
        );
    }
}

#[test]
fn an_answer_to_an_earlier_leadership_changes_nothing() {
    // KAFKA-12686
    let node = leader();
    pass(&node, LAG);
    negotiate(&node, 3);
    let late = node.peers.take::<AlterPartitionRequest>();
    node.obeys(&Order { partition_epoch: 9, ..order("t", 0, 2, &[0, 1]) });
    confirm(late);
    let waiting = acks_all(&node, 1);
    assert!(waiting.try_recv().is_err(), "broker 1 is in sync by the newer decision");
    pass(&node, LAG);
    let sent = node.peers.take::<AlterPartitionRequest>();
    assert_eq!(sent.request.topics[0].partitions[0].partition_epoch, 9);
    confirm(sent);
    assert_eq!(outcome(&waiting), ErrorCode::None);
}

#[test]
fn too_few_in_sync_replicas_refuse_acks_all_and_hold_the_high_watermark() {
    // KAFKA-15583
    let node = Node::start(&[("min.insync.replicas", "2")]);
    node.tell(2, &[0, 1], &[]);
    node.obeys(&Order { isr: vec![0], ..order("t", 0, 1, &[0, 1]) });
    assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::NotEnoughReplicas));
    let response: ProduceResponse = node.call(9, &produce_request("t", 0, good(2), 1));
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    assert_eq!(end_offset(&node, "t"), 0, "acks 1 is written, and not seen");
    assert_eq!(metric(&node, "kafka_server_replicamanager_underminisrpartitioncount"), "1.0");
    // With one replica there can be no second one.
    node.obeys(&Order { id: TopicId([7; 16]), ..order("single", 0, 1, &[0]) });
    assert_eq!(node.produce("single", 0, good(1)), Ok(0));
}

#[test]
fn a_produce_whose_patience_ends_is_told_so_and_its_records_stay() {
    let node = leader();
    let request = ProduceRequest { timeout_ms: 60_000, ..produce_request("t", 0, good(2), -1) };
    let waiting = node.submit(frame(9, &request));
    assert_eq!(metric(&node, "kafka_server_delayedproducemetrics_expires_total"), "0");
    pass(&node, Duration::from_secs(30));
    assert!(waiting.try_recv().is_err());
    pass(&node, Duration::from_secs(31));
    let response: ProduceResponse = answer(&waiting, 9);
    let it = &response.responses[0].partition_responses[0];
    assert_eq!((it.error_code, it.base_offset), (ErrorCode::RequestTimedOut.code(), 0));
    assert_eq!(metric(&node, "kafka_server_delayedproducemetrics_expires_total"), "1");
    // The next records go behind them.
    let next: ProduceResponse = node.call(9, &produce_request("t", 0, good(1), 1));
    assert_eq!(next.responses[0].partition_responses[0].base_offset, 2);
}

#[test]
fn deleted_records_are_waited_for_until_the_live_followers_have_deleted_them_too() {
    let node = led(&[], Order { isr: vec![0], ..order("t", 0, 1, &[0, 1]) });
    let written: ProduceResponse = node.call(9, &produce_request("t", 0, good(5), 1));
    assert_eq!(written.responses[0].partition_responses[0].error_code, 0);
    let waiting = node.submit(frame(2, &delete_to(3, 3_600_000)));
    assert!(waiting.try_recv().is_err());
    // Broker 1 dies: nobody waits for it.
    node.tell(2, &[0, 2], &[]);
    let response: DeleteRecordsResponse = answer(&waiting, 2);
    let it = &response.topics[0].partitions[0];
    assert_eq!((it.error_code, it.low_watermark), (0, 3));
}

#[test]
fn a_deletion_of_records_ends_with_its_time_or_with_the_leadership() {
    let node = led(&[], Order { isr: vec![0], ..order("t", 0, 1, &[0, 1]) });
    node.call::<ProduceRequest>(9, &produce_request("t", 0, good(5), 1));
    let impatient = node.submit(frame(2, &delete_to(3, 100)));
    pass(&node, Duration::from_millis(200));
    let response: DeleteRecordsResponse = answer(&impatient, 2);
    assert_eq!(response.topics[0].partitions[0].error_code, ErrorCode::RequestTimedOut.code());
    let waiting = node.submit(frame(2, &delete_to(4, 3_600_000)));
    assert!(waiting.try_recv().is_err());
    node.obeys(&order("t", 1, 2, &[0, 1]));
    let response: DeleteRecordsResponse = answer(&waiting, 2);
    let it = &response.topics[0].partitions[0];
    assert_eq!((it.error_code, it.low_watermark), (ErrorCode::NotLeaderOrFollower.code(), -1));
}

#[test]
fn a_new_leader_tells_no_end_before_it_knows_what_was_committed() {
    // KIP-207: an end below what consumers have seen before would send them back.
    let node = leader();
    node.call::<ProduceRequest>(9, &produce_request("t", 0, good(3), 1));
    assert_eq!(listed(&node, 7, "t", -1, 0), (0, -1, 0, 1));
    node.obeys(&order("t", 0, 2, &[0, 1]));
    for (timestamp, version, code) in [
        (-1, 7, ErrorCode::OffsetNotAvailable),
        (-1, 5, ErrorCode::OffsetNotAvailable),
        (-1, 4, ErrorCode::LeaderNotAvailable),
        (0, 7, ErrorCode::OffsetNotAvailable),
        (-3, 7, ErrorCode::OffsetNotAvailable),
    ] {
        assert_eq!(listed(&node, version, "t", timestamp, 0).0, code.code(), "{timestamp} v{version}");
    }
    assert_eq!(listed(&node, 7, "t", -2, 0).2, 0, "the start is known");
    node.obeys(&Order { isr: vec![0], ..order("t", 0, 3, &[0, 1]) });
    assert_eq!(listed(&node, 7, "t", -1, 0).2, 3);
}

fn delete_to(offset: i64, timeout_ms: i32) -> DeleteRecordsRequest {
    DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: "t".into(),
            partitions: vec![DeleteRecordsPartition { partition_index: 0, offset }],
        }],
        timeout_ms,
    }
}

/// With an old `inter.broker.protocol.version` the leader writes the state of its partition itself.
mod written_by_the_leader {
    use super::*;

    const STATE: &str = "/brokers/topics/t/partitions/0/state";
    const BEFORE: &str = r#"{"controller_epoch":2,"leader":0,"version":1,"leader_epoch":1,"isr":[0,1]}"#;

    fn leader(partition_epoch: i32) -> Node {
        let order = Order { id: TopicId::ZERO, partition_epoch, ..order("t", 0, 1, &[0, 1]) };
        let node = led(&[("inter.broker.protocol.version", "2.6")], order);
        let store = node.store();
        let blocking = Blocking::new(&store);
        blocking.ensure_path(STATE).unwrap();
        blocking.set(STATE, BEFORE, Some(0)).unwrap();
        node
    }

    fn state(store: &dyn Store) -> (String, i32) {
        let (data, stat) = Blocking::new(store).get(STATE).unwrap();
        (String::from_utf8(data.unwrap().to_vec()).unwrap(), stat.version)
    }

    #[test]
    fn the_state_is_written_if_it_has_the_version_that_the_leader_knows() {
        let node = leader(1);
        let waiting = acks_all(&node, 1);
        pass(&node, LAG);
        assert_eq!(outcome(&waiting), ErrorCode::None);
        let store = node.store();
        let after = r#"{"controller_epoch":2,"leader":0,"version":1,"leader_epoch":1,"isr":[0]}"#;
        assert_eq!(state(&store), (after.to_owned(), 2));
        // The controller is told once there is a lull; it removes what it has read.
        let told = || {
            let stat = Blocking::new(&store).exists("/isr_change_notification").unwrap();
            stat.unwrap().cversion
        };
        assert_eq!(told(), 0);
        for _ in 0..4 {
            pass(&node, Duration::from_millis(2_500));
        }
        assert!(told() > 0);
        assert_eq!(node.peers.count::<ApiVersionsRequest>(), 0);
    }

    #[test]
    fn a_state_that_somebody_else_has_changed_stays() {
        let node = leader(0);
        let waiting = acks_all(&node, 1);
        pass(&node, LAG);
        let store = node.store();
        assert_eq!(state(&store), (BEFORE.to_owned(), 1));
        assert!(waiting.try_recv().is_err());
    }

    #[test]
    fn a_state_that_is_already_what_was_to_be_written_is_a_success() {
        let node = leader(0);
        let store = node.store();
        let after = r#"{"controller_epoch":2,"leader":0,"version":1,"leader_epoch":1,"isr":[0]}"#;
        Blocking::new(&store).set(STATE, after, None).unwrap();
        let waiting = acks_all(&node, 1);
        pass(&node, LAG);
        assert_eq!(outcome(&waiting), ErrorCode::None);
        assert_eq!(state(&store).1, 2);
    }
}
