//! Requests that wait for the picture of the cluster to change: topics that get their leaders, topics that vanish,
//! leaders that move.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::metadata_image::MetadataImage;

use crate::broker::Broker;
use crate::delayed::{Delayed, Wake};
use crate::one_by_one;

/// How many requests may wait for the picture at once.
const MAX_WAITING: usize = 10_000;

type Condition = Box<dyn Fn(&MetadataImage) -> bool + Send + Sync>;
type Done = Box<dyn FnOnce(bool) + Send>;

/// Those who wait.
#[derive(Default)]
pub(crate) struct ImageWaits(Mutex<BTreeMap<u64, Arc<Wait>>>);

struct Wait {
    number: u64,
    deadline: i64,
    condition: Condition,
    done: Mutex<Option<Done>>,
}

impl ImageWaits {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Wait>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets those who wait.
    pub(crate) fn let_go(&self) {
        let waiting = std::mem::take(&mut *self.lock());
        drop(waiting);
    }
}

impl std::fmt::Debug for ImageWaits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageWaits").field("len", &self.lock().len()).finish_non_exhaustive()
    }
}

/// Calls `done` with `true` as soon as the picture fulfils `condition`, with `false` if it does not within
/// `timeout_ms`; a timeout that is not positive waits for nothing. A broker that has ended calls nobody.
pub(crate) fn wait(
    broker: &Arc<Broker>,
    timeout_ms: i64,
    condition: impl Fn(&MetadataImage) -> bool + Send + Sync + 'static,
    done: impl FnOnce(bool) + Send + 'static,
) {
    if timeout_ms <= 0 || broker.image_waits().lock().len() >= MAX_WAITING {
        return done(false);
    }
    let wait = Arc::new(Wait {
        number: broker.timers().next_id(),
        deadline: broker.now().mono_ms.saturating_add(timeout_ms),
        condition: Box::new(condition),
        done: Mutex::new(Some(Box::new(done))),
    });
    {
        let mut waiting = broker.image_waits().lock();
        if broker.has_ended() {
            // Nobody is answered any more.
            return;
        }
        waiting.insert(wait.number, wait.clone());
    }
    broker.timers().add(wait.deadline, wait.number, wait.clone());
    // The picture may have changed before this stood in the list.
    wait.wake(broker, Wake::Progress);
}

/// Something that a condition looks at has changed: the picture, or what the controller of this broker is at.
pub(crate) fn recheck(broker: &Arc<Broker>) {
    let waiting: Vec<_> = broker.image_waits().lock().values().cloned().collect();
    one_by_one::for_each(broker, waiting, |broker, wait| wait.wake(broker, Wake::Progress));
}

impl Delayed for Wait {
    fn wake(self: Arc<Self>, broker: &Arc<Broker>, why: Wake) {
        let is_fulfilled = (self.condition)(&broker.image());
        if !is_fulfilled && why == Wake::Progress {
            return;
        }
        broker.image_waits().lock().remove(&self.number);
        broker.timers().remove(self.deadline, self.number);
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(done) = done {
            done(is_fulfilled);
        }
    }
}
