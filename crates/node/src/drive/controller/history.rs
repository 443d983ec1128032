//! What the controller has done and why: a line in the log, and the last of them kept to be asked for.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel::controller::note::{Level, Note, What};
use serde_json::{Value, json};
use wire::types::{BrokerId, Now, TopicPartition};

/// How many notes are kept; the oldest make room.
const KEPT: usize = 4_096;

/// The notes, oldest first.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    wall_ms: i64,
    note: Note,
}

impl History {
    /// Logs a note and keeps it unless it is a mere trace.
    pub(super) fn add(&self, id: BrokerId, now: Now, note: Note) {
        log(id, &note);
        if note.what.level() == Level::Trace {
            return;
        }
        let mut entries = self.lock();
        if entries.len() >= KEPT {
            entries.pop_front();
        }
        entries.push_back(Entry { wall_ms: now.wall_ms, note });
    }

    /// What was done to a partition, oldest first, as JSON.
    pub(super) fn of(&self, partition: &TopicPartition) -> Vec<Value> {
        let entries = self.lock();
        let of = entries.iter().filter(|entry| subject(&entry.note.what) == Some(partition));
        of.map(|Entry { wall_ms, note }| {
            json!({
                "timeMs": wall_ms,
                "event": note.cause.number,
                "cause": note.cause.event,
                "causedByEvent": note.cause.parent,
                "controllerEpoch": note.controller_epoch.0,
                "what": note.what.to_string(),
            })
        })
        .collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The partition that it is about.
fn subject(what: &What) -> Option<&TopicPartition> {
    match what {
        What::Leadership { partition, .. }
        | What::Partition { partition, .. }
        | What::Replica { partition, .. }
        | What::PartitionRefused { partition, .. }
        | What::ReplicaRefused { partition, .. }
        | What::StateUnreadable { partition, .. }
        | What::UnassignedReplica { partition, .. } => Some(partition),
        _ => None,
    }
}

/// Kafka's name for the log of state changes.
const TARGET: &str = "state.change.logger";

fn log(id: BrokerId, note: &Note) {
    let (epoch, event, parent) = (note.controller_epoch.0, note.cause.number, note.cause.parent);
    let (cause, what) = (&note.cause.event, &note.what);
    match note.what.level() {
        Level::Trace => tracing::trace!(target: TARGET, id = id.0, epoch, event, parent, cause, "{what}"),
        Level::Info => tracing::info!(target: TARGET, id = id.0, epoch, event, parent, cause, "{what}"),
        Level::Warn => tracing::warn!(target: TARGET, id = id.0, epoch, event, parent, cause, "{what}"),
        Level::Error => tracing::error!(target: TARGET, id = id.0, epoch, event, parent, cause, "{what}"),
    }
}
