//! What a batch gathers, and what of it goes where.

use std::sync::Arc;

use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, TopicId, TopicPartition};

use super::parse::{list, partition, state};
use crate::controller::batch::RequestBatch;
use crate::controller::command::Command;
use crate::controller::context::Context;
use crate::controller::settings::Settings;
use crate::controller::values::{
    Broker, BrokerRegistration, ControlRequest, EPOCH_DURING_DELETE, Endpoint, LEADER_DURING_DELETE,
    LiveLeader, ReplicaAssignment,
};
use crate::metadata_version::MetadataVersion;

/// Brokers 1 to 3, of which 3 is shutting down; `t-0` is led by 1, `t-1` by nobody yet; the topic has an id.
fn context() -> Context {
    let mut context = Context::default();
    for id in 1..=3 {
        let endpoint = |listener: &str, port| Endpoint {
            listener: listener.to_owned(),
            host: format!("host{id}"),
            port,
            security_protocol: 0,
        };
        let endpoints = vec![endpoint("CLIENTS", 9092), endpoint("BROKERS", 9093)];
        let registration = Arc::new(BrokerRegistration { endpoints, rack: Some(format!("r{id}")) });
        context.add_broker(BrokerId(id), Broker { epoch: BrokerEpoch(i64::from(id) * 10), registration });
    }
    context.mark_shutting_down(BrokerId(3));
    for index in 0..2 {
        context.set_assignment(&t(index), ReplicaAssignment::of(list("1,2,4")));
    }
    context.set_topic_id(&t(0).topic, TopicId([7; 16]));
    context.set_leadership(&t(0), state("leader 1 epoch 5 isr 1,2 by 3 v8"));
    context
}

fn t(index: i32) -> TopicPartition {
    partition(&format!("t-{index}"))
}

fn send(batch: RequestBatch, context: &Context) -> Vec<(i32, ControlRequest)> {
    let settings = Settings::new(BrokerId(1), MetadataVersion::LATEST_PRODUCTION, "BROKERS");
    let mut out = Vec::new();
    batch.send(context, &settings, ControllerEpoch(4), &mut out);
    let sent = out.into_iter().map(|command| match command {
        Command::Send { broker, request } => (broker.0, request),
        other => panic!("not sent: {other:?}"),
    });
    sent.collect()
}

fn kinds(sent: &[(i32, ControlRequest)]) -> Vec<(i32, &'static str)> {
    let kind = |request: &ControlRequest| match request {
        ControlRequest::LeaderAndIsr(_) => "LeaderAndIsr",
        ControlRequest::UpdateMetadata(_) => "UpdateMetadata",
        ControlRequest::StopReplica(_) => "StopReplica",
    };
    sent.iter().map(|(broker, request)| (*broker, kind(request))).collect()
}

#[test]
fn a_leader_and_isr_is_news_for_all_and_all_of_one_kind_go_before_the_next() {
    let context = context();
    let mut batch = RequestBatch::default();
    batch.stop_replica(&context, BrokerId(2), &t(1), true);
    batch.leader_and_isr(&context, &list("2,1"), &t(0), false);
    let sent = send(batch, &context);
    let expected = [
        (1, "LeaderAndIsr"),
        (2, "LeaderAndIsr"),
        (1, "UpdateMetadata"),
        (2, "UpdateMetadata"),
        (3, "UpdateMetadata"),
        (2, "StopReplica"),
    ];
    assert_eq!(kinds(&sent), expected);
}

#[test]
fn brokers_that_are_not_registered_are_left_out_and_those_that_shut_down_are_not() {
    let context = context();
    let mut batch = RequestBatch::default();
    batch.leader_and_isr(&context, &list("3,4"), &t(0), false);
    batch.update_metadata(&context, list("4"), []);
    batch.stop_replica(&context, BrokerId(4), &t(0), false);
    let to: Vec<_> = send(batch, &context).into_iter().map(|(broker, _)| broker).collect();
    assert_eq!(to, [3, 1, 2, 3]);
}

#[test]
fn a_request_carries_the_epochs_of_controller_and_receiver_the_topic_id_and_where_leaders_are() {
    let context = context();
    let mut batch = RequestBatch::default();
    batch.leader_and_isr(&context, &list("2"), &t(0), true);
    let sent = send(batch, &context);
    let ControlRequest::LeaderAndIsr(request) = &sent[0].1 else { panic!() };
    assert_eq!(request.sender.controller_id, BrokerId(1));
    assert_eq!(request.sender.controller_epoch, ControllerEpoch(4));
    assert_eq!(request.sender.broker_epoch, BrokerEpoch(20));
    assert_eq!(request.topic_ids.get(&t(0).topic), Some(&TopicId([7; 16])));
    assert_eq!(request.live_leaders, [LiveLeader { id: BrokerId(1), host: "host1".to_owned(), port: 9093 }]);
    let told = &request.partitions[&t(0)];
    assert!(told.is_new);
    assert_eq!(
        told.state,
        state("leader 1 epoch 5 isr 1,2 by 3 v8"),
        "the deciding controller's epoch is kept"
    );
}

#[test]
fn all_receivers_of_an_update_share_one_body_with_every_broker_and_the_replicas_that_are_offline() {
    let context = context();
    let mut batch = RequestBatch::default();
    batch.update_metadata_to_all(&context, [&t(0)]);
    let sent = send(batch, &context);
    let bodies = sent.iter().map(|(_, request)| match request {
        ControlRequest::UpdateMetadata(request) => (&request.body, request.sender.broker_epoch),
        other => panic!("{other:?}"),
    });
    let bodies: Vec<_> = bodies.collect();
    assert!(bodies.iter().all(|(body, _)| Arc::ptr_eq(body, bodies[0].0)));
    assert_eq!(bodies.iter().map(|(_, epoch)| epoch.0).collect::<Vec<_>>(), [10, 20, 30]);
    assert_eq!(bodies[0].0.live_brokers.keys().copied().collect::<Vec<_>>(), list("1,2,3"));
    assert_eq!(bodies[0].0.partitions[&t(0)].offline_replicas, list("4"));
}

#[test]
fn what_is_once_new_or_to_be_deleted_stays_so_in_its_batch() {
    let context = context();
    let mut batch = RequestBatch::default();
    for is_new in [true, false] {
        batch.leader_and_isr(&context, &list("2"), &t(0), is_new);
        batch.stop_replica(&context, BrokerId(2), &t(0), is_new);
    }
    let sent = send(batch, &context);
    let ControlRequest::LeaderAndIsr(request) = &sent[0].1 else { panic!() };
    assert!(request.partitions[&t(0)].is_new);
    let ControlRequest::StopReplica(request) = &sent.last().unwrap().1 else { panic!() };
    assert!(request.partitions[&t(0)].delete);
}

#[test]
fn a_batch_tells_of_the_moment_at_which_something_was_added() {
    let mut context = context();
    let mut batch = RequestBatch::default();
    batch.stop_replica(&context, BrokerId(2), &t(0), false);
    context.set_leadership(&t(0), state("leader 1 epoch 6 isr 1 by 4 v9"));
    batch.leader_and_isr(&context, &list("1"), &t(0), false);
    let sent = send(batch, &context);
    let ControlRequest::LeaderAndIsr(request) = &sent[0].1 else { panic!() };
    assert_eq!(request.partitions[&t(0)].state.leader_epoch, LeaderEpoch(6));
    let ControlRequest::StopReplica(request) = &sent.last().unwrap().1 else { panic!() };
    assert_eq!(request.partitions[&t(0)].leader_epoch, LeaderEpoch(5));
}

#[test]
fn a_partition_without_leadership_is_not_told_and_its_replica_is_stopped_without_an_epoch() {
    let context = context();
    let mut batch = RequestBatch::default();
    batch.leader_and_isr(&context, &list("1"), &t(1), true);
    batch.update_metadata(&context, list("1"), [&t(1)]);
    batch.stop_replica(&context, BrokerId(1), &t(1), false);
    let sent = send(batch, &context);
    assert_eq!(kinds(&sent), [(1, "UpdateMetadata"), (1, "StopReplica")]);
    let ControlRequest::UpdateMetadata(request) = &sent[0].1 else { panic!() };
    assert!(request.body.partitions.is_empty());
    let ControlRequest::StopReplica(request) = &sent[1].1 else { panic!() };
    assert_eq!(request.partitions[&t(1)].leader_epoch, LeaderEpoch::UNKNOWN);
}

#[test]
fn a_topic_that_is_to_be_deleted_is_told_as_leaving_and_its_replicas_are_stopped_whatever_their_epoch() {
    let mut context = context();
    context.deletions.queued.insert(t(0).topic);
    let mut batch = RequestBatch::default();
    batch.update_metadata(&context, list("1"), [&t(0)]);
    batch.stop_replica(&context, BrokerId(1), &t(0), true);
    let sent = send(batch, &context);
    let ControlRequest::UpdateMetadata(request) = &sent[0].1 else { panic!() };
    let told = &request.body.partitions[&t(0)].state;
    assert_eq!(told.leader, LEADER_DURING_DELETE);
    assert_eq!((told.leader_epoch, told.partition_epoch), (LeaderEpoch(0), 0));
    assert_eq!(told.isr, list("1,2"), "the in-sync replicas are kept");
    let ControlRequest::StopReplica(request) = &sent[1].1 else { panic!() };
    assert_eq!(request.partitions[&t(0)].leader_epoch, EPOCH_DURING_DELETE);
}

#[test]
fn an_empty_batch_sends_nothing() {
    assert!(send(RequestBatch::default(), &context()).is_empty());
}
