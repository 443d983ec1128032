//! The controller: the one broker that moves replicas and partitions through their states.
//!
//! A pure machine. [`Controller::step`] takes an [`Event`] and gives [`Command`]s: store operations, requests to
//! brokers, answers, notes. It works on one event at a time; while a store operation of that event is open, later events
//! wait (`queue`). Only the end of the session, a change of `/controller` and the stop of the broker overtake.
//!
//! How to read it: `engine` takes events in and runs programs; `program` lists every step; `failover` is the order in
//! which a term begins. What happens to replicas and partitions stands in `replicas` and `partitions`, with `isr_removal`,
//! `creation` and `leader_election` below them; the legal transitions are the tables in `replica_state` and
//! `partition_state`.
//!
//! To add an event: a variant of [`event::Change`] (something watched) or [`event::ApiRequest`] (something asked), a row in
//! `engine::program_of`, and a file with its steps, each of which is a variant of `program::Step`. What is written goes
//! through [`store::StoreOp`], so that every write of a term is fenced. A request is answered by `Turn::answer`; the
//! engine answers for a program that was given up.

mod alter_partition;
pub mod batch;
mod brokers;
pub mod channel;
pub mod command;
pub mod context;
mod controlled_shutdown;
mod creation;
mod deletion;
pub mod elect_leaders;
pub mod election;
mod engine;
pub mod event;
mod failover;
pub mod features;
mod gauges;
mod isr_removal;
mod leader_election;
pub mod note;
mod notifications;
mod office;
pub mod partition_state;
mod partitions;
pub mod producer_ids;
mod program;
mod queue;
pub mod replica_state;
mod replicas;
pub mod requests;
mod responses;
pub mod settings;
pub mod store;
mod topics;
mod unclean;
pub mod values;

#[cfg(test)]
mod tests;

use wire::types::{BrokerId, ControllerEpoch, Now};

use command::Command;
use context::Context;
use engine::Running;
use event::Event;
use office::Office;
use queue::Queue;
use settings::Settings;
use store::OpId;

pub use engine::ControllerState;
pub use gauges::Gauges;
pub use queue::MAX_WAITING_REQUESTS;

/// How long this broker leaves the office to others after something failed in it, or before it looks again who is
/// controller after that could not be read, in milliseconds.
pub const HOLD_OFF_MS: i64 = 1_000;

/// How long after it was elected a controller looks for the first time whether leaders are where they should be, in
/// milliseconds.
pub const FIRST_BALANCE_MS: i64 = 5_000;

/// The controller of one broker: asleep until it is elected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Controller {
    settings: Settings,
    office: Office,
    context: Context,
    queue: Queue,
    running: Option<Running>,
    /// The read of `/controller` that a change of it led to: it does not wait for the event under work.
    watch: ControllerWatch,
    /// Until when this broker does not stand for election, in monotonic milliseconds.
    hold_off_until: Option<i64>,
    /// When the balance of leaders is looked at next, in monotonic milliseconds; never out of office.
    balance_at: Option<i64>,
    is_stopped: bool,
    next_op: u64,
    events: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct ControllerWatch {
    read: Option<OpId>,
    /// Whether `/controller` changed again while it was read.
    is_stale: bool,
}

impl Controller {
    /// A controller that knows of no session yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            office: Office::default(),
            context: Context::default(),
            queue: Queue::default(),
            running: None,
            watch: ControllerWatch::default(),
            hold_off_until: None,
            balance_at: None,
            is_stopped: false,
            next_op: 0,
            events: 0,
        }
    }

    /// Takes an event in.
    pub fn step(&mut self, now: Now, event: Event, out: &mut Vec<Command>) {
        self.take_in(now, event, out);
        self.advance(now, out);
    }

    /// When [`Event::Tick`] is due, in monotonic milliseconds.
    pub fn deadline(&self) -> Option<i64> {
        [self.hold_off_until, self.balance_at].into_iter().flatten().min()
    }

    /// Whether this broker is controller.
    pub fn is_active(&self) -> bool {
        self.office.is_active()
    }

    /// Who is controller, as far as this broker knows.
    pub fn controller(&self) -> Option<BrokerId> {
        self.office.controller()
    }

    /// The epoch of the term; 0 out of office.
    pub fn epoch(&self) -> ControllerEpoch {
        self.office.epoch()
    }

    /// What is known of the cluster; empty out of office.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// How many events wait (`EventQueueSize`).
    pub fn queue_size(&self) -> usize {
        self.queue.len()
    }

    /// What is being worked on (`ControllerState`).
    pub fn state(&self) -> ControllerState {
        self.running.as_ref().map_or(ControllerState::Idle, Running::state)
    }

    /// The gauges of the term, all 0 out of office. Looks at every partition.
    pub fn gauges(&self) -> Gauges {
        Gauges::of(&self.office, &self.context)
    }

    /// Asserts what must hold between steps.
    pub fn check(&self) {
        self.queue.check();
        self.context.check();
        let is_asleep = self.context == Context::default();
        assert!(self.office.is_active() || is_asleep, "a context is kept out of office");
        assert!(self.office.has_session() || !self.office.is_active(), "a term outlives its session");
        match &self.running {
            Some(running) => running.check(),
            None => assert!(self.queue.len() == 0, "events wait although nothing is worked on"),
        }
        assert!(
            self.office.has_session() || self.running.is_none(),
            "something is worked on without a session"
        );
    }
}
