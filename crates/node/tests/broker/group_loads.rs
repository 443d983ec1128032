//! Where groups are loaded: at once, unless a test holds the loads to see what happens meanwhile.

use std::sync::{Arc, Mutex};

use node::jobs::{Executor, Job};

use crate::harness::Node;

/// The loads; those that are held wait for the test.
#[derive(Default)]
pub(crate) struct GroupLoads(Mutex<Option<Vec<Job>>>);

impl GroupLoads {
    /// Holds loads from now on.
    pub(crate) fn hold(&self) {
        self.0.lock().unwrap().get_or_insert_default();
    }

    /// How many are held.
    pub(crate) fn held(&self) -> usize {
        self.0.lock().unwrap().as_ref().map_or(0, Vec::len)
    }

    /// Does what was held; others are held on.
    pub(crate) fn let_go(&self) {
        let jobs: Vec<_> = self.0.lock().unwrap().as_mut().map(std::mem::take).unwrap_or_default();
        jobs.into_iter().for_each(|job| job());
    }
}

impl Executor for GroupLoads {
    fn submit(&self, job: Job) -> Result<(), Job> {
        let mut held = self.0.lock().unwrap();
        match held.as_mut() {
            Some(held) => held.push(job),
            None => {
                drop(held);
                job();
            }
        }
        Ok(())
    }
}

impl Node {
    /// Loads begin only when the test lets them.
    pub(crate) fn hold_loads(&self) -> Arc<GroupLoads> {
        self.group_loads.hold();
        self.group_loads.clone()
    }
}
