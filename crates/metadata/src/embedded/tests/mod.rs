//! The embedded store against the contract, and what the contract cannot show: restarts, locks and damaged files, lost
//! writes, failing disks, and the flow of requests to the disk.

mod crash;
mod crash_file;
mod flow;
mod restart;

use super::*;
use crate::contract::{self, Fixture};
use crate::store::Store;

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
