//! What waits is limited, and late answers change nothing.

use wire::error_code::ErrorCode;
use wire::types::{BrokerEpoch, BrokerId, Now};

use crate::controller::command::Command;
use crate::controller::event::{ApiRequest, Change, Event, RequestId};
use crate::controller::note::Level;
use crate::controller::settings::Settings;
use crate::controller::store::{ControllerNode, OpId, StoreFailure, StoreOp, StoreReply};
use crate::controller::values::ControlResponse;
use crate::controller::{Controller, ControllerState, MAX_WAITING_REQUESTS};
use crate::metadata_version::MetadataVersion;

use super::story::Story;

fn controller() -> Controller {
    Controller::new(Settings::new(BrokerId(1), MetadataVersion::LATEST_PRODUCTION, "PLAINTEXT"))
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
fn a_controller_node_that_changes_while_it_is_read_is_read_again_once() {
    let mut controller = controller();
    let out = step(&mut controller, Event::SessionStarted { session: 5 });
    assert!(matches!(out[0], Command::Store { op: StoreOp::ReadController, .. }));
    let out = step(&mut controller, Event::ControllerNodeChanged);
    let [Command::Store { id, op: StoreOp::ReadController }] = out.as_slice() else { panic!("{out:?}") };
    for _ in 0..3 {
        assert!(step(&mut controller, Event::ControllerNodeChanged).is_empty());
    }
    let answer = |broker_id| Ok(StoreReply::Controller(Some(ControllerNode { broker_id, owner: 9 })));
    let out = step(&mut controller, Event::StoreDone { id: *id, result: answer(BrokerId(2)) });
    let [Command::Store { id, op: StoreOp::ReadController }] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(controller.controller(), None, "what was read may be old");
    assert!(step(&mut controller, Event::StoreDone { id: *id, result: answer(BrokerId(3)) }).is_empty());
    assert_eq!(controller.controller(), Some(BrokerId(3)));
}

#[test]
fn a_request_that_a_broker_refuses_as_a_whole_is_noted_and_nothing_follows() {
    let (mut controller, _) = busy();
    let refused =
        |error| Event::Responded { broker: BrokerId(2), response: ControlResponse::UpdateMetadata { error } };
    assert!(step(&mut controller, refused(ErrorCode::None)).is_empty());
    let out = step(&mut controller, refused(ErrorCode::StaleBrokerEpoch));
    let [Command::Note(note)] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(note.what.to_string(), "broker 2 refused a control request with STALE_BROKER_EPOCH");
    assert_eq!((note.what.level(), note.cause.event.as_str()), (Level::Warn, "BrokerChange"));
    step(&mut controller, Event::SessionExpired);
    assert!(step(&mut controller, refused(ErrorCode::StaleControllerEpoch)).is_empty());
}

#[test]
fn what_the_controller_raises_itself_names_the_event_that_led_to_it() {
    let (mut controller, id) = busy();
    let failed = Err(StoreFailure::Unexpected("broken".to_owned()));
    let out = step(&mut controller, Event::StoreDone { id, result: failed });
    let cause = out.iter().find_map(|command| match command {
        Command::Note(note) => Some(note.cause.clone()),
        _ => None,
    });
    let Some(Command::Store { id, op: StoreOp::DeleteController { .. } }) = out.last() else {
        panic!("{out:?}")
    };
    let failed = Err(StoreFailure::Unexpected("broken again".to_owned()));
    let out = step(&mut controller, Event::StoreDone { id: *id, result: failed });
    let [Command::Note(note)] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(note.cause.event, "Yield");
    assert_eq!(note.cause.parent, cause.map(|cause| cause.number));
}

#[test]
fn the_state_tells_what_is_being_worked_on() {
    let (mut controller, _) = busy();
    assert_eq!(controller.state(), ControllerState::BrokerChange);
    step(&mut controller, Event::Shutdown);
    assert_eq!(controller.state(), ControllerState::Idle);
    assert_eq!(controller.controller(), None);
}
