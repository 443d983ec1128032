//! Which thread writes: the one of the socket while that is safe, else the lane of the log directory.
//!
//! A write into the page cache takes microseconds and is not worth a change of thread, until the disk stalls: then it
//! takes as long as the stall. So fewer appends than there are threads for sockets run on those at once, each in a slot;
//! one that finds no slot, or a directory that stalls, goes to the lane of that directory, where one thread writes for all
//! partitions. Somebody who watches ([`Lanes::watch`]) finds the append that does not end, marks its directory, and wakes
//! another thread for the sockets that the caught one watched. With that a stalled disk holds up its own partitions only.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use storage::dir_health::DirHealth;

use crate::jobs::{self, Executor, Job};

/// How often somebody looks at the appends under way. One that is under way at two looks in a row is taken for caught.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);
/// After how many looks at the same append the operator is told: one second. A shorter stop need not be the disk's.
const LOOKS_UNTIL_TOLD: u32 = 50;

/// The threads that appends may use, given by whoever has threads.
pub struct AppendThreads {
    /// How many appends may be on threads of sockets at once; fewer than there are such threads.
    pub on_sockets: usize,
    /// Runs lanes: at most one job for each log directory at a time, one for each fetcher of a leader, one for each
    /// connection of a follower. It must not let them wait for each other.
    pub lanes: Arc<dyn Executor>,
    /// Lets [`Broker::watch_appends`](crate::broker::Broker::watch_appends) be called within this time.
    pub watch_within: Box<dyn Fn(Duration) + Send + Sync>,
    /// A thread of the sockets is caught: another must watch them.
    pub relieve: Box<dyn Fn() + Send + Sync>,
}

/// The slots and lanes of a broker.
pub(crate) struct Lanes {
    threads: AppendThreads,
    slots: Box<[Slot]>,
    lanes: Box<[Arc<Lane>]>,
    /// Whether nobody looks until an append begins.
    resting: AtomicBool,
    /// What the last looks saw, for each slot.
    seen: Mutex<Vec<Seen>>,
}

/// The stamp of a slot at the last look, and for how many looks it has been the same.
#[derive(Clone, Copy, Default)]
struct Seen {
    stamp: u64,
    looks: u32,
}

/// Where an append on a socket's thread is noted.
#[derive(Default)]
struct Slot {
    /// Odd while an append is under way, and another number for each.
    stamp: AtomicU64,
    /// The lane of that append.
    lane: AtomicUsize,
}

/// What is written to one log directory by a thread of its own.
struct Lane {
    health: Arc<DirHealth>,
    stalled: AtomicBool,
    /// Whether the operator was told.
    told: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// Its length is bounded: a partition waits once at most, whatever has come for it.
#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    served: bool,
}

/// Leave to write on this thread.
pub(crate) struct Inline<'a> {
    slot: &'a Slot,
    lane: Option<&'a Lane>,
}

/// Stands in a slot for whatever directory it may be.
const ANY_LANE: usize = usize::MAX;

impl Lanes {
    pub(crate) fn new(threads: AppendThreads, directories: &[Arc<DirHealth>]) -> Self {
        let slots: Box<[Slot]> = (0..threads.on_sockets).map(|_| Slot::default()).collect();
        let seen = Mutex::new(vec![Seen::default(); slots.len()]);
        let lanes = directories.iter().map(|health| Arc::new(Lane::of(health.clone()))).collect();
        Self { threads, slots, lanes, resting: AtomicBool::new(true), seen }
    }

    /// Asks for leave to write to `directory` on this thread; none: it must go [elsewhere](Self::hand_over).
    pub(crate) fn enter(&self, directory: &Arc<DirHealth>) -> Option<Inline<'_>> {
        let (place, lane) = self.lane(directory)?;
        if lane.stalled.load(Ordering::Relaxed) {
            return None;
        }
        self.take_slot(place, Some(lane))
    }

    /// Asks for leave to do on this thread what may wait for an append to any directory; none: it must be
    /// [run apart](Self::run_apart).
    pub(crate) fn enter_for_any(&self) -> Option<Inline<'_>> {
        if self.stalled() > 0 { None } else { self.take_slot(ANY_LANE, None) }
    }

    fn take_slot<'a>(&'a self, place: usize, lane: Option<&'a Lane>) -> Option<Inline<'a>> {
        let slot = self.slots.iter().find(|slot| slot.take())?;
        slot.lane.store(place, Ordering::Relaxed);
        // Either this thread sees that the watcher rests, or the watcher sees this append before it rests.
        if self.resting.load(Ordering::SeqCst) && self.resting.swap(false, Ordering::SeqCst) {
            (self.threads.watch_within)(LOOK_EVERY);
        }
        Some(Inline { slot, lane })
    }

    /// Lets a thread of the lane of `directory` do it.
    pub(crate) fn hand_over(&self, directory: &Arc<DirHealth>, job: Job) {
        let Some((_, lane)) = self.lane(directory) else { return self.run_apart(job) };
        let idle = {
            let mut waiting = lane.waiting();
            waiting.jobs.push_back(job);
            !std::mem::replace(&mut waiting.served, true)
        };
        if idle {
            let lane = lane.clone();
            self.run_apart(Box::new(move || lane.serve()));
        }
    }

    /// Lets some thread do it that is not one of the sockets.
    pub(crate) fn run_apart(&self, job: Job) {
        jobs::run(&*self.threads.lanes, job);
    }

    /// Looks at the appends under way. Returns when to look again; none: the next append will ask for it.
    pub(crate) fn watch(&self) -> Option<Duration> {
        let mut busy = false;
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            for (slot, seen) in self.slots.iter().zip(seen.iter_mut()) {
                let stamp = slot.stamp.load(Ordering::SeqCst);
                let under_way = !stamp.is_multiple_of(2);
                busy |= under_way;
                *seen =
                    Seen { stamp, looks: if seen.stamp == stamp { seen.looks.saturating_add(1) } else { 0 } };
                if under_way && seen.looks > 0 {
                    self.caught(slot, seen.looks);
                }
            }
        }
        if busy {
            return Some(LOOK_EVERY);
        }
        self.resting.store(true, Ordering::SeqCst);
        // An append that began since the look did not see that nobody looks any more.
        let begun = self.slots.iter().any(|slot| !slot.stamp.load(Ordering::SeqCst).is_multiple_of(2));
        (begun && self.resting.swap(false, Ordering::SeqCst)).then_some(LOOK_EVERY)
    }

    /// The directories on which an append does not end.
    pub(crate) fn stalled(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.stalled.load(Ordering::Relaxed)).count()
    }

    fn caught(&self, slot: &Slot, looks: u32) {
        if let Some(lane) = self.lanes.get(slot.lane.load(Ordering::Relaxed)) {
            lane.stalled.store(true, Ordering::Relaxed);
            if looks >= LOOKS_UNTIL_TOLD && !lane.told.swap(true, Ordering::Relaxed) {
                let directory = lane.health.dir().display();
                tracing::warn!(%directory, "an append has taken a second: the disk stalls, its partitions wait");
            }
        }
        (self.threads.relieve)();
    }

    fn lane(&self, directory: &Arc<DirHealth>) -> Option<(usize, &Arc<Lane>)> {
        self.lanes.iter().enumerate().find(|(_, lane)| Arc::ptr_eq(&lane.health, directory))
    }
}

impl Slot {
    fn take(&self) -> bool {
        let stamp = self.stamp.load(Ordering::Relaxed);
        let next = stamp.wrapping_add(1);
        stamp.is_multiple_of(2)
            && self.stamp.compare_exchange(stamp, next, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }
}

impl Drop for Inline<'_> {
    fn drop(&mut self) {
        if let Some(lane) = self.lane
            && lane.stalled.load(Ordering::Relaxed)
        {
            lane.ended();
        }
        self.slot.stamp.fetch_add(1, Ordering::Release);
    }
}

impl Lane {
    fn of(health: Arc<DirHealth>) -> Self {
        Self {
            health,
            stalled: AtomicBool::new(false),
            told: AtomicBool::new(false),
            waiting: Mutex::default(),
        }
    }

    /// Does what waits, until nothing is left.
    fn serve(&self) {
        loop {
            let job = {
                let mut waiting = self.waiting();
                let job = waiting.jobs.pop_front();
                waiting.served = job.is_some();
                job
            };
            let Some(job) = job else { return };
            // What waits for the lane is not lost with one of them.
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!(directory = %self.health.dir().display(), "a write to the log directory has panicked");
            }
        }
    }

    /// The append that was caught has ended.
    fn ended(&self) {
        self.stalled.store(false, Ordering::Relaxed);
        if self.told.swap(false, Ordering::Relaxed) {
            let directory = self.health.dir().display();
            tracing::info!(%directory, "the append that was caught has ended: the disk takes writes again");
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
