//! Does what a group wants: answers, appends to its partition of `__consumer_offsets`, and tells what happened.

use std::collections::VecDeque;
use std::sync::Arc;

use kernel::group::{Answer, AppendId, Batch, Command, Event, Note};
use wire::batch::{BatchBuilder, BatchError};
use wire::error_code::ErrorCode;
use wire::types::{Now, Offset};

use super::slot::{Home, Next, Slot};
use crate::append::Source;
use crate::append::replicated::{self, append_replicated};
use crate::broker::Broker;

/// The first sequence number of a batch that is part of a transaction; a coordinator's are not looked at.
const FIRST_SEQUENCE: i32 = 0;

/// Does all that is wanted. No lock may be held.
pub(super) fn obey(broker: &Arc<Broker>, slot: &Arc<Slot>) {
    let _guard = Obeying(slot);
    while let Some(next) = slot.next() {
        act(broker, slot, next);
    }
}

/// Gives answers that wait for nothing. No lock may be held.
pub(super) fn answer(broker: &Arc<Broker>, slot: &Arc<Slot>, answers: VecDeque<Command>) {
    let mut left = Answering { slot, answers };
    while let Some(command) = left.answers.pop_front() {
        act(broker, slot, slot.ready(command));
    }
}

/// Answers that are to be given. A panic ends the one that is given, not the others.
struct Answering<'a> {
    slot: &'a Slot,
    answers: VecDeque<Command>,
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        if !self.answers.is_empty() {
            self.slot.put_back(std::mem::take(&mut self.answers));
        }
    }
}

/// Whoever does what a group wants. A panic ends that one, not the group.
struct Obeying<'a>(&'a Slot);

impl Drop for Obeying<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_left();
        }
    }
}

fn act(broker: &Arc<Broker>, slot: &Arc<Slot>, next: Next) {
    match next {
        Next::Answer(done, answer) => {
            count(broker, &answer);
            if let Some(done) = done {
                done(answer);
            }
        }
        Next::Do(Command::Append { append, batch }) => write(broker, slot, append, &batch),
        Next::Do(Command::AppendTombstones(batch)) => bury(broker, slot, &batch),
        Next::Do(Command::Forget) => broker.groups().registry.forget(slot),
        Next::Do(Command::Note(note)) => tell(broker, slot, &note),
        Next::Do(Command::Answer { .. }) => {}
    }
}

fn write(broker: &Arc<Broker>, slot: &Arc<Slot>, append: AppendId, batch: &Batch) {
    let writing = broker.groups().writing;
    let then = slot.clone();
    hand_in(broker, slot, batch, writing.acks_all, writing.timeout_ms, move |broker, outcome| {
        then.tell(broker, Event::Appended { append, outcome });
    });
}

/// Nobody waits for tombstones: what they bury is gone from memory already, and if they get lost it expires again after
/// the next load.
fn bury(broker: &Arc<Broker>, slot: &Arc<Slot>, batch: &Batch) {
    let (group, records) = (slot.group_id().clone(), batch.records.len());
    hand_in(broker, slot, batch, false, 0, move |_, outcome| {
        if let Err(error) = outcome {
            tracing::warn!(%group, records, error = error.name(), "tombstones were not written");
        }
    });
}

fn hand_in(
    broker: &Arc<Broker>,
    slot: &Arc<Slot>,
    batch: &Batch,
    acks_all: bool,
    timeout_ms: i64,
    done: impl FnOnce(&Arc<Broker>, Result<Offset, ErrorCode>) + Send + 'static,
) {
    let Home { partition, led_since } = slot.home();
    // It was deleted. Another one of its name has groups of its own.
    let Some(partition) = partition.upgrade() else {
        return done(broker, Err(ErrorCode::NotLeaderOrFollower));
    };
    let records = match encode(broker, batch) {
        Ok(built) => built.bytes,
        Err(error) => {
            tracing::error!(group = %slot.group_id(), %error, "records of a group cannot be written");
            return done(broker, Err(ErrorCode::UnknownServerError));
        }
    };
    let source = Source::Coordinator(*led_since);
    let request = replicated::Request { records, acks_all, timeout_ms, source };
    append_replicated(broker, &partition, request, done);
}

fn encode(broker: &Broker, batch: &Batch) -> Result<wire::batch::Batch, BatchError> {
    let mut builder = BatchBuilder::new(broker.groups().writing.compression);
    if let Some(producer) = batch.producer {
        builder = builder.producer(producer.id, producer.epoch, FIRST_SEQUENCE).transactional(true);
    }
    for (key, value) in &batch.records {
        builder.append(batch.timestamp, Some(key), value.as_deref());
    }
    builder.build()
}

fn tell(broker: &Broker, slot: &Slot, note: &Note) {
    let group = slot.group_id();
    match note {
        // Below min.insync.replicas that is every commit of every member; who waits is told.
        Note::AppendFailed { .. } => tracing::debug!("group {group}: {note}"),
        Note::Dead { .. } => tracing::debug!("group {group} {note}"),
        _ => tracing::info!("group {group}: {note}"),
    }
    let Now { mono_ms, .. } = broker.now();
    let meters = &broker.groups().meters;
    match note {
        Note::Joined { .. } => meters.completed_rebalances.add(mono_ms, 1),
        Note::OffsetsExpired { offsets } => meters.offset_expirations.add(mono_ms, *offsets),
        _ => {}
    }
}

fn count(broker: &Broker, answer: &Answer) {
    let (meter, codes) = match answer {
        Answer::Commit(codes) => (&broker.groups().meters.offset_commits, codes),
        Answer::DeleteOffsets(Ok(codes)) => (&broker.groups().meters.offset_deletions, codes),
        _ => return,
    };
    let done = codes.values().filter(|code| **code == ErrorCode::None).count();
    meter.add(broker.now().mono_ms, done);
}
