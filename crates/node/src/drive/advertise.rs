//! What others are told of the broker's listeners, when that changes while it runs (KIP-226): the registration is written
//! anew under the session that holds it, and the controller tells everybody.
//!
//! The broker epoch stays, so the cluster sees a broker that has moved, not one that was started anew. Under a session that
//! begins later the broker registers with the new addresses anyway.

use std::sync::Arc;

use metadata::store::{Request, Response, StoreError};
use metadata::znode::broker;
use wire::types::BrokerId;

use super::pipeline::{one, pipeline};
use super::start::register::{Registration, ids};
use crate::broker::Broker;
use crate::config::EndPoint;

/// How long after a write that failed the next is tried, in milliseconds.
const RETRY_MS: i64 = 500;

impl Broker {
    /// Tells the cluster that this broker is reached at `endpoints` from now on, unless another broker has one of these
    /// addresses: then all stays as it was. Does not block.
    pub fn advertise(self: &Arc<Self>, endpoints: &[EndPoint]) {
        let wanted = Registration::new(&self.config(), endpoints, self.id(), self.now().wall_ms);
        if wanted.value.endpoints != self.registration().value.endpoints {
            check_addresses(self, wanted);
        }
    }
}

fn check_addresses(broker: &Arc<Broker>, wanted: Registration) {
    let then = broker.clone();
    one(broker.store(), Request::children(broker::ROOT), move |answer| {
        let names = match answer {
            Ok(Response::Children { names, .. }) => names,
            Ok(_) => return,
            Err(error) => return tracing::error!(%error, "the addresses of other brokers cannot be read"),
        };
        let others: Vec<BrokerId> = ids(&names).filter(|id| *id != then.id()).collect();
        let reads = others.iter().map(|id| Request::get(broker::path(*id))).collect();
        let store = then.store().clone();
        pipeline(&store, reads, move |answers| {
            for (other, answer) in others.iter().zip(answers) {
                let Ok(Response::Data { data, .. }) = answer else { continue };
                if let Some(address) = wanted.shared_with(data.as_deref()) {
                    return tracing::error!(
                        address,
                        other = other.0,
                        "the advertised address is registered by another broker; the new addresses are not told"
                    );
                }
            }
            write(&then, &then.register_as(wanted));
        });
    });
}

/// Writes the registration, as long as it is the one that is wanted.
fn write(broker: &Arc<Broker>, wanted: &Arc<Registration>) {
    if broker.is_shutting_down() || !Arc::ptr_eq(wanted, &broker.registration()) {
        return;
    }
    let (then, wanted) = (broker.clone(), wanted.clone());
    one(broker.store(), Request::get(broker::path(broker.id())), move |answer| match answer {
        Ok(Response::Data { stat, .. }) if stat.ephemeral_owner == then.session() => {
            let set = wanted.update(stat.version);
            let store = then.store().clone();
            one(&store, set, move |answer| match answer {
                Ok(_) => tracing::info!("the broker has told the cluster its new addresses"),
                Err(error) => retry(&then, wanted, &error),
            });
        }
        // The registration that follows tells them.
        Ok(_) => {}
        Err(error) => retry(&then, wanted, &error),
    });
}

fn retry(broker: &Arc<Broker>, wanted: Arc<Registration>, error: &StoreError) {
    if error.is_no_node() || *error == StoreError::SessionExpired {
        return;
    }
    tracing::warn!(%error, "the broker's new addresses cannot be written yet");
    let at_ms = broker.now().mono_ms.saturating_add(RETRY_MS);
    broker.timers().add_task(at_ms, move |broker| write(broker, &wanted));
}
