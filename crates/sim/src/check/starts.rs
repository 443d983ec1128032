//! Where logs begin (KIP-107): nowhere above what a client wanted deleted, and while one process leads, never below where they
//! began before, nor below what it has confirmed to be deleted. (A new leader may not have heard of the last deletions, and
//! a process that comes back, perhaps in the same epoch, may have forgotten them, as in Kafka.) Nothing is read from below.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::world::World;

/// Under whom something is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Led {
    /// The epoch that the client named; the leader leads in it or a later one.
    pub(crate) epoch: i32,
    /// The life of the leader's broker.
    pub(crate) life: u64,
}

/// Where a reader is told that the log begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) led: Led,
    /// Where the log begins.
    pub(crate) start: i64,
    /// The offset from which the reader was given records.
    pub(crate) position: i64,
    /// When it asked, in microseconds of virtual time; it is answered now.
    pub(crate) asked_us: u64,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Starts(Mutex<BTreeMap<(String, i32), State>>);

#[derive(Default)]
struct State {
    /// Below which offset records may be gone.
    wanted: i64,
    /// The last start that was told.
    told: Option<Told>,
    /// The last deletion that was confirmed.
    deleted: Option<Deleted>,
}

#[derive(Clone, Copy)]
struct Deleted {
    led: Led,
    offset: i64,
    at_us: u64,
}

impl Starts {
    /// A client wants the records below `offset` deleted.
    pub(crate) fn wanted(&self, topic: &str, partition: i32, offset: i64) {
        self.with(topic, partition, |state| state.wanted = state.wanted.max(offset));
    }

    /// Below which offset records may be gone.
    pub(crate) fn may_begin_at(&self, topic: &str, partition: i32) -> i64 {
        self.with(topic, partition, |state| state.wanted)
    }

    /// A client is told that the records below `offset` are deleted, and that the log
    /// begins at `low_watermark` in the replica that is furthest behind.
    pub(crate) fn deleted(
        &self,
        world: &World,
        (topic, partition): (&str, i32),
        led: Led,
        offset: i64,
        low_watermark: i64,
    ) {
        let at_us = world.schedule.now_us();
        self.with(topic, partition, |state| state.deleted = Some(Deleted { led, offset, at_us }));
        if low_watermark < offset {
            let finding = format!(
                "{topic}-{partition}: {offset} is confirmed as its start, and a replica begins at {low_watermark}"
            );
            world.findings.add(world, finding);
        }
    }

    /// A reader, who asks one thing after the other, is given records, and told where the log begins.
    pub(crate) fn told(&self, world: &World, topic: &str, partition: i32, told: Told) {
        let wrong = self.with(topic, partition, |state| {
            let before = state.told.replace(told);
            state.judge(before, told)
        });
        if let Some(wrong) = wrong {
            let Told { led: Led { epoch, .. }, start, .. } = told;
            world
                .findings
                .add(world, format!("{topic}-{partition} begins at {start} in epoch {epoch}, {wrong}"));
        }
    }

    fn with<R>(&self, topic: &str, partition: i32, act: impl FnOnce(&mut State) -> R) -> R {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(all.entry((topic.to_owned(), partition)).or_default())
    }
}

impl State {
    /// What is wrong with what a reader is told.
    fn judge(&self, before: Option<Told>, told: Told) -> Option<String> {
        let Told { led, start, position, asked_us } = told;
        if start > self.wanted {
            return Some(format!("and nobody wanted more than {} deleted", self.wanted));
        }
        if position < start {
            return Some(format!("and is read from {position}"));
        }
        if let Some(before) = before.filter(|before| before.led == led && start < before.start) {
            return Some(format!("and began at {} before", before.start));
        }
        let deleted = self.deleted.filter(|it| it.led == led && it.at_us < asked_us && start < it.offset);
        deleted.map(|it| format!("although the deletion of all below {} was confirmed", it.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(epoch: i32, start: i64, position: i64) -> Told {
        Told { led: Led { epoch, life: 1 }, start, position, asked_us: 10 }
    }

    fn state(deleted: Option<Deleted>) -> State {
        State { wanted: 8, told: None, deleted }
    }

    fn is_wrong(deleted: Option<Deleted>, before: Option<Told>, now: Told) -> bool {
        state(deleted).judge(before, now).is_some()
    }

    #[test]
    fn a_log_begins_nowhere_above_what_was_wanted_and_is_not_read_below() {
        assert!(!is_wrong(None, None, told(1, 8, 8)));
        assert!(is_wrong(None, None, told(1, 9, 9)));
        assert!(is_wrong(None, None, told(1, 8, 7)));
    }

    #[test]
    fn while_one_leader_leads_its_log_does_not_begin_below_what_it_told_before() {
        let before = Some(told(1, 6, 6));
        assert!(!is_wrong(None, before, told(1, 6, 8)));
        assert!(is_wrong(None, before, told(1, 5, 8)));
        assert!(!is_wrong(None, before, told(2, 5, 8)));
        let forgetful = Told { led: Led { epoch: 1, life: 2 }, ..told(1, 5, 8) };
        assert!(!is_wrong(None, before, forgetful), "the process has come back");
    }

    #[test]
    fn what_was_confirmed_to_be_deleted_counts_for_those_who_ask_afterwards() {
        let deleted = |epoch, at_us| Some(Deleted { led: Led { epoch, life: 1 }, offset: 6, at_us });
        assert!(is_wrong(deleted(1, 9), None, told(1, 5, 8)));
        assert!(!is_wrong(deleted(1, 10), None, told(1, 5, 8)));
        assert!(!is_wrong(deleted(1, 9), None, told(2, 5, 8)));
        assert!(!is_wrong(deleted(1, 9), None, told(1, 6, 8)));
    }
}
