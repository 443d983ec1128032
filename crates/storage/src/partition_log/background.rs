//! What logs leave to be done outside their locks and later: syncing what a roll closed, and removing files
//! whose time has come. A pool of the caller takes the jobs and runs them.
//!
//! Bounded: a log waits for at most one flush, and every removal belongs to a file that existed.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use wire::types::{Millis, Now};

use super::PartitionLog;
use crate::dir_health::DirHealth;
use crate::disk::Disk;
use crate::disk::handles::DirPath;
use crate::segment::Segment;
use crate::sync::lock;

/// Called when there is new work: it wakes the pool, and must not run jobs itself.
pub type WakeUp = Box<dyn Fn() + Send + Sync>;

/// The work that waits, of all logs that share it.
pub struct Background {
    state: Mutex<State>,
    wake_up: WakeUp,
}

#[derive(Default)]
struct State {
    flushes: VecDeque<Weak<PartitionLog>>,
    removals: BTreeMap<(i64, u64), Removal>,
    next_removal: u64,
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        let mut out = f.debug_struct("Background");
        out.field("flushes", &state.flushes.len()).field("removals", &state.removals.len()).finish()
    }
}

/// What is to be removed from a disk.
#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) health: Arc<DirHealth>,
    pub(crate) what: Removed,
}

/// Segments whose files carry the suffix for it, or the directory of a deleted replica.
#[derive(Debug)]
pub(crate) enum Removed {
    Segments(Vec<Arc<Segment>>),
    Dir { disk: Arc<dyn Disk>, path: Arc<DirPath> },
}

/// One piece of work.
#[derive(Debug)]
pub struct Job(Kind);

#[derive(Debug)]
enum Kind {
    Flush(Arc<PartitionLog>),
    Remove(Removal),
}

impl Background {
    /// A queue without work.
    pub fn new(wake_up: WakeUp) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), wake_up })
    }

    /// Takes the next job that is due at `now`.
    pub fn next_job(&self, now: Now) -> Option<Job> {
        let mut state = lock(&self.state);
        while let Some(log) = state.flushes.pop_front() {
            if let Some(log) = log.upgrade() {
                return Some(Job(Kind::Flush(log)));
            }
        }
        let first = state.removals.first_entry()?;
        (first.key().0 <= now.mono_ms).then(|| Job(Kind::Remove(first.remove())))
    }

    /// When the next job is due, on the monotonic clock; a time in the past if one is due already.
    pub fn next_due(&self) -> Option<Millis> {
        let state = lock(&self.state);
        if !state.flushes.is_empty() {
            return Some(Millis(i64::MIN));
        }
        state.removals.first_key_value().map(|((due, _), _)| Millis(*due))
    }

    /// How many jobs wait, due or not.
    pub fn len(&self) -> usize {
        let state = lock(&self.state);
        state.flushes.len() + state.removals.len()
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Asks for a flush of `log` up to its pending target. The log asks at most once until the job has begun.
    pub(super) fn flush(&self, log: Weak<PartitionLog>) {
        lock(&self.state).flushes.push_back(log);
        (self.wake_up)();
    }

    /// Asks for a removal `delay` after `now`.
    pub(crate) fn remove(&self, removal: Removal, now: Now, delay: Millis) {
        let mut state = lock(&self.state);
        let id = state.next_removal;
        state.next_removal += 1;
        state.removals.insert((now.mono_ms.saturating_add(delay.0), id), removal);
        drop(state);
        (self.wake_up)();
    }
}

impl Job {
    /// Does the work. An IO error takes the log directory offline.
    pub fn run(self) {
        match self.0 {
            // The error is kept by the health of the directory, which has logged it.
            Kind::Flush(log) => drop(log.flush_pending()),
            Kind::Remove(removal) => removal.run(),
        }
    }
}

impl Removal {
    fn run(self) {
        if !self.health.is_online() {
            return;
        }
        let result = match &self.what {
            Removed::Segments(segments) => {
                segments.iter().try_for_each(|it| it.delete_files()).map_err(std::io::Error::other)
            }
            Removed::Dir { disk, path } => remove_dir(&**disk, &path.get()),
        };
        if let Err(error) = result {
            self.health.fail("remove deleted files", &error);
        }
    }
}

fn remove_dir(disk: &dyn Disk, path: &Path) -> std::io::Result<()> {
    match disk.remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
