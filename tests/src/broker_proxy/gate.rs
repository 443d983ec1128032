//! Something that is open or shut, before which threads wait.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a wait looks whether it has become pointless.
const LOOK: Duration = Duration::from_millis(20);

/// See the module.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    open: bool,
    waiting: usize,
}

impl Gate {
    /// A gate that is open, or shut.
    #[must_use]
    pub fn new(open: bool) -> Self {
        Self { state: Mutex::new(State { open, waiting: 0 }), changed: Condvar::new() }
    }

    /// Lets all through that wait, and all that come.
    pub fn open(&self) {
        self.set(true);
    }

    /// Lets nobody through.
    pub fn shut(&self) {
        self.set(false);
    }

    fn set(&self, open: bool) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open = open;
        self.changed.notify_all();
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).waiting
    }

    /// Waits until the gate is open, at most until `until`, and as long as `goes_on`. Returns whether it is open.
    pub(super) fn pass(&self, until: Option<Instant>, goes_on: impl Fn() -> bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        while !state.open && goes_on() && until.is_none_or(|until| Instant::now() < until) {
            let look = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()).min(LOOK));
            state = self.changed.wait_timeout(state, look).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting -= 1;
        state.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn who_waits_goes_on_when_the_gate_opens() {
        let gate = Gate::new(false);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| gate.pass(None, || true));
            wait::until("a waiter", LIMIT, || Ok((gate.waiting() == 1).then_some(()))).unwrap();
            gate.open();
            assert!(waiter.join().unwrap());
        });
        assert_eq!(gate.waiting(), 0);
        gate.shut();
        assert!(!gate.pass(Some(Instant::now()), || true));
    }

    #[test]
    fn a_wait_ends_when_it_has_become_pointless() {
        assert!(!Gate::new(false).pass(None, || false));
        assert!(!Gate::new(false).pass(Some(Instant::now() + Duration::from_millis(1)), || true));
        assert!(Gate::new(true).pass(None, || false));
    }
}
