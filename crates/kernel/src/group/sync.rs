//! SyncGroup: the leader's assignment is stored, then everybody gets his part.

use std::collections::BTreeMap;

use bytes::Bytes;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::types::Now;

use super::in_flight::InFlight;
use super::member::{MAX_PARKED_SYNCS, owned};
use super::timers::Timer;
use super::{
    Answer, Command, Group, Note, Reason, RequestId, State, SyncAnswer, SyncRequest, answer, errors,
};

impl Group {
    pub(super) fn sync(&mut self, now: Now, request: RequestId, sync: &SyncRequest, out: &mut Vec<Command>) {
        let refuse =
            |error, out: &mut Vec<Command>| answer(request, Answer::Sync(SyncAnswer::error(error)), out);
        if let Err(error) = self.check_sync(sync) {
            return refuse(error, out);
        }
        match self.state {
            State::Empty => refuse(ErrorCode::UnknownMemberId, out),
            State::Dead => refuse(ErrorCode::CoordinatorNotAvailable, out),
            State::PreparingRebalance => refuse(ErrorCode::RebalanceInProgress, out),
            State::CompletingRebalance => self.await_assignment(now, request, sync, out),
            State::Stable => {
                self.has_synced(&sync.member_id);
                answer(request, Answer::Sync(self.assigned(&sync.member_id)), out);
                self.restart_session(now, &sync.member_id);
            }
        }
    }

    fn check_sync(&self, sync: &SyncRequest) -> Result<(), ErrorCode> {
        if self.state == State::Dead {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        self.check_member(&sync.member_id, sync.instance_id.as_ref())?;
        if sync.generation != self.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        let differs = |given: &Option<Str>, ours: &Option<Str>| given.is_some() && given != ours;
        if differs(&sync.protocol_type, &self.protocol_type)
            || differs(&sync.protocol_name, &self.protocol_name)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        Ok(())
    }

    fn await_assignment(&mut self, now: Now, request: RequestId, sync: &SyncRequest, out: &mut Vec<Command>) {
        let id = &sync.member_id;
        self.has_synced(id);
        self.timers.cancel(&Timer::Session(id.clone()));
        if let Some(member) = self.members.get_mut(id) {
            member.awaiting_sync.push(request);
            if member.awaiting_sync.len() > MAX_PARKED_SYNCS {
                let before = member.awaiting_sync.remove(0);
                answer(before, Answer::Sync(SyncAnswer::error(ErrorCode::RebalanceInProgress)), out);
            }
        }
        let generation = self.generation;
        let is_storing =
            |it: &InFlight| matches!(it, InFlight::Sync { generation: of, .. } if *of == generation);
        // A leader that asks twice is answered twice, but what it said first is what is stored.
        if !self.is_leader(id) || self.in_flight.values().any(is_storing) {
            return;
        }
        let assignment = |id: &Str| {
            let given = sync.assignments.get(id).map(|it| Bytes::copy_from_slice(it));
            (owned(id), given.unwrap_or_default())
        };
        let assignments: BTreeMap<_, _> = self.members.keys().map(assignment).collect();
        let in_flight = InFlight::Sync { generation, assignments: assignments.clone() };
        let of = |id: &Str| assignments.get(id).cloned().unwrap_or_default();
        self.store_group(now, of, in_flight, out);
    }

    /// The end of storing the leader's assignment. If the group has moved on meanwhile, all have been answered.
    pub(super) fn sync_stored(
        &mut self,
        now: Now,
        generation: i32,
        mut assignments: BTreeMap<Str, Bytes>,
        outcome: Result<(), ErrorCode>,
        out: &mut Vec<Command>,
    ) {
        if self.state != State::CompletingRebalance || generation != self.generation {
            return;
        }
        if let Err(error) = outcome {
            let error = errors::of_group(error);
            self.fail_sync(now, error, out);
            return self.begin_rebalance(now, Reason::StoreFailed(error), out);
        }
        self.become_state(now, State::Stable);
        out.push(Command::Note(Note::Stabilized { generation }));
        for (id, member) in &mut self.members {
            member.assignment = assignments.remove(id).unwrap_or_default();
        }
        self.answer_parked_syncs(now, |group, id| group.assigned(id), out);
    }

    /// Nobody gets an assignment: those who wait are answered with `error`.
    pub(super) fn fail_sync(&mut self, now: Now, error: ErrorCode, out: &mut Vec<Command>) {
        for member in self.members.values_mut() {
            member.assignment = Bytes::new();
        }
        self.answer_parked_syncs(now, |_, _| SyncAnswer::error(error), out);
    }

    fn answer_parked_syncs(
        &mut self,
        now: Now,
        with: impl Fn(&Self, &Str) -> SyncAnswer,
        out: &mut Vec<Command>,
    ) {
        let waits = self.members.values().filter(|it| !it.awaiting_sync.is_empty());
        let ids: Vec<_> = waits.map(|it| it.member_id.clone()).collect();
        for id in ids {
            let said = with(self, &id);
            let requests = self.members.get_mut(&id).map(|it| std::mem::take(&mut it.awaiting_sync));
            for request in requests.unwrap_or_default() {
                answer(request, Answer::Sync(said.clone()), out);
            }
            self.restart_session(now, &id);
        }
    }

    /// The time to send SyncGroup is over: those who have not go, static or not (KAFKA-12890).
    pub(super) fn sync_expired(&mut self, now: Now, out: &mut Vec<Command>) {
        let missing = std::mem::take(&mut self.pending_sync);
        if missing.is_empty() || !matches!(self.state, State::CompletingRebalance | State::Stable) {
            return;
        }
        for id in missing {
            if let Some(member) = self.take(&id) {
                self.give_up_waiting(member, out);
                out.push(Command::Note(Note::MemberRemoved { member_id: id, reason: Reason::SyncTimedOut }));
            }
        }
        self.begin_rebalance(now, Reason::SyncTimedOut, out);
    }

    fn has_synced(&mut self, id: &Str) {
        self.pending_sync.remove(id);
        if self.pending_sync.is_empty() {
            self.timers.cancel(&Timer::Sync);
        }
    }

    fn assigned(&self, id: &Str) -> SyncAnswer {
        SyncAnswer {
            error: ErrorCode::None,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            assignment: self.members.get(id).map(|it| it.assignment.clone()).unwrap_or_default(),
        }
    }
}
