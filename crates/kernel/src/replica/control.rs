//! What a broker makes of the controller's requests: whom it obeys, and what each partition of a LeaderAndIsr or a
//! StopReplica asks of it.
//!
//! Four fences, outermost first. The broker epoch keeps out what was meant for this broker's former life (KIP-380),
//! the controller epoch what an old controller says, the connection what a controller has given up and sent again
//! over another one, the leader epoch what is overtaken for one partition (KIP-570).
//! An equal leader epoch is overtaken, too, in a LeaderAndIsr: the controller never changes anything without raising
//! it, but for the topic id of a log that has none (KAFKA-13132).

#[cfg(test)]
mod tests;

use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, TopicId};

use crate::planted::{Fault, Faults};

/// The leader in an UpdateMetadata for a partition whose topic is being deleted.
pub const LEADER_DURING_DELETE: BrokerId = BrokerId(-2);
/// The leader epoch in a StopReplica for a partition whose topic is being deleted: it stands above every other.
pub const EPOCH_DURING_DELETE: LeaderEpoch = LeaderEpoch(-2);

/// Why a request of a controller is refused as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stale {
    /// It was meant for an earlier life of this broker (STALE_BROKER_EPOCH).
    BrokerEpoch,
    /// Its controller has been replaced (STALE_CONTROLLER_EPOCH).
    ControllerEpoch,
    /// Its controller uses a newer connection: it has given up this one, with what was under way there, and has sent it
    /// again. Nobody waits for an answer.
    Connection,
}

/// Whom this broker obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    broker_epoch: BrokerEpoch,
    controller_epoch: ControllerEpoch,
    /// The number of the newest connection on which that controller was obeyed.
    connection: u64,
    faults: Faults,
}

impl Fence {
    /// The fence of a broker with this registration that has heard of this controller. Only test builds plant faults.
    pub fn new(broker_epoch: BrokerEpoch, controller_epoch: ControllerEpoch, faults: Faults) -> Self {
        Self { broker_epoch, controller_epoch, connection: 0, faults }
    }

    /// The broker has registered again.
    pub fn registered(&mut self, broker_epoch: BrokerEpoch) {
        self.broker_epoch = broker_epoch;
    }

    /// The registration of this broker that is known last.
    pub fn broker_epoch(&self) -> BrokerEpoch {
        self.broker_epoch
    }

    /// The newest controller that was obeyed.
    pub fn controller_epoch(&self) -> ControllerEpoch {
        self.controller_epoch
    }

    /// Lets a request pass, and remembers its controller. A broker epoch of -1 comes from a controller that knows none;
    /// a greater one than ours is from one that has seen our registration before we have. Connections are numbered in the
    /// order in which they were accepted; a controller has one at a time. An UpdateMetadata carries nothing that tells
    /// whether it is overtaken, so one that comes late, over a connection that was slow to break, would undo later news.
    ///
    /// # Errors
    /// If the request is stale.
    pub fn admit(
        &mut self,
        broker_epoch: BrokerEpoch,
        controller_epoch: ControllerEpoch,
        connection: u64,
    ) -> Result<(), Stale> {
        if broker_epoch != BrokerEpoch(-1) && broker_epoch < self.broker_epoch {
            return Err(Stale::BrokerEpoch);
        }
        if controller_epoch < self.controller_epoch && !self.faults.has(Fault::StaleControllersObeyed) {
            return Err(Stale::ControllerEpoch);
        }
        if controller_epoch == self.controller_epoch && connection < self.connection {
            return Err(Stale::Connection);
        }
        self.controller_epoch = controller_epoch;
        self.connection = connection;
        Ok(())
    }
}

/// What a broker has of a partition when a request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Local {
    /// Its log directory has failed.
    Offline,
    /// It is hosted, or a log of it is there that nobody has asked for since the start, or nothing is.
    Present {
        /// The epoch it leads or follows in; [`LeaderEpoch::UNKNOWN`] before the first LeaderAndIsr.
        leader_epoch: LeaderEpoch,
        /// The partition epoch of that leadership; -1 before the first LeaderAndIsr.
        partition_epoch: i32,
        /// The topic id of the log; `None` if it has none, or there is no log.
        topic_id: Option<TopicId>,
    },
}

/// What a LeaderAndIsr says of one partition, as far as it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ordered<'a> {
    /// The leader; [`BrokerId::NONE`] if there is none.
    pub leader: BrokerId,
    /// The leader's epoch.
    pub leader_epoch: LeaderEpoch,
    /// The version of the partition's state.
    pub partition_epoch: i32,
    /// All replicas.
    pub replicas: &'a [BrokerId],
    /// The topic's id; zero if the controller tells none.
    pub topic_id: TopicId,
}

/// What a broker does about one partition of a LeaderAndIsr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// It leads.
    Lead,
    /// It follows the leader named.
    Follow,
    /// The leader named is not alive. The log is made, so that its high watermark stays in the checkpoint
    /// (KAFKA-1647); the role and its epoch stay as they are, and the order can come again.
    KeepLog,
    /// The log gets the topic id that it lacks; all else stays as it is.
    AssignTopicId,
    /// The controller no longer knows the topic's id; a follower stops using it.
    ForgetTopicId,
    /// A later state of the partition is known already; nothing is done, and it is no error.
    Overtaken,
    /// Nothing is done.
    Refused(Refusal),
}

/// Why one partition of a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The log directory has failed (KAFKA_STORAGE_ERROR).
    Offline,
    /// The log is of another topic of the same name (INCONSISTENT_TOPIC_ID).
    InconsistentTopicId,
    /// This broker is no replica (UNKNOWN_TOPIC_OR_PARTITION).
    NotAReplica,
    /// The leader epoch is not newer than the one that is known (LeaderAndIsr: STALE_CONTROLLER_EPOCH, StopReplica:
    /// FENCED_LEADER_EPOCH).
    StaleLeaderEpoch,
}

/// Decides one partition of a LeaderAndIsr for `broker`.
pub fn leader_and_isr(
    broker: BrokerId,
    local: Local,
    ordered: &Ordered<'_>,
    is_alive: impl FnOnce(BrokerId) -> bool,
) -> Order {
    let Local::Present { leader_epoch, partition_epoch, topic_id } = local else {
        return Order::Refused(Refusal::Offline);
    };
    if !ordered.topic_id.is_zero() && topic_id.is_some_and(|known| known != ordered.topic_id) {
        return Order::Refused(Refusal::InconsistentTopicId);
    }
    if ordered.leader_epoch == leader_epoch {
        return match topic_id {
            None if !ordered.topic_id.is_zero() => Order::AssignTopicId,
            Some(_) if ordered.topic_id.is_zero() && ordered.leader != broker => Order::ForgetTopicId,
            _ => Order::Refused(Refusal::StaleLeaderEpoch),
        };
    }
    if ordered.leader_epoch < leader_epoch {
        return Order::Refused(Refusal::StaleLeaderEpoch);
    }
    if !ordered.replicas.contains(&broker) {
        return Order::Refused(Refusal::NotAReplica);
    }
    if ordered.leader != broker && !is_alive(ordered.leader) {
        return Order::KeepLog;
    }
    if ordered.partition_epoch < partition_epoch {
        return Order::Overtaken;
    }
    if ordered.leader == broker { Order::Lead } else { Order::Follow }
}

/// Decides whether one partition of a StopReplica is obeyed. `leader_epoch`: what the request says, with
/// [`LeaderEpoch::UNKNOWN`] from a controller that tells none and [`EPOCH_DURING_DELETE`] for a deletion.
///
/// # Errors
/// Why it is not.
pub fn stop_replica(local: Local, leader_epoch: LeaderEpoch) -> Result<(), Refusal> {
    match local {
        Local::Offline => Err(Refusal::Offline),
        Local::Present { leader_epoch: known, .. } => {
            let always = leader_epoch == EPOCH_DURING_DELETE || leader_epoch == LeaderEpoch::UNKNOWN;
            if always || leader_epoch >= known { Ok(()) } else { Err(Refusal::StaleLeaderEpoch) }
        }
    }
}
