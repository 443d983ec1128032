//! Consumer groups of the classic protocol (KIP-62, KIP-134, KIP-345, KIP-394, KIP-814) and their committed offsets.
//!
//! One group is one machine: it takes requests, ends of appends and time, and says what to answer and what to append to
//! its partition of `__consumer_offsets`. What is to survive changes only once it is in the log: a commit when its batch
//! is appended, an assignment when the group's record is. A partition's groups are rebuilt from its records by
//! [`load`]; requests for groups that do not exist are decided by [`absent`], and before both stands the [`gate`].
//!
//! G2 what replay of the log gives equals the live state. G3 every request is answered exactly once. G4 the generation
//! never falls; a member's assignment belongs to the generation of the group.

pub mod absent;
mod command;
mod errors;
mod event;
pub mod gate;
mod heartbeat;
pub mod id;
mod ids;
mod in_flight;
mod join;
mod leave;
pub mod load;
mod member;
mod note;
mod offsets;
mod rebalance;
mod records;
mod roster;
mod settings;
mod state;
mod static_member;
mod sync;
#[cfg(test)]
mod tests;
mod timers;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::types::{Millis, Now, TopicName};

pub use command::{Answer, Batch, Command, JoinAnswer, JoinedMember, SyncAnswer};
pub use event::{
    CommitRequest, Event, HeartbeatRequest, JoinRequest, LeavingMember, OffsetToCommit, Producer, SyncRequest,
};
pub use ids::{AppendId, RequestId};
pub use member::Protocol;
pub use note::{Note, Reason};
pub use offsets::{Committed, FetchedOffset};
pub use settings::Settings;
pub use state::State;
pub use view::{DescribedGroup, DescribedMember, Overview};

use in_flight::InFlight;
use member::Member;
use offsets::Offsets;
use rebalance::JoinPhase;
use timers::{Timer, Timers};

/// The protocol type whose subscriptions are looked into.
pub const CONSUMER: &str = "consumer";

/// One group; see the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    group_id: Str,
    settings: Arc<Settings>,
    state: State,
    /// When the state changed last, in milliseconds since the Unix epoch; none if it was loaded without.
    state_timestamp: Option<Millis>,
    protocol_type: Option<Str>,
    generation: i32,
    protocol_name: Option<Str>,
    leader: Option<Str>,
    members: BTreeMap<Str, Member>,
    /// The member behind each instance id.
    static_members: BTreeMap<Str, Str>,
    /// Member ids that were given out and have not joined yet (KIP-394).
    pending_members: BTreeSet<Str>,
    /// Members that have not sent SyncGroup in this generation.
    pending_sync: BTreeSet<Str>,
    /// How many members know each protocol.
    supported_protocols: BTreeMap<Str, usize>,
    /// How many members' JoinGroup requests wait.
    awaiting_join: usize,
    /// There is one exactly in PreparingRebalance.
    join_phase: Option<JoinPhase>,
    /// What the members of a group of type `consumer` subscribe to; none if that is not known.
    subscribed_topics: Option<BTreeSet<TopicName>>,
    offsets: Offsets,
    timers: Timers,
    in_flight: BTreeMap<AppendId, InFlight>,
    appends: u64,
}

impl Group {
    /// A group without members and offsets.
    #[must_use]
    pub fn new(group_id: &Str, settings: Arc<Settings>, now: Now) -> Self {
        Self {
            group_id: member::owned(group_id),
            settings,
            state: State::Empty,
            state_timestamp: Some(Millis(now.wall_ms)),
            protocol_type: None,
            generation: 0,
            protocol_name: None,
            leader: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_members: BTreeSet::new(),
            pending_sync: BTreeSet::new(),
            supported_protocols: BTreeMap::new(),
            awaiting_join: 0,
            join_phase: None,
            subscribed_topics: None,
            offsets: Offsets::default(),
            timers: Timers::default(),
            in_flight: BTreeMap::new(),
            appends: 0,
        }
    }

    /// Takes an event and says what is to be done.
    pub fn step(&mut self, now: Now, event: Event, out: &mut Vec<Command>) {
        match event {
            Event::Join(request, join) => self.join(now, request, &join, out),
            Event::Sync(request, sync) => self.sync(now, request, &sync, out),
            Event::Heartbeat(request, heartbeat) => self.heartbeat(now, request, &heartbeat, out),
            Event::Leave(request, leaving) => self.leave(now, request, &leaving, out),
            Event::Commit(request, commit) => self.commit(now, request, commit, out),
            Event::DeleteOffsets(request, partitions) => {
                self.delete_offsets(now, request, &partitions, out);
            }
            Event::Delete(request) => self.delete(now, request, out),
            Event::Appended { append, outcome } => self.appended(now, append, outcome, out),
            Event::TransactionEnded { producer_id, committed } => {
                self.transaction_ended(producer_id, committed);
            }
            Event::PartitionsDeleted(partitions) => self.partitions_deleted(now, &partitions, out),
            Event::ExpireOffsets => self.expire_offsets(now, out),
            Event::Unload => self.die(ErrorCode::NotCoordinator, out),
            Event::Tick => {}
        }
        while let Some(timer) = self.timers.pop(now.mono_ms) {
            self.fire(now, timer, out);
        }
    }

    /// When [`Event::Tick`] is due, on the monotonic clock.
    #[must_use]
    pub fn deadline(&self) -> Option<i64> {
        self.timers.next()
    }

    fn fire(&mut self, now: Now, timer: Timer, out: &mut Vec<Command>) {
        match timer {
            Timer::Join => self.join_phase_expired(now, out),
            Timer::Sync => self.sync_expired(now, out),
            Timer::Session(member_id) => {
                let reason = Reason::SessionExpired(member_id.clone());
                self.remove_and_update(now, &member_id, reason, out);
            }
            Timer::PendingMember(member_id) => {
                self.pending_members.remove(&member_id);
                self.maybe_complete_join(now, out);
            }
        }
    }

    /// Which error a request of a member meets that names an instance, perhaps, and a member.
    fn check_member(&self, member_id: &Str, instance_id: Option<&Str>) -> Result<(), ErrorCode> {
        match instance_id.map(|instance_id| self.static_members.get(instance_id)) {
            Some(Some(current)) if current == member_id => Ok(()),
            Some(Some(_)) => Err(ErrorCode::FencedInstanceId),
            None if self.members.contains_key(member_id) => Ok(()),
            Some(None) | None => Err(ErrorCode::UnknownMemberId),
        }
    }

    fn become_state(&mut self, now: Now, state: State) {
        debug_assert!(self.state.may_become(state), "{:?} -> {state:?}", self.state);
        self.state = state;
        self.state_timestamp = Some(Millis(now.wall_ms));
    }

    /// Ends the group; whoever waits is answered with `error`.
    fn die(&mut self, error: ErrorCode, out: &mut Vec<Command>) {
        if self.state == State::Dead {
            return;
        }
        self.state = State::Dead;
        self.join_phase = None;
        self.awaiting_join = 0;
        for member in self.members.values_mut() {
            if let Some(request) = member.awaiting_join.take() {
                let answer = JoinAnswer::error(error, member.member_id.clone());
                out.push(Command::Answer { request, answer: Answer::Join(answer) });
            }
            for request in std::mem::take(&mut member.awaiting_sync) {
                out.push(Command::Answer { request, answer: Answer::Sync(SyncAnswer::error(error)) });
            }
        }
        for (_, in_flight) in std::mem::take(&mut self.in_flight) {
            in_flight.give_up(error, out);
        }
        self.timers.clear();
        self.offsets = Offsets::default();
        self.pending_members.clear();
        self.pending_sync.clear();
        out.push(Command::Note(Note::Dead { generation: self.generation }));
        out.push(Command::Forget);
    }

    /// Panics if an invariant does not hold; for tests and simulations.
    ///
    /// # Panics
    /// As it says.
    pub fn check(&self) {
        let waiting = self.members.values().filter(|it| it.awaiting_join.is_some()).count();
        assert_eq!(self.awaiting_join, waiting, "waiting JoinGroup requests: {self:?}");
        let preparing = self.state == State::PreparingRebalance;
        assert_eq!(self.join_phase.is_some(), preparing, "join phase: {self:?}");
        assert!(waiting == 0 || preparing, "a JoinGroup request waits for no join phase: {self:?}");
        for (id, member) in &self.members {
            assert_eq!(*id, member.member_id, "member under another id");
            let syncs = self.state == State::CompletingRebalance;
            assert!(syncs || member.awaiting_sync.is_empty(), "{id} waits for no assignment: {self:?}");
            let instance = member.instance_id.as_ref();
            let known = instance.is_none_or(|it| self.static_members.get(it) == Some(id));
            assert!(known, "{id} is not the member of its instance: {self:?}");
        }
        for (instance, id) in &self.static_members {
            assert!(self.members.contains_key(id), "nobody is behind instance {instance}: {self:?}");
        }
        for id in &self.pending_sync {
            assert!(self.members.contains_key(id), "{id} is awaited and no member: {self:?}");
        }
        if self.state != State::Dead {
            let leads = self.leader.as_ref().is_some_and(|id| self.members.contains_key(id));
            assert_eq!(leads, !self.members.is_empty(), "leader: {self:?}");
        }
        if self.state == State::Empty {
            assert!(self.members.is_empty(), "Empty with members: {self:?}");
        }
    }
}

/// Answers a request.
fn answer(request: RequestId, answer: Answer, out: &mut Vec<Command>) {
    out.push(Command::Answer { request, answer });
}
