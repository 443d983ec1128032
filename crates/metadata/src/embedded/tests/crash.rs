//! Crashes at every write, change of length and sync of a run: what was answered is there, and nothing else but the one
//! transaction that was under way.

use super::crash_file::CrashFile;
use super::*;
use crate::store::{CreateMode, Op, Request, StoreError};
use std::sync::mpsc;

const VARIANTS_OF_EACH_CRASH: u64 = 2;

pub(super) fn open_on(file: &CrashFile) -> EmbeddedStore {
    let (backend, tree) = FileBackend::open_backend(file.clone()).expect("it opens");
    start(backend, tree)
}

fn start(backend: FileBackend, tree: Tree) -> EmbeddedStore {
    EmbeddedStore::start(tree, Backend::File(backend), Arc::new(|| Millis(1))).expect("it starts")
}

fn script() -> Vec<Request> {
    let value = |n: usize| "v".repeat(n % 700);
    let create = |n: usize| Op::create(format!("/n-{n}"), value(n * 97).as_str(), CreateMode::Persistent);
    vec![
        Request::Multi((0..60).map(create).collect()),
        Request::set("/n-1", value(3).as_str(), Some(0)),
        Request::create("/n-1/seq_", "", CreateMode::PersistentSequential),
        Request::Multi((0..30).map(|n| Op::delete(format!("/n-{}", n + 20), None)).collect()),
        Request::create("/n-1/seq_", "", CreateMode::PersistentSequential),
        Request::Multi((60..90).map(create).collect()),
        Request::delete("/n-1/seq_0000000000", None),
    ]
}

/// Runs the script until it ends or the disk fails. Returns the trees that may be found afterwards, and whether the
/// script ended.
fn run(file: &CrashFile) -> (Vec<Tree>, bool) {
    // The opening may write too.
    let Ok((backend, tree)) = FileBackend::open_backend(file.clone()) else {
        return (vec![Tree::new()], false);
    };
    let store = start(backend, tree);
    let session = store.session(Arc::new(|_| {}));
    let mut answered = store.tree();
    for request in script() {
        match session.call(request) {
            Ok(_) => answered = store.tree(),
            Err(StoreError::Failed(_)) => return (vec![answered, store.tree()], false),
            Err(error) => panic!("{error}"),
        }
    }
    (vec![answered], true)
}

#[test]
fn whenever_the_machine_stops_the_file_holds_what_was_answered() {
    let mut random = fastrand::Rng::with_seed(1);
    let created = CrashFile::default();
    drop(open_on(&created));
    let image = created.crash(&mut random);
    let mut kept_without_answer = 0;
    for writes in 0.. {
        let file = CrashFile::with_image(image.clone());
        file.fail_after(writes);
        let (candidates, is_complete) = run(&file);
        for _ in 0..VARIANTS_OF_EACH_CRASH {
            let image = file.crash(&mut random);
            let (_, tree) =
                FileBackend::open_backend(CrashFile::with_image(image)).expect("it opens after a crash");
            tree.check();
            let found = candidates.iter().position(|candidate| *candidate == tree);
            kept_without_answer += found.expect("what was answered or what was under way");
        }
        if is_complete {
            assert!(writes > 50, "only {writes} writes were tried");
            break;
        }
    }
    assert!(kept_without_answer > 0, "no crash ever came between the disk and the answer");
}

#[test]
fn a_failing_disk_is_told_and_ends_the_store() {
    let file = CrashFile::default();
    let store = open_on(&file);
    let (sender, events) = mpsc::channel();
    let sender = Mutex::new(sender);
    let session =
        store.session(Arc::new(move |event| drop(sender.lock().expect("not poisoned").send(event))));
    session.call(Request::create("/a", "", CreateMode::Persistent)).expect("created");
    file.fail_after(0);
    let failed = session.call(Request::create("/b", "", CreateMode::Persistent));
    let Err(StoreError::Failed(reason)) = failed else { panic!("{failed:?}") };
    assert!(reason.contains("the disk is gone"), "{reason}");
    assert!(file.has_failed());
    let failed = session.call(Request::get("/a"));
    assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}");
    let events: Vec<_> = events.try_iter().skip(1).collect();
    assert_eq!(events, [StoreEvent::Failed { reason }], "the failure is told once");
}
