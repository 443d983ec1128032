//! Round trips between stores, and what an import refuses.

use super::*;
use crate::embedded::{EmbeddedSession, EmbeddedStore};
use crate::store::{Blocking, CreateMode, Op, SessionId, Value};
use crate::tree::Tree;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::types::Millis;

fn store() -> (EmbeddedStore, EmbeddedSession) {
    let store = EmbeddedStore::open_manual(Arc::new(|| Millis(1)));
    let session = store.session(Arc::new(|_| {}));
    (store, session)
}

fn exported(session: &EmbeddedSession) -> String {
    let mut out = Vec::new();
    export(session, path::ROOT, &mut out).expect("exported");
    String::from_utf8(out).expect("text")
}

fn load(session: &EmbeddedSession, text: &str, on_conflict: OnConflict) -> Result<Imported, TransferError> {
    import(session, &mut text.as_bytes(), &[path::ROOT], on_conflict)
}

fn data(tree: &Tree) -> BTreeMap<String, Option<Bytes>> {
    tree.iter().map(|(path, data, _)| (path.to_string(), data.clone())).collect()
}

#[test]
fn a_file_has_one_line_for_each_persistent_znode() {
    let (_store, session) = store();
    let calls = Blocking::new(&session);
    for (path, value) in [
        ("/brokers", Value::NULL),
        ("/brokers/ids", Value::NULL),
        ("/brokers/seqid", "".into()),
        ("/config", "".into()),
        ("/config/changes", Value::NULL),
        ("/raw", vec![0xff, 0x00].into()),
        ("/zookeeper", "".into()),
        ("/zookeeper/quota", "".into()),
        ("/text", "{\"a\":\"é\"}".into()),
    ] {
        calls.create(path, value, CreateMode::Persistent).expect("created");
    }
    calls.create("/brokers/ids/1", "", CreateMode::Ephemeral).expect("created");
    calls.create("/config/changes/config_change_", "", CreateMode::PersistentSequential).expect("created");
    calls.set("/brokers/seqid", "", None).expect("written");
    let expected = [
        r#"{"path":"/brokers","value":null}"#,
        r#"{"path":"/brokers/ids","value":null}"#,
        r#"{"path":"/brokers/seqid","value":"","version":1}"#,
        r#"{"path":"/config","value":""}"#,
        r#"{"path":"/config/changes","value":null}"#,
        r#"{"path":"/raw","base64":"/wA="}"#,
        r#"{"path":"/text","value":"{\"a\":\"é\"}"}"#,
    ];
    assert_eq!(exported(&session), expected.map(|line| format!("{line}\n")).concat());
    let mut out = Vec::new();
    assert_eq!(export(&session, "/config", &mut out).expect("exported"), 2);
}

#[test]
fn an_import_raises_the_count_of_generated_broker_ids() {
    let (_store, session) = store();
    let line = r#"{"path":"/brokers/seqid","value":null,"version":250}"#;
    let imported = load(&session, line, OnConflict::Refuse).expect("imported");
    assert_eq!(imported, Imported { created: 2, replaced: 0, unchanged: 0 });
    let (data, stat) = Blocking::new(&session).get("/brokers/seqid").expect("it is there");
    assert_eq!((data, stat.version), (None, 250));
    load(&session, line, OnConflict::Refuse).expect("imported");
    assert_eq!(Blocking::new(&session).get("/brokers/seqid").expect("it is there").1.version, 250);
}

#[test]
fn only_the_named_subtrees_are_imported() {
    let (store, session) = store();
    let text = r#"
        {"path":"/config/topics/t","value":"c"}
        {"path":"/config/topics","value":null}
        {"path":"/brokers/topics/t","value":"a"}
        {"path":"/config/topics2","value":""}
        {"path":"/config/changes/config_change_0000000007","value":"passing"}
    "#;
    let imported =
        import(&session, &mut text.as_bytes(), &["/config/topics", "/config/changes"], OnConflict::Refuse);
    assert_eq!(imported.expect("imported"), Imported { created: 3, replaced: 0, unchanged: 0 });
    let paths: Vec<String> = data(&store.tree()).into_keys().collect();
    assert_eq!(paths, ["/", "/config", "/config/topics", "/config/topics/t"]);
}

#[test]
fn other_data_is_a_conflict_and_nothing_is_written_unless_it_may_be_replaced() {
    let (store, session) = store();
    let calls = Blocking::new(&session);
    calls.create("/a", "old", CreateMode::Persistent).expect("created");
    calls.create("/empty", Value::NULL, CreateMode::Persistent).expect("created");
    calls.create("/same", "s", CreateMode::Persistent).expect("created");
    let text = r#"
        {"path":"/0","value":"first"}
        {"path":"/a","value":"new"}
        {"path":"/empty","value":"filled"}
        {"path":"/same","value":"s"}
    "#;
    let before = store.tree();
    let refused = load(&session, text, OnConflict::Refuse);
    let Err(TransferError::Conflict { count, first }) = refused else { panic!("{refused:?}") };
    assert_eq!((count, first.as_str()), (1, "/a"));
    assert_eq!(store.tree(), before);
    let imported = load(&session, text, OnConflict::Replace).expect("imported");
    assert_eq!(imported, Imported { created: 1, replaced: 2, unchanged: 1 });
    let found = data(&store.tree());
    assert_eq!(found["/a"].as_deref(), Some(b"new".as_slice()));
    assert_eq!(found["/empty"].as_deref(), Some(b"filled".as_slice()));
    calls.create("/e", "x", CreateMode::Ephemeral).expect("created");
    let ephemeral = load(&session, r#"{"path":"/e","value":"x"}"#, OnConflict::Replace);
    assert!(matches!(ephemeral, Err(TransferError::Conflict { .. })), "{ephemeral:?}");
}

#[test]
fn malformed_lines_are_refused_with_their_number() {
    let (store, session) = store();
    for (bad, reason) in [
        (r#"{"path":"/a"}"#, "one of"),
        (r#"{"path":"/a","value":"","base64":""}"#, "one of"),
        (r#"{"path":"/a","value":1}"#, "invalid type"),
        (r#"{"path":"/a","base64":"%"}"#, "nvalid"),
        (r#"{"path":"a","value":""}"#, "no path"),
        (r#"{"path":"/","value":""}"#, "no path"),
        (r#"{"path":"/a","value":"","ephemeral":true}"#, "unknown field"),
        (r#"{"path":"/first","value":""}"#, "twice"),
        (r#"{"path":"/a","value":"","version":100001}"#, "version"),
        ("/a", "expected"),
    ] {
        let text = format!("{{\"path\":\"/first\",\"value\":\"\"}}\n{bad}\n");
        let refused = load(&session, &text, OnConflict::Refuse);
        let Err(TransferError::Line { line, reason: found }) = refused else { panic!("{bad}: {refused:?}") };
        assert_eq!(line, 2, "{bad}");
        assert!(found.contains(reason), "{bad}: {found}");
    }
    let long = " ".repeat(MAX_LINE_BYTES + 1);
    assert!(matches!(load(&session, &long, OnConflict::Refuse), Err(TransferError::Line { line: 1, .. })));
    assert!(store.tree().is_empty());
}

#[test]
fn a_large_tree_is_carried_in_transactions_of_limited_size() {
    let (from, session) = store();
    let create = |path: String, data: Vec<u8>| Op::create(path, data, CreateMode::Persistent);
    let ops = (0..1500).map(|n| create(format!("/n-{n}"), vec![b'x'; n]));
    let large =
        ["/p", "/p/q", "/p/q/r"].map(|path| create(path.to_owned(), vec![7; BATCH_BYTES_OF_A_LARGE_VALUE]));
    Blocking::new(&session).multi(ops.chain(large).collect()).expect("created");
    let (to, other) = store();
    let imported = load(&other, &exported(&session), OnConflict::Refuse).expect("imported");
    assert_eq!(imported.created, 1503);
    assert_eq!(data(&to.tree()), data(&from.tree()));
    assert!(to.tree().zxid() > 15, "several transactions");
}

const BATCH_BYTES_OF_A_LARGE_VALUE: usize = 600 * 1024;

fn any_tree() -> impl Strategy<Value = Vec<Op>> {
    let name = prop::sample::select(vec!["a", "b", "al%20ice", "<default>", "a.b"]);
    let path = prop::collection::vec(name, 1..5).prop_map(|names| format!("/{}", names.join("/")));
    let data = prop::option::of(prop_oneof![
        any::<String>().prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..20),
    ]);
    let op = (path, data, prop::bool::weighted(0.2)).prop_map(|(path, data, is_ephemeral)| Op::Create {
        path,
        data: data.map(Bytes::from),
        mode: if is_ephemeral { CreateMode::Ephemeral } else { CreateMode::Persistent },
    });
    prop::collection::vec(op, 0..60)
}

proptest! {
    #[test]
    fn a_tree_comes_back_from_its_file(ops in any_tree()) {
        let (from, session) = store();
        for op in ops {
            // Some have no parent or are there already.
            let _ = Blocking::new(&session).multi(vec![op]);
        }
        let text = exported(&session);
        let (to, other) = store();
        let imported = load(&other, &text, OnConflict::Refuse).expect("imported");
        let mut expected = data(&from.tree());
        for (path, _, stat) in from.tree().iter() {
            if stat.ephemeral_owner != SessionId::NONE {
                expected.remove(&**path);
            }
        }
        prop_assert_eq!(data(&to.tree()), expected);
        prop_assert_eq!(exported(&other), text.clone());
        let again = load(&other, &text, OnConflict::Refuse).expect("imported again");
        prop_assert_eq!(again, Imported { created: 0, replaced: 0, unchanged: imported.created });
    }

    #[test]
    fn no_file_makes_an_import_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let (_store, session) = store();
        let _ = import(&session, &mut text.as_slice(), &[path::ROOT], OnConflict::Replace);
    }
}
