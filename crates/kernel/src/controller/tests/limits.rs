//! What waits is limited, and late answers change nothing.

use wire::error_code::ErrorCode;
use wire::types::{BrokerEpoch, BrokerId, Now};

use crate::controller::command::Command;
use crate::controller::event::{ApiRequest, Change, Event, RequestId};
use crate::controller::settings::Settings;
use crate::controller::store::{OpId, StoreOp, StoreReply};
use crate::controller::{Controller, ControllerState, MAX_WAITING_REQUESTS};
use crate::metadata_version::MetadataVersion;

use super::story::Story;

fn controller() -> Controller {
    Controller::new(Settings {
        broker_id: BrokerId(1),
        release: MetadataVersion::LATEST_PRODUCTION,
        inter_broker_listener: "PLAINTEXT".to_owned(),
        unclean_leader_election_enable: false,
    })
}

fn step(controller: &mut Controller, event: Event) -> Vec<Command> {
    let mut out = Vec::new();
    controller.step(Now::default(), event, &mut out);
    controller.check();
    out
}

/// A controller in office that waits for the brokers to be read.
fn busy() -> (Controller, OpId) {
    let mut story = Story::default();
    story.line("controller 1");
    let mut controller = story.take_controller(BrokerId(1));
    let out = step(&mut controller, Event::Changed(Change::Brokers));
    let [Command::Store { id, op: StoreOp::ReadBrokers }] = out.as_slice() else { panic!("{out:?}") };
    (controller, *id)
}

fn shut_down(id: u64) -> Event {
    let request = ApiRequest::ControlledShutdown { broker: BrokerId(2), broker_epoch: BrokerEpoch(1) };
    Event::Request { id: RequestId(id), request }
}

#[test]
fn changes_of_the_same_thing_wait_once() {
    let (mut controller, _) = busy();
    for _ in 0..1000 {
        assert!(step(&mut controller, Event::Changed(Change::Topics)).is_empty());
        assert!(step(&mut controller, Event::Changed(Change::Broker(BrokerId(2)))).is_empty());
        // The one under work was read before this: it has to be looked at again.
        assert!(step(&mut controller, Event::Changed(Change::Brokers)).is_empty());
    }
    assert_eq!(controller.queue_size(), 3);
}

#[test]
fn one_request_too_many_is_refused_and_the_others_are_answered_when_the_term_ends() {
    let (mut controller, _) = busy();
    let limit = u64::try_from(MAX_WAITING_REQUESTS).unwrap();
    for id in 0..limit {
        assert!(step(&mut controller, shut_down(id)).is_empty());
    }
    let refused = Command::Answer { id: RequestId(limit), answer: Err(ErrorCode::RequestTimedOut) };
    assert_eq!(step(&mut controller, shut_down(limit)), [refused]);
    let out = step(&mut controller, Event::SessionExpired);
    let answered = out.iter().filter(|command| matches!(command, Command::Answer { .. })).count();
    assert_eq!(answered, MAX_WAITING_REQUESTS);
    assert_eq!(controller.queue_size(), 0);
}

#[test]
fn the_end_of_an_operation_that_nobody_waits_for_changes_nothing() {
    let (mut controller, id) = busy();
    let before = controller.clone();
    for stale in [OpId(0), OpId(id.0 - 1), OpId(id.0 + 1)] {
        let done = Event::StoreDone { id: stale, result: Ok(StoreReply::Done) };
        assert!(step(&mut controller, done).is_empty());
        assert_eq!(controller, before);
    }
}

#[test]
fn an_answer_to_another_question_ends_the_term() {
    let (mut controller, id) = busy();
    let out = step(&mut controller, Event::StoreDone { id, result: Ok(StoreReply::Done) });
    assert!(out.contains(&Command::LeftOffice));
    assert!(!controller.is_active());
}

#[test]
fn out_of_office_changes_are_not_looked_at() {
    let mut controller = controller();
    let events = [
        Event::Changed(Change::Brokers),
        Event::UncleanElectionDefault(true),
        Event::ControllerNodeChanged,
        Event::Tick,
        Event::SessionExpired,
        Event::StoreDone { id: OpId(1), result: Ok(StoreReply::Done) },
    ];
    for event in events {
        assert!(step(&mut controller, event.clone()).is_empty(), "{event:?}");
    }
    assert_eq!(controller.state(), ControllerState::Idle);
}

#[test]
fn the_state_tells_what_is_being_worked_on() {
    let (mut controller, _) = busy();
    assert_eq!(controller.state(), ControllerState::BrokerChange);
    step(&mut controller, Event::Shutdown);
    assert_eq!(controller.state(), ControllerState::Idle);
    assert_eq!(controller.controller(), None);
}
