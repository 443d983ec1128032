//! Single writes and reads: results, versions, stats, sequence numbers and errors.

use super::{Case, Client, Fixture, expect_error, ok};
use crate::store::{CreateMode, OpError, OpResult, Request, Response, SessionId, Value};
use bytes::Bytes;
use std::sync::mpsc;

pub(super) const CASES: &[(&str, Case)] = &[
    ("what was created is read back with its stat", created_is_read_back),
    ("null is not empty", null_is_not_empty),
    ("each write of the data raises the version", writes_raise_the_version),
    ("a write on another version is refused", version_is_checked),
    ("a missing znode or parent is an error", missing_znodes),
    ("what exists is not created again", existing_znodes),
    ("a znode with children is not deleted", not_empty),
    ("malformed paths are refused", malformed_paths),
    ("the parent counts its children", parents_count_children),
    ("sequence numbers count every child ever created", sequence_numbers),
    ("children are listed in order", children_are_sorted),
    ("requests are answered in order and see each other", pipelined_requests),
    ("of concurrent writes on one version one wins", compare_and_set),
];

fn created_is_read_back(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    let created = ok(client.store.call(Request::create("/a", "one", CreateMode::Persistent)));
    let Response::Written(OpResult::Created { path, stat: Some(stat) }) = created else {
        panic!("unexpected answer {created:?}");
    };
    assert_eq!(path, "/a");
    let (data, read) = ok(client.calls().get("/a"));
    assert_eq!(data, Some(Bytes::from_static(b"one")));
    assert_eq!(read, stat);
    assert_eq!((stat.version, stat.cversion, stat.num_children, stat.data_length), (0, 0, 0, 3));
    assert_eq!((stat.mzxid, stat.pzxid), (stat.czxid, stat.czxid));
    assert_eq!(stat.mtime_ms, stat.ctime_ms);
    assert_eq!(stat.ephemeral_owner, SessionId::NONE);
    client.persistent("/b", "");
    let (_, later) = ok(client.calls().get("/b"));
    assert!(later.czxid > stat.czxid);
    assert_eq!(ok(client.calls().exists("/a")), Some(stat));
    assert_eq!(ok(client.calls().exists("/c")), None);
}

fn null_is_not_empty(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    ok(client.calls().create("/null", Value::NULL, CreateMode::Persistent));
    ok(client.calls().create("/empty", "", CreateMode::Persistent));
    assert_eq!(ok(client.calls().get("/null")).0, None);
    assert_eq!(ok(client.calls().get("/empty")).0, Some(Bytes::new()));
    ok(client.calls().set("/empty", Value::NULL, None));
    assert_eq!(ok(client.calls().get("/empty")).0, None);
}

fn writes_raise_the_version(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/a", "zero");
    let (_, before) = ok(client.calls().get("/a"));
    let first = ok(client.calls().set("/a", "first", None));
    let second = ok(client.calls().set("/a", "second", Some(1)));
    let third = ok(client.calls().set("/a", "third", Some(-1)));
    assert_eq!((first.version, second.version, third.version), (1, 2, 3));
    assert!(before.mzxid < first.mzxid && first.mzxid < second.mzxid);
    assert_eq!((third.czxid, third.cversion), (before.czxid, 0));
    assert_eq!(client.text("/a"), "third");
}

fn version_is_checked(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/a", "zero");
    expect_error(client.calls().set("/a", "one", Some(1)), OpError::BadVersion);
    expect_error(client.calls().delete("/a", Some(1)), OpError::BadVersion);
    assert_eq!(client.text("/a"), "zero");
    ok(client.calls().delete("/a", Some(0)));
    assert_eq!(ok(client.calls().exists("/a")), None);
}

fn missing_znodes(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    expect_error(client.calls().get("/a"), OpError::NoNode);
    expect_error(client.calls().children("/a"), OpError::NoNode);
    expect_error(client.calls().set("/a", "", None), OpError::NoNode);
    expect_error(client.calls().set("/a", "", Some(3)), OpError::NoNode);
    expect_error(client.calls().delete("/a", None), OpError::NoNode);
    expect_error(client.calls().create("/a/b", "", CreateMode::Persistent), OpError::NoNode);
    expect_error(client.calls().create("/a/b-", "", CreateMode::PersistentSequential), OpError::NoNode);
}

fn existing_znodes(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/a", "one");
    expect_error(client.calls().create("/a", "two", CreateMode::Persistent), OpError::NodeExists);
    expect_error(client.calls().create("/a", "two", CreateMode::Ephemeral), OpError::NodeExists);
    assert_eq!(client.text("/a"), "one");
}

fn not_empty(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/a", "");
    client.persistent("/a/b", "");
    expect_error(client.calls().delete("/a", None), OpError::NotEmpty);
    ok(client.calls().delete("/a/b", None));
    ok(client.calls().delete("/a", None));
}

fn malformed_paths(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    for path in ["", "a", "/a/", "//", "/a//b", "/./a", "/a/..", "/a\u{1}"] {
        expect_error(client.calls().create(path, "", CreateMode::Persistent), OpError::BadArguments);
        expect_error(client.calls().get(path), OpError::BadArguments);
        expect_error(client.calls().delete(path, None), OpError::BadArguments);
    }
    expect_error(client.calls().delete("/", None), OpError::BadArguments);
}

fn parents_count_children(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/a", "");
    client.persistent("/a/b", "");
    client.persistent("/a/c", "");
    ok(client.calls().delete("/a/b", None));
    let (_, parent) = ok(client.calls().get("/a"));
    assert_eq!((parent.num_children, parent.cversion, parent.version), (1, 3, 0));
    assert!(parent.pzxid > parent.mzxid);
    assert_eq!(ok(client.calls().exists("/a")), Some(parent));
}

fn sequence_numbers(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/a", "");
    let sequential = |prefix: &str| ok(client.calls().create(prefix, "", CreateMode::PersistentSequential));
    assert_eq!(sequential("/a/n_"), "/a/n_0000000000");
    assert_eq!(sequential("/a/n_"), "/a/n_0000000001");
    client.persistent("/a/other", "");
    ok(client.calls().delete("/a/n_0000000001", None));
    assert_eq!(sequential("/a/m_"), "/a/m_0000000003");
    assert_eq!(sequential("/a/"), "/a/0000000004");
    let ephemeral = ok(client.calls().create("/a/n_", "", CreateMode::EphemeralSequential));
    assert_eq!(ephemeral, "/a/n_0000000005");
}

fn children_are_sorted(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/a", "");
    for name in ["b", "a", "b-x", "10", "9", "b.y"] {
        client.persistent(&format!("/a/{name}"), "");
    }
    client.persistent("/a/b/grandchild", "");
    let names = ok(client.calls().children("/a"));
    assert_eq!(names, ["10", "9", "a", "b", "b-x", "b.y"]);
    assert!(ok(client.calls().children("/a/a")).is_empty());
}

fn pipelined_requests(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/a", "");
    let (sender, answers) = mpsc::channel();
    for number in 0..500 {
        let sender = sender.clone();
        let request = match number % 2 {
            0 => Request::set("/a", number.to_string().as_str(), None),
            _ => Request::get("/a"),
        };
        client.store.submit(request, Box::new(move |answer| drop(sender.send((number, answer)))));
    }
    client.barrier();
    for expected in 0..500 {
        let (number, answer) = ok(answers.try_recv());
        assert_eq!(number, expected);
        if let Response::Data { data, .. } = ok(answer) {
            assert_eq!(data, Some(Bytes::from((number - 1).to_string())));
        }
    }
}

fn compare_and_set(fixture: &dyn Fixture) {
    const ROUNDS: i32 = 25;
    let clients = [Client::connect(fixture), Client::connect(fixture), Client::connect(fixture)];
    let [first, ..] = &clients;
    first.persistent("/counter", "0");
    std::thread::scope(|scope| {
        for client in &clients {
            let store = client.store.clone();
            scope.spawn(move || {
                let calls = crate::store::Blocking::new(&*store);
                for _ in 0..ROUNDS {
                    loop {
                        let (data, stat) = ok(calls.get("/counter"));
                        let count: i32 = ok(String::from_utf8_lossy(&data.unwrap_or_default()).parse());
                        match calls.set("/counter", (count + 1).to_string().as_str(), Some(stat.version)) {
                            Ok(_) => break,
                            Err(error) => assert_eq!(error.op_error(), Some(OpError::BadVersion)),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(first.text("/counter"), (3 * ROUNDS).to_string());
}
