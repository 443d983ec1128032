//! Work for many, one after the other, that is not stopped by a panic over one of them.
//!
//! The panic goes on: it ends what it belongs to, a connection or a job, and the reply that was lost with it closes its
//! connection. The rest is done by somebody else.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::broker::Broker;
use crate::jobs::Job;

/// The pause before a job is offered again for which there was no room, in milliseconds.
const PAUSE_MS: i64 = 10;

/// Does the same with each of `items`, in their order.
pub(crate) fn for_each<T: Send + 'static>(
    broker: &Arc<Broker>,
    items: impl Into<VecDeque<T>>,
    act: fn(&Arc<Broker>, T),
) {
    let mut rest = Rest { broker, items: items.into(), act };
    while let Some(item) = rest.items.pop_front() {
        act(broker, item);
    }
}

/// Those whose turn has not come.
struct Rest<'a, T: Send + 'static> {
    broker: &'a Arc<Broker>,
    items: VecDeque<T>,
    act: fn(&Arc<Broker>, T),
}

impl<T: Send + 'static> Drop for Rest<'_, T> {
    fn drop(&mut self) {
        // Some are left only after a panic.
        if !self.items.is_empty() {
            let (broker, items, act) = (self.broker.clone(), std::mem::take(&mut self.items), self.act);
            go_on(self.broker, Box::new(move || for_each(&broker, items, act)));
        }
    }
}

/// Lets somebody else go on with what a panic has broken off: at once, or when there is room for a job.
pub(crate) fn go_on(broker: &Arc<Broker>, job: Job) {
    if let Err(job) = broker.offer_job(job) {
        let again_ms = broker.now().mono_ms.saturating_add(PAUSE_MS);
        broker.timers().add_task(again_ms, move |broker| go_on(broker, job));
    }
}
