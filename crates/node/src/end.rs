//! The end of a broker: what still waits in it is let go of.
//!
//! What waits (requests, tasks, answers to come) stands in tables of the broker and of its partitions, and mostly holds just
//! these: a fetch the partitions that it waits for, an answer to come the broker. A broker that ended with anything in them
//! would stay in memory, with its logs, for as long as its process lives: that of a simulation, of `blumfeld dev`, or of
//! whoever embeds brokers.

use crate::broker::{Broker, BrokerState};

impl Broker {
    /// Lets go of all that waits here, unanswered, and takes in no more of it. [`Broker::shut_down`] ends with this; one who
    /// drops a broker without that calls it, or keeps the broker in memory. Work that a store, a peer or an executor still
    /// has in hand holds the broker until it ends or is dropped there.
    pub fn abandon(&self) {
        // First, so that what comes meanwhile finds it.
        self.set_state(BrokerState::NotRunning);
        self.timers().let_go();
        self.image_waits().let_go();
        self.producer_ids().let_go();
        self.control().let_go();
        self.controller().let_go();
        self.groups().let_go();
        for partition in self.partitions().all() {
            partition.let_go();
        }
    }

    /// Whether the broker has ended: nothing can wait here any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.state() == BrokerState::NotRunning as u8
    }
}
