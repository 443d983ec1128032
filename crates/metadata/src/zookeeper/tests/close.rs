//! The end of a session by its owner.

use super::server::Asked;
use super::*;
use crate::zookeeper::codes::operation;
use crate::zookeeper::machine::CLOSE_LIMIT;

#[test]
fn a_session_ends_after_what_was_asked_before_and_is_told_nothing_more() {
    let mut bench = Bench::live(10);
    bench.submit(Request::delete("/a", None));
    bench.step(Input::Close);
    let sent = bench.take_sent();
    assert_eq!(sent[1], Asked::Request(2, operation::CLOSE_SESSION, String::new()));
    bench.submit(Request::delete("/late", None));
    assert_eq!(bench.answers(), [(1, Err(StoreError::Closed))]);
    bench.reply(1, 0);
    assert!(!bench.finished);
    bench.reply(2, 0);
    assert!(bench.finished && bench.answers()[0].1.is_ok());
    assert_eq!((bench.take_events(), bench.machine.session_id()), (Vec::new(), None));
    bench.step(Input::Renew);
    bench.submit(Request::delete("/later", None));
    assert_eq!(bench.answers(), [(2, Err(StoreError::Closed))]);
}

#[test]
fn a_server_that_hangs_up_instead_of_confirming_the_end_has_ended_it() {
    let mut bench = Bench::live(10);
    bench.step(Input::Close);
    bench.lose_connection();
    assert!(bench.finished);
}

#[test]
fn without_a_connection_the_end_is_tried_for_a_while() {
    let mut bench = Bench::live(10);
    bench.lose_connection();
    bench.step(Input::Close);
    bench.submitted += 1;
    bench.reconnect();
    assert!(matches!(bench.take_sent()[1], Asked::Request(_, operation::CLOSE_SESSION, _)));
    let mut bench = Bench::live(10);
    bench.submit(Request::get("/a"));
    bench.submit(Request::delete("/b", None));
    bench.lose_connection();
    bench.step(Input::Close);
    bench.advance(CLOSE_LIMIT);
    assert!(bench.finished);
    assert_eq!(
        bench.answers(),
        [(0, Err(StoreError::Closed)), (1, Err(StoreError::ConnectionLoss))],
        "nobody is left without an answer"
    );
}

#[test]
fn a_session_that_was_never_begun_is_closed_at_once() {
    let mut bench = Bench::new(1, 10, None);
    bench.submit(Request::get("/a"));
    bench.step(Input::Close);
    assert!(bench.finished);
    assert_eq!(bench.answers(), [(0, Err(StoreError::Closed))]);
}
