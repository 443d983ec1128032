//! Transactions of several writes: all or nothing, each seeing those before it.

use super::{Case, Client, Fixture, expect_error, ok};
use crate::store::{CreateMode, Op, OpError, OpResult, StoreError, Value};

pub(super) const CASES: &[(&str, Case)] = &[
    ("a multi answers each operation in order", answers_in_order),
    ("a multi that fails changes nothing and names the operation", all_or_nothing),
    ("a multi fenced by a version is refused once the version moved", fenced_by_version),
    ("operations of a multi see those before them", operations_see_each_other),
    ("a multi of nothing succeeds", empty_multi),
    ("only one of two elections on one epoch wins", election),
];

fn fails_at(index: usize, error: OpError) -> StoreError {
    StoreError::Multi { index, error }
}

fn answers_in_order(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/epoch", "1");
    client.persistent("/old", "");
    let results = ok(client.calls().multi(vec![
        Op::check("/epoch", 0),
        Op::create("/new", "value", CreateMode::Persistent),
        Op::set("/epoch", "2", Some(0)),
        Op::delete("/old", Some(0)),
    ]));
    let [OpResult::Checked, created, OpResult::Set { stat }, OpResult::Deleted] = results.as_slice() else {
        panic!("unexpected results {results:?}");
    };
    assert_eq!(*created, OpResult::Created { path: "/new".to_owned(), stat: None });
    assert_eq!(stat.version, 1);
    let (_, new) = ok(client.calls().get("/new"));
    assert_eq!(new.czxid, stat.mzxid, "one transaction has one zxid");
}

fn all_or_nothing(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/a", "before");
    client.persistent("/a/child", "");
    client.persistent("/b", "");
    let before = ["/", "/a", "/a/child", "/b"].map(|path| ok(client.calls().get(path)));
    let failing = client.calls().multi(vec![
        Op::set("/a", "after", None),
        Op::create("/a/seq_", "", CreateMode::PersistentSequential),
        Op::delete("/a/child", None),
        Op::create("/c", "", CreateMode::Ephemeral),
        Op::delete("/b", None),
        Op::create("/b", "again", CreateMode::Persistent),
        Op::create("/a/x/y", "", CreateMode::Persistent),
        Op::delete("/a", None),
    ]);
    expect_error(failing, fails_at(6, OpError::NoNode));
    let after = ["/", "/a", "/a/child", "/b"].map(|path| ok(client.calls().get(path)));
    assert_eq!(before, after);
    assert_eq!(ok(client.calls().exists("/c")), None);
    let next = ok(client.calls().create("/a/seq_", "", CreateMode::PersistentSequential));
    assert_eq!(next, "/a/seq_0000000001", "a failed transaction uses up no sequence number");
}

fn fenced_by_version(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    client.persistent("/controller_epoch", "1");
    client.persistent("/state", "old");
    ok(client.calls().set("/controller_epoch", "2", Some(0)));
    let fenced = |version| vec![Op::check("/controller_epoch", version), Op::set("/state", "new", None)];
    expect_error(client.calls().multi(fenced(0)), fails_at(0, OpError::BadVersion));
    assert_eq!(client.text("/state"), "old");
    ok(client.calls().multi(fenced(1)));
    assert_eq!(client.text("/state"), "new");
    let missing = vec![Op::check("/not-there", 0), Op::set("/state", "newer", None)];
    expect_error(client.calls().multi(missing), fails_at(0, OpError::NoNode));
}

fn operations_see_each_other(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    let results = ok(client.calls().multi(vec![
        Op::create("/brokers", Value::NULL, CreateMode::Persistent),
        Op::create("/brokers/1", Value::NULL, CreateMode::Ephemeral),
        Op::set("/brokers/1", "registration", Some(0)),
        Op::create("/brokers/n_", "", CreateMode::PersistentSequential),
        Op::create("/brokers/n_", "", CreateMode::PersistentSequential),
    ]));
    let Some(OpResult::Set { stat }) = results.get(2) else { panic!("unexpected results {results:?}") };
    assert_eq!(stat.ephemeral_owner, client.session_id());
    assert_eq!(stat.czxid, stat.mzxid);
    assert_eq!(
        ok(client.calls().get("/brokers/1")).1,
        *stat,
        "the czxid of a registration is known from the multi"
    );
    assert_eq!(ok(client.calls().children("/brokers")), ["1", "n_0000000001", "n_0000000002"]);
}

fn empty_multi(fixture: &dyn Fixture) {
    let client = Client::connect(fixture);
    assert!(ok(client.calls().multi(Vec::new())).is_empty());
}

fn election(fixture: &dyn Fixture) {
    let (one, two) = (Client::connect(fixture), Client::connect(fixture));
    one.persistent("/controller_epoch", "0");
    let elect = |name: &str| {
        vec![
            Op::create("/controller", name, CreateMode::Ephemeral),
            Op::set("/controller_epoch", "1", Some(0)),
        ]
    };
    ok(one.calls().multi(elect("one")));
    expect_error(two.calls().multi(elect("two")), fails_at(0, OpError::NodeExists));
    ok(one.calls().delete("/controller", None));
    expect_error(two.calls().multi(elect("two")), fails_at(1, OpError::BadVersion));
    assert_eq!(ok(one.calls().exists("/controller")), None);
}
