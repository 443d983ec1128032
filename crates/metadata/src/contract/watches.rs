//! Watches: which reads set them, which writes fire them, and that each fires once.

use super::{Case, Client, Fixture, expect_error, ok};
use crate::store::NodeEventKind::{ChildrenChanged, Created, DataChanged, Deleted};
use crate::store::{CreateMode, Op, OpError, Request};
use std::sync::mpsc;

pub(super) const CASES: &[(&str, Case)] = &[
    ("a data watch fires once", data_watches_fire_once),
    ("a watch on an absent znode fires at its creation", absent_znodes_are_watched_by_exists),
    ("a read that fails sets no watch", failed_reads_set_no_watch),
    ("a child watch fires for children only", child_watches),
    ("a deletion is told once to who watches data and children", deletion_is_told_once),
    ("watching twice tells once", watching_twice),
    ("every watching session is told", every_session_is_told),
    ("a session is told of its own write before it is answered", own_writes_are_told_first),
    ("a read that was answered with new data comes after the event", events_come_before_new_data),
    ("a failed write fires nothing", failed_writes_fire_nothing),
    ("each write of a multi fires", multi_fires),
];

fn data_watches_fire_once(fixture: &dyn Fixture) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    writer.persistent("/a", "");
    ok(watcher.store.call(Request::get("/a").watched()));
    ok(watcher.calls().get("/a"));
    writer.persistent("/a/child", "");
    watcher.expect_no_event();
    ok(writer.calls().set("/a", "1", None));
    ok(writer.calls().set("/a", "2", None));
    watcher.expect_node_event("/a", DataChanged);
    watcher.expect_no_event();
    ok(watcher.store.call(Request::exists("/a").watched()));
    ok(writer.calls().delete("/a/child", None));
    ok(writer.calls().delete("/a", None));
    watcher.expect_node_event("/a", Deleted);
    watcher.expect_no_event();
}

fn absent_znodes_are_watched_by_exists(fixture: &dyn Fixture) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    ok(watcher.store.call(Request::exists("/controller").watched()));
    ok(writer.calls().create("/controller", "", CreateMode::Ephemeral));
    watcher.expect_node_event("/controller", Created);
    ok(writer.calls().delete("/controller", None));
    watcher.expect_no_event();
}

fn failed_reads_set_no_watch(fixture: &dyn Fixture) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    expect_error(watcher.store.call(Request::get("/a").watched()), OpError::NoNode);
    expect_error(watcher.store.call(Request::children("/a").watched()), OpError::NoNode);
    writer.persistent("/a", "");
    writer.persistent("/a/b", "");
    watcher.expect_no_event();
}

fn child_watches(fixture: &dyn Fixture) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    writer.persistent("/a", "");
    writer.persistent("/a/b", "");
    let watch = || ok(watcher.store.call(Request::children("/a").watched()));
    watch();
    ok(writer.calls().set("/a", "data", None));
    ok(writer.calls().set("/a/b", "data", None));
    writer.persistent("/a/b/grandchild", "");
    watcher.expect_no_event();
    writer.persistent("/a/c", "");
    writer.persistent("/a/d", "");
    watcher.expect_node_event("/a", ChildrenChanged);
    watcher.expect_no_event();
    watch();
    ok(writer.calls().delete("/a/c", None));
    watcher.expect_node_event("/a", ChildrenChanged);
}

fn deletion_is_told_once(fixture: &dyn Fixture) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    writer.persistent("/a", "");
    writer.persistent("/a/b", "");
    ok(watcher.store.call(Request::get("/a/b").watched()));
    ok(watcher.store.call(Request::children("/a/b").watched()));
    ok(watcher.store.call(Request::children("/a").watched()));
    ok(writer.calls().delete("/a/b", None));
    watcher.expect_node_event("/a/b", Deleted);
    watcher.expect_node_event("/a", ChildrenChanged);
    watcher.expect_no_event();
}

fn watching_twice(fixture: &dyn Fixture) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    writer.persistent("/a", "");
    ok(watcher.store.call(Request::get("/a").watched()));
    ok(watcher.store.call(Request::get("/a").watched()));
    ok(watcher.store.call(Request::exists("/a").watched()));
    ok(writer.calls().set("/a", "1", None));
    ok(writer.calls().set("/a", "2", None));
    watcher.expect_node_event("/a", DataChanged);
    watcher.expect_no_event();
}

fn every_session_is_told(fixture: &dyn Fixture) {
    let (one, two, writer) = (Client::connect(fixture), Client::connect(fixture), Client::connect(fixture));
    writer.persistent("/a", "");
    for watcher in [&one, &two] {
        ok(watcher.store.call(Request::get("/a").watched()));
    }
    ok(writer.calls().set("/a", "1", None));
    one.expect_node_event("/a", DataChanged);
    two.expect_node_event("/a", DataChanged);
    writer.expect_no_event();
}

fn own_writes_are_told_first(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/a", "");
    ok(client.store.call(Request::get("/a").watched()));
    ok(client.calls().set("/a", "1", None));
    assert!(client.events.try_recv().is_ok(), "the event comes before the answer");
}

fn events_come_before_new_data(fixture: &dyn Fixture) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    writer.persistent("/a", "old");
    for round in 0..50 {
        ok(watcher.store.call(Request::get("/a").watched()));
        let new = format!("new {round}");
        let (sender, written) = mpsc::channel();
        let request = Request::set("/a", new.as_str(), None);
        writer.store.submit(request, Box::new(move |answer| drop(sender.send(answer))));
        while watcher.text("/a") != new {}
        assert!(watcher.events.try_recv().is_ok(), "the new data was seen before the event");
        ok(ok(written.recv_timeout(super::PATIENCE)));
    }
}

fn failed_writes_fire_nothing(fixture: &dyn Fixture) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    writer.persistent("/a", "");
    ok(watcher.store.call(Request::get("/a").watched()));
    ok(watcher.store.call(Request::children("/a").watched()));
    let failing = writer.calls().multi(vec![
        Op::set("/a", "1", None),
        Op::create("/a/b", "", CreateMode::Persistent),
        Op::check("/a", 7),
    ]);
    assert!(failing.is_err());
    expect_error(writer.calls().set("/a", "1", Some(7)), OpError::BadVersion);
    watcher.expect_no_event();
}

fn multi_fires(fixture: &dyn Fixture) {
    let (watcher, writer) = (Client::connect(fixture), Client::connect(fixture));
    writer.persistent("/a", "");
    ok(watcher.store.call(Request::get("/a").watched()));
    ok(watcher.store.call(Request::exists("/b").watched()));
    ok(watcher.store.call(Request::children("/a").watched()));
    ok(writer.calls().multi(vec![
        Op::create("/b", "", CreateMode::Persistent),
        Op::set("/a", "1", None),
        Op::create("/a/x", "", CreateMode::Persistent),
    ]));
    watcher.expect_node_event("/b", Created);
    watcher.expect_node_event("/a", DataChanged);
    watcher.expect_node_event("/a", ChildrenChanged);
    watcher.expect_no_event();
}
