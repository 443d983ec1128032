//! What a leader knows of one follower: how far it has copied, and when it last had everything.
//!
//! All of it comes from the follower's own fetches. A fetch at an offset says that everything below it is in
//! the follower's log, and nothing else does.

use wire::types::{BrokerEpoch, Millis, Offset};

/// The broker epoch of those who tell none: fetches have a place for it since version 15 (KIP-903).
const UNTOLD: BrokerEpoch = BrokerEpoch(-1);

/// A follower, as its leader sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoteReplica {
    /// The registration that it last told; -1 if it tells none.
    broker_epoch: BrokerEpoch,
    log_end: Offset,
    log_start: Offset,
    last_caught_up_ms: Option<i64>,
    last_fetch_ms: Option<i64>,
    last_fetch_leader_end: Offset,
}

impl RemoteReplica {
    /// A follower that has not fetched in this leadership. `in_sync`: it belongs to the ISR, so its time of grace
    /// begins now; any other one must catch up first, lest it hold back the high watermark.
    pub(super) fn unknown(in_sync: bool, now_ms: i64) -> Self {
        Self {
            broker_epoch: UNTOLD,
            log_end: Offset::UNKNOWN,
            log_start: Offset::UNKNOWN,
            last_caught_up_ms: in_sync.then_some(now_ms),
            last_fetch_ms: None,
            last_fetch_leader_end: Offset::UNKNOWN,
        }
    }

    /// The same follower in the next epoch of the same leader: nobody else has led in between, so nothing of what it
    /// had is gone.
    pub(super) fn in_next_epoch(&self, leader_end: Offset, in_sync: bool, now_ms: i64) -> Self {
        let at = in_sync.then_some(now_ms);
        Self {
            broker_epoch: self.broker_epoch,
            log_end: self.log_end,
            log_start: self.log_start,
            last_caught_up_ms: at,
            last_fetch_ms: at,
            last_fetch_leader_end: leader_end,
        }
    }

    /// Takes in the registration that a fetch names; false if the fetch is of an earlier life of the broker, which may
    /// have had records that this one has lost.
    pub(super) fn lives_in(&mut self, told: BrokerEpoch) -> bool {
        if told != UNTOLD && told < self.broker_epoch {
            return false;
        }
        self.broker_epoch = told;
        true
    }

    /// The follower fetched at `offset` while the leader's log ended at `leader_end`.
    pub(super) fn fetched(&mut self, offset: Offset, log_start: Offset, leader_end: Offset, now_ms: i64) {
        if offset >= leader_end {
            self.last_caught_up_ms = self.last_caught_up_ms.max(Some(now_ms));
        } else if offset >= self.last_fetch_leader_end {
            // It has now all that there was when it fetched before: it had caught up at that time.
            self.last_caught_up_ms = self.last_caught_up_ms.max(self.last_fetch_ms);
        }
        self.log_end = offset;
        self.log_start = log_start;
        self.last_fetch_leader_end = self.last_fetch_leader_end.max(leader_end);
        self.last_fetch_ms = Some(now_ms);
    }

    /// The registration that the follower told with its last fetch; -1 if it told none.
    pub fn broker_epoch(&self) -> BrokerEpoch {
        self.broker_epoch
    }

    /// The end of the follower's log (exclusive); [`Offset::UNKNOWN`] before its first fetch.
    pub fn log_end(&self) -> Offset {
        self.log_end
    }

    /// The start of the follower's log (inclusive); [`Offset::UNKNOWN`] before its first fetch.
    pub fn log_start(&self) -> Offset {
        self.log_start
    }

    /// Whether the follower has everything, or had so within the last `lag` (KAFKA-7152: a follower that has all of an
    /// idle partition is in sync however seldom it fetches).
    pub fn is_caught_up(&self, leader_end: Offset, now_ms: i64, lag: Millis) -> bool {
        self.log_end == leader_end || self.behind_for(now_ms).is_some_and(|behind| behind <= lag)
    }

    /// When the follower last had everything, on the clock of `mono_ms`; `None` if it never had in this leadership.
    pub(super) fn last_caught_up_ms(&self) -> Option<i64> {
        self.last_caught_up_ms
    }

    /// How long ago the follower had everything; `None` if it never had in this leadership.
    pub fn behind_for(&self, now_ms: i64) -> Option<Millis> {
        self.last_caught_up_ms.map(|at| Millis(now_ms.saturating_sub(at)))
    }
}
