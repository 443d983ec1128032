//! A session over the servers of an ensemble, each of which is killed in turn.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use interop::ensemble::Ensemble;
use metadata::store::{Blocking, CreateMode, Request, Store, StoreError, StoreEvent, Value};
use metadata::zookeeper::ZooKeeperStore;

use super::fixture::options;
use super::{next, recorded};

const COUNTER: &str = "/counter";

/// Adds one, exactly once: a write whose answer was lost is read back. Returns whether one was.
fn increment(calls: &Blocking<'_>) -> Result<bool> {
    let (data, stat) = calls.get(COUNTER)?;
    let count: i32 = String::from_utf8_lossy(&data.unwrap_or_default()).parse()?;
    match calls.set(COUNTER, Bytes::from((count + 1).to_string()), Some(stat.version)) {
        Ok(_) => Ok(false),
        Err(StoreError::ConnectionLoss) => {
            if calls.get(COUNTER)?.1.version == stat.version {
                increment(calls)?;
            }
            Ok(true)
        }
        Err(error) => Err(error.into()),
    }
}

#[test]
fn a_session_outlives_the_death_of_each_server_in_turn() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut ensemble = Ensemble::start(folder.path(), 3, 500)?;
    let (sink, events) = recorded();
    let mut options = options(&ensemble.connect());
    options.session_timeout = Duration::from_secs(8);
    let store = ZooKeeperStore::connect(&options, sink)?;
    let StoreEvent::Connected { session_id } = next(&events)? else { bail!("not connected") };
    let calls = Blocking::new(&store);
    calls.create(COUNTER, "0", CreateMode::Persistent)?;
    calls.create("/e", Value::NULL, CreateMode::Ephemeral)?;
    let mut count = 0;
    for place in 0..3 {
        store.call(Request::get(COUNTER).watched())?;
        let mut outcome = Ok(());
        ensemble.restart(place, || {
            outcome = (0..100).try_for_each(|_| {
                count += 1;
                increment(&calls).map(drop)
            });
        })?;
        outcome?;
    }
    ensure!(store.session_id() == Some(session_id), "one session all the while");
    ensure!(calls.get(COUNTER)?.0 == Some(Bytes::from(count.to_string())), "each once");
    ensure!(calls.exists("/e")?.is_some());
    let told: Vec<_> = events.try_iter().collect();
    let moved = told.iter().filter(|event| **event == StoreEvent::Disconnected).count();
    let fired = told.iter().filter(|event| matches!(event, StoreEvent::Node { .. })).count();
    ensure!(moved > 0 && fired == 3, "{told:?}");
    Ok(())
}
