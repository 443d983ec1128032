//! When a leader that writes its ISR itself tells the controller, which cannot know otherwise: brokers with an
//! `inter.broker.protocol.version` below 2.7-IV2 do, by a child of `/isr_change_notification`.
//!
//! The controller answers each child with an UpdateMetadata to everybody, so changes gather until there is a lull.

use std::collections::BTreeSet;

use wire::types::{Now, TopicPartition};

/// How often it is looked whether something is to be told, in milliseconds.
pub const CHECK_INTERVAL_MS: i64 = 2_500;
/// How long the last change must be past, in milliseconds.
pub const LINGER_MS: i64 = 5_000;
/// After how long it is told although changes go on, in milliseconds.
pub const MAX_DELAY_MS: i64 = 60_000;

/// The changes that the controller has not been told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IsrNotifications {
    changed: BTreeSet<TopicPartition>,
    last_change_ms: i64,
    last_told_ms: i64,
}

impl IsrNotifications {
    /// The ISR of a partition was written. Returns when to look first, if nobody looks already.
    pub fn changed(&mut self, now: Now, partition: TopicPartition) -> Option<i64> {
        let first = self.changed.is_empty();
        self.changed.insert(partition);
        self.last_change_ms = now.mono_ms;
        first.then(|| now.mono_ms.saturating_add(CHECK_INTERVAL_MS))
    }

    /// Takes what is to be told now, and says when to look again; `None`: not before the next change.
    pub fn due(&mut self, now: Now) -> (BTreeSet<TopicPartition>, Option<i64>) {
        let since = |at_ms: i64| now.mono_ms.saturating_sub(at_ms);
        if since(self.last_change_ms) > LINGER_MS || since(self.last_told_ms) > MAX_DELAY_MS {
            self.last_told_ms = now.mono_ms;
            return (std::mem::take(&mut self.changed), None);
        }
        let again = (!self.changed.is_empty()).then(|| now.mono_ms.saturating_add(CHECK_INTERVAL_MS));
        (BTreeSet::new(), again)
    }

    /// What could not be told waits again. Returns when to look.
    pub fn not_told(&mut self, now: Now, partitions: BTreeSet<TopicPartition>) -> i64 {
        self.changed.extend(partitions);
        now.mono_ms.saturating_add(CHECK_INTERVAL_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(mono_ms: i64) -> Now {
        Now { mono_ms, wall_ms: 0 }
    }

    fn partition(index: i32) -> TopicPartition {
        TopicPartition::new("t", index)
    }

    #[test]
    fn changes_are_told_together_once_there_is_a_lull() {
        let mut told = IsrNotifications { last_told_ms: 100_000, ..IsrNotifications::default() };
        assert_eq!(told.changed(now(100_000), partition(0)), Some(102_500));
        assert_eq!(told.changed(now(101_000), partition(1)), None, "somebody looks already");
        assert_eq!(told.due(now(102_500)), (BTreeSet::new(), Some(105_000)));
        assert_eq!(told.due(now(106_000)), (BTreeSet::new(), Some(108_500)));
        assert_eq!(told.due(now(106_001)), ([partition(0), partition(1)].into(), None));
    }

    #[test]
    fn changes_that_do_not_end_are_told_after_the_longest_delay() {
        let mut told = IsrNotifications { last_told_ms: 100_000, ..IsrNotifications::default() };
        told.changed(now(160_000), partition(0));
        assert_eq!(told.due(now(160_000)).0, BTreeSet::new());
        assert_eq!(told.due(now(160_001)).0, [partition(0)].into());
    }

    #[test]
    fn what_could_not_be_told_is_told_later() {
        let mut told = IsrNotifications { last_told_ms: 100_000, ..IsrNotifications::default() };
        told.changed(now(100_000), partition(0));
        let (taken, _) = told.due(now(105_001));
        assert_eq!(told.not_told(now(105_002), taken), 107_502);
        assert_eq!(told.due(now(107_502)).0, [partition(0)].into());
    }
}
