//! One broker as the world sees it: its disk, its lives, and the broker of the present one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use node::broker::Broker;
use storage::disk::crash::CrashDisk;
use wire::types::BrokerId;

use crate::fiber::Fiber;
use crate::incarnation::Incarnation;
use crate::tree::TreeSession;

/// How far a broker is.
#[derive(Clone)]
pub(crate) enum Life {
    /// It does not run.
    Down,
    /// It starts; nothing reaches it yet.
    Starting,
    /// It serves.
    Serving(Arc<Broker>),
    /// It serves, and hands over what it leads.
    Leaving(Arc<Broker>),
}

/// See the module's text.
pub(crate) struct Node {
    pub(crate) id: BrokerId,
    state: Mutex<State>,
    stall_us: AtomicU64,
}

/// What changes with a broker's lives.
pub(crate) struct State {
    pub(crate) life: Life,
    pub(crate) lives: u64,
    pub(crate) incarnation: Option<Incarnation>,
    pub(crate) session: Option<Arc<TreeSession>>,
    /// The start of the present life, while it waits.
    pub(crate) start: Option<Fiber>,
    pub(crate) disk: CrashDisk,
    /// Whether the machine has been up since the disk was used last.
    pub(crate) is_same_boot: bool,
    /// When the broker is polled next.
    pub(crate) polled_at_us: Option<u64>,
    /// The disk as each life has it in hands: its broker, and every log and partition of that.
    pub(crate) in_hands: Vec<(u64, Weak<CrashDisk>)>,
}

impl Node {
    pub(super) fn new(id: BrokerId) -> Self {
        let state = State {
            life: Life::Down,
            lives: 0,
            incarnation: None,
            session: None,
            start: None,
            disk: CrashDisk::new(),
            is_same_boot: true,
            polled_at_us: None,
            in_hands: Vec::new(),
        };
        Self { id, state: Mutex::new(state), stall_us: AtomicU64::new(0) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is.
    pub(crate) fn life(&self) -> Life {
        self.lock().life.clone()
    }

    /// The broker, if requests reach it.
    pub(crate) fn broker(&self) -> Option<Arc<Broker>> {
        match self.life() {
            Life::Serving(broker) | Life::Leaving(broker) => Some(broker),
            Life::Down | Life::Starting => None,
        }
    }

    /// Whether a process is starting, and serves nothing yet.
    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.life(), Life::Starting)
    }

    /// The lives of which a broker, or a part of one, is still in memory.
    pub(crate) fn lives_in_memory(&self) -> Vec<u64> {
        let state = self.lock();
        let held = state.in_hands.iter().filter(|(_, disk)| disk.strong_count() > 0);
        held.map(|(life, _)| *life).collect()
    }

    /// How many lives it has had: the number of the present one, or of the last.
    pub(crate) fn lives(&self) -> u64 {
        self.lock().lives
    }

    /// The present life, if there is one.
    pub(crate) fn incarnation(&self) -> Option<Incarnation> {
        self.lock().incarnation.clone()
    }

    /// The session of the present life with the tree.
    pub(crate) fn session(&self) -> Option<Arc<TreeSession>> {
        self.lock().session.clone()
    }

    /// The disk.
    pub(crate) fn disk(&self) -> CrashDisk {
        self.lock().disk.clone()
    }

    /// How much longer than usual its disk takes, in microseconds.
    pub(crate) fn stall_us(&self) -> u64 {
        self.stall_us.load(Ordering::Relaxed)
    }

    /// From now on its disk takes so much longer.
    pub(crate) fn set_stall_us(&self, us: u64) {
        self.stall_us.store(us, Ordering::Relaxed);
    }
}
