//! The invariants of a running broker, for simulations and tests: those of the kernel's machines, and that positions of
//! logs are in order (L1).

use crate::broker::Broker;

impl Broker {
    /// Looks at everything that has an invariant. It is called between two events: what another thread is in the middle of
    /// is no state to be judged.
    ///
    /// # Panics
    /// When an invariant does not hold.
    pub fn check(&self) {
        self.controller().check();
        self.alter_partition().check();
        self.fetchers().check();
        for partition in self.partitions().all() {
            partition.check();
        }
    }
}
