//! What waits for its turn, in the order in which it came.
//!
//! Bounded: a change that waits already is not queued again, since what changed is read when the turn comes, so changes
//! are limited by the number of things that are watched; answers of a broker that wait are one, with the last word for each
//! partition; requests are limited by [`MAX_WAITING_REQUESTS`].

use std::collections::{BTreeSet, VecDeque};

use wire::types::{BrokerEpoch, BrokerId};

use super::event::{ApiRequest, Change, RequestId};
use super::responses::Outcomes;

/// How many requests of brokers and clients may wait. One more is refused.
pub const MAX_WAITING_REQUESTS: usize = 10_000;

/// Something to be worked on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Task {
    /// See who is controller, and stand for election if nobody is.
    Elect,
    /// Give up `/controller`, so that another term begins.
    Yield {
        /// The version of `/controller_epoch` of the term that is over.
        epoch_version: i32,
    },
    /// Look at what changed.
    Change(Change),
    /// See whether leaders are where they should be.
    Balance,
    /// A broker, in the run of this epoch, answered LeaderAndIsr.
    Led(BrokerId, BrokerEpoch, Outcomes),
    /// A broker, in the run of this epoch, answered a StopReplica that was to delete replicas.
    Deleted(BrokerId, BrokerEpoch, Outcomes),
    /// Serve a request.
    Request(RequestId, ApiRequest),
}

impl Task {
    /// Takes in an answer of the same run of the same broker; whether it was one.
    fn merge(&mut self, later: &mut Self) -> bool {
        match (self, later) {
            (Self::Led(broker, run, earlier), Self::Led(later_broker, later_run, later))
            | (Self::Deleted(broker, run, earlier), Self::Deleted(later_broker, later_run, later))
                if (*broker, *run) == (*later_broker, *later_run) =>
            {
                earlier.append(later);
                true
            }
            _ => false,
        }
    }
}

/// A task with the number of the event that raised it, if the controller did so itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    pub(super) task: Task,
    pub(super) parent: Option<u64>,
}

/// The tasks that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    changes: BTreeSet<Change>,
    requests: usize,
}

impl Queue {
    /// Queues a task. A request comes back if too many wait.
    pub(super) fn push(&mut self, mut task: Task, parent: Option<u64>) -> Result<(), RequestId> {
        let is_answer = matches!(task, Task::Led(..) | Task::Deleted(..));
        if is_answer && self.waiting.iter_mut().any(|waiting| waiting.task.merge(&mut task)) {
            return Ok(());
        }
        match &task {
            Task::Change(change) if !self.changes.insert(change.clone()) => return Ok(()),
            Task::Request(id, _) if self.requests >= MAX_WAITING_REQUESTS => return Err(*id),
            Task::Request(..) => self.requests += 1,
            Task::Elect | Task::Balance if self.waiting.iter().any(|waiting| waiting.task == task) => {
                return Ok(());
            }
            Task::Change(_)
            | Task::Elect
            | Task::Yield { .. }
            | Task::Balance
            | Task::Led(..)
            | Task::Deleted(..) => {}
        }
        self.waiting.push_back(Waiting { task, parent });
        Ok(())
    }

    /// Takes the next task.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        match &waiting.task {
            Task::Change(change) => {
                self.changes.remove(change);
            }
            Task::Request(..) => self.requests = self.requests.saturating_sub(1),
            Task::Elect | Task::Yield { .. } | Task::Balance | Task::Led(..) | Task::Deleted(..) => {}
        }
        Some(waiting)
    }

    /// Takes everything out and gives back the requests, which have to be answered.
    pub(super) fn drain(&mut self) -> Vec<(RequestId, ApiRequest)> {
        self.changes.clear();
        self.requests = 0;
        let requests = self.waiting.drain(..).filter_map(|waiting| match waiting.task {
            Task::Request(id, request) => Some((id, request)),
            _ => None,
        });
        requests.collect()
    }

    /// Whether an answer of a broker to LeaderAndIsr waits.
    pub(super) fn holds_answer_of(&self, broker: BrokerId) -> bool {
        self.waiting.iter().any(|waiting| matches!(&waiting.task, Task::Led(of, ..) if *of == broker))
    }

    /// How many tasks wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Asserts that the counts are true and the limits kept.
    pub(super) fn check(&self) {
        let changes = self.waiting.iter().filter(|waiting| matches!(waiting.task, Task::Change(_))).count();
        let requests =
            self.waiting.iter().filter(|waiting| matches!(waiting.task, Task::Request(..))).count();
        assert!(changes == self.changes.len(), "a change waits twice");
        assert!(requests == self.requests && requests <= MAX_WAITING_REQUESTS, "requests are miscounted");
    }
}
