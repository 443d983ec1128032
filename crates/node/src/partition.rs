//! One partition on this broker: its log, its role, the produces that queue for it, the fetches that wait.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use kernel::fetch::waiters::Waiters;
use storage::partition_log::PartitionLog;
use wire::error_code::ErrorCode;
use wire::types::{LeaderEpoch, Offset, TopicId, TopicPartition};

use crate::append::Append;
use crate::broker::Broker;
use crate::delayed::{Delayed, Wake};
use crate::metrics::TopicMeters;

/// What this broker is to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It leads in this epoch.
    Leader(LeaderEpoch),
    /// Its log directory has failed.
    Offline,
}

/// A hosted partition.
pub(crate) struct Partition {
    name: TopicPartition,
    topic_id: TopicId,
    log: Arc<PartitionLog>,
    meters: Arc<TopicMeters>,
    role: RwLock<Role>,
    appends: Mutex<AppendQueue>,
    fetches: Mutex<Waiters<Arc<dyn Delayed>>>,
    // Lets an append pass by without the lock when nobody waits.
    fetch_count: AtomicUsize,
}

/// The produces that wait for their turn; the one who finds the queue idle serves it.
#[derive(Default)]
struct AppendQueue {
    waiting: VecDeque<Append>,
    served: bool,
}

/// What became of a produce that was handed in.
pub(crate) enum Queued {
    /// Nobody serves the queue: the caller must.
    Serve,
    /// Somebody serves the queue and will come to it.
    Served,
    /// The queue is full.
    Full(Append),
}

/// How many produces may wait for one partition.
const MAX_QUEUED: usize = 10_000;

impl Partition {
    /// A partition that leads in `epoch`.
    pub(crate) fn new(
        name: TopicPartition,
        topic_id: TopicId,
        log: Arc<PartitionLog>,
        epoch: LeaderEpoch,
        meters: Arc<TopicMeters>,
    ) -> Self {
        Self {
            name,
            topic_id,
            log,
            meters,
            role: RwLock::new(Role::Leader(epoch)),
            appends: Mutex::default(),
            fetches: Mutex::default(),
            fetch_count: AtomicUsize::new(0),
        }
    }

    /// Topic and index.
    pub(crate) fn name(&self) -> &TopicPartition {
        &self.name
    }

    /// The topic's id, zero if it has none.
    pub(crate) fn topic_id(&self) -> TopicId {
        self.topic_id
    }

    /// The log.
    pub(crate) fn log(&self) -> &Arc<PartitionLog> {
        &self.log
    }

    /// The meters of the topic.
    pub(crate) fn meters(&self) -> &Arc<TopicMeters> {
        &self.meters
    }

    /// Checks the client's leader epoch (-1: not given), then that this broker leads. Returns the epoch.
    pub(crate) fn check_leader(&self, asked: LeaderEpoch) -> Result<LeaderEpoch, ErrorCode> {
        match self.role() {
            Role::Offline => Err(ErrorCode::KafkaStorageError),
            Role::Leader(epoch) if asked == LeaderEpoch::UNKNOWN || asked == epoch => Ok(epoch),
            Role::Leader(epoch) if asked < epoch => Err(ErrorCode::FencedLeaderEpoch),
            Role::Leader(_) => Err(ErrorCode::UnknownLeaderEpoch),
        }
    }

    /// The present role.
    pub(crate) fn role(&self) -> Role {
        *self.role.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log directory has failed, or the partition is being removed: nobody is served from here any more.
    pub(crate) fn become_offline(&self, broker: &Arc<Broker>) {
        *self.role.write().unwrap_or_else(PoisonError::into_inner) = Role::Offline;
        let waiting = self.fetches().take_all();
        self.fetch_count.store(0, Ordering::SeqCst);
        for waiter in waiting {
            waiter.wake(broker, Wake::Progress);
        }
    }

    /// Hands in a produce.
    pub(crate) fn queue(&self, append: Append) -> Queued {
        let mut queue = self.append_queue();
        if queue.waiting.len() >= MAX_QUEUED {
            return Queued::Full(append);
        }
        queue.waiting.push_back(append);
        if std::mem::replace(&mut queue.served, true) { Queued::Served } else { Queued::Serve }
    }

    /// The next produces to serve, in order; none, and the queue is idle again.
    pub(crate) fn take_queued(&self) -> VecDeque<Append> {
        let mut queue = self.append_queue();
        if queue.waiting.is_empty() {
            queue.served = false;
        }
        std::mem::take(&mut queue.waiting)
    }

    /// `waiter` wants to know when the high watermark moves beyond `offset`.
    pub(crate) fn watch_high_watermark(&self, offset: Offset, id: u64, waiter: Arc<dyn Delayed>) {
        let mut fetches = self.fetches();
        fetches.add(offset, id, waiter);
        self.fetch_count.store(fetches.len(), Ordering::SeqCst);
    }

    /// The waiter of this number does not wait here any more.
    pub(crate) fn unwatch_high_watermark(&self, offset: Offset, id: u64) {
        let mut fetches = self.fetches();
        fetches.remove(offset, id);
        self.fetch_count.store(fetches.len(), Ordering::SeqCst);
    }

    /// Wakes those for whom the high watermark has moved far enough.
    pub(crate) fn high_watermark_moved(&self, broker: &Arc<Broker>, high_watermark: Offset) {
        if self.fetch_count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let passed = {
            let mut fetches = self.fetches();
            let passed = fetches.take_passed(high_watermark);
            self.fetch_count.store(fetches.len(), Ordering::SeqCst);
            passed
        };
        for waiter in passed {
            waiter.wake(broker, Wake::Progress);
        }
    }

    fn fetches(&self) -> MutexGuard<'_, Waiters<Arc<dyn Delayed>>> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_queue(&self) -> MutexGuard<'_, AppendQueue> {
        self.appends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Partition")
            .field("name", &self.name)
            .field("role", &self.role())
            .finish_non_exhaustive()
    }
}
