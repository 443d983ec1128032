//! The end of a session by the ensemble.

use super::server::{self, Asked};
use super::*;
use crate::store::Stat;

/// A session that the ensemble has ended while a write and a read were under way and a write waited.
fn expired() -> Bench {
    let mut bench = Bench::live(2);
    bench.submit(Request::get("/watched").watched());
    bench.step(Input::Frame(server::reply(1, 20, 0, &server::data(None, &Stat::default()))));
    bench.answers();
    bench.submit(Request::get("/read"));
    bench.submit(Request::delete("/under-way", None));
    bench.submit(Request::delete("/waits", None));
    bench.lose_connection();
    bench.redial();
    bench.step(Input::Connected);
    bench.take_sent();
    bench.step(Input::Frame(server::expired()));
    bench
}

#[test]
fn the_end_of_a_session_is_told_once_and_answers_what_waits() {
    let mut bench = expired();
    assert_eq!(bench.take_events(), [StoreEvent::Disconnected, StoreEvent::SessionExpired]);
    assert_eq!(
        bench.answers(),
        [
            (1, Err(StoreError::SessionExpired)),
            (2, Err(StoreError::ConnectionLoss)),
            (3, Err(StoreError::SessionExpired)),
        ],
        "only what was under way may have taken effect"
    );
    assert_eq!(bench.machine.session_id(), None);
}

#[test]
fn nothing_is_sent_for_a_session_that_is_over_until_a_new_one_is_asked_for() {
    let mut bench = expired();
    let dialed = bench.dialed.len();
    bench.submit(Request::delete("/late", None));
    assert_eq!(bench.answers().pop(), Some((4, Err(StoreError::SessionExpired))));
    bench.advance(Duration::from_secs(3600));
    assert_eq!((bench.take_sent(), bench.dialed.len()), (Vec::new(), dialed));
    assert_eq!(bench.machine.deadline(), None);
    bench.step(Input::Renew);
    assert_eq!(bench.dialed.len(), dialed + 1);
    bench.submit(Request::delete("/new", None));
    bench.greet();
    let sent = bench.take_sent();
    let [Asked::Greeting { last_zxid: 0, session: 0, .. }, Asked::Request(.., path)] = sent.as_slice() else {
        panic!("{sent:?}");
    };
    assert_eq!(path, "/c/new", "and no watch of the old session");
    assert_eq!(bench.kept.len(), 2);
}

#[test]
fn a_live_session_is_not_renewed() {
    let mut bench = Bench::live(10);
    let dialed = bench.dialed.len();
    bench.step(Input::Renew);
    assert_eq!((bench.dialed.len(), bench.machine.session_id()), (dialed, Some(SESSION)));
}

#[test]
fn a_session_that_is_taken_up_is_told_as_connected_or_as_over() {
    let mut bench = Bench::new(1, 10, Some(credentials()));
    bench.greet();
    assert!(matches!(bench.take_sent()[0], Asked::Greeting { session: 0x100, .. }));
    assert_eq!(bench.take_events(), [StoreEvent::Connected { session_id: SESSION }]);
    assert_eq!(bench.kept, [], "it is none of this process's");
    let mut bench = Bench::new(1, 10, Some(credentials()));
    bench.step(Input::Connected);
    bench.step(Input::Frame(server::expired()));
    assert_eq!(bench.take_events(), [StoreEvent::SessionExpired]);
}
