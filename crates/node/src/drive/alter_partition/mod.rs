//! Carries the ISR changes of leaders to where they are decided, and the answers back.
//!
//! From `inter.broker.protocol.version` 2.7-IV2 on that is the controller ([`request`]); before, the leader writes the
//! partition's state itself ([`write`]). Nothing is called here with a lock of a partition held, and answers reach a
//! leader with no lock of this held (KAFKA-13254).

mod request;
mod write;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::replica::alter_partition::{AlterPartition, Command, Event, Item};
use kernel::replica::isr_notifications::IsrNotifications;
use kernel::replica::leader::{IsrAnswer, IsrChange};
use wire::types::TopicPartition;

use self::request::KnownController;
use crate::broker::Broker;
use crate::partition::Partition;

/// The changes of the ISR that are asked for.
#[derive(Default)]
pub(crate) struct AlterPartitions {
    sender: Mutex<AlterPartition>,
    controller: Mutex<Option<KnownController>>,
    /// Whether the last request failed, which is told once.
    failing: AtomicBool,
    notifications: Mutex<IsrNotifications>,
}

impl AlterPartitions {
    /// The leader of `partition` wants its ISR changed; [`Partition::isr_answered`] takes the answer.
    pub(crate) fn submit(&self, broker: &Arc<Broker>, partition: &Partition, change: IsrChange) {
        let name = partition.name().clone();
        if leader_writes(broker) {
            write::write(broker, name, change);
        } else {
            let item = Item { topic_id: partition.topic_id(), change };
            step(broker, Event::Submit { partition: name, item });
        }
    }

    /// Panics if an invariant does not hold ([`Broker::check`]).
    pub(crate) fn check(&self) {
        self.sender().check();
    }

    fn sender(&self) -> MutexGuard<'_, AlterPartition> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for AlterPartitions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AlterPartitions").field("pending", &self.sender().len()).finish_non_exhaustive()
    }
}

/// Whether leaders write the states of their partitions themselves.
fn leader_writes(broker: &Broker) -> bool {
    !broker.config().inter_broker_protocol_version.alter_partition_supported()
}

/// Hands an event to the sender and does what it says.
fn step(broker: &Arc<Broker>, event: Event) {
    let mut commands = Vec::new();
    let deadline_ms = {
        let mut sender = broker.alter_partition().sender();
        sender.step(broker.now(), event, &mut commands);
        sender.deadline()
    };
    for command in commands {
        match command {
            Command::Send { id, items } => request::send(broker, id, items),
            Command::Report { partition, change, answer } => report(broker, &partition, change, answer),
        }
    }
    if let Some(deadline_ms) = deadline_ms {
        broker.timers().add_task(deadline_ms, |broker| step(broker, Event::Tick));
    }
}

/// Tells the leader of a partition what became of its change; one who no longer leads does not care.
fn report(broker: &Arc<Broker>, partition: &TopicPartition, change: IsrChange, answer: IsrAnswer) {
    if let Some(partition) = broker.hosted(partition) {
        partition.isr_answered(broker, change, answer);
    }
}
