//! The paths that every broker makes sure of at its start, with null data.

use crate::store::{Blocking, CreateMode, Op, Request, Response, Store, StoreError, Value};

/// The paths, parents before children.
pub const PERSISTENT_PATHS: [&str; 17] = [
    "/consumers",
    "/brokers",
    "/brokers/ids",
    "/brokers/topics",
    "/config",
    "/config/changes",
    "/admin",
    "/admin/delete_topics",
    "/brokers/seqid",
    "/isr_change_notification",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
];

/// Creates those of [`PERSISTENT_PATHS`] that are missing, in one transaction. Brokers that start together may race;
/// who comes second tries again.
pub fn ensure_persistent_paths(store: &dyn Store) -> Result<(), StoreError> {
    loop {
        let missing = missing(store)?;
        if missing.is_empty() {
            return Ok(());
        }
        let create = |path: &&str| Op::create(*path, Value::NULL, CreateMode::Persistent);
        match store.call(Request::Multi(missing.iter().map(create).collect())) {
            Err(error) if error.is_node_exists() => {}
            answer => return answer.map(drop),
        }
    }
}

fn missing(store: &dyn Store) -> Result<Vec<&'static str>, StoreError> {
    let answers = Blocking::new(store).pipeline(PERSISTENT_PATHS.into_iter().map(Request::exists).collect());
    let mut missing = Vec::new();
    for (path, answer) in PERSISTENT_PATHS.into_iter().zip(answers) {
        if answer? == Response::Exists(None) {
            missing.push(path);
        }
    }
    Ok(missing)
}
