//! What goes wrong, by kind, and how often.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wire::types::BrokerId;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A process dies, the machine keeps what was written.
    CrashTailKept,
    /// A machine goes down, what was not synced is gone.
    CrashTailLost,
    /// A broker is stopped in order.
    ControlledShutdown,
    /// A message is lost.
    Lost,
    /// A message comes late.
    Late,
    /// A message comes twice.
    Repeated,
    /// A message stands at a way that is cut in its direction.
    Cut,
    /// The tree ends a session whose owner lives.
    SessionExpiry,
    /// A broker loses its connection to the tree for a while.
    TreeAway,
    /// `/controller` is deleted.
    ControllerMove,
    /// A disk is slow for a while.
    SlowDisk,
    /// A broker is missing when everything else comes to rest.
    Missing,
}

/// All kinds.
pub const KINDS: [Fault; 12] = [
    Fault::CrashTailKept,
    Fault::CrashTailLost,
    Fault::ControlledShutdown,
    Fault::Lost,
    Fault::Late,
    Fault::Repeated,
    Fault::Cut,
    Fault::SessionExpiry,
    Fault::TreeAway,
    Fault::ControllerMove,
    Fault::SlowDisk,
    Fault::Missing,
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CrashTailKept => "crashes with the tail kept",
            Self::CrashTailLost => "crashes with the tail lost",
            Self::ControlledShutdown => "controlled shutdowns",
            Self::Lost => "messages lost",
            Self::Late => "messages late",
            Self::Repeated => "messages repeated",
            Self::Cut => "messages cut off",
            Self::SessionExpiry => "sessions expired",
            Self::TreeAway => "connections to the tree lost",
            Self::ControllerMove => "controllers deposed",
            Self::SlowDisk => "disks slow",
            Self::Missing => "brokers missing at rest",
        })
    }
}

/// How often each kind has happened.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: BTreeMap<Fault, u64>,
    /// The broker whose disk has lost its tail, until it has caught up.
    lost_tail: Option<BrokerId>,
    /// The broker that stays away while the others come to rest.
    missing: Option<BrokerId>,
    is_calm: bool,
}

impl Faults {
    /// One more of a kind.
    pub(crate) fn count(&self, fault: Fault) {
        *self.lock().counts.entry(fault).or_default() += 1;
    }

    /// The counts.
    pub(crate) fn counts(&self) -> BTreeMap<Fault, u64> {
        self.lock().counts.clone()
    }

    /// No more faults.
    pub(crate) fn calm(&self) {
        self.lock().is_calm = true;
    }

    /// Whether there are no more faults.
    pub(crate) fn is_calm(&self) -> bool {
        self.lock().is_calm
    }

    /// The broker whose disk has lost its tail and that has not caught up yet.
    pub(crate) fn lost_tail(&self) -> Option<BrokerId> {
        self.lock().lost_tail
    }

    /// Notes it.
    pub(crate) fn set_lost_tail(&self, id: Option<BrokerId>) {
        self.lock().lost_tail = id;
    }

    /// The broker that stays away.
    pub(crate) fn missing(&self) -> Option<BrokerId> {
        self.lock().missing
    }

    /// Notes it.
    pub(crate) fn set_missing(&self, id: Option<BrokerId>) {
        self.lock().missing = id;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
