//! What a file keeps across restarts, who may hold it, and what happens when it is damaged.

use super::*;
use crate::store::{Blocking, CreateMode, Op, Value};

#[test]
fn a_restart_keeps_persistent_znodes_zxids_and_sequence_numbers_and_drops_ephemerals() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(crate::DEFAULT_STORE_FILE);
    let store = open(&path);
    let session = store.session(silent());
    let calls = Blocking::new(&session);
    calls.create("/a", "value", CreateMode::Persistent).expect("created");
    calls.create("/null", Value::NULL, CreateMode::Persistent).expect("created");
    calls.create("/a/e", "", CreateMode::Ephemeral).expect("created");
    calls.create("/a/n_", "", CreateMode::PersistentSequential).expect("created");
    calls.set("/a", "new", Some(0)).expect("written");
    calls.create("/gone", "", CreateMode::Persistent).expect("created");
    calls.delete("/gone", None).expect("deleted");
    calls.create("/last", "", CreateMode::Ephemeral).expect("created");
    let (zxid, session_id) = (store.tree().zxid(), session.session_id());
    let (data, stat) = calls.get("/a/n_0000000001").expect("it is there");
    let null = calls.get("/null").expect("it is there");
    store.shutdown();

    let store = open(&path);
    store.tree().check();
    assert_eq!(store.tree().zxid(), zxid, "also transactions of ephemerals only are counted");
    let session = store.session(silent());
    assert_ne!(session.session_id(), session_id);
    let calls = Blocking::new(&session);
    assert_eq!(calls.get("/a/n_0000000001"), Ok((data, stat)));
    assert_eq!(calls.get("/null"), Ok(null));
    assert_eq!(calls.children("/"), Ok(vec!["a".to_owned(), "null".to_owned()]));
    assert_eq!(calls.create("/a/n_", "", CreateMode::PersistentSequential).as_deref(), Ok("/a/n_0000000002"));
    assert_eq!(calls.set("/a", "newer", Some(1)).expect("written").version, 2);
    calls.create("/a/e", "", CreateMode::Ephemeral).expect("the ephemeral of the last run is gone");
    assert!(calls.get("/a/e").expect("it is there").1.czxid > zxid);
}

#[test]
fn a_file_is_held_by_one_store_until_it_shuts_down() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.redb");
    let store = open(&path);
    let Err(error) = EmbeddedStore::open_file(&path) else { panic!("opened twice") };
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    assert!(error.to_string().contains("in use by another process"), "{error}");
    drop(store);
    let reopened = open(&path);
    drop(reopened);
    let left = std::fs::read_dir(directory.path()).expect("listed").count();
    assert_eq!(left, 1, "nothing but the file is left");
}

#[test]
fn what_a_broken_creation_left_is_built_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.redb");
    std::fs::write(directory.path().join("store.redb.new"), b"half a file").expect("written");
    let store = open(&path);
    assert!(store.tree().is_empty());
}

#[test]
fn a_missing_directory_is_an_io_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let opened = EmbeddedStore::open_file(&directory.path().join("none").join("store.redb"));
    assert!(matches!(opened, Err(OpenError::Io { .. })));
}

/// A store with enough znodes to need inner pages, closed in order.
fn filled(path: &Path) -> Tree {
    let store = open(path);
    let session = store.session(silent());
    let ops =
        (0..400).map(|n| Op::create(format!("/topic-{n}"), "x".repeat(40).as_str(), CreateMode::Persistent));
    Blocking::new(&session).multi(ops.collect()).expect("created");
    store.tree()
}

#[test]
fn what_is_no_store_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.redb");
    for content in [Vec::new(), b"Kafka".to_vec(), vec![0; 8192]] {
        std::fs::write(&path, &content).expect("written");
        let Err(error) = EmbeddedStore::open_file(&path) else { panic!("{} bytes opened", content.len()) };
        assert!(matches!(error, OpenError::Corrupted { .. }), "{error}");
        assert_eq!(std::fs::read(&path).expect("read"), content, "what is refused is left alone");
    }
}

#[test]
fn a_damaged_or_cut_file_is_refused_or_whole_but_never_another_tree() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.redb");
    let tree = filled(&path);
    let sound = std::fs::read(&path).expect("read");
    let mut refused = 0;
    let damages =
        (0..60).map(|n| (n * sound.len() / 60, true)).chain((1..10).map(|n| (n * sound.len() / 10, false)));
    for (at, flips) in damages {
        let mut bad = sound.clone();
        if flips {
            bad[at..].iter_mut().take(16).for_each(|byte| *byte ^= 0x55);
        } else {
            bad.truncate(at);
        }
        std::fs::write(&path, &bad).expect("written");
        match EmbeddedStore::open_file(&path) {
            Ok(store) => assert_eq!(store.tree(), tree, "damage at {at} went unnoticed"),
            Err(OpenError::Corrupted { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 9, "only {refused} damages were noticed");
}
