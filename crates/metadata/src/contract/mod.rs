//! The suite that every store passes. It speaks of ZooKeeper's semantics only through [`Store`], so that the embedded
//! store and a real ensemble are held to the same.
//!
//! Nothing here sleeps: what must not arrive is looked for after a write of the same session, since everything that
//! came before that write is delivered before its answer.

mod connections;
mod multi;
mod sessions;
mod watches;
mod writes;

use crate::store::{
    Blocking, EventSink, NodeEventKind, Request, SessionId, Store, StoreError, StoreEvent, Value,
};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// How long an event may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// An empty tree of its own for one case, to which sessions can be opened.
pub trait Fixture {
    /// Begins a session.
    fn connect(&self, sink: EventSink) -> Arc<dyn Store>;

    /// Lets the session of `store` expire.
    fn expire(&self, store: &dyn Store);

    /// Delivers what waits, for a store without a thread of its own.
    fn settle(&self) {}

    /// The faults that can be caused, if sessions have connections.
    fn faults(&self) -> Option<&dyn Faults> {
        None
    }
}

/// Faults of the connection between one session and its store.
pub trait Faults {
    /// Ends the connection and lets the session have no other.
    fn cut(&self, store: &dyn Store);

    /// Keeps answers and events back, while requests go through.
    fn hold_answers(&self, store: &dyn Store);

    /// Lets everything through again.
    fn heal(&self, store: &dyn Store);
}

type Case = fn(&dyn Fixture);

/// Runs every case on a fixture of its own. Panics at the first deviation.
pub fn run(fixture: &dyn Fn() -> Box<dyn Fixture>) {
    let groups: [&[(&str, Case)]; 4] = [writes::CASES, multi::CASES, sessions::CASES, watches::CASES];
    for (name, case) in groups.into_iter().flatten() {
        eprintln!("store contract: {name}");
        case(&*fixture());
    }
    for (name, case) in connections::CASES {
        let fixture = fixture();
        if let Some(faults) = fixture.faults() {
            eprintln!("store contract: {name}");
            case(&*fixture, faults);
        }
    }
}

/// A session and its events.
struct Client {
    store: Arc<dyn Store>,
    events: Receiver<StoreEvent>,
}

impl Client {
    fn connect(fixture: &dyn Fixture) -> Self {
        let (sender, events) = mpsc::channel();
        let sender = std::sync::Mutex::new(sender);
        let sink: EventSink = Arc::new(move |event| {
            if let Ok(sender) = sender.lock() {
                drop(sender.send(event));
            }
        });
        let client = Self { store: fixture.connect(sink), events };
        client.barrier();
        let session_id = client.session_id();
        assert_eq!(client.event(), StoreEvent::Connected { session_id });
        client
    }

    fn calls(&self) -> Blocking<'_> {
        Blocking::new(&*self.store)
    }

    fn session_id(&self) -> SessionId {
        self.store.session_id().unwrap_or_else(|| panic!("the session is not live"))
    }

    /// Makes sure that everything that was caused before has been delivered.
    fn barrier(&self) {
        let answer = self.store.call(Request::set("/barrier-that-is-not-there", Value::NULL, None));
        assert!(answer.is_err_and(|error| error.is_no_node()));
    }

    #[track_caller]
    fn event(&self) -> StoreEvent {
        self.events.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("no event: {error}"))
    }

    #[track_caller]
    fn expect_node_event(&self, path: &str, kind: NodeEventKind) {
        assert_eq!(self.event(), StoreEvent::Node { path: Arc::from(path), kind });
    }

    /// That no event is left, after everything that was caused before has been delivered.
    #[track_caller]
    fn expect_no_event(&self) {
        self.barrier();
        if let Ok(event) = self.events.try_recv() {
            panic!("unexpected {event:?}");
        }
    }

    #[track_caller]
    fn persistent(&self, path: &str, data: &str) {
        ok(self.calls().create(path, data, crate::store::CreateMode::Persistent));
    }

    #[track_caller]
    fn text(&self, path: &str) -> String {
        let (data, _) = ok(self.calls().get(path));
        String::from_utf8_lossy(&data.unwrap_or_default()).into_owned()
    }
}

#[track_caller]
fn ok<T, E: Debug>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("unexpected error {error:?}"),
    }
}

#[track_caller]
fn expect_error<T: Debug>(result: Result<T, StoreError>, expected: impl Into<StoreError>) {
    match result {
        Ok(value) => panic!("expected an error, got {value:?}"),
        Err(error) => assert_eq!(error, expected.into()),
    }
}
