//! The timers of one group, each at most once: what is due next costs the logarithm of their number, so a heartbeat in
//! a large group is as cheap as in a small one (KAFKA-7142).

use std::collections::{BTreeMap, BTreeSet};

use wire::Str;

/// What a timer is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Timer {
    /// The join phase ends, whoever has joined.
    Join,
    /// Those who have not sent SyncGroup have had time enough (KAFKA-12890).
    Sync,
    /// A member has not been heard of for its session timeout.
    Session(Str),
    /// A member id that was given out has not been used for its session timeout.
    PendingMember(Str),
}

/// See the module's text. Times are on the monotonic clock, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Timers {
    due: BTreeSet<(i64, Timer)>,
    by_timer: BTreeMap<Timer, i64>,
}

impl Timers {
    /// Sets a timer, in place of the one that was.
    pub(super) fn set(&mut self, timer: Timer, at_ms: i64) {
        self.cancel(&timer);
        self.by_timer.insert(timer.clone(), at_ms);
        self.due.insert((at_ms, timer));
    }

    pub(super) fn cancel(&mut self, timer: &Timer) {
        if let Some((timer, at_ms)) = self.by_timer.remove_entry(timer) {
            self.due.remove(&(at_ms, timer));
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<i64> {
        self.due.first().map(|(at_ms, _)| *at_ms)
    }

    /// Takes the next one that is due.
    pub(super) fn pop(&mut self, now_ms: i64) -> Option<Timer> {
        if self.next()? > now_ms {
            return None;
        }
        let (_, timer) = self.due.pop_first()?;
        self.by_timer.remove(&timer);
        Some(timer)
    }

    #[cfg(test)]
    pub(super) fn is_set(&self, timer: &Timer) -> bool {
        self.by_timer.contains_key(timer)
    }
}
