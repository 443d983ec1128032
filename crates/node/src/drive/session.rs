//! The session with the store, from the broker's side: what its events lead to.
//!
//! After an expiry the order is fixed: first the controller gives up whatever it did under the old session, then a new
//! session begins, then the broker registers again, and only then it may stand for election (KAFKA-6517, KAFKA-7165).
//! Clients and replicas are served all the while from what is known.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kernel::controller::event::Event;
use metadata::store::{EventSink, Request, Response, SessionId, StoreError, StoreEvent};
use metadata::znode::broker;
use wire::types::BrokerEpoch;

use super::start::register::epoch_in;
use super::{config_changes, controller, features};
use crate::broker::Broker;

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

    /// From now on events go to `broker`, which has registered under `session`: first those that came early, but for what
    /// was before that session.
    pub(crate) fn attach(&self, broker: &Arc<Broker>, session: SessionId) {
        let mut early = {
            let mut relay = self.lock();
            relay.broker = Some(Arc::downgrade(broker));
            std::mem::take(&mut relay.early)
        };
        let began = |event: &StoreEvent| *event == StoreEvent::Connected { session_id: session };
        let before = early.iter().rposition(began).map_or(0, |at| at + 1);
        for event in early.drain(..).skip(before) {
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

/// Registers under a new session, again and again while it lives. Nothing here waits: it runs on the store's thread.
fn register(broker: &Arc<Broker>, session: SessionId) {
    if broker.is_shutting_down() || broker.store().session_id() != Some(session) {
        return;
    }
    let then = broker.clone();
    let write = Request::Multi(broker.registration().writes());
    broker.store().submit(
        write,
        Box::new(move |answer| match answer {
            Ok(Response::Multi(results)) => registered(&then, session, epoch_in(&results)),
            Err(error) if error.is_node_exists() || error == StoreError::ConnectionLoss => {
                look(&then, session)
            }
            Ok(_) => retry(&then, session, "the store answered what was not asked"),
            Err(error) => retry(&then, session, &error.to_string()),
        }),
    );
}

/// Whose the registration is that stands in the way: this session's, if the answer to it was lost; the one before's, which
/// is deleted (KAFKA-7165); or another's, which is waited for.
fn look(broker: &Arc<Broker>, session: SessionId) {
    let path = broker::path(broker.id());
    let then = broker.clone();
    broker.store().submit(
        Request::get(path.clone()),
        Box::new(move |answer| match answer {
            Ok(Response::Data { stat, .. }) if stat.ephemeral_owner == session => {
                registered(&then, session, BrokerEpoch(stat.czxid));
            }
            Ok(Response::Data { stat, .. }) if stat.ephemeral_owner == then.session() => {
                let again = then.clone();
                let delete = Request::delete(path, Some(stat.version));
                then.store().submit(delete, Box::new(move |_| register(&again, session)));
            }
            Ok(_) => retry(&then, session, "another session has registered this broker id"),
            Err(error) if error.is_no_node() => register(&then, session),
            Err(error) => retry(&then, session, &error.to_string()),
        }),
    );
}

fn retry(broker: &Arc<Broker>, session: SessionId, reason: &str) {
    tracing::error!(reason, "the broker cannot register and tries again");
    let at_ms = broker.now().mono_ms.saturating_add(RETRY_MS);
    broker.timers().add_task(at_ms, move |broker| register(broker, session));
}

fn registered(broker: &Arc<Broker>, session: SessionId, broker_epoch: BrokerEpoch) {
    broker.control().registered(broker_epoch);
    begin(broker, session);
}

/// The broker is registered under `session`: it may become controller, and rereads what changed meanwhile.
pub(crate) fn begin(broker: &Arc<Broker>, session: SessionId) {
    broker.session_began(session);
    config_changes::rescan(broker);
    features::read(broker);
    controller::tell(broker, Event::SessionStarted { session: session.0 });
}
