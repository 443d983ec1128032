//! Groups whose timers want something written, which the thread that keeps the time must not wait for.
//!
//! One job writes for all of them, one after the other: when a coordinator takes over thousands of groups whose members
//! are gone, all their sessions end in the same millisecond, and a job for each would leave no room for any other. A group
//! is in here at most once, since whoever does what it wants is one at a time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::obey;
use super::slot::Slot;
use crate::broker::Broker;

/// The pause before a job is offered again for which there was no room, in milliseconds.
const PAUSE_MS: i64 = 10;

/// The groups that wait.
#[derive(Debug, Default)]
pub(super) struct Writers(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Arc<Slot>>,
    busy: bool,
}

impl Writers {
    /// Adds a group. Whether the caller must see to it that somebody writes.
    fn add(&self, slot: &Arc<Slot>) -> bool {
        let mut queue = self.lock();
        queue.waiting.push_back(slot.clone());
        !std::mem::replace(&mut queue.busy, true)
    }

    fn next(&self) -> Option<Arc<Slot>> {
        let mut queue = self.lock();
        let next = queue.waiting.pop_front();
        queue.busy = next.is_some();
        next
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever writes. A panic ends that one; the next group that comes makes another one begin.
struct Writing<'a>(&'a Writers);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().busy = false;
        }
    }
}

/// Somebody who may wait for a disk does what the group wants; the caller, who may not, has begun to.
pub(super) fn hand_over(broker: &Arc<Broker>, slot: &Arc<Slot>) {
    if broker.groups().writers.add(slot) {
        begin(broker);
    }
}

fn begin(broker: &Arc<Broker>) {
    let then = broker.clone();
    let job = move || {
        let writers = &then.groups().writers;
        let _guard = Writing(writers);
        while let Some(slot) = writers.next() {
            obey::obey(&then, &slot);
        }
    };
    if broker.offer_job(job).is_err() {
        let again_ms = broker.now().mono_ms.saturating_add(PAUSE_MS);
        broker.timers().add_task(again_ms, begin);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::slot;
    use super::*;

    #[test]
    fn one_job_writes_for_all_in_their_order() {
        let writers = Writers::default();
        let slots = [(); 3].map(|()| slot(false));
        assert_eq!(slots.each_ref().map(|slot| writers.add(slot)), [true, false, false]);
        for slot in &slots {
            assert!(writers.next().is_some_and(|next| Arc::ptr_eq(&next, slot)));
        }
        assert!(writers.next().is_none());
        assert!(writers.add(&slots[0]), "the next one begins anew");
    }

    #[test]
    fn a_panic_does_not_end_the_writing_for_ever() {
        let writers = Writers::default();
        let slots = [(); 2].map(|()| slot(false));
        assert!(writers.add(&slots[0]));
        let panics = || {
            let _guard = Writing(&writers);
            assert!(writers.next().is_none(), "by the test");
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert!(writers.add(&slots[1]));
    }
}
