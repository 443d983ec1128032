//! Requests and answers over a sound connection.

use super::server::{self, Asked};
use super::*;
use crate::store::{NodeEventKind, Op, OpError, OpResult, Stat};
use crate::zookeeper::codes::operation;

const NO_NODE: i32 = -101;
const BAD_VERSION: i32 = -103;

#[test]
fn a_session_is_kept_before_it_is_told_and_before_anything_is_sent_in_its_name() {
    let mut bench = Bench::new(1, 10, None);
    bench.submit(Request::delete("/early", None));
    bench.step(Input::Connected);
    let zero = Bytes::from_static(&[0; 16]);
    assert_eq!(bench.take_sent(), [Asked::Greeting { last_zxid: 0, session: 0, password: zero }]);
    let mut out = Vec::new();
    bench.machine.step(bench.now, Input::Frame(server::greeting(TIMEOUT, &credentials())), &mut out);
    let [Output::Keep(kept), Output::Tell(told), Output::Send(sent)] = out.as_slice() else { panic!() };
    assert_eq!(*kept, credentials());
    assert_eq!(*told, StoreEvent::Connected { session_id: SESSION });
    assert_eq!(server::asked(sent.clone()), Asked::Request(1, operation::DELETE, "/c/early".to_owned()));
    assert_eq!(bench.machine.session_id(), Some(SESSION));
}

#[test]
fn no_more_requests_are_under_way_than_allowed() {
    let mut bench = Bench::live(2);
    for number in 0..5 {
        bench.submit(Request::delete(format!("/{number}"), None));
    }
    assert_eq!(bench.take_sent().iter().map(Asked::number).collect::<Vec<_>>(), [1, 2]);
    bench.reply(1, 0);
    assert_eq!(bench.take_sent().iter().map(Asked::number).collect::<Vec<_>>(), [3]);
    assert_eq!(bench.answers(), [(0, Ok(Response::Written(OpResult::Deleted)))]);
    bench.reply(2, NO_NODE);
    bench.reply(3, 0);
    assert_eq!(bench.take_sent().iter().map(Asked::number).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(bench.answers()[0], (1, Err(OpError::NoNode.into())));
}

#[test]
fn what_needs_no_server_is_answered_when_it_is_its_turn() {
    let mut bench = Bench::live(10);
    bench.submit(Request::delete("/a", None));
    bench.submit(Request::get("malformed"));
    bench.submit(Request::Multi(Vec::new()));
    assert_eq!(bench.take_sent().len(), 1);
    assert_eq!(bench.answers(), []);
    bench.reply(1, 0);
    let places: Vec<_> = bench.answers().into_iter().map(|(place, answer)| (place, answer.is_ok())).collect();
    assert_eq!(places, [(0, true), (1, false), (2, true)]);
}

#[test]
fn an_event_is_told_before_the_answer_that_came_after_it_and_once() {
    let mut bench = Bench::live(10);
    bench.submit(Request::get("/a").watched());
    bench.step(Input::Frame(server::reply(1, 10, 0, &server::data(None, &Stat::default()))));
    bench.submit(Request::get("/a"));
    let mut out = Vec::new();
    for frame in [
        server::notification(3, "/c/a"),
        server::notification(3, "/c/a"),
        server::notification(3, "/other/a"),
        server::reply(2, 11, 0, &server::data(Some(b"new"), &Stat::default())),
    ] {
        bench.machine.step(bench.now, Input::Frame(frame), &mut out);
    }
    let [Output::Tell(told), Output::Took(_), Output::Answer(..)] = out.as_slice() else {
        panic!("{} outputs", out.len())
    };
    assert_eq!(*told, StoreEvent::Node { path: Arc::from("/a"), kind: NodeEventKind::DataChanged });
}

#[test]
fn a_failed_multi_names_the_operation_at_fault() {
    let mut bench = Bench::live(10);
    let ops = vec![Op::check("/a", 1), Op::delete("/b", None), Op::delete("/c", None)];
    let code = |code: i32| code.to_be_bytes();
    let (fine, bad, undone) = (code(0), code(BAD_VERSION), code(-2));
    for header_code in [0, BAD_VERSION] {
        bench.submit(Request::Multi(ops.clone()));
        let number = bench.take_sent()[0].number();
        let body = server::multi(&[(-1, &fine), (-1, &bad), (-1, &undone)]);
        bench.step(Input::Frame(server::reply(number, 10, header_code, &body)));
        let expected = StoreError::Multi { index: 1, error: OpError::BadVersion };
        assert_eq!(bench.answers().pop().unwrap().1, Err(expected));
    }
    bench.submit(Request::Write(Op::check("/a", 1)));
    let body = server::multi(&[(-1, &bad)]);
    bench.step(Input::Frame(server::reply(3, 10, 0, &body)));
    assert_eq!(bench.answers().pop().unwrap().1, Err(OpError::BadVersion.into()), "alone it has no place");
}

#[test]
fn a_multi_that_is_answered_in_part_ends_the_connection() {
    let mut bench = Bench::live(10);
    bench.submit(Request::Multi(vec![Op::check("/a", 1), Op::check("/b", 1)]));
    bench.step(Input::Frame(server::reply(1, 10, 0, &server::multi(&[(operation::CHECK, &[])]))));
    assert_eq!((bench.hung_up, bench.answers().pop().unwrap().1), (1, Err(StoreError::ConnectionLoss)));
}

#[test]
fn an_answer_to_something_else_ends_the_connection() {
    let mut bench = Bench::live(10);
    bench.submit(Request::delete("/a", None));
    bench.reply(7, 0);
    assert_eq!((bench.hung_up, bench.answers().pop().unwrap().1), (1, Err(StoreError::ConnectionLoss)));
    assert_eq!(bench.take_events(), [StoreEvent::Disconnected]);
}

#[test]
fn an_answer_that_is_too_large_is_not_asked_for_again() {
    let mut bench = Bench::live(10);
    bench.submit(Request::children("/a"));
    bench.submit(Request::get("/b"));
    bench.step(Input::Oversized(1 << 30));
    assert_eq!(bench.answers(), [(0, Err(OpError::TooLarge.into()))]);
    bench.reconnect();
    let sent = bench.take_sent();
    assert_eq!(sent.last().unwrap(), &Asked::Request(3, operation::GET_DATA, "/c/b".to_owned()));
}
