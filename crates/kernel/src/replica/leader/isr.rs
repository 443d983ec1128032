//! Changes of the ISR: asked for, pending, confirmed or given up. One at a time (KIP-497).

use wire::types::{BrokerEpoch, BrokerId, LeaderEpoch, Now, Offset};

use super::{Cause, Command, Lagging, Leader};

/// A change of the ISR that a leader asks for. It is done only if the partition still has both epochs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IsrChange {
    /// The leader's epoch.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch that the change replaces.
    pub partition_epoch: i32,
    /// The whole new ISR.
    pub isr: Vec<BrokerId>,
    /// Who joins, and the registration in which it has caught up; -1 if it told none. Under another one it may have lost
    /// what it had.
    pub joining: Option<(BrokerId, BrokerEpoch)>,
}

/// What became of an [`IsrChange`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IsrAnswer {
    /// The partition has this state now; it is the one asked for, or the same had been reached before.
    Confirmed {
        /// The leader's epoch.
        leader_epoch: LeaderEpoch,
        /// The partition epoch.
        partition_epoch: i32,
        /// The in-sync replicas.
        isr: Vec<BrokerId>,
    },
    /// It was certainly not done, and the partition has the epochs named (OPERATION_NOT_ATTEMPTED,
    /// INELIGIBLE_REPLICA).
    NotAttempted,
    /// The leader is behind: a LeaderAndIsr must be on its way that tells the truth (FENCED_LEADER_EPOCH,
    /// INVALID_UPDATE_VERSION, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST).
    Superseded,
    /// It may or may not have been done, and must be asked for again.
    Failed,
}

/// A change that was asked for and is not answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending {
    pub(super) proposed: Vec<BrokerId>,
    change: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Expand(BrokerId, BrokerEpoch),
    Shrink,
}

impl Pending {
    pub(super) fn is_expansion(&self) -> bool {
        matches!(self.change, Kind::Expand(..))
    }

    /// Whether the change lets `id` in.
    pub(super) fn adds(&self, id: BrokerId) -> bool {
        self.joining().is_some_and(|(joining, _)| joining == id)
    }

    /// Who joins, and its registration.
    fn joining(&self) -> Option<(BrokerId, BrokerEpoch)> {
        match self.change {
            Kind::Expand(id, broker_epoch) => Some((id, broker_epoch)),
            Kind::Shrink => None,
        }
    }
}

impl Leader {
    /// Lets a follower into the ISR that has all committed records, and the start of this epoch (KAFKA-7128), if its
    /// broker is alive (KAFKA-14140).
    pub(super) fn maybe_expand(&mut self, id: BrokerId, out: &mut Vec<Command>) {
        let Some(remote) = self.remotes.get(&id) else { return };
        let (log_end, broker_epoch) = (remote.log_end(), remote.broker_epoch());
        let in_sync = log_end >= self.high_watermark && log_end >= self.epoch_start;
        if self.pending.is_some() || self.leadership.isr.contains(&id) || !in_sync || !self.live.contains(&id)
        {
            return;
        }
        out.push(Command::Note(Cause::Expanding { replica: id, log_end }));
        let mut isr = self.leadership.isr.clone();
        isr.push(id);
        self.propose(isr, Kind::Expand(id, broker_epoch), out);
    }

    /// Puts those out of the ISR that have not caught up for too long.
    pub(super) fn maybe_shrink(&mut self, now: Now, out: &mut Vec<Command>) {
        if self.pending.is_some() {
            return;
        }
        let mut lagging = Vec::new();
        for id in self.leadership.isr.iter().filter(|id| **id != self.broker) {
            let remote = self.remotes.get(id);
            if !remote.is_some_and(|remote| self.is_caught_up(remote, now)) {
                lagging.push(Lagging {
                    replica: *id,
                    log_end: remote.map_or(Offset::UNKNOWN, super::RemoteReplica::log_end),
                    behind_for: remote.and_then(|remote| remote.behind_for(now.mono_ms)),
                });
            }
        }
        if lagging.is_empty() {
            return;
        }
        let stays = |id: &&BrokerId| lagging.iter().all(|out| out.replica != **id);
        let isr = self.leadership.isr.iter().filter(stays).copied().collect();
        out.push(Command::Note(Cause::Shrinking {
            lagging,
            log_end: self.log_end,
            high_watermark: self.high_watermark,
        }));
        self.propose(isr, Kind::Shrink, out);
    }

    /// Asks for `isr`. What the controller should never have told is not told back to it (R2, KAFKA-9672): a leader
    /// that is not in the ISR, a member that is no replica.
    fn propose(&mut self, mut isr: Vec<BrokerId>, change: Kind, out: &mut Vec<Command>) {
        isr.retain(|id| self.leadership.replicas.contains(id));
        if !isr.contains(&self.broker) {
            isr.insert(0, self.broker);
        }
        let pending = Pending { proposed: isr, change };
        out.push(Command::SubmitIsr(self.submission(&pending)));
        self.pending = Some(pending);
    }

    fn submission(&self, pending: &Pending) -> IsrChange {
        IsrChange {
            leader_epoch: self.leader_epoch(),
            partition_epoch: self.partition_epoch(),
            isr: pending.proposed.clone(),
            joining: pending.joining(),
        }
    }

    pub(super) fn isr_answered(
        &mut self,
        now: Now,
        change: &IsrChange,
        answer: IsrAnswer,
        out: &mut Vec<Command>,
    ) {
        let Some(pending) = self.pending.take() else { return };
        if self.submission(&pending) != *change {
            // It answers an earlier leadership, or a change that came to nothing (KAFKA-12686).
            self.pending = Some(pending);
            return;
        }
        match answer {
            IsrAnswer::Confirmed { leader_epoch, partition_epoch, isr } => {
                if leader_epoch != self.leader_epoch() || partition_epoch < self.partition_epoch() {
                    self.pending = Some(pending);
                    return;
                }
                self.leadership.isr = isr;
                self.leadership.partition_epoch = partition_epoch;
                out.push(Command::Note(Cause::Confirmed {
                    isr: self.leadership.isr.clone(),
                    partition_epoch,
                    expanded: pending.is_expansion(),
                }));
                // With one follower less, all that is left may have everything (KAFKA-13091).
                self.advance(now, out);
            }
            IsrAnswer::NotAttempted => {
                out.push(Command::Note(Cause::NotAttempted { proposed: pending.proposed }));
                // A replica that was let in for the high watermark's sake no longer counts.
                self.advance(now, out);
            }
            IsrAnswer::Superseded => {
                out.push(Command::Note(Cause::Superseded { proposed: pending.proposed.clone() }));
                self.pending = Some(pending);
            }
            IsrAnswer::Failed => {
                out.push(Command::SubmitIsr(self.submission(&pending)));
                self.pending = Some(pending);
            }
        }
    }
}
