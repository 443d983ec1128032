//! The leader of one partition: who is in sync, and how far the high watermark may go.
//!
//! A follower's fetch tells how far it has copied. The high watermark is the least log end among the leader, the
//! *maximal* ISR and those who are about to join it, and only rises. The ISR changes in two steps: the leader asks for
//! a new one ([`Command::SubmitIsr`]) and counts on it only when it is confirmed. Meanwhile a replica that joins
//! counts for the high watermark already, and one that leaves still does, so both outcomes are safe (KIP-497).
//!
//! R1 the high watermark never falls within an epoch. R2 the ISR that is asked for holds the leader and lies within
//! the replicas. R3 no follower's end counts that it has not told in this epoch, unless this broker led the epoch just
//! before.

mod cause;
mod isr;
mod preferred;
mod remote;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, Millis, Now, Offset};

pub use cause::{Cause, Lagging};
pub use isr::{IsrAnswer, IsrChange};
pub use remote::RemoteReplica;

use isr::Pending;

/// What the controller decides when it makes a broker the leader of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leadership {
    /// The epoch of this leadership.
    pub leader_epoch: LeaderEpoch,
    /// The version of the partition's state (partition epoch, in ZooKeeper the version of its znode).
    pub partition_epoch: i32,
    /// The term of the controller that decided.
    pub controller_epoch: ControllerEpoch,
    /// All replicas, in order of preference.
    pub replicas: Vec<BrokerId>,
    /// The replicas that a reassignment under way adds; part of `replicas`.
    pub adding: Vec<BrokerId>,
    /// The replicas that a reassignment under way removes; part of `replicas`.
    pub removing: Vec<BrokerId>,
    /// The in-sync replicas.
    pub isr: Vec<BrokerId>,
}

/// The settings that matter to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// `replica.lag.time.max.ms`.
    pub replica_lag_time_max: Millis,
    /// `min.insync.replicas` of the topic.
    pub min_insync_replicas: i32,
}

/// What a broker knows when it becomes leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Start {
    /// This broker.
    pub broker: BrokerId,
    /// The controller's decision.
    pub leadership: Leadership,
    /// The high watermark of the log.
    pub high_watermark: Offset,
    /// The end of the log (exclusive): where the epoch begins.
    pub log_end: Offset,
    /// The settings.
    pub settings: Settings,
    /// The brokers that are alive; those that are no replicas do not matter.
    pub live: BTreeSet<BrokerId>,
}

/// What happens to a leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Records were appended to the leader's log.
    Appended {
        /// The new end of the log (exclusive).
        log_end: Offset,
    },
    /// A follower's fetch was read, without an error and without a diverging epoch (KAFKA-8400, KAFKA-13141).
    FollowerFetched {
        /// The follower.
        replica: BrokerId,
        /// Its registration, as it tells it; -1 if the version of the request has no place for it. What an earlier life
        /// of the broker has sent says nothing of this one (apache/kafka#14053).
        broker_epoch: BrokerEpoch,
        /// The epoch of the leadership that it was read in; a fetch of another one says nothing of this (R3).
        leader_epoch: LeaderEpoch,
        /// The offset it asked for: the end of its log.
        offset: Offset,
        /// The start of its log.
        log_start: Offset,
        /// The end of the leader's log, read before the records.
        leader_end: Offset,
    },
    /// The answer to a [`Command::SubmitIsr`]. One to a change that is no longer pending is ignored.
    IsrAnswered {
        /// The change that was asked for.
        change: IsrChange,
        /// What became of it.
        answer: IsrAnswer,
    },
    /// The set of live brokers has changed.
    LiveBrokers(BTreeSet<BrokerId>),
    /// The settings have changed.
    Settings(Settings),
    /// Time has passed; due every half of `replica.lag.time.max.ms`. Followers that lag behind leave the ISR.
    Tick,
}

/// What a leader wants done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Moves the high watermark of the log forward to this offset (exclusive).
    AdvanceHighWatermark(Offset),
    /// Asks the controller (below `inter.broker.protocol.version` 2.7-IV2: the store) for another ISR, if the
    /// partition still has the epochs named; the answer comes as [`Event::IsrAnswered`]. A leader that changes its
    /// ISR has recovered from an unclean election, if there was one (KIP-704).
    SubmitIsr(IsrChange),
    /// Tells why something is as it is.
    Note(Cause),
}

/// The leader of one partition; see the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    broker: BrokerId,
    leadership: Leadership,
    /// The first epoch since which this broker has led without anybody between that it heard of.
    led_since: LeaderEpoch,
    epoch_start: Offset,
    high_watermark: Offset,
    log_end: Offset,
    settings: Settings,
    live: BTreeSet<BrokerId>,
    remotes: BTreeMap<BrokerId, RemoteReplica>,
    pending: Option<Pending>,
}

impl Leader {
    /// Begins a leadership. `previous`: what this broker was until now, if it led already.
    pub fn begin(start: Start, previous: Option<&Self>, now: Now, out: &mut Vec<Command>) -> Self {
        let Start { broker, leadership, high_watermark, log_end, settings, live } = start;
        let just_before =
            |it: &&Self| it.leadership.leader_epoch.0.checked_add(1) == Some(leadership.leader_epoch.0);
        // Who led an older epoch has missed a leader: followers may have cut what they had since (R3).
        let continued = previous.filter(just_before);
        let remote = |id: BrokerId| {
            let in_sync = leadership.isr.contains(&id);
            let known = continued.and_then(|it| it.remotes.get(&id));
            known.map_or_else(
                || RemoteReplica::unknown(in_sync, now.mono_ms),
                |known| known.in_next_epoch(log_end, in_sync, now.mono_ms),
            )
        };
        let followers = leadership.replicas.iter().filter(|id| **id != broker);
        let mut leader = Self {
            broker,
            led_since: previous.map_or(leadership.leader_epoch, |it| it.led_since),
            epoch_start: log_end,
            high_watermark,
            log_end,
            settings,
            live,
            remotes: followers.map(|id| (*id, remote(*id))).collect(),
            pending: None,
            leadership,
        };
        out.push(Command::Note(Cause::Leading {
            leader_epoch: leader.leader_epoch(),
            epoch_start: log_end,
            isr: leader.leadership.isr.clone(),
            continued: continued.is_some(),
        }));
        leader.advance(now, out);
        leader
    }

    /// Takes an event and says what is to be done.
    pub fn step(&mut self, now: Now, event: Event, out: &mut Vec<Command>) {
        match event {
            Event::Appended { log_end } => {
                self.log_end = self.log_end.max(log_end);
                self.advance(now, out);
            }
            Event::FollowerFetched { leader_epoch, .. } if leader_epoch != self.leader_epoch() => {}
            Event::FollowerFetched { replica, broker_epoch, offset, log_start, leader_end, .. } => {
                self.log_end = self.log_end.max(leader_end);
                let Some(remote) = self.remotes.get_mut(&replica) else { return };
                // A fetch beyond the log is answered with an error; it says nothing that could be true.
                if offset > leader_end || !remote.lives_in(broker_epoch) {
                    return;
                }
                remote.fetched(offset, log_start, leader_end, now.mono_ms);
                self.maybe_expand(replica, out);
                self.advance(now, out);
            }
            Event::IsrAnswered { change, answer } => self.isr_answered(now, &change, answer, out),
            Event::LiveBrokers(live) => {
                self.live = live;
                self.advance(now, out);
            }
            Event::Settings(settings) => {
                self.settings = settings;
                self.advance(now, out);
            }
            Event::Tick => {
                self.maybe_shrink(now, out);
                // A replica that was about to join may have become too slow to be waited for.
                self.advance(now, out);
            }
        }
    }

    /// Panics if an invariant does not hold; for tests and simulations.
    ///
    /// # Panics
    /// As it says.
    pub fn check(&self) {
        assert!(self.high_watermark <= self.log_end, "L1: {self:?}");
        if let Some(pending) = &self.pending {
            assert!(pending.proposed.contains(&self.broker), "R2: the leader is not in {pending:?}");
            let stranger = pending.proposed.iter().find(|id| !self.leadership.replicas.contains(id));
            assert_eq!(stranger, None, "R2: {pending:?} names one that is no replica");
        }
        for (id, remote) in &self.remotes {
            assert!(remote.log_end() <= self.log_end, "replica {id} has more than its leader: {self:?}");
        }
    }

    /// Moves the high watermark as far as it may go.
    fn advance(&mut self, now: Now, out: &mut Vec<Command>) {
        // KAFKA-15583: with too few in sync, nothing counts as replicated.
        if self.is_under_min_isr() {
            return;
        }
        let counts = |id: BrokerId, remote: &RemoteReplica| {
            self.is_in_maximal_isr(id) || (self.live.contains(&id) && self.is_caught_up(remote, now))
        };
        let replicated = self.remotes.iter().filter(|(id, remote)| counts(**id, remote));
        let candidate = replicated.map(|(_, remote)| remote.log_end()).fold(self.log_end, Offset::min);
        if candidate > self.high_watermark {
            self.high_watermark = candidate;
            out.push(Command::AdvanceHighWatermark(candidate));
        }
    }

    fn is_caught_up(&self, remote: &RemoteReplica, now: Now) -> bool {
        remote.is_caught_up(self.log_end, now.mono_ms, self.settings.replica_lag_time_max)
    }

    fn is_in_maximal_isr(&self, id: BrokerId) -> bool {
        self.leadership.isr.contains(&id) || self.pending.as_ref().is_some_and(|pending| pending.adds(id))
    }

    /// How many in-sync replicas there must be: `min.insync.replicas`, but no more than there are replicas (KIP-966).
    fn effective_min_isr(&self) -> usize {
        let wanted = usize::try_from(self.settings.min_insync_replicas).unwrap_or(0);
        wanted.min(self.remotes.len().saturating_add(1))
    }
}

/// What a leader can be asked.
impl Leader {
    /// The epoch of the leadership.
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leadership.leader_epoch
    }

    /// Where the epoch began: the log end when this broker became leader.
    pub fn epoch_start(&self) -> Offset {
        self.epoch_start
    }

    /// The first epoch since which this broker has led without becoming follower: what it has appended since then is
    /// still in its log.
    pub fn led_since(&self) -> LeaderEpoch {
        self.led_since
    }

    /// The partition epoch that a change of the ISR must name.
    pub fn partition_epoch(&self) -> i32 {
        self.leadership.partition_epoch
    }

    /// The decision it leads by; ISR and partition epoch are those of the last change that was confirmed.
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// The high watermark.
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// The confirmed in-sync replicas.
    pub fn isr(&self) -> &[BrokerId] {
        &self.leadership.isr
    }

    /// Whether a change of the ISR waits for its answer.
    pub fn is_isr_change_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// How many replicas count as in sync for what was appended before: those confirmed, and one that is joining.
    pub fn maximal_isr_len(&self) -> usize {
        self.leadership
            .isr
            .len()
            .saturating_add(usize::from(self.pending.as_ref().is_some_and(Pending::is_expansion)))
    }

    /// The follower of this id; `None` if it is no replica.
    pub fn remote(&self, id: BrokerId) -> Option<&RemoteReplica> {
        self.remotes.get(&id)
    }

    /// All followers.
    pub fn remotes(&self) -> &BTreeMap<BrokerId, RemoteReplica> {
        &self.remotes
    }

    /// Whether an append that wants all in-sync replicas must be refused: too few are confirmed (NOT_ENOUGH_REPLICAS).
    pub fn is_under_min_isr(&self) -> bool {
        self.leadership.isr.len() < self.effective_min_isr()
    }

    /// Whether one replica less would be too few.
    pub fn is_at_min_isr(&self) -> bool {
        self.leadership.isr.len() == self.effective_min_isr()
    }

    /// Whether records that the high watermark has passed lack replicas all the same
    /// (NOT_ENOUGH_REPLICAS_AFTER_APPEND).
    pub fn lacks_replicas_after_append(&self) -> bool {
        self.maximal_isr_len() < self.effective_min_isr()
    }

    /// Whether replicas are missing from the ISR. Those that a reassignment is only just adding are not missed.
    pub fn is_under_replicated(&self) -> bool {
        let Leadership { replicas, adding, isr, .. } = &self.leadership;
        isr.len() < replicas.iter().filter(|id| !adding.contains(id)).count()
    }

    /// Whether a reassignment of the partition is under way.
    pub fn is_reassigning(&self) -> bool {
        !self.leadership.adding.is_empty() || !self.leadership.removing.is_empty()
    }

    /// Below which offset no live replica has records any more, given the start of the leader's log; below zero while
    /// a live follower has not told where its log begins (KIP-107).
    pub fn low_watermark(&self, log_start: Offset) -> Offset {
        let live = self.remotes.iter().filter(|(id, _)| self.live.contains(id));
        live.map(|(_, remote)| remote.log_start()).fold(log_start, Offset::min)
    }
}
