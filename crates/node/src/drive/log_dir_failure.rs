//! A log directory that has failed: its partitions go offline, and the controller is told, which gives them other
//! leaders (KIP-112).
//!
//! The disk tells of a failure from under the lock of a log, so it is only noted there; the work is done later.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use metadata::store::{CreateMode, Op, Request, StoreError};
use metadata::znode::log_dir_event;

use super::{fetchers, groups};
use crate::broker::Broker;

/// The pause before the controller is told again, in milliseconds.
const RETRY_PAUSE_MS: i64 = 500;

/// Where failures are noted until there is a broker, and whom they are told then.
#[derive(Debug, Default)]
pub(crate) struct LogDirFailures(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    broker: Option<Weak<Broker>>,
    missed: bool,
}

impl LogDirFailures {
    /// A directory has failed.
    pub(crate) fn note(&self) {
        let broker = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.missed = state.broker.is_none();
            state.broker.as_ref().and_then(Weak::upgrade)
        };
        if let Some(broker) = broker {
            schedule(&broker);
        }
    }

    /// From now on failures are dealt with by `broker`; so are those that came before.
    pub(crate) fn attach(&self, broker: &Arc<Broker>) {
        let missed = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.broker = Some(Arc::downgrade(broker));
            std::mem::take(&mut state.missed)
        };
        if missed {
            schedule(broker);
        }
    }
}

fn schedule(broker: &Arc<Broker>) {
    broker.timers().add_task(broker.now().mono_ms, |broker| {
        let then = broker.clone();
        broker.run_job(move || {
            take_offline(&then);
            tell_controller(&then);
        });
    });
}

/// Takes the partitions offline whose directory has failed.
fn take_offline(broker: &Arc<Broker>) {
    let failed: Vec<_> = broker
        .partitions()
        .all()
        .into_iter()
        .filter(|partition| !partition.log().health().is_online())
        .collect();
    let names: Vec<_> = failed.iter().map(|partition| partition.name().clone()).collect();
    fetchers::remove(broker, &names);
    for partition in failed {
        partition.become_offline(broker);
        groups::resigned(broker, partition.name(), None);
    }
}

fn tell_controller(broker: &Arc<Broker>) {
    let value = Bytes::from(log_dir_event::encode(broker.id()));
    let create = Op::create(log_dir_event::PREFIX, value, CreateMode::PersistentSequential);
    let then = broker.clone();
    broker.store().submit(
        Request::Write(create),
        Box::new(move |answer| match answer {
            Ok(_) | Err(StoreError::Closed) => {}
            Err(error) => {
                tracing::warn!(%error, "the controller cannot be told of a failed log directory and is told later");
                let again_ms = then.now().mono_ms.saturating_add(RETRY_PAUSE_MS);
                then.timers().add_task(again_ms, tell_controller);
            }
        }),
    );
}
