//! JoinGroup: the checks in their order, and who waits for a rebalance.

use wire::Str;
use wire::error_code::ErrorCode;
use wire::types::Now;

use super::member::{Member, owned};
use super::timers::Timer;
use super::{
    Answer, Command, Group, JoinAnswer, JoinRequest, JoinedMember, Protocol, Reason, RequestId, State, answer,
};

/// How long the JoinGroup request of a new member may wait: until it is answered it does not know its id, so it cannot
/// send heartbeats (KAFKA-7610).
pub(super) const NEW_MEMBER_JOIN_TIMEOUT_MS: i64 = 300_000;

/// So many member ids may be on their way at once: given out, and not come back. One that is not used is forgotten after
/// its session timeout only, which may be half an hour.
pub(super) const MAX_PENDING_MEMBERS: usize = 10_000;

impl Group {
    pub(super) fn join(&mut self, now: Now, request: RequestId, join: &JoinRequest, out: &mut Vec<Command>) {
        let id = &join.member_id;
        if !self.settings.allows_session_timeout(join.session_timeout_ms) {
            return refuse(request, ErrorCode::InvalidSessionTimeout, id.clone(), out);
        }
        if !self.has_room_for(id) {
            if let Some(member) = self.take(id) {
                self.give_up_waiting(member, out);
            }
            refuse(request, ErrorCode::GroupMaxSizeReached, Str::EMPTY, out);
        } else if self.state == State::Dead {
            return refuse(request, ErrorCode::CoordinatorNotAvailable, id.clone(), out);
        } else if !self.supports(join) {
            refuse(request, ErrorCode::InconsistentGroupProtocol, id.clone(), out);
        } else if id.is_empty() {
            self.new_member(now, request, join, out);
        } else if self.pending_members.contains(id) {
            self.pending_member(now, request, join, out);
        } else {
            self.known_member(now, request, join, out);
        }
        self.maybe_complete_join(now, out);
    }

    /// Whether the group may grow by this caller, or has it already (KIP-389).
    fn has_room_for(&self, id: &Str) -> bool {
        let max = usize::try_from(self.settings.max_size).unwrap_or(0);
        match self.state {
            State::Empty | State::Dead => true,
            State::PreparingRebalance => {
                let waits = self.members.get(id).is_some_and(|it| it.awaiting_join.is_some());
                waits || self.awaiting_join < max
            }
            State::CompletingRebalance | State::Stable => {
                self.members.contains_key(id) || self.members.len() < max
            }
        }
    }

    fn new_member(&mut self, now: Now, request: RequestId, join: &JoinRequest, out: &mut Vec<Command>) {
        let fresh = owned(&join.fresh_member_id);
        match &join.instance_id {
            Some(instance) => match self.static_members.get(instance).cloned() {
                Some(old) => self.replace_static_member(now, request, &old, join, out),
                None => self.add_and_rebalance(now, fresh, request, join, out),
            },
            None if !join.requires_known_member_id => self.add_and_rebalance(now, fresh, request, join, out),
            None if !join.may_be_given_id || self.pending_members.len() >= MAX_PENDING_MEMBERS => {
                refuse(request, ErrorCode::CoordinatorNotAvailable, Str::EMPTY, out);
            }
            None => {
                let at_ms = now.mono_ms.saturating_add(i64::from(join.session_timeout_ms));
                self.timers.set(Timer::PendingMember(fresh.clone()), at_ms);
                self.pending_members.insert(fresh.clone());
                refuse(request, ErrorCode::MemberIdRequired, fresh, out);
            }
        }
    }

    /// A member id that was given out comes back.
    fn pending_member(&mut self, now: Now, request: RequestId, join: &JoinRequest, out: &mut Vec<Command>) {
        if join.instance_id.is_some() {
            // Ids of static members are never pending; Kafka fails here.
            return refuse(request, ErrorCode::UnknownMemberId, join.member_id.clone(), out);
        }
        self.add_and_rebalance(now, owned(&join.member_id), request, join, out);
    }

    fn known_member(&mut self, now: Now, request: RequestId, join: &JoinRequest, out: &mut Vec<Command>) {
        let id = &join.member_id;
        if let Err(error) = self.check_member(id, join.instance_id.as_ref()) {
            return refuse(request, error, id.clone(), out);
        }
        let is_leader = self.is_leader(id);
        let same = self.members.get(id).is_some_and(|it| it.matches(&join.protocols));
        match self.state {
            State::CompletingRebalance if same => {
                answer(request, Answer::Join(self.joined(id, is_leader)), out);
            }
            State::Stable if same && !is_leader => {
                answer(request, Answer::Join(self.joined(id, false)), out);
            }
            State::PreparingRebalance | State::CompletingRebalance | State::Stable => {
                let id = owned(id);
                self.update(&id, join);
                // First the rebalance, which ends what waits for an assignment; then this one waits for it.
                self.begin_rebalance(now, Reason::Rejoined(id.clone()), out);
                self.park(&id, request, out);
            }
            State::Empty | State::Dead => refuse(request, ErrorCode::UnknownMemberId, id.clone(), out),
        }
    }

    fn add_and_rebalance(
        &mut self,
        now: Now,
        id: Str,
        request: RequestId,
        join: &JoinRequest,
        out: &mut Vec<Command>,
    ) {
        if self.members.contains_key(&id) {
            // Two members with one random id: the edge gave out the same twice.
            return refuse(request, ErrorCode::UnknownMemberId, Str::EMPTY, out);
        }
        if let Some(phase) = self.join_phase.as_mut().filter(|_| self.generation == 0) {
            phase.is_member_added = true;
        }
        let member = Member {
            member_id: id.clone(),
            instance_id: join.instance_id.as_ref().map(owned),
            client_id: owned(&join.client_id),
            client_host: owned(&join.client_host),
            rebalance_timeout_ms: join.rebalance_timeout_ms,
            session_timeout_ms: join.session_timeout_ms,
            protocols: join.protocols.iter().map(Protocol::owned).collect(),
            assignment: bytes::Bytes::new(),
            is_new: true,
            awaiting_join: None,
            awaiting_sync: Vec::new(),
        };
        self.add(member, &join.protocol_type);
        let at_ms = now.mono_ms.saturating_add(NEW_MEMBER_JOIN_TIMEOUT_MS);
        self.timers.set(Timer::Session(id.clone()), at_ms);
        self.begin_rebalance(now, Reason::NewMember(id.clone()), out);
        self.park(&id, request, out);
    }

    /// Lets a JoinGroup request wait for the end of the join phase. One that waits already is of a connection that was
    /// given up; should anybody read the answer, it says to join again.
    pub(super) fn park(&mut self, id: &Str, request: RequestId, out: &mut Vec<Command>) {
        let Some(member) = self.members.get_mut(id) else { return };
        if !member.is_new {
            self.timers.cancel(&Timer::Session(id.clone()));
        }
        match member.awaiting_join.replace(request) {
            Some(before) => refuse(before, ErrorCode::RebalanceInProgress, id.clone(), out),
            None => self.awaiting_join += 1,
        }
    }

    /// The answer to a member that has joined the current generation.
    pub(super) fn joined(&self, id: &Str, with_members: bool) -> JoinAnswer {
        JoinAnswer {
            error: ErrorCode::None,
            member_id: id.clone(),
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            members: if with_members { self.joined_members() } else { Vec::new() },
        }
    }

    pub(super) fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol_name.clone().unwrap_or_default();
        let members = self.members.values().map(|member| JoinedMember {
            member_id: member.member_id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(&protocol),
        });
        members.collect()
    }
}

/// Answers a JoinGroup request with an error.
pub(super) fn refuse(request: RequestId, error: ErrorCode, member_id: Str, out: &mut Vec<Command>) {
    answer(request, Answer::Join(JoinAnswer::error(error, member_id)), out);
}
