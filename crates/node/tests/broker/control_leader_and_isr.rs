//! LeaderAndIsr: who is obeyed, and what a partition is afterwards.

use std::path::Path;
use std::time::Duration;

use metadata::store::{Blocking, CreateMode};
use wire::error_code::ErrorCode;
use wire::messages::leader_and_isr_request::LeaderAndIsrTopicState;
use wire::messages::{LeaderAndIsrRequest, ProduceRequest, ProduceResponse};
use wire::types::TopicId;

use crate::cases_tools::{end_offset, good};
use crate::control_tools::{ID, LATEST, Order, TERM, errors, leader_and_isr, order};
use crate::harness::{Node, answer, frame, produce_request};

fn epochs_of(node: &Node, topic: &str) -> String {
    std::fs::read_to_string(node.logs().join(format!("{topic}-0/leader-epoch-checkpoint"))).unwrap()
}

#[test]
fn each_version_makes_a_leader_and_is_answered_in_its_form() {
    for version in 0..=LATEST {
        let node = Node::start(&[]);
        let response = node.call(version, &leader_and_isr(version, &[order("t", 0, 0, &[0])]));
        assert_eq!((response.error_code, errors(&response)), (0, vec![ErrorCode::None]), "v{version}");
        if version >= 5 {
            assert_eq!(response.topics[0].topic_id, ID);
        } else {
            assert_eq!(response.partition_errors[0].topic_name.as_str(), "t");
        }
        assert_eq!(node.produce("t", 0, good(2)), Ok(0), "v{version}");
    }
}

#[test]
fn the_epoch_of_a_new_leader_is_in_its_file_before_anything_is_written_in_it() {
    // KAFKA-7415
    let node = Node::start(&[]);
    node.obeys(&order("t", 0, 0, &[0]));
    assert_eq!(epochs_of(&node, "t"), "0\n1\n0 0\n");
    node.produce("t", 0, good(3)).unwrap();
    node.obeys(&order("t", 0, 4, &[0]));
    assert_eq!(epochs_of(&node, "t"), "0\n2\n0 0\n4 3\n");
    // Nothing was written in epoch 4.
    node.obeys(&order("t", 0, 6, &[0]));
    assert_eq!(epochs_of(&node, "t"), "0\n2\n0 0\n6 3\n");
    node.produce("t", 0, good(1)).unwrap();
    assert_eq!(epochs_of(&node, "t"), "0\n2\n0 0\n6 3\n");
    // A broker that comes back leads in the same epoch.
    let node = node.restart(&[]);
    node.obeys(&order("t", 0, 6, &[0]));
    assert_eq!(epochs_of(&node, "t"), "0\n2\n0 0\n6 3\n");
    // Many that are led together have theirs as well.
    let orders: Vec<_> = (0..40).map(|at| order(&format!("many{at}"), 0, 0, &[0])).collect();
    assert_eq!(node.order(&orders), [ErrorCode::None; 40]);
    assert!((0..40).all(|at| epochs_of(&node, &format!("many{at}")) == "0\n1\n0 0\n"));
}

#[test]
fn an_older_leader_epoch_is_refused_and_so_is_an_equal_one() {
    let node = Node::start(&[]);
    node.obeys(&order("t", 0, 4, &[0]));
    for epoch in [3, 4] {
        assert_eq!(node.order(&[order("t", 0, epoch, &[0])]), [ErrorCode::StaleControllerEpoch]);
    }
    node.obeys(&order("t", 0, 5, &[0]));
}

#[test]
fn a_broker_that_is_no_replica_refuses() {
    let node = Node::start(&[]);
    assert_eq!(node.order(&[order("t", 1, 0, &[1, 2])]), [ErrorCode::UnknownTopicOrPartition]);
    assert!(!node.logs().join("t-0").exists());
}

#[test]
fn a_log_of_another_topic_of_the_same_name_is_not_taken_over() {
    let node = Node::start(&[]);
    node.obeys(&order("t", 0, 0, &[0]));
    let again = Order { id: TopicId([8; 16]), ..order("t", 0, 9, &[0]) };
    assert_eq!(node.order(std::slice::from_ref(&again)), [ErrorCode::InconsistentTopicId]);
    // Nor after a restart, when the log is there and nobody has asked for it.
    let node = node.restart(&[]);
    assert_eq!(node.order(&[again]), [ErrorCode::InconsistentTopicId]);
}

#[test]
fn a_topic_id_that_comes_later_is_kept_without_a_new_epoch() {
    // KAFKA-13132
    let node = Node::start(&[]);
    let without = Order { id: TopicId::ZERO, ..order("t", 0, 3, &[0]) };
    node.obeys(&without);
    let file = node.logs().join("t-0/partition.metadata");
    assert!(!file.exists());
    node.obeys(&order("t", 0, 3, &[0]));
    assert!(std::fs::read_to_string(file).unwrap().contains(&ID.to_string()));
    assert_eq!(node.order(&[order("t", 0, 3, &[0])]), [ErrorCode::StaleControllerEpoch]);
}

#[test]
fn a_follower_lets_go_of_a_topic_id_that_the_controller_no_longer_knows() {
    // KAFKA-13394: an older controller has taken over. A leader keeps the id.
    let node = Node::start(&[]);
    node.tell(1, &[0, 1], &[]);
    node.obeys(&order("followed", 1, 3, &[0, 1]));
    node.obeys(&order("led", 0, 3, &[0, 1]));
    let forget = |topic, leader| Order { id: TopicId::ZERO, ..order(topic, leader, 3, &[0, 1]) };
    let told = node.order(&[forget("followed", 1), forget("led", 0)]);
    assert_eq!(told, [ErrorCode::None, ErrorCode::StaleControllerEpoch]);
}

#[test]
fn a_replaced_controller_is_not_obeyed_and_neither_is_one_that_speaks_to_an_earlier_broker() {
    let node = Node::start(&[]);
    let orders = [order("t", 0, 0, &[0]), order("u", 0, 0, &[0])];
    let stale_controller =
        |version| LeaderAndIsrRequest { controller_epoch: 0, ..leader_and_isr(version, &orders) };
    let stale_broker = |version| LeaderAndIsrRequest { broker_epoch: 0, ..leader_and_isr(version, &orders) };
    for version in [2, 4, 5, LATEST] {
        for (request, code) in [
            (stale_controller(version), ErrorCode::StaleControllerEpoch),
            (stale_broker(version), ErrorCode::StaleBrokerEpoch),
        ] {
            let response = node.call(version, &request);
            assert_eq!(response.error_code, code.code(), "v{version}");
            assert_eq!(errors(&response), [code, code], "v{version}");
        }
    }
    assert!(!node.logs().join("t-0").exists());
}

#[test]
fn the_newest_controller_that_was_obeyed_is_the_oldest_that_will_be() {
    let node = Node::start(&[]);
    let from = |term| LeaderAndIsrRequest {
        controller_epoch: term,
        ..leader_and_isr(LATEST, &[order("t", 0, term, &[0])])
    };
    assert_eq!(node.call(LATEST, &from(TERM + 5)).error_code, 0);
    assert_eq!(node.call(LATEST, &from(TERM + 4)).error_code, ErrorCode::StaleControllerEpoch.code());
    assert_eq!(node.call(LATEST, &from(TERM + 6)).error_code, 0);
}

#[test]
fn a_broker_epoch_that_is_newer_than_ours_is_believed() {
    let node = Node::start(&[]);
    let ahead =
        LeaderAndIsrRequest { broker_epoch: i64::MAX, ..leader_and_isr(LATEST, &[order("t", 0, 0, &[0])]) };
    assert_eq!(node.call(LATEST, &ahead).error_code, 0);
}

#[test]
fn a_leader_that_is_not_alive_leaves_the_role_as_it_is_but_the_log_is_made_and_checkpointed() {
    // KAFKA-1647
    let node = Node::start(&[]);
    node.tell(1, &[0], &[order("t", -1, 4, &[0, 1])]);
    for leader in [-1, 1] {
        assert_eq!(node.order(&[order("t", leader, 4, &[0, 1])]), [ErrorCode::None]);
        assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::NotLeaderOrFollower));
    }
    node.advance(Duration::from_secs(6));
    node.broker.housekeep();
    let checkpoint = std::fs::read_to_string(node.logs().join("replication-offset-checkpoint")).unwrap();
    assert!(checkpoint.contains("t 0 0"), "{checkpoint}");
    // The epoch was not recorded: the same one makes a leader.
    node.obeys(&Order { isr: vec![0], ..order("t", 0, 4, &[0, 1]) });
    assert_eq!(node.produce("t", 0, good(1)), Ok(0));
    // A leader whose successor is not alive leads on, in its old epoch.
    assert_eq!(node.order(&[order("t", -1, 5, &[0, 1])]), [ErrorCode::None]);
    assert_eq!(node.produce("t", 0, good(1)), Ok(1));
    assert_eq!(epochs_of(&node, "t"), "0\n1\n4 0\n");
}

#[test]
fn a_topic_whose_configs_cannot_be_read_fails_alone_and_the_same_epoch_works_later() {
    // KAFKA-9769
    let node = Node::start(&[]);
    let store = node.store();
    let path = "/config/topics/t";
    Blocking::new(&store).create(path, "no JSON", CreateMode::Persistent).unwrap();
    let orders = [order("t", 0, 2, &[0]), order("u", 0, 2, &[0])];
    assert_eq!(node.order(&orders), [ErrorCode::UnknownServerError, ErrorCode::None]);
    let configs = r#"{"version":1,"config":{"max.message.bytes":"100"}}"#;
    Blocking::new(&store).set(path, configs, None).unwrap();
    node.obeys(&orders[0]);
    assert_eq!(node.produce("t", 0, good(20)), Err(ErrorCode::MessageTooLarge));
    assert_eq!(node.produce("u", 0, good(20)), Ok(0));
}

#[test]
fn leaders_and_followers_of_one_request_all_get_their_roles() {
    let node = Node::start(&[]);
    let orders: Vec<_> = (0..40).map(|at| order(&format!("t{at}"), at % 2, 1, &[0, 1])).collect();
    node.tell(1, &[0, 1], &orders);
    assert_eq!(node.order(&orders), [ErrorCode::None; 40]);
    for at in 0..40 {
        let role = if at % 2 == 0 { "leader" } else { "follower" };
        assert!(node.explained(&format!("t{at}")).contains(&format!("\"role\":\"{role}\"")));
    }
}

#[test]
fn partitions_of_one_topic_are_answered_together() {
    let node = Node::start(&[]);
    let one = leader_and_isr(LATEST, &[order("t", 0, 0, &[0])]);
    let first = one.topic_states[0].partition_states[0].clone();
    let second = wire::messages::leader_and_isr_request::LeaderAndIsrPartitionState {
        partition_index: 1,
        ..first.clone()
    };
    let topic =
        LeaderAndIsrTopicState { partition_states: vec![first, second], ..one.topic_states[0].clone() };
    let response = node.call(LATEST, &LeaderAndIsrRequest { topic_states: vec![topic], ..one });
    assert_eq!((response.topics.len(), response.topics[0].partition_errors.len()), (1, 2));
}

#[test]
fn a_produce_that_waits_for_replicas_fails_when_the_leader_becomes_a_follower() {
    let node = Node::start(&[]);
    let led = order("t", 0, 1, &[0, 1]);
    node.tell(1, &[0, 1], std::slice::from_ref(&led));
    node.obeys(&led);
    let waiting = node.submit(frame(10, &produce_request("t", 0, good(1), -1)));
    assert!(waiting.try_recv().is_err());
    let followed = order("t", 1, 2, &[0, 1]);
    node.tell(1, &[0, 1], std::slice::from_ref(&followed));
    node.obeys(&followed);
    let response: ProduceResponse = answer(&waiting, 10);
    let it = &response.responses[0].partition_responses[0];
    assert_eq!((it.error_code, it.base_offset), (ErrorCode::NotLeaderOrFollower.code(), 0));
    assert_eq!((it.current_leader.leader_id, it.current_leader.leader_epoch), (1, 2));
    // Nothing more is written, and the new leader is told.
    let refused = node.call(10, &produce_request("t", 0, good(1), 1));
    let it = &refused.responses[0].partition_responses[0];
    assert_eq!((it.error_code, it.base_offset), (ErrorCode::NotLeaderOrFollower.code(), -1));
    assert_eq!(it.current_leader.leader_id, 1);
}

#[test]
fn a_partition_without_a_usable_log_is_offline() {
    let node = Node::start(&[]);
    let blocked = node.logs().join("t-0");
    std::fs::write(&blocked, "a file where the log should be").unwrap();
    assert_eq!(node.order(&[order("t", 0, 0, &[0])]), [ErrorCode::KafkaStorageError]);
    std::fs::remove_file(&blocked).unwrap();
    // The directory has failed and stays so until the broker is restarted.
    assert_eq!(node.order(&[order("t", 0, 1, &[0])]), [ErrorCode::KafkaStorageError]);
    assert_eq!(node.produce("t", 0, good(1)), Err(ErrorCode::KafkaStorageError));
    let stopped = node.stop(&[("t", 5, true)]);
    assert_eq!(stopped.partition_errors[0].error_code, ErrorCode::KafkaStorageError.code());
    assert!(node.broker.render_metrics().contains("kafka_server_replicamanager_offlinereplicacount 1"));
}

#[test]
fn a_failed_log_directory_takes_its_partitions_offline_and_the_controller_is_told() {
    // KIP-112. There are two directories, and each new log goes to the one with fewer of them.
    let second = tempfile::TempDir::new().unwrap();
    let dir = tempfile::TempDir::new().unwrap();
    let dirs = format!("{},{}", dir.path().join("logs").display(), second.path().join("d").display());
    let node = Node::start_on(dir, &[("log.dirs", &dirs)]);
    node.tell(1, &[0, 1], &[]);
    node.obeys(&order("t", 0, 0, &[0, 1]));
    node.obeys(&order("u", 0, 0, &[0, 1]));
    let in_second = if second.path().join("d/t-0").exists() { "t" } else { "u" };
    let other = if in_second == "t" { "u" } else { "t" };
    let request = ProduceRequest { timeout_ms: 60_000, ..produce_request(in_second, 0, good(1), -1) };
    let waiting = node.submit(frame(9, &request));
    assert!(waiting.try_recv().is_err());
    // The checkpoint of the second directory cannot be written.
    std::fs::create_dir(second.path().join("d/replication-offset-checkpoint.tmp")).unwrap();
    node.advance(Duration::from_secs(6));
    node.broker.housekeep();
    node.broker.poll();
    let store = node.store();
    let told = Blocking::new(&store).children("/log_dir_event_notification").unwrap();
    assert_eq!(told.len(), 1);
    let response: ProduceResponse = answer(&waiting, 9);
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ErrorCode::KafkaStorageError.code());
    assert_eq!(node.order(&[order(in_second, 0, 1, &[0, 1])]), [ErrorCode::KafkaStorageError]);
    node.obeys(&Order { isr: vec![0], ..order(other, 0, 1, &[0, 1]) });
}

#[test]
fn a_new_epoch_of_the_same_leader_goes_on_with_what_waits() {
    let node = Node::start(&[]);
    node.tell(1, &[0, 1], &[]);
    node.obeys(&order("t", 0, 1, &[0, 1]));
    let waiting = node.submit(frame(9, &produce_request("t", 0, good(2), -1)));
    assert!(waiting.try_recv().is_err());
    // The other replica has left the ISR: what waits is replicated.
    node.obeys(&Order { isr: vec![0], ..order("t", 0, 2, &[0, 1]) });
    let response: ProduceResponse = answer(&waiting, 9);
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    assert_eq!(end_offset(&node, "t"), 2);
    assert!(Path::new(&node.logs().join("t-0")).exists());
}
