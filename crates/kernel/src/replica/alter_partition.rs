//! Gathers the ISR changes of all partitions that a broker leads into requests to the controller (KIP-497).
//!
//! One request is in flight at a time and carries all changes that wait; more gather meanwhile. Nothing is given up: a
//! request that fails as a whole is repeated after a pause with whatever waits by then, for ever, since a change may
//! have been made and its leader must learn of it. A change that its leader asks for anew takes the place of the one
//! that waits; an answer to an older one means nothing to that leader, which tells answers apart by their change.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use wire::types::{Now, TopicId, TopicPartition};

use super::leader::{IsrAnswer, IsrChange};

/// The pause after a request that failed as a whole, in milliseconds.
pub const RETRY_PAUSE_MS: i64 = 50;

/// A change and the topic it is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Item {
    /// The topic's id; zero if it has none.
    pub topic_id: TopicId,
    /// The change.
    pub change: IsrChange,
}

/// What is told to the sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A leader wants its ISR changed.
    Submit {
        /// The partition.
        partition: TopicPartition,
        /// What it wants.
        item: Item,
    },
    /// A request was answered, and not with an error for the whole of it. Partitions that the answer leaves out are
    /// sent again.
    Answered {
        /// The number of the request.
        id: u64,
        /// The answers that were in it.
        answers: BTreeMap<TopicPartition, IsrAnswer>,
    },
    /// A request was not answered, or failed as a whole: the broker asked was not the controller, our registration is
    /// not known to it yet, the connection broke, no controller is known.
    Failed {
        /// The number of the request.
        id: u64,
    },
    /// Time has passed.
    Tick,
}

/// What the sender wants done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Sends these changes to the controller; [`Event::Answered`] or [`Event::Failed`] reports the end.
    Send {
        /// The number of the request.
        id: u64,
        /// The changes, by partition.
        items: BTreeMap<TopicPartition, Item>,
    },
    /// Tells a leader what became of its change.
    Report {
        /// The partition.
        partition: TopicPartition,
        /// The change it asked for.
        change: IsrChange,
        /// What became of it.
        answer: IsrAnswer,
    },
}

/// The sender; see the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AlterPartition {
    waiting: BTreeMap<TopicPartition, Item>,
    in_flight: Option<InFlight>,
    requests: u64,
    /// Until when nothing is sent, on the monotonic clock.
    pause_until_ms: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InFlight {
    id: u64,
    items: BTreeMap<TopicPartition, Item>,
}

impl AlterPartition {
    /// Takes an event and says what is to be done.
    pub fn step(&mut self, now: Now, event: Event, out: &mut Vec<Command>) {
        match event {
            Event::Submit { partition, item } => {
                self.waiting.insert(partition, item);
            }
            Event::Answered { id, answers } => self.answered(now, id, answers, out),
            Event::Failed { id } => {
                if let Some(sent) = self.take_in_flight(id) {
                    self.send_again(sent);
                    self.pause_until_ms = Some(now.mono_ms.saturating_add(RETRY_PAUSE_MS));
                }
            }
            Event::Tick => {}
        }
        if self.pause_until_ms.is_some_and(|until_ms| until_ms <= now.mono_ms) {
            self.pause_until_ms = None;
        }
        self.send(out);
    }

    /// When [`Event::Tick`] is due, on the monotonic clock.
    pub fn deadline(&self) -> Option<i64> {
        self.pause_until_ms.filter(|_| self.in_flight.is_none() && !self.waiting.is_empty())
    }

    /// Panics if an invariant does not hold; for tests and simulations.
    ///
    /// # Panics
    /// As it says.
    pub fn check(&self) {
        let idle = self.in_flight.is_none() && self.pause_until_ms.is_none();
        assert!(!idle || self.waiting.is_empty(), "changes wait for nothing: {self:?}");
        assert!(
            self.in_flight.as_ref().is_none_or(|sent| !sent.items.is_empty()),
            "an empty request: {self:?}"
        );
    }

    /// How many changes wait or are in flight.
    pub fn len(&self) -> usize {
        self.waiting.len().saturating_add(self.in_flight.as_ref().map_or(0, |sent| sent.items.len()))
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn answered(
        &mut self,
        now: Now,
        id: u64,
        mut answers: BTreeMap<TopicPartition, IsrAnswer>,
        out: &mut Vec<Command>,
    ) {
        let Some(sent) = self.take_in_flight(id) else { return };
        let mut left_out = BTreeMap::new();
        for (partition, item) in sent {
            match answers.remove(&partition) {
                Some(answer) => out.push(Command::Report { partition, change: item.change, answer }),
                None => {
                    left_out.insert(partition, item);
                }
            }
        }
        // Whoever fails alone is asked for again by its leader at once; the pause keeps that from becoming a storm.
        let fails = |command: &Command| matches!(command, Command::Report { answer: IsrAnswer::Failed, .. });
        if !left_out.is_empty() || out.iter().any(fails) {
            self.pause_until_ms = Some(now.mono_ms.saturating_add(RETRY_PAUSE_MS));
        }
        self.send_again(left_out);
    }

    fn take_in_flight(&mut self, id: u64) -> Option<BTreeMap<TopicPartition, Item>> {
        Some(self.in_flight.take_if(|sent| sent.id == id)?.items)
    }

    /// What was sent waits again, unless its leader has asked for something else since.
    fn send_again(&mut self, sent: BTreeMap<TopicPartition, Item>) {
        for (partition, item) in sent {
            self.waiting.entry(partition).or_insert(item);
        }
    }

    fn send(&mut self, out: &mut Vec<Command>) {
        if self.waiting.is_empty() || self.in_flight.is_some() || self.pause_until_ms.is_some() {
            return;
        }
        self.requests = self.requests.wrapping_add(1);
        let (id, items) = (self.requests, std::mem::take(&mut self.waiting));
        self.in_flight = Some(InFlight { id, items: items.clone() });
        out.push(Command::Send { id, items });
    }
}
