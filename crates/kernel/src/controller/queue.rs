//! What waits for its turn, in the order in which it came.
//!
//! Bounded: a change that waits already is not queued again, since what changed is read when the turn comes, so changes
//! are limited by the number of things that are watched; requests are limited by [`MAX_WAITING_REQUESTS`].

use std::collections::{BTreeSet, VecDeque};

use super::event::{ApiRequest, Change, RequestId};

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
    /// Serve a request.
    Request(RequestId, ApiRequest),
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
    pub(super) fn push(&mut self, task: Task, parent: Option<u64>) -> Result<(), RequestId> {
        match &task {
            Task::Change(change) if !self.changes.insert(change.clone()) => return Ok(()),
            Task::Request(id, _) if self.requests >= MAX_WAITING_REQUESTS => return Err(*id),
            Task::Request(..) => self.requests += 1,
            Task::Elect if self.waiting.iter().any(|waiting| waiting.task == Task::Elect) => return Ok(()),
            Task::Change(_) | Task::Elect | Task::Yield { .. } => {}
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
            Task::Elect | Task::Yield { .. } => {}
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
