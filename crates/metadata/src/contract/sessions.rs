//! Sessions: their ephemerals, their end and what comes after it.

use super::{Case, Client, Fixture, expect_error, ok};
use crate::store::{CreateMode, NodeEventKind, OpError, Request, StoreError, StoreEvent};

pub(super) const CASES: &[(&str, Case)] = &[
    ("an ephemeral names its session and has no children", ephemerals_have_an_owner),
    ("ephemerals vanish when their session expires", expiry_removes_ephemerals),
    ("ephemerals vanish when their session is closed", close_removes_ephemerals),
    ("an expired session is told and refused until it is renewed", expiry_is_told),
    ("a live session is not renewed", live_sessions_are_not_renewed),
    ("a closed session is refused", closed_sessions_are_refused),
    ("watches do not outlive their session", watches_end_with_the_session),
];

fn ephemerals_have_an_owner(fixture: &dyn Fixture) {
    let (one, two) = (Client::connect(fixture), Client::connect(fixture));
    assert_ne!(one.session_id(), two.session_id());
    ok(one.calls().create("/e", "", CreateMode::Ephemeral));
    let (_, stat) = ok(two.calls().get("/e"));
    assert_eq!(stat.ephemeral_owner, one.session_id());
    for mode in [CreateMode::Persistent, CreateMode::Ephemeral, CreateMode::PersistentSequential] {
        expect_error(one.calls().create("/e/child", "", mode), OpError::NoChildrenForEphemerals);
    }
    ok(two.calls().set("/e", "written by another session", None));
    ok(two.calls().delete("/e", None));
    ok(two.calls().create("/e", "", CreateMode::Ephemeral));
    assert_eq!(ok(one.calls().get("/e")).1.ephemeral_owner, two.session_id());
}

fn expiry_removes_ephemerals(fixture: &dyn Fixture) {
    let (one, two) = (Client::connect(fixture), Client::connect(fixture));
    two.persistent("/ids", "");
    ok(one.calls().create("/ids/1", "", CreateMode::Ephemeral));
    ok(two.calls().create("/ids/2", "", CreateMode::Ephemeral));
    one.persistent("/ids/stays", "");
    ok(two.store.call(Request::children("/ids").watched()));
    ok(two.store.call(Request::get("/ids/1").watched()));
    fixture.expire(&*one.store);
    let mut events = [two.event(), two.event()].map(|event| match event {
        StoreEvent::Node { path, kind } => (path.to_string(), kind),
        other => panic!("unexpected {other:?}"),
    });
    events.sort();
    assert_eq!(events[0], ("/ids".to_owned(), NodeEventKind::ChildrenChanged));
    assert_eq!(events[1], ("/ids/1".to_owned(), NodeEventKind::Deleted));
    assert_eq!(ok(two.calls().children("/ids")), ["2", "stays"]);
}

fn close_removes_ephemerals(fixture: &dyn Fixture) {
    let (one, two) = (Client::connect(fixture), Client::connect(fixture));
    ok(one.calls().create("/controller", "one", CreateMode::Ephemeral));
    ok(two.store.call(Request::exists("/controller").watched()));
    one.store.close();
    fixture.settle();
    two.expect_node_event("/controller", NodeEventKind::Deleted);
    ok(two.calls().create("/controller", "two", CreateMode::Ephemeral));
    assert_eq!(ok(two.calls().get("/controller")).1.ephemeral_owner, two.session_id());
}

fn expiry_is_told(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    let old = client.session_id();
    ok(client.calls().create("/e", "", CreateMode::Ephemeral));
    fixture.expire(&*client.store);
    loop {
        match client.event() {
            StoreEvent::Disconnected => {}
            event => break assert_eq!(event, StoreEvent::SessionExpired),
        }
    }
    assert_eq!(client.store.session_id(), None);
    expect_error(client.calls().get("/"), StoreError::SessionExpired);
    expect_error(client.calls().create("/late", "", CreateMode::Persistent), StoreError::SessionExpired);
    client.store.renew();
    fixture.settle();
    let StoreEvent::Connected { session_id } = client.event() else { panic!("not connected") };
    assert_ne!(session_id, old);
    assert_eq!(client.session_id(), session_id);
    assert_eq!(ok(client.calls().exists("/late")), None);
    ok(client.calls().create("/e", "", CreateMode::Ephemeral));
    assert_eq!(ok(client.calls().get("/e")).1.ephemeral_owner, client.session_id());
}

fn live_sessions_are_not_renewed(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    let session_id = client.session_id();
    ok(client.calls().create("/e", "", CreateMode::Ephemeral));
    client.store.renew();
    client.expect_no_event();
    assert_eq!(client.session_id(), session_id);
    assert!(ok(client.calls().exists("/e")).is_some());
}

fn closed_sessions_are_refused(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.store.close();
    client.store.close();
    expect_error(client.calls().get("/"), StoreError::Closed);
    client.store.renew();
    expect_error(client.calls().get("/"), StoreError::Closed);
    assert_eq!(client.store.session_id(), None);
    assert!(client.events.try_recv().is_err(), "a closed session is told nothing");
}

fn watches_end_with_the_session(fixture: &dyn Fixture) {
    let (one, two) = (Client::connect(fixture), Client::connect(fixture));
    one.persistent("/a", "");
    ok(one.store.call(Request::get("/a").watched()));
    fixture.expire(&*one.store);
    while one.event() != StoreEvent::SessionExpired {}
    one.store.renew();
    fixture.settle();
    assert!(matches!(one.event(), StoreEvent::Connected { .. }));
    ok(two.calls().set("/a", "new", None));
    one.expect_no_event();
}
