//! The steps of the start on a store in memory, where other sessions play the other brokers.

mod identity;
mod lost_tail;
mod register;
mod session;

use std::sync::Arc;
use std::time::Duration;

use metadata::embedded::{EmbeddedSession, EmbeddedStore};
use metadata::store::{Blocking, CreateMode, Store};
use metadata::znode::persistent_paths::ensure_persistent_paths;
use storage::boot::Boot;
use storage::disk::RealDisk;

use super::*;
use crate::clock::SystemClock;

const MEMBER: Membership =
    Membership::Member { session_timeout: Duration::from_millis(1), boot: Boot::Unknown };

/// A cluster's store with the paths that every broker makes.
fn cluster() -> EmbeddedStore {
    let store = EmbeddedStore::open_memory().unwrap();
    ensure_persistent_paths(&session(&store)).unwrap();
    store
}

fn session(store: &EmbeddedStore) -> EmbeddedSession {
    store.session(Arc::new(|_| {}))
}

fn config(settings: &[(&str, &str)]) -> KafkaConfig {
    let settings: Vec<_> = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    KafkaConfig::without_file(&settings).unwrap().0
}

/// What broker `id` tells of itself at a port.
fn registration(id: i32, port: u16) -> Registration {
    let config = config(&[("listeners", &format!("PLAINTEXT://here:{port}"))]);
    Registration::new(&config, &config.listeners.advertised, BrokerId(id), 7)
}

fn create(store: &dyn Store, path: &str, data: &str) {
    Blocking::new(store).create(path, data, CreateMode::Persistent).unwrap();
}
