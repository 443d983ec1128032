//! Jobs of a broker: each is an event a little later. Jobs may overtake each other, as on a pool of threads.

use std::sync::Weak;

use node::jobs::{Executor, Job};

use crate::incarnation::Incarnation;
use crate::world::World;

/// The longest a job waits for a thread, in microseconds.
const LONGEST_WAIT_US: u64 = 2_000;

/// The jobs of one life of a broker.
pub(crate) struct Jobs {
    world: Weak<World>,
    owner: Incarnation,
}

impl Jobs {
    pub(crate) fn new(world: Weak<World>, owner: Incarnation) -> Self {
        Self { world, owner }
    }
}

impl Executor for Jobs {
    fn submit(&self, job: Job) -> Result<(), Job> {
        let Some(world) = self.world.upgrade() else { return Err(job) };
        let owner = self.owner.clone();
        let wait_us = world.chances.jobs.within(0..=LONGEST_WAIT_US) + world.node(owner.broker).stall_us();
        world.schedule.after(wait_us, "job", move |world| {
            if owner.is_alive() {
                world.note(format_args!("job at {}", owner.broker));
                world.act(&owner, job);
            }
        });
        Ok(())
    }
}
