//! Where work is done that may block: at once, unless a test holds it to see what happens meanwhile.

use std::sync::{Arc, Mutex};

use node::jobs::{Executor, Job};

use crate::harness::Node;

/// The work; what is held waits for the test.
#[derive(Default)]
pub(crate) struct HeldJobs(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Open,
    Held(Vec<Job>),
    Full,
}

impl HeldJobs {
    /// Holds jobs from now on.
    pub(crate) fn hold(&self) {
        let mut state = self.0.lock().unwrap();
        if !matches!(*state, State::Held(_)) {
            *state = State::Held(Vec::new());
        }
    }

    /// There is no room for jobs from now on.
    pub(crate) fn fill(&self) {
        *self.0.lock().unwrap() = State::Full;
    }

    /// Jobs are done at once from now on.
    pub(crate) fn open(&self) {
        *self.0.lock().unwrap() = State::Open;
    }

    /// How many are held.
    pub(crate) fn held(&self) -> usize {
        match &*self.0.lock().unwrap() {
            State::Held(jobs) => jobs.len(),
            State::Open | State::Full => 0,
        }
    }

    /// Does what was held; others are held on.
    pub(crate) fn let_go(&self) {
        let jobs = match &mut *self.0.lock().unwrap() {
            State::Held(jobs) => std::mem::take(jobs),
            State::Open | State::Full => Vec::new(),
        };
        jobs.into_iter().for_each(|job| job());
    }
}

impl Executor for HeldJobs {
    fn submit(&self, job: Job) -> Result<(), Job> {
        match &mut *self.0.lock().unwrap() {
            State::Held(jobs) => {
                jobs.push(job);
                return Ok(());
            }
            State::Full => return Err(job),
            State::Open => {}
        }
        job();
        Ok(())
    }
}

impl Node {
    /// Groups are loaded only when the test lets them.
    pub(crate) fn hold_loads(&self) -> Arc<HeldJobs> {
        self.group_loads.hold();
        self.group_loads.clone()
    }
}
