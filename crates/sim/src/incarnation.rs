//! One life of a broker, from its start to its end. Whatever was begun in it ends with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wire::types::BrokerId;

/// A life of a broker. Clones are the same life.
#[derive(Clone, Debug)]
pub(crate) struct Incarnation {
    /// Which broker.
    pub(crate) broker: BrokerId,
    /// The number of the life, from 1.
    pub(crate) number: u64,
    alive: Arc<AtomicBool>,
    silent: Arc<AtomicBool>,
}

impl Incarnation {
    /// A new life.
    pub(crate) fn new(broker: BrokerId, number: u64) -> Self {
        Self { broker, number, alive: Arc::new(AtomicBool::new(true)), silent: Arc::default() }
    }

    /// Whether it has not ended.
    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// Ends it, and what it has sent and nobody has received yet is lost.
    pub(crate) fn end_silently(&self) {
        self.silent.store(true, Ordering::Relaxed);
        self.end();
    }

    /// Whether nothing of it arrives any more.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        self.alive.store(false, Ordering::Relaxed);
    }
}

impl PartialEq for Incarnation {
    fn eq(&self, other: &Self) -> bool {
        (self.broker, self.number) == (other.broker, other.number)
    }
}
