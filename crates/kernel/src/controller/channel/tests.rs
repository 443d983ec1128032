use std::collections::BTreeMap;
use std::sync::Arc;

use wire::messages;
use wire::types::{BrokerEpoch, ControllerEpoch, LeaderEpoch, TopicPartition};

use super::*;
use crate::controller::values::{
    ControlSender, LeaderAndIsr, LeaderAndIsrPartition, LeaderAndIsrRequest, LeaderRecoveryState, LiveLeader,
    ReplicaAssignment, StopReplicaPartition, StopReplicaRequest, UpdateMetadataBody, UpdateMetadataRequest,
};

const TIMEOUT: Millis = Millis(30_000);

const SENDER: ControlSender = ControlSender {
    controller_id: BrokerId(1),
    controller_epoch: ControllerEpoch(7),
    broker_epoch: BrokerEpoch(40),
};

fn channel() -> Channel {
    Channel::new(BrokerId(2), MetadataVersion::LATEST_PRODUCTION, TIMEOUT)
}

fn update() -> ControlRequest {
    update_with(&[])
}

fn stops(partitions: &[(i32, bool)]) -> ControlRequest {
    let stop = |delete| StopReplicaPartition { leader_epoch: LeaderEpoch(5), delete };
    let partitions = partitions.iter().map(|(p, delete)| (TopicPartition::new("t", *p), stop(*delete)));
    ControlRequest::StopReplica(StopReplicaRequest { sender: SENDER, partitions: partitions.collect() })
}

/// Broker 3 leads t-0 in an epoch.
fn lead(epoch: i32) -> ControlRequest {
    let state = LeaderAndIsr {
        leader: BrokerId(3),
        leader_epoch: LeaderEpoch(epoch),
        isr: vec![BrokerId(3)],
        recovery_state: LeaderRecoveryState::Recovered,
        controller_epoch: SENDER.controller_epoch,
        partition_epoch: epoch,
    };
    let assignment = ReplicaAssignment::of(vec![BrokerId(3), BrokerId(2)]);
    let partition = LeaderAndIsrPartition { state, assignment, is_new: false };
    ControlRequest::LeaderAndIsr(LeaderAndIsrRequest {
        sender: SENDER,
        partitions: BTreeMap::from([(TopicPartition::new("t", 0), partition)]),
        topic_ids: BTreeMap::new(),
        live_leaders: vec![LiveLeader { id: BrokerId(3), host: "three".into(), port: 9092 }],
    })
}

fn update_with(live: &[i32]) -> ControlRequest {
    let live_brokers = live.iter().map(|id| (BrokerId(*id), Arc::default())).collect();
    let body = UpdateMetadataBody { live_brokers, ..UpdateMetadataBody::default() };
    ControlRequest::UpdateMetadata(UpdateMetadataRequest { sender: SENDER, body: Arc::new(body) })
}

fn to_update() -> ControlReply {
    ControlReply::UpdateMetadata(messages::UpdateMetadataResponse::default())
}

fn to_stop() -> ControlReply {
    ControlReply::StopReplica(messages::StopReplicaResponse::default())
}

/// What a step asked for, in short.
fn step(channel: &mut Channel, mono_ms: i64, event: Event) -> Vec<String> {
    let mut out = Vec::new();
    channel.step(Now { mono_ms, wall_ms: 0 }, event, &mut out);
    channel.check();
    let told = |command: &Command| match command {
        Command::Transmit { id, message, queue_time } => {
            format!("{id}: key {} waited {:?}", message.api_key(), queue_time.map(|waited| waited.0))
        }
        Command::Close => "close".to_owned(),
        Command::Deliver(ControlResponse::UpdateMetadata { .. }) => "metadata told".to_owned(),
        Command::Deliver(ControlResponse::StopReplica { .. }) => "stopped".to_owned(),
        Command::Deliver(ControlResponse::LeaderAndIsr { .. }) => "led".to_owned(),
    };
    out.iter().map(told).collect()
}

#[test]
fn requests_leave_one_by_one_in_the_order_they_came() {
    let mut channel = channel();
    assert_eq!(step(&mut channel, 0, Event::Enqueue(update())), ["1: key 6 waited Some(0)"]);
    assert!(step(&mut channel, 1, Event::Enqueue(stops(&[(0, true)]))).is_empty());
    assert!(step(&mut channel, 2, Event::Enqueue(update())).is_empty());
    assert_eq!(channel.queue_size(), 2);
    let told = step(&mut channel, 5, Event::Answered { id: 1, reply: to_update() });
    assert_eq!(told, ["metadata told", "2: key 5 waited Some(4)"]);
    let told = step(&mut channel, 6, Event::Answered { id: 2, reply: to_stop() });
    assert_eq!(told, ["stopped", "3: key 6 waited Some(4)"]);
    assert_eq!(step(&mut channel, 9, Event::Answered { id: 3, reply: to_update() }), ["metadata told"]);
    assert_eq!((channel.queue_size(), channel.deadline()), (0, None));
}

#[test]
fn after_a_failure_the_same_request_is_sent_again_a_tenth_of_a_second_later_for_ever() {
    let mut channel = channel();
    step(&mut channel, 0, Event::Enqueue(update()));
    step(&mut channel, 0, Event::Enqueue(stops(&[(0, true)])));
    let mut now = 0;
    for id in 1..100 {
        assert_eq!(step(&mut channel, now, Event::Failed { id }), ["close"]);
        assert_eq!(channel.deadline(), Some(Millis(now + RETRY_PAUSE_MS)));
        assert!(step(&mut channel, now + RETRY_PAUSE_MS - 1, Event::Tick).is_empty());
        now += RETRY_PAUSE_MS;
        let told = step(&mut channel, now, Event::Tick);
        assert_eq!(told, [format!("{}: key 6 waited None", id + 1)], "no second queue time");
    }
}

#[test]
fn an_answer_that_does_not_come_in_time_is_a_failure() {
    let mut channel = channel();
    step(&mut channel, 10, Event::Enqueue(update()));
    assert_eq!(channel.deadline(), Some(Millis(10 + TIMEOUT.0)));
    assert!(step(&mut channel, 9 + TIMEOUT.0, Event::Tick).is_empty());
    assert_eq!(step(&mut channel, 10 + TIMEOUT.0, Event::Tick), ["close"]);
    assert_eq!(step(&mut channel, 110 + TIMEOUT.0, Event::Tick), ["2: key 6 waited None"]);
}

#[test]
fn what_comes_of_an_earlier_transmission_is_ignored() {
    let mut channel = channel();
    step(&mut channel, 0, Event::Enqueue(update()));
    step(&mut channel, 0, Event::Failed { id: 1 });
    let late = Event::Answered { id: 1, reply: to_update() };
    assert!(step(&mut channel, 50, late.clone()).is_empty());
    step(&mut channel, 100, Event::Tick);
    assert!(step(&mut channel, 101, late).is_empty());
    assert!(step(&mut channel, 101, Event::Failed { id: 1 }).is_empty());
    assert_eq!(step(&mut channel, 102, Event::Answered { id: 2, reply: to_update() }), ["metadata told"]);
}

#[test]
fn an_answer_to_another_kind_of_request_is_a_failure() {
    let mut channel = channel();
    step(&mut channel, 0, Event::Enqueue(update()));
    assert_eq!(step(&mut channel, 1, Event::Answered { id: 1, reply: to_stop() }), ["close"]);
    assert_eq!(step(&mut channel, 101, Event::Tick), ["2: key 6 waited None"]);
}

#[test]
fn a_request_that_the_broker_refuses_as_a_whole_is_delivered_and_not_sent_again() {
    let mut channel = channel();
    step(&mut channel, 0, Event::Enqueue(update()));
    let reply = ControlReply::UpdateMetadata(messages::UpdateMetadataResponse { error_code: 11 });
    assert_eq!(step(&mut channel, 1, Event::Answered { id: 1, reply }), ["metadata told"]);
    assert_eq!(channel.deadline(), None);
}

#[test]
fn a_removed_channel_closes_its_connection_and_is_silent() {
    let mut channel = channel();
    step(&mut channel, 0, Event::Enqueue(update()));
    step(&mut channel, 0, Event::Enqueue(update()));
    assert_eq!(step(&mut channel, 1, Event::Removed), ["close"]);
    assert_eq!((channel.queue_size(), channel.deadline()), (0, None));
    for event in [
        Event::Enqueue(update()),
        Event::Answered { id: 1, reply: to_update() },
        Event::Failed { id: 1 },
        Event::Tick,
        Event::Removed,
    ] {
        assert!(step(&mut channel, 2, event).is_empty());
    }
}

#[test]
fn a_stop_replica_with_two_wishes_leaves_as_two_requests_while_one_flag_stands_for_all() {
    let mut old = Channel::new(BrokerId(2), MetadataVersion::IBP_2_5_IV0, TIMEOUT);
    step(&mut old, 0, Event::Enqueue(stops(&[(0, true), (1, false)])));
    assert_eq!(old.queue_size(), 1);
    let mut new = channel();
    step(&mut new, 0, Event::Enqueue(stops(&[(0, true), (1, false)])));
    assert_eq!(new.queue_size(), 0);
}

#[test]
fn a_queue_at_its_limit_is_left_alone_and_the_next_request_makes_it_small() {
    let mut channel = channel();
    step(&mut channel, 0, Event::Enqueue(update()));
    for _ in 0..COALESCE_ABOVE {
        step(&mut channel, 1, Event::Enqueue(update()));
    }
    assert_eq!(channel.queue_size(), COALESCE_ABOVE);
    step(&mut channel, 2, Event::Enqueue(update()));
    assert_eq!(channel.queue_size(), 1, "each says all that the one before it said");
    assert_eq!(
        step(&mut channel, 3, Event::Answered { id: 1, reply: to_update() }),
        ["metadata told", "2: key 6 waited Some(2)"],
        "the time is that of the request that waited longest"
    );
}

#[test]
fn the_limit_grows_with_what_cannot_be_dropped_and_falls_when_the_queue_is_empty() {
    let mut channel = channel();
    step(&mut channel, 0, Event::Enqueue(update()));
    // Deletions and updates in turn, of ever other partitions: nothing is void, but neighbours join.
    let many = i32::try_from(COALESCE_ABOVE * 3).unwrap();
    for partition in 0..many {
        step(&mut channel, 0, Event::Enqueue(stops(&[(partition, true)])));
    }
    assert!(channel.queue_size() <= COALESCE_ABOVE + 1, "{}", channel.queue_size());
    let partitions: BTreeMap<i32, ()> = (0..many).map(|partition| (partition, ())).collect();
    let held: usize = channel
        .waiting
        .iter()
        .map(|waiting| match &waiting.request {
            ControlRequest::StopReplica(request) => request.partitions.len(),
            _ => 0,
        })
        .sum();
    assert_eq!(held, partitions.len(), "none is lost");
}

#[test]
fn of_many_elections_the_last_is_kept_if_its_leader_was_announced() {
    let waiting_after = |announced: &[i32]| {
        let mut channel = channel();
        step(&mut channel, 0, Event::Enqueue(update_with(announced)));
        for epoch in 0..=i32::try_from(COALESCE_ABOVE).unwrap() {
            step(&mut channel, 0, Event::Enqueue(lead(epoch)));
        }
        channel.waiting
    };
    for announced in [&[2, 3][..], &[2]] {
        let waiting = waiting_after(announced);
        let last = lead(i32::try_from(COALESCE_ABOVE).unwrap());
        assert_eq!(waiting.iter().map(|waiting| &waiting.request).collect::<Vec<_>>(), [&last]);
    }
}

#[test]
fn one_that_cannot_be_acted_on_does_not_take_the_place_of_one_that_can() {
    let mut channel = channel();
    step(&mut channel, 0, Event::Enqueue(update_with(&[2, 3])));
    for epoch in 0..i32::try_from(COALESCE_ABOVE).unwrap() {
        step(&mut channel, 0, Event::Enqueue(lead(epoch)));
    }
    let requests = [update_with(&[2]), lead(1000)];
    for request in requests.clone() {
        step(&mut channel, 0, Event::Enqueue(request));
    }
    let waiting: Vec<_> = channel.waiting.iter().map(|waiting| waiting.request.clone()).collect();
    let led = lead(i32::try_from(COALESCE_ABOVE).unwrap() - 1);
    assert_eq!(waiting, [led, requests[0].clone(), requests[1].clone()]);
}
