//! The embedded store against the contract, and what only a file can show: restarts, locks, damage, lost writes.

use super::*;
use crate::contract::{self, Fixture};
use crate::store::{Blocking, CreateMode, Op, Request, Store, StoreError, Value};
use std::sync::mpsc;

struct Embedded {
    store: EmbeddedStore,
    _directory: Option<tempfile::TempDir>,
}

impl Fixture for Embedded {
    fn connect(&self, sink: EventSink) -> Arc<dyn Store> {
        Arc::new(self.store.session(sink))
    }

    fn expire(&self, store: &dyn Store) {
        self.store.expire(store.session_id().expect("the session is live"));
        self.store.pump();
    }

    fn settle(&self) {
        self.store.pump();
    }
}

fn silent() -> EventSink {
    Arc::new(|_| {})
}

fn open(path: &Path) -> EmbeddedStore {
    EmbeddedStore::open_file(path).expect("the file opens")
}

#[test]
fn the_store_in_memory_passes_the_contract() {
    contract::run(&|| {
        Box::new(Embedded { store: EmbeddedStore::open_memory().expect("it opens"), _directory: None })
    });
}

#[test]
fn the_store_in_a_file_passes_the_contract() {
    contract::run(&|| {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(&directory.path().join("store.redb"));
        Box::new(Embedded { store, _directory: Some(directory) })
    });
}

#[test]
fn the_store_without_a_thread_passes_the_contract() {
    contract::run(&|| {
        let store = EmbeddedStore::open_manual(Arc::new(|| Millis(7)));
        Box::new(Embedded { store, _directory: None })
    });
}

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
