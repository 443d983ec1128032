//! Who becomes leader: the four strategies, as functions of one partition's stored state and of who is online.
//!
//! An election that succeeds raises the leader epoch by one even if the leader stays. A leader from outside the in-sync
//! replicas is taken only where that is allowed, and is noted as recovering (KIP-704); a clean election keeps the
//! recovery state as it was.

use std::collections::BTreeSet;

use wire::types::{BrokerId, ControllerEpoch, LeaderEpoch};

use super::values::{LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment};

/// Why a leader is elected, and thereby who may become it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// The leader is gone: the first replica that is online and in sync. If there is none and unclean elections are
    /// allowed, by the caller or by the topic: the first that is online.
    Offline {
        /// Whether a leader that is not in sync is allowed whatever the topic says.
        allow_unclean: bool,
    },
    /// A reassignment ends: the first of the target replicas that is online and in sync.
    Reassign,
    /// The first replica, if it is online and in sync.
    Preferred,
    /// The leader is about to shut down: the first replica that stays, is registered and is in sync.
    ControlledShutdown,
}

/// How far a replica can be counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Liveness {
    /// Its broker is not registered, or its log directory failed.
    Offline,
    /// Online, but its broker is about to shut down.
    ShuttingDown,
    /// Online.
    Online,
}

/// What an election looks at.
pub struct Ballot<'a> {
    /// The replicas.
    pub assignment: &'a ReplicaAssignment,
    /// The state as stored.
    pub stored: &'a LeaderAndIsr,
    /// Who is online.
    pub liveness: &'a dyn Fn(BrokerId) -> Liveness,
    /// The brokers that are about to shut down.
    pub shutting_down: &'a BTreeSet<BrokerId>,
    /// Whether the topic allows a leader that is not in sync.
    pub is_unclean_allowed: bool,
    /// Whether an unclean election is noted in the state.
    pub uses_recovery_state: bool,
    /// The epoch of the controller that decides.
    pub controller_epoch: ControllerEpoch,
}

/// The outcome of an election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Elected {
    /// The state to write, over the partition epoch that it carries.
    pub state: LeaderAndIsr,
    /// The replicas that are told.
    pub recipients: Vec<BrokerId>,
    /// Whether the leader was not in sync.
    pub is_unclean: bool,
}

impl LeaderAndIsr {
    /// The state under a new leader: the next leader epoch, everything else but the in-sync replicas as before.
    #[must_use]
    pub fn with_leader(
        &self,
        leader: BrokerId,
        isr: Vec<BrokerId>,
        controller_epoch: ControllerEpoch,
    ) -> Self {
        Self {
            leader,
            leader_epoch: LeaderEpoch(self.leader_epoch.0.saturating_add(1)),
            isr,
            recovery_state: self.recovery_state,
            controller_epoch,
            partition_epoch: self.partition_epoch,
        }
    }
}

impl Ballot<'_> {
    /// Holds the election; `None` if nobody may become leader.
    pub fn elect(&self, strategy: Strategy) -> Option<Elected> {
        match strategy {
            Strategy::Offline { allow_unclean } => self.offline(allow_unclean || self.is_unclean_allowed),
            Strategy::Reassign => self.reassign(),
            Strategy::Preferred => self.preferred(),
            Strategy::ControlledShutdown => self.controlled_shutdown(),
        }
    }

    fn offline(&self, is_unclean_allowed: bool) -> Option<Elected> {
        let online = self.assigned(|replica| self.is_online(replica));
        if let Some(leader) = online.iter().copied().find(|replica| self.is_in_sync(*replica)) {
            let isr = self.in_sync(|replica| self.is_online(replica));
            return Some(self.elected(leader, isr, online));
        }
        let leader = online.first().copied().filter(|_| is_unclean_allowed)?;
        let mut elected = self.elected(leader, vec![leader], online);
        elected.is_unclean = true;
        if self.uses_recovery_state {
            elected.state.recovery_state = LeaderRecoveryState::Recovering;
        }
        Some(elected)
    }

    fn reassign(&self) -> Option<Elected> {
        let target = self.assignment.target();
        let leader =
            target.iter().copied().find(|replica| self.is_online(*replica) && self.is_in_sync(*replica));
        Some(self.elected(leader?, self.stored.isr.clone(), target))
    }

    fn preferred(&self) -> Option<Elected> {
        let first = self.assignment.replicas.first().copied();
        let leader = first.filter(|replica| self.is_online(*replica) && self.is_in_sync(*replica));
        Some(self.elected(leader?, self.stored.isr.clone(), self.assignment.replicas.clone()))
    }

    fn controlled_shutdown(&self) -> Option<Elected> {
        let registered = self.assigned(|replica| (self.liveness)(replica) != Liveness::Offline);
        let stays = |replica: BrokerId| !self.shutting_down.contains(&replica);
        let leader =
            registered.iter().copied().find(|replica| stays(*replica) && self.is_in_sync(*replica))?;
        Some(self.elected(leader, self.in_sync(stays), registered))
    }

    fn elected(&self, leader: BrokerId, isr: Vec<BrokerId>, recipients: Vec<BrokerId>) -> Elected {
        let state = self.stored.with_leader(leader, isr, self.controller_epoch);
        Elected { state, recipients, is_unclean: false }
    }

    fn is_online(&self, replica: BrokerId) -> bool {
        (self.liveness)(replica) == Liveness::Online
    }

    fn is_in_sync(&self, replica: BrokerId) -> bool {
        self.stored.isr.contains(&replica)
    }

    fn assigned(&self, keep: impl Fn(BrokerId) -> bool) -> Vec<BrokerId> {
        self.assignment.replicas.iter().copied().filter(|replica| keep(*replica)).collect()
    }

    fn in_sync(&self, keep: impl Fn(BrokerId) -> bool) -> Vec<BrokerId> {
        self.stored.isr.iter().copied().filter(|replica| keep(*replica)).collect()
    }
}
