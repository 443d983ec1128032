//! Lost connections, for stores that have connections: what a session keeps, what it is told, what it must ask again.

use super::{Client, Faults, Fixture, PATIENCE, expect_error, ok};
use crate::store::NodeEventKind::{ChildrenChanged, Created, DataChanged, Deleted};
use crate::store::{CreateMode, OpError, Request, Response, StoreError, StoreEvent};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver};

type FaultCase = fn(&dyn Fixture, &dyn Faults);

pub(super) const CASES: &[(&str, FaultCase)] = &[
    ("a session outlives its connection", sessions_outlive_connections),
    ("requests that wait for a connection are done in order", requests_wait_for_a_connection),
    ("watches outlive a connection and tell what was missed", watches_outlive_connections),
    ("what did not change meanwhile is not told and still watched", unchanged_watches_stay),
    ("a write whose answer was lost is told as ambiguous, a read is answered", lost_answers),
    ("an answer that was lost with its connection hides no change", no_change_is_hidden),
    ("a session that expires without a connection is told so", expiry_without_a_connection),
];

type Answer = Result<Response, StoreError>;

fn submit(client: &Client, request: Request) -> Receiver<Answer> {
    let (sender, answer) = mpsc::channel();
    client.store.submit(request, Box::new(move |it| drop(sender.send(it))));
    answer
}

#[track_caller]
fn answer(receiver: &Receiver<Answer>) -> Answer {
    ok(receiver.recv_timeout(PATIENCE))
}

/// Loses the connection and gets another one; `meanwhile` runs in between.
#[track_caller]
fn without_connection(client: &Client, faults: &dyn Faults, meanwhile: impl FnOnce()) {
    let session_id = client.session_id();
    faults.cut(&*client.store);
    assert_eq!(client.event(), StoreEvent::Disconnected);
    meanwhile();
    faults.heal(&*client.store);
    assert_eq!(client.event(), StoreEvent::Connected { session_id });
}

fn sessions_outlive_connections(fixture: &dyn Fixture, faults: &dyn Faults) {
    let (one, two) = (Client::connect(fixture), Client::connect(fixture));
    let session_id = one.session_id();
    ok(one.calls().create("/e", "", CreateMode::Ephemeral));
    without_connection(&one, faults, || {
        assert_eq!(one.store.session_id(), Some(session_id), "it may still live");
        assert!(ok(two.calls().exists("/e")).is_some());
    });
    assert_eq!(ok(one.calls().get("/e")).1.ephemeral_owner, session_id);
    ok(one.calls().create("/e2", "", CreateMode::Ephemeral));
    assert_eq!(ok(two.calls().get("/e2")).1.ephemeral_owner, session_id);
}

fn requests_wait_for_a_connection(fixture: &dyn Fixture, faults: &dyn Faults) {
    let client = Client::connect(fixture);
    client.persistent("/a", "0");
    let mut answers = Vec::new();
    without_connection(&client, faults, || {
        for number in 1..=20 {
            answers.push(submit(&client, Request::set("/a", number.to_string().as_str(), Some(number - 1))));
            answers.push(submit(&client, Request::get("/a")));
        }
        assert!(answers.iter().all(|answer| answer.try_recv().is_err()), "nobody can have answered");
    });
    for (place, receiver) in answers.iter().enumerate() {
        match ok(answer(receiver)) {
            Response::Data { data, .. } => {
                assert_eq!(data, Some(Bytes::from((place / 2 + 1).to_string())));
            }
            Response::Written(_) => {}
            other => panic!("unexpected {other:?}"),
        }
    }
}

fn watches_outlive_connections(fixture: &dyn Fixture, faults: &dyn Faults) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    for path in ["/data", "/gone", "/parent"] {
        writer.persistent(path, "");
    }
    for request in [
        Request::get("/data"),
        Request::get("/gone"),
        Request::children("/gone"),
        Request::exists("/new"),
        Request::children("/parent"),
    ] {
        ok(watcher.store.call(request.watched()));
    }
    without_connection(&watcher, faults, || {
        ok(writer.calls().set("/data", "1", None));
        ok(writer.calls().set("/data", "2", None));
        ok(writer.calls().delete("/gone", None));
        writer.persistent("/new", "");
        writer.persistent("/parent/child", "");
    });
    watcher.barrier();
    let told: BTreeSet<_> = watcher
        .events
        .try_iter()
        .map(|event| match event {
            StoreEvent::Node { path, kind } => (path.to_string(), kind),
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    let expected =
        [("/data", DataChanged), ("/gone", Deleted), ("/new", Created), ("/parent", ChildrenChanged)];
    assert_eq!(told, expected.map(|(path, kind)| (path.to_owned(), kind)).into());
    ok(writer.calls().set("/data", "3", None));
    watcher.expect_no_event();
}

fn unchanged_watches_stay(fixture: &dyn Fixture, faults: &dyn Faults) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    writer.persistent("/a", "old");
    writer.persistent("/b", "");
    ok(watcher.store.call(Request::get("/a").watched()));
    ok(watcher.store.call(Request::children("/b").watched()));
    ok(watcher.store.call(Request::exists("/c").watched()));
    writer.persistent("/b/before", "");
    watcher.expect_node_event("/b", ChildrenChanged);
    without_connection(&watcher, faults, || writer.persistent("/elsewhere", ""));
    watcher.expect_no_event();
    writer.persistent("/b/after", "");
    watcher.expect_no_event();
    ok(writer.calls().set("/a", "new", None));
    watcher.expect_node_event("/a", DataChanged);
    writer.persistent("/c", "");
    watcher.expect_node_event("/c", Created);
}

fn lost_answers(fixture: &dyn Fixture, faults: &dyn Faults) {
    let (client, other) = (Client::connect(fixture), Client::connect(fixture));
    client.persistent("/a", "0");
    faults.hold_answers(&*client.store);
    let read = submit(&client, Request::get("/a"));
    let write = submit(&client, Request::set("/a", "1", Some(0)));
    while other.text("/a") != "1" {}
    faults.cut(&*client.store);
    assert_eq!(client.event(), StoreEvent::Disconnected);
    faults.heal(&*client.store);
    let Response::Data { data, .. } = ok(answer(&read)) else { panic!("an answer of another kind") };
    assert_eq!(data, Some(Bytes::from_static(b"1")), "it was asked again");
    expect_error(answer(&write), StoreError::ConnectionLoss);
    expect_error(client.calls().set("/a", "1", Some(0)), OpError::BadVersion);
}

/// The event of a change is lost with the connection, and so is the answer to a read that already showed it.
fn no_change_is_hidden(fixture: &dyn Fixture, faults: &dyn Faults) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    writer.persistent("/a", "old");
    ok(watcher.store.call(Request::get("/a").watched()));
    faults.hold_answers(&*watcher.store);
    ok(writer.calls().set("/a", "new", None));
    let read = submit(&watcher, Request::get("/a"));
    faults.cut(&*watcher.store);
    assert_eq!(watcher.event(), StoreEvent::Disconnected);
    faults.heal(&*watcher.store);
    ok(answer(&read));
    assert!(matches!(watcher.event(), StoreEvent::Connected { .. }));
    let told = ok(watcher.events.try_recv());
    assert!(matches!(told, StoreEvent::Node { .. }), "told {told:?} before the answer");
}

fn expiry_without_a_connection(fixture: &dyn Fixture, faults: &dyn Faults) {
    let client = Client::connect(fixture);
    ok(client.calls().create("/e", "", CreateMode::Ephemeral));
    faults.cut(&*client.store);
    assert_eq!(client.event(), StoreEvent::Disconnected);
    let waits = submit(&client, Request::create("/late", "", CreateMode::Persistent));
    fixture.expire(&*client.store);
    assert_eq!(client.event(), StoreEvent::SessionExpired);
    expect_error(answer(&waits), StoreError::SessionExpired);
    client.store.renew();
    assert!(matches!(client.event(), StoreEvent::Connected { .. }));
    assert_eq!(ok(client.calls().exists("/late")), None);
    assert_eq!(ok(client.calls().exists("/e")), None);
}
