//! A lost connection: what fails, what is asked again, and the watches.

use super::server::{self, Asked};
use super::*;
use crate::store::{OpResult, Stat};
use crate::zookeeper::codes::operation;

const NO_NODE: i32 = -101;

fn data_reply(number: i32) -> Input {
    Input::Frame(server::reply(number, 20, 0, &server::data(Some(b"x"), &Stat::default())))
}

#[test]
fn a_lost_connection_fails_writes_under_way_and_asks_reads_again_in_their_order() {
    let mut bench = Bench::live(3);
    bench.submit(Request::delete("/w0", None));
    bench.submit(Request::get("/r1"));
    bench.submit(Request::delete("/w2", None));
    bench.submit(Request::delete("/unsent", None));
    bench.take_sent();
    bench.lose_connection();
    assert_eq!(bench.take_events(), [StoreEvent::Disconnected]);
    assert_eq!(bench.answers(), [(0, Err(StoreError::ConnectionLoss))], "the others wait for the read");
    assert_eq!(bench.machine.session_id(), Some(SESSION), "the session may still live");
    bench.reconnect();
    assert_eq!(bench.take_events(), [StoreEvent::Connected { session_id: SESSION }]);
    let sent = bench.take_sent();
    let password = credentials().password;
    assert_eq!(sent[0], Asked::Greeting { last_zxid: 0, session: SESSION.0, password });
    assert_eq!(sent[1], Asked::Request(4, operation::GET_DATA, "/c/r1".to_owned()));
    assert_eq!(sent[2], Asked::Request(5, operation::DELETE, "/c/unsent".to_owned()));
    bench.step(data_reply(4));
    let answers = bench.answers();
    assert!(matches!(&answers[0], (1, Ok(Response::Data { .. }))));
    assert_eq!(answers[1], (2, Err(StoreError::ConnectionLoss)));
    bench.reply(5, 0);
    assert_eq!(bench.answers(), [(3, Ok(Response::Written(OpResult::Deleted)))]);
}

#[test]
fn watches_are_set_again_before_anything_else_is_asked() {
    let mut bench = Bench::live(10);
    for request in [Request::get("/data"), Request::exists("/absent"), Request::exists("/there")] {
        bench.submit(request.watched());
    }
    bench.submit(Request::children("/").watched());
    bench.submit(Request::get("/unwatched"));
    bench.submit(Request::get("/missing").watched());
    bench.step(data_reply(1));
    bench.step(Input::Frame(server::reply(2, 21, NO_NODE, &[])));
    bench.step(Input::Frame(server::reply(3, 22, 0, &server::stat(&Stat::default()))));
    let children = [&0_i32.to_be_bytes()[..], &server::stat(&Stat::default())].concat();
    bench.step(Input::Frame(server::reply(4, 23, 0, &children)));
    bench.step(data_reply(5));
    bench.step(Input::Frame(server::reply(6, 24, NO_NODE, &[])));
    assert_eq!(bench.answers().len(), 6);
    bench.step(Input::Frame(server::notification(3, "/c/there")));
    bench.submit(Request::get("/next"));
    bench.take_sent();
    bench.lose_connection();
    bench.reconnect();
    let sent = bench.take_sent();
    assert!(matches!(sent[0], Asked::Greeting { last_zxid: 24, .. }));
    assert_eq!(
        sent[1],
        Asked::SetWatches {
            since: 24,
            data: vec!["/c/data".to_owned()],
            absent: vec!["/c/absent".to_owned()],
            children: vec!["/c".to_owned()],
        }
    );
    assert!(matches!(&sent[2], Asked::Request(_, operation::GET_DATA, path) if path == "/c/next"));
}

#[test]
fn a_deletion_that_was_missed_is_told_once_for_data_and_children() {
    let mut bench = Bench::live(10);
    bench.submit(Request::get("/a").watched());
    bench.submit(Request::children("/a").watched());
    bench.step(data_reply(1));
    let children = [&0_i32.to_be_bytes()[..], &server::stat(&Stat::default())].concat();
    bench.step(Input::Frame(server::reply(2, 21, 0, &children)));
    bench.lose_connection();
    bench.reconnect();
    bench.take_events();
    // A server tells it for each of the two lists.
    bench.step(Input::Frame(server::notification(2, "/c/a")));
    bench.step(Input::Frame(server::notification(2, "/c/a")));
    assert_eq!(bench.take_events().len(), 1);
}

#[test]
fn a_server_that_no_longer_has_the_session_is_left_for_another_one() {
    for code in [-112, -118] {
        let mut bench = Bench::live(10);
        bench.submit(Request::get("/a"));
        bench.submit(Request::delete("/b", None));
        bench.reply(1, code);
        assert_eq!(bench.hung_up, 1, "{code}");
        assert_eq!(bench.answers(), [], "the read is asked again, and the write comes after it");
        assert_eq!(bench.take_events(), [StoreEvent::Disconnected]);
    }
}

#[test]
fn an_answer_for_another_session_is_not_taken() {
    let mut bench = Bench::live(10);
    bench.lose_connection();
    bench.take_events();
    bench.redial();
    bench.step(Input::Connected);
    let other = SessionCredentials { id: SessionId(0x200), ..credentials() };
    bench.step(Input::Frame(server::greeting(TIMEOUT, &other)));
    assert_eq!((bench.hung_up, bench.take_events()), (1, Vec::new()));
    assert_eq!(bench.machine.session_id(), Some(SESSION));
}
