//! A rebalance from its beginning to the end of its join phase.

use wire::Str;
use wire::error_code::ErrorCode;
use wire::types::Now;

use super::in_flight::InFlight;
use super::timers::Timer;
use super::{Answer, CONSUMER, Command, Group, Note, Reason, State, answer};

/// The least time that a join phase goes on in which nobody has joined, in milliseconds; members may ask for less.
const MIN_EXTENSION_MS: i64 = 100;

/// A join phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct JoinPhase {
    /// Set if the group was Empty: it is waited for more members, `group.initial.rebalance.delay.ms` at a time, and no
    /// longer than so many milliseconds more.
    pub(super) initial_remaining_ms: Option<i64>,
    /// Whether a member was added since the wait began; looked at in the group's first join phase only.
    pub(super) is_member_added: bool,
}

impl Group {
    /// Begins a rebalance, unless one is collecting members already. Whoever waits for an assignment has to join again.
    pub(super) fn begin_rebalance(&mut self, now: Now, reason: Reason, out: &mut Vec<Command>) {
        if !self.state.may_become(State::PreparingRebalance) {
            return;
        }
        if self.state == State::CompletingRebalance {
            self.fail_sync(now, ErrorCode::RebalanceInProgress, out);
        }
        self.pending_sync.clear();
        self.timers.cancel(&Timer::Sync);
        let longest_ms = self.rebalance_timeout_ms();
        let delay_ms = i64::from(self.settings.initial_rebalance_delay_ms.max(0));
        let is_initial = self.state == State::Empty;
        let initial_remaining_ms = is_initial.then(|| longest_ms.saturating_sub(delay_ms).max(0));
        self.become_state(now, State::PreparingRebalance);
        self.join_phase = Some(JoinPhase { initial_remaining_ms, is_member_added: false });
        let wait_ms = if is_initial { delay_ms } else { longest_ms };
        self.timers.set(Timer::Join, now.mono_ms.saturating_add(wait_ms));
        out.push(Command::Note(Note::Rebalancing { generation: self.generation, reason }));
        self.maybe_complete_join(now, out);
    }

    /// Ends the join phase if nobody is waited for: every member has joined, and no member id is on its way
    /// (KAFKA-7909). The first join phase of a group that was Empty always takes its time.
    pub(super) fn maybe_complete_join(&mut self, now: Now, out: &mut Vec<Command>) {
        let Some(phase) = &self.join_phase else { return };
        let is_complete = self.awaiting_join == self.members.len() && self.pending_members.is_empty();
        if phase.initial_remaining_ms.is_none() && is_complete {
            self.complete_join(now, out);
        }
    }

    /// The time of the join phase is over.
    pub(super) fn join_phase_expired(&mut self, now: Now, out: &mut Vec<Command>) {
        let Some(phase) = &mut self.join_phase else { return };
        if let Some(remaining_ms) =
            phase.initial_remaining_ms.filter(|left| phase.is_member_added && *left > 0)
        {
            let wait_ms = i64::from(self.settings.initial_rebalance_delay_ms).min(remaining_ms);
            phase.is_member_added = false;
            phase.initial_remaining_ms = Some(remaining_ms.saturating_sub(wait_ms));
            self.timers.set(Timer::Join, now.mono_ms.saturating_add(wait_ms));
            return;
        }
        self.complete_join(now, out);
    }

    fn complete_join(&mut self, now: Now, out: &mut Vec<Command>) {
        self.timers.cancel(&Timer::Join);
        let is_missing = |member: &super::Member| member.awaiting_join.is_none() && !member.is_static();
        let missing: Vec<_> =
            self.members.values().filter(|it| is_missing(it)).map(|it| it.member_id.clone()).collect();
        for id in missing {
            // KAFKA-7196: its timer goes with it.
            if let Some(member) = self.take(&id) {
                self.give_up_waiting(member, out);
                out.push(Command::Note(Note::MemberRemoved { member_id: id, reason: Reason::JoinTimedOut }));
            }
        }
        if !self.elect_joined_leader() && !self.members.is_empty() {
            // Static members only, and none has come: their sessions will end, or they will join.
            let wait_ms = self.rebalance_timeout_ms().max(MIN_EXTENSION_MS);
            self.join_phase = Some(JoinPhase { initial_remaining_ms: None, is_member_added: false });
            self.timers.set(Timer::Join, now.mono_ms.saturating_add(wait_ms));
            return;
        }
        self.begin_generation(now, out);
    }

    /// Makes sure that the leader is somebody who has joined (KAFKA-8220); false if there is nobody.
    fn elect_joined_leader(&mut self) -> bool {
        let has_joined = |id: &Str| self.members.get(id).is_some_and(|it| it.awaiting_join.is_some());
        if self.leader.as_ref().is_some_and(has_joined) {
            return true;
        }
        let joined = self.members.values().find(|it| it.awaiting_join.is_some());
        match joined.map(|it| it.member_id.clone()) {
            Some(id) => {
                self.leader = Some(id);
                true
            }
            None => false,
        }
    }

    fn begin_generation(&mut self, now: Now, out: &mut Vec<Command>) {
        self.join_phase = None;
        self.generation = self.generation.saturating_add(1);
        self.pending_sync.clear();
        let (generation, members) = (self.generation, self.members.len());
        out.push(Command::Note(Note::Joined { generation, members }));
        self.protocol_name = self.select_protocol();
        self.subscribed_topics = self.read_subscriptions();
        if self.members.is_empty() {
            self.become_state(now, State::Empty);
            self.store_group(now, |_| bytes::Bytes::new(), InFlight::Empty, out);
            return;
        }
        self.become_state(now, State::CompletingRebalance);
        self.awaiting_join = 0;
        let ids: Vec<_> = self.members.keys().cloned().collect();
        for id in ids {
            let joined = self.joined(&id, self.is_leader(&id));
            if let Some(member) = self.members.get_mut(&id) {
                member.is_new = false;
                if let Some(request) = member.awaiting_join.take() {
                    answer(request, Answer::Join(joined), out);
                }
            }
            self.restart_session(now, &id);
            self.pending_sync.insert(id);
        }
        let wait_ms = self.rebalance_timeout_ms();
        self.timers.set(Timer::Sync, now.mono_ms.saturating_add(wait_ms));
    }

    /// The topics that the members of a group of type `consumer` subscribe to; none if that cannot be told.
    pub(super) fn read_subscriptions(&self) -> Option<std::collections::BTreeSet<wire::types::TopicName>> {
        self.protocol_type.as_ref().filter(|it| **it == *CONSUMER)?;
        let mut topics = std::collections::BTreeSet::new();
        if self.members.is_empty() {
            return Some(topics);
        }
        let protocol = self.protocol_name.clone()?;
        for member in self.members.values() {
            topics.extend(wire::internal::subscribed_topics(member.metadata(&protocol)).ok()?);
        }
        Some(topics)
    }
}
