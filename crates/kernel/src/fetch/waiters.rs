//! Where requests wait: by the offset that must be passed, and by the time at which patience ends.
//!
//! A partition holds one [`Waiters`] and wakes exactly those whose offset has been passed; the broker holds
//! one [`Deadlines`] for all. Both are plain ordered maps over an opaque value; whoever takes a value out
//! decides what it means. A waiter is taken at most once from each, so its owner needs one "done" flag.

use std::collections::BTreeMap;

use wire::types::Offset;

/// Those who wait for a partition's records at or beyond an offset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waiters<W> {
    by_offset: BTreeMap<(Offset, u64), W>,
}

impl<W> Default for Waiters<W> {
    fn default() -> Self {
        Self { by_offset: BTreeMap::new() }
    }
}

impl<W> Waiters<W> {
    /// Waiter `id` wants to know when the end has moved beyond `offset`, that is when `end > offset`.
    pub fn add(&mut self, offset: Offset, id: u64, waiter: W) {
        self.by_offset.insert((offset, id), waiter);
    }

    /// Forgets a waiter; a waiter that is gone already is no error.
    pub fn remove(&mut self, offset: Offset, id: u64) {
        self.by_offset.remove(&(offset, id));
    }

    /// Takes out everybody who waits for an offset below `end` (exclusive), in order of offset.
    pub fn take_passed(&mut self, end: Offset) -> Vec<W> {
        let rest = self.by_offset.split_off(&(end, 0));
        std::mem::replace(&mut self.by_offset, rest).into_values().collect()
    }

    /// Takes out everybody: the partition is gone.
    pub fn take_all(&mut self) -> Vec<W> {
        std::mem::take(&mut self.by_offset).into_values().collect()
    }

    /// Everybody, in order of offset; they stay where they are.
    pub fn all(&self) -> impl Iterator<Item = &W> {
        self.by_offset.values()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.by_offset.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.by_offset.is_empty()
    }
}

/// Those whose patience ends at some time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deadlines<W> {
    by_time: BTreeMap<(i64, u64), W>,
}

impl<W> Default for Deadlines<W> {
    fn default() -> Self {
        Self { by_time: BTreeMap::new() }
    }
}

impl<W> Deadlines<W> {
    /// Waiter `id` gives up at `mono_ms`. Returns whether it is now the first to do so.
    pub fn add(&mut self, mono_ms: i64, id: u64, waiter: W) -> bool {
        let first = self.next().is_none_or(|next| mono_ms < next);
        self.by_time.insert((mono_ms, id), waiter);
        first
    }

    /// Forgets a waiter; a waiter that is gone already is no error.
    pub fn remove(&mut self, mono_ms: i64, id: u64) {
        self.by_time.remove(&(mono_ms, id));
    }

    /// Takes out everybody whose time is at or before `mono_ms`, earliest first.
    pub fn take_expired(&mut self, mono_ms: i64) -> Vec<W> {
        let rest = self.by_time.split_off(&(mono_ms.saturating_add(1), 0));
        std::mem::replace(&mut self.by_time, rest).into_values().collect()
    }

    /// The earliest time at which somebody gives up.
    pub fn next(&self) -> Option<i64> {
        self.by_time.first_key_value().map(|((time, _), _)| *time)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.by_time.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_those_whose_offset_was_passed_are_woken() {
        let mut waiters = Waiters::default();
        waiters.add(Offset(5), 1, 'a');
        waiters.add(Offset(5), 2, 'b');
        waiters.add(Offset(6), 3, 'c');
        assert_eq!(waiters.take_passed(Offset(5)), []);
        assert_eq!(waiters.take_passed(Offset(6)), ['a', 'b']);
        assert_eq!(waiters.len(), 1);
        assert_eq!(waiters.all().collect::<Vec<_>>(), [&'c']);
        assert_eq!(waiters.take_all(), ['c']);
        assert!(waiters.is_empty());
    }

    #[test]
    fn a_removed_waiter_is_never_woken() {
        let mut waiters = Waiters::default();
        waiters.add(Offset(5), 1, 'a');
        waiters.remove(Offset(5), 1);
        waiters.remove(Offset(5), 1);
        assert_eq!(waiters.take_passed(Offset(9)), []);
    }

    #[test]
    fn patience_ends_at_the_stated_time_and_not_before() {
        let mut deadlines = Deadlines::default();
        assert!(deadlines.add(100, 1, 'a'));
        assert!(!deadlines.add(200, 2, 'b'));
        assert!(deadlines.add(50, 3, 'c'));
        assert_eq!(deadlines.next(), Some(50));
        assert_eq!(deadlines.take_expired(49), []);
        assert_eq!(deadlines.take_expired(100), ['c', 'a']);
        deadlines.remove(200, 2);
        assert!(deadlines.is_empty());
    }
}
