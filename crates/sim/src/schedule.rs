//! What happens next: events in the order of virtual time. The hands of the clock move only from one event to the next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::world::World;

/// What an event does.
pub(crate) type Action = Box<dyn FnOnce(&Arc<World>) + Send>;

/// An event that is due.
pub(crate) struct Due {
    /// What it is, for the trace.
    pub(crate) label: &'static str,
    /// What it does.
    pub(crate) action: Action,
}

/// The events to come and the present time, in microseconds from the beginning of the world.
#[derive(Default)]
pub(crate) struct Schedule(Mutex<State>);

#[derive(Default)]
struct State {
    now_us: u64,
    number: u64,
    events: BTreeMap<(u64, u64), Due>,
}

impl Schedule {
    /// The present time.
    pub(crate) fn now_us(&self) -> u64 {
        self.lock().now_us
    }

    /// Something happens at `at_us`; at once, behind what happens now, if that is past.
    pub(crate) fn at(
        &self,
        at_us: u64,
        label: &'static str,
        action: impl FnOnce(&Arc<World>) + Send + 'static,
    ) {
        let mut state = self.lock();
        state.number += 1;
        let key = (at_us.max(state.now_us), state.number);
        state.events.insert(key, Due { label, action: Box::new(action) });
    }

    /// Something happens in `delay_us`.
    pub(crate) fn after(
        &self,
        delay_us: u64,
        label: &'static str,
        action: impl FnOnce(&Arc<World>) + Send + 'static,
    ) {
        let at_us = self.now_us().saturating_add(delay_us);
        self.at(at_us, label, action);
    }

    /// Moves the time to the next event and takes it out; `None` if there is none.
    pub(crate) fn next(&self) -> Option<Due> {
        let mut state = self.lock();
        let ((at_us, _), due) = state.events.pop_first()?;
        state.now_us = at_us;
        Some(due)
    }

    /// Forgets all events but those with this label, which happen now, and those that they lead to.
    pub(crate) fn clear_but(&self, label: &'static str, world: &Arc<World>) {
        while let Some(due) = self.next() {
            // What is dropped may call back.
            if due.label == label {
                (due.action)(world);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
