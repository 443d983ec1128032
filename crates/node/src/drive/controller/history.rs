//! What the controller has done and why: a line in the log, and the last of it kept to be asked for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::controller::note::{Cause, Level, Note, What};
use serde_json::{Value, json};
use wire::types::{BrokerId, ControllerEpoch, Now, TopicName, TopicPartition};

/// How many notes are kept; the oldest make room.
const KEPT: usize = 8_192;
/// How many changes of states of partitions and replicas are kept besides. They come by the thousand, and must not make
/// the others go.
const TRANSITIONS_KEPT: usize = 32_768;

/// The notes.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    next: u64,
    /// The cause of the last note: many have the same.
    cause: Arc<Cause>,
    // Both with the oldest first.
    notes: VecDeque<Entry>,
    transitions: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    place: u64,
    wall_ms: i64,
    cause: Arc<Cause>,
    controller_epoch: ControllerEpoch,
    what: What,
}

impl History {
    /// Logs a note and keeps it.
    pub(super) fn add(&self, id: BrokerId, now: Now, note: Note) {
        log(id, &note);
        let Note { cause, controller_epoch, what } = note;
        let mut kept = self.lock();
        let Kept { next, cause: last, notes, transitions } = &mut *kept;
        if **last != cause {
            *last = Arc::new(cause);
        }
        let (ring, most) = match what.level() {
            Level::Trace => (transitions, TRANSITIONS_KEPT),
            Level::Info | Level::Warn | Level::Error => (notes, KEPT),
        };
        if ring.len() >= most {
            ring.pop_front();
        }
        ring.push_back(Entry {
            place: *next,
            wall_ms: now.wall_ms,
            cause: last.clone(),
            controller_epoch,
            what,
        });
        *next += 1;
    }

    /// What was done to a partition, or to its topic, oldest first, as JSON.
    pub(super) fn of(&self, partition: &TopicPartition) -> Vec<Value> {
        let kept = self.lock();
        let concerns = |entry: &&Entry| {
            subject(&entry.what) == Some(partition) || topic(&entry.what) == Some(&partition.topic)
        };
        let mut entries: Vec<_> = kept.notes.iter().chain(&kept.transitions).filter(concerns).collect();
        entries.sort_unstable_by_key(|entry| entry.place);
        let tell = |Entry { wall_ms, cause, controller_epoch, what, .. }: &Entry| {
            json!({
                "timestampMs": wall_ms,
                "event": cause.number,
                "cause": cause.event,
                "causedByEvent": cause.parent,
                "controllerEpoch": controller_epoch.0,
                "what": what.to_string(),
            })
        };
        entries.into_iter().map(tell).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The topic that it is about, with all partitions.
fn topic(what: &What) -> Option<&TopicName> {
    match what {
        What::TopicIdRestored { topic }
        | What::PartitionsRemoved { topic }
        | What::DeletionDisabled { topic }
        | What::DeletionHalted { topic, .. }
        | What::TopicDeleted { topic } => Some(topic),
        _ => None,
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
const TARGET: &str = crate::loggers::STATE_CHANGES;

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

#[cfg(test)]
mod tests {
    use kernel::controller::partition_state::PartitionState;

    use super::*;

    fn note(number: u64, what: What) -> Note {
        let cause = Cause { number, event: format!("event {number}"), parent: None };
        Note { cause, controller_epoch: ControllerEpoch(3), what }
    }

    fn online(partition: i32) -> What {
        let partition = TopicPartition::new("t", partition);
        What::Partition { partition, from: PartitionState::New, to: PartitionState::Online }
    }

    fn told(history: &History, partition: i32) -> Vec<String> {
        let told = history.of(&TopicPartition::new("t", partition));
        told.iter().map(|it| format!("{} {}", it["event"], it["what"].as_str().unwrap())).collect()
    }

    #[test]
    fn transitions_and_steps_of_a_deletion_are_told_in_order_with_their_causes() {
        let history = History::default();
        let now = Now { mono_ms: 0, wall_ms: 5 };
        history.add(BrokerId(1), now, note(1, online(0)));
        history.add(BrokerId(1), now, note(1, online(1)));
        history.add(BrokerId(1), now, note(2, What::TopicDeleted { topic: "t".into() }));
        history.add(BrokerId(1), now, note(3, online(0)));
        history.add(BrokerId(1), now, note(4, What::TopicDeleted { topic: "u".into() }));
        assert_eq!(
            told(&history, 0),
            [
                "1 partition t-0: NewPartition -> OnlinePartition",
                "2 topic t was deleted",
                "3 partition t-0: NewPartition -> OnlinePartition"
            ]
        );
        assert_eq!(history.of(&TopicPartition::new("t", 1))[0]["cause"], "event 1");
    }

    #[test]
    fn it_is_bounded_and_transitions_do_not_make_other_notes_go() {
        let history = History::default();
        let now = Now { mono_ms: 0, wall_ms: 5 };
        history.add(BrokerId(1), now, note(0, What::TopicDeleted { topic: "t".into() }));
        for number in 0..=TRANSITIONS_KEPT {
            history.add(BrokerId(1), now, note(1, online(i32::from(number > 0))));
        }
        assert_eq!(told(&history, 0), ["0 topic t was deleted"], "the transition made room");
        for number in 0..KEPT {
            let number = u64::try_from(number).unwrap();
            history.add(BrokerId(1), now, note(number, What::TopicDeleted { topic: "u".into() }));
        }
        assert!(told(&history, 0).is_empty());
        let kept = history.lock();
        assert_eq!((kept.notes.len(), kept.transitions.len()), (KEPT, TRANSITIONS_KEPT));
    }
}
