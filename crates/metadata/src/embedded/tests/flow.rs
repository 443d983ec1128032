//! How requests flow to the disk: shared transactions, reads behind writes, limits, the end.

use super::crash::open_on;
use super::crash_file::CrashFile;
use super::*;
use crate::store::{CreateMode, MAX_WAITING_REQUESTS, Request, Response, StoreError};
use std::sync::mpsc::{self, Receiver, Sender};

type Answers = Receiver<(usize, Result<Response, StoreError>)>;

fn silent() -> EventSink {
    Arc::new(|_| {})
}

/// Keeps the store's thread busy in an answer until the sender is dropped.
fn hold(session: &EmbeddedSession) -> Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    session.submit(
        Request::exists("/"),
        Box::new(move |_| {
            begin.send(()).unwrap();
            let _ = released.recv();
        }),
    );
    begun.recv().expect("the thread is held");
    release
}

fn submit_all(session: &EmbeddedSession, requests: impl IntoIterator<Item = Request>) -> Answers {
    let (sender, answers) = mpsc::channel();
    for (number, request) in requests.into_iter().enumerate() {
        let sender = sender.clone();
        session.submit(request, Box::new(move |answer| drop(sender.send((number, answer)))));
    }
    answers
}

#[test]
fn writes_that_wait_share_one_durable_transaction() {
    let file = CrashFile::default();
    let store = open_on(&file);
    let session = store.session(silent());
    let syncs_of = |call: &mut dyn FnMut()| {
        let before = file.syncs();
        call();
        file.syncs() - before
    };
    let create = |n: usize| Request::create(format!("/{n}"), "", CreateMode::Persistent);
    let syncs_of_one = syncs_of(&mut || drop(session.call(create(1000))));
    assert!(syncs_of_one > 0);
    let syncs_of_many = syncs_of(&mut || {
        let release = hold(&session);
        let answers = submit_all(&session, (0..500).map(create));
        drop(release);
        assert!(answers.iter().all(|(_, answer)| answer.is_ok()));
    });
    // The file may have to grow, which costs a sync of its own.
    assert!(syncs_of_many <= syncs_of_one + 1, "{syncs_of_many} syncs");
    assert_eq!(store.tree().len(), 502);
}

#[test]
fn a_read_is_answered_only_when_what_it_saw_is_durable() {
    let file = CrashFile::default();
    let store = open_on(&file);
    let (writer, reader) = (store.session(silent()), store.session(silent()));
    writer.call(Request::exists("/")).expect("answered");
    let (begin, begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    file.on_sync(move || {
        begin.send(()).unwrap();
        let _ = released.lock().expect("not poisoned").recv();
    });
    let written = submit_all(&writer, [Request::create("/a", "", CreateMode::Persistent)]);
    begun.recv().expect("the sync has begun");
    let read = submit_all(&reader, [Request::exists("/a")]);
    assert!(written.try_recv().is_err() && read.try_recv().is_err());
    drop(release);
    let (_, answer) = read.recv().expect("answered");
    assert!(matches!(answer, Ok(Response::Exists(Some(_)))), "{answer:?}");
    assert!(written.try_recv().is_ok(), "the write is answered first");
}

#[test]
fn more_requests_than_the_limit_are_refused_at_once() {
    let store = EmbeddedStore::open_memory().expect("it opens");
    let session = store.session(silent());
    let release = hold(&session);
    let answers = submit_all(&session, (0..=MAX_WAITING_REQUESTS).map(|_| Request::exists("/")));
    assert_eq!(answers.try_recv(), Ok((MAX_WAITING_REQUESTS, Err(StoreError::Overloaded))));
    assert_eq!(store.waiting(), MAX_WAITING_REQUESTS);
    drop(release);
    assert!(answers.iter().take(MAX_WAITING_REQUESTS).all(|(_, answer)| answer.is_ok()));
    session.call(Request::exists("/")).expect("there is room again");
}

#[test]
fn a_shutdown_answers_what_waits_and_refuses_what_comes_later() {
    let store = EmbeddedStore::open_memory().expect("it opens");
    let session = store.session(silent());
    let release = hold(&session);
    let waiting = submit_all(&session, [Request::create("/a", "", CreateMode::Persistent)]);
    drop(release);
    store.shutdown();
    assert!(waiting.recv().expect("answered").1.is_ok());
    assert_eq!(session.call(Request::get("/a")), Err(StoreError::Closed));
    session.close();
    assert_eq!(session.call(Request::get("/a")), Err(StoreError::Closed));
}

#[test]
fn a_panic_in_an_answer_does_not_end_the_store() {
    let store = EmbeddedStore::open_memory().expect("it opens");
    let session = store.session(silent());
    session.submit(Request::exists("/"), Box::new(|_| panic!("on purpose")));
    session.call(Request::exists("/")).expect("answered");
}

#[test]
fn a_store_without_a_thread_delivers_when_pumped_and_uses_the_given_clock() {
    let store = EmbeddedStore::open_manual(Arc::new(|| Millis(7)));
    let session = store.session(silent());
    let answers =
        submit_all(&session, [Request::create("/a", "", CreateMode::Persistent), Request::exists("/a")]);
    assert!(answers.try_recv().is_err());
    assert!(store.pump());
    assert!(!store.pump());
    assert_eq!(answers.recv().expect("answered").0, 0);
    let (_, answer) = answers.recv().expect("answered");
    let Ok(Response::Exists(Some(stat))) = answer else { panic!("{answer:?}") };
    assert_eq!((stat.ctime_ms, stat.mtime_ms), (7, 7));
}

#[test]
fn a_pipeline_of_more_requests_than_may_wait_is_answered_whole() {
    let store = EmbeddedStore::open_memory().expect("it opens");
    let session = store.session(silent());
    let requests = (0..=MAX_WAITING_REQUESTS).map(|_| Request::exists("/")).collect();
    let answers = crate::store::Blocking::new(&session).pipeline(requests);
    assert_eq!(answers.len(), MAX_WAITING_REQUESTS + 1);
    assert!(answers.iter().all(Result::is_ok));
}
