//! The session with the store, from the broker's side: what its events lead to.
//!
//! After an expiry the order is fixed: first the controller gives up whatever it did under the old session, then a new
//! session begins, then the broker registers again, and only then it may stand for election (KAFKA-6517, KAFKA-7165).
//! Clients and replicas are served all the while from what is known.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kernel::controller::event::Event;
use metadata::store::{EventSink, SessionId, StoreEvent};

use super::{config_changes, controller, features};
use crate::broker::Broker;
use crate::delayed::{Delayed, Wake};

/// How long after a registration that failed the next is tried, in milliseconds.
const RETRY_MS: i64 = 500;

/// Brings the events of a store's session to the broker that is made after it; those that come earlier wait.
#[derive(Debug, Default)]
pub struct StoreEvents(Mutex<Relay>);

#[derive(Debug, Default)]
struct Relay {
    broker: Option<Weak<Broker>>,
    early: Vec<StoreEvent>,
}

impl StoreEvents {
    /// Where the session sends its events.
    pub fn sink(self: &Arc<Self>) -> EventSink {
        let relay = self.clone();
        Arc::new(move |event| relay.bring(event))
    }

    /// From now on events go to `broker`, first those that came early, but for the connection it was started with.
    pub(crate) fn attach(&self, broker: &Arc<Broker>) {
        let early = {
            let mut relay = self.lock();
            relay.broker = Some(Arc::downgrade(broker));
            std::mem::take(&mut relay.early)
        };
        for event in early.into_iter().filter(|event| !matches!(event, StoreEvent::Connected { .. })) {
            take(broker, event);
        }
    }

    fn bring(&self, event: StoreEvent) {
        let broker = {
            let mut relay = self.lock();
            match &relay.broker {
                Some(broker) => broker.upgrade(),
                None => {
                    relay.early.push(event);
                    return;
                }
            }
        };
        // A broker that has stopped needs no events.
        if let Some(broker) = broker {
            take(&broker, event);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Relay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take(broker: &Arc<Broker>, event: StoreEvent) {
    match event {
        StoreEvent::Node { path, kind } => {
            controller::node_changed(broker, &path, kind);
            config_changes::node_changed(broker, &path);
            features::node_changed(broker, &path);
        }
        StoreEvent::Disconnected => {
            tracing::warn!("the connection to the metadata store is lost; the session may still live");
        }
        StoreEvent::SessionExpired => {
            tracing::warn!("the session with the metadata store has expired; the broker registers anew");
            controller::tell(broker, Event::SessionExpired);
            broker.store().renew();
        }
        StoreEvent::Connected { session_id } => connected(broker, session_id),
        StoreEvent::Failed { reason } => {
            tracing::error!(%reason, "the metadata store has failed; the cluster's state cannot change here any more");
        }
    }
}

fn connected(broker: &Arc<Broker>, session: SessionId) {
    if broker.session() == session {
        return tracing::info!("the connection to the metadata store is back");
    }
    register(broker, session);
}

/// Registers under a new session, again and again while it lives.
fn register(broker: &Arc<Broker>, session: SessionId) {
    let then = broker.clone();
    broker.run_job(move || {
        if then.is_shutting_down() || then.store().session_id() != Some(session) {
            return;
        }
        match then.registration().register(&**then.store(), Some(then.session())) {
            Ok(broker_epoch) => {
                then.control().registered(broker_epoch);
                begin(&then, session);
            }
            Err(error) => {
                tracing::error!(%error, "the broker cannot register and tries again");
                let at = then.now().mono_ms + RETRY_MS;
                let retry = Arc::new(Retry(session));
                then.timers().add(at, then.timers().next_id(), retry);
            }
        }
    });
}

/// Tries once more.
struct Retry(SessionId);

impl Delayed for Retry {
    fn wake(self: Arc<Self>, broker: &Arc<Broker>, _why: Wake) {
        register(broker, self.0);
    }
}

/// The broker is registered under `session`: it may become controller, and rereads what changed meanwhile.
pub(crate) fn begin(broker: &Arc<Broker>, session: SessionId) {
    broker.session_began(session);
    config_changes::rescan(broker);
    features::read(broker);
    controller::tell(broker, Event::SessionStarted { session: session.0 });
}
